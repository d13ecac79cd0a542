// SPDX-License-Identifier: GPL-2.0-or-later
//! What sched_ext does between the callbacks of a program (as 7.2 does it; read in 6.12 and in the
//! series since).
//!
//! [`Core`] is a corridor with a room for each kind of state. A callback calls functions of the
//! kernel, which may enter any room, so no room is borrowed while the program is called.

mod dispatch;
mod dsq;
mod idle;
mod kernel;
mod masks;
mod moves;
mod queues;
mod tasks;
mod timers;
mod turn;
mod walk;
mod watchdog;

use std::cell::{OnceCell, RefCell};

use perch_engine::Random;
use perch_sched::ExtKernel;

pub(crate) use self::idle::{Idle, of_node};
pub(crate) use self::walk::Walk;

use self::dispatch::Dispatches;
use self::kernel::Kernel;
use self::masks::Masks;
use self::queues::Queues;
use self::tasks::Tasks;
use self::timers::Timers;
use self::watchdog::Watchdog;
use crate::abi::Callbacks;
use crate::costs::{Costs, Counted};
use crate::faults::Faults;
use crate::maps::Maps;
use crate::memory::Memory;

/// A program and the sched_ext that it runs under.
pub(crate) struct Core {
    pub kernel: Kernel,
    pub memory: Memory,
    pub callbacks: Callbacks,
    pub nr_cpus: usize,
    pub queues: RefCell<Queues>,
    pub dispatches: RefCell<Dispatches>,
    tasks: RefCell<Tasks>,
    pub idle: RefCell<Idle>,
    pub timers: RefCell<Timers>,
    pub masks: RefCell<Masks>,
    pub maps: RefCell<Maps>,
    pub random: RefCell<Random>,
    watchdog: RefCell<Watchdog>,
    costs: RefCell<Costs>,
    pub faults: RefCell<Faults>,
    /// Why the program was thrown out.
    ended: OnceCell<String>,
}

impl Core {
    pub fn new(
        kernel: &ExtKernel<'_>,
        memory: Memory,
        callbacks: Callbacks,
        maps: Maps,
        costs: Costs,
        faults: Faults,
    ) -> Core {
        let (nr_cpus, nr_tasks) = (kernel.topology().nr_cpus(), kernel.nr_tasks());
        Core {
            kernel: Kernel::default(),
            memory,
            callbacks,
            nr_cpus,
            queues: RefCell::new(Queues::new(nr_cpus, nr_tasks)),
            dispatches: RefCell::new(Dispatches::new(nr_tasks, callbacks.dispatch_max_batch)),
            tasks: RefCell::new(Tasks::new(nr_tasks)),
            idle: RefCell::new(Idle::new(kernel.topology())),
            timers: RefCell::default(),
            masks: RefCell::default(),
            maps: RefCell::new(maps),
            random: RefCell::new(Random::new(1, 0)),
            watchdog: RefCell::new(Watchdog::new(nr_tasks, callbacks.timeout_ms)),
            costs: RefCell::new(costs),
            faults: RefCell::new(faults),
            ended: OnceCell::new(),
        }
    }

    pub fn here(&self) -> usize {
        self.kernel.ask(|kernel| kernel.here())
    }

    pub fn now_ns(&self) -> u64 {
        self.kernel.ask(|kernel| kernel.now_ns())
    }

    /// The scheduler is in charge from now on: every CPU reschedules (`scx_bypass()`).
    pub fn switch_on(&self) {
        (self.kernel).ask(|kernel| (0..self.nr_cpus).for_each(|cpu| kernel.kick(cpu, 0)));
    }

    pub fn ended(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }

    /// Throws the program out, unless that has happened already.
    pub fn end(&self, reason: String) {
        self.ended.get_or_init(|| reason);
    }

    /// Throws the program out for an error.
    pub fn or_end<T>(&self, result: Result<T, String>) -> Option<T> {
        result.map_err(|reason| self.end(reason)).ok()
    }

    /// Charges the CPU that executes this.
    fn charge_ns(&self, ns: u64) {
        if ns > 0 {
            self.kernel.ask(|kernel| kernel.takes(ns));
        }
    }

    /// Charges for a call of the program.
    pub fn charge_call(&self, callback: impl FnOnce(&Counted) -> u32) {
        let ns = self.costs.borrow().callback_ns(callback);
        self.charge_ns(ns + self.faults.borrow_mut().held_ns());
    }

    /// Charges for a write to the mask of idle CPUs, where `of` is in it.
    pub fn charge_idle_line(&self, of: usize) {
        let (here, now_ns) = self.kernel.ask(|k| (k.here(), k.now_ns()));
        let ns = self.costs.borrow_mut().idle_line_ns(here, of, now_ns);
        self.charge_ns(ns);
    }

    /// Charges for a read or a write of the program's own memory at this address.
    pub fn charge_line(&self, at: usize, writes: bool) {
        let (here, now_ns) = self.kernel.ask(|k| (k.here(), k.now_ns()));
        let ns = self.costs.borrow_mut().line_ns(at, here, writes, now_ns);
        self.charge_ns(ns);
    }

    /// Brings what the program sees of a CPU's queue up to date.
    fn show(&self, cpu: usize) {
        let (nr, current) = self.kernel.ask(|k| (k.nr_running(cpu), k.current(cpu)));
        self.memory.put_queue(cpu, nr, current);
    }
}
