// SPDX-License-Identifier: GPL-2.0-or-later
//! The inside of a running simulation, for tests: state that no score and no metric shows.

use crate::core::Life;
use crate::core::Sched;
use crate::id::TaskId;

/// The world at one moment.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Glimpse {
    /// The moment, in nanoseconds.
    pub now_ns: u64,
    /// The tasks, by number.
    pub tasks: Vec<TaskGlimpse>,
    /// The CPUs, by number.
    pub cpus: Vec<CpuGlimpse>,
    /// For each LLC, the scan budget and the utilisation of all its CPUs.
    pub llcs: Vec<(u32, u64)>,
    /// For each LLC, the load that cache-aware wake-up compares.
    pub loads: Vec<LoadGlimpse>,
    /// True if no CPU is about to pick another task or asked to push, and no task is on its way to a
    /// CPU.
    pub settled: bool,
}

/// The load of an LLC as the cache mechanism knows it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadGlimpse {
    /// The utilisation.
    pub util: u32,
    /// The number of tasks.
    pub nr: u32,
    /// The time at which periodic balance noted the load; `None` before the first time, and in
    /// modes in which it does not.
    pub noted_ns: Option<u64>,
}

/// A task at one moment.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct TaskGlimpse {
    /// The CPU on which the task runs or ran last.
    pub cpu: usize,
    /// True if the task runs.
    pub running: bool,
    /// True if the task waits on a queue for its turn.
    pub waiting: bool,
    /// The task's run time so far, in nanoseconds.
    pub ran_ns: u64,
    /// The load average as it was last updated.
    pub load: u32,
    /// The utilisation as it was last updated.
    pub util: u32,
    /// EEVDF: the task's lag while it is runnable, in virtual nanoseconds.
    pub lag_ns: i64,
    /// The task's real-time priority; 0 in the fair class.
    pub priority: u8,
    /// True for the first of those real-time tasks that wait on the same CPU and may run elsewhere.
    pub first: bool,
    /// The LLC that the task's process prefers (in mode perch the first of them).
    pub prefers: Option<usize>,
}

/// A CPU at one moment.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct CpuGlimpse {
    /// The running task.
    pub current: Option<TaskId>,
    /// The number of tasks on the CPU's queues, the running and delayed ones included.
    pub nr: u32,
    /// True if the CPU is idle, and no task is on its way to it.
    pub idle: bool,
    /// True if the CPU's running task does not fit it.
    pub misfit: bool,
    /// The capacity that is left for fair tasks, as the policy sees it.
    pub capacity: u32,
}

impl TaskGlimpse {
    /// Sets the place and the run time of a task of a virtual machine or of another computer, which
    /// its own scheduler knows: `vcpu` is its CPU there.
    pub fn is_inside(&mut self, vcpu: usize, life: Life, ran_ns: u64) {
        self.cpu = vcpu;
        self.running = life == Life::Running;
        self.waiting = life == Life::Queued;
        self.ran_ns = ran_ns;
    }
}

impl Glimpse {
    /// Returns the scheduler's state at this moment.
    pub fn of(sched: &Sched<'_>) -> Glimpse {
        let tasks = sched.rq.tasks().map(|(id, t)| {
            let average = sched.rq.task_average(id);
            let (priority, first) = sched.rq.rt_rank(id);
            TaskGlimpse {
                cpu: t.cpu(),
                running: t.life() == Life::Running,
                waiting: t.life() == Life::Queued,
                ran_ns: sched.ran_ns(id),
                load: average.load,
                util: average.util,
                lag_ns: if sched.rq.is_balanced(id) { sched.rq.lag_now(id) } else { 0 },
                priority,
                first,
                prefers: {
                    let cpu = t.state.process().and_then(|p| sched.host.preferred_cpu(p));
                    cpu.and_then(|cpu| sched.host.topology().llc(cpu))
                },
            }
        });
        let cpus = (0..sched.nr_cpus()).map(|cpu| CpuGlimpse {
            current: sched.rq.current(cpu),
            nr: sched.rq.nr(cpu),
            idle: sched.host.is_idle(cpu),
            misfit: sched.is_misfit(cpu),
            capacity: sched.host.cpu(cpu).capacity,
        });
        let topology = sched.host.topology();
        let llcs = (0..topology.nr_llcs()).map(|llc| {
            let cpus = topology.llc_span(llc).iter();
            let util = cpus.map(|c| u64::from(sched.host.cpu(c).util)).sum();
            (sched.host.nr_idle_scan(llc), util)
        });
        let loads = (0..topology.nr_llcs()).map(|llc| LoadGlimpse {
            util: sched.host.llc_load(llc).util,
            nr: sched.host.llc_load(llc).nr,
            noted_ns: sched.caches.noted_ns(llc),
        });
        Glimpse {
            settled: (0..sched.nr_cpus()).all(|cpu| {
                let inbox = sched.inbox(cpu);
                !inbox.is_told() && inbox.tasks().is_empty()
            }) && !(0..sched.nr_cpus()).any(|cpu| sched.rq.need_resched(cpu))
                && sched.rq.round_at().is_none(),
            loads: loads.collect(),
            now_ns: sched.rq.now(),
            tasks: tasks.collect(),
            cpus: cpus.collect(),
            llcs: llcs.collect(),
        }
    }
}
