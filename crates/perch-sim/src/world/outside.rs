// SPDX-License-Identifier: GPL-2.0-or-later
//! The network's events: packets that arrive, vhost, which moves them, and tasks on other
//! computers.

use perch_sched::{Life, Sched, Waker};
use perch_workload::Site;

use super::event;
use super::guest::Job;
use super::state::World;
use crate::id::{ChannelId, GuestId, TaskId};
use crate::program::OutsideStop;

impl World {
    /// A packet arrives at its reader's computer.
    pub(super) fn packet(&mut self, sched: &mut Sched<'_>, channel: ChannelId, lines: u32) {
        let Some(net) = &self.net else {
            return;
        };
        let reader = net.reader(channel);
        if reader == Site::Outside {
            if let Some(receiver) = self.programs.put_message(channel, lines, 0) {
                self.go_on_outside(sched, receiver);
            }
            return;
        }
        let (cpu, mut cost) = net.interrupt(channel, sched.nr_cpus());
        sched.act_on(cpu);
        let waker = sched.interrupted(cpu);
        match reader {
            Site::Guest(guest) => {
                let job = Job { inward: true, channel, lines };
                cost += (self.guests).give_vhost(sched, cpu, GuestId(guest), job, waker);
            }
            _ => {
                if let Some(receiver) = self.programs.put_message(channel, lines, cpu) {
                    cost += sched.wake(receiver, cpu, waker, true);
                }
            }
        }
        if let Some(task) = sched.current(cpu) {
            sched.stop_segment(cpu);
            sched.charge_kernel(cpu, task, cost);
            self.work(sched, cpu);
        }
        sched.resched_if_needed(self, cpu);
    }

    /// vhost, which runs on `cpu`, goes on: it has moved a packet, begins with the next one, or
    /// sleeps. Returns whether it works or has left the CPU.
    #[inline(never)]
    pub(super) fn vhost(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        task: TaskId,
        guest: GuestId,
    ) -> bool {
        if let Some(job) = self.guests.moved(guest) {
            if job.inward {
                let cost = self.guests.hand_in(sched, cpu, guest, job, Waker::Task(task));
                sched.charge_kernel(cpu, task, cost);
            } else if let Some(net) = &self.net {
                net.send_packet(sched, job.channel, job.lines);
            }
            if sched.need_resched(cpu) {
                sched.preempt(self, cpu);
                return true;
            }
            return false;
        }
        if sched.owes_work(task) {
            self.work(sched, cpu);
            return true;
        }
        match self.guests.move_next(guest) {
            Some(work_ns) => {
                sched.set_kernel_work(cpu, task, work_ns);
                self.work(sched, cpu);
            }
            None => sched.block(self, cpu, task),
        }
        true
    }

    /// A task on another computer goes on, until something there takes time or it waits.
    pub(super) fn go_on_outside(&mut self, sched: &mut Sched<'_>, task: TaskId) {
        let net = &self.net;
        let now_ns = sched.now_ns();
        let then = self.programs.run_outside(task, now_ns, |channel, lines| {
            if let Some(net) = net {
                net.send_packet(sched, channel, lines);
            }
        });
        let life = match then {
            OutsideStop::Until(at_ns) => {
                sched.at(at_ns, event::TIMER, task.0, 0);
                Life::Asleep
            }
            OutsideStop::Waits => Life::Asleep,
            OutsideStop::Ends => Life::Dead,
        };
        self.guests.set_life(task, life);
    }
}
