// SPDX-License-Identifier: GPL-2.0-or-later
//! A vCPU that runs: the interrupts that it takes, the task on it, and how it halts.

use perch_sched::{Life, Programs, Sched};

use super::{Guests, interrupt, of_key};
use crate::id::{GuestId, TaskId, VcpuId};
use crate::world::event;
use crate::world::state::World;

/// Ticks after which a busy vCPU looks for tasks to take.
const BALANCE_TICKS: u32 = 64;

impl World {
    /// A vCPU gets a CPU: the lines of the task on it have to come along.
    #[inline(never)]
    pub(in crate::world) fn enter_vcpu(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId) {
        let (_, guest, vcpu) = self.guests.vcpu_on(sched, cpu);
        let waited_ns = sched.now_ns() - sched.waits_since_ns(task);
        self.guests.metrics.vcpus_waited_ns += waited_ns;
        self.guests.release(guest, vcpu);
        if let Some(inside) = self.guests.guests[guest].sched.current(vcpu) {
            // No other task ran on the vCPU meanwhile: its lines are where the vCPU was.
            let warm = sched.warmth(task);
            self.guests.refill(sched, cpu, task, inside, warm);
        }
        self.run_vcpu(sched, cpu, task);
    }

    /// The running vCPU goes on: it takes its interrupts, and then works, switches or halts.
    #[inline(never)]
    pub(in crate::world) fn run_vcpu(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId) {
        let (_, guest, vcpu) = self.guests.vcpu_on(sched, cpu);
        // A vCPU that spins does so with interrupts off.
        let spins = self.guests.spins(sched, task, guest, vcpu);
        if !spins {
            self.take_interrupts(sched, cpu, guest, vcpu);
        }
        if sched.need_resched(cpu) {
            return sched.preempt(self, cpu);
        }
        if spins {
            return self.work(sched, cpu);
        }
        let mut inside = self.guests.guests[guest].sched.current(vcpu);
        if inside.is_none() {
            inside = self.guests.pick(sched, cpu, guest, vcpu);
        }
        let works = sched.left_ns(task) > 0 || sched.owes_work(task);
        match inside {
            Some(_) if works => {
                self.guests.vcpu(guest, vcpu).halting = false;
                self.work(sched, cpu);
            }
            Some(inside) => {
                self.guests.vcpu(guest, vcpu).halting = false;
                self.advance(sched, cpu, inside);
            }
            None if self.guests.guests[guest].vcpus[vcpu].halting && !works => {
                self.guests.vcpu(guest, vcpu).halting = false;
                self.guests.metrics.halts += 1;
                sched.block(self, cpu, task);
            }
            None => {
                let v = self.guests.vcpu(guest, vcpu);
                if !std::mem::replace(&mut v.halting, true) {
                    let exit_ns = self.guests.guests[guest].spec.exit_ns;
                    self.guests.charge(sched, cpu, task, exit_ns.max(1));
                }
                self.work(sched, cpu);
            }
        }
    }

    /// The task on the running vCPU leaves it, to sleep or for good.
    #[inline(never)]
    pub(in crate::world) fn leave_vcpu(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        task: TaskId,
        life: Life,
    ) {
        let (on, guest, vcpu) = self.guests.vcpu_on(sched, cpu);
        self.guests.put(sched, cpu, on, guest, vcpu);
        self.guests.elsewhere[task].life = life;
        self.run_vcpu(sched, cpu, on);
    }

    /// The task on the running vCPU yields: it goes behind all others (to the expired array).
    /// Returns whether it left.
    pub(in crate::world) fn give_way_in_guest(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
    ) -> bool {
        let (on, guest, vcpu) = self.guests.vcpu_on(sched, cpu);
        if self.guests.guests[guest].sched.nr(vcpu) < 2 {
            return false;
        }
        self.guests.requeue(sched, cpu, on, guest, vcpu);
        self.run_vcpu(sched, cpu, on);
        true
    }

    /// An interrupt of the host on a vCPU's CPU wakes it if it sleeps.
    pub(in crate::world) fn rouse(&mut self, sched: &mut Sched<'_>, task: TaskId) {
        if sched.life(task) == Life::Asleep {
            let cpu = sched.cpu_of_task(task);
            let waker = sched.interrupted(cpu);
            sched.wake(task, cpu, waker, false);
            sched.resched_if_needed(self, cpu);
        }
    }

    /// An interrupt comes for a vCPU: wakes it if it is halted, makes it leave the guest if it
    /// runs, and waits otherwise.
    pub(in crate::world) fn vcpu_interrupt(&mut self, sched: &mut Sched<'_>, key: u32, what: u32) {
        let (guest, vcpu) = of_key(key);
        if what == interrupt::TICK {
            self.guests.vcpu(guest, vcpu).tick = true;
            let period_ns = 1_000_000_000 / u64::from(self.guests.guests[guest].spec.hz);
            let at_ns = sched.now_ns() + period_ns;
            sched.at(at_ns, event::VCPU, key, interrupt::TICK);
        }
        let task = self.guests.guests[guest].vcpus[vcpu].task;
        if sched.life(task) == Life::Running {
            let cpu = sched.cpu_of_task(task);
            sched.stop_segment(cpu);
            return self.run_vcpu(sched, cpu, task);
        }
        self.rouse(sched, task);
    }

    /// The running vCPU takes the interrupts that wait for it. Each makes it leave the guest twice: to
    /// be told, and to say that it has handled the interrupt.
    fn take_interrupts(&mut self, sched: &mut Sched<'_>, cpu: usize, guest: GuestId, vcpu: VcpuId) {
        let (task, ..) = self.guests.vcpu_on(sched, cpu);
        let spec = self.guests.guests[guest].spec;
        let v = self.guests.vcpu(guest, vcpu);
        v.announced = false;
        let (prodded, tick) = (std::mem::take(&mut v.prodded), std::mem::take(&mut v.tick));
        let packets = std::mem::take(&mut v.packets);
        let taken = [prodded, tick, !packets.is_empty()];
        let taken = taken.into_iter().filter(|&t| t).count() as u64;
        if taken > 0 {
            self.guests.charge(sched, cpu, task, taken * 2 * spec.exit_ns);
        }
        if tick {
            self.guests.metrics.ticks += 1;
            self.guests.charge(sched, cpu, task, spec.tick_ns);
            self.guests.tick(sched, cpu, task, guest, vcpu);
        }
        for (channel, lines) in packets {
            self.guests.charge(sched, cpu, task, spec.receive_ns);
            if let Some(receiver) = self.programs.put_message(channel, lines, cpu) {
                let cost = self.guests.wake(sched, receiver, cpu, false);
                sched.charge_kernel(cpu, task, cost);
            }
        }
    }
}

impl Guests {
    /// A tick of the guest's kernel: timers, slices, balancing.
    fn tick(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        task: TaskId,
        guest: GuestId,
        vcpu: VcpuId,
    ) {
        for due in std::mem::take(&mut self.vcpu(guest, vcpu).due) {
            let cost = self.wake(sched, due, cpu, false);
            sched.charge_kernel(cpu, task, cost);
        }
        if self.guests[guest].sched.tick(vcpu) {
            self.requeue(sched, cpu, task, guest, vcpu);
        }
        let v = self.vcpu(guest, vcpu);
        v.ticks += 1;
        let due = v.ticks % BALANCE_TICKS == 0;
        match self.guests[guest].sched.nr(vcpu) {
            0 => self.steal(sched, guest, vcpu, true),
            _ if due => self.steal(sched, guest, vcpu, false),
            _ => {}
        }
    }
}
