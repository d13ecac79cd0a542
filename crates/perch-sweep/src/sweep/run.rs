// SPDX-License-Identifier: GPL-2.0-or-later
//! Simulating what a store does not have.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::Sweep;
use crate::error::SweepError;
use crate::simulation::{Key, Prepared};
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

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((index, of)) if (1..=of).contains(&index) => Ok(Shard {
                index: index - 1,
                of,
            }),
            Some((index, of)) => Err(format!(
                "part {index} of {of}: expected 1/{0} to {0}/{0}",
                of.max(1)
            )),
            None => Err("expected a part of the whole, for example 3/64".to_string()),
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

impl Sweep {
    /// Returns the simulations of a part of the sweep, each once, after all of the sweep's were
    /// checked: a sweep with a mistake in its last point is refused before its first is simulated.
    ///
    /// # Errors
    /// The first point's that cannot be simulated.
    pub fn simulations(&self, shard: Shard) -> Result<Vec<Prepared>, SweepError> {
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
    /// # Errors
    /// When a point cannot be simulated, before a store is made, or the store cannot be written.
    pub fn run(
        &self,
        folder: &Path,
        shard: Shard,
        jobs: usize,
        progress: &(dyn Fn(usize, usize) + Sync),
    ) -> Result<Done, SweepError> {
        let simulations = self.simulations(shard)?;
        let store = Store::open(folder)?;
        let there = store.keys()?;
        let missing: Vec<&Prepared> = (simulations.iter())
            .filter(|prepared| !there.contains(&prepared.key))
            .collect();
        let mut done = Done {
            all: simulations.len(),
            had: simulations.len() - missing.len(),
            ..Done::default()
        };
        let next = AtomicUsize::new(0);
        let ended = Mutex::new((0, Vec::new(), None));
        let worker = || {
            while let Some(prepared) = missing.get(next.fetch_add(1, Ordering::Relaxed)) {
                let kept = prepared.run().map(|found| {
                    let asked = prepared.asked.clone();
                    store.put(&Stored::new(prepared.key.clone(), asked, found))
                });
                let mut ended = ended
                    .lock()
                    .expect("no worker panics while it holds the lock");
                ended.0 += 1;
                match kept {
                    Ok(Ok(())) => {}
                    // A disk that is full stays full.
                    Ok(Err(error)) => {
                        ended.2 = Some(error);
                        next.store(missing.len(), Ordering::Relaxed);
                    }
                    Err(error) => ended.1.push((prepared.key.clone(), error.to_string())),
                }
                progress(ended.0, missing.len());
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..jobs.min(missing.len()) {
                scope.spawn(worker);
            }
            worker();
        });
        let (count, mut failed, error) = ended.into_inner().expect("the workers are gone");
        if let Some(error) = error {
            return Err(error);
        }
        failed.sort();
        done.made = count - failed.len();
        done.failed = failed.into_iter().map(|(_, message)| message).collect();
        Ok(done)
    }
}
