// SPDX-License-Identifier: GPL-2.0-or-later
//! The ways in which cache lines move between CPUs, as the plugin of `perch lab` counts them.
//! docs/hardware.md says what is counted.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Serialize, Serializer};

use crate::model::Distance;

/// The way in which a line moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineKind {
    /// A CPU loaded a line that another CPU had modified.
    LoadDirty,
    /// A CPU wrote to a line that another CPU had modified.
    StoreDirty,
    /// A CPU wrote to a line that it held clean, and copies elsewhere were invalidated.
    Upgrade,
    /// A CPU wrote to a line that only others held, clean.
    StoreClean,
    /// A CPU loaded a line that only others held, clean.
    LoadClean,
    /// A line came from memory: no cache had it.
    Cold,
    /// A line came from an LLC: no CPU had it, because the private caches had displaced it.
    Llc,
}

impl LineKind {
    /// Every kind, in the order of the tables and of the plugin's numbers, which begin at 1.
    pub const ALL: [LineKind; 7] = [
        LineKind::LoadDirty,
        LineKind::StoreDirty,
        LineKind::Upgrade,
        LineKind::StoreClean,
        LineKind::LoadClean,
        LineKind::Cold,
        LineKind::Llc,
    ];

    /// Returns the kind's name in tables and files.
    pub const fn name(self) -> &'static str {
        match self {
            LineKind::LoadDirty => "dirty load",
            LineKind::StoreDirty => "dirty store",
            LineKind::Upgrade => "upgrade",
            LineKind::StoreClean => "clean store",
            LineKind::LoadClean => "clean load",
            LineKind::Cold => "cold",
            LineKind::Llc => "LLC",
        }
    }

    /// Returns whether the line, or the message that invalidates its copies, went from CPU to CPU.
    pub fn is_between_cpus(self) -> bool {
        !matches!(self, LineKind::Cold | LineKind::Llc)
    }
}

/// A way, and the distance to the CPU or the LLC that had the line. The distance of a cold line is
/// that to the nearest CPU of the memory's node: [`Distance::Cpu`], which tables and files call memory,
/// in the CPU's own node or where nodes are not told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    /// The way.
    pub kind: LineKind,
    /// The distance.
    pub distance: Distance,
}

impl fmt::Display for Move {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.kind.name(), distance_name(self.distance))
    }
}

impl Serialize for Move {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns the name of a move's distance in tables and files.
pub const fn distance_name(distance: Distance) -> &'static str {
    match distance {
        Distance::Cpu => "memory",
        distance => distance.name(),
    }
}

/// How often lines moved in each way over each distance.
pub type Moves = BTreeMap<Move, u64>;
