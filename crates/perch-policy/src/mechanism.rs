// SPDX-License-Identifier: GPL-2.0-or-later
//! The mechanisms, and what policy/include/perch/mechanisms.def says of each.

use std::fmt;

use crate::mode::Mode;
use crate::topology::Topology;

/// A property without which a machine leaves a mechanism no choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Premise {
    /// Nothing.
    None,
    /// Clusters that are smaller than their last-level cache.
    Clusters,
    /// CPUs of different capacities in one domain.
    Capacities,
    /// Several last-level caches.
    Llcs,
    /// Several nodes or last-level caches, so that counters can be more than one.
    Counters,
}

impl Premise {
    /// True if the machine has the property.
    pub fn holds(self, topology: &Topology) -> bool {
        let cpus = 0..topology.nr_cpus();
        match self {
            Premise::None => true,
            Premise::Clusters => topology.has_clusters(),
            Premise::Capacities => cpus.into_iter().any(|cpu| topology.asym_span(cpu).is_some()),
            Premise::Llcs => topology.nr_llcs() > 1,
            Premise::Counters => topology.nr_nodes() > 1 || topology.nr_llcs() > 1,
        }
    }
}

/// A setting of the live scheduler on which a mechanism depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Some tasks are in the real-time band.
    Band,
    /// Task groups are followed.
    Groups,
}

/// The recordings that hold the facts by which a mechanism decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recording {
    /// Every recording.
    Kernel,
    /// Those of simulated runs; the kernel's lack it.
    Simulated,
    /// None.
    Never,
}

/// A row of the table.
struct Facts {
    name: &'static str,
    help: &'static str,
    modes: &'static [Mode],
    since: Option<(u32, u32)>,
    era: (u32, u32),
    premise: (Premise, &'static str),
    setting: Option<(Setting, &'static str)>,
    recording: (Recording, &'static str),
}

include!(concat!(env!("OUT_DIR"), "/mechanisms.rs"));

impl Mechanism {
    fn facts(self) -> &'static Facts {
        &FACTS[self as usize]
    }

    /// The word that `--set` takes.
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    /// The mechanism's effect, in a line.
    pub fn help(self) -> &'static str {
        self.facts().help
    }

    /// The modes that it has, in the order of [`Mode::ALL`].
    pub fn modes(self) -> &'static [Mode] {
        self.facts().modes
    }

    /// The first Linux whose wake-up path has it, if there is one.
    pub fn since(self) -> Option<(u32, u32)> {
        self.facts().since
    }

    /// The oldest era whose model of the kernel has a place for it.
    pub fn era(self) -> (u32, u32) {
        self.facts().era
    }

    /// The property that a machine must have, and the sentence that says that a machine lacks it.
    pub fn premise(self) -> (Premise, &'static str) {
        self.facts().premise
    }

    /// The setting of the live scheduler that takes the premise's place, and the sentence that
    /// tells an operator that the setting is missing.
    pub fn setting(self) -> Option<(Setting, &'static str)> {
        self.facts().setting
    }

    /// The recordings that hold the facts by which the mechanism decides, and the facts that the
    /// others lack.
    pub fn recording(self) -> (Recording, &'static str) {
        self.facts().recording
    }

    /// The mechanism of that name.
    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|m| m.name() == name)
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The mechanisms with their modes and what each does, one per line: for the help of options that
/// take MECHANISM=MODE.
pub fn mechanisms_in_words() -> String {
    let mut out = "Mechanisms, with their modes:".to_string();
    for mechanism in Mechanism::ALL {
        let modes: Vec<_> = mechanism.modes().iter().map(|mode| mode.name()).collect();
        let name = mechanism.name();
        out += &format!("\n  {name:<10} {} ({})", mechanism.help(), modes.join(", "));
    }
    out
}
