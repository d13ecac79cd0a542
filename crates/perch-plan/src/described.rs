// SPDX-License-Identifier: GPL-2.0-or-later
//! Compares a machine that a user describes with the one that runs.
//!
//! The firmware's word on capacities, caches and clusters may be wrong or missing, and a guest is
//! told nothing of its host: there the description is believed. CPUs, cores and nodes are the
//! kernel's own, which keeps its idle masks and memory by them: there it must agree.

use perch_machine::{Cpu, Host, Machine, cpulist};

/// The number of a part of the machine that a CPU belongs to.
type Part = fn(&Cpu) -> u32;

/// Where a description and the running machine differ, in words that follow on the description's
/// name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// They have not as many CPUs.
    #[error(
        "it has {there} CPUs, and this machine {here}; describe all of them (perch machine detect \
         writes a file to begin with)"
    )]
    Count {
        /// CPUs that are described.
        there: usize,
        /// CPUs of this machine.
        here: usize,
    },
    /// A CPU has not the same neighbours.
    #[error(
        "the {part} of CPU {cpu} has CPUs {}, and on this machine CPUs {}: cores and nodes must be \
         this machine's; capacities, caches and clusters are yours to say",
        cpulist::format(there),
        cpulist::format(here)
    )]
    Neighbours {
        /// The part of the machine that they share: `core` or `node`.
        part: &'static str,
        /// The CPU.
        cpu: usize,
        /// The CPUs of that part in the description, ascending.
        there: Vec<u32>,
        /// The CPUs of that part on this machine, ascending.
        here: Vec<u32>,
    },
}

/// Checks that `described` can be the running machine, as `found` in its /sys, and returns the CPUs of
/// it that are online. A description may have CPUs that are offline.
///
/// # Errors
/// The first [`Difference`].
pub fn check(described: &Machine, found: &Host) -> Result<Machine, Difference> {
    let numbers = &found.numbers;
    let there = described.cpus.len();
    let is_here = |cpu: &u32| {
        let lists = [numbers, &found.offline];
        lists.iter().any(|list| list.binary_search(cpu).is_ok())
    };
    let covers = numbers.last().is_some_and(|&last| (last as usize) < there);
    if !covers || !(0..there as u32).all(|cpu| is_here(&cpu)) {
        let here = numbers.len();
        return Err(Difference::Count { there, here });
    }
    let described = described.part(numbers);
    let parts: [(&'static str, Part); 2] = [("core", |cpu| cpu.core), ("node", |cpu| cpu.node)];
    for (part, of) in parts {
        for place in 0..numbers.len() {
            let there = mates(&described, place, numbers, of);
            let here = mates(&found.machine, place, numbers, of);
            if there != here {
                return Err(Difference::Neighbours {
                    part,
                    cpu: numbers[place] as usize,
                    there,
                    here,
                });
            }
        }
    }
    Ok(described)
}

/// The kernel's numbers of the CPUs in the same part of the machine as the CPU at this place, ascending.
fn mates(machine: &Machine, place: usize, numbers: &[u32], part: Part) -> Vec<u32> {
    let own = part(&machine.cpus[place]);
    let cpus = numbers.iter().zip(&machine.cpus);
    cpus.filter(|(_, cpu)| part(cpu) == own).map(|(number, _)| *number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str) -> Host {
        let machine = Machine::from_toml_str(&format!("name = \"m\"\n{text}"), "m").unwrap();
        Host::of(machine)
    }

    #[test]
    fn capacities_and_caches_are_believed() {
        let found = machine("[topology]\ncores_per_llc = 6\n");
        let juno = perch_machine::resolve("juno").unwrap();
        assert_eq!(check(&juno, &found), Ok(juno.clone()));
        assert_eq!(check(&found.machine, &found).as_ref(), Ok(&found.machine));
    }

    #[test]
    fn cpus_cores_and_nodes_are_not() {
        let juno = perch_machine::resolve("juno").unwrap();
        let refusal = |text: &str| check(&juno, &machine(text)).unwrap_err().to_string();
        let count = refusal("[topology]\ncores_per_llc = 8\n");
        assert!(count.starts_with("it has 6 CPUs, and this machine 8;"), "{count}");
        let core = refusal("[topology]\ncores_per_llc = 3\nthreads_per_core = 2\n");
        assert!(core.starts_with("the core of CPU 0 has CPUs 0, and on this machine"), "{core}");
        let node = refusal("[topology]\npackages = 2\ncores_per_llc = 3\n");
        assert!(
            node.starts_with("the node of CPU 0 has CPUs 0-5, and on this machine CPUs 0-2:"),
            "{node}"
        );
    }
}
