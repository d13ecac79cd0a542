// SPDX-License-Identifier: GPL-2.0-or-later
//! The wake-up of a task: the policy chooses its CPU, and the task reaches that CPU's queue, either
//! at once or by an interrupt.

use perch_policy::{Change, Wake};

use super::{Life, Programs, Sched, Waker};
use crate::era::Preemption;
use crate::id::TaskId;
use crate::observe::Observed;

impl Sched<'_> {
    /// Returns the waker of a task that an interrupt on `cpu` wakes.
    pub fn interrupted(&self, cpu: usize) -> Waker {
        self.rq.current(cpu).map_or(Waker::Idle, Waker::Task)
    }

    /// Wakes the sleeping `task` from `this_cpu`. Returns the cost of the wake-up for the waker, as
    /// nanoseconds of work.
    pub fn wake(&mut self, task: TaskId, this_cpu: usize, waker: Waker, sync: bool) -> u64 {
        let now = self.rq.now();
        let t = self.rq.task_mut(task);
        assert_eq!(t.life(), Life::Asleep, "task {task} is woken");
        t.woken_ns = now;
        t.waits_since_ns = now;
        let prev = t.cpu();
        if self.rq.is_delayed(task) {
            return self.wake_delayed(task, this_cpu, waker);
        }
        let listed = self.rq.may_queue_wakeup(task);
        let mut spin_ns = 0;
        if self.is_left_by(prev, task) {
            if this_cpu != prev && self.rules.has(Change::IdleByWakeList) && listed {
                return self.wake_leaver(task, this_cpu, waker);
            }
            // Earlier wakers wait until the CPU has switched. An interrupt there comes afterwards.
            let early_ns = self.hurry_leaving(prev);
            spin_ns = if this_cpu == prev { 0 } else { early_ns };
        }
        let wake = Wake { now_ns: now, this_cpu, prev_cpu: prev, sync, ..Wake::default() };
        let owed_ns = self.cpus[this_cpu].lines.ns;
        let (cpu, examined) = self.select(task, &wake, waker);
        // What an outside scheduler took is owed already.
        let outside_ns = self.cpus[this_cpu].lines.ns - owed_ns;
        if self.caches.reserves() {
            self.reserve(cpu, 1);
        }
        if cpu != prev {
            self.migrate(task);
            self.rq.assign(task, cpu);
        }
        let cost = self.costs.wake_ns(examined) + spin_ns;
        let direct =
            !listed || !self.rules.has(Change::IdleByWakeList) && self.is_near(cpu, this_cpu);
        let late_ns = self.costs.after_look_ns(cpu != prev);
        self.send_to(task, cpu, this_cpu, (cost + outside_ns, late_ns), direct);
        cost
    }

    /// Wakes a task whose CPU is still about to switch away from it: the task goes there, without a
    /// choice.
    fn wake_leaver(&mut self, task: TaskId, this_cpu: usize, waker: Waker) -> u64 {
        let cpu = self.stays(task, this_cpu, waker, "never left its CPU");
        let cost = self.costs.wake_ns(0);
        let late_ns = self.costs.after_look_ns(false);
        self.send_to(task, cpu, this_cpu, (cost, late_ns), false);
        cost
    }

    /// Wakes a task that EEVDF left on its queue, delayed, when it fell asleep.
    fn wake_delayed(&mut self, task: TaskId, this_cpu: usize, waker: Waker) -> u64 {
        let cpu = self.stays(task, this_cpu, waker, "never left its queue");
        self.rq.update_current(cpu);
        self.rq.requeue_delayed(cpu, task);
        self.publish(cpu);
        let cost = self.costs.wake_ns(0);
        self.preempt_from(cpu, task, this_cpu, cost);
        cost
    }

    /// Notes that `task` is woken where it is, and what it had not left. Returns its CPU.
    fn stays(
        &mut self,
        task: TaskId,
        this_cpu: usize,
        waker: Waker,
        reason: &'static str,
    ) -> usize {
        let cpu = self.rq.task(task).cpu();
        if self.caches.reserves() {
            self.reserve(cpu, 1);
        }
        self.happened(Observed::Stayed { task, waker, this_cpu, cpu, reason });
        cpu
    }

    /// Brings a woken task to `cpu`. The waker on `this_cpu` enqueues it itself if `cpu` is busy
    /// and shares its LLC, and, as `direct` says, wherever the kernel has no list of wake-ups for
    /// such a task; otherwise `cpu` enqueues it when the interrupt arrives. The waker's part takes
    /// `cost_ns`, and the last `late_ns` of it come after the look at `cpu`.
    fn send_to(
        &mut self,
        task: TaskId,
        cpu: usize,
        this_cpu: usize,
        (cost_ns, late_ns): (u64, u64),
        direct: bool,
    ) {
        assert!(
            self.rq.allowed(task).contains(cpu),
            "task {task} is sent to cpu {cpu}, which it may not use"
        );
        let busy = if cpu == this_cpu {
            self.rq.current(cpu).is_some() || self.rq.nr(cpu) > 0
        } else {
            self.is_near(cpu, this_cpu) && self.rq.nr(cpu) > 0
        };
        let was_idle = self.host.is_idle(cpu);
        if busy || direct && cpu != this_cpu {
            self.enqueue(cpu, task, false);
            self.preempt_from(cpu, task, this_cpu, cost_ns);
        } else {
            self.rq.travels(task);
            self.cpus[cpu].inbox.put(task);
            self.send_ipi(cpu, this_cpu, cost_ns);
        }
        if was_idle {
            self.claim(cpu, this_cpu, late_ns);
        }
    }

    /// Returns whether two CPUs are the same, or share an LLC.
    fn is_near(&self, one: usize, other: usize) -> bool {
        let topology = self.host.topology();
        let llc = topology.llc(one);
        one == other || llc.is_some() && topology.llc(other) == llc
    }

    /// Lets `task`, which was just enqueued on `cpu`, preempt the running task. A remote CPU is
    /// told by an interrupt, but with lazy preemption a fair task for another one is not worth one:
    /// the CPU sees the request when it leaves the kernel next, or at its tick.
    #[inline(always)]
    fn preempt_from(&mut self, cpu: usize, task: TaskId, this_cpu: usize, cost_ns: u64) {
        let before = self.rq.need_resched(cpu);
        self.check_preempt(cpu, task);
        let lazy = self.rules.preemption == Preemption::Lazy && self.rq.fair_current(cpu).is_some();
        let told = !lazy || !self.rq.is_balanced(task);
        if self.rq.need_resched(cpu) && !before && cpu != this_cpu && told {
            self.send_ipi(cpu, this_cpu, cost_ns);
        }
    }

    /// Makes a task appear that no task of the simulation forks, as if its parent were on `parent`.
    pub fn appear(&mut self, programs: &mut dyn Programs, task: TaskId, parent: usize) {
        self.act_on(parent);
        let (cpu, _) = self.start(task, parent);
        self.send_to(task, cpu, parent, (0, 0), true);
        if self.rq.switches_parent(task) {
            self.resched_if_needed(programs, parent);
        }
    }

    /// Wakes `task` for the first time, from its parent, which runs on the CPU `parent`. Returns
    /// the cost for the parent of the CPUs that the slow path examined. The workload charges the
    /// rest of a fork. The parent enqueues the task itself, wherever that is (`wake_up_new_task`),
    /// so that the next fork counts it.
    pub fn fork(&mut self, task: TaskId, parent: usize) -> u64 {
        let (cpu, cost) = self.start(task, parent);
        let late_ns = self.costs.after_look_ns(true);
        self.send_to(task, cpu, parent, (cost, late_ns), true);
        cost
    }

    /// Prepares `task` for its first wake-up. Returns its CPU and the cost of choosing it, in
    /// nanoseconds.
    fn start(&mut self, task: TaskId, parent: usize) -> (usize, u64) {
        let now = self.rq.now();
        self.rq.assign(task, parent);
        let t = self.rq.task_mut(task);
        // The kernel starts a child's recent_used_cpu with its parent's CPU: a server forked on
        // another node comes back to where its daemon ran, not next to its client.
        t.state.set_recent_cpu(Some(parent));
        let wake =
            Wake { now_ns: now, this_cpu: parent, prev_cpu: parent, fork: true, ..Wake::default() };
        self.count_thread(task, 1);
        let (cpu, examined) = self.select(task, &wake, Waker::Idle);
        self.reserve(cpu, 1);
        self.rq.born(task, cpu);
        self.rq.assign(task, cpu);
        self.rq.task_mut(task).woken_ns = now;
        (cpu, self.costs.examine_ns(examined))
    }
}
