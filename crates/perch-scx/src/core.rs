// SPDX-License-Identifier: GPL-2.0-or-later
//! What sched_ext does between the callbacks of a program (as 7.2 does it; read in 6.12 and in the
//! series since).
//!
//! A callback calls the kernel, which may look at everything here, so no function keeps the state
//! borrowed while it calls the program.

mod more;

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::collections::HashMap;

use perch_engine::{Random, TaskId};
use perch_sched::ExtKernel;

use crate::abi::{Callbacks, flag};
use crate::costs::{Callback, Costs};
use crate::dsq::Dsq;
use crate::faults::Faults;
use crate::idle::IdleMasks;
use crate::maps::Maps;
use crate::memory::Memory;

/// A dispatch queue's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// That of a CPU.
    Local(usize),
    /// The global one.
    Global,
    /// One that the program has made.
    User(usize),
}

/// The queue that the program has named for a task (`ddsp_dsq_id`, `ddsp_enq_flags`).
#[derive(Clone, Copy, Debug)]
struct Direct {
    dsq: u64,
    enq_flags: u64,
    by_vtime: bool,
}

/// sched_ext's part of a task; the program's part is in [`Memory`].
#[derive(Clone, Debug, Default)]
struct Task {
    queued: bool,
    place: Option<Place>,
    /// The program has the task: it was enqueued, and not dispatched yet.
    with_program: bool,
    direct: Option<Direct>,
    /// The task is in a local queue, and comes back if the CPU cannot run it at once.
    immediate: bool,
    /// The task has never been queued.
    newborn: bool,
    /// The class has chosen the CPU of the wake-up under way.
    selected: bool,
    /// When it was last enqueued or put back, nanoseconds.
    runnable_since_ns: u64,
}

/// An entry of the buffer in which the program's dispatches wait for the end of the callback.
#[derive(Clone, Copy, Debug)]
struct Buffered {
    task: TaskId,
    direct: Direct,
}

pub(crate) struct State {
    tasks: Vec<Task>,
    locals: Vec<Dsq>,
    global: Dsq,
    users: Vec<Option<Dsq>>,
    by_id: HashMap<u64, usize>,
    pub idle: IdleMasks,
    /// By CPU: it runs its idle task.
    idles: Vec<bool>,
    /// By CPU: the idle CPU that was picked there last.
    turns: Vec<usize>,
    /// The task that the callback under way may put into a queue at once.
    may_insert: Option<TaskId>,
    /// The CPU whose dispatch is under way, and what it has dispatched.
    dispatching: Option<usize>,
    buffer: Vec<Buffered>,
    dispatched: u32,
    /// Tasks in local queues that cannot run there at once.
    back: Vec<TaskId>,
    pub maps: Maps,
    masks: more::Masks,
    timers: Vec<(usize, u64)>,
    ended: Option<String>,
    random: Random,
    watched_ns: u64,
}

/// A program and the sched_ext that it runs under.
pub(crate) struct Core {
    pub memory: Memory,
    state: RefCell<State>,
    pub callbacks: Cell<Callbacks>,
    /// The kernel, while it is in a function of this class.
    kernel: Cell<*mut ExtKernel<'static>>,
    nr_cpus: usize,
    costs: RefCell<Costs>,
    faults: RefCell<Option<Faults>>,
}

impl Core {
    pub fn new(
        memory: Memory,
        kernel: &ExtKernel<'_>,
        nr_tasks: usize,
        costs: Costs,
        faults: Option<Faults>,
    ) -> Core {
        let topology = kernel.topology();
        let n = topology.nr_cpus();
        Core {
            memory,
            state: RefCell::new(State {
                tasks: vec![Task::default(); nr_tasks],
                locals: (0..n).map(|_| Dsq::default()).collect(),
                global: Dsq::default(),
                users: Vec::new(),
                by_id: HashMap::new(),
                idle: IdleMasks::new(topology),
                idles: vec![true; n],
                turns: vec![0; n],
                may_insert: None,
                dispatching: None,
                buffer: Vec::new(),
                dispatched: 0,
                back: Vec::new(),
                maps: Maps::new(n),
                masks: more::Masks::default(),
                timers: Vec::new(),
                ended: None,
                random: Random::new(1, 0),
                watched_ns: 0,
            }),
            callbacks: Cell::new(Callbacks::default()),
            kernel: Cell::new(std::ptr::null_mut()),
            nr_cpus: n,
            costs: RefCell::new(costs),
            faults: RefCell::new(faults),
        }
    }

