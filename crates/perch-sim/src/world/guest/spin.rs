// SPDX-License-Identifier: GPL-2.0-or-later
//! Spinning in a guest. A vCPU that wakes a task on another vCPU holds the lock of that vCPU's run queue
//! while it sends the interrupt (`resched_task()` of 2.6.18 asserts it), and sending it takes the vCPU
//! out of the guest. Where the host puts the woken vCPU on the waker's CPU, and lets it run there at
//! once, the waker still holds that lock: the woken vCPU needs it to pick a task, and spins until its
//! time is over and the waker goes on. Neither kernel knows: the guest's locks are not the host's, and
//! the processor of 2009 leaves no guest for a spinning loop.

use perch_sched::Sched;

use super::{Guests, Vcpu};
use crate::id::{GuestId, TaskId, VcpuId};

/// A spinning vCPU looks again after this time, nanoseconds.
const LOOK_NS: u64 = 10_000;

/// The run queues' locks that keep a vCPU from going on.
#[derive(Debug, Default)]
pub(super) struct Spin {
    /// The vCPU that was preempted with the lock of this vCPU's queue.
    held_by: Option<VcpuId>,
    /// The vCPU whose queue's lock this one needs, to wake a task there.
    needs: Option<VcpuId>,
    /// While the vCPU spins: its run time when it began to, and its work, which waits meanwhile; both
    /// in nanoseconds.
    since: Option<(u64, u64)>,
}

impl Spin {
    /// The vCPU that was preempted with the lock of this vCPU's queue.
    pub(super) fn held_by(&self) -> Option<VcpuId> {
        self.held_by
    }
}

impl Guests {
    /// The vCPU `by`, which runs on `cpu` and sends `to` an interrupt, holds the lock of `to`'s queue. If
    /// `by` has to leave its CPU now, it keeps the lock until it is back.
    pub(super) fn hold(
        &mut self,
        sched: &Sched<'_>,
        cpu: usize,
        guest: GuestId,
        by: VcpuId,
        to: VcpuId,
    ) {
        if self.guests[guest].spec.spins && sched.need_resched(cpu) {
            self.vcpu(guest, to).spin.held_by = Some(by);
        }
    }

    /// A vCPU is back on a CPU, and gives up the locks that it had.
    pub(super) fn release(&mut self, guest: GuestId, by: VcpuId) {
        for v in self.guests[guest].vcpus.iter_mut() {
            if v.spin.held_by == Some(by) {
                v.spin.held_by = None;
            }
        }
    }

    /// The vCPU `by` wakes a task that ran on `prev`, and needs the lock of that vCPU's queue.
    pub(super) fn need(&mut self, guest: GuestId, by: VcpuId, prev: VcpuId) {
        if by != prev && self.guests[guest].vcpus[prev].spin.held_by.is_some() {
            self.vcpu(guest, by).spin.needs = Some(prev);
        }
    }

    /// Whether a vCPU waits for a lock that another one holds.
    fn is_locked_out(&self, guest: GuestId, vcpu: VcpuId) -> bool {
        let vcpus = &self.guests[guest].vcpus;
        let held = |v: &Vcpu| v.spin.held_by.is_some_and(|by| by != vcpu);
        let v = &vcpus[vcpu];
        held(v) || v.spin.needs.is_some_and(|needed| held(&vcpus[needed]))
    }

    /// Has the running vCPU spin if it waits for a lock. Returns whether it does.
    #[inline]
    pub(super) fn spins(
        &mut self,
        sched: &mut Sched<'_>,
        task: TaskId,
        guest: GuestId,
        vcpu: VcpuId,
    ) -> bool {
        if !self.guests[guest].spec.spins {
            return false;
        }
        let locked_out = self.is_locked_out(guest, vcpu);
        let ran_ns = sched.ran_ns(task);
        let spin = &mut self.vcpu(guest, vcpu).spin;
        if locked_out {
            if spin.since.is_none() {
                spin.since = Some((ran_ns, sched.take_work(task)));
            }
            sched.set_work(task, LOOK_NS);
        } else {
            spin.needs = None;
            if let Some((began_ns, work_ns)) = spin.since.take() {
                sched.set_work(task, work_ns);
                self.metrics.spun_ns += ran_ns - began_ns;
            }
        }
        locked_out
    }
}
