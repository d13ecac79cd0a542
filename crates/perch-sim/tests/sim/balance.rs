// SPDX-License-Identifier: GPL-2.0-or-later
//! Balancing spreads what wake-ups piled up, over cores before threads, and respects affinity.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;
use perch_sim::workload::{Op, TaskSpec};
use perch_sim::{Dist, Glimpse};
use proptest::prelude::*;

use crate::common::{
    ERAS, MS, checked, config, hog, last, machine, of_tasks, piled_up, scenario, task,
};
use crate::load::Dice;

fn most_on_a_cpu(now: &Glimpse) -> u32 {
    now.cpus.iter().map(|c| c.nr).max().unwrap_or(0)
}

#[test]
fn as_many_hogs_as_cpus_have_one_each_within_a_second() {
    for name in ["jacobsville", "x5570"] {
        let machine = machine(name);
        let n = machine.cpus.len();
        for era in ERAS {
            let tasks = piled_up(&machine, n, 1, &(0..n).collect::<Vec<_>>());
            let load = of_tasks(&machine, "hogs piled up", tasks, 0);
            let mut spread = None;
            let mut worst = 0;
            checked(&scenario(&machine, era, load, [0, 2000]), 10 * MS, |now| {
                worst = worst.max(most_on_a_cpu(now));
                let busy = now.cpus.iter().filter(|c| c.nr == 1).count();
                if busy == n && now.now_ns > 20 * MS {
                    spread.get_or_insert(now.now_ns);
                }
            });
            let at = spread.unwrap_or_else(|| panic!("{name} {era}: never spread"));
            assert!(at < 1000 * MS, "{name} {era}: spread after {} ms", at / MS);
            assert!(worst > 1, "{name} {era}: the start was not bad");
        }
    }
}

#[test]
fn hogs_spread_over_cores_before_siblings() {
    for name in ["x5570", "epyc7543"] {
        let machine = machine(name);
        let all = 0..machine.cpus.len();
        // One node: across nodes only active balance moves running tasks, one in a second.
        let node: Vec<usize> = all.filter(|&c| machine.cpus[c].node == 0).collect();
        let cores = machine.cores() / machine.nodes();
        for era in ERAS {
            for n in [cores / 4, cores / 2, cores] {
                let load = of_tasks(&machine, "hogs piled up", piled_up(&machine, n, 0, &node), 0);
                let (last, _) = last(&scenario(&machine, era, load, [0, 1500]), 50 * MS);
                let mut per_core = vec![0; machine.cores()];
                for (cpu, c) in last.cpus.iter().enumerate() {
                    per_core[machine.cpus[cpu].core as usize] += c.nr;
                }
                let shared = per_core.iter().filter(|&&nr| nr > 1).count();
                assert_eq!(shared, 0, "{name} {era}, {n} hogs: {per_core:?}");
            }
        }
    }
}

/// Hogs of random affinities.
fn pinned_hogs(seed: u64) -> (Arc<Machine>, Vec<TaskSpec>) {
    let mut dice = Dice::new(seed);
    let machine = Arc::new(Machine::random(seed, 32));
    let n = machine.cpus.len() as u64;
    let tasks = (0..dice.range(1, 2 * n)).map(|_| {
        let (a, b) = (dice.range(0, n - 1), dice.range(0, n - 1));
        task(&machine, hog(), a.min(b) as usize..a.max(b) as usize + 1)
    });
    let tasks = tasks.collect();
    (machine, tasks)
}

proptest! {
    #![proptest_config(config(24))]

    /// The walk over the books holds every task's CPU against its affinity; here much moves.
    #[test]
    fn balance_never_moves_a_task_where_it_may_not_run(seed in any::<u64>().no_shrink()) {
        let (machine, tasks) = pinned_hogs(seed);
        let load = of_tasks(&machine, "pinned hogs", tasks, 0);
        checked(&scenario(&machine, ERAS[(seed % 3) as usize], load, [0, 100]), MS / 2, |_| {});
    }
}

#[test]
fn a_pinned_crowd_does_not_hide_a_task_that_may_move() {
    let machine = machine("jacobsville");
    for era in ERAS {
        let mut tasks: Vec<TaskSpec> = (0..4).map(|_| task(&machine, hog(), 0..1)).collect();
        tasks.push(task(&machine, hog(), 0..2));
        let load = of_tasks(&machine, "4 pinned hogs, one that may move", tasks, 0);
        let mut cpu = 0;
        checked(&scenario(&machine, era, load, [0, 1000]), 10 * MS, |now| cpu = now.tasks[4].cpu);
        assert_eq!(cpu, 1, "{era}");
    }
}

/// Three tasks on two CPUs run and sleep for some milliseconds each. One that wakes up while both are
/// busy waits; the first CPU that runs out of tasks takes it, and does not count the task that has
/// just left. 7.2 tries few such passes, by lot.
#[test]
fn a_newly_idle_cpu_takes_the_second_of_two_tasks() {
    let machine = machine("kunpeng920");
    for era in ERAS.into_iter().filter(|&era| era != Era::V7_2) {
        let sleeper = vec![
            Op::Run(Dist::Exponential(2 * MS)),
            Op::Sleep(Dist::Exponential(2 * MS)),
            Op::Jump(0),
        ];
        let tasks = (0..3).map(|_| task(&machine, sleeper.clone(), 0..2));
        let load = of_tasks(&machine, "three sleepers", tasks.collect(), 0);
        let (mut all, mut wasted) = (0, 0);
        checked(&scenario(&machine, era, load, [100, 3900]), MS / 5, |now| {
            let idle = now.cpus[..2].iter().any(|cpu| cpu.idle);
            let waits = now.cpus[..2].iter().any(|cpu| cpu.nr > 1);
            all += 1;
            wasted += usize::from(idle && waits);
        });
        // The tasks that ran less than half a millisecond ago stay: they are cache-hot.
        assert!(20 * wasted < all, "{era}: {wasted} of {all}");
    }
}
