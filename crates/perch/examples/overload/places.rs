// SPDX-License-Identifier: GPL-2.0-or-later
//! The CPUs on which the threads run: this machine's, those that are farthest apart first.

use std::collections::BTreeMap;
use std::path::Path;

use perch_machine::{Host, Machine, cpulist};
use perch_policy::{Memory, OutOfMemory};

use super::memory::{Slabs, node_of};
use crate::Failure;

/// The machine, and the CPUs of it that this program may use.
pub struct Places {
    /// The machine as it is, or as `--nodes` divides it.
    pub machine: Machine,
    /// The name that its processor gives itself.
    pub name: String,
    /// Allowed CPUs: the first of each node, then of each last-level cache, then of each core.
    pub cpus: Vec<usize>,
    /// The number of nodes that it really has.
    pub real_nodes: usize,
    /// True when `--nodes` divides the machine.
    pub split: bool,
}

impl Places {
    /// This machine.
    ///
    /// # Errors
    /// When the machine cannot be detected, or has fewer cores than `--nodes` asks nodes for.
    pub fn here(nodes: Option<usize>) -> Result<Places, Failure> {
        // Threads are bound to CPUs by the kernel's numbers.
        let mut machine = Host::detect(Path::new("/"))?.with_kernel_numbers()?;
        let words = machine.description.split_once(", ");
        let name = words.map_or(machine.name.as_str(), |(name, _)| name);
        let (name, real_nodes) = (name.to_string(), machine.nodes());
        if let Some(nodes) = nodes {
            let cores = machine.cores();
            if nodes == 0 || nodes > cores {
                return Err(format!(
                    "--nodes {nodes}: expected 1 to {cores}, the cores of this machine"
                )
                .into());
            }
            split(&mut machine, nodes);
        }
        let allowed =
            allowed().map_err(|error| format!("which CPUs this program may use: {error}"))?;
        let cpus = spread(&machine, &allowed);
        if cpus.is_empty() {
            return Err("none of the machine's CPUs may be used here".into());
        }
        Ok(Places {
            machine,
            name,
            cpus,
            real_nodes,
            split: nodes.is_some(),
        })
    }

    /// The numbers of threads to measure with, and those of the `wanted` that exceed the number of
    /// CPUs.
    pub fn ladder(&self, wanted: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let most = self.cpus.len();
        if wanted.is_empty() {
            let doubled = std::iter::successors(Some(1), |threads| Some(threads * 2));
            let below = doubled.take_while(|&threads| threads < most);
            return (below.chain([most]).collect(), Vec::new());
        }
        wanted.iter().partition(|&&threads| threads <= most)
    }

    /// Memory for counters, each node's from that node.
    pub fn slabs(&self) -> Slabs {
        // No thread runs on a node without an allowed CPU, so the node's counter may lie anywhere.
        let any = self.cpus[0];
        if self.split {
            return Slabs::new(vec![any; self.machine.nodes()]);
        }
        let of = |node| move |cpu: &&usize| self.machine.cpus[**cpu].node as usize == node;
        let nodes = 0..self.machine.nodes();
        Slabs::new(
            nodes
                .map(|node| self.cpus.iter().find(of(node)).copied().unwrap_or(any))
                .collect(),
        )
    }

    /// The nodes whose memory lies on another node, as the kernel tells.
    pub fn strays(&self) -> Result<Vec<usize>, OutOfMemory> {
        let mut slabs = self.slabs();
        let mut strays = Vec::new();
        for node in 0..self.machine.nodes() {
            let block = slabs.alloc(8, 8, node);
            if block.is_null() {
                return Err(OutOfMemory);
            }
            let cpus = node_of(block).and_then(cpus_of_node);
            let own = |cpu: &u32| self.machine.cpus[*cpu as usize].node as usize == node;
            if !cpus.is_some_and(|cpus| cpus.iter().any(own)) {
                strays.push(node);
            }
        }
        Ok(strays)
    }

