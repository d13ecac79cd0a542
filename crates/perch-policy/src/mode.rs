// SPDX-License-Identifier: GPL-2.0-or-later
//! Mechanisms, their modes, and the eras of stock kernels.

use std::fmt;
use std::ops::{Index, IndexMut};
use std::str::FromStr;

use crate::ffi::generated::{PERCH_OFF, PERCH_PERCH, PERCH_POSTED, PERCH_UPSTREAM};
use crate::mechanism::Mechanism;
use crate::overload::Layout;

/// How a mechanism behaves (docs/mechanisms/README.md#modes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mode {
    /// As if the mechanism had never been written.
    #[default]
    Off = PERCH_OFF as u8,
    /// As in its source, defects and all: what the published table was measured with.
    Posted = PERCH_POSTED as u8,
    /// As Linux 7.2 has it.
    Upstream = PERCH_UPSTREAM as u8,
    /// With the known defects mended.
    Perch = PERCH_PERCH as u8,
}

impl Mode {
    /// Every mode, in the order in which tables show them.
    pub const ALL: [Mode; 4] = [Mode::Off, Mode::Posted, Mode::Upstream, Mode::Perch];

    /// The word that `--set` takes.
    pub fn name(self) -> &'static str {
        ["off", "posted", "upstream", "perch"][self as usize]
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a mechanism, a mode or an era was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

impl FromStr for Mode {
    type Err = ParseError;

    fn from_str(s: &str) -> Result<Mode, ParseError> {
        Mode::ALL
            .into_iter()
            .find(|m| m.name() == s)
            .ok_or_else(|| {
                ParseError(format!(
                    "unknown mode \"{s}\": expected off, posted, upstream or perch"
                ))
            })
    }
}

impl FromStr for Layout {
    type Err = ParseError;

    fn from_str(s: &str) -> Result<Layout, ParseError> {
        let found = Layout::ALL.into_iter().find(|l| l.name() == s);
        found.ok_or_else(|| {
            ParseError(format!(
                "unknown layout of overload counters \"{s}\": expected shared, node, \
                 node-padded or llc-padded"
            ))
        })
    }
}

/// The key beside the mechanisms' that chooses how the overload counters lie in memory.
const OVERLOAD_LAYOUT: &str = "overload-layout";

include!(concat!(env!("OUT_DIR"), "/modes.rs"));

impl Modes {
    /// Sets one mechanism's mode by its name.
    ///
    /// # Errors
    /// Naming the mechanisms that there are, or the modes that this one has.
    pub fn set(&mut self, mechanism: &str, mode: Mode) -> Result<(), ParseError> {
        let Some(found) = Mechanism::named(mechanism) else {
            let known = Mechanism::ALL.map(Mechanism::name).join(", ");
            return Err(ParseError(format!(
                "unknown mechanism \"{mechanism}\": this version has {known}"
            )));
        };
        if !found.modes().contains(&mode) {
            let has: Vec<_> = found.modes().iter().map(|mode| mode.name()).collect();
            let has = has.join(", ");
            return Err(ParseError(format!(
                "mechanism \"{found}\" has no mode \"{mode}\": expected {has}"
            )));
        }
        self[found] = mode;
        Ok(())
    }

    /// The modes as `--set` would take them.
    pub fn iter(&self) -> impl Iterator<Item = (Mechanism, Mode)> {
        Mechanism::ALL.into_iter().map(|m| (m, self[m]))
    }

    /// How the overload counters lie in memory.
    pub fn overload_layout(&self) -> Layout {
        self.layout.unwrap_or_else(|| Layout::of(self.overload))
    }
}

impl fmt::Display for Modes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, mode)) in self.iter().enumerate() {
            write!(f, "{}{name}={mode}", if i > 0 { "," } else { "" })?;
        }
        match self.layout {
            Some(layout) => write!(f, ",{OVERLOAD_LAYOUT}={layout}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Modes {
    type Err = ParseError;

    /// `cluster=posted` or several, separated by commas; what is not named is off.
    fn from_str(s: &str) -> Result<Modes, ParseError> {
        let mut modes = Modes::default();
        let mut seen = Vec::new();
        for part in s.split(',') {
            let (name, mode) = part.split_once('=').ok_or_else(|| {
                ParseError(format!(
                    "\"{part}\" names no mechanism and mode: expected MECHANISM=MODE, \
                     for example cluster=perch"
                ))
            })?;
            if seen.contains(&name) {
                return Err(ParseError(format!(
                    "mechanism \"{name}\" is set twice in \"{s}\""
                )));
            }
            match name {
                OVERLOAD_LAYOUT => modes.layout = Some(mode.parse()?),
                _ => modes.set(name, mode.parse()?)?,
            }
            seen.push(name);
        }
        Ok(modes)
    }
}

impl Index<Mechanism> for Modes {
    type Output = Mode;

    fn index(&self, mechanism: Mechanism) -> &Mode {
        self.field(mechanism)
    }
}

impl IndexMut<Mechanism> for Modes {
    fn index_mut(&mut self, mechanism: Mechanism) -> &mut Mode {
        self.field_mut(mechanism)
    }
}

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
    /// The slow path's groups as 5.5 introduced them: without who waits, without the load of
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
