// SPDX-License-Identifier: GPL-2.0-or-later
//! vCPUs: tasks of the host that run the tasks of a guest.
//!
//! While a vCPU runs, the guest's task on it works; its operations are the very same code as a
//! task's of the host, and its work becomes the vCPU's. Where an operation sleeps, wakes or yields
//! it comes here instead of to the host's scheduler. A vCPU with nothing to run halts, which is a
//! sleep on the host; who wakes a task on a halted vCPU sends it an interrupt, which is a wake-up
//! on the host by the vCPU that sends it. What comes for a vCPU that runs makes it leave the guest
//! and enter it again; what comes for one that is preempted waits until it runs.

mod books;
mod check;

use std::collections::VecDeque;

use super::task::{Life, Place};
use super::wake::Waker;
use super::{Kernel, kind};
use crate::engine::{Event, EventQueue, Random};
use crate::guest::{GuestSpec, Scheduler, Site};
use crate::workload::{Op, TaskSpec, Workload};

/// How long a task counts as hot where it ran: what 2.6.18 measures at boot, some milliseconds.
const HOT_NS: u64 = 2_500_000;
/// A busy vCPU looks for tasks to take every so many ticks.
const BALANCE_TICKS: u32 = 64;
/// Bits of a vCPU's number in the key of its events.
const VCPU_BITS: u32 = 8;

/// What an interrupt for a vCPU is, in the tag of its event.
pub(super) mod interrupt {
    /// Its tick.
    pub const TICK: u32 = 0;
    /// A packet has come for its guest.
    pub const PACKET: u32 = 1;
}

/// A vCPU, as the host's kernel keeps it.
#[derive(Debug, Default)]
struct Vcpu {
    /// The host's task that is it.
    task: u32,
    /// A tick waits to be taken.
    tick: bool,
    /// Its task's woken tasks' interrupt waits to be taken.
    prodded: bool,
    /// Packets that wait to be taken: channel and cache lines.
    packets: VecDeque<(u32, u32)>,
    /// Their interrupt is on its way.
    announced: bool,
    /// It has found nothing to run, and goes to the host to sleep.
    halting: bool,
    /// Tasks whose timers have fired since its last tick.
    due: Vec<u32>,
    /// Run time of the vCPU when the task on it came.
    mark_ns: u64,
    /// Ticks while busy, for balancing.
    ticks: u32,
    /// When it last became able to run, or stopped running without halting.
    waits_since_ns: u64,
    /// What it had run when measuring began.
    ran_before_ns: u64,
}

/// A packet that vhost has to move.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    /// To the guest, or from it.
    pub inward: bool,
    /// The channel, and the message's cache lines.
    pub channel: u32,
    /// See `channel`.
    pub lines: u32,
}

/// A virtual machine.
#[derive(Debug)]
pub struct Guest {
    pub(super) spec: GuestSpec,
    sched: Scheduler,
    vcpus: Vec<Vcpu>,
    /// The task that moves its packets.
    pub(super) vhost: Option<u32>,
    /// What that has to do, and what it is doing.
    pub(super) jobs: VecDeque<Job>,
    /// See `jobs`.
    pub(super) moving: Option<Job>,
}

impl Guest {
    /// Who runs on a vCPU.
    pub fn current(&self, vcpu: u32) -> Option<u32> {
        self.sched.current(vcpu as usize)
    }
}

fn key(guest: usize, vcpu: usize) -> u32 {
    (guest as u32) << VCPU_BITS | vcpu as u32
}

/// Where a task is, and what.
pub(super) fn place_of(spec: &TaskSpec) -> Place {
    match (spec.site, spec.program.first()) {
        (Site::Outside, _) => Place::Outside,
        (Site::Guest(guest), _) => Place::Guest(guest),
        (Site::Host, Some(&Op::Vcpu { guest, vcpu })) => Place::Vcpu(guest, vcpu),
        (Site::Host, _) => Place::Host,
    }
}

