// SPDX-License-Identifier: GPL-2.0-or-later
//! How long a comparison simulates, and how often.

use perch_sim::workload::Workload;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::Effort;
use crate::thoroughness::Thoroughness;

/// The most that a workload that is judged by its own time may take.
const TIMED_LIMIT_NS: u64 = 60_000_000_000;
/// The number of repetitions where nobody has said another.
const REPETITIONS: u32 = 5;

/// How long a comparison simulates, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// As long and as often as this says.
    ByHand(Effort),
    /// Until the scores are steady and the changes are narrow, or the effort is spent.
    Until {
        /// The effort.
        effort: Thoroughness,
        /// The number of repetitions; without one, 5 to 40.
        repetitions: Option<u32>,
    },
}

impl Plan {
    /// Returns a plan of these times, and of 5 repetitions where their number is not given.
    pub fn by_hand(warmup_ns: u64, measure_ns: u64, repetitions: Option<u32>) -> Plan {
        Plan::ByHand(Effort {
            repetitions: repetitions.unwrap_or(REPETITIONS),
            warmup_ns,
            measure_ns,
        })
    }

    /// Returns the number of repetitions that a comparison begins with.
    pub fn repetitions(&self) -> u32 {
        match self {
            Plan::ByHand(effort) => effort.repetitions,
            Plan::Until { repetitions, .. } => repetitions.unwrap_or(REPETITIONS),
        }
    }

    /// Returns the times of a repetition that somebody watches. Where they are not given by hand they
    /// are short, because what is watched takes room.
    pub(super) fn watched(&self, workload: &Workload) -> Effort {
        match *self {
            Plan::ByHand(effort) => effort,
            Plan::Until { .. } if workload.is_timed() => timed(1),
            Plan::Until { .. } => {
                Effort { repetitions: 1, warmup_ns: 100_000_000, measure_ns: 500_000_000 }
            }
        }
    }
}

/// The times of a comparison's simulations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Window {
    /// Simulated time before anything was counted, in milliseconds.
    pub warmup_ms: f64,
    /// Simulated time that was counted, in milliseconds.
    pub measure_ms: f64,
    /// The longest time that the balancer may need to spread the tasks, in milliseconds: what a
    /// busy CPU takes between two passes over the CPUs that a task may use, and at least a second,
    /// because one pass moves few tasks.
    pub balance_ms: f64,
    /// The effort that the times were chosen within; none where they were given by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Thoroughness>,
}

impl Window {
    /// Returns true where the balancer had its turn on every task before anything was counted.
    pub fn is_balanced(&self) -> bool {
        self.warmup_ms >= self.balance_ms
    }
}

/// The times of a workload that starts and stops its clock itself.
pub(super) fn timed(repetitions: u32) -> Effort {
    Effort { repetitions, warmup_ns: 0, measure_ns: TIMED_LIMIT_NS }
}
