// SPDX-License-Identifier: GPL-2.0-or-later
//! Virtual machines: no guest has more time than its vCPUs, and one with a machine of its own
//! achieves as much as bare metal. `invariants.rs` holds P13 and P14 for them.

use std::sync::Arc;

use perch_machine::{Hardware, Machine};
use perch_policy::{CpuMask, Era, Mode};
use perch_sim::workload::{GuestSpec, Op, Site, TaskSpec, Workload};
use perch_sim::{Dist, Outcome, Scenario};

use crate::common::{
    self, ERAS, MS, checked, machine, policy, scenario, summary, traced, workload,
};

/// Workloads that a guest may run, each of them small.
const INSIDE: [&str; 9] = [
    "sysbench:threads=5,locks=2,yields=20",
    "sysbench:threads=3,locks=1,yields=7",
    "pipe:pairs=3",
    "tbench:n=3,gap_us=100,startup_us=300",
    "volano:rooms=2,users=4",
    "tbench-net:n=4",
    "httperf:at_once=3,calls=20,burst=5,think_us=300",
    "trade:users=6,think_us=500",
    "runsleep:tasks=6,run_us=300,sleep_us=700",
];

fn vm(machine: &Machine, keys: &str, inside: &str) -> Workload {
    workload(machine, &format!("vm:{keys},inside={inside}"))
}

/// A run of a virtual machine on a machine of the library.
fn run(name: &str, keys: &str, inside: &str, ms: [u64; 2]) -> Outcome {
    let machine = machine(name);
    let load = vm(&machine, keys, inside);
    let scenario = scenario(&machine, Era::V6_5, load, ms);
    scenario.run().expect("a scenario that runs")
}

/// A small host with a small guest.
pub fn drawn(seed: u64) -> Scenario {
    let pick = |n: usize, shift: u32| (seed >> shift) as usize % n;
    let shapes = [(1, 1, 1), (1, 2, 1), (1, 2, 2), (2, 2, 2)];
    let (packages, cores, threads) = shapes[pick(4, 0)];
    let machine = Machine::regular("drawn", packages, 1, 1, 0, cores, threads);
    let machine = Arc::new(machine.expect("a machine"));
    let keys = format!(
        "vcpus={},hogs={}x{},guest_hz={},exit_ns={}{}",
        1 + pick(6, 2),
        pick(3, 5),
        1 + pick(3, 7),
        [100, 250, 1000][pick(3, 9)],
        [1, 1000, 20_000][pick(3, 11)],
        ["", ",shares=2", ",shares=8192"][pick(3, 22)]
    );
    let load = vm(&machine, &keys, INSIDE[pick(INSIDE.len(), 13)]);
    let mut scenario = scenario(&machine, ERAS[pick(ERAS.len(), 17)], load, [0, 15]);
    scenario.seed = seed;
    scenario.policy = policy(ERAS[pick(ERAS.len(), 17)], [Mode::Off, Mode::Perch][pick(2, 20)]);
    scenario
}

/// Every workload that a guest can have makes progress in one, on a crowded host too.
#[test]
fn all_of_them_get_on() {
    for inside in INSIDE {
        for keys in ["vcpus=4", "vcpus=4,hogs=1x6,where=cpu0-3"] {
            let outcome = run("x5570", keys, inside, [50, 300]);
            assert!(outcome.metrics.counted > 10, "{keys} {inside}");
        }
    }
}

/// A guest that computes has its vCPUs' time, less its ticks: three exits' worth a millisecond.
#[test]
fn a_guest_alone_computes_as_bare_metal_does() {
    let inside = "sysbench:threads=4,yields=100,background_ms=0";
    let ours = |outcome: Outcome| outcome.scores[0].value;
    let machine = machine("x5570");
    let bare = ours(common::run(&machine, Era::V6_5, inside, [50, 500]));
    let vm = ours(run("x5570", "vcpus=8", inside, [50, 500]));
    let spec = GuestSpec::default();
    let ticks = (spec.hz as u64 * (2 * spec.exit_ns + spec.tick_ns)) as f64 / 1e9;
    // The guest's four threads may share a core with a halted vCPU's tick: SMT, not overhead.
    assert!(
        (1.0 - 3.0 * ticks - 0.01..1.01).contains(&(vm / bare)),
        "{vm} in a guest, {bare} bare: {}",
        vm / bare
    );
}

