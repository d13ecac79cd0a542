// SPDX-License-Identifier: GPL-2.0-or-later
//! The inside of a running simulation, for tests: what no score and no metric shows.

use super::Kernel;
use super::check::Auditor;
use super::eevdf;
use super::era::FairRules;
use super::task::Life;
use crate::metrics::Metrics;
use crate::scenario::Scenario;
use crate::workload::Basis;

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
    pub current: Option<u32>,
    /// Tasks on its queue, the running and delayed ones included.
    pub nr: u32,
    /// Idle, and nothing on its way there.
    pub idle: bool,
    /// Its running task does not fit it.
    pub misfit: bool,
    /// Capacity left for fair tasks, as the policy sees it.
    pub capacity: u32,
}

impl Kernel<'_> {
    fn glimpse(&self) -> Glimpse {
        let tasks = self.tasks.iter().enumerate().map(|(id, t)| {
            let se = &self.entities[id];
            let running = t.life == Life::Running;
            let on_host = t.on_host();
            let since = if running && on_host {
                self.now.saturating_sub(se.exec_start_ns)
            } else {
                0
            };
            let c = &self.cpus[self.host_cpu(id as u32)];
            let queue = self.queue_of(id as u32);
            let lag = match self.rules.fair {
                _ if t.rt.priority > 0 || !on_host => 0,
                FairRules::Eevdf { .. } if running || t.life == Life::Queued => {
                    let current = self.current_in(queue);
                    eevdf::virtual_time(self.queue(queue), current) - se.vruntime
                }
                _ => 0,
            };
            TaskGlimpse {
                cpu: t.cpu as usize,
                running,
                waiting: t.life == Life::Queued,
                ran_ns: se.sum_exec_ns + since,
                load: se.average.load,
                util: se.average.util,
                lag_ns: lag,
                priority: t.rt.priority,
                first: c.rt.pushable.first() == Some((t.rt.priority, id as u32)),
                prefers: {
                    let cpu = t.state.process().and_then(|p| self.host.preferred_cpu(p));
                    cpu.and_then(|cpu| self.host.topology().llc(cpu))
                },
            }
        });
        let cpus = self.cpus.iter().enumerate().map(|(cpu, c)| CpuGlimpse {
            current: c.current,
            nr: self.nr(cpu),
            idle: self.host.is_idle(cpu),
            misfit: c.misfit > 0,
            capacity: self.host.cpu(cpu).capacity,
        });
        let topology = self.host.topology();
        let llcs = (0..topology.nr_llcs()).map(|llc| {
            let cpus = topology.llc_span(llc).iter();
            let util = cpus.map(|c| u64::from(self.host.cpu(c).util)).sum();
            (self.host.nr_idle_scan(llc), util)
        });
        let loads = (0..topology.nr_llcs()).map(|llc| LoadGlimpse {
            util: self.host.llc_load(llc).util,
            nr: self.host.llc_load(llc).nr,
            noted_ns: self.caches.noted_ns[llc],
        });
        Glimpse {
            settled: (self.cpus.iter())
                .all(|c| !c.ipi_pending && !c.need_resched && c.wake_list.is_empty()),
            loads: loads.collect(),
            now_ns: self.now,
            tasks: tasks.collect(),
            cpus: cpus.collect(),
            llcs: llcs.collect(),
        }
    }
}

impl Scenario {
    /// Runs it, stops every `every_ns` (0: whenever anything has happened), checks the books and
    /// lets `look` see. The run itself is the very same as without, but that a workload judged by
    /// its time may be cut short.
    ///
    /// # Errors
    /// What does not hold, and at which moment.
    #[doc(hidden)]
    pub fn run_checked(
        &self,
        every_ns: u64,
        look: &mut dyn FnMut(&Glimpse),
    ) -> Result<Metrics, String> {
        let end_ns = self.warmup_ns + self.measure_ns;
        let mut kernel = Kernel::new(
            &self.machine,
            &self.topology,
            self.policy,
            self.hz,
            &self.workload,
            self.root_domain,
            self.seed,
        );
        let mut auditor = Auditor::default();
        let mut measuring = false;
        loop {
            let next = match every_ns {
                0 => kernel.events.next_at().unwrap_or(end_ns),
                _ => kernel.now + every_ns,
            };
            let stop_ns = if measuring { end_ns } else { self.warmup_ns };
            kernel
                .run_until(next.min(stop_ns))
                .map_err(|e| e.to_string())?;
            auditor.check(&kernel)?;
            look(&kernel.glimpse());
            let stopped = kernel.stopwatch.stopped_ns.is_some();
            if stopped && let Some(started_ns) = kernel.stopwatch.started_ns {
                return Ok(kernel.finish(started_ns));
            }
            if kernel.now >= end_ns && measuring {
                return Ok(kernel.finish(self.warmup_ns));
            }
            if kernel.now >= self.warmup_ns && !measuring {
                if self.workload.measure.basis != Basis::Time {
                    kernel.start_measuring();
                }
                measuring = true;
            }
        }
    }
}
