// SPDX-License-Identifier: GPL-2.0-only
//! The fair class: what CFS and EEVDF have in common, and which of them answers.

use perch_policy::Mode;

use super::balance::Sums;
use super::era::FairRules;
use super::pelt::Activity;
use super::queue::Waiting;
use super::task::Life;
use super::{Kernel, cfs, eevdf};
use crate::hardware::Symbol;

/// util_est ignores changes smaller than about 1 % of a CPU.
const EST_MARGIN: u32 = 10;

impl Kernel<'_> {
    /// Brings a queue's averages up to date; to be called before anything in it changes.
    pub(super) fn touch_queue(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let now = c.pelt.read(self.now);
        if !c.fair.average.is_due(now) {
            return;
        }
        let did = Activity {
            weight: c.fair.weight as u32,
            runnable: c.fair.nr - c.fair.nr_delayed,
            running: c.fair_current().is_some(),
        };
        c.fair.average.update(now, did);
    }

    /// Brings a task's averages up to date; to be called before its life changes.
    pub(super) fn touch_task(&mut self, task: u32) {
        let t = &mut self.tasks[task as usize];
        let now = self.cpus[t.cpu as usize].pelt.read(self.now);
        if !t.se.average.is_due(now) {
            return;
        }
        let on_queue = t.on_queue();
        let did = Activity {
            weight: if on_queue { t.se.weight } else { 0 },
            runnable: (on_queue && !t.se.delayed).into(),
            running: t.life == Life::Running,
        };
        t.se.average.update(now, did);
    }

    /// Lets the policy see a queue as it is now.
    pub(super) fn publish(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        let curr_load = c
            .fair_current()
            .map_or(0, |t| self.tasks[t as usize].se.average.load);
        let top = self.host.topology().capacity(cpu);
        let state = self.host.cpu_mut(cpu);
        let before = Sums::of(state);
        let nr = c.nr();
        state.nr_running = nr;
        state.nr_delayed = c.fair.nr_delayed;
        state.load = c.fair.average.load;
        state.runnable = c.fair.average.runnable;
        state.util = c.fair.average.util.max(c.fair.est).min(top);
        state.curr_load = curr_load;
        let after = Sums::of(state);
        if after != before {
            self.groups.change(cpu, &before, &after);
        }
        let (word, bit) = (cpu / 64, 1 << (cpu % 64));
        if nr > 1 {
            self.crowded[word] |= bit;
        } else {
            self.crowded[word] &= !bit;
        }
        if self.caches.mode == Mode::Perch {
            self.sum_util(cpu);
        }
    }

    /// Accounts the running task's time.
    pub(super) fn update_current(&mut self, cpu: usize) {
        if self.cpus[cpu].rt.running {
            return self.update_current_rt(cpu);
        }
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else {
            return;
        };
        let se = &mut self.tasks[task as usize].se;
        let delta = self.now.saturating_sub(se.exec_start_ns);
        if delta == 0 {
            return;
        }
        se.exec_start_ns = self.now;
        se.sum_exec_ns += delta;
        se.vruntime += cfs::virtual_ns(delta, se.weight);
        match self.rules.fair {
            FairRules::Cfs { .. } => cfs::update_floor(&mut c.fair, Some(se.vruntime)),
            FairRules::Eevdf { slice_ns } => {
                eevdf::update_floor(&mut c.fair, Some(se));
                if eevdf::renew_deadline(se, slice_ns) && c.fair.nr > 1 {
                    c.need_resched = true;
                }
            }
        }
    }

    /// The running task's entity, for EEVDF's sums.
    fn current_entity(&self, cpu: usize) -> Option<super::task::Entity> {
        let current = self.cpus[cpu].fair_current();
        current.map(|t| self.tasks[t as usize].se)
    }

    /// Puts a task on a queue. `moved`: the balancer brings it, and in CFS it keeps its place
    /// relative to the queue's floor.
    pub(super) fn enqueue(&mut self, cpu: usize, task: u32, moved: bool) {
        if self.is_rt(task) {
            return self.enqueue_rt(cpu, task);
        }
        self.end_streak(cpu);
        self.update_current(cpu);
        self.touch_queue(cpu);
        let current = self.current_entity(cpu);
        let c = &mut self.cpus[cpu];
        let t = &mut self.tasks[task as usize];
        debug_assert!(!t.on_queue(), "task {task} enqueued twice");
        if t.se.attached {
            // It slept here: its share of the queue's averages decayed with them.
            t.se.average.update(c.pelt.read(self.now), Activity::NONE);
        } else {
            t.se.average.align(&c.fair.average);
            c.fair.average.attach(&t.se.average);
            t.se.attached = true;
        }
        let new = std::mem::take(&mut t.se.new);
        match self.rules.fair {
            FairRules::Cfs {
                latency_ns,
                min_granularity_ns,
                ..
            } => {
                if std::mem::take(&mut t.se.relative) {
                    t.se.vruntime += c.fair.min_vruntime;
                }
                if !moved {
                    cfs::place(&c.fair, &mut t.se, latency_ns, min_granularity_ns, new);
                }
            }
            FairRules::Eevdf { slice_ns } => {
                eevdf::place(&c.fair, current.as_ref(), &mut t.se, slice_ns, new);
            }
        }
        t.cpu = cpu as u32;
        t.life = Life::Queued;
        self.turns += 1;
        t.se.turn = self.turns;
        c.fair.nr += 1;
        c.fair.weight += u64::from(t.se.weight);
        c.fair.est += t.se.est();
        if c.nr() == 2 {
            self.set_overload(self.acting, Symbol::EnqueueTaskFair, true);
        }
        self.insert_waiting(cpu, task);
        if self.caches.mode == Mode::Upstream {
            self.count_wish(cpu, task, 1);
        }
        self.host.set_idle(cpu, false);
        self.publish(cpu);
    }

    /// Adds a task to the timeline and EEVDF's sums.
    pub(super) fn insert_waiting(&mut self, cpu: usize, task: u32) {
        let se = &self.tasks[task as usize].se;
        let fair = &mut self.cpus[cpu].fair;
        let key = match self.rules.fair {
            FairRules::Cfs { .. } => se.vruntime,
            FairRules::Eevdf { .. } => se.deadline,
        };
        fair.timeline.insert(Waiting {
            key,
            vruntime: se.vruntime,
            weight: se.weight,
            task,
        });
        fair.waiting_weight += u64::from(se.weight);
        fair.weighted_v += i64::from(se.weight) * (se.vruntime - fair.min_vruntime);
    }

    /// Takes a task out of the timeline and EEVDF's sums.
    pub(super) fn remove_waiting(&mut self, cpu: usize, task: u32) {
        let fair = &mut self.cpus[cpu].fair;
        let w = fair.timeline.remove(task);
        fair.waiting_weight -= u64::from(w.weight);
        fair.weighted_v -= i64::from(w.weight) * (w.vruntime - fair.min_vruntime);
    }

    /// Takes a task off its queue because it sleeps. Returns false when EEVDF keeps it queued
    /// until its debt is paid.
    pub(super) fn dequeue_sleeper(&mut self, cpu: usize, task: u32) -> bool {
        self.update_current(cpu);
        self.touch_queue(cpu);
        self.touch_task(task);
        self.update_estimate(task);
        if let FairRules::Eevdf { slice_ns } = self.rules.fair {
            let current = self.current_entity(cpu);
            let se = self.tasks[task as usize].se;
            let fair = &self.cpus[cpu].fair;
            let limit_ns = self.rules.lag.ns(slice_ns, self.tick_ns);
            let lag = eevdf::lag(fair, current.as_ref(), &se, limit_ns);
            let se = &mut self.tasks[task as usize].se;
            se.vlag = lag;
            if lag < 0 && self.cpus[cpu].fair.nr > 1 {
                se.delayed = true;
                self.cpus[cpu].fair.nr_delayed += 1;
                self.cpus[cpu].fair.est = self.cpus[cpu].fair.est.saturating_sub(se.est());
                return false;
            }
        }
        self.leave_queue(cpu, task);
        true
    }

    /// The queue's books after a task left it (its averages stay: it may come back).
    pub(super) fn leave_queue(&mut self, cpu: usize, task: u32) {
        let t = &mut self.tasks[task as usize];
        let fair = &mut self.cpus[cpu].fair;
        fair.nr -= 1;
        fair.weight -= u64::from(t.se.weight);
        if t.se.delayed {
            t.se.delayed = false;
            fair.nr_delayed -= 1;
            // What it owed is paid: the wait counts as served, credit is not gathered.
            t.se.vlag = t.se.vlag.min(0);
        } else {
            fair.est = fair.est.saturating_sub(t.se.est());
        }
        if fair.next_buddy == Some(task) {
            fair.next_buddy = None;
        }
        if fair.last_buddy == Some(task) {
            fair.last_buddy = None;
        }
    }

    /// util_est at a dequeue: up at once, down by a quarter of the way.
    fn update_estimate(&mut self, task: u32) {
        let cpu = self.tasks[task as usize].cpu as usize;
        let se = &mut self.tasks[task as usize].se;
        // The queue holds the old estimate until the task leaves it.
        let old = se.est();
        let util = se.average.util;
        // A CPU that is too small tells nothing of what the task would have used.
        let told = !self.rules.est_within_capacity || util <= self.host.topology().capacity(cpu);
        se.est_enqueued = util;
        if se.est_average < util {
            se.est_average = util;
        } else if told && se.est_average - util > EST_MARGIN {
            se.est_average -= (se.est_average - util) / 4;
        }
        let fair = &mut self.cpus[cpu].fair;
        fair.est = fair.est.saturating_sub(old) + self.tasks[task as usize].se.est();
    }

    /// Takes a sleeping task's averages and vruntime away from the CPU it leaves.
    pub(super) fn leave_cpu(&mut self, task: u32) {
        let cpu = self.tasks[task as usize].cpu as usize;
        self.touch_queue(cpu);
        let now = self.cpus[cpu].pelt.read(self.now);
        let fair = &mut self.cpus[cpu].fair;
        let t = &mut self.tasks[task as usize];
        if t.se.attached {
            t.se.average.update(now, Activity::NONE);
            fair.average.detach(&t.se.average);
            t.se.attached = false;
        }
        // Its old CPU's cache is of no use any more: a task that migrated is not hot, and the
        // next pass may take it on. This is what tears apart pairs that a wake-up has stacked.
        t.se.exec_start_ns = 0;
        if let FairRules::Cfs { .. } = self.rules.fair {
            t.se.vruntime -= fair.min_vruntime;
            t.se.relative = true;
        }
        self.publish(cpu);
    }

    /// Whether a task just queued should take the CPU from the running one.
    pub(super) fn check_preempt(&mut self, cpu: usize, wakee: u32) {
        if self.is_rt(wakee) {
            return self.check_preempt_rt(cpu, wakee);
        }
        let c = &mut self.cpus[cpu];
        let Some(current) = c.current else {
            c.need_resched = true;
            return;
        };
        if c.need_resched || c.rt.running {
            return;
        }
        let (cur, new) = (
            &self.tasks[current as usize].se,
            &self.tasks[wakee as usize].se,
        );
        let preempts = match self.rules.fair {
            FairRules::Cfs {
                wakeup_granularity_ns,
                ..
            } => cfs::preempts(
                cur.vruntime,
                new.vruntime,
                new.weight,
                wakeup_granularity_ns,
            ),
            FairRules::Eevdf { .. } => eevdf::pick(&c.fair, Some(cur)) == Some(wakee),
        };
        if preempts {
            c.need_resched = true;
            self.metrics.preemptions += 1;
            // CFS: what preempts is what runs next, whoever else is behind.
            if let FairRules::Cfs { .. } = self.rules.fair {
                c.fair.next_buddy = Some(wakee);
            }
            // With a full queue the preempted task goes on next, while its cache is warm.
            if c.fair.nr >= 8 {
                c.fair.last_buddy = Some(current);
            }
        }
    }

    /// At a tick: whether the running task should give way.
    pub(super) fn tick_current(&mut self, cpu: usize) {
        let Some(current) = self.cpus[cpu].current else {
            return;
        };
        if self.cpus[cpu].rt.running {
            return self.tick_rt(cpu, current);
        }
        self.update_current(cpu);
        self.touch_queue(cpu);
        self.touch_task(current);
        self.publish(cpu);
        self.note_misfit(cpu);
        if self.cpus[cpu].rt.limit.serves {
            self.limit_served(cpu);
        }
        let c = &mut self.cpus[cpu];
        if c.fair.nr < 2 {
            return;
        }
        let se = &self.tasks[current as usize].se;
        let over = match self.rules.fair {
            FairRules::Cfs {
                latency_ns,
                min_granularity_ns,
                ..
            } => cfs::tick_preempts(&c.fair, se, latency_ns, min_granularity_ns),
            FairRules::Eevdf { .. } => se.vruntime >= c.fair.protected_v,
        };
        if over {
            c.need_resched = true;
        }
    }

    /// A wake-up of a delayed sleeper: it never left its queue and needs no place.
    pub(super) fn requeue_delayed(&mut self, cpu: usize, task: u32) {
        let FairRules::Eevdf { slice_ns } = self.rules.fair else {
            return;
        };
        self.update_current(cpu);
        self.touch_queue(cpu);
        self.touch_task(task);
        let current = self.current_entity(cpu);
        let se = self.tasks[task as usize].se;
        let fair = &mut self.cpus[cpu].fair;
        let limit_ns = self.rules.lag.ns(slice_ns, self.tick_ns);
        let lag = eevdf::lag(fair, current.as_ref(), &se, limit_ns);
        fair.nr_delayed -= 1;
        fair.est += se.est();
        self.tasks[task as usize].se.delayed = false;
        self.tasks[task as usize].life = Life::Queued;
        if lag > 0 {
            // The debt was paid while it slept: it starts even, without credit for the wait.
            self.remove_waiting(cpu, task);
            let t = &mut self.tasks[task as usize];
            t.se.vlag = 0;
            eevdf::place(
                &self.cpus[cpu].fair,
                current.as_ref(),
                &mut t.se,
                slice_ns,
                false,
            );
            self.insert_waiting(cpu, task);
        }
        self.publish(cpu);
    }
}
