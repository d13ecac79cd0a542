// SPDX-License-Identifier: GPL-2.0-or-later
//! The interpreter: one operation after the other, until one takes time or the task leaves its CPU.

use perch_engine::Random;
use perch_policy::{CpuMask, Era};
use perch_sched::{Life, Violation};
use perch_workload::{Op, Workload};

use super::channel::{Channels, Space};
use super::condition::Conditions;
use super::counter::Counters;
use super::cpu_lock::CpuLocks;
use super::data::TaskData;
use super::futex::Futexes;
use super::mutex::Mutexes;
use super::outside::{self, OutsideStop};
use super::pipe::Pipes;
use super::spin::Spins;
use super::streak::Streaks;
use super::system::System;
use super::tally::{Stopwatch, Tally};
use super::thread::{Progress, Thread, Threads};
use super::timer::Timers;
use crate::id::{ChannelId, CounterId, GuestId, Id, MutexId, PipeId, TaskId, TimerId};
use crate::observe::{Requests, WAKE_PERCENTILES};

/// The reason why the interpreter stops.
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
    /// The task has started the workload's clock: counting begins anew.
    Counts,
    /// The task lets others run first.
    Yields,
    /// The task becomes another program.
    Execs,
    /// The task may use other CPUs from now on: those of this mask.
    Binds(u32),
    /// The task moves to this task group; `None` for the root group.
    Joins(Option<u32>),
    /// The task ends.
    Exits,
    /// The task is a vCPU.
    Carries,
    /// The task is the thread that moves this guest's packets.
    Vhost(GuestId),
}

/// Goes on with the next operation, or stops.
enum Next {
    Go,
    /// The next one, unless another task should have the CPU.
    Look,
    Stop(Stop),
}

impl From<Progress> for Next {
    /// After an operation that may have woken another task.
    #[inline]
    fn from(progress: Progress) -> Next {
        match progress {
            Progress::Done => Next::Look,
            Progress::Works => Next::Stop(Stop::Works),
            Progress::Sleeps => Next::Stop(Stop::Sleeps),
        }
    }
}

/// All programs of a run, and what they share.
pub struct Interpreter {
    threads: Threads,
    channels: Channels,
    pipes: Pipes,
    mutexes: Mutexes,
    counters: Counters,
    streaks: Streaks,
    timers: Timers,
    futexes: Futexes,
    conditions: Conditions,
    cpu_locks: CpuLocks,
    spins: Spins,
    data: TaskData,
    tally: Tally,
}

impl Interpreter {
    /// The programs of a workload, on a machine of this many CPUs with a kernel of `era`.
    pub fn new(workload: &Workload, nr_cpus: usize, era: Era, seed: u64) -> Interpreter {
        let threads = (0u32..).zip(&workload.tasks).map(|(id, spec)| {
            let random = Random::new(seed, u64::from(id) + 1);
            Thread::new(TaskId(id), spec.program.clone(), random)
        });
        Interpreter {
            threads: threads.collect(),
            channels: Channels::new(workload.channels),
            pipes: Pipes::new(workload.pipes, era),
            mutexes: Mutexes::new(workload.mutexes),
            counters: Counters::new(workload.counters),
            streaks: Streaks::new(if workload.mutexes > 0 { nr_cpus } else { 0 }),
            timers: Timers::default(),
            futexes: Futexes::default(),
            conditions: Conditions::default(),
            cpu_locks: CpuLocks::default(),
            spins: Spins::default(),
            data: TaskData::default(),
            tally: Tally::default(),
        }
    }

    /// The moment at which a task appears by itself, if it does.
    pub fn starts_at(&mut self, task: TaskId, workload: &Workload) -> Option<u64> {
        let start = workload.tasks[task.index()].start?;
        Some(self.threads[task].sample(start))
    }

    /// A task appears: its period begins.
    pub fn appears(&mut self, task: TaskId, now_ns: u64) {
        self.threads[task].timer_ns = now_ns;
    }

    /// One of the CPUs that a task may use, drawn at random.
    pub fn draw_cpu(&mut self, task: TaskId, allowed: &CpuMask) -> usize {
        self.threads[task].draw_cpu(allowed).unwrap_or(0)
    }

    /// The CPU to which a task on `cpu` goes that binds itself to others; `None` if it may stay.
    /// sched_setaffinity takes any of the new CPUs, one after the other.
    pub fn draw_cpu_to_go_to(
        &mut self,
        task: TaskId,
        cpu: usize,
        allowed: &CpuMask,
    ) -> Option<usize> {
        if allowed.contains(cpu) { None } else { self.threads[task].draw_cpu(allowed) }
    }

    /// Makes every step an event from now on, also where many could be one.
    pub fn step_by_step(&mut self) {
        self.streaks.step_by_step();
    }

    /// Returns whether streaks are possible, so that the events of one moment have to come in a fixed
    /// order.
    pub fn has_mutexes(&self) -> bool {
        !self.mutexes.is_empty()
    }

