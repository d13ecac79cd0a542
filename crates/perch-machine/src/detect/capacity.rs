// SPDX-License-Identifier: GPL-2.0-or-later
//! The capacities of CPUs, from the best source that the tree has.
//!
//! 1. `cpu_capacity`, the kernel's own figure. arm64 has it. Where it is the same on all CPUs of a
//!    machine with several kinds of cores, it only says that the kernel does not scale.
//! 2. `acpi_cppc/highest_perf`, where the kernel says which cores are unlike. intel_pstate takes a
//!    CPU's highest performance level, relative to the largest on the machine, for its capacity,
//!    since levels have the same unit on all kinds of cores
//!    (Documentation/admin-guide/pm/intel_pstate.rst, "Capacity-Aware Scheduling Support").
//! 3. `cpufreq/cpuinfo_max_freq`, likewise. Kinds of cores differ in work per cycle too, so this is
//!    the least that they differ.
//! 4. None: all CPUs are alike.
//!
//! `highest_perf` alone says nothing: alike cores differ in it where some are preferred (ITMT). A
//! processor of 12 alike cores shows 166 to 216 (docs/machines.md), and amd-pstate.rst calls this
//! ranking a number without a unit. So the kinds come from the folders in which perf describes the
//! counters of an Intel hybrid (`sys/devices/cpu_core`, `cpu_atom` and `cpu_lowpower`), and the
//! preferred cores of a kind have the capacity of the others ([`super::ranking`] reads which they are).

use super::hardware;
use super::tree::Tree;
use crate::draft::Group;
use crate::error::MachineError;

/// Where the capacities of a detected machine come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapacitySource {
    /// The kernel: `cpu_capacity`.
    Kernel,
    /// The firmware: `acpi_cppc/highest_perf` of each kind of core.
    Cppc,
    /// The frequencies: `cpufreq/cpuinfo_max_freq` of each kind of core. The kinds differ more than
    /// these say.
    Frequency,
    /// Nothing tells that CPUs differ.
    Alike,
    /// A description, which the tree was not asked about.
    Described,
}

impl CapacitySource {
    /// True if perch worked the capacities out, and the kernel may take the CPUs for alike.
    pub fn is_inferred(self) -> bool {
        matches!(self, CapacitySource::Cppc | CapacitySource::Frequency)
    }
}

/// The capacities of a tree.
pub(super) struct Capacities {
    /// None where all CPUs are alike.
    pub values: Vec<(Group, u64)>,
    pub source: CapacitySource,
    /// Where the values come from, and why not from a better source: clauses without a full stop.
    pub notes: Vec<String>,
}

/// perf's folders of the kinds of cores in an Intel hybrid, the most capable first.
const KINDS: [&str; 3] = ["cpu_core", "cpu_atom", "cpu_lowpower"];

/// What firmware writes to `highest_perf` of all CPUs on some machines that can be overclocked;
/// intel_pstate ignores it too (`CPPC_MAX_PERF`).
const UNTOLD: i64 = 255;

pub(super) const HIGHEST_PERF: &str = "acpi_cppc/highest_perf";

/// CPUs of one kind.
struct Kind {
    name: &'static str,
    cpus: Vec<u32>,
}

/// The file and the number that it holds for a CPU, or why it cannot be used.
pub(super) type Reading = Result<(String, u64), String>;

/// CPUs of a kind that have about the same level.
struct Level {
    kind: &'static str,
    cpus: Vec<u32>,
    /// The largest.
    most: u64,
    /// The file that holds it.
    file: String,
}

