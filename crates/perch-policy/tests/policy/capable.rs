// SPDX-License-Identifier: GPL-2.0-or-later
//! The properties of capacity-aware wake-up (docs/testing.md#properties) over random moments of
//! random asymmetric machines, and its decisions on the machines that it was written for.

use perch_machine::{Machine, library};
use perch_policy::{Era, Host, Mode, Modes, Policy, Reason, Topology, Verdict};
use proptest::prelude::*;

use crate::capacity::{clamped, fits, room};
use crate::decision::{Decision, decide};
use crate::machines::{self, Shape};
use crate::model::Model;
use crate::scenario::{self, Scenario};

/// A random machine whose CPUs differ, if it does not so by itself: two or three kinds.
fn asymmetric(seed: u64, max_cpus: usize) -> Machine {
    let mut machine = machines::random(seed, max_cpus);
    let kinds = [[1024, 446, 446], [1024, 382, 700], [1024, 900, 1024]][seed as usize % 3];
    if Shape::new(&machine).asymmetric() || machine.cpus.len() < 2 {
        return machine;
    }
    // Threads of a core are alike, cores differ by cluster or at random.
    for cpu in &mut machine.cpus {
        let group = cpu.cluster.filter(|_| seed & 8 == 0).unwrap_or(cpu.core);
        cpu.capacity = kinds[group as usize % kinds.len()];
    }
    machine.cpus[0].capacity = 1024;
    let core = machine.cpus[0].core;
    let siblings = machine.cpus.iter_mut().filter(|c| c.core == core);
    siblings.for_each(|c| c.capacity = 1024);
    machine
}

/// The idle CPUs that the mode may look at, in its order, and how well the wakee fits each by the
/// reference: rank (less is better), then capacity.
fn candidates(d: &Decision) -> Vec<(usize, i32, u32)> {
    let mut before = d.before.clone();
    let modes = d.policy.modes();
    let model = Model::new(d.shape, d.topology, d.policy.era(), modes, &mut before);
    let target = d.verdict.target;
    let cpus = d.shape.asym[target].clone().unwrap_or_default();
    let (scan, cores) = match d.before.state.asym.get(&cpus) {
        Some(&asym) => asym,
        None => (d.before.state.scan[cpus[0]], d.before.state.idle_cores[cpus[0]]),
    };
    let hic = d.shape.smt && cores;
    let reach = match modes.capacity {
        Mode::Upstream if scan == 0 || !hic => scan as usize,
        _ => cpus.len(),
    };
    let n = d.shape.nr_cpus();
    let ring = (0..n).map(|i| (target + i) % n);
    let ring = ring.filter(|c| cpus.contains(c) && d.before.allowed[*c]);
    let idle = ring.take(reach).filter(|&c| d.idle_ok(c));
    let graded = idle.map(|c| {
        let capacity = d.before.state.cpus[c].capacity;
        match modes.capacity {
            Mode::Posted => (c, -i32::from(room(clamped(&model), capacity)), capacity),
            _ => {
                let fit = fits(&model, c);
                let rank = [-1, 0, -2][(fit + 1) as usize];
                let core =
                    !hic || d.shape.core[c].iter().all(|&s| s == c || d.before.state.idle[s]);
                let capacity = if fit == -1 { d.shape.capacity(c) } else { capacity };
                (c, rank - 3 * i32::from(core), capacity)
            }
        }
    });
    graded.collect()
}

fn by_capacity(reason: Reason) -> bool {
    use Reason::*;
    [CapacityFit, CapacityBest, CapacitySpare].contains(&reason)
}