    pub fn state(&self) -> RefMut<'_, State> {
        self.state.borrow_mut()
    }

    fn look(&self) -> Ref<'_, State> {
        self.state.borrow()
    }

    /// Runs `work` while `kernel` is at hand for [`Core::kernel`], also for what the program calls.
    pub fn with<T>(&self, kernel: &mut ExtKernel<'_>, work: impl FnOnce() -> T) -> T {
        let kernel: *mut ExtKernel<'_> = kernel;
        // The lifetime is forgotten here and ends with this function: nobody keeps the pointer.
        let before = self.kernel.replace(kernel.cast());
        let result = work();
        self.kernel.set(before);
        result
    }

    /// Asks the kernel.
    pub fn kernel<T>(&self, ask: impl FnOnce(&mut ExtKernel<'_>) -> T) -> T {
        let kernel = self.kernel.get();
        assert!(!kernel.is_null(), "the kernel is asked from outside of it");
        // SAFETY: `with` has the kernel exclusively, and is not asked for it while `ask` runs.
        ask(unsafe { &mut *kernel })
    }

    /// Charges the CPU that executes this.
    fn charge_ns(&self, ns: u64) {
        if ns > 0 {
            self.kernel(|kernel| kernel.takes(ns));
        }
    }

    /// Charges for a call of the program.
    pub fn charge_call(&self, callback: Callback) {
        let ns = self.costs.borrow().callback_ns(callback);
        let held_ns = self.faults.borrow_mut().as_mut().map_or(0, Faults::held_ns);
        self.charge_ns(ns + held_ns);
    }

    /// Charges for a write to the mask of idle CPUs, where `of` is in it.
    fn charge_idle_line(&self, of: usize) {
        let (here, now_ns) = self.kernel(|k| (k.here(), k.now_ns()));
        let ns = self.costs.borrow_mut().idle_line_ns(here, of, now_ns);
        self.charge_ns(ns);
    }

    /// Charges for a read or a write of the program's own memory at this address.
    pub fn charge_line(&self, at: usize, writes: bool) {
        let (here, now_ns) = self.kernel(|k| (k.here(), k.now_ns()));
        let ns = self.costs.borrow_mut().line_ns(at, here, writes, now_ns);
        self.charge_ns(ns);
    }

    /// The scheduler is in charge from now on: every CPU reschedules (`scx_bypass()`).
    pub fn switch_on(&self) {
        self.kernel(|kernel| (0..self.nr_cpus).for_each(|cpu| kernel.kick(cpu, 0)));
    }

    pub fn nr_cpus(&self) -> usize {
        self.nr_cpus
    }

    pub fn here(&self) -> usize {
        self.kernel(|kernel| kernel.here())
    }

    pub fn now_ns(&self) -> u64 {
        self.kernel(|kernel| kernel.now_ns())
    }

    pub fn ended(&self) -> Option<&str> {
        let state = self.state.as_ptr();
        // SAFETY: nobody borrows the state between two calls of the class, and the reason is
        // written once and stays.
        unsafe { (*state).ended.as_deref() }
    }

    /// Throws the program out, unless that has happened already.
    pub fn end(&self, reason: String) {
        let mut state = self.state();
        if state.ended.is_none() {
            state.ended = Some(reason);
        }
    }
}

/// Tasks.
impl Core {
    pub fn is_queued(&self, task: TaskId) -> bool {
        self.look().tasks[task.0 as usize].queued
    }

    fn set_runnable(&self, task: TaskId) {
        let now_ns = self.now_ns();
        self.state().tasks[task.0 as usize].runnable_since_ns = now_ns;
        self.memory.put_runnable_at(task, now_ns / NS_PER_JIFFY);
    }

    /// The tasks that wait, once for each queue that they are in, and for the program's hands.
    pub fn waiting(&self) -> Vec<TaskId> {
        let state = self.look();
        let users = state.users.iter().flatten();
        let queues = state.locals.iter().chain([&state.global]).chain(users);
        let mut waiting: Vec<TaskId> = queues.flat_map(|q| q.iter().map(|e| e.task)).collect();
        let tasks = (0..).map(TaskId).zip(&state.tasks);
        waiting.extend(
            tasks
                .filter(|(_, task)| task.with_program)
                .map(|(id, _)| id),
        );
        waiting
    }

    fn late_ns(&self) -> u64 {
        self.faults.borrow_mut().as_mut().map_or(0, Faults::late_ns)
    }

    /// Brings what the program sees of a CPU's queue up to date.
    pub fn show(&self, cpu: usize) {
        let (nr, current) = self.kernel(|k| (k.nr_running(cpu), k.current(cpu)));
        self.memory.put_queue(cpu, nr, current);
    }

    pub fn show_affinity(&self, task: TaskId) {
        let (words, weight) = self.kernel(|k| {
            let allowed = k.allowed(task);
            (allowed.words().as_ptr(), allowed.weight())
        });
        self.memory.put_allowed(task, words, weight);
    }

    pub fn fork(&self, task: TaskId, weight: u32, cgroup: usize) {
        self.show_affinity(task);
        self.memory.put_slice(task, flag::SLICE_DFL);
        self.state().tasks[task.0 as usize].newborn = true;
        let (at, callbacks) = (self.memory.task(task), self.callbacks.get());
        if let Some(init_task) = callbacks.init_task {
            self.charge_call(Callback::InitTask);
            // SAFETY: the program is loaded, and the task is in its memory; so in all calls below.
            let error = unsafe { init_task(at, 1, self.memory.cgroup(cgroup)) };
            if error != 0 {
                self.end(format!(
                    "ops.init_task() failed with {error} for task {task}"
                ));
            }
        }
        self.memory.put_weight(task, weight);
        if let Some(enable) = callbacks.enable {
            self.charge_call(Callback::Enable);
            // SAFETY: as above.
            unsafe { enable(at) };
        }
        if let Some(set_weight) = callbacks.set_weight {
            self.charge_call(Callback::Rare);
            // SAFETY: as above.
            unsafe { set_weight(at, weight) };
        }
    }