    /// The moments at which the workload started and stopped its clock.
    pub fn stopwatch(&self) -> Stopwatch {
        self.tally.stopwatch()
    }

    /// Units of work that tasks have done since counting began.
    pub fn counted(&self) -> u64 {
        self.tally.counted()
    }

    /// Counts units of work anew.
    pub fn start_counting(&mut self) {
        self.tally.start_counting();
    }

    /// Keeps wake-up latencies and requests from now on, or no longer. Returns those kept so far.
    pub fn keep_requests(&mut self, requests: Option<Requests>) -> Option<Requests> {
        self.tally.keep_requests(requests)
    }

    /// See [`Tally::end_batch`].
    pub fn end_batch(&mut self) -> Option<[f64; WAKE_PERCENTILES.len()]> {
        self.tally.end_batch()
    }

    /// Puts a message that comes from elsewhere into a channel, on `cpu`. Returns the task that
    /// waited for one, which the caller has to wake.
    pub fn put_message(&mut self, channel: ChannelId, lines: u32, cpu: usize) -> Option<TaskId> {
        self.channels.put(channel, lines, cpu)
    }

    /// A task on another computer goes on, until something there takes time or it waits. It calls
    /// `send` for each message that it sends, with the channel and the message's cache lines.
    pub fn run_outside(
        &mut self,
        task: TaskId,
        now_ns: u64,
        send: impl FnMut(ChannelId, u32),
    ) -> OutsideStop {
        let thread = &mut self.threads[task];
        outside::run(thread, &mut self.channels, &mut self.tally, now_ns, send)
    }

    /// Carries out a task's operations until one takes time or the task leaves the CPU. Its one
    /// caller calls it for every other event of a run, so it is inlined there.
    #[inline(always)]
    pub fn run<S: System>(&mut self, system: &mut S, cpu: usize, task: TaskId) -> Stop {
        if let Some(on) = self.threads[task].streaks_on {
            let (threads, mutexes) = (&mut self.threads, &mut self.mutexes);
            self.streaks.see(system, on.index(), threads, mutexes);
        }
        loop {
            match self.operate(system, cpu, task) {
                Next::Go => {}
                Next::Look if system.need_resched(cpu) => return Stop::Preempted,
                Next::Look => {}
                Next::Stop(stop) => return stop,
            }
        }
    }

    #[inline(always)]
    fn operate<S: System>(&mut self, system: &mut S, cpu: usize, task: TaskId) -> Next {
        let t = &mut self.threads[task];
        // Each arm copies what it needs: an operation is larger than most of them use.
        match *t.op() {
            Op::Run(time) => {
                t.step();
                let work_ns = t.sample(time);
                system.set_work(task, work_ns);
                system.use_caches(cpu, task);
                return Next::Stop(Stop::Works);
            }
            Op::Kernel(time) => {
                t.step();
                let work_ns = t.sample(time);
                system.set_kernel_work(cpu, task, work_ns);
                return Next::Stop(Stop::Works);
            }
            Op::Count => {
                t.step();
                self.tally.count();
            }
            Op::Jump(pc) => t.pc = pc,
            Op::Repeat { to, times } => t.repeat(to, times),
            Op::Vcpu { .. } => return Next::Stop(Stop::Carries),
            Op::Vhost { guest } => return Next::Stop(Stop::Vhost(GuestId(guest))),
            Op::Receive { channel } => {
                let channel = ChannelId(channel);
                return self.channels.receive(system, cpu, t, channel).into();
            }
            // The task runs off what it owes before others can see its next operation's effect.
            _ if system.owes(cpu, task) => return Next::Stop(Stop::Works),
            Op::Send { channel, lines, sync } => {
                let channel = ChannelId(channel);
                self.channels.send(system, cpu, t, channel, lines, sync);
                return Next::Look;
            }
            Op::Write { channel, lines, room, low, sync } => {
                let (channel, space) = (ChannelId(channel), Space { room, low, sync });
                return (self.channels.write(system, cpu, t, channel, lines, space)).into();
            }
            Op::Sleep(time) => {
                t.step();
                let at_ns = system.now_ns() + t.sample(time);
                system.wake_at(task, at_ns);
                return Next::Stop(Stop::Sleeps);
            }
            Op::Draw { counter, of } => {
                self.counters.draw(system, cpu, t, CounterId(counter), of);
            }
            Op::Lock { first, wait } => {
                let mutex = MutexId(first + t.drawn);
                let (threads, mutexes) = (&mut self.threads, &mut self.mutexes);
                self.streaks.end_for(system, mutex, threads, mutexes);
                match mutexes.lock(system, cpu, &mut threads[task], mutex, wait) {
                    Progress::Done => {
                        if self.streaks.begin(system, cpu, task, threads, mutexes) {
                            return Next::Stop(Stop::Streaks);
                        }
                    }
                    progress => return progress.into(),
                }
            }
            Op::Unlock { first, wake } => {
                let mutex = MutexId(first + t.drawn);
                return self.mutexes.unlock(system, cpu, t, mutex, wake).into();
            }
            Op::Yield => {
                t.step();
                return Next::Stop(Stop::Yields);
            }
            op => return self.operate_rarely(system, cpu, task, op),
        }
        Next::Go
    }

