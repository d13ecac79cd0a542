// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs arms x loads x repetitions on the simulator, and compares the results with published
//! figures; keeps results in a store, and sweeps over many simulations.
//!
//! An [`Experiment`] is a TOML file beside the CSV of the published figures; [`run()`] turns it
//! into a [`Report`]. A [`Comparison`] puts arbitrary arms on one workload, without published
//! figures. A [`Simulation`] is a value with a key, its result is kept in a [`Store`] under that key,
//! and a [`Sweep`] is a list of them: whoever computes a result writes the same bytes, so repeating,
//! resuming and sharing are to look whether the store has the key. No result depends on the number of
//! threads.

/// The version of the model: the digest of every source that a simulation's result may depend on.
/// Results of two builds with one version are the same to the byte.
pub const MODEL: &str = env!("PERCH_MODEL");

mod arm;
mod bootstrap;
mod cell;
mod compare;
mod contention;
mod diff;
mod error;
mod fit;
mod format;
mod gate;
mod glob;
mod json;
mod judge;
mod kept;
pub mod library;
mod line;
mod machine;
mod model;
mod pool;
mod published;
mod report;
mod run;
mod schema;
mod seed;
mod simulation;
mod statistic;
pub mod stats;
mod store;
mod summary;
mod sweep;
mod tally;
#[cfg(test)]
mod testing;
mod thoroughness;
mod transient;
mod trust;
mod verdicts;

pub use arm::Arm;
pub use cell::{ArmResult, CellReport, Simulated};
pub use compare::{
    ArmKernel, ArmScore, CompareSpec, Comparison, CountRow, MeasuredScore, MeasuredSpec,
    Measurement, Plan, ScoreRow, StatisticScore, Unsettled, Window, check_comparison, compare,
    compare_in_full, compare_measured, watch,
};
pub use contention::{ContendedLine, Contention, LineUser};
pub use diff::{ArmDiff, CountDiff, Diff, Difference, ScoreDiff};
pub use error::ExperimentError;
pub use fit::{Closeness, Fit, Posting};
pub use format::schema as experiment_schema;
pub use gate::{Change, Gate, GateError, GateOutcome, Judged, check_gates, judge_gates};
pub use judge::{Tolerance, Verdict};
pub use line::{LineFound, PublishedLine, Ranking};
pub use model::{
    BASELINE, Calibration, Cell, Effort, Experiment, Judging, Load, PATCHED, Wanted, machines,
};
pub use pool::Progress;
pub use published::{Printed, Published, Repeat};
pub use report::{ArmIterations, ArmModes, Iterations, Report};
pub use run::{RunOptions, run};
pub use schema::{comparison_schema, diff_schema, result_schema};
pub use simulation::{
    Found, Key, Limits, Prepared, ScoreFound, Simulation, Times, simulation_schema,
};
pub use statistic::{DESCRIBE, Statistic, UnknownStatistic};
pub use store::{Fault, Pruned, Store, Stored};
pub use summary::Summary;
pub use sweep::{
    Advance, ArmGain, ArmRanking, Done, Point, RankRow, RankVerdict, Shard, ShardError, Standing,
    Sweep, SweepRow, sweep_schema,
};
pub use tally::{ArmCpus, LoadFound, WakeLatency};
pub use thoroughness::Thoroughness;
pub use trust::{Record, Trust, TrustOfMany};
pub use verdicts::{CellVerdict, Moved, verdicts};
