// SPDX-License-Identifier: GPL-2.0-or-later
//! Compares a machine that a user describes with the one that runs.
//!
//! The firmware's word on capacities, caches and clusters may be wrong or missing, and a guest is
//! told nothing of its host: there the description is believed. CPUs, cores and nodes are the
//! kernel's own, which keeps its idle masks and memory by them: there it must agree.

use perch_machine::{Cpu, Machine, cpulist};

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

/// Checks that `described` can be the running machine, as `found` in its /sys.
///
/// # Errors
/// The first [`Difference`].
pub fn check(described: &Machine, found: &Machine) -> Result<(), Difference> {
    let (there, here) = (described.cpus.len(), found.cpus.len());
    if there != here {
        return Err(Difference::Count { there, here });
    }
    let parts: [(&'static str, Part); 2] = [("core", |cpu| cpu.core), ("node", |cpu| cpu.node)];
    for (part, of) in parts {
        for number in 0..here {
            let there = mates(described, number, of);
            let here = mates(found, number, of);
            if there != here {
                return Err(Difference::Neighbours {
                    part,
                    cpu: number,
                    there,
                    here,
                });
            }
        }
    }
    Ok(())
}

/// The CPUs in the same part of the machine as CPU `number`, ascending.
fn mates(machine: &Machine, number: usize, part: Part) -> Vec<u32> {
    let own = part(&machine.cpus[number]);
    let cpus = (0u32..).zip(&machine.cpus);
    cpus.filter(|(_, cpu)| part(cpu) == own)
        .map(|(number, _)| number)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(text: &str) -> Machine {
        Machine::from_toml_str(&format!("name = \"m\"\n{text}"), "m").unwrap()
    }

    #[test]
    fn capacities_and_caches_are_believed() {
        let found = machine("[topology]\ncores_per_llc = 6\n");
        let juno = perch_machine::resolve("juno").unwrap();
        assert_eq!(check(&juno, &found), Ok(()));
        assert_eq!(check(&found, &found), Ok(()));
    }

    #[test]
    fn cpus_cores_and_nodes_are_not() {
        let juno = perch_machine::resolve("juno").unwrap();
        let refusal = |text: &str| check(&juno, &machine(text)).unwrap_err().to_string();
        let count = refusal("[topology]\ncores_per_llc = 8\n");
        assert!(
            count.starts_with("it has 6 CPUs, and this machine 8;"),
            "{count}"
        );
        let core = refusal("[topology]\ncores_per_llc = 3\nthreads_per_core = 2\n");
        assert!(
            core.starts_with("the core of CPU 0 has CPUs 0, and on this machine"),
            "{core}"
        );
        let node = refusal("[topology]\npackages = 2\ncores_per_llc = 3\n");
        assert!(
            node.starts_with("the node of CPU 0 has CPUs 0-5, and on this machine CPUs 0-2:"),
            "{node}"
        );
    }
}