proptest! {
    #![proptest_config(crate::config())]

    /// P1 with every mechanism in every mode.
    #[test]
    fn p1_the_choice_is_allowed(seed: u64, max_cpus in 2..100usize) {
        decide(&asymmetric(seed, max_cpus), seed, &scenario::policies(), |d| {
            let allowed = d.before.allowed.contains(&true);
            let at = format!("seed {seed}, {max_cpus} CPUs, {}", d.policy.modes());
            assert!(d.before.allowed[d.verdict.cpu] || !allowed, "{at}: {:?}", d.verdict);
        });
    }

    /// P3: on equal capacities every mode of capacity is off, in every era.
    #[test]
    fn p3_equal_capacities_know_no_mode(seed: u64, max_cpus in 1..100usize) {
        let mut machine = machines::random(seed, max_cpus);
        machine.cpus.iter_mut().for_each(|c| c.capacity = 1024);
        let mut off = None;
        for cluster in Mode::ALL {
            let with = |capacity| Modes {
                cluster,
                capacity,
                ..Modes::default()
            };
            let modes = Mode::ALL.map(|m| Policy::new(Era::V5_5, with(m)));
            let later = Mode::ALL.map(|m| Policy::new(Era::V7_2, with(m)));
            decide(&machine, seed, &[modes, later].concat(), |d| {
                let now = (d.verdict, d.after.clone());
                if d.policy.modes().capacity == Mode::Off {
                    off = Some(now);
                } else {
                    assert_eq!(Some(now), off, "seed {seed}, {}", d.policy.modes());
                }
            });
        }
    }

    /// P7: where an idle CPU that the mode may look at fits, the chosen one fits; else no idle
    /// one has more capacity (posted) or a better rank and capacity (upstream, perch).
    #[test]
    fn p7_the_best_idle_cpu_is_chosen(seed: u64, max_cpus in 2..100usize) {
        decide(&asymmetric(seed, max_cpus), seed, &scenario::policies(), |d| {
            let searched = by_capacity(d.verdict.reason) || d.verdict.reason == Reason::TargetBusy;
            let on = d.policy.modes().capacity != Mode::Off && d.shape.asym[d.verdict.target].is_some();
            if !searched || !on {
                return;
            }
            let at = format!("seed {seed}, {max_cpus} CPUs, era {}, {}: {:?}", d.policy.era(),
                d.policy.modes(), d.verdict);
            let found = candidates(d);
            let best = found.iter().map(|&(_, rank, capacity)| (rank, -i64::from(capacity))).min();
            let chosen = found.iter().find(|(c, ..)| *c == d.verdict.cpu);
            let fit = found.iter().map(|f| f.1).min();
            match (d.verdict.reason, chosen) {
                (Reason::CapacityFit, Some(&(cpu, rank, _))) => {
                    assert_eq!(Some(rank), fit, "{at}: {found:?}");
                    let first = found.iter().find(|f| f.1 == rank).map(|f| f.0);
                    // Beside busy siblings the largest of the fitting, else the first of them.
                    let quiet = rank == -5 || d.policy.modes().capacity == Mode::Posted;
                    assert!(!quiet || first == Some(cpu), "{at}: {found:?}");
                }
                (Reason::CapacityBest, Some(&(_, rank, capacity))) => {
                    assert_eq!(Some((rank, -i64::from(capacity))), best, "{at}: {found:?}");
                }
                (Reason::CapacitySpare | Reason::TargetBusy, _) => {
                    assert!(found.is_empty(), "{at}: {found:?}");
                }
                _ => panic!("{at}: chosen is not a candidate of {found:?}"),
            }
        });
    }

    /// P18 for capacity: perch never queues a task behind another while an idle CPU that the task
    /// may use is in the asymmetric domain.
    #[test]
    fn p18_perch_leaves_no_idle_cpu(seed: u64, max_cpus in 2..100usize) {
        decide(&asymmetric(seed, max_cpus), seed, &scenario::policies(), |d| {
            if d.policy.modes().capacity != Mode::Perch || d.verdict.reason != Reason::CapacitySpare {
                return;
            }
            let cpus = d.shape.asym[d.verdict.target].iter().flatten();
            let idle = cpus.copied().find(|&c| d.idle_ok(c) && d.before.allowed[c]);
            assert_eq!(idle, None, "seed {seed}, {max_cpus} CPUs: {:?}", d.verdict);
            let spare = |c: usize| {
                let cpu = &d.before.state.cpus[c];
                cpu.capacity.saturating_sub(cpu.util)
            };
            let cpus = d.shape.asym[d.verdict.target].iter().flatten();
            let most = cpus.filter(|&&c| d.before.allowed[c]).map(|&c| spare(c)).max();
            let kept = if d.verdict.cpu == d.verdict.target { 128 } else { 0 };
            let enough = most.is_some_and(|most| spare(d.verdict.cpu) + kept >= most);
            assert!(enough, "seed {seed}: {:?}, {most:?}", d.verdict);
        });
    }
}

/// A moment on a machine: task of this utilisation wakes on `this` after it ran on `prev`, and
/// all CPUs but `idle` are busy.
fn moment(
    name: &str,
    era: Era,
    capacity: Mode,
    util: u32,
    [this, prev]: [usize; 2],
    idle: &[usize],
) -> Verdict {
    let machine: Machine = library::load(name).expect("a library machine");
    let shape = Shape::new(&machine);
    let mut s = Scenario::idle(&shape, this, prev);
    for cpu in (0..shape.nr_cpus()).filter(|c| !idle.contains(c)) {
        s.busy(cpu, 1);
        s.state.cpus[cpu].util = shape.capacity(cpu);
    }
    s.wakee.util = util;
    let mut host = Host::new(Topology::new(&machine));
    s.put(&mut host);
    s.decide(&mut host, &alone(era, capacity))
}

