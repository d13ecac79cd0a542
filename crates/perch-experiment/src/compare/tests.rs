// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the figures that a comparison shows for steering, on the machine and in the groups for
//! which steering was posted.

use std::sync::Arc;

use perch_policy::{Era, Topology};
use perch_sim::RootDomain;
use perch_sim::workload::{Budget, Demand};

use super::*;
use crate::arm::Arm;
use crate::kept::ArmKept;
use crate::model::Effort;
use crate::thoroughness::Thoroughness;

fn steering(workload: &str, measure_ms: u64) -> Comparison {
    let arms = ["off", "posted", "perch"]
        .map(|mode| Arm::parse(&format!("{mode}:steer={mode}"), Era::V7_2));
    let spec = CompareSpec {
        era: Era::V3_4,
        hz: 1000,
        workload: workload.to_string(),
        arms: arms.into_iter().collect::<Result<_, _>>().unwrap(),
        plan: Plan::ByHand(Effort {
            repetitions: 1,
            warmup_ns: 200_000_000,
            measure_ns: measure_ms * 1_000_000,
        }),
        jobs: 1,
        ..tiny(1)
    };
    compare(&spec, &mut |_, _| {}).unwrap()
}

fn tiny(repetitions: u32) -> CompareSpec {
    let machine = Arc::new(perch_machine::resolve("x5570").unwrap());
    CompareSpec {
        topology: Topology::new(&machine),
        machine,
        era: Era::V7_2,
        hz: 250,
        root_domain: RootDomain::Stock,
        workload: "pipe:pairs=2".to_string(),
        arms: vec![
            Arm::parse("a:steer=off", Era::V7_2).unwrap(),
            Arm::parse("b:steer=perch", Era::V7_2).unwrap(),
        ],
        plan: Plan::ByHand(Effort { repetitions, warmup_ns: 1_000_000, measure_ns: 1_000_000 }),
        statistics: false,
        seed: 1,
        jobs: 2,
        budget: Budget::DEFAULT,
    }
}

/// Beside the scores, what is kept of a hundred repetitions is as large as what is kept of one.
#[test]
fn what_is_kept_does_not_grow_but_for_the_scores() {
    let spec = tiny(1);
    let mut kept = ArmKept::default();
    let mut sizes = Vec::new();
    for repetition in 0..100 {
        let effort = spec.plan.watched(&check(&spec).unwrap());
        let scenario = scenario(&spec, &spec.arms[0], repetition, effort).unwrap();
        let (outcome, batches) = scenario.run_in_batches(20).unwrap();
        kept.add(&outcome, &batches);
        sizes.push((kept.scores.len(), kept.values(), kept.sums()));
    }
    let (scores, _, sums) = sizes[0];
    for (before, size) in sizes.iter().enumerate() {
        assert_eq!(*size, (scores, scores * (before + 1), sums));
    }
    // The budget foresees at least the values, with room for a vector's growth.
    let foreseen = Demand { simulations: 1, ..Demand::default() };
    assert!(2 * 8 * scores as u64 <= foreseen.bytes());
}

#[test]
fn repetitions_over_the_budget_are_refused_by_their_number() {
    let error = compare(&tiny(1_000_000_000), &mut |_, _| {}).unwrap_err();
    assert!(error.is_input());
    assert_eq!(
        error.to_string(),
        "repetitions=1000000000 and arms=2: 2000000000 simulations take about 477 GiB of memory, and \
         the budget is 1GiB: expected less, or a larger budget: --budget 477GiB"
    );
}

#[test]
fn a_workload_over_the_budget_is_refused_and_a_larger_budget_lets_it_through() {
    let mut spec = tiny(1);
    spec.workload = "pipe:pairs=100".to_string();
    spec.budget = "64KiB".parse().unwrap();
    let error = compare(&spec, &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("pairs=100: 200 tasks"), "{error}");
    spec.budget = "1MiB".parse().unwrap();
    compare(&spec, &mut |_, _| {}).unwrap();
}

