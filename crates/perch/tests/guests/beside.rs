// SPDX-License-Identifier: GPL-2.0-or-later
//! The live scheduler simulated beside the live scheduler in a guest, in modelled time.

use std::sync::Arc;

use perch_experiment::{Arm, CompareSpec, Plan};
use perch_lab::Cpus;
use perch_lab::guest::Command;
use perch_policy::{Era, Topology};
use perch_sim::RootDomain;
use perch_workload::Budget;

use crate::guest::{Place, bare_deterministic, boot, printed, resolve};

/// Pairs that pass a byte through pipes, on eight CPUs: a quarter and half of them are wanted.
const PAIRS: [usize; 2] = [2, 4];
/// How often each is played in the guest, in other phases of the ticks. The median counts.
const TIMES: usize = 3;
/// Percentage points by which the two changes may differ. On 7.2.12 the guest has +6 and +5 where the
/// simulator has +4 and +4; another build of either kernel or scheduler moves a guest's by a few.
const APART: f64 = 8.0;

fn change(rates: [f64; 2]) -> f64 {
    100.0 * (rates[1] / rates[0] - 1.0)
}

/// What perch changes of the rounds a second, in percent, simulated.
fn simulated(machine: &perch_machine::Machine, pairs: usize) -> f64 {
    let machine = Arc::new(machine.clone());
    let arms = ["stock:cluster=upstream,cache=upstream", "live:"];
    let spec = CompareSpec {
        topology: Topology::new(&machine),
        machine,
        era: Era::V7_2,
        hz: 250,
        root_domain: RootDomain::Stock,
        workload: format!("pipe:pairs={pairs}"),
        arms: arms.map(|arm| Arm::parse(arm, Era::V7_2).unwrap()).to_vec(),
        plan: Plan::by_hand(100_000_000, 100_000_000, Some(3)),
        statistics: false,
        seed: 1,
        jobs: 1,
        budget: Budget::DEFAULT,
    };
    let found = perch_experiment::compare(&spec, &mut |_, _| {}).unwrap();
    let rounds = &found.scores[0].arms;
    change([rounds[0].mean, rounds[1].mean])
}

/// The machine is a small part of kunpeng920; all the same, a pair under perch takes as much longer
/// simulated as it does in a guest.
#[test]
#[ignore = "minutes of modelled time, for --long"]
fn perch_costs_a_pair_as_much_simulated_as_in_a_guest() {
    let _place = Place::take();
    let machine = resolve("kunpeng920");
    let mut setup = bare_deterministic(&machine, Cpus::AtMost(8));
    setup.coherence = true;
    setup.timed = true;
    let loads = PAIRS.map(|pairs| {
        format!("perch lab pairs --by pipe --pairs {pairs} --warmup 20ms --measure 10ms")
    });
    let all = format!("for time in $(seq {TIMES}); do {}; done", loads.join("; "));
    let script = format!("{all}; exec /bin/perch agent scheduled -- sh -c '{all}'");
    let words = ["/bin/perch", "agent", "watched", "--seed", "1", "--", "sh"];
    setup.job = Some(Command::new([&words[..], &["-c", &script]].concat()));
    let small = setup.topology.machine().clone();
    let guest = boot(&setup);
    let text = printed(&guest);
    let rate = |line: &str| -> f64 {
        let (_, rate) = line.split_once(" pairs: ").expect(line);
        rate.split(' ').next().unwrap().parse().expect(line)
    };
    let rates: Vec<f64> = text.lines().map(rate).collect();
    println!("{rates:?}");
    assert_eq!(rates.len(), 2 * TIMES * PAIRS.len(), "{text}");
    for (at, pairs) in PAIRS.into_iter().enumerate() {
        let median = |arm: &[f64]| {
            let mut played: Vec<f64> = arm.iter().skip(at).step_by(PAIRS.len()).copied().collect();
            played.sort_by(f64::total_cmp);
            played[TIMES / 2]
        };
        let (stock, perch) = rates.split_at(TIMES * PAIRS.len());
        let guest = change([median(stock), median(perch)]);
        let simulated = simulated(&small, pairs);
        println!("{pairs} pairs: {guest:+.1} % in the guest, {simulated:+.1} % simulated");
        assert!(
            (guest - simulated).abs() <= APART,
            "{pairs} pairs: {guest:+.1} % in the guest, {simulated:+.1} % simulated"
        );
    }
}
