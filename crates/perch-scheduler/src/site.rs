// SPDX-License-Identifier: GPL-2.0-or-later
//! The machine on which perch schedules: the CPUs that take part under the kernel's numbers, and those
//! that are apart.
//!
//! Two kinds of CPUs are apart. One that is offline is known by its number only. One that is isolated
//! (`isolcpus=`, or a partition of cpusets) runs tasks, and the kernel's scheduler has no domain there,
//! so that only tasks run there that were bound to it; perch leaves it out of its domains too.

use std::path::Path;
use std::sync::Arc;

use perch_machine::{CapacitySource, Host, Machine, MachineError, SplitError, cpulist};
use perch_policy::Topology;

use crate::tree::Tree;
use perch_plan::described;
use perch_plan::settings::SettingsError;

/// A machine, and the CPUs of it that take part.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Every CPU that is online, as it was found or described.
    pub whole: Machine,
    /// The CPUs that take part, as perch sees them.
    pub machine: Machine,
    /// Their numbers in the kernel, ascending.
    numbers: Vec<u32>,
    /// The highest number of a CPU that is online, plus one.
    nr_cpus: usize,
    /// CPUs that are offline below the highest one that is online, ascending.
    pub missing: Vec<u32>,
    /// CPUs that are online and isolated, ascending.
    pub isolated: Vec<u32>,
    /// Where the capacities come from.
    pub capacity_source: CapacitySource,
    /// What to know of that source, as in [`Host::capacity_notes`].
    pub capacity_notes: Vec<String>,
    /// As [`Host::ranking_note`].
    pub ranking_note: Option<String>,
}

impl Site {
    /// Looks at the machine below `root`.
    ///
    /// # Errors
    /// When /sys does not tell the machine.
    pub fn look(root: &Path) -> Result<Site, MachineError> {
        Ok(Site::of(root, Host::detect(root)?))
    }

    /// The machine below `root`, of which `host` was detected, as the user describes it: as much of it
    /// as is online.
    ///
    /// # Errors
    /// When `host` contradicts the description.
    pub fn as_described(
        root: &Path,
        mut host: Host,
        described: &Machine,
    ) -> Result<Site, SettingsError> {
        host.machine = described::check(described, &host).map_err(|source| {
            SettingsError::OtherMachine { name: described.name.clone(), source }
        })?;
        host.capacity_source = CapacitySource::Described;
        host.capacity_notes.clear();
        host.ranking_note = None;
        Ok(Site::of(root, host))
    }

    /// The machine below `root`, of which `host` was detected.
    pub fn of(root: &Path, host: Host) -> Site {
        let isolated = isolated(&Tree::new(root), &host.numbers);
        let whole = host.machine;
        let nr_cpus = host.numbers.last().map_or(0, |&last| last as usize + 1);
        let below = |cpu: &u32| (*cpu as usize) < nr_cpus;
        let missing = (0..).take_while(below);
        let missing = missing.filter(|cpu| host.numbers.binary_search(cpu).is_err());
        let missing = missing.collect();
        let mut numbers = host.numbers;
        let takes_part = |cpu: &u32| isolated.binary_search(cpu).is_err();
        let keep: Vec<u32> = (0..)
            .zip(&numbers)
            .filter(|(_, cpu)| takes_part(cpu))
            .map(|(place, _)| place)
            .collect();
        numbers.retain(takes_part);
        Site {
            machine: whole.part(&keep),
            whole,
            numbers,
            nr_cpus,
            missing,
            isolated,
            capacity_source: host.capacity_source,
            capacity_notes: host.capacity_notes,
            ranking_note: host.ranking_note,
        }
    }

    /// Splits each last-level cache.
    ///
    /// # Errors
    /// When a cache has fewer cores; the site stays as it is.
    pub fn split_llcs(&mut self, parts: u64) -> Result<(), SplitError> {
        self.machine = self.machine.split_llcs(parts as usize)?;
        Ok(())
    }

    /// The domains of the CPUs that take part.
    pub fn topology(&self) -> Arc<Topology> {
        Topology::numbered(&self.machine, &self.numbers, self.nr_cpus)
    }

