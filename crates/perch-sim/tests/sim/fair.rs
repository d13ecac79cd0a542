// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class is fair: short waits for tasks that sleep, and no starvation. `groups.rs` has
//! shares by weight.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;
use perch_sim::workload::{Op, TaskSpec};
use perch_sim::{Dist, Scenario};

use crate::common::{ERAS, MS, checked, ends, hog, machine, of_tasks, scenario, shares, task};

fn box24() -> Arc<Machine> {
    machine("jacobsville")
}

fn hogs(machine: &Machine, nices: &[i8], cpus: std::ops::Range<usize>) -> Vec<TaskSpec> {
    let one = |&nice| TaskSpec { nice, ..task(machine, hog(), cpus.clone()) };
    nices.iter().map(one).collect()
}

fn run_hogs(era: Era, nices: &[i8], ms: [u64; 2]) -> Scenario {
    let machine = box24();
    let load = of_tasks(&machine, "hogs on cpu0", hogs(&machine, nices, 0..1), 0);
    scenario(&machine, era, load, ms)
}

/// A sleeper among three hogs of one CPU: the longest wait of its wake-ups.
fn longest_wait_ns(era: Era) -> (u64, u64) {
    let machine = box24();
    let mut tasks = hogs(&machine, &[0, 0, 0], 0..1);
    let (work, rest) = (Op::Run(Dist::Const(200_000)), Op::Sleep(Dist::around(15 * MS, 30)));
    tasks.push(task(&machine, vec![work, rest, Op::Count, Op::Jump(0)], 0..1));
    let load = of_tasks(&machine, "3 hogs and a sleeper on cpu0", tasks, 0);
    let scenario = scenario(&machine, era, load, [200, 4000]);
    let metrics = checked(&scenario, MS, |_| {});
    assert!(metrics.counted > 150, "{era}: the sleeper got through {} times", metrics.counted);
    (metrics.max_latency_ns, metrics.latency_ns / metrics.latencies)
}

#[test]
fn a_sleeper_preempts_who_has_run_ahead() {
    for (era, most_ns, mean_ns) in [
        // In CFS its credit is three times the wakeup granularity: it waits for a switch, no
        // longer.
        (Era::V6_5, MS, MS / 10),
        // In EEVDF a hog beyond the mean has no protection. One that is owed time keeps its slice
        // of 2.8 ms, which ticks 4 ms apart stretch, and each of the others may come before the
        // sleeper's deadline.
        (Era::V7_2, 12 * MS, MS),
    ] {
        let (longest, mean) = longest_wait_ns(era);
        assert!(longest < most_ns && mean < mean_ns, "{era}: longest {longest}, mean {mean}");
    }
}

/// The mean and the longest time that a task waits which a task on another CPU of the LLC wakes on a
/// hog's CPU.
fn wait_beside_a_hog_ns(era: Era) -> (u64, u64) {
    let machine = machine("kunpeng920");
    let send = Op::Send { channel: 0, lines: 1, sync: false };
    let sender = vec![Op::Sleep(Dist::Const(9 * MS + MS / 7)), send, Op::Jump(0)];
    let receiver =
        vec![Op::Receive { channel: 0 }, Op::Run(Dist::Const(MS / 10)), Op::Count, Op::Jump(0)];
    let tasks = vec![
        task(&machine, hog(), 1..2),
        task(&machine, receiver, 1..2),
        task(&machine, sender, 0..1),
    ];
    let load = of_tasks(&machine, "a hog and a wakee on cpu1", tasks, 1);
    let metrics = checked(&scenario(&machine, era, load, [100, 4000]), MS, |_| {});
    assert!(metrics.counted > 300, "{era}: {} times", metrics.counted);
    let mean = metrics.latency_ns / metrics.latencies;
    (mean, metrics.max_latency_ns)
}

#[test]
fn only_a_lazy_kernel_lets_a_wakee_wait_for_the_tick() {
    let (mean, _) = wait_beside_a_hog_ns(Era::V6_15);
    assert!(mean < MS / 10, "6.15: mean {mean}");
    // No interrupt tells the hog's CPU, and a hog makes no system call.
    let (mean, longest) = wait_beside_a_hog_ns(Era::V7_2);
    assert!(mean > MS / 2 && longest < 4 * MS + MS / 10, "7.2: mean {mean}, longest {longest}");
}

#[test]
fn nobody_starves_among_64_hogs() {
    for era in ERAS {
        // Hogs forked at once start up to a latency apart: two seconds until that is levelled.
        let scenario = run_hogs(era, &[0; 64], [2000, 2000]);
        let (mut ran, mut since, mut longest) = (vec![0; 64], vec![0; 64], 0);
        checked(&scenario, MS, |now| {
            for (i, t) in now.tasks.iter().enumerate() {
                if t.ran_ns != ran[i] {
                    (ran[i], since[i]) = (t.ran_ns, now.now_ns);
                }
                if now.now_ns > 2000 * MS {
                    longest = longest.max(now.now_ns - since[i]);
                }
            }
        });
        // One round: 64 turns, none longer than a slice rounded up to ticks 4 ms apart.
        assert!(longest < 64 * 8 * MS, "{era}: {} ms", longest / MS);
    }
}

#[test]
fn eevdf_lags_stay_within_what_a_task_keeps() {
    // A slice is 2.8 ms, a tick 1 ms.
    lags_stay_within(Era::V7_2, 2_800_000 + 1_000_000);
    lags_stay_within(Era::V6_15, 2 * 2_800_000);
}

fn lags_stay_within(era: Era, limit_ns: i64) {
    let mut scenario = run_hogs(era, &[0, 0, 0, 0, 0, 3, -3], [500, 2000]);
    scenario.hz = 1000;
    let (mut low, mut high) = (0, 0);
    checked(&scenario, MS / 2, |now| {
        for t in now.tasks.iter().filter(|t| now.now_ns > 500 * MS && (t.running || t.waiting)) {
            low = low.min(t.lag_ns);
            high = high.max(t.lag_ns);
        }
    });
    // As virtual time of the lightest: 1024/526.
    let limit = limit_ns * 1024 / 526;
    assert!(-limit <= low && high <= limit, "{era}: lags from {low} to {high}, limit {limit}");
    assert!(
        low < -500_000 && high > 500_000,
        "{era}: lags from {low} to {high}: nothing was tested"
    );
}

#[test]
fn a_task_that_ends_gives_its_share_to_the_others() {
    for era in ERAS {
        let machine = box24();
        let mut tasks = hogs(&machine, &[0, 0], 0..1);
        tasks.push(task(&machine, vec![Op::Run(Dist::Const(30 * MS)), Op::Exit], 0..1));
        let load = of_tasks(&machine, "2 hogs, one task that ends", tasks, 0);
        let (first, last) = ends(&scenario(&machine, era, load, [300, 1000]), MS);
        let shares = shares(&first, &last);
        assert!((shares[0] - 0.5).abs() < 0.02 && shares[2] == 0.0, "{era}: {shares:?}");
    }
}