/// Reads the capacities of the CPUs online.
///
/// # Errors
/// When a file holds something else than a number or a CPU list, or a CPU is of two kinds.
pub(super) fn read(tree: &Tree, online: &[u32]) -> Result<Capacities, MachineError> {
    let own = kernel(tree, online)?;
    let first = own.first().map(|(_, value)| *value);
    let scales = first.is_some_and(|first| {
        own.len() < online.len() || own.iter().any(|(_, value)| *value != first)
    });
    if scales {
        return Ok(Capacities {
            values: own,
            source: CapacitySource::Kernel,
            notes: vec!["capacities are the kernel's own (cpu_capacity)".to_string()],
        });
    }
    let mut notes = Vec::new();
    let kinds = kinds(tree, online, &mut notes)?;
    if kinds.len() > 1 {
        match levels(&kinds, HIGHEST_PERF, |cpu| highest_perf(tree, cpu))? {
            Ok(levels) => {
                let of = "the largest acpi_cppc/highest_perf of each kind of core";
                let told = told(&kinds, &levels, |level| level.to_string());
                notes.push(format!("capacities are {of}: {told}"));
                return Ok(inferred(tree, levels, CapacitySource::Cppc, notes));
            }
            Err(why) => notes.push(why),
        }
        match levels(&kinds, "cpufreq/cpuinfo_max_freq", |cpu| max_khz(tree, cpu))? {
            Ok(levels) => {
                let of = "the largest cpufreq/cpuinfo_max_freq of each kind of core";
                let told = told(&kinds, &levels, |level| format!("{} MHz", level / 1000));
                notes.push(format!(
                    "capacities are {of}: {told}; the slower kind also does less in a cycle, so they \
                     differ more than this"
                ));
                return Ok(inferred(tree, levels, CapacitySource::Frequency, notes));
            }
            Err(why) => notes.push(why),
        }
    }
    Ok(Capacities { values: own, source: CapacitySource::Alike, notes })
}

/// The kernel's own capacities.
fn kernel(tree: &Tree, online: &[u32]) -> Result<Vec<(Group, u64)>, MachineError> {
    let mut capacities = Vec::new();
    for &cpu in online {
        let file = format!("cpu/cpu{cpu}/cpu_capacity");
        if let Some(value) = tree.number(&file)? {
            let value = u64::try_from(value).map_err(|_| {
                let expected = "expected 1 to 1024";
                tree.problem(&file, format!("capacity {value} is out of range"), expected)
            })?;
            let (cpus, place) = (vec![cpu], tree.place(&file));
            capacities.push((Group { cpus, place }, value));
        }
    }
    Ok(capacities)
}

/// The kinds of cores that are online, the most capable first; none, and a note, where a CPU is of none.
fn kinds(tree: &Tree, online: &[u32], notes: &mut Vec<String>) -> Result<Vec<Kind>, MachineError> {
    let mut kinds: Vec<Kind> = Vec::new();
    for name in KINDS {
        let file = format!("sys/devices/{name}/cpus");
        let Some(mut cpus) = tree.cpus_at(&file)? else {
            continue;
        };
        cpus.retain(|cpu| online.binary_search(cpu).is_ok());
        for kind in &kinds {
            if let Some(cpu) = cpus.iter().find(|cpu| kind.cpus.binary_search(cpu).is_ok()) {
                return Err(tree.problem_at(
                    &file,
                    format!("CPU {cpu} is in sys/devices/{}/cpus too", kind.name),
                    "expected each CPU to be of one kind",
                ));
            }
        }
        if !cpus.is_empty() {
            kinds.push(Kind { name, cpus });
        }
    }
    let is_known = |cpu: &u32| kinds.iter().any(|kind| kind.cpus.binary_search(cpu).is_ok());
    if let (Some(kind), Some(cpu)) = (kinds.first(), online.iter().find(|cpu| !is_known(cpu))) {
        notes.push(format!(
            "sys/devices/{}/cpus tells a kind of core, and no such file names CPU {cpu}, so all are taken \
             for alike",
            kind.name
        ));
        kinds.clear();
    }
    Ok(kinds)
}