    /// Notes on the machine for the reader of the figures.
    pub fn notes(&self, too_many: &[usize]) -> Vec<String> {
        let mut notes = Vec::new();
        let nodes = self.machine.nodes();
        if self.split {
            notes.push(format!(
                "taken for {nodes} nodes (--nodes), but it has {}: a line comes from as far as it \
                 comes here, and unpadded counters lie side by side as in one node's memory",
                self.real_nodes
            ));
        } else if nodes == 1 {
            notes.push(
                "one node: the answer is about lines only, and one a node is one for all \
                 (--nodes N takes the CPUs for N nodes)"
                    .to_string(),
            );
        }
        if !too_many.is_empty() {
            let names: Vec<String> = too_many.iter().map(usize::to_string).collect();
            notes.push(format!(
                "{} CPUs may be used here: no rows for {} threads, as each needs a CPU of its own",
                self.cpus.len(),
                names.join(", ")
            ));
        }
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        if info.contains(" hypervisor") {
            notes.push(
                "a virtual machine: how far apart its CPUs are may be otherwise than it is told"
                    .to_string(),
            );
        }
        notes
    }
}

/// The CPUs of the node with this number of the kernel's.
fn cpus_of_node(node: usize) -> Option<Vec<u32>> {
    let file = format!("/sys/devices/system/node/node{node}/cpulist");
    cpulist::parse(std::fs::read_to_string(file).ok()?.trim()).ok()
}

/// Divides the cores, in order, into so many nodes; a last-level cache whose cores come into
/// several nodes becomes several.
fn split(machine: &mut Machine, nodes: usize) {
    let cores = machine.cores();
    let mut llcs = BTreeMap::new();
    for cpu in &mut machine.cpus {
        cpu.node = (cpu.core as usize * nodes / cores) as u32;
        cpu.package = cpu.node;
        cpu.cluster = None;
        let next = llcs.len() as u32;
        cpu.llc = *llcs.entry((cpu.llc, cpu.node)).or_insert(next);
        cpu.declared_llc = cpu.llc;
    }
    let distance = |a, b| if a == b { 10 } else { 20 };
    machine.node_distance = (0..nodes)
        .map(|a| (0..nodes).map(|b| distance(a, b)).collect())
        .collect();
}

/// The allowed CPUs of the machine: one of each node in turn, on the node of each last-level cache
/// in turn, there of each core in turn.
fn spread(machine: &Machine, allowed: &[usize]) -> Vec<usize> {
    // For each CPU: the number of CPUs before it in its core, of cores before its own in its cache,
    // and of caches before its own in its node.
    let mut before = BTreeMap::new();
    let mut turn = |kind: u8, group: u32, member: u32| {
        let members: &mut Vec<u32> = before.entry((kind, group)).or_default();
        let at = members.iter().position(|&known| known == member);
        at.unwrap_or_else(|| {
            members.push(member);
            members.len() - 1
        })
    };
    let mut order: Vec<_> = allowed
        .iter()
        .filter_map(|&number| Some((number, machine.cpus.get(number)?)))
        .map(|(number, cpu)| {
            let thread = turn(0, cpu.core, number as u32);
            let core = turn(1, cpu.declared_llc, cpu.core);
            let llc = turn(2, cpu.node, cpu.declared_llc);
            ((thread, core, llc, cpu.node), number)
        })
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, number)| number).collect()
}

/// Words of a CPU mask: enough for every machine.
const WORDS: usize = perch_machine::MAX_CPUS / 64;

/// The CPUs that this thread may use.
pub fn allowed() -> std::io::Result<Vec<usize>> {
    let mut mask = [0u64; WORDS];
    // SAFETY: the mask is that long.
    let result =
        unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if result != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let is = |cpu: &usize| mask[cpu / 64] >> (cpu % 64) & 1 != 0;
    Ok((0..WORDS * 64).filter(is).collect())
}

