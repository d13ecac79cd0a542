// SPDX-License-Identifier: GPL-2.0-or-later
//! The choices of pushing and pulling (`push_rt_task`, `pull_rt_task` of 6.12).
//!
//! The kernel may have to release its queue's lock to take another's, and then looks again, up to
//! three times; a sequential simulation looks once. Kernels that ask by interrupt
//! for pushes do not pull (round.rs).

use crate::class::RunQueues;
use crate::core::Life;
use crate::id::TaskId;

/// The next step of a CPU that pushes its waiting tasks away.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Push {
    /// There is none.
    Stops,
    /// The CPU itself should pick again: a task of a higher priority than the running one was
    /// enqueued meanwhile.
    Reschedules,
    /// This task goes to this CPU.
    To(TaskId, usize),
}

impl RunQueues {
    /// Returns the next step of `cpu`, which pushes the tasks that wait on it to CPUs that run a lower
    /// priority, the highest task first. `here` is the CPU that executes this.
    pub(crate) fn next_push(&mut self, cpu: usize, here: usize) -> Push {
        let Some((priority, task)) = self.cpus[cpu].rt.pushable.first() else {
            return Push::Stops;
        };
        if priority > self.running_priority(cpu) {
            return Push::Reschedules;
        }
        match self.find_lowest(task, here) {
            Some(to) if to != cpu && self.cpus[to].rt.runnable.highest() < priority => {
                Push::To(task, to)
            }
            _ => Push::Stops,
        }
    }

    /// Returns the next task that `cpu` pulls, which goes from a real-time task to a lower priority,
    /// and its CPU. The CPU takes, from each overloaded CPU from the number `from` on, a task of a
    /// higher priority than its own tasks have, unless that task is about to preempt the running one
    /// of its own CPU.
    pub(crate) fn next_pull(&mut self, cpu: usize, mut from: usize) -> Option<(TaskId, usize)> {
        while let Some(source) = self.next_overloaded(from) {
            from = source + 1;
            let own = self.cpus[cpu].rt.runnable.highest();
            let waiting = &self.cpus[source].rt.pushable;
            if source == cpu || waiting.highest() <= own {
                continue;
            }
            let first = waiting.iter().find(|&(_, task)| self.may_run_on(task, cpu));
            let running = self.running_priority(source);
            let comes = first.filter(|&(priority, _)| priority > own && priority <= running);
            if let Some((_, task)) = comes {
                return Some((task, source));
            }
        }
        None
    }

    /// Dequeues a waiting task, which goes to another CPU.
    pub(crate) fn detach_rt(&mut self, task: TaskId) {
        self.dequeue_rt(self.tasks[task].cpu, task);
        self.tasks[task].life = Life::Waking;
    }
}