    pub fn exit(&self, task: TaskId) {
        let (at, callbacks) = (self.memory.task(task), self.callbacks.get());
        if let Some(disable) = callbacks.disable {
            self.charge_call(Callback::Rare);
            // SAFETY: as in `fork`.
            unsafe { disable(at) };
        }
        if let Some(exit_task) = callbacks.exit_task {
            self.charge_call(Callback::ExitTask);
            // SAFETY: as in `fork`.
            unsafe { exit_task(at) };
        }
        self.state().maps.forget(at as usize);
    }

    pub fn bind(&self, task: TaskId) {
        self.show_affinity(task);
        if let Some(set_cpumask) = self.callbacks.get().set_cpumask {
            self.charge_call(Callback::Rare);
            // SAFETY: as in `fork`.
            unsafe { set_cpumask(self.memory.task(task), self.memory.allowed(task).cast()) };
        }
    }
}

/// The kernel's jiffies, at 250 a second.
const NS_PER_JIFFY: u64 = 4_000_000;

/// Wake-ups: `select_task_rq_scx`, `enqueue_task_scx`, `dequeue_task_scx`.
impl Core {
    pub fn select(&self, task: TaskId, prev: usize, wake_flags: u64) -> usize {
        let Some(select_cpu) = self.callbacks.get().select_cpu else {
            let cpu = self.select_builtin(task, prev, wake_flags, None, 0);
            let Some(cpu) = cpu else { return prev };
            self.memory.put_slice(task, flag::SLICE_DFL);
            self.state().tasks[task.0 as usize].direct = Some(Direct {
                dsq: flag::DSQ_LOCAL,
                enq_flags: 0,
                by_vtime: false,
            });
            return cpu;
        };
        self.state().may_insert = Some(task);
        self.note_selected(task);
        // SAFETY: as in `fork`.
        let cpu = unsafe { select_cpu(self.memory.task(task), prev as i32, wake_flags) };
        self.state().may_insert = None;
        let direct = self.look().tasks[task.0 as usize].direct.is_some();
        let here = self.here();
        self.charge_call(match (direct, cpu) {
            (true, cpu) if cpu == here as i32 && !self.look().idles[here] => Callback::SelectHere,
            (true, cpu) if cpu == prev as i32 => Callback::SelectPrev,
            _ => Callback::SelectCpu,
        });
        match usize::try_from(cpu) {
            Ok(cpu) if cpu < self.nr_cpus => cpu,
            _ => {
                self.end(format!("ops.select_cpu() returned the invalid CPU {cpu}"));
                prev
            }
        }
    }

    pub fn enqueue(&self, cpu: usize, task: TaskId, woken: bool) {
        let wake_ns = self.costs.borrow().wake_ns();
        self.charge_ns(wake_ns);
        self.show(cpu);
        let newborn = std::mem::take(&mut self.state().tasks[task.0 as usize].newborn);
        let enq_flags = if woken && !newborn {
            flag::ENQ_WAKEUP | self.selected(task)
        } else {
            0
        };
        self.set_runnable(task);
        self.state().tasks[task.0 as usize].queued = true;
        self.memory.put_queued(task, true);
        if let Some(runnable) = self.callbacks.get().runnable.filter(|_| woken) {
            self.charge_call(Callback::Queued);
            // SAFETY: as in `fork`.
            unsafe { runnable(self.memory.task(task), enq_flags) };
        }
        self.do_enqueue(cpu, task, enq_flags);
        self.settle();
    }

    /// `do_enqueue_task()`.
    fn do_enqueue(&self, cpu: usize, task: TaskId, enq_flags: u64) {
        let at = task.0 as usize;
        if self.look().tasks[at].direct.is_none() {
            let Some(enqueue) = self.callbacks.get().enqueue else {
                self.memory.put_slice(task, flag::SLICE_DFL);
                return self.put_into(Place::Global, task, enq_flags, false);
            };
            self.state().may_insert = Some(task);
            self.charge_call(Callback::Enqueue);
            // SAFETY: as in `fork`.
            unsafe { enqueue(self.memory.task(task), enq_flags) };
            self.state().may_insert = None;
            if self.look().tasks[at].direct.is_none() {
                self.state().tasks[at].with_program = true;
                return;
            }
        }
        let direct = self.state().tasks[at].direct.take();
        let Some(mut direct) = direct else { return };
        direct.enq_flags |= enq_flags;
        self.dispatch(cpu, task, direct);
    }

    pub fn dequeue(&self, cpu: usize, task: TaskId, sleeps: bool) {
        let callbacks = self.callbacks.get();
        let at = self.memory.task(task);
        let sleep_ns = self.costs.borrow().sleep_ns();
        self.charge_ns(sleep_ns);
        if let Some(stopping) = callbacks.stopping {
            self.charge_call(Callback::Stopping);
            // SAFETY: as in `fork`.
            unsafe { stopping(at, (!sleeps).into()) };
        }
        if let Some(quiescent) = callbacks.quiescent.filter(|_| sleeps) {
            self.charge_call(Callback::Queued);
            // SAFETY: as in `fork`.
            unsafe { quiescent(at, flag::DEQ_SLEEP) };
        }
        self.state().tasks[task.0 as usize].queued = false;
        self.memory.put_queued(task, false);
        self.show(cpu);
    }
}

