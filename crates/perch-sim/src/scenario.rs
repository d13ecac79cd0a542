// SPDX-License-Identifier: GPL-2.0-or-later
//! The inputs of a run, and its results.

use std::str::FromStr;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{CpuMask, Era, Modes, ParseError, Policy, Topology};
use perch_sched::{Violation, longest_busy_interval_ns};

use crate::observe::Metrics;
use crate::outside::Outside;
use crate::workload::{ClassError, EraError, GroupError, Site, Workload};

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

/// The name of a layout of the root domain that does not exist.
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
    /// The scheduler in place of the fair class, if there is one.
    pub scheduler: Option<Outside>,
    /// The tasks that run.
    pub workload: Workload,
    /// Simulated time before measuring starts, nanoseconds.
    pub warmup_ns: u64,
    /// Simulated time that is measured, nanoseconds. For a workload that is judged by its time
    /// the most that it may take; it starts its clock itself, whenever it is ready.
    pub measure_ns: u64,
    /// The seed of all random numbers.
    pub seed: u64,
}

impl Scenario {
    /// A run of the workload from its start under Linux 7.2 with all mechanisms off: 250 Hz, seed 1.
    pub fn plain(machine: Arc<Machine>, workload: Workload, measure_ns: u64) -> Scenario {
        Scenario {
            topology: Topology::new(&machine),
            machine,
            policy: Policy::new(Era::V7_2, Modes::default()),
            hz: 250,
            root_domain: RootDomain::Stock,
            scheduler: None,
            workload,
            warmup_ns: 0,
            measure_ns,
            seed: 1,
        }
    }
}

/// Returns the longest time that may pass until the balancer has tried to move any task of a workload, in
/// nanoseconds: the longest time between two passes on a CPU that is busy all the time, over a domain
/// within which a task may move. A score that is measured after a shorter warm-up need not last.
pub fn balancing_ns(era: Era, topology: &Topology, workload: &Workload) -> u64 {
    let tasks = workload.tasks.iter().filter(|task| task.site == Site::Host);
    let mut masks: Vec<&Arc<CpuMask>> = workload.masks.iter().collect();
    // Tasks that share an affinity follow one another, or share one and the same mask.
    masks.extend(tasks.map(|task| &task.allowed));
    masks.dedup_by(|a, b| Arc::ptr_eq(a, b));
    let of_mask = |mask: &Arc<CpuMask>| longest_busy_interval_ns(era, topology, mask);
    masks.into_iter().map(of_mask).max().unwrap_or(0)
}

/// A number that the workload is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Score {
    /// Its name.
    pub name: String,
    /// The number.
    pub value: f64,
    /// The unit of the number.
    pub unit: &'static str,
    /// A higher number is better.
    pub higher_is_better: bool,
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The workload's scores, in a fixed order.
    pub scores: Vec<Score>,
    /// The figures of the measured part beside the scores.
    pub metrics: Metrics,
}

/// The reason why a scenario cannot be run.
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
    /// A task's class does not exist.
    #[error("task {task} of workload \"{workload}\": {why}")]
    Class {
        /// The workload.
        workload: String,
        /// The task's number, from 0.
        task: usize,
        /// The reason why its class is refused.
        why: ClassError,
    },
    /// The task groups, or a task's place in them, are not possible.
    #[error("workload \"{workload}\": {why}")]
    Groups {
        /// The workload.
        workload: String,
        /// The reason why they are refused.
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
        /// How far the workload came, for the message.
        done: &'static str,
        /// The simulated time that it was given, seconds.
        limit_s: f64,
    },
    /// A workload that is judged by its time is killed before it is done.
    #[error(
        "workload \"{workload}\" is not done after {after_s} s, where its file's \"duration\" \
         kills it: expected a longer duration, -1, or fewer loops"
    )]
    Killed {
        /// The workload.
        workload: String,
        /// The simulated time that it is given, seconds.
        after_s: f64,
    },
    /// A scheduler from outside cannot be loaded, or did not last.
    #[error("scheduler {words}: {why}")]
    Scheduler {
        /// The scheduler, in the words of whoever asked for it.
        words: String,
        /// What was wrong.
        why: String,
    },
    /// The trace could not be written.
    #[error("writing the trace: {0}")]
    Trace(#[from] std::io::Error),
    /// The books do not hold, where they are checked.
    #[error(transparent)]
    Violation(#[from] Violation),
}
