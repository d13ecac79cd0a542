// SPDX-License-Identifier: GPL-2.0-or-later
//! The O(1) scheduler of a 2.6.18 kernel, reduced to the parts that matter for tasks of one
//! priority. Each vCPU has a queue, first come first served, with a slice of 100 ms. A wakee goes to
//! its previous vCPU or to its waker's. A vCPU with nothing to do takes a task from the vCPU that
//! has most.
//!
//! Left out: dynamic priorities. Tasks of one benchmark sleep alike, so their bonuses are alike,
//! and a wakee of the same priority never preempts.

use std::collections::VecDeque;

use perch_policy::CpuMask;

use crate::id::{Id, IdVec, TaskId, VcpuId};

/// A task's slice, milliseconds (`DEF_TIMESLICE`).
const SLICE_MS: u32 = 100;

/// Percent by which a waker's vCPU may be the more loaded one and still get its wakee: half of the
/// domain's imbalance_pct of 125.
const AFFINE_PCT: usize = 112;

/// A vCPU as the guest's kernel sees it.
#[derive(Debug, Default)]
struct Vcpu {
    queue: VecDeque<TaskId>,
    current: Option<TaskId>,
    /// Ticks of the running task's slice that are left.
    slice: u32,
    /// Ticks in a row at which it was idle and found no task cool enough to take.
    failed: u32,
}

/// A task that a vCPU took from another one's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stolen {
    pub task: TaskId,
    /// The vCPU whose queue it was on.
    pub from: VcpuId,
}

/// The queues of a guest's vCPUs, and the tasks that run on them.
#[derive(Debug)]
pub struct Scheduler {
    vcpus: IdVec<VcpuId, Vcpu>,
    slice: u32,
}

impl Scheduler {
    /// This many vCPUs, with `hz` ticks a second.
    pub fn new(vcpus: usize, hz: u32) -> Scheduler {
        Scheduler {
            vcpus: (0..vcpus).map(|_| Vcpu::default()).collect(),
            slice: (hz * SLICE_MS / 1000).max(1),
        }
    }

    /// The task that runs on a vCPU.
    pub fn current(&self, vcpu: VcpuId) -> Option<TaskId> {
        self.vcpus[vcpu].current
    }

    /// The tasks that wait for a vCPU, the next one first.
    pub fn waiting(&self, vcpu: VcpuId) -> impl Iterator<Item = TaskId> {
        self.vcpus[vcpu].queue.iter().copied()
    }

    /// Runnable tasks of a vCPU.
    pub fn nr(&self, vcpu: VcpuId) -> usize {
        let v = &self.vcpus[vcpu];
        v.queue.len() + usize::from(v.current.is_some())
    }

    /// The vCPU to which a task goes that is woken on vCPU `this` and ran on `prev`: `this` if that is
    /// no more loaded, without the waker if it will sleep soon, and `prev` otherwise
    /// (`try_to_wake_up()` of 2.6.18, between two CPUs that share no core).
    pub fn choose(&self, this: VcpuId, prev: VcpuId, sync: bool, allowed: &CpuMask) -> VcpuId {
        if this == prev || !allowed.contains(this.index()) {
            return prev;
        }
        let (here, there) = (self.nr(this), self.nr(prev));
        let left = here.saturating_sub(sync.into());
        let both_idle = left <= there && left + there <= 1;
        if both_idle || 100 * (left + 1) <= AFFINE_PCT * there { this } else { prev }
    }

    /// The vCPU to which a new task goes: the first of the least loaded ones that it may use.
    pub fn least(&self, allowed: &CpuMask) -> VcpuId {
        let usable = self.vcpus.ids().filter(|v| allowed.contains(v.index()));
        usable.min_by_key(|&v| self.nr(v)).unwrap_or(VcpuId(0))
    }

    /// Queues a task behind the others.
    pub fn enqueue(&mut self, vcpu: VcpuId, task: TaskId) {
        self.vcpus[vcpu].queue.push_back(task);
    }

    /// The running task leaves its vCPU.
    pub fn leave(&mut self, vcpu: VcpuId) -> Option<TaskId> {
        self.vcpus[vcpu].current.take()
    }

    /// The next task of a vCPU runs, on which none runs now.
    pub fn pick(&mut self, vcpu: VcpuId) -> Option<TaskId> {
        let v = &mut self.vcpus[vcpu];
        debug_assert!(v.current.is_none());
        v.current = v.queue.pop_front();
        v.slice = self.slice;
        if v.current.is_some() {
            v.failed = 0;
        }
        v.current
    }