/// Queues: `dispatch_enqueue()`, `direct_dispatch()` and what they lead to.
impl Core {
    fn queue(state: &mut State, place: Place) -> &mut Dsq {
        match place {
            Place::Local(cpu) => &mut state.locals[cpu],
            Place::Global => &mut state.global,
            Place::User(number) => state.users[number]
                .as_mut()
                .expect("a queue with tasks stays"),
        }
    }

    /// The place of the queue with this name, for a dispatch by `cpu`.
    fn find(&self, dsq: u64, cpu: usize) -> Option<Place> {
        if dsq & flag::DSQ_BUILTIN == 0 {
            return self
                .look()
                .by_id
                .get(&dsq)
                .map(|&number| Place::User(number));
        }
        if dsq & flag::DSQ_LOCAL_ON != 0 {
            let cpu = dsq as u32 as usize;
            return (cpu < self.nr_cpus).then_some(Place::Local(cpu));
        }
        match dsq {
            flag::DSQ_LOCAL => Some(Place::Local(cpu)),
            flag::DSQ_GLOBAL => Some(Place::Global),
            _ => None,
        }
    }

    /// Puts a task, which is in no queue, into the one that the program has named.
    fn dispatch(&self, cpu: usize, task: TaskId, direct: Direct) {
        let Some(place) = self.find(direct.dsq, cpu) else {
            return self.end(format!(
                "non-existent DSQ {:#x} for task {task}",
                direct.dsq
            ));
        };
        if let Place::Local(to) = place {
            let (from, may) = self.kernel(|k| (k.cpu_of(task), k.allowed(task).contains(to)));
            if from != to {
                if !may {
                    let text = "SCX_DSQ_LOCAL_ON target CPU";
                    return self.end(format!("{text} {to} not allowed for task {task}"));
                }
                self.fetch(task, from, to);
            }
        }
        self.put_into(place, task, direct.enq_flags, direct.by_vtime);
    }

    /// Moves a waiting task to another CPU's run queue.
    fn fetch(&self, task: TaskId, from: usize, to: usize) {
        self.kernel(|kernel| kernel.moves(task, to));
        self.show(from);
        self.show(to);
    }

    /// `dispatch_enqueue()`.
    fn put_into(&self, place: Place, task: TaskId, enq_flags: u64, by_vtime: bool) {
        {
            let vtime = self.memory.vtime(task);
            let mut state = self.state();
            let t = &mut state.tasks[task.0 as usize];
            t.with_program = false;
            t.direct = None;
            t.place = Some(place);
            t.immediate = false;
            let dsq = Core::queue(&mut state, place);
            if !dsq.takes(by_vtime) {
                let text = "cannot use vtime ordering and FIFO in one DSQ";
                drop(state);
                return self.end(format!("{text}: task {task}"));
            }
            if by_vtime {
                dsq.push_by_vtime(task, vtime);
            } else {
                dsq.push(task, enq_flags & (flag::ENQ_HEAD | flag::ENQ_PREEMPT) != 0);
            }
        }
        if let Place::Local(cpu) = place {
            self.arrived(cpu, task, enq_flags);
        }
    }

    /// `local_dsq_post_enq()`: a task has come into the queue of a CPU.
    fn arrived(&self, cpu: usize, task: TaskId, enq_flags: u64) {
        let (current, runs_ext) = self.kernel(|k| (k.current(cpu), k.runs_ext(cpu)));
        if let Some(current) = current {
            if enq_flags & flag::ENQ_PREEMPT != 0 && current != task && runs_ext {
                self.memory.put_slice(current, 0);
                self.kernel(|kernel| kernel.resched(cpu));
            }
            if enq_flags & flag::ENQ_IMMED != 0 && current != task {
                self.state().back.push(task);
            }
        } else if self.look().dispatching != Some(cpu) {
            self.kernel(|kernel| kernel.resched(cpu));
        }
        if enq_flags & flag::ENQ_IMMED != 0 {
            self.state().tasks[task.0 as usize].immediate = true;
        }
    }

    fn take_out(&self, task: TaskId) {
        let mut state = self.state();
        if let Some(place) = state.tasks[task.0 as usize].place.take() {
            Core::queue(&mut state, place).remove(task);
        }
        let t = &mut state.tasks[task.0 as usize];
        t.immediate = false;
        t.with_program = false;
    }

    /// Gives the tasks back to the program that were put on a CPU that cannot run them at once.
    fn settle(&self) {
        loop {
            let task = self.state().back.pop();
            let Some(task) = task else { return };
            let waits = self.look().tasks[task.0 as usize].immediate;
            if waits {
                self.take_out(task);
                let cpu = self.kernel(|kernel| kernel.cpu_of(task));
                self.do_enqueue(cpu, task, flag::ENQ_REENQ);
            }
        }
    }
}

/// The turn of a CPU: `balance_one()`, `pick_task_scx()`, `put_prev_task_scx()` and others.
impl Core {
    /// How often a CPU calls ops.dispatch in a row without a task to run.
    const DISPATCH_LOOPS: u32 = 32;

    pub fn pick(&self, cpu: usize, prev: Option<TaskId>) -> Option<TaskId> {
        self.show(cpu);
        self.state().dispatching = Some(cpu);
        let keeps = self.balance(cpu, prev);
        self.state().dispatching = None;
        let next = if keeps {
            prev
        } else {
            self.look().locals[cpu].first()
        };
        if let Some(task) = next
            && self.memory.slice(task) == 0
        {
            self.memory.put_slice(task, flag::SLICE_DFL);
        }
        next
    }

