// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine and its kernel, as a program sees them.

use perch_sched::hardware::Costs;
use perch_sched::{Ended, Rounds};

use crate::id::{ChannelId, TaskId};

/// The machine and its kernel, as a program sees them. `cpu` is the CPU on which the task that
/// asks runs; for a task in a virtual machine it is the CPU of the task's vCPU.
pub trait System {
    /// The moment, nanoseconds.
    fn now_ns(&self) -> u64;
    /// The costs of the hardware.
    fn costs(&self) -> &Costs;
    /// Returns whether the task on this CPU should give way as soon as possible.
    fn need_resched(&self, cpu: usize) -> bool;

    /// Returns whether the task has to work before its next operation.
    fn owes(&self, cpu: usize, task: TaskId) -> bool;
    /// As [`System::owes`], without the time that the CPU waited for contended lines.
    fn owes_work(&self, task: TaskId) -> bool;
    /// The task has this much work before its operation goes on.
    fn set_work(&mut self, task: TaskId, work_ns: u64);
    /// As [`System::set_work`], for work in the kernel.
    fn set_kernel_work(&mut self, cpu: usize, task: TaskId, work_ns: u64);
    /// The task has this much more work before its next operation.
    fn charge(&mut self, task: TaskId, work_ns: u64);
    /// As [`System::charge`], for work in the kernel.
    fn charge_kernel(&mut self, cpu: usize, task: TaskId, work_ns: u64);
    /// The task begins a stretch of computing with the lines of its working set.
    fn use_caches(&mut self, cpu: usize, task: TaskId);
    /// Lines that tasks have brought into a CPU's caches so far.
    fn fill(&self, cpu: usize) -> u64;
    /// The task brings this many lines into a CPU's caches.
    fn add_fill(&mut self, cpu: usize, lines: u32);
    /// A CPU's speed, 1024ths.
    fn speed_1024(&self, cpu: usize) -> u32;
    /// Another task, which spins, looks at what it spins for: at once if it runs, otherwise when it
    /// runs next.
    fn look_again(&mut self, task: TaskId);

    /// Wakes a sleeping task. Returns the work that this costs the waker, nanoseconds.
    fn wake(&mut self, wakee: TaskId, cpu: usize, waker: TaskId, sync: bool) -> u64;
    /// Sets a timer that wakes the task at `at_ns`.
    fn wake_at(&mut self, task: TaskId, at_ns: u64);
    /// A new task appears, whose parent runs on `cpu`.
    fn fork(&mut self, child: TaskId, cpu: usize);
    /// Sends a message to another computer, if a task there reads its channel. Returns whether one
    /// does.
    fn transmit(&mut self, cpu: usize, task: TaskId, channel: ChannelId, lines: u32) -> bool;
    /// The task is, or is no longer, in kernel code with interrupts off.
    fn set_atomic(&mut self, task: TaskId, is: bool);

    /// Returns whether the task is one of this machine and no vCPU.
    fn is_plain(&self, task: TaskId) -> bool;
    /// Returns whether the task on this CPU has the CPU for itself. See
    /// [`perch_sched::Sched::is_alone`].
    fn is_alone(&mut self, cpu: usize) -> bool;
    /// See [`perch_sched::Sched::begin_streak`].
    fn begin_streak(&mut self, cpu: usize, task: TaskId, of: &Rounds);
    /// See [`perch_sched::Sched::end_streak`].
    fn end_streak(&mut self, cpu: usize);
    /// See [`perch_sched::Sched::take_ended`].
    fn take_ended(&mut self, cpu: usize) -> Option<Ended>;
}
