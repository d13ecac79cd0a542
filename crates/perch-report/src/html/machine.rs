// SPDX-License-Identifier: GPL-2.0-or-later
//! Where tasks ran, by CPU or by parts of the machine.

use std::collections::BTreeMap;

use perch_machine::{Cpu, Machine, cpulist};

/// A part of the machine that a row may stand for.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Node,
    Llc,
    Cluster,
    Core,
}

/// Returns the levels worth a row: those that have several groups within a group of another
/// level.
fn levels(machine: &Machine) -> Vec<Level> {
    let mut home = BTreeMap::new();
    let within = machine.cpus.iter();
    let nested = within
        .fold(true, |nested, cpu| nested & (*home.entry(cpu.llc).or_insert(cpu.node) == cpu.node));
    let mut levels =
        if nested { vec![Level::Node, Level::Llc] } else { vec![Level::Llc, Level::Node] };
    levels.retain(|level| match level {
        Level::Node => machine.nodes() > 1,
        // Where each node has one LLC, the node's box stands for the LLC.
        _ => machine.llcs() > 1 && (machine.llcs() != machine.nodes() || !nested),
    });
    if machine.clusters() > 0 {
        levels.push(Level::Cluster);
    }
    if machine.has_smt() {
        levels.push(Level::Core);
    }
    levels
}

fn key(cpu: &Cpu, level: Level) -> u32 {
    match level {
        Level::Node => cpu.node,
        Level::Llc => cpu.llc,
        Level::Cluster => cpu.cluster.map_or(0, |cluster| cluster + 1),
        Level::Core => cpu.core,
    }
}

/// Returns the groups of a level among `cpus`, in the order of their lowest CPU.
fn split(machine: &Machine, cpus: &[usize], level: Level) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for &cpu in cpus {
        groups.entry(key(&machine.cpus[cpu], level)).or_default().push(cpu);
    }
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort_by_key(|group| group[0]);
    groups
}

fn numbers(cpus: &[usize]) -> String {
    let cpus: Vec<u32> = cpus.iter().map(|cpu| *cpu as u32).collect();
    cpulist::format(&cpus)
}

/// Returns the rows of a table: CPUs if there are few, else their cores, clusters, LLCs or
/// nodes; each row has the mean of its CPUs' shares.
pub fn rows(machine: &Machine, most: usize, arms: &[(&str, &[f64])]) -> Vec<Vec<String>> {
    let all: Vec<usize> = (0..machine.cpus.len()).collect();
    let alone = || all.iter().map(|cpu| vec![*cpu]).collect::<Vec<_>>();
    let inside_out = levels(machine).into_iter().rev();
    let grouped = inside_out.map(|level| split(machine, &all, level));
    let groups = [alone()].into_iter().chain(grouped);
    let groups = groups.into_iter().find(|groups| groups.len() <= most);
    let groups = groups.unwrap_or_else(|| vec![all.clone()]);
    let rows = groups.iter().map(|group| {
        let name = match group[..] {
            [cpu] => format!("CPU {cpu}"),
            _ => format!("CPUs {}", numbers(group)),
        };
        let mean = |shares: &[f64]| {
            let of_group = group.iter().map(|cpu| shares.get(*cpu).copied().unwrap_or(0.0));
            of_group.sum::<f64>() / group.len() as f64
        };
        let means = arms.iter().map(|(_, shares)| format!("{:.1} %", mean(shares)));
        [name].into_iter().chain(means).collect()
    });
    rows.collect()
}
