// SPDX-License-Identifier: GPL-2.0-or-later
//! The world of a run: this machine, the virtual machines on it, and the other computers that it
//! talks to. Only this room knows where a task is, and so where each event goes.

mod check;
mod event;
mod guest;
mod here;
mod net;
mod outside;
mod place;
mod simulation;
mod state;

use std::sync::Arc;

use perch_policy::CpuMask;
use perch_sched::{Life, MaskId, NewGroup, NewTask, Programs, Sched, Setup};
use perch_workload::{Class, TaskSpec};

use crate::SimError;
use crate::id::{Id, TaskId};
use crate::program::Stop;

use place::Place;
pub use simulation::Simulation;
use state::World;

impl World {
    /// The task, on this machine or on a vCPU that runs there, leaves its CPU to sleep, or because it
    /// has ended.
    #[inline]
    fn leave(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId, life: Life) {
        match (self.guests.place(task), life) {
            (Place::Guest(_), _) => self.leave_vcpu(sched, cpu, task, life),
            (_, Life::Dead) => sched.exit(self, cpu, task),
            _ => sched.block(self, cpu, task),
        }
    }

    /// The task yields. Returns whether it left its CPU.
    fn give_way(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId) -> bool {
        match self.guests.place(task) {
            Place::Guest(_) => self.give_way_in_guest(sched, cpu),
            _ => sched.give_way(self, cpu, task),
        }
    }

    /// The task has set its affinity. Returns whether it left its CPU.
    #[inline(never)]
    fn bind(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId, mask: MaskId) -> bool {
        let allowed = sched.mask(mask);
        let to = self.programs.draw_cpu_to_go_to(task, cpu, allowed);
        if sched.bind(self, cpu, task, mask, to) {
            return true;
        }
        if sched.need_resched(cpu) {
            sched.preempt(self, cpu);
            return true;
        }
        false
    }
}

impl Programs for World {
    fn advance(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId) {
        loop {
            let (programs, mut here) = self.here(sched);
            let left = match programs.run(&mut here, cpu, task) {
                Stop::Works => return self.work(sched, cpu),
                Stop::Sleeps => return self.leave(sched, cpu, task, Life::Asleep),
                Stop::Preempted => return sched.preempt(self, cpu),
                Stop::Streaks => return,
                Stop::Counts => {
                    self.start_counting(sched);
                    false
                }
                Stop::Yields => self.give_way(sched, cpu, task),
                Stop::Execs => {
                    self.guests.place(task) == Place::Host && sched.exec(self, cpu, task)
                }
                Stop::Binds(mask) => self.bind(sched, cpu, task, MaskId(mask)),
                Stop::Joins(group) => return sched.join(self, cpu, task, group),
                Stop::Exits => return self.leave(sched, cpu, task, Life::Dead),
                Stop::Carries => return self.run_vcpu(sched, cpu, task),
                Stop::Vhost(guest) => self.vhost(sched, cpu, task, guest),
            };
            if left {
                return;
            }
        }
    }

    fn enter(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId) {
        self.enter_vcpu(sched, cpu, task);
    }
}

/// A scheduler for the tasks of a workload.
///
/// # Errors
/// When the scheduler from outside cannot be loaded.
pub fn scheduler<'a>(scenario: &crate::Scenario) -> Result<Sched<'a>, SimError> {
    let workload = &scenario.workload;
    let mut masks: Vec<Arc<CpuMask>> = workload.masks.clone();
    let tasks = workload.tasks.iter().map(|spec| {
        // Tasks that share an affinity follow one another, or share one and the same mask.
        let known = masks.iter().rposition(|m| Arc::ptr_eq(m, &spec.allowed));
        let affinity = known.unwrap_or_else(|| {
            masks.push(spec.allowed.clone());
            masks.len() - 1
        });
        new_task(spec, MaskId::of(affinity))
    });
    let tasks: Vec<NewTask> = tasks.collect();
    let groups: Vec<NewGroup> = (workload.groups.iter())
        .map(|spec| NewGroup { parent: spec.parent, shares: spec.shares })
        .collect();
    let spaces: Vec<_> = (workload.spaces.iter())
        .map(|space| perch_sched::hardware::SharedSet {
            kib: space.shared_kib,
            written_pct: space.written_pct,
        })
        .collect();
    let setup = Setup {
        machine: &scenario.machine,
        topology: &scenario.topology,
        policy: scenario.policy,
        hz: scenario.hz,
        rearranged: scenario.root_domain == crate::RootDomain::Rearranged,
        tasks: &tasks,
        groups: &groups,
        masks: &masks,
        spaces: &spaces,
        seed: scenario.seed,
    };
    let mut sched = Sched::new(&setup);
    if let Some(outside) = &scenario.scheduler {
        outside
            .make(&scenario.machine, &scenario.topology)
            .and_then(|class| sched.load(class, &setup))
            .map_err(|why| SimError::Scheduler { words: outside.words().to_string(), why })?;
    }
    Ok(sched)
}

fn new_task(spec: &TaskSpec, affinity: MaskId) -> NewTask {
    let (priority, slices) = match spec.class {
        Class::Fair => (0, false),
        Class::Fifo(priority) => (priority, false),
        Class::Rr(priority) => (priority, true),
    };
    NewTask {
        nice: spec.nice,
        priority,
        slices,
        uclamp: spec.uclamp,
        affinity,
        footprint: spec.footprint,
        space: spec.space,
        group: spec.group,
        carries: matches!(Place::of(spec), Place::Vcpu(..)),
    }
}
