// SPDX-License-Identifier: GPL-2.0-or-later
//! What the program says of where tasks are to go: at once, for the task of the callback under way,
//! or in `ops.dispatch()`, for any that it has (`do_enqueue_task()`, `direct_dispatch()`,
//! `balance_one()`).

use perch_engine::{IdVec, TaskId};

use super::Core;
use super::queues::{Place, Waits};
use crate::abi::flag;
use crate::memory::TaskAt;

/// The queue that the program has named for a task (`ddsp_dsq_id`, `ddsp_enq_flags`).
#[derive(Clone, Copy)]
struct Direct {
    dsq: u64,
    flags: u64,
    by_vtime: bool,
}

pub(crate) struct Dispatches {
    directs: IdVec<TaskId, Option<Direct>>,
    /// The task that the callback under way may put into a queue at once.
    may_insert: Option<TaskId>,
    /// The CPU whose `ops.dispatch()` is under way.
    dispatching: Option<usize>,
    /// What the program has dispatched there; it waits for the end of the callback.
    buffer: Vec<(TaskId, Direct)>,
    /// The number of tasks that were dispatched there.
    dispatched: u32,
    max_batch: u32,
}

impl Dispatches {
    /// `max_batch` is the program's `dispatch_max_batch`.
    pub(super) fn new(nr_tasks: usize, max_batch: u32) -> Dispatches {
        Dispatches {
            directs: (0..nr_tasks).map(|_| None).collect(),
            may_insert: None,
            dispatching: None,
            buffer: Vec::new(),
            dispatched: 0,
            // SCX_DSP_DFL_MAX_BATCH.
            max_batch: if max_batch == 0 { 32 } else { max_batch },
        }
    }

    pub(super) fn is_direct(&self, task: TaskId) -> bool {
        self.directs[task].is_some()
    }

    fn insert(&mut self, task: TaskId, direct: Direct) -> Result<(), String> {
        if self.may_insert == Some(task) {
            return match self.directs[task].replace(direct) {
                None => Ok(()),
                Some(_) => Err(format!("task {task} was already direct-dispatched")),
            };
        }
        if self.may_insert.is_some() || self.dispatching.is_none() {
            return Err(format!("scx_bpf_dsq_insert() of another task: {task}"));
        }
        self.buffer.push((task, direct));
        Ok(())
    }

    /// Notes that a task came into a queue without the buffer.
    pub(super) fn moved(&mut self) {
        if self.dispatching.is_some() {
            self.dispatched += 1;
        }
    }

    /// Returns whether the CPU's dispatch is under way.
    pub(super) fn is_of(&self, cpu: usize) -> bool {
        self.dispatching == Some(cpu)
    }

    /// The tasks that `ops.dispatch()` may still dispatch (`scx_bpf_dispatch_nr_slots()`).
    pub fn slots(&self) -> u32 {
        self.max_batch.saturating_sub(self.buffer.len() as u32)
    }

    pub fn cancel(&mut self) {
        self.buffer.pop();
    }
}

/// How often a CPU calls ops.dispatch in a row without a task to run.
const DISPATCH_LOOPS: u32 = 32;

impl Core {
    /// Runs a callback that may put its task into a queue at once.
    pub(super) fn inserting<T>(&self, task: TaskId, callback: impl FnOnce() -> T) -> T {
        self.dispatches.borrow_mut().may_insert = Some(task);
        let result = callback();
        self.dispatches.borrow_mut().may_insert = None;
        result
    }

    /// `scx_bpf_dsq_insert()`: `slice` 0 leaves the task its slice.
    pub fn insert(
        &self,
        task: TaskId,
        dsq: u64,
        slice: u64,
        flags: u64,
        vtime: Option<u64>,
    ) -> bool {
        if slice > 0 {
            self.memory.put_slice(task, slice);
        } else if self.memory.slice(task) == 0 {
            self.memory.put_slice(task, 1);
        }
        if let Some(vtime) = vtime {
            self.memory.put_vtime(task, vtime);
        }
        let direct = Direct { dsq, flags, by_vtime: vtime.is_some() };
        let inserted = self.dispatches.borrow_mut().insert(task, direct);
        self.or_end(inserted).is_some()
    }

