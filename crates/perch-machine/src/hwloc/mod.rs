// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of the machine in an XML file of hwloc (`lstopo file.xml`), format 2 or later.
//!
//! hwloc hangs PUs below cores, caches, groups and packages, and NUMA nodes beside them as "memory
//! children". An object between a core and its last-level cache that holds several cores (a Group,
//! a shared L2) is a cluster.

mod kinds;
mod xml;

use crate::cpulist;
use crate::draft::{Draft, Group};
use crate::error::{MachineError, Place};
use crate::model::{MAX_CPUS, Machine};
use crate::survey;
use std::collections::{BTreeMap, BTreeSet};

use xml::{Document, Object};

/// Reads the machine in `text`, which errors call `origin`. Costs that hwloc does not know are those of
/// [`crate::Hardware::default`].
///
/// # Errors
/// Returns [`MachineError::Invalid`] when the text is not XML or not hwloc's, was written by hwloc
/// 1, has no PU, or contradicts itself.
pub fn from_xml_str(text: &str, origin: &str) -> Result<Machine, MachineError> {
    let document = xml::parse(text, origin)?;
    let topology = Topology::new(&document, origin)?;
    let numbers: Vec<u32> = topology.pus.keys().copied().collect();
    let mut draft = Draft::new(origin, "imported");
    let model = document.infos.get("CPUModel").map_or("A machine", |model| model.trim());
    let count = numbers.len();
    draft.description = format!("{model}, {count} CPUs, imported from hwloc");
    draft.sources = vec![format!("hwloc XML: {origin}")];
    let gone = topology.left_out()?;
    let why = "were offline, or hwloc was not allowed to use them,";
    survey::left_out(&mut draft, &gone, why, &numbers);

    draft.packages = topology.groups(|pu| topology.outermost(pu, |o| o.kind == "Package"));
    if draft.packages.is_empty() {
        draft.packages = vec![topology.everything("Machine")];
    }
    // hwloc knows no package of some CPUs, as where it was not allowed to use the others of one.
    let below_machine = topology.groups(|pu| topology.outermost(pu, |o| o.kind != "Machine"));
    if survey::complete(&mut draft.packages, below_machine) {
        let note = "CPUs that are in no Package are in one for each outermost object";
        draft.sources.push(note.to_string());
    }
    let node_objects = topology.node_objects();
    let mut nodes = topology.members(|pu| node_objects.get(&pu).copied());
    nodes.sort_by_key(|(node, _)| number(&document.objects[*node]));
    draft.nodes = topology.groups_of(nodes.clone());
    let node_numbers: Vec<u64> =
        nodes.iter().map(|(node, _)| number(&document.objects[*node])).collect();
    let all = document.objects.iter().filter(|o| o.kind == "NUMANode");
    let kept: BTreeSet<&u64> = node_numbers.iter().collect();
    let empty = all.map(number).filter(|node| !kept.contains(node));
    let empty = empty.filter_map(|node| u32::try_from(node).ok()).collect();
    survey::memory_alone(&mut draft, empty);
    if draft.nodes.is_empty() {
        draft.nodes = vec![topology.everything("Machine")];
    } else if survey::complete(&mut draft.nodes, draft.packages.clone()) {
        let note = "CPUs that are in no NUMANode are in one for each package, without distances";
        draft.sources.push(note.to_string());
    } else {
        draft.distance = topology.distances(&node_numbers)?;
    }
    draft.cores = topology.groups(|pu| topology.innermost(pu, |o| o.kind == "Core"));
    for (cache, cpus) in topology.members(|pu| topology.llc(pu)) {
        let place = place(&document.objects[cache]);
        let group = Group { cpus, place };
        let bytes = topology.size(cache, "cache_size");
        draft.llc_bytes.extend(bytes.map(|bytes| (group.clone(), bytes)));
        draft.llcs.push(group);
    }
    survey::complete_llcs(&mut draft, &numbers, &Place::key("L3Cache"));
    kinds::capacities(&document, &numbers, &mut draft)?;
    let arch = document.infos.get("Architecture").map(String::as_str);
    let cut = arch.is_some_and(|arch| {
        let kernels = ["aarch64", "arm", "riscv"];
        kernels.iter().any(|kernel| arch.starts_with(kernel))
    });
    survey::join_packages(&mut draft, cut);
    draft.clusters = survey::real_clusters(topology.clusters(), &draft.cores, draft.seen_llcs());
    hardware(&topology, &mut draft);
    survey::check(draft, &numbers)
}

/// The objects and the PUs among them.
struct Topology<'a> {
    document: &'a Document,
    origin: &'a str,
    /// The object of each PU, by its number.
    pus: BTreeMap<u32, usize>,
}

