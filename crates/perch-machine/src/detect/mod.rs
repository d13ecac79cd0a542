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
        let holes = hole(&numbers).is_some();
        let Found {
            mut draft,
            capacity_source,
            capacity_notes,
            ranking_note,
        } = read(&tree, &numbers)?;
        draft.description = description(&tree, &numbers, &offline);
        draft.sources = vec![format!("sysfs below {}", root.display())];
        if holes {
            draft.sources.push(renumbered(&numbers));
        }
        if !offline.is_empty() {
            scale_capacities(&mut draft);
        }
        let notes = capacity_notes.iter().chain(&ranking_note);
        draft.sources.extend(notes.cloned());
        if holes {
            draft.renumber(&numbers);
        }
        let machine = draft.check().map_err(|error| match error {
            // The check knows the new numbers only.
            MachineError::Invalid(mut problem) if holes => {
                problem.reason = format!("{} ({})", problem.reason, renumbered(&numbers));
                MachineError::Invalid(problem)
            }
            error => error,
        })?;
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
            self.machine
                .sources
                .retain(|source| !notes.contains(source));
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
        let Some(hole) = hole(&self.numbers) else {
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

/// The first CPU that is missing below the highest one.
fn hole(numbers: &[u32]) -> Option<u32> {
    let mut places = (0..).zip(numbers);
    places
        .find(|&(place, &cpu)| place != cpu)
        .map(|(place, _)| place)
}

/// The kernel's numbers of the CPUs, in words.
fn renumbered(numbers: &[u32]) -> String {
    format!(
        "CPUs 0-{} are the kernel's {}, in this order",
        numbers.len() - 1,
        cpulist::format(numbers)
    )
}

/// What the files tell.
struct Found {
    draft: Draft,
    capacity_source: CapacitySource,
    capacity_notes: Vec<String>,
    ranking_note: Option<String>,
}

/// Reads everything but the words about the machine, under the kernel's numbers.
fn read(tree: &Tree, online: &[u32]) -> Result<Found, MachineError> {
    let mut draft = Draft::new(&tree.origin, "detected");
    let caches = hardware::caches(tree, online)?;
    let packages = packages(tree, online)?;
    let (nodes, distance) = nodes(tree, online)?;
    draft.cores = siblings(
        tree,
        online,
        ["core_cpus_list", "thread_siblings_list"],
        |_| Ok(true),
    )?;
    draft.llcs = llcs(tree, online, &caches, &packages, &nodes);
    let clusters = siblings(tree, online, ["cluster_cpus_list"; 2], |cpu| {
        let id = tree.number(&format!("cpu/cpu{cpu}/topology/cluster_id"))?;
        // The kernel writes -1 for "none", which older kernels print as 65535.
        Ok(!matches!(id, Some(-1 | 65535)))
    })?;
    draft.clusters = survey::real_clusters(clusters, &draft.cores, &draft.llcs);
    draft.declared = survey::declared(&draft.llcs, &nodes);
    draft.packages = packages;
    draft.nodes = nodes;
    draft.distance = distance;
    let capacities = capacity::read(tree, online)?;
    draft.capacities = capacities.values;
    let best = draft.capacities.iter().max_by_key(|(_, value)| *value);
    let best = best.map_or(online[0], |(group, _)| group.cpus[0]);
    draft.hardware = hardware::read(tree, best, &caches, &draft)?;
    let rankings = ranking::read(tree, online)?;
    draft.rankings = rankings.values;
    // Where nothing ranks them, cores of several kinds have levels that differ without being preferred.
    let alike = capacities.source == CapacitySource::Alike;
    let tells = alike || !draft.rankings.is_empty();
    Ok(Found {
        draft,
        capacity_source: capacities.source,
        capacity_notes: capacities.notes,
        ranking_note: rankings.note.filter(|_| tells),
    })
}

/// The most capable CPUs may be offline; a machine's most capable CPU has 1024 all the same.
fn scale_capacities(draft: &mut Draft) {
    let most = draft.capacities.iter().map(|(_, value)| *value).max();
    let Some(most @ 1..1024) = most else {
        return;
    };
    for (_, value) in &mut draft.capacities {
        *value = (*value * 1024 / most).max(1);
    }
    draft.sources.push(format!(
        "the most capable CPU online has {most} of 1024; capacities are scaled to make that 1024"
    ));
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
    let online = tree
        .cpus("cpu/online")?
        .unwrap_or_else(|| directories.clone());
    let present = tree.cpus("cpu/present")?.unwrap_or(directories);
    let offline: Vec<u32> = present
        .into_iter()
        .filter(|cpu| online.binary_search(cpu).is_err())
        .collect();
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

fn description(tree: &Tree, online: &[u32], offline: &[u32]) -> String {
    let info = tree.text_at("proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_string())
    };
    let model = field("model name").or_else(|| field("Hardware"));
    let model = model.unwrap_or_else(|| "A machine".to_string());
    let cpus = online.len();
    if offline.is_empty() {
        return format!("{model}, {cpus} CPUs, detected");
    }
    let smt = tree.text("cpu/smt/control");
    let why = match smt.as_deref() {
        Some("off" | "forceoff") => " (SMT is switched off)",
        _ => "",
    };
    let numbers = match hole(online).is_some() {
        true => format!(
            ", and the others, the kernel's {}, are numbered from 0 up",
            cpulist::format(online)
        ),
        false => String::new(),
    };
    format!(
        "{model}, {cpus} CPUs, detected; CPUs {} were offline{why} and are left out{numbers}",
        cpulist::format(offline)
    )
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
    Ok(groups
        .into_iter()
        .map(|(cpus, place)| Group { cpus, place })
        .collect())
}

/// Returns a package for each `physical_package_id`; a machine whose files name none (or -1) has
/// one.
fn packages(tree: &Tree, online: &[u32]) -> Result<Vec<Group>, MachineError> {
    let mut groups: BTreeMap<i64, Group> = BTreeMap::new();
    for &cpu in online {
        let file = format!("cpu/cpu{cpu}/topology/physical_package_id");
        let id = tree.number(&file)?.unwrap_or(-1);
        let group = groups.entry(id).or_insert_with(|| Group {
            cpus: Vec::new(),
            place: tree.place(&file),
        });
        group.cpus.push(cpu);
    }
    Ok(groups.into_values().collect())
}

type Distances = Option<(Vec<Vec<u32>>, Place)>;

/// Returns the nodes that have CPUs, ascending by their number, and the distances between them. A
/// kernel without NUMA has one node.
fn nodes(tree: &Tree, online: &[u32]) -> Result<(Vec<Group>, Distances), MachineError> {
    let numbers = tree.numbered("node", "node");
    let mut groups = Vec::new();
    // These are the nodes of `numbers` that have CPUs: a memory-only node has a column in every
    // distance row.
    let mut kept = Vec::new();
    for (index, number) in numbers.iter().enumerate() {
        let file = format!("node/node{number}/cpulist");
        let mut cpus = tree.cpus(&file)?.unwrap_or_default();
        cpus.retain(|cpu| online.binary_search(cpu).is_ok());
        if !cpus.is_empty() {
            kept.push(index);
            let place = tree.place(&file);
            groups.push(Group { cpus, place });
        }
    }
    if groups.is_empty() {
        let cpus = online.to_vec();
        let place = tree.place("node");
        return Ok((vec![Group { cpus, place }], None));
    }
    let mut table = Vec::new();
    for &index in &kept {
        let file = format!("node/node{}/distance", numbers[index]);
        let Some(text) = tree.text(&file) else {
            return Ok((groups, None));
        };
        let row: Option<Vec<u32>> = text
            .split_whitespace()
            .map(|word| word.parse().ok())
            .collect();
        let row = row
            .filter(|row| row.len() == numbers.len())
            .ok_or_else(|| {
                let expected = format!("expected {} numbers, one for each node", numbers.len());
                tree.problem(
                    &file,
                    format!("`{text}` is not a row of distances"),
                    expected,
                )
            })?;
        table.push(kept.iter().map(|&column| row[column]).collect());
    }
    Ok((groups, Some((table, tree.place("node/node*/distance")))))
}

/// Returns the LLC of each CPU: its highest cache of level 2 or more, else the package's part in a
/// node.
fn llcs(
    tree: &Tree,
    online: &[u32],
    caches: &hardware::Caches,
    packages: &[Group],
    nodes: &[Group],
) -> Vec<Group> {
    let mut groups: BTreeMap<Vec<u32>, Place> = BTreeMap::new();
    let mut without = Vec::new();
    for &cpu in online {
        match caches.last_level(cpu) {
            Some(cache) => {
                let place = tree.place(&cache.file);
                groups.entry(cache.cpus.clone()).or_insert(place);
            }
            None => without.push(cpu),
        }
    }
    for cpus in survey::by_home(&without, packages, nodes) {
        groups.insert(cpus, tree.place("cpu/cpu*/cache"));
    }
    groups
        .into_iter()
        .map(|(cpus, place)| Group { cpus, place })
        .collect()
}