pub(super) fn highest_perf(tree: &Tree, cpu: u32) -> Result<Reading, MachineError> {
    let file = format!("cpu/cpu{cpu}/{HIGHEST_PERF}");
    Ok(match tree.number(&file)? {
        None => Err(format!("{file} is missing")),
        Some(UNTOLD) => {
            Err(format!("{file} is {UNTOLD}, which firmware writes where it does not tell"))
        }
        // Levels have 8 bits (HWP).
        Some(level @ 1..UNTOLD) => Ok((file, level as u64)),
        Some(level) => Err(format!("{file} is {level}, expected 1 to 254")),
    })
}

fn max_khz(tree: &Tree, cpu: u32) -> Result<Reading, MachineError> {
    Ok(match hardware::max_khz(tree, cpu)? {
        None => Err(format!("cpu/cpu{cpu}/cpufreq/cpuinfo_max_freq is missing")),
        Some((file, khz @ 1000..=100_000_000)) => Ok((file, khz as u64)),
        Some((file, khz)) => Err(format!("{file} is {khz}, expected 1000 to 100000000")),
    })
}

/// Reads each CPU's level, and groups the CPUs of a kind by it; else says why these files cannot tell
/// the kinds apart.
///
/// perf counts the low-power cores of some processors among `cpu_atom`, where they reach two thirds of
/// the others' level. So a CPU more than a fifth below the best of its group begins another: preferred cores
/// differ by less on Intel, and a fifth is what the kernel wants free of a CPU that a task fits.
fn levels(
    kinds: &[Kind],
    name: &str,
    read: impl Fn(u32) -> Result<Reading, MachineError>,
) -> Result<Result<Vec<Level>, String>, MachineError> {
    let mut levels: Vec<Level> = Vec::new();
    let mut best: Vec<(&'static str, u64)> = Vec::new();
    for kind in kinds {
        let mut cpus = Vec::new();
        for &cpu in &kind.cpus {
            match read(cpu)? {
                Ok((file, level)) => cpus.push((cpu, level, file)),
                Err(why) => return Ok(Err(why)),
            }
        }
        cpus.sort_by_key(|(cpu, level, _)| (std::cmp::Reverse(*level), *cpu));
        best.push((kind.name, cpus.first().map_or(0, |(_, level, _)| *level)));
        let mut most = None;
        for (cpu, level, file) in cpus {
            match (most, levels.last_mut()) {
                (Some(most), Some(last)) if level * 5 >= most * 4 => last.cpus.push(cpu),
                _ => {
                    most = Some(level);
                    levels.push(Level { kind: kind.name, cpus: vec![cpu], most: level, file });
                }
            }
        }
    }
    let falls = best.windows(2).all(|pair| pair[0].1 >= pair[1].1);
    let differs = best.first().map(|one| one.1) > best.last().map(|one| one.1);
    if !(falls && differs) {
        let all: Vec<String> =
            best.iter().map(|(kind, level)| format!("{level} for {kind}")).collect();
        return Ok(Err(format!(
            "{name} is {}, expected less for the slower kind",
            all.join(" and ")
        )));
    }
    levels.iter_mut().for_each(|level| level.cpus.sort_unstable());
    Ok(Ok(levels))
}

/// The levels of each kind in words.
fn told(kinds: &[Kind], levels: &[Level], show: impl Fn(u64) -> String) -> String {
    let kinds = kinds.iter().map(|kind| {
        let of = levels.iter().filter(|level| level.kind == kind.name);
        let of: Vec<String> = of.map(|level| show(level.most)).collect();
        format!("{} {}", kind.name, of.join(" and "))
    });
    kinds.collect::<Vec<_>>().join(", ")
}

/// Scales levels as the kernel does: the largest is 1024, fractions are cut.
fn inferred(
    tree: &Tree,
    levels: Vec<Level>,
    source: CapacitySource,
    notes: Vec<String>,
) -> Capacities {
    let most = levels.iter().map(|level| level.most).max().unwrap_or(1);
    let values = levels.into_iter().map(|level| {
        let value = (level.most * 1024 / most).max(1);
        let place = tree.place(&level.file);
        let cpus = level.cpus;
        (Group { cpus, place }, value)
    });
    Capacities { values: values.collect(), source, notes }
}
