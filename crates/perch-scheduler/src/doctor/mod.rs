// SPDX-License-Identifier: GPL-2.0-or-later
//! What an operator wants to know of a machine before she loads perch: whether perch can run there,
//! what it would do, and what would no longer hold.
//!
//! This module looks and loads nothing; `perch doctor` puts it into words. Each look stands alone: one
//! that fails says why, and the others go on.

mod cpus;
mod functions;
mod groups;
mod load;
mod real_time;
#[cfg(test)]
mod tests;

use std::path::Path;

use perch_machine::MachineError;

pub use cpus::Cpus;
pub use functions::{Functions, Unlike};
pub use groups::Groups;
pub use load::Load;
pub use real_time::{RealTime, Task};

use crate::kernel::{Kernel, Purpose, UnableError};
use crate::tree::Tree;
pub use crate::tree::UnseenError;
use perch_plan::Abilities;
use perch_plan::settings::Settings;
use perch_plan::{IDLE, LIMITS};

/// The state of a machine, as far as this user can see it.
#[derive(Debug)]
pub struct Diagnosis {
    /// The kernel's version.
    pub version: String,
    /// Whether the kernel has the interface for schedulers.
    pub sched_ext: Result<(), UnableError>,
    /// Whether the kernel describes its types.
    pub btf: Result<(), UnableError>,
    /// Whether this process may load programs.
    pub rights: Rights,
    /// Whether no other scheduler is loaded.
    pub free: Result<(), UnableError>,
    /// What the kernel has of that which perch calls; none where it has no BTF.
    pub functions: Result<Option<Functions>, UnseenError>,
    /// What `perch run` would load here, or why it would find no machine.
    pub load: Result<Load, MachineError>,
    /// Bytes of memory that are free for programs; none where the kernel does not tell.
    pub available: Option<u64>,
    /// CPUs that are absent, and those that are apart from the others.
    pub cpus: Result<Cpus, UnseenError>,
    /// Cgroups that ask for what perch does not do.
    pub groups: Result<Groups, UnseenError>,
    /// Tasks of the classes above sched_ext.
    pub real_time: Result<RealTime, UnseenError>,
}

/// Whether a process may load programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// It may.
    Enough,
    /// It may not, and is not root's.
    User,
    /// It may not, though it is root's: a container withholds the capabilities.
    Withheld,
}

/// Looks at the machine whose /proc and /sys are below `root`, which is `/` but in tests.
pub fn diagnose(root: &Path, settings: &Settings) -> Diagnosis {
    let kernel = Kernel::new(root);
    let tree = Tree::new(root);
    let functions = functions::look(&tree);
    let abilities = match &functions {
        Ok(Some(found)) => found.abilities,
        _ => Abilities::default(),
    };
    Diagnosis {
        version: kernel.version(),
        sched_ext: kernel.check_sched_ext(),
        btf: kernel.check_btf(Purpose::Scheduling),
        rights: rights(&kernel, &tree),
        free: kernel.check_free(),
        functions,
        load: load::look(root, &kernel, settings, abilities),
        available: available(&tree),
        cpus: cpus::look(&tree),
        groups: groups::look(&tree),
        real_time: real_time::look(&tree),
    }
}

impl Diagnosis {
    /// Callbacks that perch would register and the kernel does not know, which refuses it then:
    /// those for task groups where the kernel lacks `CONFIG_EXT_GROUP_SCHED`. None where the machine
    /// or the kernel's types cannot be told.
    pub fn unknown_callbacks(&self) -> Vec<&str> {
        let (Ok(Some(functions)), Ok(load)) = (&self.functions, &self.load) else {
            return Vec::new();
        };
        let unknown = functions.callbacks.iter().map(String::as_str);
        unknown.filter(|name| !load.left_out.contains(name)).collect()
    }

    /// True if perch would enforce `cpu.max`: the kernel tells of it, and perch follows groups.
    pub fn enforces_limits(&self) -> bool {
        let told = matches!(&self.functions, Ok(Some(found)) if found.abilities.limits);
        told && self.is_told(LIMITS)
    }

    /// True if perch would treat the tasks of groups with `cpu.idle` as SCHED_IDLE: it follows groups.
    pub fn follows_idle_groups(&self) -> bool {
        self.is_told("cgroup_init")
    }

    /// True if perch would also notice that an administrator writes to `cpu.idle`.
    pub fn notices_idle_groups(&self) -> bool {
        let told = matches!(&self.functions, Ok(Some(found)) if found.abilities.idle_groups);
        told && self.is_told(IDLE)
    }

    fn is_told(&self, callback: &str) -> bool {
        matches!(&self.load, Ok(load) if !load.left_out.contains(&callback))
    }
}

fn rights(kernel: &Kernel, tree: &Tree) -> Rights {
    if kernel.check_rights(Purpose::Scheduling).is_ok() {
        return Rights::Enough;
    }
    let status = tree.text("proc/self/status").ok().flatten().unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // Real, effective, saved and of files.
    match line.and_then(|ids| ids.split_whitespace().nth(1)) {
        Some("0") => Rights::Withheld,
        _ => Rights::User,
    }
}

fn available(tree: &Tree) -> Option<u64> {
    let text = tree.text("proc/meminfo").ok().flatten()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}