impl<'a> Topology<'a> {
    fn new(document: &'a Document, origin: &'a str) -> Result<Topology<'a>, MachineError> {
        let mut pus = BTreeMap::new();
        for (index, object) in document.objects.iter().enumerate() {
            if object.kind != "PU" {
                continue;
            }
            let place = place(object);
            let number = object.attributes.get("os_index").and_then(|n| n.parse::<u32>().ok());
            let Some(number) = number.filter(|number| (*number as usize) < MAX_CPUS) else {
                let expected = format!("expected a number below {MAX_CPUS}");
                return Err(place.problem(origin, "a PU without a usable `os_index`", expected));
            };
            if pus.insert(number, index).is_some() {
                let reason = format!("there are two PUs with os_index {number}");
                return Err(place.problem(origin, reason, ""));
            }
        }
        if pus.is_empty() {
            let expected = "expected the XML that `lstopo file.xml` writes without filters";
            return Err(Place::key("PU").problem(origin, "the machine has no PU", expected));
        }
        Ok(Topology { document, origin, pus })
    }

    /// Returns the CPUs that the file counts as the machine's and has no PU of.
    fn left_out(&self) -> Result<Vec<u32>, MachineError> {
        let objects = &self.document.objects;
        let Some(machine) = objects.first().filter(|object| object.parent.is_none()) else {
            return Ok(Vec::new());
        };
        let Some(all) = machine.attributes.get("complete_cpuset") else {
            return Ok(Vec::new());
        };
        let mut all = set(all, "complete_cpuset", &place(machine), self.origin)?;
        all.retain(|cpu| !self.pus.contains_key(cpu));
        Ok(all)
    }

    /// Returns the objects around `object`, from the inside out, without `object` itself.
    fn around(&self, object: usize) -> impl Iterator<Item = usize> {
        let objects = &self.document.objects;
        std::iter::successors(objects[object].parent, |&at| objects[at].parent)
    }

    fn innermost(&self, pu: usize, wanted: impl Fn(&Object) -> bool) -> Option<usize> {
        self.around(pu).find(|&at| wanted(&self.document.objects[at]))
    }

    fn outermost(&self, pu: usize, wanted: impl Fn(&Object) -> bool) -> Option<usize> {
        self.around(pu).filter(|&at| wanted(&self.document.objects[at])).last()
    }

    /// Returns an attribute that is a size, where it is one.
    fn size(&self, object: usize, key: &str) -> Option<u64> {
        let size = self.document.objects[object].attributes.get(key)?;
        let size = size.parse().ok()?;
        (1..=1 << 40).contains(&size).then_some(size)
    }

    /// Returns the last-level cache of a PU. On s390, which shows a core's own caches alone, there is none.
    fn llc(&self, pu: usize) -> Option<usize> {
        let infos = &self.document.infos;
        let s390 = infos.get("Architecture").is_some_and(|arch| arch.starts_with("s390"));
        let kinds = ["L2Cache", "L3Cache", "L4Cache", "L5Cache"];
        self.outermost(pu, |o| !s390 && kinds.contains(&o.kind.as_str()))
    }

    /// Groups the PUs by the object that `of` finds for each.
    fn members(&self, of: impl Fn(usize) -> Option<usize>) -> Vec<(usize, Vec<u32>)> {
        let mut members: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        for (&number, &pu) in &self.pus {
            if let Some(object) = of(pu) {
                members.entry(object).or_default().push(number);
            }
        }
        members.into_iter().collect()
    }

    fn groups_of(&self, members: Vec<(usize, Vec<u32>)>) -> Vec<Group> {
        let group = |(object, cpus): (usize, Vec<u32>)| Group {
            cpus,
            place: place(&self.document.objects[object]),
        };
        members.into_iter().map(group).collect()
    }

    fn groups(&self, of: impl Fn(usize) -> Option<usize>) -> Vec<Group> {
        self.groups_of(self.members(of))
    }

    fn everything(&self, kind: &str) -> Group {
        Group { cpus: self.pus.keys().copied().collect(), place: Place::key(kind) }
    }

    /// Returns the NUMA node of each PU: the first one attached to the nearest object around the PU
    /// that has any. A memory-side cache between the two does not count.
    fn node_objects(&self) -> BTreeMap<usize, usize> {
        let attached = self.memory_homes();
        let node = |&pu: &usize| {
            let node = self.around(pu).find_map(|at| attached.get(&at).copied())?;
            Some((pu, node))
        };
        self.pus.values().filter_map(node).collect()
    }

    /// Returns the objects that have a NUMA node attached, and the first such node of each.
    fn memory_homes(&self) -> BTreeMap<usize, usize> {
        let objects = &self.document.objects;
        let mut attached: BTreeMap<usize, usize> = BTreeMap::new();
        for (index, object) in objects.iter().enumerate() {
            if object.kind == "NUMANode" {
                let home = self.around(index).find(|&at| objects[at].kind != "MemCache");
                if let Some(home) = home {
                    attached.entry(home).or_insert(index);
                }
            }
        }
        attached
    }

    /// Returns the clusters, which hold several cores inside an LLC: the innermost such group or
    /// cache of each PU.
    fn clusters(&self) -> Vec<Group> {
        let homes: BTreeSet<usize> = self.memory_homes().into_keys().collect();
        let mut cores: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &pu in self.pus.values() {
            let core = self.innermost(pu, |o| o.kind == "Core").unwrap_or(pu);
            for at in self.around(pu) {
                let known = cores.entry(at).or_default();
                if !known.contains(&core) && known.len() < 2 {
                    known.push(core);
                }
            }
        }
        self.groups(|pu| {
            let llc = self.llc(pu);
            let inside = self.around(pu).take_while(|&at| Some(at) != llc);
            // A group with memory of its own is a NUMA node inside the LLC (sub-NUMA clustering).
            let mut candidates = inside.filter(|at| {
                let object = &self.document.objects[*at];
                let shares = match object.kind.as_str() {
                    "L2Cache" | "L3Cache" => true,
                    "Group" => shares_hardware(object),
                    _ => false,
                };
                shares && !homes.contains(at)
            });
            candidates.find(|at| cores.get(at).is_some_and(|cores| cores.len() > 1))
        })
    }

    /// Returns the latencies between nodes, where the file has them in the SLIT's scale.
    fn distances(&self, nodes: &[u64]) -> Result<Distances, MachineError> {
        let mut all = self.document.distances.iter();
        let Some(found) = all.find(|d| d.kind == "NUMANode" && d.latency) else {
            return Ok(None);
        };
        let place = Place { key: "distances2".to_string(), line: Some(found.line) };
        let size = found.indexes.len();
        if found.values.len() != size * size {
            return Err(place.problem(
                self.origin,
                format!("{} values for {size} nodes", found.values.len()),
                format!("expected {} values", size * size),
            ));
        }
        let mut columns = Vec::new();
        for node in nodes {
            let Some(column) = found.indexes.iter().position(|index| index == node) else {
                let reason = format!("node {node} is not among the nodes with distances");
                return Err(place.problem(self.origin, reason, ""));
            };
            columns.push(column);
        }
        let value = |a: usize, b: usize| u32::try_from(found.values[a * size + b]);
        let row = |&a: &usize| columns.iter().map(|&b| value(a, b)).collect::<Result<Vec<_>, _>>();
        match columns.iter().map(row).collect() {
            Ok(table) => Ok(Some((table, place))),
            Err(_) => Err(place.problem(self.origin, "a distance beyond 2^32", "")),
        }
    }
}

