// SPDX-License-Identifier: GPL-2.0-or-later
//! How long a comparison simulates, and how often: until its scores are steady and its changes are
//! narrow, or the effort is spent. All of it depends on simulated events and figures alone, so the
//! result does not depend on the host or the number of jobs.

use perch_sim::workload::Workload;
use perch_sim::{Batch, Outcome, Score, balancing_ns};

use super::plan::{Plan, Window, timed};
use super::spec::{CompareSpec, failure, scenario};
use crate::error::ExperimentError;
use crate::kept::ArmKept;
use crate::model::Effort;
use crate::pool::{self, Progress};
use crate::stats::{delta, mean};
use crate::transient::BATCHES;

/// The first window, which also tells what a longer one costs.
const SHORTEST_NS: u64 = 250_000_000;
/// A window that is not longer than this is taken from the start where the effort pays for it, whether a
/// transient shows or not: rare moves of the balancer show in long windows only, and more repetitions
/// do not replace them.
const LONG_NS: u64 = 8_000_000_000;
/// The shortest time, where tasks can move, after which a score counts as settled: one pass of the
/// balancer moves few tasks, and the loads that it decides by need a third of a second to grow.
const SPREAD_NS: u64 = 1_000_000_000;
/// The most repetitions that a wide interval makes of those that a comparison begins with.
const MOST_REPETITIONS: u32 = 40;
/// A change is narrow enough if half of its interval's width is not greater than this, percentage
/// points, or than this part of the change.
const NARROW_PP: f64 = 1.0;
const NARROW_PART: f64 = 0.1;

/// The results of all arms.
pub(super) struct Found {
    /// The times of each simulation, and the number of repetitions.
    pub effort: Effort,
    pub arms: Vec<ArmKept>,
    /// The scores of the first arm's first repetition. Every arm has them, because the workload
    /// alone determines them.
    pub described: Vec<Score>,
}

impl Found {
    /// Returns the scores that decide whether simulations go on: the first, and those of which more
    /// is better. The others, percentiles mostly, have intervals of their own to be read by.
    fn deciding(&self) -> impl Iterator<Item = usize> {
        let described = self.described.iter().enumerate();
        described
            .filter(|(index, score)| *index == 0 || score.higher_is_better)
            .map(|(index, _)| index)
    }

    /// Returns true where a deciding score still changes with time.
    fn is_moving(&self) -> bool {
        self.deciding().any(|score| {
            let mut arms = self.arms.iter();
            arms.any(|arm| arm.scores[score].transient().is_some())
        })
    }

    /// Returns true where the change of a deciding score is not narrow, or, of a single arm, the
    /// score itself.
    fn is_wide(&self) -> bool {
        self.deciding().any(|score| {
            let first = &self.arms[0].scores[score].values;
            let changes = match &self.arms[1..] {
                [] => vec![delta(&vec![mean(first); first.len()], first)],
                arms => arms.iter().map(|arm| delta(first, &arm.scores[score].values)).collect(),
            };
            changes.iter().any(|change| {
                let narrow = NARROW_PP.max(NARROW_PART * change.pct.abs());
                change.ci95_pct.is_some_and(|half| half > narrow)
            })
        })
    }

    /// Returns the events of all simulations, those of the warm-up by their share of the time.
    fn cost(&self) -> u64 {
        self.cost_of(self.effort)
    }

    /// Returns the events that the same simulations would have in other times.
    fn cost_of(&self, effort: Effort) -> u64 {
        let measured: u64 = self.arms.iter().map(|arm| arm.events).sum();
        let all_ns = u128::from(effort.warmup_ns) + u128::from(effort.measure_ns);
        let events = u128::from(measured) * all_ns / u128::from(self.effort.measure_ns.max(1));
        u64::try_from(events).unwrap_or(u64::MAX)
    }

    /// Returns the next longer times: twice as long a measurement, and at least as long a warm-up.
    fn longer(&self) -> Effort {
        let measure_ns = 2 * self.effort.measure_ns;
        Effort { measure_ns, warmup_ns: self.effort.warmup_ns.max(measure_ns), ..self.effort }
    }
}

/// Returns the longest time that the balancer may need to spread the tasks of a workload, in
/// nanoseconds; 0 where none may move.
fn spreading_ns(spec: &CompareSpec, workload: &Workload) -> u64 {
    match balancing_ns(spec.era, &spec.topology, workload) {
        0 => 0,
        balance_ns => balance_ns.max(SPREAD_NS),
    }
}

/// Runs the simulations of a comparison.
pub(super) struct Rounds<'a> {
    spec: &'a CompareSpec,
    is_timed: bool,
    /// The longest time that the balancer may need to spread the tasks.
    balance_ns: u64,
    jobs: usize,
    progress: Progress<'a>,
    /// Simulations of the rounds before this.
    behind: usize,
    /// Events of all rounds so far.
    spent: u64,
}

