// SPDX-License-Identifier: GPL-2.0-only
//! Who runs next, and what changes hands with the CPU: the fair class's part.

use perch_policy::Mode;

use super::era::FairRules;
use super::task::Life;
use super::{Kernel, cfs, eevdf};

impl Kernel<'_> {
    /// Takes the next task off the timeline to run it. Delayed sleepers whose turn comes have
    /// paid what they owed and leave.
    pub(super) fn pick(&mut self, cpu: usize) -> Option<u32> {
        self.pick_skipping(cpu, None)
    }

    /// As [`Kernel::pick`]; CFS passes over `skip` for one that is not much further behind.
    fn pick_skipping(&mut self, cpu: usize, skip: Option<u32>) -> Option<u32> {
        loop {
            let fair = &self.cpus[cpu].fair;
            let picked = match self.rules.fair {
                FairRules::Cfs {
                    wakeup_granularity_ns,
                    ..
                } => cfs::pick(fair, skip, wakeup_granularity_ns),
                FairRules::Eevdf { .. } => eevdf::pick(fair, None),
            }?;
            if self.tasks[picked as usize].se.delayed {
                self.touch_queue(cpu);
                self.touch_task(picked);
                self.remove_waiting(cpu, picked);
                self.count_wish(cpu, picked, -1);
                self.leave_queue(cpu, picked);
                self.publish(cpu);
                continue;
            }
            self.touch_queue(cpu);
            self.touch_task(picked);
            self.remove_waiting(cpu, picked);
            return Some(picked);
        }
    }

    /// The picked task becomes the running one.
    pub(super) fn set_current(&mut self, cpu: usize, task: u32) {
        if self.is_rt(task) {
            return self.set_current_rt(cpu, task);
        }
        let t = &mut self.tasks[task as usize];
        t.life = Life::Running;
        t.se.exec_start_ns = self.now;
        t.se.picked_sum_ns = t.se.sum_exec_ns;
        self.turns += 1;
        t.se.turn = self.turns;
        let c = &mut self.cpus[cpu];
        c.current = Some(task);
        c.need_resched = false;
        // Equal slices: protected until the deadline.
        c.fair.protected_v = t.se.deadline;
        if c.fair.last_buddy == Some(task) {
            c.fair.last_buddy = None;
        }
        if c.fair.next_buddy == Some(task) {
            c.fair.next_buddy = None;
        }
        if self.caches.mode != Mode::Off {
            self.starts_running(task);
        }
        self.publish(cpu);
        self.note_misfit(cpu);
    }

    /// The running task goes back to the waiting ones.
    pub(super) fn put_current(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        if self.cpus[cpu].rt.running {
            return self.put_current_rt(cpu, task);
        }
        self.update_current(cpu);
        self.touch_queue(cpu);
        self.touch_task(task);
        self.cpus[cpu].current = None;
        if self.caches.mode != Mode::Off {
            self.stops_running(cpu, task);
        }
        self.tasks[task as usize].life = Life::Queued;
        self.insert_waiting(cpu, task);
    }

    /// The running task, not alone on its CPU, yields: who runs next. It may be the same one.
    ///
    /// CFS (`yield_task_fair` of 5.6): it loses what the buddies gave it and is passed over once.
    /// EEVDF, 7.2: while it is owed time it forfeits the rest of its slice; otherwise it only
    /// lets the queue choose again. 6.12: its deadline moves on by a slice.
    pub(super) fn pick_after_yield(&mut self, cpu: usize, task: u32) -> u32 {
        self.update_current(cpu);
        let c = &mut self.cpus[cpu];
        let se = &mut self.tasks[task as usize].se;
        let skip = match self.rules.fair {
            FairRules::Cfs { .. } => {
                let fair = &mut c.fair;
                for buddy in [&mut fair.next_buddy, &mut fair.last_buddy] {
                    buddy.take_if(|b| *b == task);
                }
                Some(task)
            }
            FairRules::Eevdf { slice_ns } if !self.rules.yield_forfeits => {
                se.deadline += cfs::virtual_ns(slice_ns, se.weight);
                None
            }
            FairRules::Eevdf { slice_ns } => {
                if eevdf::eligible(&c.fair, Some(se), se.vruntime) {
                    se.vruntime = se.deadline;
                    eevdf::renew_deadline(se, slice_ns);
                }
                None
            }
        };
        self.put_current(cpu);
        let next = self.pick_skipping(cpu, skip);
        next.expect("a queue with a runnable task in it")
    }
}
