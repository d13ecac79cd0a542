// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the run queues alone: no machine runs, and no event is simulated. A test passes time,
//! does operations, and looks at the queues.

mod fair;
mod group;
mod random;
mod rt;

use std::sync::Arc;

use perch_machine::{Footprint, Machine};
use perch_policy::{CpuMask, Era, GroupId, Host, Modes, Policy, Topology};

use super::{Effect, New, RunQueues, Task};
use crate::core::Life;
use crate::era::EraRules;
use crate::id::{IdVec, MaskId, TaskId};
use crate::setup::{NewGroup, NewTask, Setup};

/// Makes a test per era out of each function, which takes the era.
macro_rules! in_every_era {
    ($($name:ident)*) => {
        $(
            mod $name {
                use perch_policy::Era;

                #[test]
                fn in_3_4() {
                    super::$name(Era::V3_4);
                }

                #[test]
                fn in_5_5() {
                    super::$name(Era::V5_5);
                }

                #[test]
                fn in_6_5() {
                    super::$name(Era::V6_5);
                }

                #[test]
                fn in_6_15() {
                    super::$name(Era::V6_15);
                }

                #[test]
                fn in_7_2() {
                    super::$name(Era::V7_2);
                }
            }
        )*
    };
}
pub(super) use in_every_era;

const MS: u64 = 1_000_000;

/// A task of the fair class at nice 0 that may use every CPU.
const FAIR: NewTask = NewTask {
    nice: 0,
    priority: 0,
    slices: false,
    uclamp: (0, 1024),
    affinity: MaskId(0),
    footprint: Footprint { lines: 0, common: 0 },
    space: None,
    group: None,
    carries: false,
};

fn nice(nice: i8) -> NewTask {
    NewTask { nice, ..FAIR }
}

/// A FIFO task that may use every CPU.
fn fifo(priority: u8) -> NewTask {
    NewTask { priority, ..FAIR }
}

fn is_eevdf(era: Era) -> bool {
    matches!(era, Era::V6_15 | Era::V7_2)
}

/// The run queues of a Jacobsville, 24 equal CPUs.
struct Queues {
    rq: RunQueues,
    host: Host,
}

impl Queues {
    fn new(era: Era, tasks: &[NewTask]) -> Queues {
        Queues::with(era, tasks, &[], false)
    }

    fn with(era: Era, tasks: &[NewTask], groups: &[NewGroup], has_lines: bool) -> Queues {
        let machine: Machine = perch_machine::library::load("jacobsville").expect("in the library");
        let topology = Topology::new(&machine);
        let n = topology.nr_cpus();
        // The first affinity is every CPU; each further one is one CPU, from 0 on.
        let one = |cpu: usize| {
            let mut mask = CpuMask::empty(n);
            mask.insert(cpu);
            Arc::new(mask)
        };
        let masks: Vec<Arc<CpuMask>> =
            std::iter::once(Arc::new(CpuMask::full(n))).chain((0..n).map(one)).collect();
        let setup = Setup {
            machine: &machine,
            topology: &topology,
            policy: Policy::new(era, Modes::default()),
            hz: 250,
            rearranged: false,
            tasks,
            groups,
            masks: &masks,
            spaces: &[],
            seed: 1,
        };
        let mut host = Host::new(topology.clone());
        let ids: Vec<GroupId> = groups.iter().map(|_| host.add_group()).collect();
        let list: IdVec<TaskId, Task> =
            (0..).map(TaskId).zip(tasks).map(|(id, spec)| Task::new(id, spec)).collect();
        let of = New { setup: &setup, rules: EraRules::new(era, n), groups: &ids, has_lines };
        let mut rq = RunQueues::new(&of, list);
        // Times of 0 mean that something never happened.
        rq.pass_to(1000 * MS);
        for cpu in 0..n {
            rq.begin_idle(cpu, rq.now());
        }
        Queues { rq, host }
    }

    fn pass(&mut self, ns: u64) {
        self.rq.pass_to(self.rq.now() + ns);
    }

