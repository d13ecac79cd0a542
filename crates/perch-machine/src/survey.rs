// SPDX-License-Identifier: GPL-2.0-or-later
//! The meaning of a surveyed topology (sysfs, hwloc, lscpu) for the scheduler, by the kernel's own rules.

use crate::cpulist;
use crate::draft::{Draft, Group};
use crate::error::{MachineError, Place};
use crate::model::Machine;
use crate::{hwloc, lscpu};
use perch_file::Kind;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;
use std::path::Path;

/// Reads the machine in the file at `path`, which hwloc wrote (XML) or lscpu printed. Costs that neither
/// knows are those of [`crate::Hardware::default`].
///
/// # Errors
/// Returns [`MachineError::Read`] when the file cannot be read, else the errors of
/// [`hwloc::from_xml_str`] and [`lscpu::from_str`].
pub fn import(path: &Path) -> Result<Machine, MachineError> {
    let origin = path.display().to_string();
    let text = perch_file::text(path, Kind::TOPOLOGY)?;
    if text.trim_start().starts_with('<') {
        hwloc::from_xml_str(&text, &origin)
    } else {
        lscpu::from_str(&text, &origin)
    }
}

/// The index of each CPU's group.
fn homes(groups: &[Group]) -> HashMap<u32, usize> {
    let of = |(index, group): (usize, &Group)| {
        let cpus = group.cpus.clone().into_iter();
        cpus.map(move |cpu| (cpu, index))
    };
    groups.iter().enumerate().flat_map(of).collect()
}

/// Parts CPUs by package and node.
fn parting(packages: &[Group], nodes: &[Group]) -> impl Fn(&[u32]) -> Vec<Vec<u32>> + use<> {
    let (packages, nodes) = (homes(packages), homes(nodes));
    move |cpus| {
        let mut parts: BTreeMap<_, Vec<u32>> = BTreeMap::new();
        for cpu in cpus {
            let home = (packages.get(cpu), nodes.get(cpu));
            parts.entry(home).or_default().push(*cpu);
        }
        parts.into_values().collect()
    }
}

/// Gives the CPUs whose caches nobody knows one LLC for each package's part in a node.
pub(crate) fn complete_llcs(draft: &mut Draft, cpus: &[u32], place: &Place) {
    let homes = parting(&draft.packages, &draft.nodes)(cpus).into_iter();
    let homes = homes.map(|cpus| Group { cpus, place: place.clone() });
    complete(&mut draft.llcs, homes.collect());
}

/// Keeps the clusters that are larger than a core and smaller than an LLC: x86 kernels report the
/// sharers of an L2 as a cluster even where that is one core, and Arm's kernels report the whole of
/// a legacy big.LITTLE cluster, which is already an LLC. The kernel drops both levels too.
pub(crate) fn real_clusters(
    mut clusters: Vec<Group>,
    cores: &[Group],
    llcs: &[Group],
) -> Vec<Group> {
    let (core_of, llc_of) = (homes(cores), homes(llcs));
    let within = |small: &[u32], large: &[u32]| {
        small.len() < large.len() && small.iter().all(|cpu| large.binary_search(cpu).is_ok())
    };
    clusters.retain(|cluster| {
        let first = &cluster.cpus[0];
        let core = core_of.get(first).map(|&core| &cores[core]);
        let one_core = cluster.cpus.len() == 1 || core.is_some_and(|c| c.cpus == cluster.cpus);
        let llc = llc_of.get(first).map(|&llc| &llcs[llc]);
        !one_core && llc.is_some_and(|llc| within(&cluster.cpus, &llc.cpus))
    });
    clusters
}

/// Where a node or one of `packages` cuts an LLC, returns the parts that the scheduler sees; else
/// nothing.
pub(crate) fn declared(llcs: &[Group], packages: &[Group], nodes: &[Group]) -> Vec<Group> {
    let parting = parting(packages, nodes);
    let parts = llcs.iter().flat_map(|llc| {
        let parts = parting(&llc.cpus).into_iter();
        parts.map(|cpus| Group { cpus, place: llc.place.clone() })
    });
    let parts: Vec<Group> = parts.collect();
    if parts.len() == llcs.len() { Vec::new() } else { parts }
}

