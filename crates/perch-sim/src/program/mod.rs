// SPDX-License-Identifier: GPL-2.0-or-later
//! What tasks do: the interpreter of their programs, and what programs share: channels, mutexes,
//! futexes, condition variables, counters and timers.
//!
//! Nothing here knows a queue or a class. The interpreter sees a [`System`], on which a task works,
//! is charged, wakes, forks and arms timers, and it stops where the task would leave the CPU: the
//! caller has the task sleep, yield, move or end, wherever the task is.

mod channel;
mod check;
mod condition;
mod futex;
mod interpret;
mod mutex;
mod outside;
mod streak;
mod timer;

use std::sync::Arc;

use perch_engine::Random;
use perch_policy::CpuMask;
use perch_sched::hardware::Costs;
use perch_sched::{Ended, Rounds};
use perch_workload::{Op, Workload};

use crate::id::{ChannelId, CounterId, CpuId, GuestId, Id, IdVec, MutexId, TaskId, TimerId};
use crate::observe::Requests;

use channel::Channel;
use condition::Conditions;
use futex::Futexes;
use mutex::{Counter, Mutex};
pub use outside::OutsideStop;
use streak::Pending;
pub use timer::Stopwatch;

/// The machine and its kernel, as a program sees them. `cpu` is the CPU on which the task runs whose
/// program asks; of a task in a virtual machine it is that of its vCPU.
pub trait System {
    /// The moment, nanoseconds.
    fn now_ns(&self) -> u64;
    /// What the hardware charges.
    fn costs(&self) -> &Costs;
    /// The task should give way as soon as possible.
    fn need_resched(&self, cpu: usize) -> bool;

    /// Whether the task has to work before its next operation.
    fn owes(&self, cpu: usize, task: TaskId) -> bool;
    /// The same, but for what its CPU waited for contended lines.
    fn owes_work(&self, task: TaskId) -> bool;
    /// The task has so much work before its operation goes on.
    fn set_work(&mut self, task: TaskId, work_ns: u64);
    /// The same, in the kernel.
    fn set_kernel_work(&mut self, cpu: usize, task: TaskId, work_ns: u64);
    /// The task has so much more to do before its next operation.
    fn charge(&mut self, task: TaskId, work_ns: u64);
    /// The same, in the kernel.
    fn charge_kernel(&mut self, cpu: usize, task: TaskId, work_ns: u64);
    /// The task begins a stretch of computing with the lines of its working set.
    fn use_caches(&mut self, cpu: usize, task: TaskId);
    /// Lines that tasks brought into a CPU's caches so far.
    fn fill(&self, cpu: usize) -> u64;
    /// The task brings so many lines into a CPU's caches.
    fn add_fill(&mut self, cpu: usize, lines: u32);
    /// A CPU's speed, 1024ths.
    fn speed_1024(&self, cpu: usize) -> u32;
    /// Another task, which spins, looks at what it spins for: at once if it runs, or when it runs.
    fn look_again(&mut self, task: TaskId);

    /// Wakes a sleeping task. Returns what that costs the waker, nanoseconds of work.
    fn wake(&mut self, wakee: TaskId, cpu: usize, waker: TaskId, sync: bool) -> u64;
    /// Has a task wake up by itself at `at_ns`.
    fn wake_at(&mut self, task: TaskId, at_ns: u64);
    /// A new task appears, whose parent runs on `cpu`.
    fn fork(&mut self, child: TaskId, cpu: usize);
    /// Sends a message to another computer, if that is where its channel is read. Returns whether it
    /// is.
    fn transmit(&mut self, cpu: usize, task: TaskId, channel: ChannelId, lines: u32) -> bool;
    /// The task is, or is no longer, in kernel code with interrupts off.
    fn set_atomic(&mut self, task: TaskId, is: bool);

    /// The measured part of the run begins.
    fn start_counting(&mut self);