    /// Forks a task onto a CPU.
    fn fork(&mut self, cpu: usize, task: u32) {
        self.rq.born(TaskId(task), cpu);
        self.rq.assign(TaskId(task), cpu);
        self.rq.enqueue(cpu, TaskId(task), false);
    }

    /// Wakes a sleeping task on the CPU where it fell asleep.
    fn wake(&mut self, task: u32) {
        let task = TaskId(task);
        let cpu = self.rq.task(task).cpu();
        self.rq.update_current(cpu);
        match self.rq.is_delayed(task) {
            true => self.rq.requeue_delayed(cpu, task),
            false => self.rq.enqueue(cpu, task, false),
        }
    }

    /// Wakes a sleeping task, which is not delayed, on another CPU.
    fn wake_on(&mut self, cpu: usize, task: u32) {
        self.rq.migrate(TaskId(task));
        self.rq.assign(TaskId(task), cpu);
        self.rq.enqueue(cpu, TaskId(task), false);
    }

    /// Lets a CPU that runs nothing pick and switch. Returns the number of its task.
    fn schedule(&mut self, cpu: usize) -> Option<u32> {
        self.rq.clear_resched(cpu);
        let next = self.rq.pick(cpu)?;
        if self.rq.idleness(cpu).is_idle() {
            self.rq.end_idle(cpu);
        }
        self.rq.set_next(cpu, next);
        Some(next.0)
    }

    /// Puts the running task back, and lets the CPU pick again.
    fn preempt(&mut self, cpu: usize) -> Option<u32> {
        let current = self.rq.current(cpu).expect("a running task");
        if self.rq.goes_on(cpu, current) {
            return Some(current.0);
        }
        self.rq.put(cpu, current);
        self.schedule(cpu)
    }

    /// Puts the running task to sleep and lets the CPU pick again.
    fn sleep(&mut self, cpu: usize) -> Option<u32> {
        let current = self.rq.current(cpu).expect("a running task");
        self.rq.leave(cpu, current, Life::Asleep);
        self.go_on(cpu)
    }

    /// Ends the running task and lets the CPU pick again.
    fn end(&mut self, cpu: usize) -> Option<u32> {
        let current = self.rq.current(cpu).expect("a running task");
        self.rq.leave(cpu, current, Life::Dead);
        self.go_on(cpu)
    }

    fn go_on(&mut self, cpu: usize) -> Option<u32> {
        let next = self.schedule(cpu);
        if next.is_none() {
            self.rq.begin_idle(cpu, self.rq.now());
        }
        next
    }

    /// Lets the running task of a CPU and whoever follows it run for a number of ticks.
    fn ticks(&mut self, cpu: usize, ticks: u64) {
        self.ticks_on(&[cpu], ticks);
    }

    /// See [`Queues::ticks`], for several CPUs at once.
    fn ticks_on(&mut self, cpus: &[usize], ticks: u64) {
        for _ in 0..ticks {
            self.pass(self.rq.tick_ns());
            if self.rq.ends_rt_period() {
                for cpu in 0..24 {
                    self.rq.renew_rt(cpu);
                }
            }
            for &cpu in cpus {
                let Some(current) = self.rq.current(cpu) else {
                    continue;
                };
                self.rq.tick(cpu, current);
                if self.rq.need_resched(cpu) {
                    self.preempt(cpu);
                }
            }
        }
    }

    /// Returns for how many milliseconds a task has run.
    fn ran_ms(&self, task: u32) -> u64 {
        self.rq.run_time(TaskId(task)).sum_ns / MS
    }

    fn effects(&mut self) -> Vec<Effect> {
        self.rq.take_effects()
    }

    /// Checks the books of both classes.
    fn check(&mut self) {
        for (group, cpu, any) in self.rq.take_told() {
            self.host.set_queued(group, cpu, any);
        }
        self.rq.check_queues(&self.host).expect("queues");
        self.rq.check_averages().expect("averages");
        self.rq.check_rt(&|_| true).expect("real-time queues");
    }
}
