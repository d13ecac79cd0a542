// SPDX-License-Identifier: GPL-2.0-or-later
//! The class's functions about the turn of a CPU (`put_prev_task_scx()` and others); the choice of the
//! next task is in [`super::dispatch`].

use perch_engine::TaskId;

use super::Core;
use super::queues::Place;
use crate::abi::flag;
use crate::memory::TaskAt;

impl Core {
    /// The time before the CPU can have another CPU's task, if it has none of its own and one waits.
    pub fn search_ns(&self, cpu: usize) -> u64 {
        let queues = self.queues.borrow();
        if !queues.local(cpu).is_empty() {
            return 0;
        }
        let mut fetches = false;
        for task in queues.shared() {
            let (home, may) = self.home(task, cpu);
            if home == cpu {
                return 0;
            }
            fetches |= may;
        }
        u64::from(fetches) * self.costs.borrow().search_ns()
    }

    pub fn set_next(&self, cpu: usize, task: TaskId) {
        self.queues.borrow_mut().take(task);
        self.show(cpu);
        if let Some(running) = self.callbacks.running {
            self.charge_call(|counted| counted.running);
            running(self.memory.task(task));
        }
        self.queues.borrow_mut().send_back(cpu);
        self.settle();
    }

    pub fn put(&self, cpu: usize, task: TaskId, next: Option<TaskId>, outranked: bool) {
        if let Some(stopping) = self.callbacks.stopping {
            self.charge_call(|counted| counted.stopping);
            stopping(self.memory.task(task), 1);
        }
        self.set_runnable(task);
        if self.memory.slice(task) > 0 {
            self.put_into(Place::Local(cpu), task, flag::ENQ_HEAD, false);
        } else {
            let last = next.is_none() && !outranked;
            self.do_enqueue(cpu, task, if last { flag::ENQ_LAST } else { 0 });
        }
        self.settle();
    }

    pub fn tick(&self, cpu: usize, task: TaskId) {
        self.show(cpu);
        if let Some(tick) = self.callbacks.tick {
            self.charge_call(|counted| counted.tick);
            tick(self.memory.task(task));
        }
        if self.memory.slice(task) == 0 {
            self.kernel.ask(|kernel| kernel.resched(cpu));
        }
        self.watch();
    }

    /// Throws the program out if it lets a task wait for longer than it said it would.
    pub fn watch(&self) {
        let (queues, now_ns) = (self.queues.borrow(), self.now_ns());
        self.or_end(self.watchdog.borrow_mut().look(&queues, now_ns));
    }

    pub fn yields(&self, task: TaskId) {
        match self.callbacks.yields {
            Some(yields) => {
                self.charge_call(|counted| counted.rare);
                yields(self.memory.task(task), TaskAt::NONE);
            }
            None => self.memory.put_slice(task, 0),
        }
    }

    pub fn charge(&self, task: TaskId, ran_ns: u64) {
        let slice = self.memory.slice(task);
        if slice != flag::SLICE_INF {
            self.memory.put_slice(task, slice.saturating_sub(ran_ns));
        }
        let ran_ns = self.kernel.ask(|kernel| kernel.ran_ns(task));
        self.memory.put_ran(task, ran_ns);
    }

    /// The CPU begins to idle, in a state that takes so long to leave, or ends to.
    pub fn idle(&self, cpu: usize, exit_ns: Option<u32>) {
        let idles = exit_ns.is_some();
        self.show(cpu);
        self.memory.put_idle_state(cpu, exit_ns);
        let changes = self.idle.borrow_mut().set_idles(cpu, idles);
        let update_idle = self.callbacks.update_idle;
        if update_idle.is_none() || self.callbacks.flags & flag::OPS_KEEP_BUILTIN_IDLE != 0 {
            self.charge_idle_line(cpu);
            let mut idle = self.idle.borrow_mut();
            self.kernel.ask(|kernel| idle.update(kernel.topology(), cpu, idles));
        }
        if let Some(update_idle) = update_idle.filter(|_| changes) {
            self.charge_call(|counted| counted.update_idle);
            update_idle(cpu as i32, idles.into());
        }
    }
}
