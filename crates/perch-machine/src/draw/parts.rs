// SPDX-License-Identifier: GPL-2.0-or-later
//! The boxes of a drawing: the levels that this machine has, its CPUs split by these levels, and
//! the parts that are alike.

use crate::cpulist;
use crate::model::{Cpu, Machine};
use std::collections::BTreeMap;

/// One box.
pub(super) struct Part {
    pub lines: Vec<String>,
    pub centred: bool,
    pub children: Vec<Part>,
}

/// The number of parts that are alike and are drawn next to each other, for each level.
pub(super) type Limits = Vec<usize>;

#[derive(Clone, Copy, PartialEq)]
enum Level {
    Package,
    Node,
    /// Packages and nodes, where these are the same groups.
    PackageNode,
    Llc,
    Declared,
    Cluster,
    Core,
}

/// A machine's levels, from the outside in.
pub(super) struct Outline<'a> {
    machine: &'a Machine,
    levels: Vec<Level>,
    /// The two capacities of a machine with exactly two, lower first.
    kinds: Option<(u32, u32)>,
}

impl<'a> Outline<'a> {
    pub fn new(machine: &'a Machine) -> Outline<'a> {
        let cpus = &machine.cpus;
        // Returns true where each group of `inner` lies in one group of `outer`.
        let nested = |inner: &dyn Fn(&Cpu) -> u32, outer: &dyn Fn(&Cpu) -> u32| {
            let mut home = BTreeMap::new();
            cpus.iter().all(|cpu| *home.entry(inner(cpu)).or_insert(outer(cpu)) == outer(cpu))
        };
        let package = |cpu: &Cpu| cpu.package;
        let node = |cpu: &Cpu| cpu.node;
        let llc = |cpu: &Cpu| cpu.llc;
        let mut levels = Vec::new();
        match (machine.packages(), machine.nodes()) {
            (1, 1) => {}
            (_, 1) => levels.extend([Level::Node, Level::Package]),
            (1, _) => levels.push(Level::Node),
            _ if nested(&node, &package) && nested(&package, &node) => {
                levels.push(Level::PackageNode);
            }
            _ if nested(&node, &package) => levels.extend([Level::Package, Level::Node]),
            _ => levels.extend([Level::Node, Level::Package]),
        }
        let node_at = levels.iter().position(|level| *level == Level::Node);
        match node_at {
            // Nodes that cut an LLC (sub-NUMA clustering) are drawn inside it.
            Some(at) if !nested(&llc, &node) => levels.insert(at, Level::Llc),
            _ => levels.push(Level::Llc),
        }
        if machine.has_phantom_llcs() && nested(&|cpu| cpu.declared_llc, &llc) {
            levels.push(Level::Declared);
        }
        if machine.clusters() > 0 {
            levels.push(Level::Cluster);
        }
        levels.push(Level::Core);
        let mut capacities: Vec<u32> = cpus.iter().map(|cpu| cpu.capacity).collect();
        capacities.sort_unstable();
        capacities.dedup();
        let kinds = match capacities[..] {
            [little, big] => Some((little, big)),
            _ => None,
        };
        Outline { machine, levels, kinds }
    }

    pub fn levels(&self) -> usize {
        self.levels.len()
    }

    /// Returns the meaning of the letters and numbers in the CPUs' boxes.
    pub fn legend(&self) -> Option<String> {
        match self.kinds {
            Some((little, big)) => Some(format!("L: capacity {little}, B: capacity {big}")),
            None if self.machine.is_asymmetric() => {
                Some("below each CPU's number: its capacity".to_string())
            }
            None => None,
        }
    }

    /// Returns the groups of `level` among `cpus`, in the order of their lowest CPU.
    pub fn split(&self, cpus: &[u32], level: usize) -> Vec<Vec<u32>> {
        let mut groups: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &number in cpus {
            let cpu = &self.machine.cpus[number as usize];
            let id = match self.levels[level] {
                Level::Package => cpu.package,
                Level::Node | Level::PackageNode => cpu.node,
                Level::Llc => cpu.llc,
                Level::Declared => cpu.declared_llc,
                // CPUs without a cluster stand together in a box without a label.
                Level::Cluster => cpu.cluster.map_or(0, |cluster| cluster + 1),
                Level::Core => cpu.core,
            };
            groups.entry(id).or_default().push(number);
        }
        let mut groups: Vec<Vec<u32>> = groups.into_values().collect();
        groups.sort_by_key(|group| group[0]);
        groups
    }

    /// Returns the boxes for `cpus` from `level` down.
    pub fn parts(&self, cpus: &[u32], level: usize, limits: &Limits) -> Vec<Part> {
        let groups = self.split(cpus, level);
        let shapes: Vec<String> = groups.iter().map(|group| self.shape(group, level)).collect();
        let mut parts = Vec::new();
        let mut at = 0;
        while at < groups.len() {
            let alike = shapes[at..].iter().take_while(|shape| **shape == shapes[at]).count();
            let shown = alike.min(limits[level]);
            parts
                .extend(groups[at..at + shown].iter().map(|group| self.part(group, level, limits)));
            if alike > shown {
                parts.push(Part {
                    lines: vec![format!("{} more", alike - shown)],
                    centred: false,
                    children: Vec::new(),
                });
            }
            at += alike;
        }
        parts
    }

    fn part(&self, cpus: &[u32], level: usize, limits: &Limits) -> Part {
        if self.levels[level] == Level::Core {
            return self.core(cpus);
        }
        Part {
            lines: vec![self.label(cpus, level)],
            centred: false,
            children: self.parts(cpus, level + 1, limits),
        }
    }

    fn core(&self, cpus: &[u32]) -> Part {
        let mut lines: Vec<String> = cpus.iter().map(u32::to_string).collect();
        let capacity = self.machine.cpus[cpus[0] as usize].capacity;
        if let Some((little, _)) = self.kinds {
            lines.push(if capacity == little { "L" } else { "B" }.to_string());
        } else if self.machine.is_asymmetric() {
            lines.push(capacity.to_string());
        }
        let threads = Part { lines, centred: true, children: Vec::new() };
        let hardware = &self.machine.hardware;
        if hardware.l2_bytes == 0 || hardware.l2_per_cluster {
            return threads;
        }
        Part { lines: vec!["L2".to_string()], centred: true, children: vec![threads] }
    }

    fn label(&self, cpus: &[u32], level: usize) -> String {
        let cpu = &self.machine.cpus[cpus[0] as usize];
        let hardware = &self.machine.hardware;
        match self.levels[level] {
            Level::Package => format!("package {}", cpu.package),
            Level::Node => format!("node {}", cpu.node),
            Level::PackageNode => format!("package {}, node {}", cpu.package, cpu.node),
            Level::Llc if hardware.l2_bytes == 0 => "L2".to_string(),
            Level::Llc => "L3".to_string(),
            Level::Declared => "declared LLC".to_string(),
            Level::Cluster if cpu.cluster.is_none() => String::new(),
            Level::Cluster if hardware.l2_per_cluster => "L2, cluster".to_string(),
            Level::Cluster => "cluster".to_string(),
            Level::Core => "core".to_string(),
        }
    }

    /// Returns the line above a grid that shows only one part.
    pub fn heading(&self, cpus: &[u32], level: usize) -> String {
        format!("{}, CPUs {}:", self.label(cpus, level), cpulist::format(cpus))
    }

    /// Returns a text that is equal for parts that are drawn alike except for their numbers.
    fn shape(&self, cpus: &[u32], level: usize) -> String {
        let mut shape = String::from("(");
        if self.levels[level] == Level::Core {
            let capacity = self.machine.cpus[cpus[0] as usize].capacity;
            shape.push_str(&format!("{}x{capacity}", cpus.len()));
        } else {
            if self.levels[level] == Level::Cluster {
                let clustered = self.machine.cpus[cpus[0] as usize].cluster.is_some();
                shape.push(if clustered { 'c' } else { 'n' });
            }
            for group in self.split(cpus, level + 1) {
                shape.push_str(&self.shape(&group, level + 1));
            }
        }
        shape.push(')');
        shape
    }
}
