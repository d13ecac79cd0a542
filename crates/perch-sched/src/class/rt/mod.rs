// SPDX-License-Identifier: GPL-2.0-or-later
//! The real-time class: FIFO and RR over fair (docs/mechanisms/overload.md and docs/mechanisms/stock.md#rt; read in 6.12).
//!
//! A task that waits and may run elsewhere is pushable; a CPU with one is overloaded. Tasks are
//! pushed away when they are queued or passed over, and pulled when a CPU's own tasks have left it
//! for something lower. Nothing here depends on how the counters of overloaded CPUs lie in memory
//! but what an access costs.

mod answers;
mod check;
mod cpupri;
mod limit;
mod migrate;
mod overload;
mod place;
mod queue;

use perch_policy::{Mode, Overload, Policy, Topology};

use super::Yield;
use super::pelt::Activity;
use crate::core::{Life, NewTask, Sched};
use crate::hardware::{Access, Field, Symbol};
pub(crate) use answers::RtClass;
use cpupri::CpuPri;
pub use queue::RtQueue;

/// An RR task's slice, nanoseconds (`RR_TIMESLICE`).
const RR_SLICE_NS: u64 = 100_000_000;

/// The real-time part of the root domain: what CPUs know of one another.
#[derive(Debug)]
pub(crate) struct RtDomain {
    cpupri: CpuPri,
    /// How many CPUs are overloaded, by the policy's counters.
    overload: Overload,
    /// Which CPUs are, by words of 64 (`rto_mask`).
    mask: Vec<u64>,
    /// Up to 6.11: when the class's period ends.
    period_ns: u64,
    /// Working memory: the CPUs of the lowest level.
    lowest: Vec<u64>,
}

impl RtDomain {
    pub fn new(policy: &Policy, topology: &Topology) -> RtDomain {
        let modes = policy.modes();
        let exact = modes.overload == Mode::Perch;
        let overload = Overload::new(modes.overload_layout(), exact, topology);
        RtDomain {
            cpupri: CpuPri::new(topology.nr_cpus()),
            overload: overload.expect("memory for a counter a cache"),
            mask: vec![0; topology.nr_cpus().div_ceil(64)],
            period_ns: 1_000_000_000,
            lowest: Vec::new(),
        }
    }
}

/// The real-time part of the root domain, for a workload that has real-time tasks.
pub(crate) fn domain(
    specs: &[NewTask],
    policy: &Policy,
    topology: &Topology,
) -> Option<Box<RtDomain>> {
    let any = specs.iter().any(|spec| spec.priority > 0);
    any.then(|| Box::new(RtDomain::new(policy, topology)))
}

/// A task's real-time part; of a fair task all zero.
#[derive(Clone, Copy, Debug, Default)]
pub struct RtEntity {
    /// 1 to 99; 0 for a fair task.
    priority: u8,
    /// RR: has slices.
    slices: bool,
    /// Ticks left of the slice.
    ticks: u64,
    /// Capacity that it asks for where CPUs differ.
    capacity: u32,
}

impl RtEntity {
    pub fn new(spec: &NewTask) -> RtEntity {
        if spec.priority == 0 {
            return RtEntity::default();
        }
        // Who says nothing of its utilisation asks for the largest CPUs
        // (`sched_util_clamp_min_rt_default`).
        let capacity = match spec.uclamp {
            (0, 1024) => 1024,
            (min, _) => min,
        };
        RtEntity {
            priority: spec.priority,
            slices: spec.slices,
            ticks: 0,
            capacity,
        }
    }
}

