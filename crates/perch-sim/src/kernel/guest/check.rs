// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold of guests between any two moments, for tests.

use super::super::task::{Life, Place, Task};
use super::super::{Kernel, kind};
use super::interrupt;
use crate::engine::Event;

impl Kernel<'_> {
    /// Every task of a guest is where its vCPU's books have it, whoever has something to do is
    /// awake on the host or will be, and no guest had more time than its vCPUs (P13 inside).
    pub(in crate::kernel) fn check_guests(&self) -> Result<(), String> {
        let vcpus: usize = self.guests.iter().map(|g| g.vcpus.len()).sum();
        let tick = |e: &Event| e.kind == kind::VCPU && e.tag == interrupt::TICK;
        let ticks = match vcpus {
            0 => 0,
            _ => self.events.iter().filter(tick).count(),
        };
        if ticks != vcpus {
            return Err(format!("{ticks} ticks to come for {vcpus} vCPUs"));
        }
        for (number, guest) in self.guests.iter().enumerate() {
            for (vcpu, v) in guest.vcpus.iter().enumerate() {
                let at = || format!("guest {number}, vCPU {vcpu}");
                let host = &self.tasks[v.task as usize];
                if host.place != Place::Vcpu(number as u32, vcpu as u32) {
                    return Err(format!("{}: task {} is another", at(), v.task));
                }
                let inside = guest.sched.current(vcpu);
                for task in guest.sched.waiting(vcpu).chain(inside) {
                    let t = &self.tasks[task as usize];
                    if t.cpu as usize != vcpu || t.place != Place::Guest(number as u32) {
                        return Err(format!("{}: task {task} thinks it is elsewhere", at()));
                    }
                }
                let busy = guest.sched.nr(vcpu) > 0 || v.tick || !v.packets.is_empty();
                if busy && host.life == Life::Asleep {
                    return Err(format!("{}: sleeps on the host with work to do", at()));
                }
                if v.halting && inside.is_some() {
                    return Err(format!("{}: halts with a task on it", at()));
                }
            }
            let vhost = guest.vhost.map(|task| self.tasks[task as usize].life);
            if vhost == Some(Life::Asleep) && (!guest.jobs.is_empty() || guest.moving.is_some()) {
                return Err(format!("guest {number}: vhost sleeps with packets to move"));
            }
            let inside = self.tasks.iter().zip(&self.entities);
            let inside = inside.filter(|(t, _)| t.place == Place::Guest(number as u32));
            let ran_ns: u64 = inside.map(|(_, se)| se.sum_exec_ns).sum();
            let had_ns: u64 = guest.vcpus.iter().map(|v| self.ran_ns_of(v.task)).sum();
            if ran_ns > had_ns {
                return Err(format!(
                    "guest {number} ran {ran_ns} ns, its vCPUs {had_ns}"
                ));
            }
        }
        Ok(())
    }

    /// Whether a task is on a CPU, or a guest's on a vCPU, that it may use.
    pub(in crate::kernel) fn is_allowed(&self, t: &Task) -> bool {
        let allowed = &self.affinities[t.affinity as usize];
        let nowhere = t.life == Life::Unborn || t.place == Place::Outside;
        nowhere || allowed.contains(t.cpu as usize)
    }

    fn ran_ns_of(&self, task: u32) -> u64 {
        match self.tasks[task as usize].life {
            Life::Running => self.ran_ns(task),
            _ => self.entities[task as usize].sum_exec_ns,
        }
    }

    /// Adds to each task's places those in guests: on queues, running, with a due timer. A vCPU
    /// that sleeps has its next tick to wake it, vhost the next packet.
    pub(in crate::kernel) fn places_in_guests(&self, places: &mut [[u32; 6]]) {
        for guest in &self.guests {
            for (vcpu, v) in guest.vcpus.iter().enumerate() {
                let waiting = guest.sched.waiting(vcpu);
                waiting.for_each(|t| places[t as usize][0] += 1);
                let inside = guest.sched.current(vcpu);
                inside.iter().for_each(|&t| places[t as usize][1] += 1);
                v.due.iter().for_each(|&t| places[t as usize][4] += 1);
            }
            let hosts = guest.vcpus.iter().map(|v| v.task).chain(guest.vhost);
            for task in hosts.filter(|&t| self.tasks[t as usize].life == Life::Asleep) {
                places[task as usize][3] += 1;
            }
        }
    }
}
