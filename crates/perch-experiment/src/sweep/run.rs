// SPDX-License-Identifier: GPL-2.0-or-later
//! Simulating what a store does not have.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use perch_workload::Workload;

use super::Sweep;
use crate::error::ExperimentError;
use crate::pool::{self, Lists};
use crate::simulation::{Key, Prepared, Times};
use crate::store::{Store, Stored};

/// A part of a sweep: `3/64` is the third of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    of: usize,
}

impl Shard {
    /// The whole sweep.
    pub const WHOLE: Shard = Shard { index: 0, of: 1 };

    /// True where the simulation at `place` among the sweep's is in this part. Neighbours go to
    /// different parts: they cost about the same.
    fn has(self, place: usize) -> bool {
        place % self.of == self.index
    }
}

/// The reason why a text names no part of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardError {
    /// Something else than `K/N`.
    #[error("expected a part of the whole, for example 3/64")]
    Form,
    /// A part, of so many, that the whole does not have.
    #[error("part {0} of {1}: expected 1/{whole} to {whole}/{whole}", whole = (*.1).max(1))]
    Beyond(usize, usize),
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Shard { index: index - 1, of }),
            Some((index, of)) => Err(ShardError::Beyond(index, of)),
            None => Err(ShardError::Form),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

/// The numbers of a sweep's simulations, by what became of them.
#[derive(Debug, Default)]
pub struct Done {
    /// Simulations of this part, each once however many points it has.
    pub all: usize,
    /// Those that the store had before.
    pub had: usize,
    /// Those that were made now.
    pub made: usize,
    /// The messages of those that failed.
    pub failed: Vec<String>,
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advance {
    /// The simulations that are done.
    pub done: usize,
    /// The simulations that are to do.
    pub all: usize,
    /// The part of the work that is done, 0 to 1, by what simulations are expected to cost.
    pub part: f64,
}

impl Sweep {
    /// Returns the simulations of a part of the sweep, each once, after all of the sweep's were
    /// checked: a sweep with a mistake in its last point is refused before its first is simulated.
    ///
    /// # Errors
    /// The first point's that cannot be simulated.
    pub fn simulations(&self, shard: Shard) -> Result<Vec<Prepared>, ExperimentError> {
        let mut seen: BTreeSet<Key> = BTreeSet::new();
        let mut simulations = Vec::new();
        for point in self.points() {
            let prepared = point?.prepared;
            let place = seen.len();
            if seen.insert(prepared.key.clone()) && shard.has(place) {
                simulations.push(prepared);
            }
        }
        Ok(simulations)
    }

    /// Opens the store at `folder`, simulates what of a part of the sweep it does not have, on `jobs`
    /// threads, and keeps each result as soon as it is there. A simulation that fails does not stop the
    /// others.
    ///
    /// This thread calls `advance` after each simulation, and ten times a second meanwhile.
    /// After an error of it the threads end what they are at.
    ///
    /// # Errors
    /// When a point cannot be simulated, before a store is made, when the store cannot be written, or
    /// that of `advance`.
    pub fn run<E: From<ExperimentError> + Send>(
        &self,
        folder: &Path,
        shard: Shard,
        jobs: usize,
        advance: &mut dyn FnMut(Advance) -> Result<(), E>,
    ) -> Result<Done, E> {
        let simulations = self.simulations(shard)?;
        let store = Store::open(folder)?;
        let missing = store.lacks(&simulations)?;
        let costs: Vec<f64> = missing.iter().map(|one| self.cost(one)).collect();
        let mut work = Missing {
            simulations: &missing,
            whole: costs.iter().sum(),
            costs,
            at: Advance { done: 0, all: missing.len(), part: 0.0 },
            failed: Vec::new(),
            advance,
        };
        pool::run_lists(&mut work, jobs.min(missing.len()), |one| match one.run() {
            Err(error) => Ok(Some(error.to_string())),
            Ok(found) => {
                let stored = Stored::new(one.key.clone(), one.asked.clone(), found);
                // A disk that is full stays full.
                Ok(store.put(&stored).map(|()| None)?)
            }
        })?;
        let failed = work.failed;
        Ok(Done {
            all: simulations.len(),
            had: simulations.len() - missing.len(),
            made: missing.len() - failed.len(),
            failed,
        })
    }

    /// Returns what a simulation is expected to cost, beside the others of the sweep, which have the same
    /// effort.
    ///
    /// Events come from CPUs that are busy, and idle ones cost nothing: tcp_rr on the Kunpeng's 128 CPUs took 0.01 s
    /// with 2 tasks, 0.17 s with 16, 0.92 s with 128, and 0.89 s with 512. A simulation that goes on until
    /// its scores are steady ends by the number of its events, whatever their rate.
    fn cost(&self, prepared: &Prepared) -> f64 {
        if let Times::Until(_) = prepared.asked.effort {
            return 1.0;
        }
        let Ok(machine) = prepared.machine() else {
            return 1.0;
        };
        let workload =
            Workload::parse_within(&prepared.asked.workload, &machine, self.limits.budget);
        let tasks = workload.map_or(1, |workload| workload.tasks.len());
        tasks.clamp(1, machine.cpus.len().max(1)) as f64
    }
}

/// The simulations that a store lacks, as one list.
struct Missing<'a, E> {
    simulations: &'a [&'a Prepared],
    costs: Vec<f64>,
    /// Their sum.
    whole: f64,
    at: Advance,
    failed: Vec<String>,
    advance: &'a mut dyn FnMut(Advance) -> Result<(), E>,
}

impl<'a, E: Send> Lists for Missing<'a, E> {
    type Task = &'a Prepared;
    /// The message of a simulation that failed.
    type Found = Option<String>;
    type Error = E;

    fn lengths(&self) -> Vec<usize> {
        vec![self.simulations.len()]
    }

    fn task(&self, _list: usize, index: usize) -> &'a Prepared {
        self.simulations[index]
    }

    fn keep(&mut self, _list: usize, index: usize, failed: Option<String>) -> Result<(), E> {
        self.failed.extend(failed);
        self.at.part += self.costs[index] / self.whole;
        Ok(())
    }

    fn advance(&mut self, done: usize, _known: usize) -> Result<(), E> {
        self.at.done = done;
        (self.advance)(self.at)
    }

    /// The store has the results: a long simulation keeps nobody waiting.
    fn ahead(&self, _jobs: usize) -> usize {
        usize::MAX
    }
}
