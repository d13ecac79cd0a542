// SPDX-License-Identifier: GPL-2.0-or-later
//! The list below a drawing: levels, capacities, distances, caches, costs, sources.

use crate::cpulist;
use crate::hardware::ByDistance;
use crate::model::{Cpu, Distance, Machine};
use std::collections::{BTreeMap, BTreeSet};

/// The column at which the second column begins.
const INDENT: usize = 14;
/// The largest number of groups in a list; the count of all groups stands before the list.
const MAX_LISTED: usize = 12;
/// The largest number of nodes for a table of distances: for more nodes the range of distances
/// tells more.
const MAX_NODES: usize = 16;

pub(super) fn facts(machine: &Machine, width: usize) -> String {
    let mut list = List { out: String::new(), width };
    let count = machine.cpus.len();
    let smt = if machine.has_smt() {
        format!("{} cores with up to {} threads", machine.cores(), threads(machine))
    } else {
        "no SMT".to_string()
    };
    list.item("CPUs", &format!("{count}: {smt}"));
    list.groups("packages", machine, |cpu| Some(cpu.package));
    list.groups("nodes", machine, |cpu| Some(cpu.node));
    list.groups("LLCs", machine, |cpu| Some(cpu.llc));
    if machine.has_phantom_llcs() {
        list.groups("declared LLCs", machine, |cpu| Some(cpu.declared_llc));
    }
    match machine.clusters() {
        0 => list.item("clusters", "none"),
        _ => list.groups("clusters", machine, |cpu| cpu.cluster),
    }
    if machine.is_asymmetric() {
        list.values("capacities", machine, |cpu| cpu.capacity);
    }
    if machine.has_preferred_cores() {
        list.values("rankings", machine, |cpu| cpu.ranking);
    }
    distances(machine, &mut list);
    hardware(machine, &mut list);
    for source in &machine.sources {
        list.item("source", source);
    }
    list.out
}

fn threads(machine: &Machine) -> usize {
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    machine.cpus.iter().for_each(|cpu| *threads.entry(cpu.core).or_default() += 1);
    threads.into_values().max().unwrap_or(1)
}

struct List {
    out: String,
    width: usize,
}

impl List {
    /// Adds `label` and `text`, wrapped at spaces into the second column.
    fn item(&mut self, label: &str, text: &str) {
        let text = format!("{label:<INDENT$}{text}");
        self.out.push_str(&wrap(&text, INDENT, self.width));
    }

    /// Adds each value, and the CPUs that have it.
    fn values(&mut self, label: &str, machine: &Machine, of: impl Fn(&Cpu) -> u32) {
        let mut kinds: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, cpu) in machine.cpus.iter().enumerate() {
            kinds.entry(of(cpu)).or_default().push(number as u32);
        }
        let listed = kinds.iter().take(MAX_LISTED);
        let mut listed: Vec<String> = listed
            .map(|(value, cpus)| format!("{value} (CPUs {})", cpulist::format(cpus)))
            .collect();
        if kinds.len() > MAX_LISTED {
            listed.push("...".to_string());
        }
        self.item(label, &listed.join(", "));
    }

    /// Adds the number of groups, and their CPUs.
    fn groups(&mut self, label: &str, machine: &Machine, group: impl Fn(&Cpu) -> Option<u32>) {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, cpu) in machine.cpus.iter().enumerate() {
            if let Some(group) = group(cpu) {
                groups.entry(group).or_default().push(number as u32);
            }
        }
        let sizes: BTreeSet<usize> = groups.values().map(Vec::len).collect();
        let (least, most) = (sizes.first().unwrap_or(&0), sizes.last().unwrap_or(&0));
        let each = match (groups.len(), least == most) {
            (1, _) => format!("1 of {most} CPUs"),
            (count, true) => format!("{count} of {most} CPUs each"),
            (count, false) => format!("{count} of {least} to {most} CPUs"),
        };
        let listed = groups.values().take(MAX_LISTED);
        let mut listed: Vec<String> = listed.map(|cpus| cpulist::format(cpus)).collect();
        if groups.len() > MAX_LISTED {
            listed.push("...".to_string());
        }
        // Groups are separated by semicolons, because a list of CPUs has commas inside.
        self.item(label, &format!("{each}: {}", listed.join("; ")));
    }
}