/// Two tasks of a guest that wake each other on vCPUs of their own: a round trip is dearer by the
/// exits that it waits for.
#[test]
fn a_wakeup_between_vcpus_costs_its_exits() {
    let trips = |exit_ns: u64| {
        let keys = format!("vcpus=2,exit_ns={exit_ns},guest_hz=100,where=cpu0-1");
        let machine = machine("x5570");
        let mut load = vm(&machine, &keys, "pipe:pairs=1");
        // Each task stays on a vCPU of its own.
        for (vcpu, task) in load.tasks.iter_mut().take(2).enumerate() {
            task.allowed = Arc::new(CpuMask::of(2, [vcpu]));
        }
        let outcome = scenario(&machine, Era::V6_5, load, [10, 200]).run();
        let outcome = outcome.expect("a run");
        let trips = outcome.metrics.counted as f64;
        let interrupts = outcome.metrics.guest.interrupts as f64;
        assert!((interrupts / trips - 2.0).abs() < 0.01, "{interrupts} {trips}");
        200e6 / trips
    };
    // A way: two exits of the vCPU that takes the interrupt. The sender works its own off when
    // that is on its way, and the taker's halt is past by then.
    let dearer = trips(11_000) - trips(1000);
    let expected = 2.0 * 2.0 * 10_000.0;
    assert!((dearer / expected - 1.0).abs() < 0.2, "{dearer} of {expected}");
}

/// Two vCPUs on one CPU: while the task that holds the mutex is preempted with its vCPU, no task
/// gets on.
#[test]
fn a_preempted_vcpu_takes_its_lock_along() {
    let spec = "sysbench:threads=2,locks=1,yields=1000,yield_ns=100000,loop_ns=1000";
    let one = run("x5570", "vcpus=1,where=cpu0", spec, [50, 1000]);
    let two = run("x5570", "vcpus=2,where=cpu0", spec, [50, 1000]);
    let apart = run("x5570", "vcpus=2,where=cpu0-1", spec, [50, 1000]);
    // Tasks do all of the work with the mutex held, so a second CPU is no help; it saves a little
    // that a yield on a vCPU of its own switches to no other task.
    for (name, outcome) in [("shared", &two), ("apart", &apart)] {
        let ratio = outcome.metrics.counted as f64 / one.metrics.counted as f64;
        assert!((0.5..1.2).contains(&ratio), "{name}: {ratio}");
    }
}

/// vCPUs that always compute are tasks like others to the host: beside as many hogs, half each.
#[test]
fn a_guests_time_is_its_vcpus_share() {
    let machine = machine("x5570");
    let inside = "runsleep:tasks=4,run_us=1000,sleep_us=0";
    let load = vm(&machine, "vcpus=4,hogs=1x4,where=cpu0-3", inside);
    for era in ERAS {
        let scenario = scenario(&machine, era, load.clone(), [500, 4000]);
        let outcome = scenario.run().expect("a run");
        let ran = outcome.metrics.guest.ran_ns + outcome.metrics.guest.overhead_ns;
        let busy = outcome.metrics.busy_ns as f64;
        let share = outcome.metrics.counted as f64 * MS as f64 / busy;
        assert!((0.42..0.53).contains(&share), "{era}: {share}, {ran}");
    }
}

/// With the source's shares a guest that always computes has 8192 of 9216 of a CPU beside a group
/// of hogs, however many these are; and 8192 of 12288 beside four groups.
#[test]
fn hogs_leave_a_guest_its_share() {
    let machine = machine("x5570");
    let inside = "runsleep:tasks=1,run_us=1000,sleep_us=0";
    for (hogs, expected) in [("1x1", 8.0 / 9.0), ("1x4", 8.0 / 9.0), ("4x1", 8.0 / 12.0)] {
        let keys = format!("vcpus=1,shares=8192,hogs={hogs},where=cpu0");
        let load = vm(&machine, &keys, inside);
        for era in ERAS {
            let scenario = scenario(&machine, era, load.clone(), [1000, 4000]);
            let metrics = scenario.run().expect("a run").metrics;
            let share = (metrics.counted * MS) as f64 / metrics.busy_ns as f64;
            assert!((share / expected - 1.0).abs() < 0.03, "{era} {hogs}: {share}, not {expected}");
        }
    }
}