/// The virtual machines of a workload. The ticks of a guest's vCPUs do not fall on one moment:
/// each began with its vCPU.
pub(super) fn guests(workload: &Workload, events: &mut EventQueue, seed: u64) -> Vec<Guest> {
    let mut random = Random::new(seed, u64::MAX);
    let mut guests: Vec<Guest> = (workload.guests.iter())
        .map(|spec| Guest {
            spec: *spec,
            sched: Scheduler::new(spec.vcpus as usize, spec.hz),
            vcpus: (0..spec.vcpus).map(|_| Vcpu::default()).collect(),
            vhost: None,
            jobs: VecDeque::new(),
            moving: None,
        })
        .collect();
    for (task, spec) in (0u32..).zip(&workload.tasks) {
        match spec.program.first() {
            Some(&Op::Vcpu { guest, vcpu }) => {
                guests[guest as usize].vcpus[vcpu as usize].task = task;
            }
            Some(&Op::Vhost { guest }) => guests[guest as usize].vhost = Some(task),
            _ => {}
        }
    }
    for (number, guest) in guests.iter().enumerate() {
        let period_ns = 1_000_000_000 / u64::from(guest.spec.hz);
        for vcpu in 0..guest.vcpus.len() {
            events.push(Event {
                at_ns: 1 + random.below(period_ns),
                kind: kind::VCPU,
                key: key(number, vcpu),
                tag: interrupt::TICK,
            });
        }
    }
    guests
}

