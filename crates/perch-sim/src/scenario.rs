// SPDX-License-Identifier: GPL-2.0-or-later
//! One run: a pure function of machine, workload, policy and seed.

use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{ParseError, Policy, Topology};
use perch_sched::check::Auditor;

use crate::observe::{Glimpse, Metrics, Requests, WAKE_PERCENTILES, Watch};
use crate::workload::{Basis, ClassError, EraError, GroupError, Workload, check_groups};
use crate::world::Simulation;

/// How the simulated kernel lays out its root domain: which fields that all CPUs use lie on one
/// cache line. A property of the kernel, the same for every arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RootDomain {
    /// As in every release up to 7.2: `rto_count` and `overloaded` share one.
    #[default]
    Stock,
    /// As patch 2 of the series of 2025 has it: `overloaded` and the pointer to `rto_mask` lie on
    /// lines that are seldom written.
    Rearranged,
}

/// No root domain is laid out like this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown root domain \"{0}\": expected stock or rearranged")]
pub struct UnknownRootDomain(String);

impl FromStr for RootDomain {
    type Err = UnknownRootDomain;

    fn from_str(name: &str) -> Result<RootDomain, UnknownRootDomain> {
        match name {
            "stock" => Ok(RootDomain::Stock),
            "rearranged" => Ok(RootDomain::Rearranged),
            _ => Err(UnknownRootDomain(name.to_string())),
        }
    }
}

impl RootDomain {
    /// Its name, where it is not the stock kernel's.
    pub fn changed(self) -> Option<&'static str> {
        match self {
            RootDomain::Stock => None,
            RootDomain::Rearranged => Some("rearranged"),
        }
    }
}

/// Everything that a run depends on.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The machine.
    pub machine: Arc<Machine>,
    /// The kernel's view of it.
    pub topology: Arc<Topology>,
    /// The stock kernel and the mechanisms in it.
    pub policy: Policy,
    /// Ticks a second, 1 to 10,000 (`CONFIG_HZ`).
    pub hz: u32,
    /// How the kernel's root domain is laid out.
    pub root_domain: RootDomain,
    /// What runs.
    pub workload: Workload,
    /// Simulated time before measuring starts, nanoseconds.
    pub warmup_ns: u64,
    /// Simulated time that is measured, nanoseconds. For a workload that is judged by its time
    /// the most that it may take; it starts its clock itself, whenever it is ready.
    pub measure_ns: u64,
    /// Where all random numbers come from.
    pub seed: u64,
}

/// A number that the workload is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// What it is.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what.
    pub unit: &'static str,
    /// Whether more is better.
    pub higher_is_better: bool,
}

/// What a run gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The workload's scores, in a fixed order.
    pub scores: Vec<Score>,
    /// What happened on the way.
    pub metrics: Metrics,
}

/// Why a scenario cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// Ticks out of range.
    #[error("hz = {0}: expected 1 to 10000 ticks a second")]
    Hz(u32),
    /// Nothing would be measured.
    #[error("the measured time is 0: expected at least one nanosecond")]
    NothingMeasured,
    /// The era's kernel does not have a mechanism.
    #[error(transparent)]
    Modes(#[from] ParseError),
    /// The era's kernel does not have what the workload asks for.
    #[error(transparent)]
    Era(#[from] EraError),
    /// A task is in no class that exists.
    #[error("task {task} of workload \"{workload}\": {why}")]
    Class {
        /// The workload.
        workload: String,
        /// Its number, from 0.
        task: usize,
        /// What is wrong with its class.
        why: ClassError,
    },
    /// The task groups, or a task's place in them, are not as they must be.
    #[error("workload \"{workload}\": {why}")]
    Groups {
        /// The workload.
        workload: String,
        /// What is wrong.
        why: GroupError,
    },
    /// Simulated time is 64 bits of nanoseconds.
    #[error("warm-up and measured time together exceed 100 years of simulated time")]
    TooLong,
    /// A workload that is judged by its time took more than it was given.
    #[error(
        "workload \"{workload}\" {done} after {limit_s} s of simulated time: give it more time to \
         be measured (--measure), or less to do"
    )]
    Unfinished {
        /// The workload.
        workload: String,
        /// How far it came.
        done: &'static str,
        /// How long it was given.
        limit_s: f64,
    },
    /// The trace could not be written.
    #[error("writing the trace: {0}")]
    Trace(#[from] std::io::Error),
}

