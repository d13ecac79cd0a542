// SPDX-License-Identifier: GPL-2.0-or-later
//! A task as the policy sees it, with the process and the task group that it belongs to.

use bytemuck::{Pod, Zeroable};

use crate::face::face;
use crate::ffi;
use crate::ffi::generated::{PERCH_TASK_PERCPU_KTHREAD, PERCH_TASK_SCHED_IDLE, PERCH_TURN_LONG};
use crate::mask::CpuMask;

/// A process (an address space) of a [`Host`](crate::Host).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub(crate) u32);

impl ProcessId {
    /// Its number among the host's processes, from 0.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A task group of a [`Host`](crate::Host).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GroupId(pub(crate) u32);

face! {
/// The facts that the policy knows of a task and the memory that it keeps on the task. Layout of
/// `struct perch_task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct TaskState = perch_task {
    /// Address of the affinity words during a call; 0 outside.
    allowed: u64,
    /// When the flips were halved last, nanoseconds.
    pub flip_decay_at_ns: u64,
    /// Unique while the task lives; 0 is not a task.
    pub id: u32,
    /// Id of the task that it woke last.
    pub last_wakee: u32,
    /// How often that changed, halved once a second.
    pub wakee_flips: u32,
    /// Where it ran before its previous CPU (`recent_used_cpu`), if anywhere.
    recent_cpu: u32,
    nr_allowed: u32,
    flags: u32,
    /// Hierarchical load, 1024 for nice 0 always running; in 3.4 a wakee's load is the weight that
    /// the waker's CPU would gain by it.
    pub load: u32,
    /// Utilisation, 0 to 1024: max of average and estimate.
    pub util: u32,
    uclamp_min: u32,
    uclamp_max: u32,
    /// Address of its process during a call; 0 outside.
    process: u64,
    /// Number of its process plus 1; 0 for a kernel thread.
    process_id: u32,
    /// Number of its task group plus 1; 0 for the root group.
    group_id: u32,
    /// Address of the words that say where the group has something queued, during a call.
    queued: u64,
    /// In 3.4, the amount by which the load of the wakee's previous CPU changes because the task's
    /// group has its weight elsewhere: at most 0 for a wakee, at least 0 for a waker, which leaves.
    pub load_shift: i32,
    /// How long it runs until it sleeps, nanoseconds, as [`TaskState::turned`] has it.
    turn_ns: u32,
}
}

impl TaskState {
    /// A task that has not run yet. `id` must not be 0.
    pub fn new(id: u32) -> TaskState {
        TaskState {
            allowed: 0,
            flip_decay_at_ns: 0,
            id,
            last_wakee: 0,
            wakee_flips: 0,
            recent_cpu: ffi::NONE,
            nr_allowed: 0,
            flags: 0,
            load: 0,
            util: 0,
            uclamp_min: 0,
            uclamp_max: 1024,
            process: 0,
            process_id: 0,
            group_id: 0,
            queued: 0,
            load_shift: 0,
            turn_ns: PERCH_TURN_LONG,
        }
    }

    /// Makes the task a thread of a process of the host that will be asked about it; `None`, as
    /// at first, for a kernel thread.
    pub fn set_process(&mut self, process: Option<ProcessId>) {
        self.process_id = process.map_or(0, |p| p.0 + 1);
    }

    /// The process whose thread it is.
    pub fn process(&self) -> Option<ProcessId> {
        self.process_id.checked_sub(1).map(ProcessId)
    }

    /// Puts the task into a task group of the host that will be asked about it; `None`, as at
    /// first, for the root group.
    pub fn set_group(&mut self, group: Option<GroupId>) {
        self.group_id = group.map_or(0, |g| g.0 + 1);
    }

    /// The task group that it is in, if not the root group.
    pub fn group(&self) -> Option<GroupId> {
        self.group_id.checked_sub(1).map(GroupId)
    }

    /// Says where its group's words lie during a call.
    pub(crate) fn lend_group(&mut self, queued: u64) {
        self.queued = queued;
    }

    /// Says where its process lies during a call.
    pub(crate) fn lend(&mut self, process: u64) {
        self.process = process;
    }

    /// Sets the bounds of the task's utilisation where a CPU is chosen for it, as
    /// `sched_setattr(2)` does.
    ///
    /// # Panics
    /// When `min` is beyond `max` or `max` beyond 1024: the caller's bug, as the code that reads
    /// the user's words has checked both.
    pub fn set_uclamp(&mut self, min: u32, max: u32) {
        assert!(min <= max && max <= 1024, "uclamp {min} to {max}");
        (self.uclamp_min, self.uclamp_max) = (min, max);
    }

    /// The bounds of the task's utilisation: least and most, 0 to 1024.
    pub fn uclamp(&self) -> (u32, u32) {
        (self.uclamp_min, self.uclamp_max)
    }

    /// Notes that the task sleeps after it has run for so many nanoseconds.
    pub fn turned(&mut self, ran_ns: u64) {
        // SAFETY: a function of numbers.
        self.turn_ns = unsafe { ffi::perch_native_turn(self.turn_ns, ran_ns) };
    }

    /// The length of its turns: how long it runs until it sleeps, nanoseconds; 1,000,000 for so long
    /// or longer, or where nothing is known.
    pub fn turn_ns(&self) -> u32 {
        self.turn_ns
    }

    /// Sets the length of its turns.
    pub fn set_turn_ns(&mut self, ns: u32) {
        self.turn_ns = ns.min(PERCH_TURN_LONG);
    }

    /// Marks a kernel thread that may run on one CPU only.
    pub fn set_percpu_kthread(&mut self, is: bool) {
        self.mark(PERCH_TASK_PERCPU_KTHREAD, is);
    }

    /// True if the task is a kernel thread that may run on one CPU only.
    pub fn is_percpu_kthread(&self) -> bool {
        self.flags & PERCH_TASK_PERCPU_KTHREAD != 0
    }

    /// True if the task is a SCHED_IDLE task.
    pub fn is_sched_idle(&self) -> bool {
        self.flags & PERCH_TASK_SCHED_IDLE != 0
    }

    /// Marks a SCHED_IDLE task.
    pub fn set_sched_idle(&mut self, is: bool) {
        self.mark(PERCH_TASK_SCHED_IDLE, is);
    }

    fn mark(&mut self, flag: u32, is: bool) {
        self.flags = if is { self.flags | flag } else { self.flags & !flag };
    }

    /// Where the task ran before its previous CPU.
    pub fn recent_cpu(&self) -> Option<usize> {
        (self.recent_cpu != ffi::NONE).then_some(self.recent_cpu as usize)
    }

    /// Sets where the task ran before its previous CPU.
    pub fn set_recent_cpu(&mut self, cpu: Option<usize>) {
        self.recent_cpu = cpu.map_or(ffi::NONE, |c| c as u32);
    }

    /// The CPUs that it may use during a call, whose words lie at this address.
    pub(crate) fn allow(&mut self, allowed: &CpuMask, address: u64) {
        self.allowed = address;
        self.nr_allowed = allowed.weight();
    }

    /// The task without the addresses that hold during a call only.
    pub(crate) fn outside(mut self) -> TaskState {
        self.end_call();
        self
    }

    /// Forgets the addresses that hold during a call only.
    #[inline]
    pub(crate) fn end_call(&mut self) {
        (self.allowed, self.process, self.queued) = (0, 0, 0);
    }
}
