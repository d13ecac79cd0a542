// SPDX-License-Identifier: GPL-2.0-or-later
//! One run: a pure function of machine, workload, policy and seed.

use std::io::Write;

use perch_sched::check::Auditor;

use crate::observe::{Batch, Glimpse, Metrics, Requests, Span, WAKE_PERCENTILES, Watch};
use crate::scenario::{Outcome, Scenario, Score, SimError};
use crate::workload::{Basis, Op, check_groups};
use crate::world::Simulation;

/// The reader of a run beside its metrics.
enum Onlooker<'a> {
    Nobody,
    /// A trace that gets a line for every decision.
    Trace(&'a mut dyn Write),
    /// An onlooker that hears everything.
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

    /// Runs it as [`Scenario::run`] does, and returns the measured time in `parts` batches of one
    /// length beside the outcome. A workload that is judged by the time that it takes has none.
    ///
    /// # Errors
    /// When a parameter is out of its range.
    pub fn run_in_batches(&self, parts: u32) -> Result<(Outcome, Vec<Batch>), SimError> {
        self.simulate_in(parts.max(1), Onlooker::Nobody, false)
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
        let (outcome, _) = self.simulate_in(1, onlooker, stepwise)?;
        Ok(outcome)
    }

    fn simulate_in<'a>(
        &'a self,
        parts: u32,
        onlooker: Onlooker<'a>,
        stepwise: bool,
    ) -> Result<(Outcome, Vec<Batch>), SimError> {
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
        check_groups(&self.workload, self.machine.cpus.len())
            .map_err(|why| SimError::Groups { workload: self.workload.spec.clone(), why })?;
        let mut ops = self.workload.tasks.iter().flat_map(|t| t.program.iter());
        if let Some(scheduler) = &self.scheduler
            && ops.any(|op| matches!(op, Op::Join { .. }))
        {
            return Err(SimError::Scheduler {
                words: scheduler.words().to_string(),
                why: "tasks that change their group are not simulated under sched_ext".to_string(),
            });
        }
        let end_ns = self.warmup_ns.checked_add(self.measure_ns);
        if end_ns.is_none_or(|end_ns| end_ns > CENTURY_NS) {
            return Err(SimError::TooLong);
        }
        let mut run = Simulation::new(self)?;
        match onlooker {
            Onlooker::Nobody => {}
            Onlooker::Trace(out) => run.trace_to(out),
            Onlooker::Watch(watch) => run.watch(watch),
        }
        if stepwise {
            run.step_by_step();
        }
        let (outcome, batches) = if self.workload.is_timed() {
            (self.run_timed(&mut run)?, Vec::new())
        } else {
            self.run_measured(&mut run, parts)?
        };
        run.end()?;
        Ok((outcome, batches))
    }

    /// Runs a workload that is judged by what it does in a given time.
    fn run_measured(
        &self,
        run: &mut Simulation,
        parts: u32,
    ) -> Result<(Outcome, Vec<Batch>), SimError> {
        run.run_until(self.warmup_ns)?;
        run.start_measuring();
        if self.workload.measure.basis == Basis::Requests {
            run.measure_requests(self.measure_ns);
        }
        let begin = run.so_far();
        let (mut since, mut batches) = (begin, Vec::new());
        for part in 1..=parts {
            let part_ns = u128::from(self.measure_ns) * u128::from(part) / u128::from(parts);
            run.run_until(self.warmup_ns + part_ns as u64)?;
            let (now, wake_us) = (run.so_far(), run.end_batch());
            let span = now.since(&since);
            let rate = span.counted / span.seconds;
            batches.push(Batch {
                scores: self.values(&span, wake_us, rate),
                latency_us: span.latency_us,
                kernel_pct: span.kernel_pct,
            });
            since = now;
        }
        let span = since.since(&begin);
        let requests = run.take_requests();
        let wake_us = requests.as_ref().map(Requests::wake_percentiles_us);
        let rps20 = requests.map_or(0.0, |found| found.rate(0.2));
        let values = self.values(&span, wake_us, rps20);
        let scores = self.scores(values.into_iter().map(|value| value.unwrap_or(0.0)));
        let metrics = run.finish(self.warmup_ns);
        Ok((Outcome { scores, metrics }, batches))
    }

    /// Runs a workload that is judged by the time that it takes.
    fn run_timed(&self, run: &mut Simulation) -> Result<Outcome, SimError> {
        run.run_until(self.warmup_ns + self.measure_ns)?;
        if let Some(started_ns) = run.stopwatch().started_ns {
            run.run_until(started_ns + self.measure_ns)?;
        }
        let clock = run.stopwatch();
        let span = clock.started_ns.zip(clock.stopped_ns);
        let span = span.map(|(started_ns, stopped_ns)| (started_ns, stopped_ns - started_ns));
        let killed_ns = match self.workload.measure.basis {
            Basis::Time { killed_ns } => killed_ns.unwrap_or(u64::MAX),
            _ => u64::MAX,
        };
        match span {
            _ if killed_ns <= span.map_or(self.measure_ns, |(_, took_ns)| took_ns) => {
                Err(SimError::Killed {
                    workload: self.workload.spec.clone(),
                    after_s: killed_ns as f64 / 1e9,
                })
            }
            Some((started_ns, took_ns)) if took_ns <= self.measure_ns => {
                let scores = self.scores([took_ns as f64 / 1e9]);
                let metrics = run.finish(started_ns);
                Ok(Outcome { scores, metrics })
            }
            _ => Err(self.unfinished(clock.started_ns)),
        }
    }

    /// Runs it, stops every `every_ns` (0: after each event), checks the books and shows `look` the
    /// inside. The run itself is the same as that of [`Scenario::run`], except that a workload which
    /// is judged by its time may be cut short.
    ///
    /// # Errors
    /// [`SimError::Violation`], with the statement that does not hold, and the moment.
    #[doc(hidden)]
    pub fn run_checked(
        &self,
        every_ns: u64,
        look: &mut dyn FnMut(&Glimpse),
    ) -> Result<Metrics, SimError> {
        let end_ns = self.warmup_ns + self.measure_ns;
        let mut run = Simulation::new(self)?;
        let mut auditor = Auditor::default();
        let mut measuring = false;
        loop {
            let next = match every_ns {
                0 => run.next_at().unwrap_or(end_ns),
                _ => run.now_ns() + every_ns,
            };
            let stop_ns = if measuring { end_ns } else { self.warmup_ns };
            run.run_until(next.min(stop_ns))?;
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
                if !self.workload.is_timed() {
                    run.start_measuring();
                }
                measuring = true;
            }
        }
    }

    /// The values of a span's scores, in their order. `rps20` is that percentile of the requests a
    /// second.
    fn values(
        &self,
        span: &Span,
        wake_us: Option<[f64; WAKE_PERCENTILES.len()]>,
        rps20: f64,
    ) -> Vec<Option<f64>> {
        let rate = span.counted / span.seconds;
        match self.workload.measure.basis {
            Basis::Rate { per_count, instances } => {
                vec![Some(span.counted * per_count / span.seconds / instances)]
            }
            Basis::Frames => vec![Some(rate), span.kernel_pct],
            Basis::Requests => {
                let wake = (0..WAKE_PERCENTILES.len()).map(|i| wake_us.map(|us| us[i]));
                wake.chain([Some(rps20), Some(rate)]).collect()
            }
            Basis::Time { .. } => Vec::new(),
        }
    }

    /// The workload's scores with these values.
    fn scores(&self, values: impl IntoIterator<Item = f64>) -> Vec<Score> {
        let measure = &self.workload.measure;
        let described = match measure.basis {
            Basis::Rate { .. } => vec![(measure.name, measure.unit, true)],
            Basis::Time { .. } => vec![(measure.name, measure.unit, false)],
            Basis::Frames => vec![("fps", "frames/s", true), ("kernel", "%", false)],
            Basis::Requests => {
                let wake = WAKE_PERCENTILES.map(|(name, _)| (name, "us", false));
                let rates = ["rps20", "rps"].map(|name| (name, "req/s", true));
                wake.into_iter().chain(rates).collect()
            }
        };
        let scores = described.into_iter().zip(values);
        scores
            .map(|((name, unit, higher_is_better), value)| Score {
                name: name.to_string(),
                value,
                unit,
                higher_is_better,
            })
            .collect()
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