/// Who is told of a run, beside its metrics.
enum Onlooker<'a> {
    Nobody,
    /// A line for every decision.
    Trace(&'a mut dyn Write),
    /// Everything.
    Watch(&'a mut dyn Watch),
}

impl Scenario {
    /// Runs it.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn run(&self) -> Result<Outcome, SimError> {
        self.simulate(Onlooker::Nobody, false)
    }

    /// Runs it and writes a line for every decision, the warm-up's included, to `out`.
    ///
    /// # Errors
    /// When a parameter is out of its range, or writing fails.
    pub fn run_traced(&self, out: &mut dyn Write) -> Result<Outcome, SimError> {
        self.simulate(Onlooker::Trace(out), false)
    }

    /// As [`Scenario::run_traced`], with every step an event, also where many could be one: for
    /// tests, slow.
    ///
    /// # Errors
    /// When a parameter is out of its range, or writing fails.
    #[doc(hidden)]
    pub fn run_stepwise(&self, out: &mut dyn Write) -> Result<Outcome, SimError> {
        self.simulate(Onlooker::Trace(out), true)
    }

    /// Runs it step by step and tells `watch` what happens, the warm-up included. The outcome is that
    /// of [`Scenario::run`].
    ///
    /// # Errors
    /// When a parameter is out of its range, or `watch` fails.
    pub fn run_watched(&self, watch: &mut dyn Watch) -> Result<Outcome, SimError> {
        self.simulate(Onlooker::Watch(watch), false)
    }

    fn simulate<'a>(&'a self, onlooker: Onlooker<'a>, stepwise: bool) -> Result<Outcome, SimError> {
        const CENTURY_NS: u64 = 100 * 365 * 86_400 * 1_000_000_000;
        if !(1..=10_000).contains(&self.hz) {
            return Err(SimError::Hz(self.hz));
        }
        if self.measure_ns == 0 {
            return Err(SimError::NothingMeasured);
        }
        let era = self.policy.era();
        era.check(&self.policy.modes())?;
        self.workload.check(era)?;
        for (task, spec) in self.workload.tasks.iter().enumerate() {
            spec.class.check().map_err(|why| SimError::Class {
                workload: self.workload.spec.clone(),
                task,
                why,
            })?;
        }
        check_groups(&self.workload, self.machine.cpus.len()).map_err(|why| SimError::Groups {
            workload: self.workload.spec.clone(),
            why,
        })?;
        let end_ns = self.warmup_ns.checked_add(self.measure_ns);
        let end_ns = end_ns
            .filter(|&end| end <= CENTURY_NS)
            .ok_or(SimError::TooLong)?;
        let mut run = Simulation::new(self);
        match onlooker {
            Onlooker::Nobody => {}
            Onlooker::Trace(out) => run.trace_to(out),
            Onlooker::Watch(watch) => run.watch(watch),
        }
        if stepwise {
            run.step_by_step();
        }
        let measure = &self.workload.measure;
        let only = |metrics, value| {
            let score = Score {
                name: measure.name.to_string(),
                value,
                unit: measure.unit,
                higher_is_better: measure.basis != Basis::Time,
            };
            (metrics, vec![score])
        };
        let (metrics, scores) = match measure.basis {
            Basis::Rate {
                per_count,
                instances,
            } => {
                run.run_until(self.warmup_ns)?;
                run.start_measuring();
                run.run_until(end_ns)?;
                let metrics = run.finish(self.warmup_ns);
                let seconds = self.measure_ns as f64 / 1e9;
                let value = metrics.counted as f64 * per_count / seconds / instances;
                only(metrics, value)
            }
            Basis::Frames => {
                run.run_until(self.warmup_ns)?;
                run.start_measuring();
                run.run_until(end_ns)?;
                let metrics = run.finish(self.warmup_ns);
                let scores = self.frame_scores(&metrics);
                (metrics, scores)
            }
            Basis::Requests => {
                run.run_until(self.warmup_ns)?;
                run.start_measuring();
                run.measure_requests(self.measure_ns);
                run.run_until(end_ns)?;
                let requests = run.take_requests();
                let scores = requests.map(|found| self.request_scores(&found));
                (run.finish(self.warmup_ns), scores.unwrap_or_default())
            }
            Basis::Time => {
                run.run_until(end_ns)?;
                if let Some(started_ns) = run.stopwatch().started_ns {
                    run.run_until(started_ns + self.measure_ns)?;
                }
                let clock = run.stopwatch();
                let span = clock.started_ns.zip(clock.stopped_ns);
                match span.map(|(started_ns, stopped_ns)| (started_ns, stopped_ns - started_ns)) {
                    Some((started_ns, took_ns)) if took_ns <= self.measure_ns => {
                        only(run.finish(started_ns), took_ns as f64 / 1e9)
                    }
                    _ => return Err(self.unfinished(clock.started_ns)),
                }
            }
        };
        run.end()?;
        Ok(Outcome { scores, metrics })
    }

    /// Runs it, stops every `every_ns` (0: whenever anything has happened), checks the books and
    /// lets `look` see. The run itself is the very same as without, but that a workload judged by
    /// its time may be cut short.
    ///
    /// # Errors
    /// What does not hold, and at which moment. This error, like those of all `check` functions
    /// below it, is a text: it tells a developer of a bug, and no program acts on it.
    #[doc(hidden)]
    pub fn run_checked(
        &self,
        every_ns: u64,
        look: &mut dyn FnMut(&Glimpse),
    ) -> Result<Metrics, String> {
        let end_ns = self.warmup_ns + self.measure_ns;
        let mut run = Simulation::new(self);
        let mut auditor = Auditor::default();
        let mut measuring = false;
        loop {
            let next = match every_ns {
                0 => run.next_at().unwrap_or(end_ns),
                _ => run.now_ns() + every_ns,
            };
            let stop_ns = if measuring { end_ns } else { self.warmup_ns };
            run.run_until(next.min(stop_ns))
                .map_err(|e| e.to_string())?;
            run.check(&mut auditor)?;
            look(&run.glimpse());
            let clock = run.stopwatch();
            if let (Some(started_ns), Some(_)) = (clock.started_ns, clock.stopped_ns) {
                return Ok(run.finish(started_ns));
            }
            if run.now_ns() >= end_ns && measuring {
                return Ok(run.finish(self.warmup_ns));
            }
            if run.now_ns() >= self.warmup_ns && !measuring {
                if self.workload.measure.basis != Basis::Time {
                    run.start_measuring();
                }
                measuring = true;
            }
        }
    }

    fn frame_scores(&self, metrics: &Metrics) -> Vec<Score> {
        let score = |name: &str, value, unit, higher_is_better| Score {
            name: name.to_string(),
            value,
            unit,
            higher_is_better,
        };
        let seconds = self.measure_ns as f64 / 1e9;
        vec![
            score("fps", metrics.counted as f64 / seconds, "frames/s", true),
            score("kernel", metrics.kernel_pct(), "%", false),
        ]
    }

    fn request_scores(&self, found: &Requests) -> Vec<Score> {
        let wake = WAKE_PERCENTILES.iter().map(|(name, quantile)| Score {
            name: name.to_string(),
            value: found.wake_us(*quantile),
            unit: "us",
            higher_is_better: false,
        });
        let seconds = self.measure_ns as f64 / 1e9;
        let rates = [
            ("rps20", found.rate(0.2)),
            ("rps", found.total() as f64 / seconds),
        ];
        let rates = rates.map(|(name, value)| Score {
            name: name.to_string(),
            value,
            unit: "req/s",
            higher_is_better: true,
        });
        wake.chain(rates).collect()
    }

    fn unfinished(&self, started_ns: Option<u64>) -> SimError {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (done, limit_ns) = match started_ns {
            Some(_) => ("is not done", self.measure_ns),
            None => ("has not begun", self.warmup_ns + self.measure_ns),
        };
        SimError::Unfinished {
            workload: self.workload.spec.clone(),
            done,
            limit_s: seconds(limit_ns),
        }
    }
}