    /// The time before the CPU can have another CPU's task, if it has none of its own and one waits.
    pub fn search_ns(&self, cpu: usize) -> u64 {
        let state = self.look();
        if !state.locals[cpu].is_empty() {
            return 0;
        }
        let users = state.users.iter().flatten();
        let mut waiting = users
            .chain([&state.global])
            .flat_map(|q| q.iter())
            .peekable();
        if waiting.peek().is_none() {
            return 0;
        }
        let mut fetches = false;
        for entry in waiting {
            let (home, may) =
                self.kernel(|k| (k.cpu_of(entry.task), k.allowed(entry.task).contains(cpu)));
            if home == cpu {
                return 0;
            }
            fetches |= may;
        }
        if fetches {
            self.costs.borrow().search_ns()
        } else {
            0
        }
    }

    /// Fills the CPU's queue. Returns whether `prev` runs on.
    fn balance(&self, cpu: usize, prev: Option<TaskId>) -> bool {
        let runs_on = prev.is_some_and(|prev| self.is_queued(prev));
        let has_slice = || runs_on && prev.is_some_and(|prev| self.memory.slice(prev) > 0);
        if has_slice() {
            return true;
        }
        if !self.look().locals[cpu].is_empty() || self.move_to_local(Place::Global, cpu) {
            return false;
        }
        let callbacks = self.callbacks.get();
        if let Some(dispatch) = callbacks.dispatch {
            let at = prev.map_or(std::ptr::null_mut(), |prev| self.memory.task(prev));
            for turn in 1.. {
                self.state().dispatched = 0;
                self.charge_call(Callback::Dispatch);
                // SAFETY: as in `fork`; prev is in the program's memory as well, or null.
                unsafe { dispatch(cpu as i32, at) };
                self.flush(cpu);
                if has_slice() {
                    return true;
                }
                if !self.look().locals[cpu].is_empty() || self.move_to_local(Place::Global, cpu) {
                    return false;
                }
                if self.look().dispatched == 0 {
                    break;
                }
                if turn == Core::DISPATCH_LOOPS {
                    self.kernel(|kernel| kernel.kick(cpu, 0));
                    break;
                }
            }
        }
        runs_on && callbacks.flags & flag::OPS_ENQ_LAST == 0
    }

    /// Carries out what the program has dispatched since the last time.
    fn flush(&self, cpu: usize) {
        let buffer = std::mem::take(&mut self.state().buffer);
        for &Buffered { task, direct } in &buffer {
            // A task may have left meanwhile.
            if self.look().tasks[task.0 as usize].with_program {
                self.dispatch(cpu, task, direct);
            }
        }
        let mut state = self.state();
        state.dispatched += buffer.len() as u32;
        state.buffer = buffer;
        state.buffer.clear();
    }

    /// `consume_dispatch_q()`: moves the first task of a queue that may run on `cpu` there.
    fn move_to_local(&self, from: Place, cpu: usize) -> bool {
        let found = {
            let mut state = self.state();
            let dsq = Core::queue(&mut state, from);
            let mut tasks = dsq.iter().map(|entry| entry.task);
            tasks.find(|&task| {
                self.kernel(|k| k.cpu_of(task) == cpu || k.allowed(task).contains(cpu))
            })
        };
        let Some(task) = found else { return false };
        self.take_out(task);
        let home = self.kernel(|kernel| kernel.cpu_of(task));
        let move_ns = self.costs.borrow().move_ns(home, cpu);
        self.charge_ns(move_ns);
        if home != cpu {
            self.fetch(task, home, cpu);
        }
        self.put_into(Place::Local(cpu), task, 0, false);
        true
    }

    pub fn set_next(&self, cpu: usize, task: TaskId) {
        self.take_out(task);
        self.show(cpu);
        if let Some(running) = self.callbacks.get().running {
            self.charge_call(Callback::Running);
            // SAFETY: as in `fork`.
            unsafe { running(self.memory.task(task)) };
        }
        // What waits here and was to run at once does not.
        let mut state = self.state();
        let State {
            locals,
            tasks,
            back,
            ..
        } = &mut *state;
        let waiting = locals[cpu].iter().map(|entry| entry.task);
        back.extend(waiting.filter(|task| tasks[task.0 as usize].immediate));
        drop(state);
        self.settle();
    }

