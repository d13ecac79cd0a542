// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines to test on, and what their CPUs share, found the slow way: by asking every CPU about
//! every other. Nothing here comes from the topology under test.

use perch_machine::Machine;

/// A machine of a seed. One in four has small clusters without SMT, the shape that the cluster
/// mechanism is for; `max_cpus` bounds the others.
pub fn random(seed: u64, max_cpus: usize) -> Machine {
    if seed % 4 != 0 {
        return Machine::random(seed, max_cpus);
    }
    let clusters = 1 + (seed / 4 % 5) as usize;
    let cores = 1 + (seed / 20 % 5) as usize;
    let nodes = 1 + (seed / 100 % 3) as usize;
    Machine::regular("small-clusters", 1, nodes, 2, clusters, cores, 1).expect("a small machine")
}

/// The CPUs with which each CPU shares its core and caches, ascending.
pub struct Shape {
    pub machine: Machine,
    /// The CPU's core: itself and its SMT siblings.
    pub core: Vec<Vec<usize>>,
    /// Its cluster where that is a level of its own: more than a core, less than an LLC.
    pub cluster: Vec<Option<Vec<usize>>>,
    /// The LLC as declared, where it has more than one CPU.
    pub llc: Vec<Option<Vec<usize>>>,
    /// The smallest set around the CPU that has every capacity of the machine, where capacities
    /// differ.
    pub asym: Vec<Option<Vec<usize>>>,
    /// Some core has several threads.
    pub smt: bool,
    /// Some CPU has a cluster.
    pub clusters: bool,
}

impl Shape {
    pub fn new(machine: &Machine) -> Shape {
        let n = machine.cpus.len();
        let cpus = &machine.cpus;
        let same = |f: &dyn Fn(usize, usize) -> bool| -> Vec<Vec<usize>> {
            (0..n).map(|a| (0..n).filter(|&b| f(a, b)).collect()).collect()
        };
        let core = same(&|a, b| cpus[a].core == cpus[b].core);
        let near = same(&|a, b| {
            a == b || (cpus[a].cluster.is_some() && cpus[a].cluster == cpus[b].cluster)
        });
        let cache = same(&|a, b| cpus[a].declared_llc == cpus[b].declared_llc);
        let cluster: Vec<Option<Vec<usize>>> = (0..n)
            .map(|c| {
                let is = near[c].len() > core[c].len() && near[c].len() < cache[c].len();
                is.then(|| near[c].clone())
            })
            .collect();
        let mut shape = Shape {
            asym: vec![None; n],
            smt: core.iter().any(|c| c.len() > 1),
            clusters: cluster.iter().any(Option::is_some),
            llc: cache.into_iter().map(|c| (c.len() > 1).then_some(c)).collect(),
            machine: machine.clone(),
            core,
            cluster,
        };
        shape.asym = (0..n).map(|cpu| shape.find_asym(cpu)).collect();
        shape
    }

    /// True if CPUs differ in capacity.
    pub fn asymmetric(&self) -> bool {
        self.asym.iter().any(Option::is_some)
    }

    fn kinds(&self, cpus: &[usize]) -> usize {
        let mut kinds: Vec<u32> = cpus.iter().map(|&c| self.capacity(c)).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds.len()
    }

    /// A CPU's architectural capacity.
    pub fn capacity(&self, cpu: usize) -> u32 {
        self.machine.cpus[cpu].capacity
    }

    fn find_asym(&self, cpu: usize) -> Option<Vec<usize>> {
        let all: Vec<usize> = (0..self.nr_cpus()).collect();
        let kinds = self.kinds(&all);
        let mut levels = vec![self.core[cpu].clone()];
        levels.extend(self.cluster[cpu].clone());
        levels.extend(self.llc[cpu].clone());
        levels.push(self.node(cpu));
        levels.extend(self.reach(cpu));
        // A node that an LLC sticks out of is not a level.
        let mut widest = 0;
        levels.retain(|level| {
            let wider = level.len() > widest;
            widest = widest.max(level.len());
            wider
        });
        let found = levels.into_iter().find(|level| self.kinds(level) == kinds);
        found.filter(|_| kinds > 1)
    }

    pub fn nr_cpus(&self) -> usize {
        self.core.len()
    }

    pub fn share_llc(&self, a: usize, b: usize) -> bool {
        a == b || self.llc[a].as_ref().is_some_and(|llc| llc.contains(&b))
    }

    /// Firmware's distance between the nodes of two CPUs.
    pub fn slit(&self, a: usize, b: usize) -> u32 {
        let node = |cpu: usize| self.machine.cpus[cpu].node as usize;
        self.machine.node_distance[node(a)][node(b)]
    }

    /// The CPUs of `a`'s node.
    pub fn node(&self, a: usize) -> Vec<usize> {
        let cpus = &self.machine.cpus;
        (0..self.nr_cpus()).filter(|&b| cpus[a].node == cpus[b].node).collect()
    }

    /// The CPUs within each distance of `a`, nearest first, its own node not among them.
    pub fn reach(&self, a: usize) -> Vec<Vec<usize>> {
        let mut limits: Vec<u32> = self.machine.node_distance.iter().flatten().copied().collect();
        limits.sort_unstable();
        limits.dedup();
        let within = |limit| (0..self.nr_cpus()).filter(|&b| self.slit(a, b) <= limit).collect();
        limits.into_iter().filter(|&d| d > 10).map(within).collect()
    }
}
