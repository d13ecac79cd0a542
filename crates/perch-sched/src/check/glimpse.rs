// SPDX-License-Identifier: GPL-2.0-or-later
//! The inside of a running simulation, for tests: what no score and no metric shows.

use crate::core::Life;
use crate::core::Sched;
use crate::id::TaskId;

/// The world at one moment.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Glimpse {
    /// The moment, nanoseconds.
    pub now_ns: u64,
    /// By task.
    pub tasks: Vec<TaskGlimpse>,
    /// By CPU.
    pub cpus: Vec<CpuGlimpse>,
    /// By LLC: the scan budget and the utilisation of all its CPUs.
    pub llcs: Vec<(u32, u64)>,
    /// By LLC: what cache-aware wake-up goes by.
    pub loads: Vec<LoadGlimpse>,
    /// No CPU is about to choose again who runs, and nobody is on the way to one.
    pub settled: bool,
}

/// How full the cache mechanism takes an LLC for.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadGlimpse {
    /// Utilisation.
    pub util: u32,
    /// Tasks.
    pub nr: u32,
    /// When periodic balance wrote it down; `None` before, and in modes where none does.
    pub noted_ns: Option<u64>,
}

/// A task at one moment.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct TaskGlimpse {
    /// Where it is or was last.
    pub cpu: usize,
    /// It runs.
    pub running: bool,
    /// It waits on a queue for its turn.
    pub waiting: bool,
    /// Run time so far, nanoseconds.
    pub ran_ns: u64,
    /// Averages as they stood when they were last brought up to date.
    pub load: u32,
    /// See `load`.
    pub util: u32,
    /// EEVDF: its lag while runnable, virtual nanoseconds.
    pub lag_ns: i64,
    /// Its real-time priority; 0 in the fair class.
    pub priority: u8,
    /// Of the real-time tasks that wait on its CPU and may run elsewhere, the first.
    pub first: bool,
    /// The LLC that its process prefers (in mode perch the first of them).
    pub prefers: Option<usize>,
}

/// A CPU at one moment.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct CpuGlimpse {
    /// The running task.
    pub current: Option<TaskId>,
    /// Tasks on its queue, the running and delayed ones included.
    pub nr: u32,
    /// Idle, and nothing on its way there.
    pub idle: bool,
    /// Its running task does not fit it.
    pub misfit: bool,
    /// Capacity left for fair tasks, as the policy sees it.
    pub capacity: u32,
}

impl TaskGlimpse {
    /// The task is one of a virtual machine, or of another computer: where it is and what it has run
    /// is told from there.
    pub fn is_inside(&mut self, vcpu: usize, life: Life, ran_ns: u64) {
        self.cpu = vcpu;
        self.running = life == Life::Running;
        self.waiting = life == Life::Queued;
        self.ran_ns = ran_ns;
    }
}

impl Glimpse {
    /// The scheduler at this moment.
    pub fn of(sched: &Sched<'_>) -> Glimpse {
        let tasks = sched.tasks.named().map(|(id, t)| {
            let average = sched.task_average(id);
            let (priority, first) = sched.rt_rank(id);
            TaskGlimpse {
                cpu: t.cpu,
                running: t.life == Life::Running,
                waiting: t.life == Life::Queued,
                ran_ns: sched.ran_ns(id),
                load: average.load,
                util: average.util,
                lag_ns: match sched.is_balanced(id) {
                    true => sched.lag_now(id),
                    false => 0,
                },
                priority,
                first,
                prefers: {
                    let cpu = t.state.process().and_then(|p| sched.host.preferred_cpu(p));
                    cpu.and_then(|cpu| sched.host.topology().llc(cpu))
                },
            }
        });
        let cpus = sched.cpus.iter().enumerate().map(|(cpu, c)| CpuGlimpse {
            current: c.current,
            nr: sched.nr(cpu),
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
            settled: (sched.cpus.iter())
                .all(|c| !c.inbox.is_told() && !c.need_resched && c.inbox.tasks().is_empty()),
            loads: loads.collect(),
            now_ns: sched.now,
            tasks: tasks.collect(),
            cpus: cpus.collect(),
            llcs: llcs.collect(),
        }
    }
}