    pub fn put(&self, cpu: usize, task: TaskId, next: Option<TaskId>, outranked: bool) {
        if let Some(stopping) = self.callbacks.get().stopping {
            self.charge_call(Callback::Stopping);
            // SAFETY: as in `fork`.
            unsafe { stopping(self.memory.task(task), 1) };
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
        if let Some(tick) = self.callbacks.get().tick {
            self.charge_call(Callback::Tick);
            // SAFETY: as in `fork`.
            unsafe { tick(self.memory.task(task)) };
        }
        if self.memory.slice(task) == 0 {
            self.kernel(|kernel| kernel.resched(cpu));
        }
        self.watch();
    }

    pub fn yields(&self, task: TaskId) {
        match self.callbacks.get().yields {
            Some(yields) => {
                self.charge_call(Callback::Rare);
                // SAFETY: as in `fork`.
                unsafe { yields(self.memory.task(task), std::ptr::null_mut()) };
            }
            None => self.memory.put_slice(task, 0),
        }
    }

    pub fn charge(&self, task: TaskId, ran_ns: u64) {
        let slice = self.memory.slice(task);
        if slice != flag::SLICE_INF {
            self.memory.put_slice(task, slice.saturating_sub(ran_ns));
        }
        let ran = self.kernel(|kernel| kernel.ran_ns(task));
        self.memory.put_ran(task, ran);
    }

    pub fn idle(&self, cpu: usize, exit_ns: Option<u32>) {
        let idle = exit_ns.is_some();
        self.show(cpu);
        self.memory.put_idle_state(cpu, exit_ns);
        let was = std::mem::replace(&mut self.state().idles[cpu], idle);
        let callbacks = self.callbacks.get();
        let own = callbacks.update_idle.is_some();
        if !own || callbacks.flags & flag::OPS_KEEP_BUILTIN_IDLE != 0 {
            self.charge_idle_line(cpu);
            self.kernel(|kernel| self.state().idle.update(kernel.topology(), cpu, idle));
        }
        if let Some(update_idle) = callbacks.update_idle.filter(|_| was != idle) {
            self.charge_call(Callback::UpdateIdle);
            // SAFETY: as in `fork`.
            unsafe { update_idle(cpu as i32, idle.into()) };
        }
    }

    /// Throws the program out if it lets a task wait for longer than it said it would (the
    /// watchdog, which looks twice as often).
    pub fn watch(&self) {
        let timeout_ns = match self.callbacks.get().timeout_ms {
            0 => 30_000,
            ms => u64::from(ms).min(30_000),
        } * 1_000_000;
        let now_ns = self.now_ns();
        let stalled = {
            let mut state = self.state();
            if now_ns - state.watched_ns < timeout_ns / 2 {
                return;
            }
            state.watched_ns = now_ns;
            let waits = |task: &Task| task.place.is_some() || task.with_program;
            let mut tasks = state.tasks.iter().enumerate();
            tasks.find_map(|(number, task)| {
                let since_ns = now_ns - task.runnable_since_ns.min(now_ns);
                (waits(task) && since_ns > timeout_ns).then_some((number, since_ns))
            })
        };
        if let Some((task, since_ns)) = stalled {
            let s = since_ns as f64 / 1e9;
            self.end(format!(
                "runnable task stall: task {task} did not run for {s:.1} s"
            ));
        }
    }
}

/// What the program asks for.
impl Core {
    pub fn create_dsq(&self, dsq: u64) -> i32 {
        let mut state = self.state();
        if dsq & flag::DSQ_BUILTIN != 0 {
            return -22;
        }
        if state.by_id.contains_key(&dsq) {
            return -17;
        }
        let number = state.users.len();
        state.users.push(Some(Dsq::default()));
        state.by_id.insert(dsq, number);
        0
    }

    pub fn destroy_dsq(&self, dsq: u64) {
        let Some(Place::User(number)) = self.find(dsq, 0) else {
            return;
        };
        let mut state = self.state();
        let busy = state.users[number]
            .as_ref()
            .is_some_and(|dsq| !dsq.is_empty());
        if busy {
            drop(state);
            return self.end(format!("destroying DSQ {dsq:#x} while it has tasks"));
        }
        state.by_id.remove(&dsq);
        state.users[number] = None;
    }

    pub fn nr_queued(&self, dsq: u64) -> i32 {
        match self.find(dsq, self.here()) {
            Some(place) => Core::queue(&mut self.state(), place).len() as i32,
            None => -2,
        }
    }

    /// `scx_bpf_dsq_insert()`: `slice` 0 leaves the task its slice.
    pub fn insert(
        &self,
        task: TaskId,
        dsq: u64,
        slice: u64,
        enq_flags: u64,
        vtime: Option<u64>,
    ) -> bool {
        let by_vtime = vtime.is_some();
        if slice > 0 {
            self.memory.put_slice(task, slice);
        } else if self.memory.slice(task) == 0 {
            self.memory.put_slice(task, 1);
        }
        if let Some(vtime) = vtime {
            self.memory.put_vtime(task, vtime);
        }
        let direct = Direct {
            dsq,
            enq_flags,
            by_vtime,
        };
        let mut state = self.state();
        if state.may_insert == Some(task) {
            let t = &mut state.tasks[task.0 as usize];
            let twice = t.direct.replace(direct).is_some();
            drop(state);
            if twice {
                self.end(format!("task {task} was already direct-dispatched"));
            }
            return !twice;
        }
        if state.may_insert.is_some() || state.dispatching.is_none() {
            drop(state);
            self.end(format!("scx_bpf_dsq_insert() of another task: {task}"));
            return false;
        }
        state.buffer.push(Buffered { task, direct });
        true
    }

    pub fn dsq_move_to_local(&self, dsq: u64) -> bool {
        let Some(cpu) = self.look().dispatching else {
            self.end("scx_bpf_dsq_move_to_local() outside of ops.dispatch()".to_string());
            return false;
        };
        self.flush(cpu);
        match self.find(dsq, cpu) {
            Some(place @ Place::User(_)) if self.move_to_local(place, cpu) => {
                self.state().dispatched += 1;
                true
            }
            Some(Place::User(_)) => false,
            _ => {
                self.end(format!("invalid DSQ {dsq:#x} to move from"));
                false
            }
        }
    }

