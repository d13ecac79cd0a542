// SPDX-License-Identifier: GPL-2.0-or-later
//! The eras of stock kernels, and the rules of the wake-up path that differ between them.

use std::fmt;
use std::str::FromStr;

use crate::mechanism::Mechanism;
use crate::mode::{Mode, ParseError};
use crate::modes::{Modes, OVERLOAD_LAYOUT};

/// The stock kernel whose rules hold (docs/mechanisms/stock.md#eras).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Linux 3.4: CFS, before PELT and before the scan for idle CPUs. Of the mechanisms it has `steer`.
    V3_4,
    /// Linux 5.5: CFS, before capacity-aware wake-up.
    V5_5,
    /// Linux 6.5: CFS.
    V6_5,
    /// Linux 6.15: EEVDF, before cache-aware scheduling.
    V6_15,
    /// Linux 7.2: EEVDF.
    V7_2,
}

/// Every era this version has, by name, in the order of [`Era`].
pub const ERAS: [(&str, Era); 5] = [
    ("3.4", Era::V3_4),
    ("5.5", Era::V5_5),
    ("6.5", Era::V6_5),
    ("6.15", Era::V6_15),
    ("7.2", Era::V7_2),
];

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ERAS[*self as usize].0)
    }
}

impl FromStr for Era {
    type Err = ParseError;

    fn from_str(s: &str) -> Result<Era, ParseError> {
        ERAS.iter()
            .find(|(name, _)| *name == s)
            .map(|&(_, era)| era)
            .ok_or_else(|| {
                let names: Vec<_> = ERAS.iter().map(|(name, _)| *name).collect();
                ParseError(format!(
                    "unknown era \"{s}\": this version has {}",
                    names.join(", ")
                ))
            })
    }
}

/// The rules by which the kernels of an era choose a CPU; `struct perch_rules`.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Wakee flips are halved after this many nanoseconds.
    pub flip_decay_ns: u64,
    /// A SCHED_IDLE wakee sees no idle CPU where SCHED_IDLE tasks run.
    pub idle_sees_policy: bool,
    /// An empty set of candidates ends the scan before anything else is read.
    pub empty_mask_fails_early: bool,
    /// Fork and exec compare groups by the CPUs that the task may use.
    pub groups_by_affinity: bool,
    /// Asymmetric machines balance wake-ups that fit badly, as they do forks.
    pub wake_cap: bool,
    /// The slow path's groups as 5.5 introduced them: without the tasks that wait, without the load of
    /// groups that have no spare capacity, without a second criterion.
    pub early_groups: bool,
    /// A wakee's recent CPU is replaced only when it was taken, and a waker's is its own.
    pub recent_when_taken: bool,
    /// Percent that domains wider than an LLC tolerate; 0 for each domain's own.
    pub far_imbalance_pct: u8,
    /// Percent that domains within an LLC and wider than a core tolerate; 0 for the domain's own.
    pub near_imbalance_pct: u8,
    /// The path of 3.4: idle groups instead of a scan, loads that are weights.
    pub early_path: bool,
}

impl Era {
    /// The kernel's release: major and minor number.
    pub fn release(self) -> (u32, u32) {
        match self {
            Era::V3_4 => (3, 4),
            Era::V5_5 => (5, 5),
            Era::V6_5 => (6, 5),
            Era::V6_15 => (6, 15),
            Era::V7_2 => (7, 2),
        }
    }

    /// Refuses modes of mechanisms that are not modelled on the era's kernel: the wake-up path of
    /// 3.4 has no place for most, and its root domain lay differently in memory.
    ///
    /// # Errors
    /// Naming the first such mechanism.
    pub fn check(self, modes: &Modes) -> Result<(), ParseError> {
        let lacks = |m: &Mechanism| m.era() > self.release();
        let set = modes
            .iter()
            .find(|(m, mode)| lacks(m) && *mode != Mode::Off);
        let set = set.map(|(m, mode)| (m, m.name(), mode.to_string()));
        let layout = modes.layout.filter(|_| lacks(&Mechanism::Overload));
        let layout = layout.map(|l| (Mechanism::Overload, OVERLOAD_LAYOUT, l.to_string()));
        let Some((mechanism, name, value)) = set.or(layout) else {
            return Ok(());
        };
        let modelled: Vec<_> = Mechanism::ALL.into_iter().filter(|m| !lacks(m)).collect();
        let names: Vec<_> = modelled.iter().map(|m| m.name()).collect();
        let are = if names.len() == 1 { "is" } else { "are" };
        let (major, minor) = mechanism.era();
        Err(ParseError(format!(
            "{name}={value} does nothing in era {self}, of which {} alone {are} modelled: leave \
             {name} out, or choose era {major}.{minor} or a later one",
            names.join(", ")
        )))
    }

    /// The era's rules for the wake-up path. 6.5 and 7.2: docs/mechanisms/stock.md#idle-search.
    /// 5.5: docs/mechanisms/capacity.md#before, and 5.6.4 where that is silent. 3.4:
    /// docs/mechanisms/stock.md#34, and the kernel where that is silent. The groups of fork and
    /// exec: kernel commit 82d6e01a0699 of 6.19.
    pub fn rules(self) -> Rules {
        let common = Rules {
            flip_decay_ns: 1_000_000_000,
            idle_sees_policy: false,
            empty_mask_fails_early: false,
            groups_by_affinity: false,
            wake_cap: false,
            early_groups: false,
            recent_when_taken: false,
            far_imbalance_pct: 0,
            near_imbalance_pct: 0,
            early_path: false,
        };
        match self {
            Era::V3_4 => Rules {
                far_imbalance_pct: 125,
                near_imbalance_pct: 125,
                early_path: true,
                ..common
            },
            Era::V5_5 => Rules {
                wake_cap: true,
                early_groups: true,
                recent_when_taken: true,
                far_imbalance_pct: 125,
                ..common
            },
            Era::V6_5 | Era::V6_15 => common,
            Era::V7_2 => Rules {
                idle_sees_policy: true,
                empty_mask_fails_early: true,
                groups_by_affinity: true,
                ..common
            },
        }
    }
}