    /// The operations that are seldom met, or cost much themselves.
    #[inline(never)]
    fn operate_rarely<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        task: TaskId,
        op: Op,
    ) -> Next {
        let t = &mut self.threads[task];
        match op {
            Op::Release { channel, readers } => {
                let channel = ChannelId(channel);
                return (self.channels.release(system, cpu, t, channel, readers)).into();
            }
            Op::WritePipe { pipe, lines, fits } => {
                return self.pipes.write(system, cpu, t, PipeId(pipe), lines, fits).into();
            }
            Op::ReadPipe { pipe } => return self.pipes.read(system, cpu, t, PipeId(pipe)).into(),
            Op::StartClock => {
                t.step();
                if self.tally.start_clock(system.now_ns()) {
                    return Next::Stop(Stop::Counts);
                }
            }
            Op::StopClock => {
                t.step();
                self.tally.stop_clock(system.now_ns());
            }
            Op::StopClockAfter(tasks) => {
                t.step();
                self.tally.stop_clock_after(tasks, system.now_ns());
            }
            Op::Next(period) => {
                t.step();
                t.timer_ns += period;
                if t.timer_ns > system.now_ns() {
                    system.wake_at(task, t.timer_ns);
                    return Next::Stop(Stop::Sleeps);
                }
            }
            Op::Timer { timer, period, absolute } => {
                let timer = TimerId(timer);
                return unseen(self.timers.wait(system, t, timer, period, absolute));
            }
            Op::Post { to, call } => {
                return (self.futexes.post(system, cpu, t, TaskId(to), call)).into();
            }
            Op::WaitPosted(call) => return unseen(self.futexes.wait(system, cpu, t, call)),
            Op::WakeAll(call) => {
                let progress = self.futexes.wake_all(system, cpu, t, call);
                // A call that has woken a task can be interrupted before it wakes the next one.
                return if system.need_resched(cpu) {
                    Next::Stop(Stop::Preempted)
                } else {
                    unseen(progress)
                };
            }
            Op::NoteLatency => {
                t.step();
                let since_ns = self.futexes.stamp_ns(task);
                self.tally.note_latency(system.now_ns() - since_ns);
            }
            Op::NoteRequest => {
                t.step();
                self.tally.count_request(system.now_ns());
            }
            Op::LockCpu => return unseen(self.cpu_locks.lock(system, cpu, t)),
            Op::UnlockCpu => self.cpu_locks.unlock(system, cpu, t),
            Op::Spin(time) => return unseen(self.spins.spin(system, cpu, t, time)),
            Op::Touch { lines } => self.data.touch(system, cpu, t, lines),
            Op::Fork(child) => {
                t.step();
                let child = TaskId(child);
                self.appears(child, system.now_ns());
                system.fork(child, cpu);
                return Next::Look;
            }
            Op::Exec => {
                t.step();
                return Next::Stop(Stop::Execs);
            }
            Op::Bind { mask } => {
                t.done();
                return Next::Stop(Stop::Binds(mask));
            }
            Op::Join { group } => {
                t.done();
                return Next::Stop(Stop::Joins(group));
            }
            Op::Exit => return Next::Stop(Stop::Exits),
            op => return self.conditions.operate(system, cpu, t, op).into(),
        }
        Next::Go
    }
}

/// After an operation that wakes no task: the task goes on whatever else its CPU should do.
fn unseen(progress: Progress) -> Next {
    match progress {
        Progress::Done => Next::Go,
        progress => progress.into(),
    }
}

/// For the auditor.
impl Interpreter {
    /// Brings everything to where streaks that are over ended, for a look at it from outside.
    pub fn see_streaks<S: System>(&mut self, system: &mut S) {
        let (threads, mutexes) = (&mut self.threads, &mut self.mutexes);
        self.streaks.see_all(system, threads, mutexes);
    }

    /// Messages, mutexes and condition variables are in order. `life` says where a task is in its
    /// life.
    ///
    /// # Errors
    /// The thing that is not, and why.
    pub fn check(&self, life: &dyn Fn(TaskId) -> Life) -> Result<(), Violation> {
        self.channels.check(&self.threads, life)?;
        self.pipes.check(&self.threads, life)?;
        self.mutexes.check(&self.threads, life)?;
        self.conditions.check()
    }

    /// Adds to each task's reasons to wake the messages, room, mutexes, futexes and condition
    /// variables that it sleeps on.
    pub fn add_reasons(&self, reasons: &mut [u32]) {
        let (messages, mutexes) = (self.channels.sleepers(), self.mutexes.sleepers());
        let (conditions, futexes) = (self.conditions.sleepers(), self.futexes.sleepers());
        for task in
            messages.chain(self.pipes.sleepers()).chain(mutexes).chain(conditions).chain(futexes)
        {
            reasons[task.index()] += 1;
        }
    }
}
