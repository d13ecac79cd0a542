// SPDX-License-Identifier: GPL-2.0-or-later
//! Virtual machines: their kernels' queues, and how one vCPU wakes a task on another.
//!
//! A vCPU is a task of the host that runs the tasks of a guest. While a vCPU runs, the guest's task
//! on it works. The same code interprets its program as that of a task of the host, and its work
//! becomes the vCPU's work. An operation that sleeps, wakes or yields calls this room instead of the
//! host's scheduler. A vCPU with nothing to run halts, which is a sleep on the host; the waker of a
//! task on a halted vCPU sends it an interrupt, which is a wake-up on the host by the vCPU that sends
//! it. An interrupt for a vCPU that runs makes the vCPU leave the guest and enter it again; an
//! interrupt for a vCPU that is preempted waits until the vCPU runs (`vcpu.rs`).

mod check;
mod scheduler;
mod spin;
mod vcpu;

use std::collections::VecDeque;

use perch_engine::Random;
use perch_sched::{Life, Sched, Waker};
use perch_workload::{GuestSpec, Op, Workload};

use super::event;
use super::place::Place;
use crate::id::{ChannelId, GuestId, Id, IdVec, TaskId, VcpuId};
use crate::observe::GuestMetrics;
use scheduler::Scheduler;
use spin::Spin;

/// Time for which a task counts as hot where it ran, nanoseconds: 2.6.18 measures some milliseconds
/// at boot.
const HOT_NS: u64 = 2_500_000;
/// Bits of a vCPU's number in the key of its events.
const VCPU_BITS: u32 = 8;

/// The kinds of interrupts for a vCPU, in the tag of the event.
mod interrupt {
    pub const TICK: u32 = 0;
    /// A packet has come for its guest.
    pub const PACKET: u32 = 1;
}

/// A vCPU, as the host keeps it.
#[derive(Debug, Default)]
struct Vcpu {
    /// The host's task that runs this vCPU.
    task: TaskId,
    /// A tick waits for the vCPU to take it.
    tick: bool,
    /// The interrupt of a woken task's waker waits for the vCPU to take it.
    prodded: bool,
    /// Packets that wait for the vCPU to take them: channel and cache lines.
    packets: VecDeque<(ChannelId, u32)>,
    /// The interrupt of these packets is on its way.
    announced: bool,
    /// It has found nothing to run, and goes to the host to sleep.
    halting: bool,
    /// Tasks whose timers have fired since its last tick.
    due: Vec<TaskId>,
    /// Run time of the vCPU when the task on it came.
    mark_ns: u64,
    /// Ticks while busy, for balancing.
    ticks: u32,
    /// Time that it had run when counting began, nanoseconds.
    ran_before_ns: u64,
    /// The locks that it waits for.
    spin: Spin,
}

/// A packet that vhost has to move.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// It goes to the guest, not from it.
    pub inward: bool,
    pub channel: ChannelId,
    /// The message's cache lines.
    pub lines: u32,
}

/// A virtual machine.
#[derive(Debug)]
struct Guest {
    spec: GuestSpec,
    sched: Scheduler,
    vcpus: IdVec<VcpuId, Vcpu>,
    /// The host's task that moves its packets (vhost).
    vhost: Option<TaskId>,
    /// Packets that vhost has to move.
    jobs: VecDeque<Job>,
    /// The packet that vhost moves at the moment.
    moving: Option<Job>,
}

/// A task that is not this machine's: a guest's, or another computer's.
#[derive(Clone, Copy, Debug)]
struct Elsewhere {
    life: Life,
    /// The vCPU on which it runs or ran last.
    vcpu: VcpuId,
    /// The CPU whose caches hold its lines, and that CPU's fill counter when the task left it.
    warm: (Option<usize>, u64),
    /// Time that it has run, nanoseconds.
    ran_ns: u64,
    /// The moment at which it ran last.
    ran_at_ns: u64,
}

