// SPDX-License-Identifier: GPL-2.0-or-later
//! All dispatch queues, and where each task waits.

use std::collections::HashMap;

use perch_engine::{IdVec, TaskId};

use super::dsq::Dsq;
use crate::abi::flag;

/// A dispatch queue's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// That of a CPU.
    Local(usize),
    Global,
    /// One that the program has made.
    User(usize),
}

/// Where a task waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Waits {
    #[default]
    Nowhere,
    /// The program has the task: it was enqueued, and not dispatched yet.
    WithProgram,
    In(Place),
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    waits: Waits,
    /// The task is in a local queue, and comes back if the CPU cannot run it at once.
    immediate: bool,
}

/// The order in which a task comes into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    First,
    Last,
    /// Behind those whose virtual time is not later.
    Vtime(u64),
}

pub(crate) struct Queues {
    locals: Vec<Dsq>,
    global: Dsq,
    users: Vec<Option<Dsq>>,
    by_id: HashMap<u64, usize>,
    tasks: IdVec<TaskId, Task>,
    /// Tasks in local queues that cannot run there at once.
    back: Vec<TaskId>,
}

impl Queues {
    pub(super) fn new(nr_cpus: usize, nr_tasks: usize) -> Queues {
        Queues {
            locals: (0..nr_cpus).map(|_| Dsq::default()).collect(),
            global: Dsq::default(),
            users: Vec::new(),
            by_id: HashMap::new(),
            tasks: (0..nr_tasks).map(|_| Task::default()).collect(),
            back: Vec::new(),
        }
    }

    /// Makes a queue. Returns 0, or the error's number below it.
    pub fn create(&mut self, dsq: u64) -> i32 {
        if dsq & flag::DSQ_BUILTIN != 0 {
            return -22;
        }
        if self.by_id.contains_key(&dsq) {
            return -17;
        }
        self.by_id.insert(dsq, self.users.len());
        self.users.push(Some(Dsq::default()));
        0
    }

    /// Destroys a queue, if there is one of this name.
    ///
    /// # Errors
    /// It has tasks.
    pub fn destroy(&mut self, dsq: u64) -> Result<(), String> {
        let Some(&number) = self.by_id.get(&dsq) else {
            return Ok(());
        };
        if self.user(number).is_some_and(|dsq| !dsq.is_empty()) {
            return Err(format!("destroying DSQ {dsq:#x} while it has tasks"));
        }
        self.by_id.remove(&dsq);
        self.users[number] = None;
        Ok(())
    }

    /// The number of tasks in the queue that `cpu` knows by this name; ENOENT without one.
    pub fn nr_queued(&self, dsq: u64, cpu: usize) -> i32 {
        let place = self.find(dsq, cpu);
        place.map_or(-2, |place| self.dsq(place).len() as i32)
    }

    /// The place of the queue with this name, for a dispatch by `cpu`.
    pub(super) fn find(&self, dsq: u64, cpu: usize) -> Option<Place> {
        if dsq & flag::DSQ_BUILTIN == 0 {
            return self.by_id.get(&dsq).map(|&number| Place::User(number));
        }
        if dsq & flag::DSQ_LOCAL_ON != 0 {
            let cpu = dsq as u32 as usize;
            return (cpu < self.locals.len()).then_some(Place::Local(cpu));
        }
        match dsq {
            flag::DSQ_LOCAL => Some(Place::Local(cpu)),
            flag::DSQ_GLOBAL => Some(Place::Global),
            _ => None,
        }
    }

    pub(super) fn local(&self, cpu: usize) -> &Dsq {
        &self.locals[cpu]
    }

    /// The program's queue with this number, if it is still there.
    pub(super) fn user(&self, number: usize) -> Option<&Dsq> {
        self.users.get(number)?.as_ref()
    }

    pub(super) fn dsq(&self, place: Place) -> &Dsq {
        match place {
            Place::Local(cpu) => &self.locals[cpu],
            Place::Global => &self.global,
            Place::User(number) => self.user(number).expect("a queue with tasks stays"),
        }
    }

    fn dsq_mut(&mut self, place: Place) -> &mut Dsq {
        match place {
            Place::Local(cpu) => &mut self.locals[cpu],
            Place::Global => &mut self.global,
            Place::User(number) => (self.users[number].as_mut()).expect("a queue with tasks stays"),
        }
    }

    /// Puts a task, which is in no queue, into this one.
    ///
    /// # Errors
    /// The queue has another order.
    pub(super) fn put(&mut self, place: Place, task: TaskId, order: Order) -> Result<(), String> {
        self.tasks[task] = Task { waits: Waits::In(place), immediate: false };
        let dsq = self.dsq_mut(place);
        if !dsq.takes(matches!(order, Order::Vtime(_))) {
            let text = "cannot use vtime ordering and FIFO in one DSQ";
            return Err(format!("{text}: task {task}"));
        }
        match order {
            Order::First | Order::Last => dsq.push(task, order == Order::First),
            Order::Vtime(vtime) => dsq.push_by_vtime(task, vtime),
        }
        Ok(())
    }

    /// Takes a task from where it waits, if it does.
    pub(super) fn take(&mut self, task: TaskId) {
        let was = std::mem::take(&mut self.tasks[task]);
        if let Waits::In(place) = was.waits {
            self.dsq_mut(place).remove(task);
        }
    }

    /// Leaves a task, which is in no queue, to the program.
    pub(super) fn leave(&mut self, task: TaskId) {
        self.tasks[task].waits = Waits::WithProgram;
    }

    pub(super) fn waits(&self, task: TaskId) -> Waits {
        self.tasks[task].waits
    }

    /// The tasks in the queues that belong to no CPU.
    pub(super) fn shared(&self) -> impl Iterator<Item = TaskId> {
        let users = self.users.iter().flatten();
        [&self.global].into_iter().chain(users).flat_map(Dsq::tasks)
    }

    /// The tasks that wait, once for each queue that they are in, and for the program's hands.
    pub fn waiting(&self) -> Vec<TaskId> {
        let locals = self.locals.iter().flat_map(Dsq::tasks);
        let with_program = self.tasks.ids().filter(|&task| self.waits(task) == Waits::WithProgram);
        locals.chain(self.shared()).chain(with_program).collect()
    }

    /// Notes that a task in a local queue is to run at once; if it `cannot`, it comes back.
    pub(super) fn immediate(&mut self, task: TaskId, cannot: bool) {
        self.tasks[task].immediate = true;
        if cannot {
            self.back.push(task);
        }
    }

    /// Sends back what waits on this CPU and was to run at once, since something else runs.
    pub(super) fn send_back(&mut self, cpu: usize) {
        let waiting = self.locals[cpu].tasks();
        let immediate = waiting.filter(|&task| self.tasks[task].immediate);
        self.back.extend(immediate);
    }

    /// Takes a task that comes back from its queue; `None` when none is left.
    pub(super) fn take_back(&mut self) -> Option<TaskId> {
        loop {
            let task = self.back.pop()?;
            if self.tasks[task].immediate {
                self.take(task);
                return Some(task);
            }
        }
    }
}
