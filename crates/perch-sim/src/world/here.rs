// SPDX-License-Identifier: GPL-2.0-or-later
//! The world as a program sees it: the calls of a task go to this machine's scheduler, or to the
//! kernel of the virtual machine that the task is in.

use perch_sched::hardware::Costs;
use perch_sched::{Ended, Rounds, Sched, Waker};

use super::event;
use super::guest::Guests;
use super::net::Net;
use super::place::Place;
use crate::id::{ChannelId, TaskId};
use crate::program::System;

/// The machine on which a program runs, for the calls of its task.
pub struct Here<'w, 'a> {
    pub sched: &'w mut Sched<'a>,
    pub guests: &'w mut Guests,
    pub net: Option<&'w Net>,
}

impl System for Here<'_, '_> {
    #[inline]
    fn now_ns(&self) -> u64 {
        self.sched.now_ns()
    }

    #[inline]
    fn costs(&self) -> &Costs {
        self.sched.costs()
    }

    #[inline]
    fn need_resched(&self, cpu: usize) -> bool {
        self.sched.need_resched(cpu)
    }

    #[inline]
    fn owes(&self, cpu: usize, task: TaskId) -> bool {
        self.sched.owes_work(task.0) || self.sched.owes(cpu)
    }

    #[inline]
    fn owes_work(&self, task: TaskId) -> bool {
        self.sched.owes_work(task.0)
    }

    #[inline]
    fn set_work(&mut self, task: TaskId, work_ns: u64) {
        self.sched.set_work(task.0, work_ns);
    }

    #[inline]
    fn set_kernel_work(&mut self, cpu: usize, task: TaskId, work_ns: u64) {
        self.sched.set_kernel_work(cpu, task.0, work_ns);
    }

    #[inline]
    fn charge(&mut self, task: TaskId, work_ns: u64) {
        self.sched.charge(task.0, work_ns);
    }

    #[inline]
    fn charge_kernel(&mut self, cpu: usize, task: TaskId, work_ns: u64) {
        self.sched.charge_kernel(cpu, task.0, work_ns);
    }

    #[inline]
    fn use_caches(&mut self, cpu: usize, task: TaskId) {
        self.sched.use_caches(cpu, task.0);
    }

    fn fill(&self, cpu: usize) -> u64 {
        self.sched.fill(cpu)
    }

    fn add_fill(&mut self, cpu: usize, lines: u32) {
        self.sched.add_fill(cpu, lines);
    }

    fn speed_1024(&self, cpu: usize) -> u32 {
        self.sched.speed_1024(cpu)
    }

    fn look_again(&mut self, task: TaskId) {
        let at = self.sched.cpu_of_task(task.0);
        let runs = self.sched.current(at) == Some(task.0);
        if runs {
            self.sched.stop_segment(at);
        }
        self.sched.set_work(task.0, 0);
        if runs {
            self.sched.begin_segment(at);
        }
    }

    #[inline]
    fn wake(&mut self, wakee: TaskId, cpu: usize, waker: TaskId, sync: bool) -> u64 {
        match self.guests.place(wakee) {
            Place::Guest(_) => self.guests.wake(self.sched, wakee, cpu, sync),
            _ => self.sched.wake(wakee.0, cpu, Waker::Task(waker.0), sync),
        }
    }

    #[inline]
    fn wake_at(&mut self, task: TaskId, at_ns: u64) {
        self.sched.at(at_ns, event::TIMER, task.0, 0);
    }

    fn fork(&mut self, child: TaskId, cpu: usize) {
        match self.guests.place(child) {
            Place::Guest(_) => self.guests.fork(self.sched, child, cpu),
            _ => {
                self.sched.fork(child.0, cpu);
            }
        }
    }

    #[inline]
    fn transmit(&mut self, cpu: usize, task: TaskId, channel: ChannelId, lines: u32) -> bool {
        match self.net {
            Some(net) if net.is_outward(channel) => {
                net.transmit(self.sched, self.guests, cpu, task, (channel, lines));
                true
            }
            _ => false,
        }
    }

    fn set_atomic(&mut self, task: TaskId, is: bool) {
        self.sched.set_atomic(task.0, is);
    }

    fn is_plain(&self, task: TaskId) -> bool {
        self.guests.place(task) == Place::Host
    }

    #[inline]
    fn is_alone(&mut self, cpu: usize) -> bool {
        self.sched.is_alone(cpu)
    }

    #[inline]
    fn begin_streak(&mut self, cpu: usize, task: TaskId, of: &Rounds) {
        self.sched.begin_streak(cpu, task.0, of);
    }

    #[inline]
    fn end_streak(&mut self, cpu: usize) {
        self.sched.end_streak(cpu);
    }

    #[inline]
    fn take_ended(&mut self, cpu: usize) -> Option<Ended> {
        self.sched.take_ended(cpu)
    }
}
