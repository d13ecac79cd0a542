// SPDX-License-Identifier: GPL-2.0-or-later
//! One run: a pure function of machine, workload, policy and seed.

use std::io::Write;

use perch_sched::check::Auditor;

use crate::observe::{Glimpse, Metrics, Requests, WAKE_PERCENTILES, Watch};
use crate::scenario::{Outcome, Scenario, Score, SimError};
use crate::workload::{Basis, check_groups};
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

    /// Runs it, stops every `every_ns` (0: after each event), checks the books and shows `look` the
    /// inside. The run itself is the same as that of [`Scenario::run`], except that a workload which
    /// is judged by its time may be cut short.
    ///
    /// # Errors
    /// The statement that does not hold, and the moment. This error, like those of all `check`
    /// functions below it, is a text: it tells a developer of a bug, and no program acts on it.
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