/// Keeps this thread on a CPU from now on.
///
/// # Errors
/// When this process may not use the CPU.
pub fn pin(cpu: usize) -> Result<(), Failure> {
    let mut mask = [0u64; WORDS];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the mask is that long.
    let result = unsafe { libc::sched_setaffinity(0, size_of_val(&mask), mask.as_ptr().cast()) };
    match result {
        0 => Ok(()),
        _ => Err(format!(
            "cannot stay on CPU {cpu}: {}",
            std::io::Error::last_os_error()
        )
        .into()),
    }
}

/// Runs `work` in a thread on that CPU.
///
/// # Errors
/// As [`pin`].
pub fn on_cpu(cpu: usize, work: impl FnOnce() + Send) -> Result<(), Failure> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| pin(cpu).map(|()| work()));
        thread.join().expect("what is done there does not panic")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(machine: Machine, allowed: &[usize]) -> Places {
        Places {
            name: String::new(),
            cpus: spread(&machine, allowed),
            real_nodes: machine.nodes(),
            split: false,
            machine,
        }
    }

    fn all(machine: &Machine) -> Vec<usize> {
        (0..machine.cpus.len()).collect()
    }

    #[test]
    fn as_few_threads_as_there_are_places_have_one_each() {
        for name in ["rt480", "epyc7543", "kunpeng920", "x5570", "juno"] {
            let machine = perch_machine::resolve(name).unwrap();
            let cpus = spread(&machine, &all(&machine));
            let different = |count: usize, of: &dyn Fn(usize) -> u32| {
                let seen: std::collections::BTreeSet<u32> =
                    cpus[..count].iter().map(|&cpu| of(cpu)).collect();
                seen.len()
            };
            let (nodes, cores) = (machine.nodes(), machine.cores());
            assert_eq!(different(nodes, &|cpu| machine.cpus[cpu].node), nodes);
            let llcs = machine.declared_llcs();
            let of = |cpu: usize| machine.cpus[cpu].declared_llc;
            assert_eq!(different(llcs, &of), llcs, "{name}");
            // SMT siblings come after every core has a thread.
            assert_eq!(different(cores, &|cpu| machine.cpus[cpu].core), cores);
            assert_eq!(cpus.len(), machine.cpus.len());
        }
    }

    #[test]
    fn only_allowed_cpus_are_used() {
        let machine = perch_machine::resolve("juno").unwrap();
        assert_eq!(spread(&machine, &[1, 3, 4000]).len(), 2);
    }

    #[test]
    fn the_ladder_doubles_up_to_all() {
        let machine = perch_machine::resolve("juno").unwrap();
        let six = places(machine.clone(), &all(&machine));
        assert_eq!(six.ladder(&[]), (vec![1, 2, 4, 6], vec![]));
        assert_eq!(six.ladder(&[3, 7, 6]), (vec![3, 6], vec![7]));
        assert!(
            six.notes(&[7])
                .iter()
                .any(|note| note.contains("for 7 threads"))
        );
        let one = places(machine, &[2]);
        assert_eq!(one.ladder(&[]), (vec![1], vec![]));
    }

    #[test]
    fn nodes_that_are_not_there_cut_caches_and_no_cores() {
        let mut machine = perch_machine::resolve("x5570").unwrap();
        let cores = machine.cores();
        split(&mut machine, cores);
        assert_eq!((machine.nodes(), machine.declared_llcs()), (cores, cores));
        let topology = perch_policy::Topology::new(&machine);
        assert_eq!(topology.nr_nodes(), cores);
        for a in &machine.cpus {
            for b in machine.cpus.iter().filter(|b| b.core == a.core) {
                assert_eq!((a.node, a.declared_llc), (b.node, b.declared_llc));
            }
        }
        let one = perch_machine::resolve("juno").unwrap();
        let notes = places(one.clone(), &all(&one)).notes(&[]);
        assert!(notes[0].contains("about lines only"), "{notes:?}");
    }

    #[test]
    fn a_thread_stays_where_it_is_put() {
        for cpu in allowed().unwrap() {
            on_cpu(cpu, || assert_eq!(allowed().unwrap(), [cpu])).unwrap();
        }
        assert!(pin(perch_machine::MAX_CPUS - 1).is_err());
    }
}