impl Sched<'_> {
    /// # Panics
    /// When no task of the workload is real-time: nothing else asks.
    fn rt_domain(&self) -> &RtDomain {
        self.rt.as_ref().expect("a real-time task")
    }

    fn rt_domain_mut(&mut self) -> &mut RtDomain {
        self.rt.as_mut().expect("a real-time task")
    }

    /// Whether a task is in this class. Where no task is, the answer costs a comparison.
    #[inline]
    pub(super) fn is_rt(&self, task: u32) -> bool {
        self.rt.is_some() && self.tasks[task as usize].rt.priority > 0
    }

    /// Whether a CPU runs a task of this class.
    #[inline]
    pub(super) fn runs_rt(&self, cpu: usize) -> bool {
        self.rt.is_some() && self.cpus[cpu].rt.running
    }

    /// A task's priority; 0 for a fair one.
    fn priority(&self, task: u32) -> u8 {
        self.tasks[task as usize].rt.priority
    }

    /// The priority of what a CPU runs; 0 if that is fair or nothing.
    fn running_priority(&self, cpu: usize) -> u8 {
        self.cpus[cpu].current.map_or(0, |task| self.priority(task))
    }

    /// Whether a task may run on several CPUs.
    fn may_move(&self, task: u32) -> bool {
        self.affinities[self.tasks[task as usize].affinity as usize].weight() > 1
    }

    fn rr_ticks(&self) -> u64 {
        (RR_SLICE_NS / self.tick_ns).max(1)
    }

    /// Brings the CPU's real-time average up to date; to be called before it changes who runs.
    fn touch_rt(&mut self, cpu: usize) {
        let c = &mut self.cpus[cpu];
        let now = c.pelt.read(self.now);
        let did = match c.rt.running {
            true => Activity {
                weight: 0,
                runnable: 1,
                running: true,
            },
            false => Activity::NONE,
        };
        c.rt.average.update(now, did);
    }

    fn update_capacity(&mut self, cpu: usize) {
        self.touch_rt(cpu);
        let used = self.cpus[cpu].rt.average.util;
        let all = self.host.topology().capacity(cpu);
        self.host.cpu_mut(cpu).capacity = all.saturating_sub(used).max(1);
    }

    /// A CPU's highest priority may have changed.
    fn note_highest(&mut self, cpu: usize) {
        let highest = self.cpus[cpu].rt.runnable.highest();
        let here = self.acting;
        if let Some(old) = self.rt_domain_mut().cpupri.set(cpu, highest) {
            for level in [highest, old] {
                self.line(
                    here,
                    Symbol::CpupriSet,
                    Field::CpupriMask(level),
                    Access::Store,
                );
                self.line(
                    here,
                    Symbol::CpupriSet,
                    Field::CpupriCount(level),
                    Access::Store,
                );
            }
        }
    }

    /// The count of runnable tasks grows from the fair ones' (`add_nr_running()`): beyond one the
    /// root domain's flag is looked at, and set if need be. All real-time tasks of a queue leave
    /// the count and come back whenever one comes or goes.
    fn add_running(&mut self, cpu: usize, symbol: Symbol) {
        let (below, rt) = (self.nr_below_rt(cpu), self.cpus[cpu].rt.nr());
        if rt > 0 && below < 2 && below + rt >= 2 {
            self.set_overload(self.acting, symbol, true);
        }
    }

    /// Puts a task on a queue, behind its equals. On which CPU's behalf does not matter; whoever
    /// does it touches the shared lines.
    #[inline(never)]
    fn enqueue_rt(&mut self, cpu: usize, task: u32) {
        let slice = self.rr_ticks();
        let t = &mut self.tasks[task as usize];
        let queued = matches!(t.life, Life::Queued | Life::Running);
        assert!(!queued, "task {task} is enqueued twice");
        t.cpu = cpu as u32;
        t.life = Life::Queued;
        if t.rt.ticks == 0 {
            t.rt.ticks = slice;
        }
        let priority = t.rt.priority;
        self.cpus[cpu].rt.enqueue(priority, task);
        self.note_highest(cpu);
        self.add_running(cpu, Symbol::EnqueueTaskRt);
        if self.may_move(task) {
            self.enqueue_pushable(cpu, task);
        }
        if !self.cpus[cpu].rt.limit.throttled {
            self.host.set_idle(cpu, false);
        }
        self.publish(cpu);
    }

    /// Takes a task off its queue, running or not.
    fn dequeue_rt(&mut self, cpu: usize, task: u32) {
        let current = self.cpus[cpu].current;
        if let Some(current) = current.filter(|_| self.runs_rt(cpu)) {
            self.account_rt(cpu, current);
        }
        let queued = self.cpus[cpu].rt.dequeue(task);
        assert!(queued, "task {task} was not on cpu {cpu}");
        self.note_highest(cpu);
        self.add_running(cpu, Symbol::DequeueTaskRt);
        self.dequeue_pushable(cpu, task);
    }

    /// The highest task, if the class may run: it stays in its place on the queue.
    #[inline]
    fn pick_rt(&self, cpu: usize) -> Option<u32> {
        self.rt.as_ref()?;
        let first = self.cpus[cpu].rt.runnable.first();
        let (_, task) = first.filter(|_| self.rt_may_run(cpu))?;
        Some(task)
    }

    /// The picked task becomes the running one.
    #[inline(never)]
    fn set_next_rt(&mut self, cpu: usize, task: u32) {
        self.touch_rt(cpu);
        self.dequeue_pushable(cpu, task);
        self.tasks[task as usize].life = Life::Running;
        self.run_time_mut(task).start_ns = self.now;
        let c = &mut self.cpus[cpu];
        assert!(c.current.is_none(), "cpu {cpu} runs two tasks");
        let takes_over = !c.rt.running;
        c.current = Some(task);
        c.need_resched = false;
        c.rt.running = true;
        if takes_over {
            self.limit_starts(cpu);
        }
        if self.caches.is_on() {
            self.starts_running(task);
        }
        self.publish(cpu);
    }

    /// The running task is preempted, or gives way: it keeps its place among its equals.
    #[inline(never)]
    fn put_rt(&mut self, cpu: usize, task: u32) {
        self.stop_current_rt(cpu, task);
        self.tasks[task as usize].life = Life::Queued;
        if self.may_move(task) {
            self.enqueue_pushable(cpu, task);
        }
    }

    /// The running task runs no more.
    fn stop_current_rt(&mut self, cpu: usize, task: u32) {
        self.account_rt(cpu, task);
        self.touch_rt(cpu);
        let c = &mut self.cpus[cpu];
        c.current = None;
        c.rt.running = false;
        self.limit_stops(cpu);
        if self.caches.is_on() {
            self.stops_running(cpu, task);
        }
    }

    /// The running task sleeps or ends: whoever runs next may be lower than who waits elsewhere.
    #[inline(never)]
    fn leave_rt(&mut self, cpu: usize, task: u32, life: Life) {
        let priority = self.priority(task);
        self.dequeue_rt(cpu, task);
        self.stop_current_rt(cpu, task);
        self.tasks[task as usize].life = life;
        if self.caches.is_on() {
            self.reserve(cpu, -1);
            if life == Life::Dead {
                self.count_thread(task, -1);
            }
        }
        if self.cpus[cpu].rt.runnable.highest() < priority {
            self.pull_rt(cpu);
        }
    }

    /// Accounts the running task's time.
    #[inline(never)]
    fn account_rt(&mut self, cpu: usize, task: u32) {
        let now = self.now;
        let delta = self.run_time_mut(task).account(now);
        if delta > 0 {
            self.limit_runs(cpu, delta);
        }
    }

    /// A tick finds a task of this class running.
    #[inline(never)]
    fn tick_rt(&mut self, cpu: usize, task: u32) {
        self.account_rt(cpu, task);
        self.touch_rt(cpu);
        self.publish(cpu);
        self.limit_ticks(cpu);
        let slice = self.rr_ticks();
        let t = &mut self.tasks[task as usize];
        if !t.rt.slices {
            return;
        }
        t.rt.ticks = t.rt.ticks.saturating_sub(1);
        if t.rt.ticks > 0 {
            return;
        }
        t.rt.ticks = slice;
        let priority = t.rt.priority;
        let c = &mut self.cpus[cpu];
        if c.rt.runnable.equals(priority) > 1 {
            c.rt.runnable.remove(task);
            c.rt.runnable.push_back(priority, task);
            c.need_resched = true;
        }
    }

    /// The running task yields: it goes behind its equals.
    #[inline(never)]
    fn yield_rt(&mut self, cpu: usize, task: u32) -> Yield {
        self.account_rt(cpu, task);
        let priority = self.priority(task);
        let queue = &mut self.cpus[cpu].rt.runnable;
        queue.remove(task);
        queue.push_back(priority, task);
        match self.pick_rt(cpu) == Some(task) {
            true => Yield::Keeps,
            false => Yield::GivesWay,
        }
    }

    /// Whether the running task would be picked again: then nothing is switched.
    #[inline(never)]
    fn goes_on_rt(&mut self, cpu: usize, task: u32) -> bool {
        let same = self.cpus[cpu].rt.running && self.pick_rt(cpu) == Some(task);
        if same {
            self.cpus[cpu].need_resched = false;
        }
        same
    }

    /// A task has just been queued: does it take the CPU, and if not, can it run elsewhere
    /// (`wakeup_preempt_rt`, `task_woken_rt`)?
    #[inline(never)]
    fn check_preempt_rt(&mut self, cpu: usize, wakee: u32) {
        if !self.rt_may_run(cpu) {
            return;
        }
        let Some(current) = self.cpus[cpu].current else {
            self.cpus[cpu].need_resched = true;
            return;
        };
        let (priority, running) = (self.priority(wakee), self.priority(current));
        if priority > running {
            self.counts.preemptions += u64::from(!self.cpus[cpu].need_resched);
            self.cpus[cpu].need_resched = true;
        } else if priority == running && !self.cpus[cpu].need_resched {
            self.check_equal(cpu, wakee, current);
        }
        let stays = running >= priority || !self.may_move(current);
        let c = &self.cpus[cpu];
        if running > 0 && stays && !c.need_resched && self.may_move(wakee) {
            self.push_rt(cpu);
        }
    }

    /// Of two equals the one that can move makes way for the one that cannot.
    fn check_equal(&mut self, cpu: usize, wakee: u32, current: u32) {
        if !self.may_move(current) || !self.any_lower(current) {
            return;
        }
        if self.may_move(wakee) && self.any_lower(wakee) {
            return;
        }
        let priority = self.priority(wakee);
        let c = &mut self.cpus[cpu];
        c.rt.runnable.remove(wakee);
        c.rt.runnable.push_front(priority, wakee);
        c.need_resched = true;
        self.counts.preemptions += 1;
    }
}