/// capacity in this mode and nothing else.
fn alone(era: Era, capacity: Mode) -> Policy {
    let modes = Modes { capacity, ..Modes::default() };
    Policy::new(era, modes)
}

fn pixel3() -> (Shape, Host) {
    let machine: Machine = library::load("pixel3").expect("a library machine");
    (Shape::new(&machine), Host::new(Topology::new(&machine)))
}

/// A hog fits nowhere (1024 takes up to 819), so it gets the largest idle CPU.
#[test]
fn a_hog_gets_the_largest_idle_cpu() {
    for (name, idle, big) in [("juno", vec![3, 1, 5], 1), ("pixel3", vec![0, 2, 6], 6)] {
        for mode in [Mode::Posted, Mode::Upstream, Mode::Perch] {
            let verdict = moment(name, Era::V5_5, mode, 1024, [0, 0], &idle);
            assert_eq!((verdict.cpu, verdict.reason), (big, Reason::CapacityBest), "{name} {mode}");
        }
    }
}

/// A task that fits the LITTLEs takes the first idle CPU from the target on.
#[test]
fn a_small_task_takes_what_is_near() {
    let verdict = moment("pixel3", Era::V5_5, Mode::Posted, 100, [1, 1], &[2, 5]);
    assert_eq!((verdict.cpu, verdict.reason, verdict.examined), (2, Reason::CapacityFit, 2));
    // 305 of 382 is the last that fits.
    for (util, cpu) in [(305, 2), (306, 5)] {
        let verdict = moment("pixel3", Era::V5_5, Mode::Posted, util, [1, 1], &[2, 5]);
        assert_eq!(verdict.cpu, cpu, "utilisation {util}");
    }
}

/// The waker is about to sleep, so its CPU is the target. An idle prev that fits ends the search
/// in upstream and perch; posted goes on from the target to the first that fits: the regression
/// that 5.10 fixed.
#[test]
fn only_posted_leaves_an_idle_previous_cpu() {
    for (mode, expected) in [
        (Mode::Posted, (5, Reason::CapacityFit)),
        (Mode::Upstream, (7, Reason::PrevIdle)),
        (Mode::Perch, (7, Reason::PrevIdle)),
    ] {
        let (shape, mut host) = pixel3();
        let mut s = Scenario::idle(&shape, 4, 7);
        (0..5).for_each(|cpu| s.busy(cpu, 1));
        s.wakee.util = 100;
        s.wake.sync = true;
        s.put(&mut host);
        let verdict = s.decide(&mut host, &alone(Era::V7_2, mode));
        assert_eq!((verdict.cpu, verdict.reason), expected, "{mode}");
    }
}

/// Nothing idle: posted and upstream queue on the target, perch where most is left.
#[test]
fn only_perch_looks_for_spare_capacity() {
    for mode in [Mode::Posted, Mode::Upstream] {
        let verdict = moment("pixel3", Era::V7_2, mode, 500, [1, 1], &[]);
        assert_eq!((verdict.cpu, verdict.reason), (1, Reason::TargetBusy), "{mode}");
    }
    let (shape, mut host) = pixel3();
    let mut s = Scenario::idle(&shape, 1, 1);
    (0..8).for_each(|cpu| s.busy(cpu, 1));
    s.state.cpus[6].util = 300;
    s.put(&mut host);
    let verdict = s.decide(&mut host, &alone(Era::V7_2, Mode::Perch));
    assert_eq!((verdict.cpu, verdict.reason), (6, Reason::CapacitySpare));
}

/// 5.5 as it was: a hog that woke on a LITTLE is balanced like a fork, between two bigs it is not;
/// on a symmetric machine no task ever is.
#[test]
fn the_baseline_balances_what_does_not_fit_the_smaller_cpu() {
    let off = |name, util, cpus| moment(name, Era::V5_5, Mode::Off, util, cpus, &[0, 2]).reason;
    for (util, cpus, balanced) in
        [(1024, [1, 0], true), (1024, [1, 2], false), (356, [1, 0], false), (357, [1, 0], true)]
    {
        assert_eq!(off("juno", util, cpus) == Reason::WakeBalance, balanced, "{util} {cpus:?}");
    }
    assert_ne!(off("jacobsville", 1024, [1, 0]), Reason::WakeBalance);
}