/// A budget that holds one simulation at a time changes how many run, and no figure.
#[test]
fn a_small_budget_changes_no_figure() {
    let mut spec = tiny(5);
    let found = compare(&spec, &mut |_, _| {}).unwrap();
    spec.budget = "100KiB".parse().unwrap();
    spec.jobs = 64;
    assert_eq!(affordable(&spec, &check(&spec).unwrap()).unwrap(), 1);
    assert_eq!(compare(&spec, &mut |_, _| {}).unwrap(), found);
}

/// Of the 16 CPUs the first threads of all cores come before the second ones. In mode `posted` a
/// wakee goes to the CPU with the lowest number in its cache whose queue is empty, so the upper
/// half is as good as never chosen; the other modes ignore the number.
#[test]
fn posted_herds_to_the_lowest_cpus_and_perch_does_not() {
    let hogs = "vcpus=8,shares=8192,hogs=4x4";
    let found = steering(&format!("vm:{hogs},inside=trade"), 500);
    let share = |arm: usize| {
        let mut halves = [0.0; 2];
        for row in &found.chosen {
            let cpu: usize = row.name.strip_prefix("cpu ").unwrap().parse().unwrap();
            halves[cpu / 8] += row.per_second[arm].unwrap();
        }
        assert!(halves[0] + halves[1] > 1000.0, "{halves:?}");
        halves[1] / (halves[0] + halves[1])
    };
    let [posted, perch] = [share(1), share(2)];
    assert!(posted < 0.15, "{posted}: {:?}", found.chosen);
    assert!(perch > 0.3, "{perch}: {:?}", found.chosen);
}

/// A virtual machine's vCPUs run, wait or are halted, and the three times together never exceed the
/// simulated time.
#[test]
fn what_virtual_machines_got_is_shown() {
    let found = steering("vm:vcpus=3,shares=8192,hogs=4x4,inside=trade", 200);
    let of = |name: &str| {
        let row = found.guests.iter().find(|row| row.name == name).unwrap();
        let rates = row.per_second.iter();
        rates.map(|rate| rate.unwrap()).collect::<Vec<f64>>()
    };
    for (ran, waited) in of("vCPUs ran, ms").iter().zip(of("vCPUs waited, ms")) {
        assert!(*ran > 500.0 && ran + waited <= 3020.0, "{ran} {waited}");
    }
    assert!(of("halts of vCPUs").iter().all(|n| *n > 0.0));
    let bare = steering("pipe", 20);
    assert!(bare.guests.is_empty() && bare.chosen.is_empty());
}

/// With one repetition the histogram's mean equals the score's mean, and percentiles are in order.
#[test]
fn latencies_and_busy_cpus_stand_beside_the_scores() {
    let found = steering("hackbench:groups=1", 2000);
    let score = (found.scores.iter()).find(|score| score.name == "wake-up latency");
    for (arm, score) in found.latency.iter().zip(&score.unwrap().arms) {
        assert_eq!(arm.arm, score.arm);
        assert!((arm.mean_us - score.mean).abs() < 1e-6 * score.mean, "{arm:?}");
        let counted: u64 = arm.buckets.iter().map(|[_, count]| count).sum();
        assert!(counted == arm.wakeups && counted > 1000, "{arm:?}");
        let percentiles = arm.percentiles().map(|(_, us)| us);
        assert!(percentiles.is_sorted() && percentiles[0] > 0.0, "{arm:?}");
        let [longest, _] = arm.buckets.last().unwrap();
        assert!(arm.max_us * 1e3 <= *longest as f64);
    }
    for arm in &found.cpus {
        assert_eq!((arm.busy_pct.len(), arm.chosen_per_second.len()), (16, 16));
        assert!(arm.busy_pct.iter().all(|pct| (0.0..=100.0).contains(pct)), "{arm:?}");
        assert!(arm.busy_pct.iter().sum::<f64>() > 100.0, "{arm:?}");
        let chosen: f64 = arm.chosen_per_second.iter().sum();
        let wakeups = found.totals.iter().find(|row| row.name == "wake-ups").unwrap();
        assert!(
            wakeups.per_second.iter().flatten().any(|n| (n - chosen).abs() < 1e-6 * n),
            "{arm:?}"
        );
    }
    let machine = perch_machine::Machine::from_toml_str(&found.machine_toml, "the result");
    assert_eq!(machine.unwrap(), perch_machine::resolve("x5570").unwrap());
}

