// SPDX-License-Identifier: GPL-2.0-or-later
//! The books of the real-time class (P10 of docs/testing.md#properties, and what P13 and P16 rest
//! on).

use crate::class::RunQueues;
use crate::core::Life;
use crate::{Violation, hold};

impl RunQueues {
    /// Checks that every queue holds its tasks in order, with the pushable ones among the pushable
    /// tasks, and that the root domain knows the CPUs' highest priorities and which CPUs are
    /// overloaded. `told` says of a CPU whether an interrupt is on its way there.
    pub(crate) fn check_rt(&self, told: &dyn Fn(usize) -> bool) -> Result<(), Violation> {
        for (cpu, c) in self.cpus.iter().enumerate() {
            self.check_rt_queue(cpu, told).map_err(|why| why.within(format_args!("cpu {cpu}")))?;
            let running = c.current.is_some_and(|task| self.is_rt(task));
            hold!(
                c.rt.running == running,
                "cpu {cpu} runs {:?}, real-time: {}",
                c.current,
                c.rt.running
            );
        }
        match &self.rt {
            Some(_) => self.check_rt_domain(),
            None => Ok(()),
        }
    }

    fn check_rt_queue(&self, cpu: usize, told: &dyn Fn(usize) -> bool) -> Result<(), Violation> {
        let c = &self.cpus[cpu];
        let counted = if c.rt.limit.is_throttled() { 0 } else { c.rt.runnable.len() };
        hold!(c.rt.nr() == counted, "{} real-time tasks count, and should {counted}", c.rt.nr());
        let mut last = u8::MAX;
        for (priority, task) in c.rt.runnable.iter() {
            let t = &self.tasks[task];
            hold!(
                t.cpu == cpu && t.rt.priority == priority && priority > 0,
                "holds task {task} of cpu {} at {priority}, its priority is {}",
                t.cpu,
                t.rt.priority
            );
            hold!(last >= priority, "task {task} is out of order");
            last = priority;
            let pushable = c.rt.pushable.iter().filter(|&(p, t)| (p, t) == (priority, task));
            let several = self.affinities[t.affinity].weight() > 1;
            let wanted = usize::from(several && t.life == Life::Queued);
            hold!(pushable.count() == wanted, "task {task} is {:?}, pushable: {wanted}", t.life);
        }
        let alone = c.rt.pushable.iter().find(|&(_, task)| {
            let t = &self.tasks[task];
            t.cpu != cpu || t.life != Life::Queued
        });
        hold!(alone.is_none(), "pushable, yet not here: {alone:?}");
        // A task waits behind one of a lower priority only while a reschedule is pending or an
        // interrupt is on its way.
        if let Some((priority, task)) = c.rt.runnable.first() {
            let current = c.current.map_or(0, |t| self.tasks[t].rt.priority);
            let atomic = c.current.is_some_and(|t| self.tasks[t].atomic);
            let asked = told(cpu) || c.need_resched || atomic;
            hold!(
                priority <= current || asked || self.pick_rt(cpu).is_none(),
                "task {task} of priority {priority} waits behind {current}"
            );
        }
        Ok(())
    }
}