/// The virtual machines of a run, and the place of every task.
pub struct Guests {
    /// By task.
    places: IdVec<TaskId, Place>,
    /// By task; empty if all tasks are this machine's.
    elsewhere: IdVec<TaskId, Elsewhere>,
    guests: IdVec<GuestId, Guest>,
    metrics: GuestMetrics,
}

fn key(guest: GuestId, vcpu: VcpuId) -> u32 {
    guest.0 << VCPU_BITS | vcpu.0
}

fn of_key(key: u32) -> (GuestId, VcpuId) {
    let vcpu = key & ((1 << VCPU_BITS) - 1);
    (GuestId(key >> VCPU_BITS), VcpuId(vcpu))
}

impl Guests {
    /// The virtual machines of a workload.
    pub fn new(workload: &Workload) -> Guests {
        let places: IdVec<TaskId, Place> = workload.tasks.iter().map(Place::of).collect();
        let mut guests: IdVec<GuestId, Guest> = (workload.guests.iter())
            .map(|spec| Guest {
                spec: *spec,
                sched: Scheduler::new(spec.vcpus as usize, spec.hz),
                vcpus: (0..spec.vcpus).map(|_| Vcpu::default()).collect(),
                vhost: None,
                jobs: VecDeque::new(),
                moving: None,
            })
            .collect();
        for (task, spec) in places.ids().zip(&workload.tasks) {
            match spec.program.first() {
                Some(&Op::Vcpu { guest, vcpu }) => {
                    guests[GuestId(guest)].vcpus[VcpuId(vcpu)].task = task;
                }
                Some(&Op::Vhost { guest }) => guests[GuestId(guest)].vhost = Some(task),
                _ => {}
            }
        }
        let elsewhere = |place: &Place| matches!(place, Place::Guest(_) | Place::Outside);
        let unborn = Elsewhere {
            life: Life::Unborn,
            vcpu: VcpuId(0),
            warm: (None, 0),
            ran_ns: 0,
            ran_at_ns: 0,
        };
        let any = places.iter().any(elsewhere);
        Guests {
            elsewhere: places.iter().filter(|_| any).map(|_| unborn).collect(),
            places,
            guests,
            metrics: GuestMetrics::default(),
        }
    }

    /// Has the ticks of all vCPUs begin. They do not fall on one moment: each began with its vCPU.
    pub fn start_ticks(&self, sched: &mut Sched<'_>, seed: u64) {
        let mut random = Random::new(seed, u64::MAX);
        for (number, guest) in self.guests.named() {
            let period_ns = 1_000_000_000 / u64::from(guest.spec.hz);
            for vcpu in guest.vcpus.ids() {
                let at_ns = 1 + random.below(period_ns);
                sched.at(at_ns, event::VCPU, key(number, vcpu), interrupt::TICK);
            }
        }
    }

    #[inline]
    pub fn place(&self, task: TaskId) -> Place {
        self.places[task]
    }

    /// A task on another computer goes on, waits or ends.
    pub fn set_life(&mut self, task: TaskId, life: Life) {
        self.elsewhere[task].life = life;
    }

    /// The host's CPU on which a task is or was last; for a task outside, the first CPU.
    pub fn host_cpu(&self, sched: &Sched<'_>, task: TaskId) -> usize {
        match self.place(task) {
            Place::Host | Place::Vcpu(..) => sched.cpu_of_task(task),
            Place::Guest(guest) => {
                let vcpu = self.elsewhere[task].vcpu;
                sched.cpu_of_task(self.guests[guest].vcpus[vcpu].task)
            }
            Place::Outside => 0,
        }
    }

    /// The host's CPU of the vCPU with this key.
    pub fn cpu_of_vcpu(&self, sched: &Sched<'_>, key: u32) -> usize {
        let (guest, vcpu) = of_key(key);
        sched.cpu_of_task(self.guests[guest].vcpus[vcpu].task)
    }

