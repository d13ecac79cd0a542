// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class over random machines, loads, affinities and priorities: P16, and that no
//! layout of the counters changes a decision.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{CpuMask, Layout, Mode, Modes, Policy};
use perch_sim::workload::{Class, Workload};
use perch_sim::{Glimpse, Scenario};
use proptest::prelude::*;

use crate::common::{ERAS, checked, config, traced};
use crate::load::{Dice, random};

/// A random load of which most tasks are real-time, of few or many priorities.
pub fn random_rt(seed: u64, max_cpus: usize) -> Scenario {
    let mut scenario = random(seed, max_cpus);
    let mut dice = Dice::new(seed ^ 0x5f3a);
    let most = [3, 99][dice.range(0, 1) as usize];
    let fair = dice.range(0, 40);
    for task in &mut scenario.workload.tasks {
        let priority = dice.range(1, most) as u8;
        task.class = match dice.range(1, 100) {
            n if n <= fair => Class::Fair,
            n if n % 3 == 0 => Class::Rr(priority),
            _ => Class::Fifo(priority),
        };
    }
    scenario.policy = Policy::new(ERAS[dice.range(0, 3) as usize], scenario.policy.modes());
    scenario
}

/// The same, with one affinity for all.
fn together(seed: u64, max_cpus: usize) -> Scenario {
    let mut scenario = random_rt(seed, max_cpus);
    let n = scenario.machine.cpus.len();
    let mut dice = Dice::new(seed ^ 0x77);
    let percent = dice.range(20, 100);
    let mut cpus: Vec<usize> = (0..n).filter(|_| dice.range(1, 100) <= percent).collect();
    cpus.push(dice.range(0, n as u64 - 1) as usize);
    let allowed = Arc::new(CpuMask::of(n, cpus));
    for task in &mut scenario.workload.tasks {
        task.allowed = allowed.clone();
    }
    scenario
}

/// The same machine without figures for contended lines: all accesses cost the same, nothing.
fn without_contention(mut scenario: Scenario) -> Scenario {
    let mut machine = Machine::clone(&scenario.machine);
    machine.hardware.contended_line = None;
    scenario.machine = Arc::new(machine);
    scenario
}

fn counted_by(scenario: &Scenario, overload: Mode, layout: Option<Layout>) -> Scenario {
    let modes = Modes { overload, layout, ..scenario.policy.modes() };
    Scenario { policy: Policy::new(scenario.policy.era(), modes), ..scenario.clone() }
}

/// P16: no task waits while a CPU that it may use runs a task of lower priority. With `first`, only
/// tasks count that a CPU would push or pull next.
fn passed_over(now: &Glimpse, workload: &Workload, first: bool) -> Option<String> {
    let running =
        |cpu: usize| now.cpus[cpu].current.map_or(0, |t| now.tasks[t.0 as usize].priority);
    for (id, task) in now.tasks.iter().enumerate() {
        if !task.waiting || task.priority == 0 || first && !task.first {
            continue;
        }
        let allowed = &workload.tasks[id].allowed;
        let lower = allowed.iter().find(|&cpu| running(cpu) < task.priority);
        if let Some(cpu) = lower {
            return Some(format!(
                "at {} ns task {id} of priority {} waits on cpu {}, while cpu {cpu} runs {}",
                now.now_ns,
                task.priority,
                task.cpu,
                running(cpu)
            ));
        }
    }
    None
}

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn no_layout_of_the_counters_changes_a_decision(seed in any::<u64>().no_shrink()) {
        let scenario = without_contention(random_rt(seed, 64));
        let (trace, outcome) = traced(&counted_by(&scenario, Mode::Off, None));
        for mode in [Mode::Posted, Mode::Upstream, Mode::Perch] {
            for layout in [None].into_iter().chain(Layout::ALL.map(Some)) {
                let (other, counted) = traced(&counted_by(&scenario, mode, layout));
                let differs = trace.lines().zip(other.lines()).find(|(a, b)| a != b);
                prop_assert!(trace == other, "{mode} {layout:?}: {differs:?}");
                let mut metrics = counted.metrics;
                metrics.rt.counter_loads = outcome.metrics.rt.counter_loads;
                prop_assert_eq!(&outcome.metrics, &metrics);
                prop_assert_eq!(&outcome.scores, &counted.scores);
            }
        }
    }
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn the_highest_priorities_run_where_all_may_run_alike(seed in any::<u64>().no_shrink()) {
        let scenario = together(seed, 16);
        checked(&scenario, 0, |now| {
            if now.settled {
                assert_eq!(passed_over(now, &scenario.workload, false), None, "seed {seed}");
            }
        });
    }
}

#[test]
fn who_would_be_pushed_next_is_hardly_ever_passed_over() {
    let (mut settled, mut missed) = (0, 0);
    for seed in 0..60 {
        let scenario = random_rt(seed * 7919, 24);
        checked(&scenario, 20_000, |now| {
            if now.settled {
                settled += 1;
                missed += u64::from(passed_over(now, &scenario.workload, true).is_some());
            }
        });
    }
    println!("P16: {missed} of {settled} settled moments");
    assert!(settled > 5000 && missed * 1000 < settled, "{missed} of {settled}");
}