    /// A tick of a vCPU. Returns whether another task's turn has come.
    pub fn tick(&mut self, vcpu: VcpuId) -> bool {
        let slice = self.slice;
        let v = &mut self.vcpus[vcpu];
        if v.current.is_none() {
            return false;
        }
        v.slice = v.slice.saturating_sub(1);
        if v.slice > 0 {
            return false;
        }
        v.slice = slice;
        !v.queue.is_empty()
    }

    /// A vCPU takes a task off the longest queue, if that has at least two runnable tasks more
    /// than it has: the last one that `may` move. An idle vCPU whose tick finds none three times in a
    /// row takes one that `could` move (`cache_nice_tries`).
    pub fn steal(
        &mut self,
        vcpu: VcpuId,
        ticks: bool,
        could: impl Fn(TaskId) -> bool,
        may: impl Fn(TaskId) -> bool,
    ) -> Option<Stolen> {
        let mine = self.nr(vcpu);
        let others = self.vcpus.ids().filter(|&v| v != vcpu);
        let from = others.rev().max_by_key(|&v| self.nr(v))?;
        if self.nr(from) < mine + 2 {
            return None;
        }
        let desperate = self.vcpus[vcpu].failed >= 3;
        let queue = &mut self.vcpus[from].queue;
        let at = queue.iter().rposition(|&t| could(t) && (desperate || may(t)));
        let Some(at) = at else {
            self.vcpus[vcpu].failed += u32::from(ticks);
            return None;
        };
        let task = queue.remove(at)?;
        self.vcpus[vcpu].failed = 0;
        self.vcpus[vcpu].queue.push_back(task);
        Some(Stolen { task, from })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(loads: &[u32]) -> Scheduler {
        let mut s = Scheduler::new(loads.len(), 1000);
        for (vcpu, &n) in (0..).map(VcpuId).zip(loads) {
            (0..n).for_each(|i| s.enqueue(vcpu, TaskId(100 * vcpu.0 + i)));
            s.pick(vcpu);
        }
        s
    }

    #[test]
    fn a_wakee_goes_to_its_wakers_vcpu_where_that_is_no_more_loaded() {
        let all = CpuMask::full(2);
        // Waker's and previous vCPU's tasks, sync, and whether the waker's is chosen.
        for (here, there, sync, pulled) in [
            (1, 0, true, true),
            (1, 0, false, false),
            (0, 0, false, true),
            (1, 1, true, true),
            (1, 1, false, false),
            (1, 2, false, true),
            (2, 2, false, false),
            (2, 2, true, true),
            (3, 3, true, true),
            (2, 1, true, false),
        ] {
            let chosen = loaded(&[here, there]).choose(VcpuId(0), VcpuId(1), sync, &all);
            assert_eq!(chosen == VcpuId(0), pulled, "{here} {there} {sync}");
        }
        let only = CpuMask::of(2, [1]);
        let chosen = loaded(&[0, 5]).choose(VcpuId(0), VcpuId(1), true, &only);
        assert_eq!(chosen, VcpuId(1));
    }

    #[test]
    fn a_slice_is_100_ms_and_only_others_end_it() {
        let mut s = loaded(&[2]);
        assert_eq!((0..250).filter(|_| s.tick(VcpuId(0))).count(), 2);
        let mut s = loaded(&[1]);
        assert!((0..250).all(|_| !s.tick(VcpuId(0))));
    }

    #[test]
    fn an_idle_vcpu_takes_the_last_cool_task_of_the_longest_queue() {
        let mut s = loaded(&[0, 2, 4]);
        let hot = |t| t == TaskId(203);
        let taken = s.steal(VcpuId(0), false, |_| true, |t| !hot(t));
        let expected = Stolen { task: TaskId(202), from: VcpuId(2) };
        assert_eq!(taken, Some(expected));
        assert_eq!(s.pick(VcpuId(0)), Some(TaskId(202)));
        // Two tasks are too few for a vCPU that has one itself.
        let mut s = loaded(&[1, 2]);
        assert_eq!(s.steal(VcpuId(0), false, |_| true, |_| true), None);
    }

    #[test]
    fn three_idle_ticks_overcome_the_heat() {
        let mut s = loaded(&[0, 2]);
        for _ in 0..3 {
            assert_eq!(s.steal(VcpuId(0), true, |_| true, |_| false), None);
        }
        assert!(s.steal(VcpuId(0), true, |_| true, |_| false).is_some());
        let mut s = loaded(&[0, 2]);
        for _ in 0..9 {
            assert_eq!(s.steal(VcpuId(0), true, |_| false, |_| false), None);
        }
    }
}