    /// The vCPU that runs on a CPU: its task, its guest and its number there.
    fn vcpu_on(&self, sched: &Sched<'_>, cpu: usize) -> (TaskId, GuestId, VcpuId) {
        let task = sched.current(cpu).expect("a guest runs on a vCPU");
        match self.place(task) {
            Place::Vcpu(guest, vcpu) => (task, guest, vcpu),
            place => unreachable!("task {task} is no vCPU but {place:?}"),
        }
    }

    fn vcpu(&mut self, guest: GuestId, vcpu: VcpuId) -> &mut Vcpu {
        &mut self.guests[guest].vcpus[vcpu]
    }

    /// If a vCPU runs on the CPU, the work of the task on it becomes the vCPU's.
    #[inline]
    pub fn carry(&self, sched: &mut Sched<'_>, cpu: usize) {
        if !self.guests.is_empty() {
            self.carry_inside(sched, cpu);
        }
    }

    #[inline(never)]
    fn carry_inside(&self, sched: &mut Sched<'_>, cpu: usize) {
        if let Some(task) = sched.current(cpu)
            && let Place::Vcpu(guest, vcpu) = self.place(task)
            && let Some(inside) = self.guests[guest].sched.current(vcpu)
        {
            let work_ns = sched.take_work(inside);
            sched.add_work(task, work_ns);
        }
    }

    /// Brings the lines of a guest's task to the CPU of its vCPU.
    fn refill(
        &self,
        sched: &mut Sched<'_>,
        cpu: usize,
        task: TaskId,
        inside: TaskId,
        (warm, warm_fill): (Option<usize>, u64),
    ) {
        let (fill, footprint) = (sched.fill(cpu), sched.footprint(inside));
        let others = fill - warm_fill.min(fill);
        let refill_ns = sched.costs().refill_ns(footprint, warm, cpu, others);
        sched.add_fill(cpu, footprint.lines);
        sched.charge(task, refill_ns);
    }

    /// The next task of a vCPU that runs none: the first of its own queue, or one of another vCPU's.
    fn pick(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        guest: GuestId,
        vcpu: VcpuId,
    ) -> Option<TaskId> {
        if self.guests[guest].sched.nr(vcpu) == 0 {
            self.steal(sched, guest, vcpu, false);
        }
        let next = self.guests[guest].sched.pick(vcpu)?;
        let task = self.guests[guest].vcpus[vcpu].task;
        self.vcpu(guest, vcpu).mark_ns = sched.ran_ns(task);
        let inside = &mut self.elsewhere[next];
        inside.life = Life::Running;
        let warm = inside.warm;
        self.refill(sched, cpu, task, next, warm);
        // At least a nanosecond, so that a task that blocks at once does so at a later time.
        let switch_ns = sched.costs().context_switch_ns().max(1);
        sched.charge_kernel(cpu, task, switch_ns);
        self.metrics.switches += 1;
        Some(next)
    }

    /// A vCPU takes a task off another one's queue, if there is one that it should take.
    fn steal(&mut self, sched: &Sched<'_>, guest: GuestId, vcpu: VcpuId, ticks: bool) {
        let (now, inside) = (sched.now_ns(), &self.elsewhere);
        let allowed = |t: TaskId| sched.allowed(t).contains(vcpu.index());
        let cool = |t: TaskId| now - inside[t].ran_at_ns > HOT_NS;
        let queues = &mut self.guests[guest].sched;
        if let Some(stolen) = queues.steal(vcpu, ticks, allowed, cool) {
            self.elsewhere[stolen.task].vcpu = vcpu;
            self.metrics.balanced += 1;
        }
    }

