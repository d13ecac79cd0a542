// SPDX-License-Identifier: GPL-2.0-or-later
//! Many simulations: each is a value with a key, its result is kept in a store under that key, and a
//! sweep is a list of them.
//!
//! A simulation is a pure function of its inputs, so repeating, resuming, sharing and caching are
//! the same thing: look whether the store has the key. Whoever computes a result writes the same
//! bytes. docs/sweeps.md tells how to use this.

mod error;
mod machine;
mod simulation;
mod store;
mod sweep;

pub use error::SweepError;
pub use simulation::{
    Found, Key, Limits, MODEL, Prepared, ScoreFound, Simulation, Times, simulation_schema,
};
pub use store::{Fault, Pruned, Store, Stored};
pub use sweep::{
    ArmGain, Done, Point, Progress, RankRow, RankVerdict, Ranking, Row, Shard, ShardError,
    Standing, Sweep, sweep_schema,
};
