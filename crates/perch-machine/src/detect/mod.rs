// SPDX-License-Identifier: GPL-2.0-or-later
//! Detection of the machine that a kernel describes in sysfs: this host's, or one whose tree was
//! copied.
//!
//! Where sysfs is vague, this module follows the kernel's own rules for scheduling domains: no
//! cache information means that a package's part in a node is one LLC; a cluster counts only where
//! it is larger than a core and smaller than an LLC; an LLC that nodes cut is declared in parts.

mod capacity;
mod hardware;
mod ranking;
mod tree;

pub use capacity::CapacitySource;

use crate::cpulist;
use crate::draft::{Draft, Group};
use crate::error::{MachineError, Place};
use crate::model::{MAX_CPUS, Machine};
use crate::survey;
use std::collections::BTreeMap;
use std::path::Path;
use tree::Tree;

/// A machine as its kernel has it: the CPUs that are online, and the kernel's number of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// The CPUs that are online, numbered from 0 up.
    pub machine: Machine,
    /// The kernel's numbers of the machine's CPUs, ascending.
    pub numbers: Vec<u32>,
    /// The kernel's numbers of the CPUs that are there and offline, ascending. Their files tell
    /// neither their cores nor their caches.
    pub offline: Vec<u32>,
    /// Where the machine's capacities come from.
    pub capacity_source: CapacitySource,
    /// What to know of that source: clauses without a full stop, which the machine's sources have too.
    pub capacity_notes: Vec<String>,
    /// Where CPUs rank as preferred cores: by which files, or why the machine has no rankings. The
    /// machine's sources have it too.
    pub ranking_note: Option<String>,
    /// The name of the tree in errors.
    origin: String,
}

/// Reads the machine below `root`, which is `/` for the running kernel, or a directory that holds a
/// copy of `sys/devices/system/{cpu,node}` (and `proc/cpuinfo`, for its name,
/// `sys/devices/cpu_{core,atom,lowpower}`, for the kinds of cores in an Intel hybrid, and
/// `proc/sys/kernel/sched_itmt_enabled` or `sys/kernel/debug/x86/sched_itmt_enabled`, for preferred cores).
///
/// CPUs that are offline are left out, and the others are numbered from 0 up; where that changes a
/// number, the sources tell. Costs that sysfs does not tell (transfers, interrupts, memory) are those
/// of [`crate::Hardware::default`].
///
/// # Errors
/// As [`Host::detect`].
pub fn detect(root: &Path) -> Result<Machine, MachineError> {
    Ok(Host::detect(root)?.machine)
}

impl Host {
    /// Reads the machine below `root` as [`detect()`] does.
    ///
    /// # Errors
    /// Returns [`MachineError::Invalid`] when there is no CPU directory, when a file holds something
    /// else than it should, or when the files contradict each other.
    pub fn detect(root: &Path) -> Result<Host, MachineError> {
        let tree = Tree::new(root);
        let (numbers, offline) = online(&tree)?;
        let mut draft = Draft::new(&tree.origin, "detected");
        draft.description = description(&tree, &numbers);
        draft.sources = vec![format!("sysfs below {}", root.display())];
        let smt = tree.text("cpu/smt/control");
        let why = match smt.as_deref() {
            Some("off" | "forceoff") => "were offline (SMT is switched off)",
            _ => "were offline",
        };
        survey::left_out(&mut draft, &offline, why, &numbers);
        let Found { capacity_source, capacity_notes, ranking_note } =
            read(&tree, &numbers, &mut draft)?;
        let notes = capacity_notes.iter().chain(&ranking_note);
        draft.sources.extend(notes.cloned());
        let machine = survey::check(draft, &numbers)?;
        Ok(Host {
            machine,
            numbers,
            offline,
            capacity_source,
            capacity_notes,
            ranking_note,
            origin: tree.origin,
        })
    }

    /// Returns the host that has all CPUs of `machine` online, under its numbers.
    pub fn of(machine: Machine) -> Host {
        Host {
            numbers: (0..machine.cpus.len() as u32).collect(),
            offline: Vec::new(),
            capacity_source: CapacitySource::Described,
            capacity_notes: Vec::new(),
            ranking_note: None,
            origin: machine.name.clone(),
            machine,
        }
    }

    /// Returns the host with no capacities but the kernel's: all CPUs are alike where detection worked
    /// the capacities out, as it does on x86.
    pub fn with_kernel_capacities(mut self) -> Host {
        if self.capacity_source.is_inferred() {
            let notes = std::mem::take(&mut self.capacity_notes);
            self.machine.sources.retain(|source| !notes.contains(source));
            for cpu in &mut self.machine.cpus {
                cpu.capacity = 1024;
            }
            self.capacity_source = CapacitySource::Alike;
        }
        self
    }

