// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of settings. From one line of it follow the field of [`Tuning`], its default, what a
//! file and `--set` may say, and the lines of `perch run --help` and of the documentation.
//!
//! `modes`, `band` and `partial` have rows in [`MODES`], [`BAND`] and [`PARTIAL`], but readers of their
//! own: the first one's words are the policy's, the others' keys are in `band/keys.rs` and
//! `partial.rs`.

use perch_policy::{Mode, Modes, Topology};

use crate::interface::MAX_BANDS;
use crate::value::{Kind, Micros, Millis, Percent, Slot};

const SECOND_US: u64 = 1_000_000;

/// The highest number of a setting.
#[derive(Clone, Copy)]
pub(super) enum Most {
    Is(u64),
    /// The value of another setting: that one's name, and where its value is.
    Setting(&'static str, fn(&Tuning) -> u64),
}

/// Numbers that a setting may have.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub least: u64,
    pub most: Most,
}

const fn range(least: u64, most: u64) -> Range {
    Range { least, most: Most::Is(most) }
}

/// A switch has no numbers.
const SWITCH: Range = range(0, 1);

/// The condition on which a setting has an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Nothing,
    /// CPUs in clusters.
    Clusters,
    /// Several NUMA nodes.
    Nodes,
    /// The mechanism `cache`, in any mode but `off`.
    Cache,
    /// A rule of the real-time band.
    Band,
    /// The setting `waits`.
    Waits,
}

impl Need {
    /// The need in words, empty where there is none.
    pub fn words(self) -> &'static str {
        match self {
            Need::Nothing => "",
            Need::Clusters => "clusters",
            Need::Nodes => "several NUMA nodes",
            Need::Cache => "`cache`",
            Need::Band => "`[[band]]`",
            Need::Waits => "`waits`",
        }
    }

    /// The reason why the setting does nothing here; none where the need is met.
    pub fn lack(
        self,
        topology: &Topology,
        modes: Modes,
        bands: usize,
        tuning: &Tuning,
    ) -> Option<&'static str> {
        let (met, lack) = match self {
            Need::Nothing => return None,
            Need::Clusters => (topology.has_clusters(), "this machine has no clusters"),
            Need::Nodes => (topology.nr_nodes() > 1, "this machine has one NUMA node"),
            Need::Cache => (modes.cache != Mode::Off, "the mechanism cache is off"),
            Need::Band => (bands > 0, "no tasks are in the real-time band ([[band]] or --band)"),
            Need::Waits => (tuning.waits, "waits are not counted (waits=true)"),
        };
        (!met).then_some(lack)
    }
}

