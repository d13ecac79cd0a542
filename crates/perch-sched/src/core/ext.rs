// SPDX-License-Identifier: GPL-2.0-or-later
//! What the core does for an outside scheduler ([`crate::ExtClass`]).

use perch_policy::Wake;

use super::{Life, Programs, Sched, Waker, kind};
use crate::class::ext::ExtClass;
use crate::id::TaskId;
use crate::observe::{Observed, Placed};
use crate::setup::Setup;

impl Sched<'_> {
    /// Loads a scheduler that decides from now on about all tasks that would be in the fair class. No
    /// task may have been forked yet.
    ///
    /// # Errors
    /// The reason for which the scheduler refuses to be loaded.
    pub fn load(&mut self, class: Box<dyn ExtClass>, setup: &Setup<'_>) -> Result<(), String> {
        let loaded = self.rq.load_ext(class, setup);
        self.apply();
        loaded
    }

    /// Returns the reason for which the outside scheduler gave up or was thrown out, if it was.
    pub fn ext_ended(&self) -> Option<&str> {
        self.rq.ext_ended()
    }

    /// A timer of the outside scheduler's has expired on `cpu`.
    pub fn ext_timer(&mut self, programs: &mut dyn Programs, cpu: usize, key: u32) {
        self.rq.expire_ext(cpu, key);
        self.apply();
        self.resched_if_needed(programs, cpu);
    }

    /// Begins the search of `cpu` for a task that waits on another CPU's queue, if one does. Returns
    /// whether it has begun: the CPU picks when it is over, and interrupts wait until then.
    pub(super) fn begin_search(&mut self, cpu: usize) -> bool {
        if std::mem::take(&mut self.cpus[cpu].searches) {
            return false;
        }
        let ns = self.rq.ext_search_ns(cpu);
        self.apply();
        if ns == 0 || self.cpus[cpu].inbox.tell(true) {
            return false;
        }
        self.cpus[cpu].searches = true;
        self.rq.begin_search(cpu);
        self.host.set_idle(cpu, false);
        self.publish(cpu);
        let at_ns = self.rq.now() + ns;
        self.at(at_ns, kind::IPI, cpu as u32, 0);
        true
    }

    /// Interrupts `cpu`, which was asked to reschedule, unless it executes this itself.
    pub(super) fn tell_resched(&mut self, cpu: usize) {
        if cpu != self.acting() {
            self.send_ipi(cpu, self.acting(), 0);
        }
    }

    /// Has `cpu` reschedule at its next interrupt, and sends it one in `after_ns` nanoseconds.
    pub(super) fn kick(&mut self, cpu: usize, after_ns: u64) {
        self.cpus[cpu].inbox.kick();
        self.send_ipi(cpu, self.acting(), after_ns);
    }

    /// A waiting task was brought to the queue of another CPU.
    pub(super) fn note_fetched(&mut self, task: TaskId, from: usize, to: usize) {
        self.publish(from);
        self.publish(to);
        self.host.set_idle(to, false);
        self.count_as_idle_if_left(from);
        self.note_moved(task, from, to);
    }

    /// Charges the next or the running task of `cpu` for `ns` nanoseconds of kernel work.
    pub(super) fn owe(&mut self, cpu: usize, ns: u64) {
        let now = self.rq.now();
        let owed = &mut self.cpus[cpu].lines;
        owed.ns += ns;
        owed.since_ns = now;
        self.happened(Observed::InKernel { cpu, ns });
    }

    pub(super) fn note_outside_choice(
        &mut self,
        task: TaskId,
        wake: &Wake,
        waker: Waker,
        cpu: usize,
    ) {
        let placed = Placed {
            task,
            waker,
            this_cpu: wake.this_cpu,
            prev_cpu: wake.prev_cpu,
            cpu,
            is_new: self.rq.task(task).life() == Life::Unborn,
            from_waker: self.costs.distance(wake.this_cpu, cpu),
            from_prev: self.costs.distance(wake.prev_cpu, cpu),
            busy: self.rq.current(cpu).is_some(),
        };
        self.happened(Observed::Placed(placed));
    }

    /// Takes the running task of `source`, whose affinity has changed, to `to`.
    pub(super) fn push_running_ext(&mut self, source: usize, to: usize, task: TaskId) {
        self.stop_segment(source);
        self.leave_caches(source, task);
        self.rq.detach_ext(source, task);
        self.apply();
        self.publish(source);
        self.note_moved(task, source, to);
        self.rq.assign(task, to);
        self.enqueue(to, task, true);
        self.check_preempt(to, task);
        if self.rq.need_resched(to) {
            self.send_ipi(to, source, 0);
        }
    }
}
