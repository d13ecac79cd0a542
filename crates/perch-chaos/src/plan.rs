// SPDX-License-Identifier: GPL-2.0-or-later
//! What happens in a round, drawn from a seed.

use std::fmt::{Display, Formatter};

use perch_engine::Random;
use serde::{Deserialize, Serialize};

/// One kind of trouble.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Storm {
    /// CPUs go offline and come back.
    Hotplug,
    /// Tasks are allowed other CPUs.
    Affinity,
    /// Cgroups come and go, tasks move between them, their weights and CPUs change.
    Groups,
    /// `cpu.max` of cgroups changes.
    Limits,
    /// Tasks change policy and niceness, real-time and deadline ones among them.
    Classes,
    /// Tasks are born and end, as processes, threads and programs.
    Forks,
    /// Cgroups are frozen and tasks stopped.
    Freezes,
    /// Tasks of a cgroup use up its memory and are killed.
    Memory,
    /// The scheduler is killed, stopped, told to read its file again, or loaded twice.
    Reload,
}

impl Storm {
    /// All storms, in the order in which a round starts them.
    pub const ALL: [Storm; 9] = [
        Storm::Hotplug,
        Storm::Affinity,
        Storm::Groups,
        Storm::Limits,
        Storm::Classes,
        Storm::Forks,
        Storm::Freezes,
        Storm::Memory,
        Storm::Reload,
    ];

    /// Its name in arguments and reports.
    pub fn name(self) -> &'static str {
        match self {
            Storm::Hotplug => "hotplug",
            Storm::Affinity => "affinity",
            Storm::Groups => "groups",
            Storm::Limits => "limits",
            Storm::Classes => "classes",
            Storm::Forks => "forks",
            Storm::Freezes => "freezes",
            Storm::Memory => "memory",
            Storm::Reload => "reload",
        }
    }
}

impl std::str::FromStr for Storm {
    type Err = String;

    fn from_str(text: &str) -> Result<Storm, String> {
        let found = Storm::ALL.into_iter().find(|storm| storm.name() == text);
        found.ok_or_else(|| {
            let names = Storm::ALL.map(Storm::name).join(", ");
            format!("`{text}` is no storm; expected one of {names}")
        })
    }
}

/// The arguments of `perch run` that rounds choose from. Victims are called hog, sleeper and pipe,
/// and the tasks that watch canary.
const ARGUMENTS: [&[&str]; 8] = [
    &[],
    &[],
    &["--set", "cluster=perch,cache=perch,steer=perch"],
    &["--set", "groups=0"],
    &["--set", "cluster=upstream,cache=upstream,balance_ms=1"],
    &["--band", "comm=pipe,priority=50"],
    &["--band", "comm=sleeper,priority=50", "--band", "comm=pipe,priority=10,policy=rr"],
    &["--partial", "comm=sleeper", "--partial", "comm=hog"],
];

/// A round.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// Its seed.
    pub seed: u64,
    /// The arguments of `perch run`; `None`: the kernel's own scheduler is under test.
    pub perch: Option<Vec<String>>,
    /// The scheduler is loaded before the tasks are there, rather than after.
    pub loaded_first: bool,
    /// Tasks that never sleep, that sleep now and then, and pairs of tasks that wake each other.
    pub hogs: usize,
    /// See `hogs`.
    pub sleepers: usize,
    /// See `hogs`.
    pub pipes: usize,
    /// The storms, all at the same time.
    pub storms: Vec<Storm>,
    /// The time for which they blow, s of the guest.
    pub seconds: u64,
}

impl Plan {
    /// Draws the round of a seed for a machine of `cpus` CPUs: one storm alone in a third of all rounds,
    /// else two to five at the same time. Only storms of `among` are drawn, which must not be empty.
    pub fn draw(seed: u64, cpus: usize, seconds: u64, among: &[Storm]) -> Plan {
        let mut random = Random::new(seed, 0);
        let mut below = |n: usize| random.below(n as u64) as usize;
        let arguments = ARGUMENTS[below(ARGUMENTS.len())];
        let wanted = match below(3) {
            0 => 1,
            _ => 2 + below(4),
        };
        let mut left = among.to_vec();
        let mut storms = Vec::new();
        while storms.len() < wanted && !left.is_empty() {
            storms.push(left.swap_remove(below(left.len())));
        }
        storms.sort_unstable();
        // In an emulated guest each instruction of a hog is one that the loading scheduler lacks, and
        // loading takes some 3e9 of them.
        let loads = storms.contains(&Storm::Hotplug) || storms.contains(&Storm::Reload);
        let hogs = if loads { 0 } else { 1 + below(cpus / 2 + 1) };
        Plan {
            seed,
            perch: Some(arguments.iter().map(|word| word.to_string()).collect()),
            loaded_first: below(2) == 0,
            hogs,
            sleepers: 2 + below(2 * cpus),
            pipes: 1 + below(cpus / 2 + 1),
            storms,
            seconds,
        }
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        let storms: Vec<_> = self.storms.iter().map(|storm| storm.name()).collect();
        write!(
            f,
            "seed {}: {}; {} hogs, {} sleepers, {} pipes; ",
            self.seed,
            storms.join(" "),
            self.hogs,
            self.sleepers,
            self.pipes
        )?;
        match &self.perch {
            None => write!(f, "the kernel's scheduler"),
            Some(arguments) if arguments.is_empty() => write!(f, "perch run"),
            Some(arguments) => write!(f, "perch run {}", arguments.join(" ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_one_plan_and_seeds_give_all_storms() {
        let mut seen = BTreeSet::new();
        let mut alone = BTreeSet::new();
        let mut arguments = BTreeSet::new();
        for seed in 0..500 {
            let plan = Plan::draw(seed, 8, 20, &Storm::ALL);
            assert_eq!(plan, Plan::draw(seed, 8, 20, &Storm::ALL));
            assert!((1..=5).contains(&plan.storms.len()), "{plan}");
            let distinct: BTreeSet<_> = plan.storms.iter().collect();
            assert_eq!(distinct.len(), plan.storms.len(), "{plan}");
            seen.extend(plan.storms.iter().copied());
            if let [only] = plan.storms[..] {
                alone.insert(only);
            }
            arguments.insert(plan.perch.unwrap());
        }
        assert_eq!(seen.len(), Storm::ALL.len());
        assert_eq!(alone.len(), Storm::ALL.len());
        let different: BTreeSet<_> = ARGUMENTS.iter().collect();
        assert_eq!(arguments.len(), different.len());
    }

    #[test]
    fn only_wanted_storms_are_drawn_on_any_machine() {
        for seed in 0..100 {
            let plan = Plan::draw(seed, 1, 1, &[Storm::Forks, Storm::Memory]);
            assert!(plan.storms.iter().all(|storm| [Storm::Forks, Storm::Memory].contains(storm)));
            assert!(plan.sleepers > 0 && plan.pipes > 0);
        }
    }

    #[test]
    fn storms_have_names() {
        for storm in Storm::ALL {
            assert_eq!(storm.name().parse(), Ok(storm));
        }
        let error = "rain".parse::<Storm>().unwrap_err();
        assert!(error.contains("hotplug, affinity"), "{error}");
    }
}
