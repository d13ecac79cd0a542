// SPDX-License-Identifier: GPL-2.0-or-later
//! Statements that must hold of guests between any two moments, for tests.

use perch_engine::Event;
use perch_sched::{Life, Sched, Violation, hold};

use super::{Guests, interrupt};
use crate::id::{Id, IdVec, TaskId};
use crate::world::event;
use crate::world::place::Place;

impl Guests {
    /// Every task of a guest is where its vCPU's books have it, a vCPU or vhost that has something to
    /// do is awake on the host or will be, and no guest had more time than its vCPUs (P13 inside).
    ///
    /// # Errors
    /// The statement that does not hold.
    pub fn check(&self, sched: &Sched<'_>) -> Result<(), Violation> {
        let vcpus: usize = self.guests.iter().map(|g| g.vcpus.len()).sum();
        let tick = |e: &Event| e.kind == event::VCPU && e.tag == interrupt::TICK;
        let ticks = match vcpus {
            0 => 0,
            _ => sched.events().iter().filter(tick).count(),
        };
        hold!(ticks == vcpus, "{ticks} ticks to come for {vcpus} vCPUs");
        for (number, guest) in self.guests.named() {
            for (vcpu, v) in guest.vcpus.named() {
                let at = || format!("guest {number}, vCPU {vcpu}");
                hold!(
                    self.place(v.task) == Place::Vcpu(number, vcpu),
                    "{}: task {} is another",
                    at(),
                    v.task
                );
                let inside = guest.sched.current(vcpu);
                for task in guest.sched.waiting(vcpu).chain(inside) {
                    let t = &self.elsewhere[task];
                    let place = self.place(task);
                    hold!(
                        t.vcpu == vcpu && place == Place::Guest(number),
                        "{}: task {task} thinks it is elsewhere",
                        at()
                    );
                }
                let busy = guest.sched.nr(vcpu) > 0 || v.tick || !v.packets.is_empty();
                hold!(
                    !busy || sched.life(v.task) != Life::Asleep,
                    "{}: sleeps on the host with work to do",
                    at()
                );
                if let Some(by) = v.spin.held_by() {
                    let by = guest.vcpus[by].task;
                    hold!(
                        sched.life(by) == Life::Queued || sched.need_resched(sched.cpu_of_task(by)),
                        "{}: the lock of its queue is held by a vCPU that runs",
                        at()
                    );
                }
                hold!(!v.halting || inside.is_none(), "{}: halts with a task on it", at());
            }
            let vhost = guest.vhost.map(|task| sched.life(task));
            hold!(
                vhost != Some(Life::Asleep) || guest.jobs.is_empty() && guest.moving.is_none(),
                "guest {number}: vhost sleeps with packets to move"
            );
            let inside = self.elsewhere.named();
            let inside = inside.filter(|&(id, _)| self.place(id) == Place::Guest(number));
            let ran_ns: u64 = inside.map(|(_, t)| t.ran_ns).sum();
            let had_ns: u64 = guest.vcpus.iter().map(|v| sched.ran_ns(v.task)).sum();
            hold!(ran_ns <= had_ns, "guest {number} ran {ran_ns} ns, its vCPUs {had_ns}");
        }
        Ok(())
    }

    /// Where a guest's task is in its life, or another computer's; `None` for a task of this machine.
    pub fn life(&self, task: TaskId) -> Option<Life> {
        match self.place(task) {
            Place::Guest(_) | Place::Outside => Some(self.elsewhere[task].life),
            Place::Host | Place::Vcpu(..) => None,
        }
    }

    /// Every task of a guest is on as many queues and vCPUs as its life allows, where it may be, and
    /// has the reasons to wake that it should: `reasons`, and its guest's timers.
    ///
    /// # Errors
    /// The statement that does not hold.
    pub fn check_places(&self, sched: &Sched<'_>, reasons: &[u32]) -> Result<(), Violation> {
        let all = self.elsewhere.iter();
        let mut places: IdVec<TaskId, [u32; 3]> = all.map(|_| [0; 3]).collect();
        for guest in &self.guests {
            for (vcpu, v) in guest.vcpus.named() {
                let waiting = guest.sched.waiting(vcpu);
                waiting.for_each(|t| places[t][0] += 1);
                let inside = guest.sched.current(vcpu);
                inside.iter().for_each(|&t| places[t][1] += 1);
                v.due.iter().for_each(|&t| places[t][2] += 1);
            }
        }
        for ((id, t), at) in self.elsewhere.named().zip(places.iter()) {
            let Some(life) = self.life(id) else {
                continue;
            };
            let expected = match life {
                Life::Queued => [1, 0],
                Life::Running => [0, 1],
                Life::Unborn | Life::Dead | Life::Asleep | Life::Waking => [0, 0],
            };
            hold!(
                at[..2] == expected,
                "task {id} is {life:?}, yet on {} queues and {} vCPUs of its guest",
                at[0],
                at[1]
            );
            let (reasons, wanted) = (reasons[id.index()] + at[2], u32::from(life == Life::Asleep));
            hold!(reasons == wanted, "task {id} is {life:?} with {reasons} reasons to wake");
            let nowhere = life == Life::Unborn || self.place(id) == Place::Outside;
            hold!(
                nowhere || sched.allowed(id).contains(t.vcpu.index()),
                "task {id} on vCPU {}",
                t.vcpu
            );
        }
        Ok(())
    }

    /// Adds to the reasons to wake of the host's tasks those that guests have: a vCPU that sleeps has
    /// its next tick to wake it, vhost the next packet.
    pub fn add_reasons(&self, sched: &Sched<'_>, reasons: &mut [u32]) {
        for guest in &self.guests {
            let hosts = guest.vcpus.iter().map(|v| v.task).chain(guest.vhost);
            for task in hosts.filter(|&t| sched.life(t) == Life::Asleep) {
                reasons[task.index()] += 1;
            }
        }
    }

    /// The time that a guest's task has run so far, nanoseconds, and the vCPU where it is.
    pub fn ran(&self, task: TaskId) -> (u64, usize) {
        let t = &self.elsewhere[task];
        (t.ran_ns, t.vcpu.index())
    }
}
