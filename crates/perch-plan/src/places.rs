// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the program counts.

#[cfg(doc)]
use crate::interface;

/// Where in an arena the counters are, in bytes from its beginning.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// The first of `nr_cpus` [`interface::Cpu`]s.
    pub cpus: usize,
    /// CPUs that are counted.
    pub nr_cpus: usize,
    /// The first of as many [`interface::Waits`], where waits are counted.
    pub waits: Option<usize>,
    /// The waits by group, where they are counted.
    pub groups: Option<GroupPlaces>,
    /// Words of the mask of overloaded CPUs.
    pub overloaded: Vec<usize>,
    /// Counters of these.
    pub overload: Vec<usize>,
}

/// Where in an arena the waits by group are.
#[derive(Clone, Debug)]
pub struct GroupPlaces {
    /// The first of `nr_groups` [`interface::Group`]s, whose slots count from 1.
    pub groups: usize,
    /// How many there are.
    pub nr_groups: usize,
    /// The first of `parts` [`interface::GroupWaits`] of slot 0, the root group.
    pub waits: usize,
    /// How many each slot has.
    pub parts: usize,
}