    /// Returns the machine if its CPUs have the kernel's numbers.
    ///
    /// # Errors
    /// Returns [`MachineError::Invalid`] when an offline CPU leaves a hole in the kernel's numbers.
    pub fn with_kernel_numbers(self) -> Result<Machine, MachineError> {
        let Some(hole) = survey::hole(&self.numbers) else {
            return Ok(self.machine);
        };
        Err(Place::key("sys/devices/system/cpu/online").problem(
            &self.origin,
            format!(
                "a hole in the numbering: CPU {hole} is not online, yet {} is (online: {})",
                self.numbers.last().copied().unwrap_or(0),
                cpulist::format(&self.numbers)
            ),
            format!("bring it online first: echo 1 > /sys/devices/system/cpu/cpu{hole}/online"),
        ))
    }
}

/// What the files tell of capacities and rankings, beside the draft.
struct Found {
    capacity_source: CapacitySource,
    capacity_notes: Vec<String>,
    ranking_note: Option<String>,
}

/// Reads everything but the words about the machine, under the kernel's numbers.
fn read(tree: &Tree, online: &[u32], draft: &mut Draft) -> Result<Found, MachineError> {
    let caches = hardware::caches(tree, online)?;
    draft.packages = packages(tree, online)?;
    nodes(tree, online, draft)?;
    draft.cores = siblings(tree, online, ["core_cpus_list", "thread_siblings_list"], |_| Ok(true))?;
    llcs(tree, online, &caches, draft);
    survey::complete_llcs(draft, online, &tree.place("cpu/cpu*/cache"));
    survey::join_packages(draft, cuts_at_packages(tree, online[0]));
    let clusters = siblings(tree, online, ["cluster_cpus_list"; 2], |cpu| {
        let id = tree.number(&format!("cpu/cpu{cpu}/topology/cluster_id"))?;
        // The kernel writes -1 for "none", which older kernels print as 65535.
        Ok(!matches!(id, Some(-1 | 65535)))
    })?;
    draft.clusters = survey::real_clusters(clusters, &draft.cores, draft.seen_llcs());
    let capacities = capacity::read(tree, online)?;
    draft.capacities = capacities.values;
    survey::scale_capacities(draft);
    let best = draft.capacities.iter().rev().max_by_key(|(_, value)| *value);
    let best = best.map_or(online[0], |(group, _)| group.cpus[0]);
    draft.hardware = hardware::read(tree, best, &caches, draft)?;
    let rankings = ranking::read(tree, online)?;
    draft.rankings = rankings.values;
    // Where nothing ranks them, cores of several kinds have levels that differ without being preferred.
    let alike = capacities.source == CapacitySource::Alike;
    let tells = alike || !draft.rankings.is_empty();
    Ok(Found {
        capacity_source: capacities.source,
        capacity_notes: capacities.notes,
        ranking_note: rankings.note.filter(|_| tells),
    })
}

/// True where the code that arm64 and RISC-V share tells the LLCs: it makes `cpu_capacity`, which x86
/// alone has from elsewhere, on new kernels.
fn cuts_at_packages(tree: &Tree, cpu: u32) -> bool {
    let info = tree.text_at("proc/cpuinfo").unwrap_or_default();
    let x86 = info.lines().any(|line| line.starts_with("vendor_id"));
    !x86 && tree.text(&format!("cpu/cpu{cpu}/cpu_capacity")).is_some()
}

/// Returns the CPUs online, ascending, and those that are present but offline.
fn online(tree: &Tree) -> Result<(Vec<u32>, Vec<u32>), MachineError> {
    let directories = tree.numbered("cpu", "cpu");
    if directories.is_empty() {
        return Err(tree.problem(
            "cpu",
            "no directory cpu0, cpu1, … in it",
            "expected the root of a tree that holds sys/devices/system/cpu, as `/` does",
        ));
    }
    // Kernels before 2.6.29 have the list in parts only.
    let own = |cpu: &&u32| tree.text(&format!("cpu/cpu{cpu}/online")).as_deref() != Some("0");
    let online = tree
        .cpus("cpu/online")?
        .unwrap_or_else(|| directories.iter().filter(own).copied().collect());
    let present = tree.cpus("cpu/present")?.unwrap_or(directories);
    let offline: Vec<u32> =
        present.into_iter().filter(|cpu| online.binary_search(cpu).is_err()).collect();
    if online.len() > MAX_CPUS {
        let reason = format!("{} CPUs", online.len());
        let expected = format!("a machine may have {MAX_CPUS}");
        return Err(tree.problem("cpu/online", reason, expected));
    }
    if online.is_empty() {
        return Err(tree.problem("cpu/online", "no CPU is online", ""));
    }
    Ok((online, offline))
}