fn until(workload: &str, repetitions: Option<u32>) -> CompareSpec {
    CompareSpec {
        workload: workload.to_string(),
        plan: Plan::Until { effort: Thoroughness::Quick, repetitions },
        ..tiny(1)
    }
}

/// The window of the first round is too short for the balancer of 16 CPUs, and two pairs of tasks that
/// keep to themselves cost little: the measurement goes on.
#[test]
fn a_steady_load_is_measured_as_long_as_the_effort_pays_for() {
    let found = compare(&until("pipe:pairs=2", None), &mut |_, _| {}).unwrap();
    let window = found.window.unwrap();
    assert_eq!(window.balance_ms, 1000.0);
    assert!(window.is_balanced(), "{window:?}");
    assert_eq!((window.warmup_ms, window.effort), (window.measure_ms, Some(Thoroughness::Quick)));
    for arm in &found.scores[0].arms {
        assert_eq!(arm.transient_ms, None, "{arm:?}");
    }
    assert!(found.scores[0].arms[1].delta_ci95_pct.unwrap() <= 1.0);
}

/// A given number of repetitions is what is simulated, however wide the interval.
#[test]
fn repetitions_by_hand_are_obeyed() {
    let found =
        compare(&until("schbench-old:messengers=1,workers=8", Some(3)), &mut |_, _| {}).unwrap();
    assert_eq!(found.repetitions, 3);
    let found = compare(&tiny(4), &mut |_, _| {}).unwrap();
    let window = found.window.unwrap();
    assert_eq!((found.repetitions, window.warmup_ms, window.measure_ms), (4, 1.0, 1.0));
    assert_eq!(window.effort, None);
}

/// 0 would be the best latency of all.
#[test]
fn without_a_wake_up_there_is_no_latency() {
    let mut spec = tiny(2);
    spec.workload = "sysbench:threads=1".to_string();
    let found = compare(&spec, &mut |_, _| {}).unwrap();
    let row = found.scores.iter().find(|row| row.name == "wake-up latency");
    assert!(row.unwrap().arms.iter().all(|arm| arm.mean.is_nan()));
    assert!(!row.unwrap().occurred());
}

/// The jobs change neither the windows nor the number of repetitions.
#[test]
fn what_is_settled_does_not_depend_on_the_jobs() {
    let mut spec = until("tbench:n=20", None);
    let found = compare(&spec, &mut |_, _| {}).unwrap();
    spec.jobs = 1;
    assert_eq!(compare(&spec, &mut |_, _| {}).unwrap(), found);
}

/// A workload that takes its own time is measured once, to its end.
#[test]
fn a_workload_that_is_judged_by_its_time_has_no_window() {
    let found = compare(&until("hackbench:groups=1,loops=20", Some(2)), &mut |_, _| {}).unwrap();
    assert_eq!(found.window, None);
    assert!(found.scores[0].arms.iter().all(|arm| arm.mean > 0.0 && arm.transient_ms.is_none()));
}

/// On its way to the steady state a comparison by hand says until when its scores changed: 128 tasks
/// that all begin on one CPU of 16 and are spread while they are measured.
#[test]
fn a_transient_in_a_window_by_hand_is_said() {
    let mut spec = tiny(3);
    spec.workload = "tbench:n=16".to_string();
    spec.machine = Arc::new(perch_machine::resolve("kunpeng920").unwrap());
    spec.topology = Topology::new(&spec.machine);
    spec.arms = vec![Arm::parse("off:cluster=off", Era::V7_2).unwrap()];
    spec.plan = Plan::ByHand(Effort { repetitions: 3, warmup_ns: 0, measure_ns: 100_000_000 });
    let found = compare(&spec, &mut |_, _| {}).unwrap();
    let until_ms = found.scores[0].arms[0].transient_ms;
    assert!(until_ms.is_some_and(|ms| ms > 0.0 && ms <= 50.0), "{until_ms:?}");
}
