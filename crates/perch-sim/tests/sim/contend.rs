// SPDX-License-Identifier: GPL-2.0-or-later
//! Time in the kernel, and its contended cache lines, seen from outside.

use std::sync::Arc;

use perch_machine::{ContendedLine, Machine};
use perch_sim::workload::{Op, TaskSpec};
use perch_sim::{Dist, Line, Metrics, RootDomain, Scenario};
use proptest::prelude::*;

use crate::common::{ERAS, MS, config, machine, of_tasks, scenario, task, traced};
use crate::load::random;
use perch_policy::Era;

/// The machine with contended lines like these.
fn with(machine: &Machine, contended_line: Option<ContendedLine>) -> Arc<Machine> {
    let mut machine = machine.clone();
    machine.hardware.contended_line = contended_line;
    Arc::new(machine)
}

/// A random scenario whose machine models contended lines.
pub fn with_lines(seed: u64, max_cpus: usize) -> Scenario {
    let scenario = random(seed, max_cpus);
    Scenario { machine: with(&scenario.machine, Some(ContendedLine::default())), ..scenario }
}

fn metrics(scenario: &Scenario) -> Metrics {
    scenario.run().expect("a scenario that runs").metrics
}

fn flag_line(metrics: &Metrics) -> Option<Line> {
    let c2c = metrics.c2c.as_ref().expect("lines are modelled");
    c2c.lines.iter().find(|l| l.name == "root_domain+0x0").cloned()
}

/// Two tasks on each of these CPUs that sleep and run: each wake-up onto a busy CPU reads the
/// root domain's flag.
fn crowds(machine: &Arc<Machine>, cpus: impl Iterator<Item = usize>) -> Vec<TaskSpec> {
    let nap = vec![Op::Run(Dist::Const(70_000)), Op::Sleep(Dist::Const(30_000)), Op::Jump(0)];
    let two = |cpu| [0, 1].map(|_| task(machine, nap.clone(), cpu..cpu + 1));
    cpus.flat_map(two).collect()
}

/// The kernel's share is the time that a task spends in system calls and in its switches, neither
/// more nor less.
#[test]
fn kernel_time_is_what_was_charged() {
    let kunpeng = machine("kunpeng920");
    let call = vec![
        Op::Run(Dist::Const(30_000)),
        Op::Kernel(Dist::Const(10_000)),
        Op::Sleep(Dist::Const(20_000)),
        Op::Jump(0),
    ];
    for era in ERAS {
        let load = of_tasks(&kunpeng, "calls", vec![task(&kunpeng, call.clone(), 3..4)], 0);
        let found = metrics(&scenario(&kunpeng, era, load, [10, 400]));
        let switches = found.context_switches * u64::from(kunpeng.hardware.context_switch_ns);
        let calls = found.context_switches * 10_000;
        let off = found.kernel_ns.abs_diff(switches + calls);
        assert!(off <= 12_000, "{era}: {} for {}", found.kernel_ns, switches + calls);
        let share = found.kernel_pct();
        assert!((share - 100.0 * 11.0 / 41.0).abs() < 1.0, "{era}: {share} %");
    }
}

#[test]
fn without_system_calls_or_switches_the_kernel_has_no_share() {
    let kunpeng = machine("kunpeng920");
    let hog = vec![Op::Run(Dist::Const(1_000_000)), Op::Jump(0)];
    let load = of_tasks(&kunpeng, "hog", vec![task(&kunpeng, hog, 3..4)], 0);
    let found = metrics(&scenario(&kunpeng, ERAS[0], load, [10, 100]));
    assert_eq!(found.kernel_ns, 0);
    assert!(found.busy_ns >= 99 * MS);
}

/// A flag that is set once is everybody's to read: no CPU meets another's modified copy, and each
/// reading takes a nanosecond of the kernel's time. (EEVDF leaves such sleepers on their queue:
/// nothing comes, nothing is read.)
#[test]
fn readers_of_a_constant_flag_never_meet() {
    let kunpeng = with(&machine("kunpeng920"), Some(ContendedLine::default()));
    let tasks = crowds(&kunpeng, 0..kunpeng.cpus.len());
    let load = of_tasks(&kunpeng, "crowds", tasks, 0);
    for era in [Era::V5_5, Era::V6_5] {
        let found = metrics(&scenario(&kunpeng, era, load.clone(), [40, 60]));
        let line = flag_line(&found).expect("the flag is read");
        assert!(line.total.loads > 100_000, "{era}: {:?}", line.total);
        assert_eq!((line.total.hitm(), line.total.stores), (0, 0), "{era}");
        let switches = found.context_switches * u64::from(kunpeng.hardware.context_switch_ns);
        assert_eq!(found.kernel_ns, switches + line.total.loads, "{era}");
    }
}

/// Returns whether the work of a tick takes the slowest CPU longer than a tick, with its sibling busy.
/// Such a CPU is charged ever more and never comes to work all of it off; a random machine may have one.
fn ticks_outlast_themselves(scenario: &Scenario) -> bool {
    let hardware = &scenario.machine.hardware;
    let capacities = scenario.machine.cpus.iter().map(|cpu| u64::from(cpu.capacity));
    let slowest = capacities.min().unwrap_or(1024) * u64::from(hardware.smt_throughput_1024) / 2048;
    let tick_ns = 1_000_000_000 / u64::from(scenario.hz);
    u64::from(hardware.tick_ns) * 1024 / slowest.max(1) > tick_ns
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn kernel_time_is_bounded_by_what_runs(seed: u64) {
        let scenario = with_lines(seed, 12);
        let plain = metrics(&scenario);
        prop_assert!(plain.c2c.is_some());
        // Tasks may owe work at the end that they have not yet run off, and work that they owed at
        // the beginning is not counted.
        let slack = MS * scenario.machine.cpus.len() as u64;
        prop_assert!(
            plain.kernel_ns <= 2 * plain.busy_ns + slack || ticks_outlast_themselves(&scenario),
            "{} ns in the kernel of {} busy", plain.kernel_ns, plain.busy_ns
        );
    }

    /// Where no lines are modelled, how the root domain is laid out makes no difference.
    #[test]
    fn layouts_cost_nothing_without_figures(seed: u64) {
        let mut scenario = random(seed, 12);
        scenario.machine = with(&scenario.machine, None);
        let (stock, outcome) = traced(&scenario);
        prop_assert!(outcome.metrics.c2c.is_none());
        scenario.root_domain = RootDomain::Rearranged;
        let (rearranged, other) = traced(&scenario);
        prop_assert_eq!(stock, rearranged);
        prop_assert_eq!(outcome, other);
    }
}