    /// The task on a vCPU leaves it, and takes the rest of the vCPU's work along.
    fn put(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        task: TaskId,
        guest: GuestId,
        vcpu: VcpuId,
    ) -> Option<TaskId> {
        let inside = self.guests[guest].sched.leave(vcpu)?;
        let ran_ns = sched.ran_ns(task) - self.guests[guest].vcpus[vcpu].mark_ns;
        let left_ns = sched.left_ns(task);
        sched.set_work(task, 0);
        sched.add_work(inside, left_ns);
        let t = &mut self.elsewhere[inside];
        t.warm = (Some(cpu), sched.fill(cpu));
        t.ran_ns += ran_ns;
        t.ran_at_ns = sched.now_ns();
        self.metrics.ran_ns += ran_ns;
        Some(inside)
    }

    /// The task on a vCPU goes behind the others there.
    fn requeue(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        task: TaskId,
        guest: GuestId,
        vcpu: VcpuId,
    ) {
        if let Some(inside) = self.put(sched, cpu, task, guest, vcpu) {
            self.elsewhere[inside].life = Life::Queued;
            self.guests[guest].sched.enqueue(vcpu, inside);
        }
    }

    /// Wakes a guest's task from the vCPU that runs on `cpu`. Returns the cost, nanoseconds.
    pub fn wake(&mut self, sched: &mut Sched<'_>, task: TaskId, cpu: usize, sync: bool) -> u64 {
        let (_, guest, this) = self.vcpu_on(sched, cpu);
        let prev = self.elsewhere[task].vcpu;
        let g = &self.guests[guest];
        let sync = sync && g.spec.pipes;
        let to = g.sched.choose(this, prev, sync, sched.allowed(task));
        self.metrics.wakeups += 1;
        self.need(guest, this, prev);
        self.enqueue(sched, cpu, task, to) + sched.costs().wake_ns(0)
    }

    /// A guest's task is forked from the vCPU that runs on `cpu`, which pays for it beyond the fork
    /// itself.
    pub fn fork(&mut self, sched: &mut Sched<'_>, task: TaskId, cpu: usize) {
        let (on, guest, _) = self.vcpu_on(sched, cpu);
        let to = self.guests[guest].sched.least(sched.allowed(task));
        let cost = self.enqueue(sched, cpu, task, to);
        sched.charge_kernel(cpu, on, cost);
    }

    /// Queues a task on a vCPU, and sends an interrupt to a vCPU that runs no task. Returns the cost of
    /// the interrupt for the sender, nanoseconds.
    fn enqueue(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId, to: VcpuId) -> u64 {
        let (on, guest, this) = self.vcpu_on(sched, cpu);
        self.queue_on(guest, task, to);
        let g = &mut self.guests[guest];
        let halted = g.vcpus[to].task;
        if to == this || g.sched.current(to).is_some() || g.vcpus[to].prodded {
            return 0;
        }
        g.vcpus[to].prodded = true;
        let cost = g.spec.exit_ns;
        self.metrics.interrupts += 1;
        self.metrics.overhead_ns += cost;
        if sched.life(halted) != Life::Asleep {
            return cost;
        }
        let wake_ns = sched.wake(halted, cpu, Waker::Task(on), false);
        self.hold(sched, cpu, guest, this, to);
        cost + wake_ns
    }

    /// Queues a task on a vCPU. Returns the vCPU's own task.
    fn queue_on(&mut self, guest: GuestId, task: TaskId, to: VcpuId) -> TaskId {
        let t = &mut self.elsewhere[task];
        t.vcpu = to;
        t.life = Life::Queued;
        self.guests[guest].sched.enqueue(to, task);
        self.guests[guest].vcpus[to].task
    }

    /// A guest's task appears by itself. Returns the task of the vCPU to which the host has to send
    /// an interrupt.
    pub fn appear(&mut self, sched: &Sched<'_>, guest: GuestId, task: TaskId) -> TaskId {
        let to = self.guests[guest].sched.least(sched.allowed(task));
        self.queue_on(guest, task, to)
    }