    /// Whether the task is one of this machine and no vCPU.
    fn is_plain(&self, task: TaskId) -> bool;
    /// Whether the task has its CPU for itself. See [`perch_sched::Sched::is_alone`].
    fn is_alone(&mut self, cpu: usize) -> bool;
    /// See [`perch_sched::Sched::begin_streak`].
    fn begin_streak(&mut self, cpu: usize, task: TaskId, of: &Rounds);
    /// See [`perch_sched::Sched::end_streak`].
    fn end_streak(&mut self, cpu: usize);
    /// See [`perch_sched::Sched::take_ended`].
    fn take_ended(&mut self, cpu: usize) -> Option<Ended>;
}

/// Why the interpreter stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The task works before it goes on.
    Works,
    /// The task sleeps until it is woken.
    Sleeps,
    /// Another task should have the CPU.
    Preempted,
    /// The task is in a streak, and the event of its end is on its way.
    Streaks,
    /// The task lets others run first.
    Yields,
    /// The task becomes another program.
    Execs,
    /// The task may use other CPUs from now on: those of this mask.
    Binds(u32),
    /// The task ends.
    Exits,
    /// The task is a vCPU.
    Carries,
    /// The task is the thread that moves this guest's packets.
    Vhost(GuestId),
}

/// How far a task has come when the interpreter turns away from an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The operation is done.
    Done,
    /// The task has to work before it goes on with the same operation.
    Works,
    /// The task sleeps, and goes on with the same operation when it is woken.
    Sleeps,
}

/// How far a task is in an operation that takes several steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// It has not begun.
    #[default]
    Fresh,
    /// It is in the system call that may put it to sleep, or wake somebody.
    InCall,
    /// It slept and was woken.
    Woken,
}

/// A task's program and how far the task is in it.
#[derive(Debug)]
struct Thread {
    program: Arc<[Op]>,
    /// Next operation.
    pc: u32,
    /// How far it is in that operation.
    phase: Phase,
    /// Rounds of the loop under way that are done.
    rounds: u64,
    /// What it drew last, see [`Op::Draw`].
    drawn: u32,
    /// When its period began, see [`Op::Next`].
    timer_ns: u64,
    /// The CPU on which it began a streak whose end it has not seen.
    streaks_on: Option<CpuId>,
    /// Its random numbers.
    random: Random,
}

impl Thread {
    /// The operation that is next, or under way.
    #[inline(always)]
    fn op(&self) -> &Op {
        &self.program[self.pc as usize]
    }

    /// A round of a loop is done: the next one begins at `to`, unless that was the last of `times`.
    #[inline(always)]
    fn repeat(&mut self, to: u32, times: u64) {
        self.rounds += 1;
        if self.rounds < times {
            self.pc = to;
        } else {
            self.rounds = 0;
            self.pc += 1;
        }
    }
}

/// All programs of a run, and what they share.
pub struct Interpreter {
    threads: IdVec<TaskId, Thread>,
    channels: IdVec<ChannelId, Channel>,
    mutexes: IdVec<MutexId, Mutex>,
    counters: IdVec<CounterId, Counter>,
    /// The next moments of shared timers, once they are used.
    timers: IdVec<TimerId, Option<u64>>,
    futexes: Futexes,
    /// Once they are used.
    conditions: Conditions,
    /// By CPU: the streak that began there, until its end is known to its task.
    streaks: Vec<Option<Pending>>,
    /// Every step is an event: no streaks.
    stepwise: bool,
    stopwatch: Stopwatch,
    counted: u64,
    nr_cpus: usize,
    /// For workloads that are judged by it.
    requests: Option<Box<Requests>>,
}