/// Settles what an LLC is that serves several packages, as on phones, whose old device trees call
/// each cluster a package, and on guests whose every CPU is one. In a machine such packages are one.
/// Where `cut`, the kernel is one that takes the package for the LLC where it is the smaller of the two
/// (`cpu_coregroup_mask()` in the code that arm64 and RISC-V share); others keep the cache whole.
pub(crate) fn join_packages(draft: &mut Draft, cut: bool) {
    let parts = if cut { &draft.packages[..] } else { &[] };
    draft.declared = declared(&draft.llcs, parts, &draft.nodes);
    let before = draft.packages.len();
    let mut home = homes(&draft.packages);
    for llc in &draft.llcs {
        let all: BTreeSet<usize> =
            llc.cpus.iter().filter_map(|cpu| home.get(cpu).copied()).collect();
        let mut all = all.into_iter();
        let Some(first) = all.next() else {
            continue;
        };
        for other in all {
            let cpus = std::mem::take(&mut draft.packages[other].cpus);
            home.extend(cpus.iter().map(|&cpu| (cpu, first)));
            draft.packages[first].cpus.extend(cpus);
        }
    }
    draft.packages.retain(|package| !package.cpus.is_empty());
    let packages = draft.packages.len();
    if packages < before {
        let seen =
            if cut { "the kernel cuts it at their borders" } else { "the kernel keeps it whole" };
        draft.sources.push(format!(
            "a last-level cache serves several of the {before} packages, which are {packages} here; {seen}"
        ));
    }
}

/// Adds the groups of a level that the source leaves out for some CPUs: those in `found`, without the
/// CPUs that are in a group already. Returns true where that adds any.
pub(crate) fn complete(level: &mut Vec<Group>, found: Vec<Group>) -> bool {
    let known: BTreeSet<u32> = level.iter().flat_map(|group| group.cpus.clone()).collect();
    let before = level.len();
    for mut group in found {
        group.cpus.retain(|cpu| !known.contains(cpu));
        if !group.cpus.is_empty() {
            level.push(group);
        }
    }
    level.len() > before
}

/// Makes the capacity of the most capable CPU 1024, which it is not where that one is offline, or where
/// hwloc tells one CPU's for all CPUs of a kind.
pub(crate) fn scale_capacities(draft: &mut Draft) {
    let most = draft.capacities.iter().map(|(_, value)| *value).max();
    let Some(most @ 1..1024) = most else {
        return;
    };
    for (_, value) in &mut draft.capacities {
        *value = (*value * 1024 / most).max(1);
    }
    draft.sources.push(format!(
        "the most capable CPU here has {most} of 1024; capacities are scaled to make that 1024"
    ));
}

/// The first CPU that is missing below the highest one.
pub(crate) fn hole(numbers: &[u32]) -> Option<u32> {
    let mut places = (0..).zip(numbers);
    places.find(|&(place, &cpu)| place != cpu).map(|(place, _)| place)
}

/// The kernel's numbers of the CPUs, in words.
pub(crate) fn renumbered(numbers: &[u32]) -> String {
    format!(
        "CPUs 0-{} are the kernel's {}, in this order",
        numbers.len() - 1,
        cpulist::format(numbers)
    )
}

/// Says in the sources that nodes without CPUs are left out.
pub(crate) fn memory_alone(draft: &mut Draft, mut nodes: Vec<u32>) {
    nodes.sort_unstable();
    if !nodes.is_empty() {
        let nodes = cpulist::format(&nodes);
        let note = format!("nodes without CPUs are left out: {nodes}");
        draft.sources.push(note);
    }
}

/// Says in the machine's description that CPUs are left out, `why`, and how the others are numbered.
pub(crate) fn left_out(draft: &mut Draft, gone: &[u32], why: &str, numbers: &[u32]) {
    if gone.is_empty() {
        return;
    }
    let gone = cpulist::format(gone);
    let _ = write!(draft.description, "; CPUs {gone} {why} and are left out");
    if hole(numbers).is_some() {
        let kept = cpulist::format(numbers);
        let _ = write!(
            draft.description,
            ", and the others, the kernel's {kept}, are numbered from 0 up"
        );
    }
}

/// Returns the machine whose CPUs have the kernel's `numbers` (ascending) in the draft, numbered from 0
/// up; where that changes a number, the sources tell.
pub(crate) fn check(mut draft: Draft, numbers: &[u32]) -> Result<Machine, MachineError> {
    if hole(numbers).is_none() {
        return draft.check();
    }
    draft.sources.insert(1, renumbered(numbers));
    draft.renumber(numbers);
    draft.check().map_err(|error| match error {
        // The check knows the new numbers only.
        MachineError::Invalid(mut problem) => {
            problem.reason = format!("{} ({})", problem.reason, renumbered(numbers));
            MachineError::Invalid(problem)
        }
        error => error,
    })
}
