// SPDX-License-Identifier: GPL-2.0-or-later
//! Running tasks: segments of work, the operations between them, and switching.

use super::mutex::Step;
use super::task::{Life, Place};
use super::wake::Waker;
use super::{Kernel, kind};
use crate::engine::Event;
use crate::hardware::Use;
use crate::workload::Op;
use perch_policy::{Mode, Wake};

impl Kernel<'_> {
    /// Starts (or goes on with) the running task's work: overheads first, they are part of it.
    pub(super) fn begin_segment(&mut self, cpu: usize) {
        self.settle_lines(cpu);
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else {
            return;
        };
        let t = &mut self.tasks[task as usize];
        t.left_ns += std::mem::take(&mut t.debt_ns);
        if let Place::Vcpu(guest, vcpu) = t.place {
            self.carry_guest(guest, vcpu, task);
        }
        let (c, t) = (&mut self.cpus[cpu], &self.tasks[task as usize]);
        c.segment_start_ns = self.now;
        c.segment_tag = c.segment_tag.wrapping_add(1);
        self.events.push(Event {
            at_ns: self.now + c.wall_ns(t.left_ns),
            kind: kind::SEGMENT,
            key: cpu as u32,
            tag: c.segment_tag,
        });
    }

    /// Interrupts the running task's work, remembering what is left of it.
    pub(super) fn stop_segment(&mut self, cpu: usize) {
        self.end_streak(cpu);
        let c = &mut self.cpus[cpu];
        let Some(task) = c.current else {
            return;
        };
        c.segment_tag = c.segment_tag.wrapping_add(1);
        let done = (self.now - c.segment_start_ns) * u64::from(c.speed_1024) / 1024;
        let t = &mut self.tasks[task as usize];
        t.left_ns = t.left_ns.saturating_sub(done);
    }

    /// The running task's work is done: on to its next operation.
    pub(super) fn segment_end(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        self.finish_streak(cpu);
        self.tasks[task as usize].left_ns = 0;
        self.advance(cpu, task);
    }

    /// Carries out operations until one takes time or the task leaves the CPU.
    pub(super) fn advance(&mut self, cpu: usize, task: u32) {
        loop {
            let t = &mut self.tasks[task as usize];
            // Each arm copies what it needs: an operation is larger than most of them use.
            match t.program[t.pc as usize] {
                Op::Run(time) => {
                    t.pc += 1;
                    t.left_ns = time.sample(&mut t.random);
                    self.touch_llc(cpu, task, Some(cpu), 0);
                    return self.begin_segment(cpu);
                }
                Op::Kernel(time) => {
                    t.pc += 1;
                    t.left_ns = time.sample(&mut t.random);
                    let work_ns = t.left_ns;
                    self.note_kernel(cpu, work_ns);
                    return self.begin_segment(cpu);
                }
                Op::Count => {
                    t.pc += 1;
                    self.metrics.counted += 1;
                }
                Op::Jump(pc) => t.pc = pc,
                Op::Repeat { to, times } => {
                    t.rounds += 1;
                    if t.rounds < times {
                        t.pc = to;
                    } else {
                        t.rounds = 0;
                        t.pc += 1;
                    }
                }
                Op::Vcpu { .. } => return self.run_vcpu(cpu, task),
                Op::Vhost { guest } => match self.vhost(cpu, task, guest) {
                    Step::Works => return self.begin_segment(cpu),
                    Step::Left => return,
                    Step::Done if self.cpus[cpu].need_resched => return self.preempt(cpu),
                    Step::Done => {}
                },
                Op::Receive { channel } => match self.receive(cpu, task, channel) {
                    Step::Works => return self.begin_segment(cpu),
                    Step::Left => return,
                    Step::Done if self.cpus[cpu].need_resched => return self.preempt(cpu),
                    Step::Done => {}
                },
                // What is owed is run off before anybody can see what comes next.
                _ if t.debt_ns > 0 => return self.begin_segment(cpu),
                _ if self.lines.is_some() && self.cpus[cpu].owed_ns > 0 => {
                    return self.begin_segment(cpu);
                }
                Op::Send {
                    channel,
                    lines,
                    sync,
                } => {
                    self.send(cpu, task, channel, lines, sync);
                    if self.cpus[cpu].need_resched {
                        return self.preempt(cpu);
                    }
                }
                Op::Write {
                    channel,
                    lines,
                    room,
                } => {
                    if self.write(cpu, task, channel, lines, room) == Step::Left {
                        return;
                    }
                    if self.cpus[cpu].need_resched {
                        return self.preempt(cpu);
                    }
                }
                Op::Release { channel, readers } => {
                    if self.release(cpu, task, channel, readers) == Step::Works {
                        return self.begin_segment(cpu);
                    }
                    if self.cpus[cpu].need_resched {
                        return self.preempt(cpu);
                    }
                }
                Op::StartClock => {
                    t.pc += 1;
                    self.stopwatch.started_ns = Some(self.now);
                    self.start_measuring();
                }
                Op::StopClock => {
                    t.pc += 1;
                    self.stopwatch.stopped_ns = Some(self.now);
                }
                Op::StopClockAfter(tasks) => {
                    t.pc += 1;
                    self.stopwatch.arrived += 1;
                    if self.stopwatch.arrived == tasks {
                        self.stopwatch.stopped_ns = Some(self.now);
                    }
                }
                Op::Sleep(time) => {
                    t.pc += 1;
                    let at_ns = self.now + time.sample(&mut t.random);
                    return self.sleep_until(cpu, task, at_ns);
                }
                Op::Next(period) => {
                    t.pc += 1;
                    t.timer_ns += period;
                    let at_ns = t.timer_ns;
                    if at_ns > self.now {
                        return self.sleep_until(cpu, task, at_ns);
                    }
                }
                op @ Op::Timer { .. } => {
                    if self.use_timer(cpu, task, op) {
                        return;
                    }
                }
                Op::Draw { counter, of } => {
                    t.pc += 1;
                    self.draw(cpu, task, counter, of);
                }
                Op::Lock { first, wait } => match self.lock(cpu, task, first, wait) {
                    Step::Done => {
                        if self.begin_streak(cpu, task) {
                            return;
                        }
                    }
                    Step::Works => return self.begin_segment(cpu),
                    Step::Left => return,
                },
                Op::Unlock { first, wake } => {
                    if self.unlock(cpu, task, first, wake) == Step::Works {
                        return self.begin_segment(cpu);
                    }
                    if self.cpus[cpu].need_resched {
                        return self.preempt(cpu);
                    }
                }
                Op::Yield => {
                    t.pc += 1;
                    if self.give_way(cpu, task) {
                        return;
                    }
                }
                Op::Post { to, call } => match self.post(cpu, task, to, call) {
                    Step::Works => return self.begin_segment(cpu),
                    _ if self.cpus[cpu].need_resched => return self.preempt(cpu),
                    _ => {}
                },
                Op::WaitPosted(call) => match self.wait_posted(cpu, task, call) {
                    Step::Works => return self.begin_segment(cpu),
                    Step::Left => return,
                    Step::Done => {}
                },
                Op::WakeAll(call) => {
                    let step = self.wake_all(cpu, task, call);
                    if self.cpus[cpu].need_resched {
                        return self.preempt(cpu);
                    }
                    if step == Step::Works {
                        return self.begin_segment(cpu);
                    }
                }
                Op::NoteLatency => self.note_latency(task),
                Op::NoteRequest => self.note_request(task),
                Op::LockCpu => {
                    if self.lock_cpu(cpu, task) == Step::Works {
                        return self.begin_segment(cpu);
                    }
                }
                Op::UnlockCpu => self.unlock_cpu(cpu, task),
                Op::Spin(time) => {
                    if self.spin(cpu, task, time) == Step::Works {
                        return self.begin_segment(cpu);
                    }
                }
                Op::Touch { lines } => self.touch_data(cpu, task, lines),
                Op::Fork(child) => {
                    t.pc += 1;
                    self.fork(child, cpu);
                    if self.cpus[cpu].need_resched {
                        return self.preempt(cpu);
                    }
                }
                Op::Exec => {
                    t.pc += 1;
                    if self.exec(cpu, task) {
                        return;
                    }
                }
                Op::Exit => return self.exit(cpu, task),
                op => match self.on_condition(cpu, task, op) {
                    Step::Works => return self.begin_segment(cpu),
                    Step::Done if !self.cpus[cpu].need_resched => {}
                    Step::Done => return self.preempt(cpu),
                    Step::Left => return,
                },
            }
        }
    }

    /// The running task sleeps.
    pub(super) fn block(&mut self, cpu: usize, task: u32) {
        if let Place::Guest(_) = self.tasks[task as usize].place {
            return self.leave_vcpu(cpu, task, Life::Asleep);
        }
        if self.is_rt(task) {
            return self.leave_rt(cpu, task, Life::Asleep);
        }
        let left = self.dequeue_sleeper(cpu, task);
        self.leave_caches(cpu, task);
        self.tasks[task as usize].life = Life::Asleep;
        self.cpus[cpu].current = None;
        self.put_levels(self.queue_of(task), task, !left);
        if self.caches.mode != Mode::Off {
            self.stops_running(cpu, task);
            self.reserve(cpu, -1);
            if left {
                self.count_wish(cpu, task, -1);
            }
        }
        self.schedule(cpu);
    }

    /// The running task calls exec: the cheapest moment to move. Returns whether it left.
    fn exec(&mut self, cpu: usize, task: u32) -> bool {
        if self.is_rt(task) || self.tasks[task as usize].place != Place::Host {
            return false;
        }
        let wake = Wake {
            now_ns: self.now,
            this_cpu: cpu,
            prev_cpu: cpu,
            exec: true,
            ..Wake::default()
        };
        let to = self.decide(task, &wake, Waker::Task(task)).cpu;
        to != cpu && self.push_running(cpu, to)
    }

    /// The running task ends.
    fn exit(&mut self, cpu: usize, task: u32) {
        if let Place::Guest(_) = self.tasks[task as usize].place {
            return self.leave_vcpu(cpu, task, Life::Dead);
        }
        if self.is_rt(task) {
            return self.leave_rt(cpu, task, Life::Dead);
        }
        self.update_current(cpu);
        let queue = self.queue_of(task);
        self.touch_levels(queue);
        self.touch_task(task);
        self.leave_queue(cpu, task, true);
        self.cpus[cpu].current = None;
        self.put_levels(queue, task, false);
        if self.caches.mode != Mode::Off {
            self.stops_running(cpu, task);
            self.reserve(cpu, -1);
            self.count_wish(cpu, task, -1);
            self.count_thread(task, -1);
        }
        self.tasks[task as usize].life = Life::Dead;
        let average = self.entities[task as usize].average;
        self.queue_mut(queue).average.detach(&average);
        if queue != cpu as u32 {
            self.propagate(queue, -1);
        }
        self.schedule(cpu);
    }

    /// The running task gives way.
    pub(super) fn preempt(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        if self.goes_on_rt(cpu, task) {
            return self.go_on(cpu, task);
        }
        self.leave_caches(cpu, task);
        self.put_current(cpu);
        self.schedule(cpu);
    }

    /// The running task yields. Returns whether it left the CPU; alone there it keeps it, and so
    /// it does when it is so far behind the others that they may not go first.
    fn give_way(&mut self, cpu: usize, task: u32) -> bool {
        if let Place::Guest(_) = self.tasks[task as usize].place {
            return self.give_way_in_guest(cpu, task);
        }
        if self.is_rt(task) {
            return self.give_way_rt(cpu, task);
        }
        if self.pick_rt(cpu).is_some() {
            self.preempt(cpu);
            return true;
        }
        if self.queues[cpu].nr == 1 {
            return false;
        }
        let picked_sum_ns = self.entities[task as usize].picked_sum_ns;
        let next = self.pick_after_yield(cpu, task);
        if next == task {
            self.set_current(cpu, task);
            self.entities[task as usize].picked_sum_ns = picked_sum_ns;
            return false;
        }
        self.leave_caches(cpu, task);
        self.switch_to(cpu, next);
        true
    }

    /// Switches if somebody asked for it while the running task was in the middle of its work.
    pub(super) fn resched_if_needed(&mut self, cpu: usize) {
        let c = &self.cpus[cpu];
        if c.need_resched && c.current.is_some() && !self.releases(cpu) {
            self.stop_segment(cpu);
            self.preempt(cpu);
        }
    }

    /// Notes what the leaving task's caches hold.
    pub(super) fn leave_caches(&mut self, cpu: usize, task: u32) {
        let fill = self.cpus[cpu].fill;
        let t = &mut self.tasks[task as usize];
        t.warm_cpu = cpu as u32;
        t.warm_fill = fill;
        if let Place::Vcpu(guest, vcpu) = t.place
            && let Some(inside) = self.guests[guest as usize].current(vcpu)
        {
            self.leave_caches(cpu, inside);
        }
    }

    /// Chooses who runs next on a CPU that runs nobody.
    pub(super) fn schedule(&mut self, cpu: usize) {
        debug_assert!(self.cpus[cpu].current.is_none());
        self.cpus[cpu].need_resched = false;
        let mut next = self.pick_rt(cpu).or_else(|| self.pick(cpu));
        if next.is_none() {
            self.note_misfit(cpu);
        }
        let may_pull = next.is_none() && self.cpus[cpu].wake_list.is_empty();
        if may_pull && self.balance_newidle(cpu) {
            next = self.pick_rt(cpu).or_else(|| self.pick(cpu));
        }
        match next {
            Some(task) => self.switch_to(cpu, task),
            None => self.go_idle(cpu),
        }
    }

    fn switch_to(&mut self, cpu: usize, task: u32) {
        let was_idle = self.cpus[cpu].idle;
        if was_idle {
            self.rest_lines(cpu);
            let c = &mut self.cpus[cpu];
            c.idle = false;
            let max = 2 * c.max_idle_cost_ns;
            let idle_ns = self.now - c.idle_since_ns;
            let avg = c.avg_idle_ns as i64;
            let avg = avg + (idle_ns as i64 - avg) / 8;
            c.avg_idle_ns = (avg as u64).min(max);
            c.busy_since_ns = self.now;
            c.pelt.start(self.now);
        }
        self.cpus[cpu].chores.clear();
        self.set_current(cpu, task);
        self.metrics.context_switches += 1;
        let t = &mut self.tasks[task as usize];
        if t.woken_ns > 0 {
            let latency = self.now - t.woken_ns;
            t.woken_ns = 0;
            self.metrics.latency_ns += latency;
            self.metrics.wake_latency.record(latency);
            if latency > self.metrics.max_latency_ns {
                self.metrics.max_latency_ns = latency;
            }
        }
        let warm = (t.warm_cpu != u32::MAX).then_some(t.warm_cpu as usize);
        let c = &mut self.cpus[cpu];
        let others = c.fill - t.warm_fill.min(c.fill);
        let refill = self.costs.refill_ns(t.footprint, warm, cpu, others);
        c.fill += u64::from(t.footprint);
        // At least a nanosecond, so that a task that blocks at once does so at a later time.
        let switch_ns = self.costs.context_switch_ns();
        t.debt_ns += (switch_ns + refill).max(1);
        let between = t.left_ns == 0;
        self.metrics.kernel_ns += c.wall_ns(switch_ns);
        let strays = t.trail.now != c.llc;
        let others = match warm {
            Some(warm) if warm != cpu => self.cpus[warm].fill.saturating_sub(t.warm_fill),
            _ => others,
        };
        self.touch_llc(cpu, task, warm, others);
        if strays {
            self.changes_llc(cpu, task);
        }
        if was_idle {
            self.share_core(cpu);
        }
        if self.runs_rt(cpu) {
            self.push_rt(cpu);
        }
        // The operation under way goes on; a task that was between two starts the next one.
        if let Place::Vcpu(guest, vcpu) = self.tasks[task as usize].place {
            self.enter_vcpu(cpu, task, guest, vcpu);
        } else if between {
            self.advance(cpu, task);
        } else {
            self.begin_segment(cpu);
        }
    }

    /// The running task goes on, though it was asked to give way.
    fn go_on(&mut self, cpu: usize, task: u32) {
        match self.tasks[task as usize].left_ns {
            0 => self.advance(cpu, task),
            _ => self.begin_segment(cpu),
        }
    }

    /// The running task uses its lines and its process's, as far as the last-level caches hold
    /// them; others used so many lines on `warm`, where it ran before, since then.
    fn touch_llc(&mut self, cpu: usize, task: u32, warm: Option<usize>, others: u64) {
        let Some(llcs) = &mut self.llcs else {
            return;
        };
        let t = &mut self.tasks[task as usize];
        let charge = llcs.touch(
            &self.costs,
            &Use {
                task,
                cpu,
                footprint: t.footprint,
                warm,
                others,
            },
        );
        t.debt_ns += charge.ns;
        self.cpus[cpu].fill += charge.filled;
    }
}
