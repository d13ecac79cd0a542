// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's work on its own account takes its time, where a machine says how much.

use std::sync::Arc;

use perch_machine::Machine;
use perch_sim::workload::{Op, TaskSpec};
use perch_sim::{Dist, Metrics};

use crate::common::{ERAS, hog, machine, of_tasks, scenario, task};

fn with_ticks(name: &str, tick_ns: u32) -> Arc<Machine> {
    let mut machine = Machine::clone(&machine(name));
    machine.hardware.tick_ns = tick_ns;
    Arc::new(machine)
}

fn run(machine: &Arc<Machine>, tasks: Vec<TaskSpec>, channels: usize, hz: u32) -> Metrics {
    let load = of_tasks(machine, "ticks", tasks, channels);
    let mut scenario = scenario(machine, ERAS[0], load, [50, 1000]);
    scenario.hz = hz;
    scenario.run().expect("a scenario that runs").metrics
}

#[test]
fn a_tick_takes_its_time_from_who_runs() {
    for (tick_ns, hz) in [(20_000, 1000), (20_000, 250), (100_000, 100)] {
        let counted = |tick_ns| {
            let machine = with_ticks("kunpeng920", tick_ns);
            run(&machine, vec![task(&machine, hog(), 0..1)], 0, hz).counted as f64
        };
        let (free, ticking) = (counted(0), counted(tick_ns));
        let due = 1.0 - f64::from(tick_ns) * f64::from(hz) / 1e9;
        // A burst more or less at either end.
        let slack = 2.0 / free;
        let is = ticking / free;
        assert!((is - due).abs() <= slack + 1e-3, "{tick_ns} ns at {hz} Hz: {is}, due {due}");
    }
}

/// A waker and a sleeper on CPUs of their own: what is measured is the sleeper's wake-ups.
fn latencies(tick_ns: u32, sleep_ns: u64) -> Metrics {
    let machine = with_ticks("kunpeng920", tick_ns);
    let waker = vec![
        Op::Run(Dist::Const(2000)),
        Op::Send { channel: 0, lines: 1, sync: false },
        // Odd, so that wake-ups fall on every moment between two ticks.
        Op::Run(Dist::Const(sleep_ns)),
        Op::Jump(0),
    ];
    let sleeper =
        vec![Op::Receive { channel: 0 }, Op::Run(Dist::Const(5000)), Op::Count, Op::Jump(0)];
    let tasks = vec![task(&machine, sleeper, 1..2), task(&machine, waker, 0..1)];
    run(&machine, tasks, 1, 1000)
}

#[test]
fn a_wake_up_waits_for_the_tick_of_an_idle_cpu() {
    let tick_ns = 50_000;
    // Awake again within a tick's time: the idle CPU keeps its tick.
    let (free, ticking) = (latencies(0, 100_003), latencies(tick_ns, 100_003));
    assert_eq!(free.max_latency_ns, free.latency_ns / free.latencies, "all alike");
    let longer = ticking.max_latency_ns - free.max_latency_ns;
    assert!(longer > 0 && longer <= u64::from(tick_ns), "{longer} ns more");
    // Asleep for several ticks' time: it is stopped.
    let (free, ticking) = (latencies(0, 5_000_003), latencies(tick_ns, 5_000_003));
    assert_eq!(ticking.max_latency_ns, free.max_latency_ns);
}