impl Kernel<'_> {
    /// The host's CPU on which a task is or was last; of one outside the first.
    pub(super) fn host_cpu(&self, task: u32) -> usize {
        let t = &self.tasks[task as usize];
        match t.place {
            Place::Host | Place::Vcpu(..) => t.cpu as usize,
            Place::Guest(guest) => {
                let vcpu = &self.guests[guest as usize].vcpus[t.cpu as usize];
                self.tasks[vcpu.task as usize].cpu as usize
            }
            Place::Outside => 0,
        }
    }

    /// The host's CPU of the vCPU with this key.
    pub(super) fn cpu_of_vcpu(&self, key: u32) -> usize {
        let (guest, vcpu) = (key >> VCPU_BITS, key & ((1 << VCPU_BITS) - 1));
        self.host_cpu(self.guests[guest as usize].vcpus[vcpu as usize].task)
    }

    /// The vCPU that runs on a CPU: its task, its guest and its number there.
    fn vcpu_on(&self, cpu: usize) -> (u32, usize, usize) {
        let task = self.cpus[cpu].current.expect("a guest runs on a vCPU");
        match self.tasks[task as usize].place {
            Place::Vcpu(guest, vcpu) => (task, guest as usize, vcpu as usize),
            place => unreachable!("task {task} is no vCPU but {place:?}"),
        }
    }

    fn vcpu(&mut self, guest: usize, vcpu: usize) -> &mut Vcpu {
        &mut self.guests[guest].vcpus[vcpu]
    }

    /// The work of the task on a vCPU becomes the vCPU's.
    pub(super) fn carry_guest(&mut self, guest: u32, vcpu: u32, task: u32) {
        if let Some(inside) = self.guests[guest as usize].current(vcpu) {
            let t = &mut self.tasks[inside as usize];
            let work_ns = std::mem::take(&mut t.left_ns) + std::mem::take(&mut t.debt_ns);
            self.tasks[task as usize].left_ns += work_ns;
        }
    }

    /// A vCPU gets a CPU: the lines of the task on it have to come along.
    pub(super) fn enter_vcpu(&mut self, cpu: usize, task: u32, guest: u32, vcpu: u32) {
        let since_ns = self.vcpu(guest as usize, vcpu as usize).waits_since_ns;
        self.metrics.guest.vcpus_waited_ns += self.now - since_ns;
        if let Some(inside) = self.guests[guest as usize].current(vcpu) {
            self.refill_guest(cpu, task, inside);
        }
        self.run_vcpu(cpu, task);
    }

    /// Brings the lines of a guest's task to its vCPU's CPU.
    fn refill_guest(&mut self, cpu: usize, task: u32, inside: u32) {
        let t = &self.tasks[inside as usize];
        let warm = (t.warm_cpu != u32::MAX).then_some(t.warm_cpu as usize);
        let (fill, footprint) = (self.cpus[cpu].fill, t.footprint);
        let others = fill - t.warm_fill.min(fill);
        let refill_ns = self.costs.refill_ns(footprint, warm, cpu, others);
        self.cpus[cpu].fill += u64::from(footprint);
        self.tasks[task as usize].debt_ns += refill_ns;
    }

    /// The running vCPU goes on: takes its interrupts, and then works, switches or halts.
    pub(super) fn run_vcpu(&mut self, cpu: usize, task: u32) {
        let (_, guest, vcpu) = self.vcpu_on(cpu);
        self.take_interrupts(cpu, guest, vcpu);
        if self.cpus[cpu].need_resched {
            return self.preempt(cpu);
        }
        let mut inside = self.guests[guest].sched.current(vcpu);
        if inside.is_none() {
            inside = self.pick_in_guest(cpu, guest, vcpu);
        }
        let t = &self.tasks[task as usize];
        let works = t.left_ns > 0 || t.debt_ns > 0;
        match inside {
            Some(_) if works => {
                self.vcpu(guest, vcpu).halting = false;
                self.begin_segment(cpu);
            }
            Some(inside) => {
                self.vcpu(guest, vcpu).halting = false;
                self.advance(cpu, inside);
            }
            None if self.guests[guest].vcpus[vcpu].halting && !works => {
                self.vcpu(guest, vcpu).halting = false;
                self.metrics.guest.halts += 1;
                self.block(cpu, task);
            }
            None => {
                if !std::mem::replace(&mut self.vcpu(guest, vcpu).halting, true) {
                    let exit_ns = self.guests[guest].spec.exit_ns;
                    self.charge_vcpu(cpu, task, exit_ns.max(1));
                }
                self.begin_segment(cpu);
            }
        }
    }

    /// The next task of a vCPU that runs nobody: its own first one, or one of another's.
    fn pick_in_guest(&mut self, cpu: usize, guest: usize, vcpu: usize) -> Option<u32> {
        if self.guests[guest].sched.nr(vcpu) == 0 {
            self.steal_in_guest(guest, vcpu, false);
        }
        let next = self.guests[guest].sched.pick(vcpu)?;
        let task = self.guests[guest].vcpus[vcpu].task;
        self.vcpu(guest, vcpu).mark_ns = self.ran_ns(task);
        self.tasks[next as usize].life = Life::Running;
        self.refill_guest(cpu, task, next);
        // At least a nanosecond, so that a task that blocks at once does so at a later time.
        let switch_ns = self.costs.context_switch_ns().max(1);
        self.charge_kernel(cpu, task, switch_ns);
        self.metrics.guest.switches += 1;
        Some(next)
    }

    /// A vCPU takes a task off another one's queue, if there is one that it should take.
    fn steal_in_guest(&mut self, guest: usize, vcpu: usize, ticks: bool) {
        let (now, tasks, entities) = (self.now, &self.tasks, &self.entities);
        let affinities = &self.affinities;
        let allowed = |t: u32| affinities[tasks[t as usize].affinity as usize].contains(vcpu);
        let cool = |t: u32| now - entities[t as usize].exec_start_ns > HOT_NS;
        let sched = &mut self.guests[guest].sched;
        if let Some(stolen) = sched.steal(vcpu, ticks, allowed, cool) {
            self.tasks[stolen.task as usize].cpu = vcpu as u32;
            self.metrics.guest.balanced += 1;
        }
    }

    /// The task on the running vCPU leaves it, to sleep or for good.
    pub(super) fn leave_vcpu(&mut self, cpu: usize, task: u32, life: Life) {
        let (on, guest, vcpu) = self.vcpu_on(cpu);
        self.put_in_guest(cpu, on, guest, vcpu);
        self.tasks[task as usize].life = life;
        self.run_vcpu(cpu, on);
    }

    /// The task on a vCPU stops to be that; what is left of the vCPU's work is its.
    fn put_in_guest(&mut self, cpu: usize, task: u32, guest: usize, vcpu: usize) -> Option<u32> {
        let inside = self.guests[guest].sched.leave(vcpu)?;
        self.leave_caches(cpu, inside);
        let ran_ns = self.ran_ns(task) - self.guests[guest].vcpus[vcpu].mark_ns;
        let left_ns = std::mem::take(&mut self.tasks[task as usize].left_ns);
        self.tasks[inside as usize].left_ns += left_ns;
        let se = &mut self.entities[inside as usize];
        se.sum_exec_ns += ran_ns;
        se.exec_start_ns = self.now;
        self.metrics.guest.ran_ns += ran_ns;
        Some(inside)
    }

    /// The task on a vCPU goes behind the others there.
    fn requeue_in_guest(&mut self, cpu: usize, task: u32, guest: usize, vcpu: usize) {
        if let Some(inside) = self.put_in_guest(cpu, task, guest, vcpu) {
            self.tasks[inside as usize].life = Life::Queued;
            self.guests[guest].sched.enqueue(vcpu, inside);
        }
    }

    /// The task on the running vCPU yields: it goes behind all others (to the expired array).
    /// Returns whether it left.
    pub(super) fn give_way_in_guest(&mut self, cpu: usize, _task: u32) -> bool {
        let (on, guest, vcpu) = self.vcpu_on(cpu);
        if self.guests[guest].sched.nr(vcpu) < 2 {
            return false;
        }
        self.requeue_in_guest(cpu, on, guest, vcpu);
        self.run_vcpu(cpu, on);
        true
    }

    /// Wakes a guest's task from the vCPU that runs on `cpu`. Returns what that costs.
    pub(super) fn wake_in_guest(&mut self, task: u32, cpu: usize, sync: bool) -> u64 {
        let (_, guest, this) = self.vcpu_on(cpu);
        let t = &self.tasks[task as usize];
        let (prev, allowed) = (t.cpu as usize, &self.affinities[t.affinity as usize]);
        let inside = &self.guests[guest];
        let sync = sync && inside.spec.pipes;
        let to = inside.sched.place(this, prev, sync, allowed);
        self.metrics.guest.wakeups += 1;
        self.enqueue_in_guest(cpu, task, to) + self.costs.wake_ns(0)
    }

    /// A guest's task is forked from the vCPU that runs on `cpu`. Returns what that costs beyond
    /// the fork itself.
    pub(super) fn fork_in_guest(&mut self, task: u32, cpu: usize) -> u64 {
        let (_, guest, _) = self.vcpu_on(cpu);
        let affinity = self.tasks[task as usize].affinity as usize;
        let to = self.guests[guest].sched.least(&self.affinities[affinity]);
        let cost = self.enqueue_in_guest(cpu, task, to);
        let (on, ..) = self.vcpu_on(cpu);
        self.charge_kernel(cpu, on, cost);
        cost
    }

    /// Queues a task on a vCPU, and sends that an interrupt if it runs nobody. Returns what the
    /// interrupt costs the sender.
    fn enqueue_in_guest(&mut self, cpu: usize, task: u32, to: usize) -> u64 {
        let (on, guest, this) = self.vcpu_on(cpu);
        let t = &mut self.tasks[task as usize];
        t.cpu = to as u32;
        t.life = Life::Queued;
        let g = &mut self.guests[guest];
        g.sched.enqueue(to, task);
        let halted = g.vcpus[to].task;
        if to == this || g.sched.current(to).is_some() || g.vcpus[to].prodded {
            return 0;
        }
        g.vcpus[to].prodded = true;
        let cost = g.spec.exit_ns;
        self.metrics.guest.interrupts += 1;
        self.metrics.guest.overhead_ns += cost;
        match self.tasks[halted as usize].life {
            Life::Asleep => cost + self.wake(halted, cpu, Waker::Task(on), false),
            _ => cost,
        }
    }

    /// A guest's task appears by itself, as an interrupt of the host would have it.
    pub(super) fn appear_in_guest(&mut self, task: u32) {
        let Place::Guest(guest) = self.tasks[task as usize].place else {
            return;
        };
        let affinity = self.tasks[task as usize].affinity as usize;
        let g = &mut self.guests[guest as usize];
        let to = g.sched.least(&self.affinities[affinity]);
        g.sched.enqueue(to, task);
        let vcpu = g.vcpus[to].task;
        let t = &mut self.tasks[task as usize];
        t.cpu = to as u32;
        t.life = Life::Queued;
        self.rouse(vcpu);
    }

    /// An interrupt of the host on the vCPU's CPU wakes it if it sleeps.
    fn rouse(&mut self, task: u32) {
        if self.tasks[task as usize].life == Life::Asleep {
            let cpu = self.tasks[task as usize].cpu as usize;
            let waker = self.cpus[cpu].current.map_or(Waker::Idle, Waker::Task);
            self.wake(task, cpu, waker, false);
            self.resched_if_needed(cpu);
        }
    }

    /// A guest's timer is due; its vCPU sees that at its next tick (2.6.18 has no others for what
    /// sleeps).
    pub(super) fn guest_timer(&mut self, guest: u32, task: u32) {
        let vcpu = self.tasks[task as usize].cpu as usize;
        self.vcpu(guest as usize, vcpu).due.push(task);
    }

    /// An interrupt comes for a vCPU: wakes it if it is halted, makes it leave the guest if it
    /// runs, and waits otherwise.
    pub(super) fn vcpu_interrupt(&mut self, key: u32, what: u32) {
        let (guest, vcpu) = (key >> VCPU_BITS, key & ((1 << VCPU_BITS) - 1));
        let (guest, vcpu) = (guest as usize, vcpu as usize);
        if what == interrupt::TICK {
            self.vcpu(guest, vcpu).tick = true;
            self.events.push(Event {
                at_ns: self.now + 1_000_000_000 / u64::from(self.guests[guest].spec.hz),
                kind: kind::VCPU,
                key,
                tag: interrupt::TICK,
            });
        }
        let task = self.guests[guest].vcpus[vcpu].task;
        if self.tasks[task as usize].life == Life::Running {
            let cpu = self.tasks[task as usize].cpu as usize;
            self.stop_segment(cpu);
            return self.run_vcpu(cpu, task);
        }
        self.rouse(task);
    }

    /// Packets wait for a guest: its first vCPU gets the interrupt, from `cpu`, where vhost runs
    /// or what stands in for it. Returns what it costs there.
    pub(super) fn announce_packets(&mut self, cpu: usize, guest: usize, waker: Waker) -> u64 {
        let task = self.guests[guest].vcpus[0].task;
        match self.tasks[task as usize].life {
            Life::Asleep => self.wake(task, cpu, waker, false),
            Life::Running if !self.guests[guest].vcpus[0].announced => {
                self.vcpu(guest, 0).announced = true;
                let to = self.tasks[task as usize].cpu as usize;
                self.events.push(Event {
                    at_ns: self.now + self.costs.ipi_ns(cpu, to),
                    kind: kind::VCPU,
                    key: key(guest, 0),
                    tag: interrupt::PACKET,
                });
                0
            }
            _ => 0,
        }
    }

    /// A packet is in a guest's memory.
    pub(super) fn hand_to_guest(&mut self, guest: usize, channel: u32, lines: u32) {
        self.vcpu(guest, 0).packets.push_back((channel, lines));
    }

    /// The running vCPU takes what interrupts wait for it. Each makes it leave the guest twice:
    /// to be told, and to say that it is done.
    fn take_interrupts(&mut self, cpu: usize, guest: usize, vcpu: usize) {
        let (task, ..) = self.vcpu_on(cpu);
        let spec = self.guests[guest].spec;
        let v = self.vcpu(guest, vcpu);
        v.announced = false;
        let (prodded, tick) = (std::mem::take(&mut v.prodded), std::mem::take(&mut v.tick));
        let packets = std::mem::take(&mut v.packets);
        let taken = [prodded, tick, !packets.is_empty()];
        let taken = taken.into_iter().filter(|&t| t).count() as u64;
        if taken > 0 {
            self.charge_vcpu(cpu, task, taken * 2 * spec.exit_ns);
        }
        if tick {
            self.metrics.guest.ticks += 1;
            self.charge_vcpu(cpu, task, spec.tick_ns);
            self.tick_in_guest(cpu, task, guest, vcpu);
        }
        for (channel, lines) in packets {
            self.charge_vcpu(cpu, task, spec.receive_ns);
            let c = &mut self.channels[channel as usize];
            c.messages.push_back((lines, cpu as u32));
            c.sent += 1;
            if let Some(receiver) = c.waiting.pop_front() {
                let cost = self.wake_in_guest(receiver, cpu, false);
                self.charge_kernel(cpu, task, cost);
            }
        }
    }

    /// A tick of the guest's kernel: timers, slices, balancing.
    fn tick_in_guest(&mut self, cpu: usize, task: u32, guest: usize, vcpu: usize) {
        for due in std::mem::take(&mut self.vcpu(guest, vcpu).due) {
            let cost = self.wake_in_guest(due, cpu, false);
            self.charge_kernel(cpu, task, cost);
        }
        if self.guests[guest].sched.tick(vcpu) {
            self.requeue_in_guest(cpu, task, guest, vcpu);
        }
        let v = self.vcpu(guest, vcpu);
        v.ticks += 1;
        let due = v.ticks % BALANCE_TICKS == 0;
        match self.guests[guest].sched.nr(vcpu) {
            0 => self.steal_in_guest(guest, vcpu, true),
            _ if due => self.steal_in_guest(guest, vcpu, false),
            _ => {}
        }
    }
}