    /// Another CPU was faster to claim an idle one, if that is among the faults.
    pub fn loses_claim(&self) -> bool {
        let mut faults = self.faults.borrow_mut();
        faults.as_mut().is_some_and(Faults::loses_claim)
    }

    pub fn claim_idle(&self, cpu: i32) -> bool {
        match usize::try_from(cpu) {
            Ok(cpu) if cpu < self.nr_cpus => {
                self.charge_idle_line(cpu);
                if self.loses_claim() {
                    return false;
                }
                self.kernel(|kernel| self.state().idle.claim(kernel.topology(), cpu))
            }
            _ => {
                self.end(format!("invalid CPU {cpu}"));
                false
            }
        }
    }

    pub fn kick(&self, cpu: i32, flags: u64) {
        let Some(cpu) = usize::try_from(cpu).ok().filter(|&cpu| cpu < self.nr_cpus) else {
            return self.end(format!("invalid CPU {cpu} to kick"));
        };
        let (current, runs_ext) = self.kernel(|k| (k.current(cpu), k.runs_ext(cpu)));
        if flags & flag::KICK_IDLE != 0 && current.is_some() {
            return;
        }
        if let Some(current) = current.filter(|_| flags & flag::KICK_PREEMPT != 0 && runs_ext) {
            self.memory.put_slice(current, 0);
        }
        let late_ns = self.late_ns();
        self.kernel(|kernel| kernel.kick(cpu, late_ns));
    }

    pub fn reenqueue_local(&self) -> u32 {
        let here = self.here();
        let tasks: Vec<TaskId> = self.look().locals[here].iter().map(|e| e.task).collect();
        for &task in &tasks {
            self.take_out(task);
            self.do_enqueue(here, task, flag::ENQ_REENQ);
        }
        tasks.len() as u32
    }

    pub fn random(&self) -> u32 {
        self.state().random.below(1 << 32) as u32
    }

    /// An idle CPU among these, claimed; `words` null means all.
    pub fn pick_idle(&self, words: &[u64], flags: u64) -> Option<usize> {
        let here = self.here();
        self.kernel(|kernel| {
            let mut state = self.state();
            let State { idle, turns, .. } = &mut *state;
            let only_cores = flags & flag::PICK_IDLE_CORE != 0;
            idle.pick(kernel.topology(), words, only_cores, &mut turns[here])
        })
    }

    /// Any CPU among these, each in its turn.
    pub fn pick_any(&self, words: &[u64]) -> Option<usize> {
        let here = self.here();
        let mut state = self.state();
        let turn = &mut state.turns[here];
        let has = |cpu: &usize| words[cpu / 64] >> (cpu % 64) & 1 != 0;
        let found = (*turn + 1..self.nr_cpus).chain(0..=*turn).find(has)?;
        *turn = found;
        Some(found)
    }

    /// The default choice of an idle CPU (`scx_select_cpu_dfl()`): the waker's CPU for a wakee that
    /// it is about to wait for, the previous one, one of its LLC, of its node, any; wholly idle
    /// cores first.
    pub fn select_builtin(
        &self,
        task: TaskId,
        prev: usize,
        wake_flags: u64,
        among: Option<&[u64]>,
        flags: u64,
    ) -> Option<usize> {
        let here = self.here();
        self.kernel(|kernel| {
            let may: Vec<u64> = match among {
                None => kernel.allowed(task).words().to_vec(),
                Some(words) => (kernel.allowed(task).words().iter())
                    .zip(words)
                    .map(|(allowed, among)| allowed & among)
                    .collect(),
            };
            let has = |cpu: usize| may[cpu / 64] >> (cpu % 64) & 1 != 0;
            let queued_here = self.look().locals[here].len();
            let topology = kernel.topology();
            let within = |span: &[u64], first: usize| -> Vec<u64> {
                let mut words = vec![0; may.len()];
                for (at, word) in span.iter().enumerate() {
                    words[first + at] = may[first + at] & word;
                }
                words
            };
            let llc = topology.llc(prev).map(|llc| topology.llc_span(llc));
            let llc = llc.filter(|_| topology.nr_llcs() > 1);
            let llc = llc.map(|span| within(span.words(), span.first_word()));
            let node = (topology.nr_nodes() > 1)
                .then(|| more::of_node(topology, &may, topology.node(prev)));
            let mut state = self.state();
            let State { idle, turns, .. } = &mut *state;
            if wake_flags & flag::WAKE_SYNC != 0 {
                let near = topology.llc(here).is_some() && topology.llc(here) == topology.llc(prev);
                if near && has(prev) && idle.claim(topology, prev) {
                    return Some(prev);
                }
                // The waker's own CPU, if nothing else waits there and no other CPU is idle.
                let any_idle = idle.words(false).iter().any(|word| *word != 0);
                if !any_idle && queued_here == 0 && has(here) {
                    return Some(here);
                }
            }
            let turn = &mut turns[here];
            let near = [llc.as_deref(), node.as_deref(), Some(&may[..])];
            if topology.has_smt() {
                let core = topology.core_span(prev);
                if has(prev) && core.iter().all(|cpu| idle.is_idle(cpu)) {
                    idle.claim(topology, prev);
                    return Some(prev);
                }
                for words in near.iter().flatten() {
                    let cpu = idle.pick(topology, words, true, turn);
                    if cpu.is_some() {
                        return cpu;
                    }
                }
                if flags & flag::PICK_IDLE_CORE != 0 {
                    return None;
                }
            }
            if has(prev) && idle.claim(topology, prev) {
                return Some(prev);
            }
            near.iter()
                .flatten()
                .find_map(|words| idle.pick(topology, words, false, turn))
        })
    }