fn description(tree: &Tree, online: &[u32]) -> String {
    let info = tree.text_at("proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let model = field("model name").or_else(|| field("Hardware"));
    let model = model.unwrap_or_else(|| "A machine".to_string());
    format!("{model}, {} CPUs, detected", online.len())
}

/// Returns the groups that each CPU's own list in `topology/` tells, for the CPUs that `counts`
/// accepts. The list comes from the first of `files` that exists.
fn siblings(
    tree: &Tree,
    online: &[u32],
    files: [&str; 2],
    counts: impl Fn(u32) -> Result<bool, MachineError>,
) -> Result<Vec<Group>, MachineError> {
    let mut groups: BTreeMap<Vec<u32>, Place> = BTreeMap::new();
    for &cpu in online {
        if !counts(cpu)? {
            continue;
        }
        for file in files {
            let file = format!("cpu/cpu{cpu}/topology/{file}");
            let Some(mut list) = tree.cpus(&file)? else {
                continue;
            };
            list.retain(|other| online.binary_search(other).is_ok());
            if !list.contains(&cpu) {
                let reason = format!("CPU {cpu} is not in its own list");
                return Err(tree.problem(&file, reason, ""));
            }
            groups.entry(list).or_insert_with(|| tree.place(&file));
            break;
        }
    }
    Ok(groups.into_iter().map(|(cpus, place)| Group { cpus, place }).collect())
}

/// Returns the packages, by the lists of their CPUs: s390 numbers the sockets of each book anew, and
/// some guests give -1. Without lists there is one for each `physical_package_id`; a machine whose files
/// name none has one.
fn packages(tree: &Tree, online: &[u32]) -> Result<Vec<Group>, MachineError> {
    let lists = ["package_cpus_list", "core_siblings_list"];
    let listed = siblings(tree, online, lists, |_| Ok(true))?;
    if listed.iter().map(|group| group.cpus.len()).sum::<usize>() >= online.len() {
        return Ok(listed);
    }
    let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
    for &cpu in online {
        let file = format!("cpu/cpu{cpu}/topology/physical_package_id");
        let id = tree.number(&file)?.unwrap_or(-1);
        let group = groups
            .entry(id)
            .or_insert_with(|| Group { cpus: Vec::new(), place: tree.place(&file) });
        group.cpus.push(cpu);
    }
    Ok(groups.into_values().collect())
}

/// Reads the nodes that have CPUs, ascending by their number, and the distances between them. A
/// kernel without NUMA has one node.
fn nodes(tree: &Tree, online: &[u32], draft: &mut Draft) -> Result<(), MachineError> {
    let numbers = tree.numbered("node", "node");
    // These are the nodes of `numbers` that have CPUs: a memory-only node has a column in every
    // distance row.
    let (mut kept, mut empty) = (Vec::new(), Vec::new());
    for (index, number) in numbers.iter().enumerate() {
        let file = format!("node/node{number}/cpulist");
        let mut cpus = tree.cpus(&file)?.unwrap_or_default();
        cpus.retain(|cpu| online.binary_search(cpu).is_ok());
        // A kernel is known that has each CPU in each node.
        if draft.nodes.iter().any(|node| node.cpus == cpus) {
            draft.sources.push(format!("node {number} is left out: its CPUs are another's too"));
        } else if !cpus.is_empty() {
            kept.push(index);
            let place = tree.place(&file);
            draft.nodes.push(Group { cpus, place });
        } else {
            empty.push(*number);
        }
    }
    survey::memory_alone(draft, empty);
    if kept.is_empty() {
        let cpus = online.to_vec();
        let place = tree.place("node");
        draft.nodes.push(Group { cpus, place });
        return Ok(());
    }
    if survey::complete(&mut draft.nodes, draft.packages.clone()) {
        let note = "CPUs that no node has are in one for each package, without distances";
        draft.sources.push(note.to_string());
        return Ok(());
    }
    if kept.len() == 1 {
        return Ok(());
    }
    let mut table = Vec::new();
    for &index in &kept {
        let file = format!("node/node{}/distance", numbers[index]);
        let Some(text) = tree.text(&file) else {
            return Ok(());
        };
        let row: Option<Vec<u32>> = text.split_whitespace().map(|word| word.parse().ok()).collect();
        let row = row.filter(|row| row.len() == numbers.len()).ok_or_else(|| {
            let expected = format!("expected {} numbers, one for each node", numbers.len());
            tree.problem(&file, format!("`{text}` is not a row of distances"), expected)
        })?;
        table.push(kept.iter().map(|&column| row[column]).collect());
    }
    draft.distance = Some((table, tree.place("node/node*/distance")));
    Ok(())
}

/// Reads the LLC of each CPU that has one: its highest cache of level 2 or more.
fn llcs(tree: &Tree, online: &[u32], caches: &hardware::Caches, draft: &mut Draft) {
    let mut found: BTreeMap<&[u32], &hardware::Cache> = BTreeMap::new();
    for cache in online.iter().filter_map(|&cpu| caches.last_level(cpu)) {
        found.entry(&cache.cpus).or_insert(cache);
    }
    for (cpus, cache) in found {
        let (cpus, place) = (cpus.to_vec(), tree.place(&cache.file));
        let group = Group { cpus, place };
        draft.llc_bytes.extend(cache.bytes.map(|bytes| (group.clone(), bytes)));
        draft.llcs.push(group);
    }
}
