// SPDX-License-Identifier: GPL-2.0-or-later
//! Random operations on the queues of four CPUs: the books agree after each, and the same seed does
//! the same.

use perch_engine::Random;

use super::*;

in_every_era! {
    books_agree_after_random_operations
    books_of_groups_agree_after_random_operations
    same_seed_runs_the_same
}

const CPUS: u64 = 4;

/// Does `steps` random operations on eight tasks, and returns each one's run time.
fn operate(era: Era, groups: &[NewGroup], seed: u64, steps: u32) -> Vec<u64> {
    let tasks: Vec<NewTask> = (0..8)
        .map(|n: usize| NewTask {
            nice: [0, 5, -5, 0][n % 4],
            priority: [0, 0, 0, 20][n % 4],
            group: (!groups.is_empty() && n % 4 == 1).then_some(n % groups.len().max(1)),
            ..FAIR
        })
        .collect();
    let mut q = Queues::with(era, &tasks, groups, false);
    let mut random = Random::new(seed, 0);
    for task in 0..8 {
        q.fork(random.below(CPUS) as usize, task);
    }
    for _ in 0..steps {
        let cpu = random.below(CPUS) as usize;
        q.pass(random.below(3 * MS));
        match (q.rq.current(cpu), random.below(5)) {
            (None, _) => {
                q.go_on(cpu);
            }
            (Some(_), 0) => {
                q.sleep(cpu);
            }
            (Some(_), 1) => {
                q.preempt(cpu);
            }
            (Some(task), 2) => {
                q.rq.tick(cpu, task);
            }
            _ => {
                let sleeper = (0..8).find(|&t| q.rq.task(TaskId(t)).life() == Life::Asleep);
                match sleeper {
                    Some(task) if q.rq.is_delayed(TaskId(task)) || random.below(2) == 0 => {
                        q.wake(task);
                    }
                    Some(task) => q.wake_on(random.below(CPUS) as usize, task),
                    None => {}
                }
            }
        }
        q.effects();
        q.check();
    }
    (0..8).map(|t| q.rq.run_time(TaskId(t)).sum_ns).collect()
}

fn books_agree_after_random_operations(era: Era) {
    for seed in 0..10 {
        operate(era, &[], seed, 300);
    }
}

fn books_of_groups_agree_after_random_operations(era: Era) {
    let outer = NewGroup { parent: None, shares: 1024 };
    let inner = NewGroup { parent: Some(0), shares: 512 };
    for seed in 0..10 {
        operate(era, &[outer, inner], seed, 300);
    }
}

fn same_seed_runs_the_same(era: Era) {
    let ran = operate(era, &[], 7, 500);
    assert!(ran.iter().sum::<u64>() > 0);
    assert_eq!(ran, operate(era, &[], 7, 500));
    assert_ne!(ran, operate(era, &[], 8, 500));
}