    /// What an operator should know of the CPUs that are apart or differ.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.missing.is_empty() {
            notes.push(format!(
                "{}: perch puts no task there, and loads again when one comes",
                are(&self.missing, "offline")
            ));
        }
        if !self.isolated.is_empty() {
            notes.push(format!(
                "{}: perch puts no task there that is not there already",
                are(&self.isolated, "isolated")
            ));
        }
        if self.capacity_source.is_inferred() {
            notes.extend(self.capacity_notes.iter().cloned());
        }
        notes
    }
}

fn are(cpus: &[u32], what: &str) -> String {
    match cpus {
        [cpu] => format!("CPU {cpu} is {what}"),
        _ => format!("CPUs {} are {what}", cpulist::format(cpus)),
    }
}

/// Returns the CPUs of `online` that the kernel's scheduler does not balance. Where all of them are
/// isolated, or where it cannot be told, none is: perch then treats them alike.
pub(crate) fn isolated(tree: &Tree, online: &[u32]) -> Vec<u32> {
    // The first has those of `isolcpus=`, the second those of cgroup's partitions (6.7).
    let files = ["sys/devices/system/cpu/isolated", "sys/fs/cgroup/cpuset.cpus.isolated"];
    let lists = files.map(|file| tree.cpus(file).unwrap_or_default());
    let mut isolated: Vec<u32> = lists.into_iter().flatten().collect();
    isolated.sort_unstable();
    isolated.dedup();
    isolated.retain(|cpu| online.binary_search(cpu).is_ok());
    if isolated.len() == online.len() {
        isolated.clear();
    }
    isolated
}

#[cfg(test)]
mod tests {
    use std::fs;

    use perch_machine::cpulist;

    use super::*;
    use perch_plan::settings::Settings;

