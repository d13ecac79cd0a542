// SPDX-License-Identifier: GPL-2.0-or-later
//! A task's way into a queue, and from one into another.

use perch_engine::TaskId;

use super::queues::{Order, Place, Waits};
use super::{Core, Walk};
use crate::abi::flag;

impl Core {
    /// The CPU whose task this is, and whether it may run on another.
    pub(super) fn home(&self, task: TaskId, to: usize) -> (usize, bool) {
        (self.kernel).ask(|k| (k.cpu_of(task), k.allowed(task).contains(to)))
    }

    /// Moves a waiting task to the run queue of another CPU, if it is not there already. Returns
    /// whether it may be there.
    pub(super) fn fetch(&self, task: TaskId, to: usize) -> bool {
        let (from, may) = self.home(task, to);
        if from != to && may {
            self.kernel.ask(|kernel| kernel.moves(task, to));
            self.show(from);
            self.show(to);
        }
        from == to || may
    }

    /// `dispatch_enqueue()`.
    pub(super) fn put_into(&self, place: Place, task: TaskId, enq_flags: u64, by_vtime: bool) {
        let order = match by_vtime {
            true => Order::Vtime(self.memory.vtime(task)),
            false if enq_flags & (flag::ENQ_HEAD | flag::ENQ_PREEMPT) != 0 => Order::First,
            false => Order::Last,
        };
        let put = self.queues.borrow_mut().put(place, task, order);
        if self.or_end(put).is_some()
            && let Place::Local(cpu) = place
        {
            self.arrived(cpu, task, enq_flags);
        }
    }

    /// `local_dsq_post_enq()`: a task has come into the queue of a CPU.
    fn arrived(&self, cpu: usize, task: TaskId, enq_flags: u64) {
        let (current, runs_ext) = self.kernel.ask(|k| (k.current(cpu), k.runs_ext(cpu)));
        let other = current.filter(|&current| current != task);
        if let Some(other) = other.filter(|_| enq_flags & flag::ENQ_PREEMPT != 0 && runs_ext) {
            self.memory.put_slice(other, 0);
            self.kernel.ask(|kernel| kernel.resched(cpu));
        } else if current.is_none() && !self.dispatches.borrow().is_of(cpu) {
            self.kernel.ask(|kernel| kernel.resched(cpu));
        }
        if enq_flags & flag::ENQ_IMMED != 0 {
            self.queues.borrow_mut().immediate(task, other.is_some());
        }
    }

    /// Gives the tasks back to the program that were put on a CPU that cannot run them at once.
    pub(super) fn settle(&self) {
        loop {
            let task = self.queues.borrow_mut().take_back();
            let Some(task) = task else { return };
            let cpu = self.kernel.ask(|kernel| kernel.cpu_of(task));
            self.do_enqueue(cpu, task, flag::ENQ_REENQ);
        }
    }

    pub fn reenqueue_local(&self) -> u32 {
        let here = self.here();
        let tasks: Vec<TaskId> = self.queues.borrow().local(here).tasks().collect();
        for &task in &tasks {
            self.queues.borrow_mut().take(task);
            self.do_enqueue(here, task, flag::ENQ_REENQ);
        }
        tasks.len() as u32
    }

    /// `consume_dispatch_q()`: moves the first task of a queue that may run on `cpu` there.
    pub(super) fn move_to_local(&self, from: Place, cpu: usize) -> bool {
        let found = {
            let queues = self.queues.borrow();
            let tasks = queues.dsq(from).tasks();
            let mut homes = tasks.map(|task| (task, self.home(task, cpu)));
            homes.find(|&(_, (home, may))| home == cpu || may)
        };
        let Some((task, (home, _))) = found else {
            return false;
        };
        self.queues.borrow_mut().take(task);
        self.charge_ns(self.costs.borrow().move_ns(home, cpu));
        self.fetch(task, cpu);
        self.put_into(Place::Local(cpu), task, 0, false);
        true
    }

    /// `scx_bpf_dsq_move()`: moves a task of the queue that is walked over, if
    /// it is still there.
    pub fn dsq_move(
        &self,
        walk: &mut Walk,
        task: TaskId,
        dsq: u64,
        flags: u64,
        by_vtime: bool,
    ) -> Result<bool, String> {
        let (slice, vtime) = walk.take_sets();
        if self.queues.borrow().waits(task) != Waits::In(walk.place()) {
            return Ok(false);
        }
        let here = self.here();
        let found = self.queues.borrow().find(dsq, here);
        let Some(to) = found else {
            return Err(format!("non-existent DSQ {dsq:#x} to move task {task} to"));
        };
        if let Place::Local(cpu) = to
            && !self.fetch(task, cpu)
        {
            let text = "to move to is not allowed for task";
            return Err(format!("CPU {cpu} {text} {task}"));
        }
        self.queues.borrow_mut().take(task);
        if let Some(slice) = slice {
            self.memory.put_slice(task, slice);
        }
        if let Some(vtime) = vtime {
            self.memory.put_vtime(task, vtime);
        }
        self.put_into(to, task, flags, by_vtime);
        self.dispatches.borrow_mut().moved();
        Ok(true)
    }
}