/// A task of a guest sleeps to the next tick after its time, and no longer on an idle host.
#[test]
fn timers_come_with_the_guests_ticks() {
    let machine = machine("x5570");
    let inside = "runsleep:tasks=1,run_us=10,sleep_us=2500";
    for (hz, period_us) in [(1000, 1000.0), (100, 10_000.0)] {
        let load = vm(&machine, &format!("vcpus=1,guest_hz={hz}"), inside);
        let outcome = scenario(&machine, Era::V6_5, load, [100, 2000]).run();
        let each_us = 2e6 / outcome.expect("a run").metrics.counted as f64;
        let ticks = each_us / period_us;
        assert!((2500.0..2600.0 + 2.0 * period_us).contains(&each_us), "{hz}: {each_us}");
        assert!(hz == 1000 || (ticks - 1.0).abs() < 0.02, "{hz}: {each_us}");
    }
}

/// One vCPU, two tasks, one message each way: the whole trace, and what came of it.
#[test]
fn a_tiny_guest() {
    let mut tiny = Machine::clone(&machine("x5570"));
    tiny.hardware = Hardware::default();
    let tiny = Arc::new(tiny);
    let mut text = String::new();
    for era in [Era::V6_5, Era::V7_2] {
        let load = vm(&tiny, "vcpus=2,hogs=1x1,where=cpu0-1", "pipe:pairs=1");
        let (trace, outcome) = traced(&scenario(&tiny, era, load, [0, 6]));
        let guest = &outcome.metrics.guest;
        text += &format!("{era}\n{}{guest:?}\n", summary(&trace, &outcome, |_, _| true));
    }
    insta::assert_snapshot!(text);
}

/// Two virtual machines beside each other: each one's tasks stay in it.
#[test]
fn two_guests_do_not_mix() {
    let machine = machine("x5570");
    let mut both = vm(&machine, "vcpus=2", "pipe:pairs=1");
    let other = both.clone();
    let (tasks, channels) = (both.tasks.len(), both.channels as u32);
    both.tasks.extend(other.tasks.into_iter().map(|task| {
        let moved = |op: &Op| match *op {
            Op::Vcpu { vcpu, .. } => Op::Vcpu { guest: 1, vcpu },
            Op::Receive { channel } => Op::Receive { channel: channel + channels },
            Op::Send { channel, lines, sync } => {
                Op::Send { channel: channel + channels, lines, sync }
            }
            op => op,
        };
        TaskSpec {
            program: task.program.iter().map(moved).collect(),
            site: match task.site {
                Site::Guest(_) => Site::Guest(1),
                site => site,
            },
            space: None,
            start: Some(Dist::Const(MS)),
            ..task
        }
    }));
    both.guests.push(both.guests[0]);
    both.channels *= 2;
    assert_eq!(both.tasks.len(), 2 * tasks);
    let scenario = scenario(&machine, Era::V7_2, both, [0, 30]);
    let metrics = checked(&scenario, 0, |_| {});
    assert!(metrics.counted > 100);
}

/// A vCPU that is preempted with the lock of a queue has others spin for it; where it always has a CPU
/// nobody does, nor in a guest whose kernel sends its interrupts without locks.
#[test]
fn vcpus_spin_for_a_lock_whose_holder_is_preempted() {
    let inside = "sysbench:threads=4";
    let run = |keys: &str| run("x5570", keys, inside, [200, 800]).metrics;
    let spins = run("vcpus=4,where=cpu0-1");
    let asks = run("vcpus=4,where=cpu0-1,spins=0");
    let (spun, ran) = (spins.guest.spun_ns, spins.guest.vcpus_ran_ns);
    assert!((ran / 20..ran / 2).contains(&spun), "{spun} of {ran}");
    assert_eq!(asks.guest.spun_ns, 0);
    assert!(spins.counted * 20 < asks.counted * 19, "{} against {}", spins.counted, asks.counted);
    assert_eq!(run("vcpus=4,where=cpu0-7").guest.spun_ns, 0);
}