/// A number or a switch that tunes the scheduler.
pub(super) struct Setting {
    /// The key in a file and in `--set`.
    pub name: &'static str,
    pub unit: &'static str,
    pub range: Range,
    /// The default where it is not a constant: the most that it is, and on what it depends.
    pub unasked: Option<(u64, &'static str)>,
    pub needs: Need,
    /// A sentence for `perch run --help` and the documentation, without its point.
    pub help: &'static str,
    /// Where the value is kept.
    pub slot: fn(&mut Tuning) -> Slot<'_>,
}

/// A key that is read otherwise than a number or a switch.
pub(super) struct Other {
    pub name: &'static str,
    pub range: &'static str,
    /// An example, as a file has it; empty where the help shows a whole table.
    pub example: &'static str,
    pub default: &'static str,
    pub help: &'static str,
}

macro_rules! settings {
    (@) => { None };
    (@ $unasked:expr) => { Some($unasked) };
    ($($name:ident: $kind:ty = $default:expr, $range:expr, $needs:ident
       $(, unasked $unasked:expr)?; $help:literal)*) => {
        /// Times, sizes and switches of the scheduler, apart from the mechanisms' modes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) struct Tuning { $(#[doc = $help] pub $name: $kind,)* }

        impl Default for Tuning {
            fn default() -> Tuning {
                Tuning { $($name: $default,)* }
            }
        }

        /// Every setting, in the order in which they are read, shown and documented.
        pub(super) const SETTINGS: &[Setting] = &[$(Setting {
            name: stringify!($name),
            unit: <$kind as Kind>::UNIT,
            range: $range,
            unasked: settings!(@ $($unasked)?),
            needs: Need::$needs,
            help: $help,
            slot: |tuning| tuning.$name.slot(),
        },)*];
    };
}

settings! {
    // Two tasks that share a CPU then change about as often as under the stock kernel.
    slice_us: Micros = Micros(6_000), range(100, SECOND_US), Nothing;
    "slice of a task that is alone on its CPU"

    slice_min_us: Micros = Micros(1_000),
        Range { least: 10, most: Most::Setting("slice_us", |tuning| tuning.slice_us.0) }, Nothing;
    "minimum slice of a task, however many tasks share the CPU"

    lag_us: Micros = Micros(10_000), range(100, SECOND_US), Nothing;
    "maximum virtual time that a task is owed or owes"

    // hackbench at 2 ms: one wake-up in six interrupted a task, and nothing became faster.
    preempt_us: Micros = Micros(4_000), range(1, SECOND_US), Nothing;
    "a wakee that is this far behind the running task in virtual time preempts it"

    behind_us: Micros = Micros(5), range(0, SECOND_US), Nothing;
    "time until an idle CPU runs a wakee: under the mechanism behind, no wakee waits longer for its \
     waker"

    // The kernel's shortest interval between two balances of a small domain. Not 0: the BPF
    // program has one timer, which starts itself anew after so long, and at 0 would fire without
    // end on one CPU. It cannot be left out either: besides levelling queues, this timer keeps the
    // CPUs' utilisation and finds tasks that wait for too long.
    balance_ms: Millis = Millis(4), range(1, 1_000), Nothing;
    "time between two passes over all queues and CPUs, which level the queues"

    steal_remote_us: Micros = Micros(500), range(0, SECOND_US), Nodes;
    "an idle CPU takes a task from a queue of another node only when no CPU has taken one from it \
     for this long; 0: at once"

    processes: u64 = 1_024, range(1, 65_536), Cache;
    "maximum number of tracked processes; those beyond are placed as if cache were off"

    groups: Option<u64> = None, range(0, 65_536), Nothing, unasked DEFAULT_GROUPS;
    "maximum number of cgroups whose cpu.weight and cpu.max count; those beyond are part of the one \
     above, and perch ends for one that has a cpu.max; at 0 none count"

    // Of each period, as the kernel's own real-time class has it, though of a second. Less than
    // all: the kernel throws a scheduler out that lets a task wait for ever.
    band_percent: Percent = Percent(95), range(1, 99), Band;
    "maximum share of a CPU for the real-time band while other tasks wait there"

    band_period_ms: Millis = Millis(100), range(10, 1_000), Band;
    "period of which band_percent is a part"

    split_llc: u64 = 1, range(1, 64), Nothing;
    "see each last-level cache as so many, of whole cores, to try out how perch places tasks where \
     there are several"

    detail: bool = false, SWITCH, Clusters;
    "also count wake-ups that had an idle CPU in the target's cluster, at some cost for each"

    waits: bool = false, SWITCH, Nothing;
    "also count how long tasks wait for a CPU, by the reason, at some cost for each wake-up and \
     switch"

    group_waits: bool = false, SWITCH, Waits;
    "also count these waits by cgroup, at some more cost for each switch"
}

/// The most groups that are followed unasked; a group takes memory for each CPU that may come
/// online (`arena/group.rs`).
pub(crate) const DEFAULT_GROUPS: (u64, &str) = (4_096, "as far as they fit into 64 MiB");

/// The modes, which `--set` takes without this key.
pub(super) const MODES: Other = Other {
    name: "modes",
    range: "MECHANISM=MODE,…",
    example: "\"cluster=perch\"",
    default: "`perch`, where the machine has what the mechanism needs",
    help: "modes of mechanisms, as --set takes them; --set has the last word",
};

/// The real-time band, which the command line calls `--band`.
pub(super) const BAND: Other = Other {
    name: "band",
    range: "tables, at most 16",
    example: "",
    default: "none",
    help: "tasks of the real-time band; on the command line --band",
};

/// The tasks that perch schedules, which the command line calls `--partial`.
pub(super) const PARTIAL: Other = Other {
    name: "partial",
    range: "tables",
    example: "",
    default: "none: all tasks are perch's",
    help: "tasks that perch schedules, while the kernel schedules all others; on the command line \
           --partial",
};

const _: () = assert!(MAX_BANDS == 16, "BAND says how many");

/// Every key of a file.
pub(super) fn keys() -> Vec<&'static str> {
    let settings = SETTINGS.iter().map(|setting| setting.name);
    std::iter::once(MODES.name).chain(settings).chain([BAND.name, PARTIAL.name]).collect()
}

impl Setting {
    /// True if the setting's value is true or false, and no number.
    pub fn is_switch(&self) -> bool {
        matches!((self.slot)(&mut Tuning::default()), Slot::Switch(_))
    }

    /// The highest number that there may be beside the others.
    pub fn most(&self, tuning: &Tuning) -> u64 {
        match self.range.most {
            Most::Is(most) => most,
            Most::Setting(_, of) => of(tuning),
        }
    }
}