    pub fn start_timer(&self, timer: usize, at_ns: u64) {
        let at_ns = at_ns + self.late_ns();
        let mut state = self.state();
        let known = state.timers.iter().position(|&(at, _)| at == timer);
        let key = known.unwrap_or(state.timers.len());
        if known.is_none() {
            state.timers.push((timer, at_ns));
        }
        state.timers[key].1 = at_ns;
        drop(state);
        self.kernel(|kernel| kernel.start_timer(at_ns, key as u32));
    }

    /// The address of the timer with this key, unless it was started anew.
    pub fn expired(&self, key: u64) -> Option<usize> {
        let now_ns = self.now_ns();
        let (timer, at_ns) = *self.look().timers.get(key as usize)?;
        (at_ns == now_ns).then_some(timer)
    }
}

const ITER_REV: u64 = flag::ITER_REV << 16;
const SETS_SLICE: u64 = 1 << 33;
const SETS_VTIME: u64 = 1 << 34;
const ITER_FLAGS: u64 = !(u32::MAX as u64);

/// Walks over a queue. An iterator is six words of the program's: the queue, the place of the next
/// task, the task that was returned last (its number and one) with flags, the newest insertion that
/// it shows, and the slice and the virtual time that the next task to move gets, if its flag is set.
impl Core {
    pub fn iter_new(&self, it: &mut [u64; 6], dsq: u64, flags: u64) -> i32 {
        *it = [u64::MAX, 0, 0, 0, 0, 0];
        let Some(Place::User(number)) = self.find(dsq, 0) else {
            return -2;
        };
        let state = self.look();
        let queue = state.users[number]
            .as_ref()
            .expect("a queue that was found");
        *it = [
            number as u64,
            0,
            (flags & flag::ITER_REV) << 16,
            queue.seq(),
            0,
            0,
        ];
        0
    }

    pub fn move_set_slice(&self, it: &mut [u64; 6], slice: u64) {
        it[2] |= SETS_SLICE;
        it[4] = slice;
    }

    pub fn move_set_vtime(&self, it: &mut [u64; 6], vtime: u64) {
        it[2] |= SETS_VTIME;
        it[5] = vtime;
    }

    pub fn iter_next(&self, it: &mut [u64; 6]) -> Option<TaskId> {
        let state = self.look();
        let queue = state.users.get(it[0] as usize)?.as_ref()?;
        let last = (it[2] as u32).checked_sub(1).map(TaskId);
        let reverse = it[2] & ITER_REV != 0;
        let place = |at: u64| {
            if reverse {
                queue.len() as u64 - 1 - at
            } else {
                at
            }
        };
        // The task that was returned last may have left the queue since.
        let mut at = it[1];
        if let Some(last) = last {
            let still = at > 0
                && at <= queue.len() as u64
                && queue
                    .get(place(at - 1) as usize)
                    .is_some_and(|e| e.task == last);
            if !still {
                at -= at.min(1);
            }
        }
        while at < queue.len() as u64 {
            let entry = queue.get(place(at) as usize)?;
            at += 1;
            // Tasks that came after the walk began are passed over.
            if entry.seq <= it[3] {
                it[1] = at;
                it[2] = it[2] & ITER_FLAGS | u64::from(entry.task.0 + 1);
                return Some(entry.task);
            }
        }
        it[1] = at;
        it[2] &= ITER_FLAGS;
        None
    }

    /// `scx_bpf_dsq_move()`: moves a task of the queue that is walked over.
    pub fn dsq_move(
        &self,
        it: &mut [u64; 6],
        task: TaskId,
        dsq: u64,
        enq_flags: u64,
        by_vtime: bool,
    ) -> bool {
        let sets = it[2];
        it[2] &= !(SETS_SLICE | SETS_VTIME);
        let from = Place::User(it[0] as usize);
        if self.look().tasks[task.0 as usize].place != Some(from) {
            return false;
        }
        let here = self.here();
        let Some(to) = self.find(dsq, here) else {
            self.end(format!("non-existent DSQ {dsq:#x} to move task {task} to"));
            return false;
        };
        if let Place::Local(cpu) = to {
            let (home, may) = self.kernel(|k| (k.cpu_of(task), k.allowed(task).contains(cpu)));
            if home != cpu {
                if !may {
                    self.end(format!(
                        "CPU {cpu} to move to is not allowed for task {task}"
                    ));
                    return false;
                }
                self.take_out(task);
                self.fetch(task, home, cpu);
            }
        }
        self.take_out(task);
        if sets & SETS_SLICE != 0 {
            self.memory.put_slice(task, it[4]);
        }
        if sets & SETS_VTIME != 0 {
            self.memory.put_vtime(task, it[5]);
        }
        self.put_into(to, task, enq_flags, by_vtime);
        if self.look().dispatching.is_some() {
            self.state().dispatched += 1;
        }
        true
    }
}