    /// Eight CPUs, two threads a core, of which these are online; with these other files.
    fn root(online: &[u32], files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let put = |file: &str, text: &str| {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        let cpu = "sys/devices/system/cpu";
        put(&format!("{cpu}/online"), &cpulist::format(online));
        put(&format!("{cpu}/present"), "0-7");
        for number in 0..8u32 {
            fs::create_dir_all(root.path().join(format!("{cpu}/cpu{number}"))).unwrap();
            if online.contains(&number) {
                let mut core = vec![number & !1, number | 1];
                core.retain(|cpu| online.contains(cpu));
                let file = format!("{cpu}/cpu{number}/topology/core_cpus_list");
                put(&file, &cpulist::format(&core));
            }
        }
        for (file, text) in files {
            put(file, text);
        }
        root
    }

    fn cores(site: &Site) -> Vec<Vec<usize>> {
        let topology = site.topology();
        let core = |cpu| topology.core_span(cpu).iter().collect();
        (0..topology.nr_cpus()).map(core).collect()
    }

    fn host_at(root: &tempfile::TempDir) -> Host {
        Host::detect(root.path()).unwrap()
    }

    #[test]
    fn a_missing_cpu_is_in_no_domain() {
        let root = root(&[0, 1, 2, 4, 5, 6], &[]);
        let site = Site::look(root.path()).unwrap();
        assert_eq!(site.missing, [3]);
        let topology = site.topology();
        assert_eq!(topology.nr_cpus(), 7);
        assert_eq!(
            cores(&site),
            [vec![0, 1], vec![0, 1], vec![2], vec![3], vec![4, 5], vec![4, 5], vec![6]]
        );
        assert_eq!((topology.llc(3), topology.domains(3).count()), (None, 0));
        let llc = topology.llc_span(topology.llc(0).unwrap());
        assert_eq!(llc.weight(), 6);
        assert!(topology.is_apart(3) && !topology.is_apart(2));
        assert_eq!(
            site.notes(),
            ["CPU 3 is offline: perch puts no task there, and loads again when one comes"]
        );
    }

    #[test]
    fn isolated_cpus_take_no_part_and_have_their_numbers() {
        let all: Vec<u32> = (0..8).collect();
        let root = root(
            &all,
            &[
                ("sys/devices/system/cpu/isolated", "6-7"),
                ("sys/fs/cgroup/cpuset.cpus.isolated", "0,7"),
            ],
        );
        let site = Site::look(root.path()).unwrap();
        assert_eq!((site.whole.cpus.len(), site.machine.cpus.len()), (8, 5));
        let topology = site.topology();
        // Those at the end have numbers too: tasks run there.
        assert_eq!(topology.nr_cpus(), 8);
        assert_eq!(topology.llc_span(0).iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        assert_eq!(cores(&site)[1], [1]);
        assert_eq!(
            site.notes(),
            ["CPUs 0,6-7 are isolated: perch puts no task there that is not there already"]
        );
    }

    #[test]
    fn a_machine_of_isolated_cpus_is_a_machine() {
        let files = [("sys/devices/system/cpu/isolated", "0-7")];
        let root = root(&[0, 1], &files);
        let site = Site::look(root.path()).unwrap();
        assert!(site.isolated.is_empty() && site.missing.is_empty());
        assert_eq!(site.topology().nr_cpus(), 2);
    }

    /// Two threads of a large core each, then two small cores.
    const HYBRID: &[(&str, &str)] =
        &[("sys/devices/cpu_core/cpus", "0-3"), ("sys/devices/cpu_atom/cpus", "4-7")];

    #[test]
    fn hybrid_capacities_reach_the_policy_and_the_operator() {
        let mut files: Vec<(String, &str)> = (0..8)
            .map(|cpu| {
                let file = format!("sys/devices/system/cpu/cpu{cpu}/acpi_cppc/highest_perf");
                (file, if cpu < 4 { "66" } else { "33" })
            })
            .collect();
        files.extend(HYBRID.iter().map(|(file, text)| (file.to_string(), *text)));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(file, text)| (&file[..], *text)).collect();
        let all: Vec<u32> = (0..8).collect();
        let root = root(&all, &files);
        let site = Site::look(root.path()).unwrap();
        let topology = site.topology();
        assert_eq!((topology.capacity(3), topology.capacity(4)), (1024, 512));
        let (modes, _) = Settings::default().modes_for(&topology);
        assert!(modes.to_string().contains("capacity=perch"), "{modes}");
        assert_eq!(
            site.notes(),
            [
                "capacities are the largest acpi_cppc/highest_perf of each kind of core: cpu_core 66, \
              cpu_atom 33"
            ]
        );
        // A file's capacities are its writer's.
        let text = "name = \"m\"\n[topology]\ncores_per_llc = 4\nthreads_per_core = 2\n";
        let described = Machine::from_toml_str(text, "m").unwrap();
        let site = Site::as_described(root.path(), host_at(&root), &described).unwrap();
        assert_eq!(site.topology().capacity(4), 1024);
        assert!(site.notes().is_empty());
    }

    #[test]
    fn a_description_may_have_cpus_that_are_offline() {
        let text = "name = \"m\"\n[topology]\nllcs_per_node = 2\ncores_per_llc = 2\n\
                    threads_per_core = 2\n";
        let described = Machine::from_toml_str(text, "m").unwrap();
        for online in [vec![0, 1, 2, 4, 5, 6, 7], vec![0, 1, 2, 3, 4, 5]] {
            let root = root(&online, &[]);
            let site = Site::as_described(root.path(), host_at(&root), &described).unwrap();
            let topology = site.topology();
            assert_eq!((site.machine.cpus.len(), topology.nr_llcs()), (online.len(), 2));
            assert_eq!(topology.llc(4), topology.llc(5));
            assert_ne!(topology.llc(2), topology.llc(4));
        }
        // Half of it is what the other half would be, but for its last CPU.
        let root = root(&[0, 1, 2, 3, 4], &[]);
        let short = described.part(&[0, 1, 2, 3]);
        let error = Site::as_described(root.path(), host_at(&root), &short).unwrap_err();
        assert!(error.to_string().contains("it has 4 CPUs, and this machine 5"), "{error}");
    }

    #[test]
    fn caches_are_split_among_the_cpus_that_take_part() {
        let all: Vec<u32> = (0..8).collect();
        let files = [("sys/devices/system/cpu/isolated", "0-1")];
        let root = root(&all, &files);
        let mut site = Site::look(root.path()).unwrap();
        let error = site.split_llcs(4).unwrap_err().to_string();
        assert!(error.ends_with("expected 1 to 3"), "{error}");
        site.split_llcs(3).unwrap();
        let topology = site.topology();
        let llc = |llc| topology.llc_span(llc).iter().collect::<Vec<_>>();
        assert_eq!([llc(0), llc(1), llc(2)], [[2, 3], [4, 5], [6, 7]]);
    }
}