impl<'a> Rounds<'a> {
    pub fn new(
        spec: &'a CompareSpec,
        workload: &Workload,
        jobs: usize,
        progress: Progress<'a>,
    ) -> Rounds<'a> {
        Rounds {
            spec,
            balance_ns: spreading_ns(spec, workload),
            is_timed: workload.is_timed(),
            jobs,
            progress,
            behind: 0,
            spent: 0,
        }
    }

    /// Carries out the comparison's plan. Also returns the times, unless the workload starts and
    /// stops its clock itself.
    pub fn run(mut self) -> Result<(Found, Option<Window>), ExperimentError> {
        let spec = self.spec;
        let (found, effort) = match spec.plan {
            Plan::ByHand(effort) => (self.measure(effort)?, None),
            Plan::Until { effort, repetitions } => {
                let first = spec.plan.repetitions();
                let most = repetitions.unwrap_or(MOST_REPETITIONS);
                let arms = spec.arms.len() as u64;
                let events = effort.events_an_arm().saturating_mul(arms);
                (self.settle(events, first, most)?, Some(effort))
            }
        };
        let window = Window {
            warmup_ms: found.effort.warmup_ms(),
            measure_ms: found.effort.measure_ms(),
            balance_ms: self.balance_ns as f64 / 1e6,
            effort,
        };
        let window = (!self.is_timed).then_some(window);
        Ok((found, window))
    }

    /// Measures within `events` of all simulations together, beginning with `first` repetitions of
    /// each arm and with at most `most`.
    fn settle(&mut self, events: u64, first: u32, most: u32) -> Result<Found, ExperimentError> {
        let mut found =
            if self.is_timed { self.measure(timed(first))? } else { self.begin(events, first)? };
        loop {
            let repetitions = found.effort.repetitions;
            let left = events.saturating_sub(self.spent);
            let longer = found.longer();
            if !self.is_timed && found.is_moving() && found.cost_of(longer) <= left {
                found = self.measure(longer)?;
            } else if found.is_wide() && 2 * repetitions <= most && found.cost() <= left {
                self.repeat(&mut found, 2 * repetitions)?;
            } else {
                return Ok(found);
            }
        }
    }

    /// Measures a first, short window, and then the one that the effort pays for.
    fn begin(&mut self, events: u64, repetitions: u32) -> Result<Found, ExperimentError> {
        let shortest = Effort { repetitions, warmup_ns: SHORTEST_NS, measure_ns: SHORTEST_NS };
        let probe = self.measure(shortest)?;
        let left = events.saturating_sub(self.spent);
        let times = |warmup_ns, measure_ns| Effort { repetitions, warmup_ns, measure_ns };
        let mut window_ns = SHORTEST_NS;
        while window_ns < LONG_NS && probe.cost_of(times(2 * window_ns, 2 * window_ns)) <= left {
            window_ns *= 2;
        }
        let balance_ns = self.balance_ns;
        if window_ns >= balance_ns {
            return match window_ns {
                SHORTEST_NS => Ok(probe),
                _ => self.measure(times(window_ns, window_ns)),
            };
        }
        // The balancer's turn matters more than a long measurement.
        let measured = [1, 2, 4].map(|part| times(balance_ns, balance_ns / part));
        let affordable = measured.into_iter().find(|&effort| probe.cost_of(effort) <= left);
        match affordable {
            Some(effort) => self.measure(effort),
            None if window_ns > SHORTEST_NS => self.measure(times(window_ns, window_ns)),
            None => Ok(probe),
        }
    }

    fn measure(&mut self, effort: Effort) -> Result<Found, ExperimentError> {
        let mut found = Found {
            effort: Effort { repetitions: 0, ..effort },
            arms: self.spec.arms.iter().map(|_| ArmKept::default()).collect(),
            described: Vec::new(),
        };
        self.repeat(&mut found, effort.repetitions)?;
        Ok(found)
    }

    /// Goes on until `found` has `to` repetitions.
    fn repeat(&mut self, found: &mut Found, to: u32) -> Result<(), ExperimentError> {
        let from = found.effort.repetitions;
        let each = (to - from) as usize;
        let (before, effort) = (found.cost(), found.effort);
        let spec = self.spec;
        let run = |index: usize| {
            let arm = &spec.arms[index / each];
            let repetition = from as usize + index % each;
            let scenario = scenario(spec, arm, repetition, effort)?;
            let run = scenario.run_in_batches(BATCHES);
            run.map_err(|error| failure(spec, arm, repetition, &error))
        };
        let keep = |index: usize, (outcome, batches): (Outcome, Vec<Batch>)| {
            found.arms[index / each].add(&outcome, &batches);
            if found.described.is_empty() {
                found.described = outcome.scores;
            }
            Ok(())
        };
        let total = spec.arms.len() * each;
        let behind = self.behind;
        let mut progress = |done, total| (self.progress)(behind + done, behind + total);
        pool::run(total, self.jobs, &mut progress, run, keep)?;
        found.effort.repetitions = to;
        self.behind += total;
        self.spent = self.spent.saturating_add(found.cost() - before);
        Ok(())
    }
}