/// True unless hwloc made the group of CPUs that have only a place in common: a processor group of Windows
/// (220, 221), CPUs at the same distance (900), beside the same devices (1000) or the same memory (1001), a
/// book or a drawer of s390 (110). The numbers are hwloc's `HWLOC_GROUP_KIND_*`.
fn shares_hardware(group: &Object) -> bool {
    let kind = group.attributes.get("kind").map(String::as_str);
    !matches!(kind, Some("110" | "220" | "221" | "900" | "1000" | "1001"))
}

type Distances = Option<(Vec<Vec<u32>>, Place)>;

fn place(object: &Object) -> Place {
    let key = match object.attributes.get("os_index") {
        Some(number) => format!("{} {number}", object.kind),
        None => object.kind.clone(),
    };
    let line = Some(object.line);
    Place { key, line }
}

fn number(object: &Object) -> u64 {
    object.attributes.get("os_index").and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Reads the set of CPUs in the attribute `key`.
fn set(text: &str, key: &str, place: &Place, origin: &str) -> Result<Vec<u32>, MachineError> {
    cpulist::mask(text).ok_or_else(|| {
        let expected = format!("expected words such as 0xff below CPU {MAX_CPUS}");
        place.problem(origin, format!("the {key} is not a set of CPUs"), expected)
    })
}

/// Reads the cache sizes of the first PU of the most capable kind.
fn hardware(topology: &Topology, draft: &mut Draft) {
    let best = draft.capacities.iter().rev().max_by_key(|(_, value)| *value);
    let best = best.and_then(|(group, _)| topology.pus.get(group.cpus.first()?));
    let Some(&pu) = best.or(topology.pus.values().next()) else {
        return;
    };
    let hardware = &mut draft.hardware;
    let size = |at, key| topology.size(at, key);
    if let Some(l1) = topology.innermost(pu, |object| object.kind == "L1Cache") {
        hardware.l1d_bytes = size(l1, "cache_size").unwrap_or(hardware.l1d_bytes);
        let line = size(l1, "cache_linesize").and_then(|line| u32::try_from(line).ok());
        let line = line.filter(|line| line.is_power_of_two() && (16..=4096).contains(line));
        hardware.line_bytes = line.unwrap_or(hardware.line_bytes);
    }
    let llc = topology.llc(pu);
    let l2 = topology.innermost(pu, |object| object.kind == "L2Cache");
    if let Some(llc) = llc {
        hardware.llc_bytes = size(llc, "cache_size").unwrap_or(hardware.llc_bytes);
    }
    match l2 {
        Some(_) if l2 == llc => hardware.l2_bytes = 0,
        Some(l2) => {
            hardware.l2_bytes = size(l2, "cache_size").unwrap_or(hardware.l2_bytes);
            let below = |(_, pu): &(&u32, &usize)| topology.around(**pu).any(|at| at == l2);
            let sharers = topology.pus.iter().filter(below).map(|(number, _)| *number);
            let sharers: Vec<u32> = sharers.collect();
            hardware.l2_per_cluster = draft.clusters.iter().any(|group| group.cpus == sharers);
        }
        None => {}
    }
}