    /// `do_enqueue_task()`.
    pub(super) fn do_enqueue(&self, cpu: usize, task: TaskId, enq_flags: u64) {
        if !self.dispatches.borrow().is_direct(task) {
            let Some(enqueue) = self.callbacks.enqueue else {
                self.memory.put_slice(task, flag::SLICE_DFL);
                return self.put_into(Place::Global, task, enq_flags, false);
            };
            self.charge_call(|counted| counted.enqueue);
            self.inserting(task, || enqueue(self.memory.task(task), enq_flags));
        }
        let direct = self.dispatches.borrow_mut().directs[task].take();
        match direct {
            Some(mut direct) => {
                direct.flags |= enq_flags;
                self.dispatch(cpu, task, direct);
            }
            None => self.queues.borrow_mut().leave(task),
        }
    }

    /// Puts a task, which is in no queue, into the one that the program has named.
    fn dispatch(&self, cpu: usize, task: TaskId, direct: Direct) {
        let dsq = direct.dsq;
        let Some(place) = self.queues.borrow().find(dsq, cpu) else {
            return self.end(format!("non-existent DSQ {dsq:#x} for task {task}"));
        };
        if let Place::Local(to) = place
            && !self.fetch(task, to)
        {
            let text = "SCX_DSQ_LOCAL_ON target CPU";
            return self.end(format!("{text} {to} not allowed for task {task}"));
        }
        self.put_into(place, task, direct.flags, direct.by_vtime);
    }

    pub fn pick(&self, cpu: usize, prev: Option<TaskId>) -> Option<TaskId> {
        self.show(cpu);
        self.dispatches.borrow_mut().dispatching = Some(cpu);
        let keeps = self.balance(cpu, prev);
        self.dispatches.borrow_mut().dispatching = None;
        let next = if keeps { prev } else { self.queues.borrow().local(cpu).first() };
        if let Some(task) = next
            && self.memory.slice(task) == 0
        {
            self.memory.put_slice(task, flag::SLICE_DFL);
        }
        next
    }

    /// Fills the CPU's queue. Returns whether `prev` runs on.
    fn balance(&self, cpu: usize, prev: Option<TaskId>) -> bool {
        let runs_on = prev.filter(|&prev| self.tasks.borrow().is_queued(prev));
        let has_slice = || runs_on.is_some_and(|prev| self.memory.slice(prev) > 0);
        let has_next = || {
            !self.queues.borrow().local(cpu).is_empty() || self.move_to_local(Place::Global, cpu)
        };
        if has_slice() {
            return true;
        }
        if has_next() {
            return false;
        }
        if let Some(dispatch) = self.callbacks.dispatch {
            let at = prev.map_or(TaskAt::NONE, |prev| self.memory.task(prev));
            for turn in 1.. {
                self.dispatches.borrow_mut().dispatched = 0;
                self.charge_call(|counted| counted.dispatch);
                dispatch(cpu as i32, at);
                self.flush(cpu);
                if has_slice() {
                    return true;
                }
                if has_next() {
                    return false;
                }
                if self.dispatches.borrow().dispatched == 0 {
                    break;
                }
                if turn == DISPATCH_LOOPS {
                    self.kernel.ask(|kernel| kernel.kick(cpu, 0));
                    break;
                }
            }
        }
        runs_on.is_some() && self.callbacks.flags & flag::OPS_ENQ_LAST == 0
    }

    /// Carries out what the program has dispatched since the last time.
    fn flush(&self, cpu: usize) {
        let mut buffer = std::mem::take(&mut self.dispatches.borrow_mut().buffer);
        for &(task, direct) in &buffer {
            // A task may have left meanwhile.
            let waits = self.queues.borrow().waits(task);
            if waits == Waits::WithProgram {
                self.dispatch(cpu, task, direct);
            }
        }
        let mut dispatches = self.dispatches.borrow_mut();
        dispatches.dispatched += buffer.len() as u32;
        buffer.clear();
        dispatches.buffer = buffer;
    }

    /// `scx_bpf_dsq_move_to_local()`. Returns whether a task was moved.
    pub fn dsq_move_to_local(&self, dsq: u64) -> Result<bool, String> {
        let Some(cpu) = self.dispatches.borrow().dispatching else {
            return Err("scx_bpf_dsq_move_to_local() outside of ops.dispatch()".to_string());
        };
        self.flush(cpu);
        let found = self.queues.borrow().find(dsq, cpu);
        let Some(place @ Place::User(_)) = found else {
            return Err(format!("invalid DSQ {dsq:#x} to move from"));
        };
        let moved = self.move_to_local(place, cpu);
        if moved {
            self.dispatches.borrow_mut().moved();
        }
        Ok(moved)
    }
}