/// Returns `text` broken at spaces into lines of at most `width` columns where words allow, the
/// second and later ones indented.
pub(super) fn wrap(text: &str, indent: usize, width: usize) -> String {
    let mut out = String::new();
    let mut line = String::new();
    for word in text.split(' ') {
        let columns = line.chars().count() + word.chars().count();
        // A line holds at least one word, however long.
        if columns > width && !line.trim().is_empty() {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(indent);
        }
        line.push_str(word);
        line.push(' ');
    }
    out + line.trim_end() + "\n"
}

fn distances(machine: &Machine, list: &mut List) {
    let nodes = machine.nodes();
    if nodes == 1 {
        return;
    }
    let table = &machine.node_distance;
    if nodes > MAX_NODES || INDENT + 4 * (nodes + 1) > list.width {
        let farthest = table.iter().flatten().max().copied().unwrap_or(10);
        return list.item("distances", &format!("10 to {farthest} between {nodes} nodes"));
    }
    let cells = |row: &[u32]| row.iter().map(|cell| format!("{cell:>4}")).collect::<String>();
    let head: Vec<u32> = (0..nodes as u32).collect();
    list.out.push_str(&format!("{:<INDENT$}    {}\n", "distances", cells(&head)));
    for (node, row) in table.iter().enumerate() {
        list.out.push_str(&format!("{:<INDENT$}{node:>4}{}\n", "", cells(row)));
    }
}

fn hardware(machine: &Machine, list: &mut List) {
    let hardware = &machine.hardware;
    let whose = if hardware.l2_per_cluster { "cluster" } else { "core" };
    let sizes: BTreeSet<u64> =
        (0..machine.llcs() as u32).map(|llc| machine.llc_bytes(llc)).collect();
    let sizes: Vec<String> = sizes.into_iter().rev().map(size).collect();
    let llc = sizes.join(" or ");
    let caches = match hardware.l2_bytes {
        0 => format!("L2 {llc} an LLC"),
        l2 => format!("L2 {} a {whose}, L3 {llc} an LLC", size(l2)),
    };
    let l1d = size(hardware.l1d_bytes);
    let line = hardware.line_bytes;
    list.item("caches", &format!("L1d {l1d} a core, {caches}; lines of {line} bytes"));
    list.item("frequency", &format!("{} MHz", hardware.frequency_mhz));
    let seen = distances_seen(machine);
    list.item("transfer", &by_distance(&hardware.transfer_ns, &seen));
    list.item("interrupt", &by_distance(&hardware.ipi_ns, &seen));
    list.item("switch", &format!("{} ns", hardware.context_switch_ns));
    let memory = match (machine.nodes(), hardware.memory_ns) {
        (1, (local, _)) => format!("{local} ns"),
        (_, (local, remote)) => format!("local {local} ns, remote {remote} ns"),
    };
    list.item("memory", &memory);
    let state = |state: &crate::IdleState| {
        let (exit, residency) = (micros(state.exit_ns), micros(state.residency_ns));
        format!("{} (exit {exit}, pays from {residency})", state.name)
    };
    let states: Vec<String> = hardware.idle_states.iter().map(state).collect();
    list.item("idle states", &states.join(", "));
    if machine.has_smt() {
        let percent = hardware.smt_throughput_1024 * 100 / 1024;
        list.item("SMT", &format!("a thread runs at {percent} % while its sibling runs"));
    }
    if hardware.stall_pct > 0 {
        let stall = format!("{} % of the work, as long on any CPU", hardware.stall_pct);
        list.item("stalls", &stall);
    }
}

/// Returns the distances that occur between some 256 CPUs, evenly chosen, and all others.
fn distances_seen(machine: &Machine) -> BTreeSet<Distance> {
    let cpus = machine.cpus.len();
    let step = cpus.div_ceil(256);
    let from = (0..cpus).step_by(step);
    from.flat_map(|a| (0..cpus).map(move |b| machine.distance(a, b))).collect()
}

fn by_distance(costs: &ByDistance, seen: &BTreeSet<Distance>) -> String {
    let name = |distance: Distance| match distance {
        Distance::Cpu => "own",
        distance => distance.name(),
    };
    let cost = |&distance: &Distance| format!("{} {}", name(distance), costs.at(distance));
    let costs: Vec<String> = seen.iter().map(cost).collect();
    format!("{} ns", costs.join(", "))
}

fn micros(ns: u32) -> String {
    match ns {
        0..1000 => format!("{ns} ns"),
        _ => format!("{} us", ns / 1000),
    }
}

/// Returns a number of bytes in the largest unit that keeps the figure exact.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        _ if bytes >= 1 << 20 && bytes % (1 << 17) == 0 => {
            format!("{}M", bytes as f64 / f64::from(1 << 20))
        }
        _ if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{}K", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
