// SPDX-License-Identifier: GPL-2.0-or-later
//! The interpreter: one operation after the other, until one takes time or the task leaves its CPU.

use perch_workload::Op;

use crate::id::{ChannelId, CounterId, GuestId, TaskId, TimerId};

use super::{Interpreter, Phase, Progress, Stop, System};

/// Goes on with the next operation, or stops.
enum Next {
    /// The next one.
    Go,
    /// The same, unless another task should have the CPU.
    Look,
    /// Stops.
    Stop(Stop),
}

impl From<Progress> for Next {
    /// After an operation that may have woken somebody.
    #[inline]
    fn from(progress: Progress) -> Next {
        match progress {
            Progress::Done => Next::Look,
            Progress::Works => Next::Stop(Stop::Works),
            Progress::Sleeps => Next::Stop(Stop::Sleeps),
        }
    }
}

impl Interpreter {
    /// Carries out a task's operations until one takes time or the task leaves the CPU. Its one
    /// caller calls it for every other event of a run, so it is inlined there.
    #[inline(always)]
    pub fn run<S: System>(&mut self, system: &mut S, cpu: usize, task: TaskId) -> Stop {
        if self.threads[task].streaks_on.is_some() {
            self.see_streak_of(system, task);
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
                t.pc += 1;
                let work_ns = time.sample(&mut t.random);
                system.set_work(task, work_ns);
                system.use_caches(cpu, task);
                return Next::Stop(Stop::Works);
            }
            Op::Kernel(time) => {
                t.pc += 1;
                let work_ns = time.sample(&mut t.random);
                system.set_kernel_work(cpu, task, work_ns);
                return Next::Stop(Stop::Works);
            }
            Op::Count => {
                t.pc += 1;
                self.counted += 1;
            }
            Op::Jump(pc) => t.pc = pc,
            Op::Repeat { to, times } => t.repeat(to, times),
            Op::Vcpu { .. } => return Next::Stop(Stop::Carries),
            Op::Vhost { guest } => return Next::Stop(Stop::Vhost(GuestId(guest))),
            Op::Receive { channel } => {
                return self.receive(system, cpu, task, ChannelId(channel)).into();
            }
            // What is owed is run off before anybody can see what comes next.
            _ if system.owes(cpu, task) => return Next::Stop(Stop::Works),
            Op::Send {
                channel,
                lines,
                sync,
            } => {
                self.send(system, cpu, task, ChannelId(channel), lines, sync);
                return Next::Look;
            }
            Op::Write {
                channel,
                lines,
                room,
            } => {
                let channel = ChannelId(channel);
                return (self.write(system, cpu, task, channel, lines, room)).into();
            }
            Op::Sleep(time) => {
                t.pc += 1;
                let at_ns = system.now_ns() + time.sample(&mut t.random);
                system.wake_at(task, at_ns);
                return Next::Stop(Stop::Sleeps);
            }
            Op::Draw { counter, of } => {
                t.pc += 1;
                self.draw(system, cpu, task, CounterId(counter), of);
            }
            Op::Lock { first, wait } => match self.lock(system, cpu, task, first, wait) {
                Progress::Done => {
                    if self.begin_streak(system, cpu, task) {
                        return Next::Stop(Stop::Streaks);
                    }
                }
                progress => return progress.into(),
            },
            Op::Unlock { first, wake } => {
                return self.unlock(system, cpu, task, first, wake).into();
            }
            Op::Yield => {
                t.pc += 1;
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
                return self.release(system, cpu, task, channel, readers).into();
            }
            Op::StartClock => {
                t.pc += 1;
                self.stopwatch.started_ns = Some(system.now_ns());
                self.start_counting();
                system.start_counting();
            }
            Op::StopClock => {
                t.pc += 1;
                self.stopwatch.stopped_ns = Some(system.now_ns());
            }
            Op::StopClockAfter(tasks) => {
                t.pc += 1;
                self.stopwatch.arrived += 1;
                if self.stopwatch.arrived == tasks {
                    self.stopwatch.stopped_ns = Some(system.now_ns());
                }
            }
            Op::Next(period) => {
                t.pc += 1;
                t.timer_ns += period;
                if t.timer_ns > system.now_ns() {
                    system.wake_at(task, t.timer_ns);
                    return Next::Stop(Stop::Sleeps);
                }
            }
            Op::Timer {
                timer,
                period,
                absolute,
            } => {
                if self.use_timer(system, task, TimerId(timer), period, absolute) {
                    return Next::Stop(Stop::Sleeps);
                }
            }
            Op::Post { to, call } => return self.post(system, cpu, task, TaskId(to), call).into(),
            Op::WaitPosted(call) => return unseen(self.wait_posted(system, cpu, task, call)),
            Op::WakeAll(call) => {
                let progress = self.wake_all(system, cpu, task, call);
                // A call that has woken somebody can be interrupted between two.
                return match system.need_resched(cpu) {
                    true => Next::Stop(Stop::Preempted),
                    false => unseen(progress),
                };
            }
            Op::NoteLatency => self.note_latency(system, task),
            Op::NoteRequest => self.note_request(system, task),
            Op::LockCpu => return unseen(self.lock_cpu(system, cpu, task)),
            Op::UnlockCpu => self.unlock_cpu(system, cpu, task),
            Op::Spin(time) => return unseen(self.spin(system, cpu, task, time)),
            Op::Touch { lines } => self.touch_data(system, cpu, task, lines),
            Op::Fork(child) => {
                t.pc += 1;
                let child = TaskId(child);
                self.appears(child, system.now_ns());
                system.fork(child, cpu);
                return Next::Look;
            }
            Op::Exec => {
                t.pc += 1;
                return Next::Stop(Stop::Execs);
            }
            Op::Bind { mask } => {
                (t.phase, t.pc) = (Phase::Fresh, t.pc + 1);
                return Next::Stop(Stop::Binds(mask));
            }
            Op::Exit => return Next::Stop(Stop::Exits),
            op => return self.on_condition(system, cpu, task, op).into(),
        }
        Next::Go
    }
}

/// After an operation that wakes nobody: the task goes on whatever else its CPU should do.
fn unseen(progress: Progress) -> Next {
    match progress {
        Progress::Done => Next::Go,
        progress => progress.into(),
    }
}
