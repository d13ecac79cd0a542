// SPDX-License-Identifier: GPL-2.0-or-later
//! Sysfs trees for tests, written into memory where the system has a place in memory for files.

use perch_machine::{Machine, cpulist, detect};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory that is removed with its last user.
pub struct Tree(PathBuf);

impl Tree {
    pub fn new() -> Tree {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("perch-machine-{}-{unique}", std::process::id());
        // A tree has thousands of small files, which take half a minute on a busy disk and half a
        // second in memory.
        let memory = Path::new("/dev/shm");
        let path = match memory.is_dir() {
            true => memory.join(name),
            false => std::env::temp_dir().join(name),
        };
        fs::create_dir_all(&path).expect("a temporary directory can be made");
        Tree(path)
    }

    pub fn root(&self) -> &Path {
        &self.0
    }

    /// Writes `text` and a newline, as sysfs does, below `sys/devices/system`.
    pub fn write(&self, file: &str, text: impl std::fmt::Display) {
        self.write_at(&format!("sys/devices/system/{file}"), text);
    }

    /// Writes like [`Tree::write`], but below the root.
    pub fn write_at(&self, file: &str, text: impl std::fmt::Display) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().expect("a file has a directory")).expect("made");
        fs::write(path, format!("{text}\n")).expect("written");
    }

    /// Writes a file of each of these CPUs.
    pub fn cpus<T: std::fmt::Display>(
        &self,
        cpus: impl IntoIterator<Item = usize>,
        file: &str,
        text: impl Fn(usize) -> T,
    ) {
        cpus.into_iter().for_each(|cpu| self.write(&format!("cpu/cpu{cpu}/{file}"), text(cpu)));
    }

    /// Demands that the tree is refused with all of these words.
    #[track_caller]
    pub fn refused(&self, words: &[&str]) {
        let message = detect(self.root()).expect_err("the tree is wrong").to_string();
        for word in words {
            assert!(message.contains(word), "no `{word}` in {message}");
        }
    }

    pub fn remove(&self, file: &str) {
        let path = self.0.join("sys/devices/system").join(file);
        fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).expect("removed");
    }

    /// Returns the tree that a kernel would show on `machine`.
    pub fn of(machine: &Machine) -> Tree {
        let tree = Tree::new();
        let list = |same: &dyn Fn(usize) -> bool| {
            let cpus = (0..machine.cpus.len()).filter(|&cpu| same(cpu));
            cpulist::format(&cpus.map(|cpu| cpu as u32).collect::<Vec<_>>())
        };
        let all = list(&|_| true);
        tree.write("cpu/online", &all);
        tree.write("cpu/present", &all);
        let of = |cpu: usize| &machine.cpus[cpu];
        for (number, cpu) in machine.cpus.iter().enumerate() {
            let core = list(&|other| of(other).core == cpu.core);
            let llc = list(&|other| of(other).llc == cpu.llc);
            let file = |name: &str| format!("cpu/cpu{number}/{name}");
            tree.write(&file("topology/physical_package_id"), cpu.package);
            tree.write(&file("topology/core_cpus_list"), &core);
            let (id, sharers) = match cpu.cluster {
                Some(id) => (id as i64, list(&|other| of(other).cluster == cpu.cluster)),
                None => (-1, core.clone()),
            };
            tree.write(&file("topology/cluster_id"), id);
            tree.write(&file("topology/cluster_cpus_list"), sharers);
            tree.write(&file("cpu_capacity"), cpu.capacity);
            for (index, level, size, sharers) in
                [(0, 1, "32K", &core), (2, 2, "1024K", &core), (3, 3, "32768K", &llc)]
            {
                let file = |name: &str| format!("cpu/cpu{number}/cache/index{index}/{name}");
                tree.write(&file("level"), level);
                tree.write(&file("type"), if level == 1 { "Data" } else { "Unified" });
                tree.write(&file("size"), size);
                tree.write(&file("shared_cpu_list"), sharers);
                tree.write(&file("coherency_line_size"), 64);
            }
        }
        for (node, row) in machine.node_distance.iter().enumerate() {
            let cpus = list(&|cpu| of(cpu).node as usize == node);
            let row: Vec<String> = row.iter().map(u32::to_string).collect();
            tree.write(&format!("node/node{node}/cpulist"), cpus);
            tree.write(&format!("node/node{node}/distance"), row.join(" "));
        }
        tree
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Returns `machine` with what a survey can know: without phantom LLCs, and without clusters that
/// are a core or an LLC.
pub fn surveyed(machine: &Machine) -> Machine {
    let mut seen = machine.clone();
    let cpus = &machine.cpus;
    let dense = |keys: Vec<Option<(u32, u32)>>| -> Vec<Option<u32>> {
        let mut known = Vec::new();
        let index = |key: Option<(u32, u32)>| {
            let key = key?;
            let at = known.iter().position(|k| *k == key).unwrap_or_else(|| {
                known.push(key);
                known.len() - 1
            });
            Some(at as u32)
        };
        keys.into_iter().map(index).collect()
    };
    let real = |cluster: u32| {
        let members = || cpus.iter().filter(move |cpu| cpu.cluster == Some(cluster));
        let first = members().next().expect("a cluster has CPUs");
        // The scheduler's LLCs lie inside a node.
        let shared = cpus.iter().filter(|cpu| (cpu.llc, cpu.node) == (first.llc, first.node));
        let llc = shared.count();
        members().any(|cpu| cpu.core != first.core) && members().count() < llc
    };
    let clusters = cpus.iter().map(|cpu| cpu.cluster.filter(|&c| real(c)).map(|c| (c, 0)));
    let clusters = dense(clusters.collect());
    let declared = dense(cpus.iter().map(|cpu| Some((cpu.llc, cpu.node))).collect());
    for (cpu, (cluster, declared)) in seen.cpus.iter_mut().zip(clusters.into_iter().zip(declared)) {
        cpu.cluster = cluster;
        cpu.declared_llc = declared.expect("every CPU has one");
    }
    seen
}
