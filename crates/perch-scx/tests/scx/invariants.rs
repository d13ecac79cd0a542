// SPDX-License-Identifier: GPL-2.0-or-later
//! No task is lost, no wake-up is lost, and no CPU idles for long beside a task that it could run,
//! also where claims are lost, interrupts are late, callbacks are interrupted and affinities change.

use std::sync::Arc;

use perch_engine::Random;
use perch_policy::{CpuMask, Era, Modes, Policy};
use perch_scx::{live, live_with_faults};
use perch_sim::workload::{Class, Op};
use perch_sim::{Dist, Scenario};
use proptest::prelude::*;

use crate::common::{MS, checked, config, traced};
use crate::load::random;

/// The settings of a seed; the first are the defaults.
fn settings(seed: u64) -> &'static str {
    ["", "cluster=off,cache=off,capacity=off", "cluster=posted,cache=posted", "cache=upstream"]
        [(seed >> 33) as usize % 4]
}

/// The seed's machine and load under perch.
fn scenario(seed: u64, max_cpus: usize, faults: bool) -> Scenario {
    let set = settings(seed);
    let scheduler = match faults {
        true => live_with_faults(set, seed),
        false => live(set),
    };
    Scenario {
        policy: Policy::new(Era::V7_2, Modes::default()),
        scheduler: Some(scheduler.expect("settings that exist")),
        ..random(seed, max_cpus)
    }
}

/// The same, with some tasks that change their affinity again and again, and some that the real-time
/// class runs, so that they take CPUs from the program.
fn disturbed(seed: u64) -> Scenario {
    let mut scenario = scenario(seed, 12, true);
    let nr_cpus = scenario.machine.cpus.len();
    let mut random = Random::new(seed, 7);
    let load = &mut scenario.workload;
    for _ in 0..3 {
        let one = random.below(nr_cpus as u64) as usize;
        let some = (0..nr_cpus).filter(|_| random.below(3) == 0);
        let mask = CpuMask::of(nr_cpus, some.chain([one]));
        load.masks.push(Arc::new(mask));
    }
    for task in &mut load.tasks {
        match (random.below(4), task.program.split_last()) {
            (0, Some((&Op::Jump(to), turn))) => {
                let [first, second] = [0; 2].map(|_| Op::Bind { mask: random.below(3) as u32 });
                let work = Op::Run(Dist::Exponential(50_000));
                task.program = [turn, &[first, work, second, Op::Jump(to)]].concat().into();
            }
            (1, Some(_)) if random.below(4) == 0 => task.class = Class::Fifo(10),
            _ => {}
        }
    }
    scenario
}

/// How long a task may wait while a CPU idles that it may use: a few turns of the timer, which comes
/// every 4 ms, and what a fault adds.
const IDLE_MOST_NS: u64 = 16 * MS;

/// The longest time for which a task waited, and at every look some CPU idled that it may use.
fn waiting_beside_idle(scenario: &Scenario) -> u64 {
    // By task: since when, and how long it had run by then.
    let (mut since, mut longest) = (vec![None; scenario.workload.tasks.len()], 0);
    checked(scenario, MS / 2, |now| {
        let tasks = now.tasks.iter().zip(&scenario.workload.tasks);
        for ((task, spec), since) in tasks.zip(&mut since) {
            let idle = |cpu: usize| now.cpus[cpu].current.is_none();
            if !task.waiting || !spec.allowed.iter().any(idle) {
                *since = None;
                continue;
            }
            let (from_ns, _) = *since
                .filter(|&(_, ran_ns)| ran_ns == task.ran_ns)
                .get_or_insert((now.now_ns, task.ran_ns));
            *since = Some((from_ns, task.ran_ns));
            longest = longest.max(now.now_ns - from_ns);
        }
    });
    longest
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn the_books_hold_after_every_event(seed in any::<u64>().no_shrink()) {
        checked(&scenario(seed, 12, false), 0, |_| {});
    }

    #[test]
    fn the_books_hold_with_faults(seed in any::<u64>().no_shrink()) {
        checked(&scenario(seed, 12, true), 0, |_| {});
    }

    #[test]
    fn the_books_hold_where_affinities_and_higher_classes_come_between(
        seed in any::<u64>().no_shrink(),
    ) {
        checked(&disturbed(seed), 0, |_| {});
    }

    #[test]
    fn no_task_waits_for_long_beside_an_idle_cpu(seed in any::<u64>().no_shrink()) {
        let scenario = Scenario { measure_ns: 60 * MS, ..scenario(seed, 24, seed & 1 != 0) };
        let longest = waiting_beside_idle(&scenario);
        prop_assert!(longest <= IDLE_MOST_NS, "{} ns", longest);
    }

    #[test]
    fn the_same_seed_makes_the_same_trace(seed in any::<u64>().no_shrink()) {
        let scenario = scenario(seed, 24, true);
        prop_assert_eq!(traced(&scenario), traced(&scenario));
    }
}
