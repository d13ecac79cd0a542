// SPDX-License-Identifier: GPL-2.0-or-later
//! The eras of stock kernels, and the rules of the wake-up path that differ between them.

use std::fmt;
use std::str::FromStr;

use crate::mechanism::Mechanism;
use crate::mode::{Mode, ParseError};
use crate::modes::{Modes, OVERLOAD_LAYOUT};

mod changes;

pub use changes::{CHANGES, Change, Changes, Row};

/// The stock kernel whose rules hold: a release of Linux from 3.4 to 7.2, older before newer
/// (docs/mechanisms/stock.md#eras). [`CHANGES`] tells one era from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Era {
    major: u8,
    minor: u8,
}

/// The eras of the published tables, by name, the oldest first.
pub const ERAS: [(&str, Era); 5] = [
    ("3.4", Era::V3_4),
    ("5.5", Era::V5_5),
    ("6.5", Era::V6_5),
    ("6.15", Era::V6_15),
    ("7.2", Era::V7_2),
];

/// The last release of each major number that had a successor. Linux has no rule for when it counts
/// on.
const LAST: [(u8, u8); 4] = [(3, 19), (4, 20), (5, 19), (6, 19)];

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{}", self.major, self.minor))
    }
}

impl FromStr for Era {
    type Err = ParseError;

    fn from_str(s: &str) -> Result<Era, ParseError> {
        let number = |digits: &str| {
            let plain = digits.bytes().all(|b| b.is_ascii_digit());
            let short = digits == "0" || !digits.starts_with('0');
            digits.parse::<u8>().ok().filter(|_| plain && short)
        };
        let numbers = s.split_once('.').map(|(a, b)| (number(a), number(b)));
        let (oldest, newest) = (Era::V3_4, Era::V7_2);
        let Some((Some(major), Some(minor))) = numbers else {
            return Err(ParseError(format!(
                "unknown era \"{s}\": expected a release of Linux from {oldest} to {newest}, such as \
                 6.12"
            )));
        };
        let era = Era::at(major, minor);
        if era < oldest || era > newest {
            return Err(ParseError(format!(
                "unknown era \"{s}\": this version has {oldest} to {newest}"
            )));
        }
        match LAST.iter().find(|last| last.0 == major && last.1 < minor) {
            Some((_, last)) => Err(ParseError(format!(
                "unknown era \"{s}\": the last Linux {major} was {major}.{last}"
            ))),
            None => Ok(era),
        }
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
    /// Linux 3.4: CFS, before PELT and before the scan for idle CPUs. Of the mechanisms it has `steer`.
    pub const V3_4: Era = Era::at(3, 4);
    /// Linux 5.5: CFS, before capacity-aware wake-up; the oldest whose wake-ups perch records.
    pub const V5_5: Era = Era::at(5, 5);
    /// Linux 6.5: CFS.
    pub const V6_5: Era = Era::at(6, 5);
    /// Linux 6.15: EEVDF, before cache-aware scheduling.
    pub const V6_15: Era = Era::at(6, 15);
    /// Linux 7.2: EEVDF.
    pub const V7_2: Era = Era::at(7, 2);

    const fn at(major: u8, minor: u8) -> Era {
        Era { major, minor }
    }

    /// Returns the era of a kernel of this release: the release itself, or the oldest or newest era
    /// for one beyond them.
    pub fn nearest(major: u32, minor: u32) -> Era {
        let last = LAST.iter().find(|last| u32::from(last.0) == major);
        let minor = last.map_or(minor, |last| minor.min(last.1.into()));
        let byte = |n: u32| u8::try_from(n).unwrap_or(u8::MAX);
        Era::at(byte(major), byte(minor)).clamp(Era::V3_4, Era::V7_2)
    }

    /// The kernel's release: major and minor number.
    pub fn release(self) -> (u32, u32) {
        (self.major.into(), self.minor.into())
    }

    /// Refuses modes of mechanisms that are not modelled on the era's kernel: the wake-up path of
    /// 3.4 has no place for most, and its root domain lay differently in memory.
    ///
    /// # Errors
    /// Naming the first such mechanism.
    pub fn check(self, modes: &Modes) -> Result<(), ParseError> {
        let lacks = |m: &Mechanism| m.era() > self.release();
        let set = modes.iter().find(|(m, mode)| lacks(m) && *mode != Mode::Off);
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
    /// docs/mechanisms/stock.md#34, and the kernel where that is silent. The date of each:
    /// [`CHANGES`].
    pub fn rules(self) -> Rules {
        let early = !self.has(Change::Averages);
        let percent = |tolerates: bool| if tolerates { 125 } else { 0 };
        Rules {
            flip_decay_ns: 1_000_000_000,
            idle_sees_policy: self.has(Change::IdleSeesPolicy),
            empty_mask_fails_early: self.has(Change::EmptyMaskFailsEarly),
            groups_by_affinity: self.has(Change::GroupsByAffinity),
            wake_cap: self.has(Change::WakeCap) && !self.has(Change::CapacityScan),
            early_groups: !early && !self.has(Change::LaterGroups),
            recent_when_taken: !early && !self.has(Change::RecentAlways),
            far_imbalance_pct: percent(!self.has(Change::WideImbalance117)),
            near_imbalance_pct: percent(early),
            early_path: early,
        }
    }
}