impl Interpreter {
    /// The programs of a workload, on a machine of so many CPUs.
    pub fn new(workload: &Workload, nr_cpus: usize, seed: u64) -> Interpreter {
        let threads = (0u64..).zip(&workload.tasks).map(|(id, spec)| Thread {
            program: spec.program.clone(),
            pc: 0,
            phase: Phase::Fresh,
            rounds: 0,
            drawn: 0,
            timer_ns: 0,
            streaks_on: None,
            random: Random::new(seed, id + 1),
        });
        Interpreter {
            threads: threads.collect(),
            channels: (0..workload.channels).map(|_| Channel::default()).collect(),
            mutexes: (0..workload.mutexes).map(|_| Mutex::default()).collect(),
            counters: (0..workload.counters).map(|_| Counter::default()).collect(),
            timers: IdVec::default(),
            futexes: Futexes::default(),
            conditions: Conditions::default(),
            streaks: vec![None; if workload.mutexes > 0 { nr_cpus } else { 0 }],
            stepwise: false,
            stopwatch: Stopwatch::default(),
            counted: 0,
            nr_cpus,
            requests: None,
        }
    }

    /// When a task appears by itself, if it does.
    pub fn starts_at(&mut self, task: TaskId, workload: &Workload) -> Option<u64> {
        let start = workload.tasks[task.index()].start?;
        Some(start.sample(&mut self.threads[task].random))
    }

    /// A task appears: its period begins.
    pub fn appears(&mut self, task: TaskId, now_ns: u64) {
        self.threads[task].timer_ns = now_ns;
    }

    /// One of the CPUs that a task may use, drawn at random.
    pub fn draw_cpu(&mut self, task: TaskId, allowed: &CpuMask) -> usize {
        draw_cpu(&mut self.threads[task].random, allowed).unwrap_or(0)
    }

    /// The CPU to which a task on `cpu` goes that binds itself to others; `None` if it may stay.
    /// sched_setaffinity takes any of the new CPUs, one after the other.
    pub fn draw_cpu_to_go_to(
        &mut self,
        task: TaskId,
        cpu: usize,
        allowed: &CpuMask,
    ) -> Option<usize> {
        match allowed.contains(cpu) {
            true => None,
            false => draw_cpu(&mut self.threads[task].random, allowed),
        }
    }

    /// Makes every step an event from now on, also where many could be one.
    pub fn step_by_step(&mut self) {
        self.stepwise = true;
    }

    /// Whether streaks are possible, so that the events of one moment have to come in a fixed order.
    pub fn has_mutexes(&self) -> bool {
        !self.mutexes.is_empty()
    }

    /// When the workload started and stopped its clock.
    pub fn stopwatch(&self) -> Stopwatch {
        self.stopwatch
    }

    /// Units of work done since counting began.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Counts units of work anew.
    pub fn start_counting(&mut self) {
        self.counted = 0;
    }

    /// Keeps wake-up latencies and requests from now on, or no longer.
    pub fn keep_requests(&mut self, requests: Option<Requests>) -> Option<Requests> {
        let kept = std::mem::replace(&mut self.requests, requests.map(Box::new));
        kept.map(|requests| *requests)
    }

    /// Puts a message that comes from elsewhere into a channel, on `cpu`. Returns the task that
    /// waited for one, which is to be woken.
    pub fn put_message(&mut self, channel: ChannelId, lines: u32, cpu: usize) -> Option<TaskId> {
        self.channels[channel].put(lines, cpu);
        self.channels[channel].waiting.pop_front()
    }

    /// The task goes on to its next operation.
    fn done(&mut self, task: TaskId) -> Progress {
        let t = &mut self.threads[task];
        t.phase = Phase::Fresh;
        t.pc += 1;
        Progress::Done
    }

    /// Draws an amount from the task's own random numbers.
    fn sample(&mut self, task: TaskId, amount: perch_engine::Dist) -> u64 {
        amount.sample(&mut self.threads[task].random)
    }
}

fn draw_cpu(random: &mut Random, allowed: &CpuMask) -> Option<usize> {
    let nth = random.below(u64::from(allowed.weight())) as usize;
    allowed.iter().nth(nth)
}