    /// A guest's timer is due; its vCPU sees that at its next tick (2.6.18 has no other timers for
    /// sleepers).
    pub fn timer(&mut self, guest: GuestId, task: TaskId) {
        let vcpu = self.elsewhere[task].vcpu;
        self.vcpu(guest, vcpu).due.push(task);
    }

    /// Gives vhost a packet, and wakes it if it sleeps. Returns the cost on `cpu`, nanoseconds.
    pub fn give_vhost(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        guest: GuestId,
        job: Job,
        waker: Waker,
    ) -> u64 {
        let g = &mut self.guests[guest];
        g.jobs.push_back(job);
        let vhost = g.vhost.expect("a guest on a network has vhost");
        if sched.life(vhost) != Life::Asleep {
            return 0;
        }
        // The waker on the host is the vCPU, not the task that runs on it.
        let (waker, exit_ns) = if job.inward {
            (waker, 0)
        } else {
            let vcpu = sched.current(cpu).map_or(waker, Waker::Task);
            (vcpu, g.spec.exit_ns)
        };
        self.metrics.overhead_ns += exit_ns;
        exit_ns + sched.wake(vhost, cpu, waker, false)
    }

    /// The packet that a guest's vhost has just moved.
    pub fn moved(&mut self, guest: GuestId) -> Option<Job> {
        let job = self.guests[guest].moving.take();
        self.metrics.packets += u64::from(job.is_some());
        job
    }

    /// A guest's vhost begins with its next packet. Returns the work of moving it, nanoseconds.
    pub fn move_next(&mut self, guest: GuestId) -> Option<u64> {
        let g = &mut self.guests[guest];
        g.moving = Some(g.jobs.pop_front()?);
        Some(g.spec.vhost_ns.max(1))
    }

    /// A packet is in a guest's memory: its first vCPU gets the interrupt from `cpu`, where vhost runs.
    /// Returns the cost there, nanoseconds.
    pub fn hand_in(
        &mut self,
        sched: &mut Sched<'_>,
        cpu: usize,
        guest: GuestId,
        job: Job,
        waker: Waker,
    ) -> u64 {
        let v = self.vcpu(guest, VcpuId(0));
        v.packets.push_back((job.channel, job.lines));
        let (task, announced) = (v.task, v.announced);
        match sched.life(task) {
            Life::Asleep => sched.wake(task, cpu, waker, false),
            Life::Running if !announced => {
                self.vcpu(guest, VcpuId(0)).announced = true;
                let to = sched.cpu_of_task(task);
                let at_ns = sched.now_ns() + sched.costs().ipi_ns(cpu, to);
                sched.at(at_ns, event::VCPU, key(guest, VcpuId(0)), interrupt::PACKET);
                0
            }
            _ => 0,
        }
    }

    /// The vCPU spends this time in the host's kernel, or in the guest's for interrupts.
    fn charge(&mut self, sched: &mut Sched<'_>, cpu: usize, task: TaskId, ns: u64) {
        sched.charge_kernel(cpu, task, ns);
        self.metrics.overhead_ns += ns;
    }

    /// Counts anew from now on.
    pub fn start_counting(&mut self, sched: &Sched<'_>) {
        self.take_ran(sched);
        self.metrics = GuestMetrics::default();
    }

    /// The counts since the last call of `start_counting`.
    pub fn take_metrics(&mut self, sched: &Sched<'_>) -> GuestMetrics {
        let vcpus_ran_ns = self.take_ran(sched);
        GuestMetrics { vcpus_ran_ns, ..std::mem::take(&mut self.metrics) }
    }

    /// The time that all vCPUs have run since the last call, nanoseconds.
    fn take_ran(&mut self, sched: &Sched<'_>) -> u64 {
        let vcpus = self.guests.iter_mut().flat_map(|g| g.vcpus.iter_mut());
        let ran = vcpus.map(|v| {
            let ran_ns = sched.ran_ns(v.task);
            ran_ns - std::mem::replace(&mut v.ran_before_ns, ran_ns)
        });
        ran.sum()
    }
}
