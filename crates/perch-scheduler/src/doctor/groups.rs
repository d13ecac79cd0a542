// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks for cgroups that ask the kernel's scheduler for what perch does not do.

use std::collections::VecDeque;

use crate::tree::{Tree, UnseenError};

/// Folders that are looked at. A host with more has thousands of containers, and a look at each file
/// would take minutes.
const MOST_GROUPS: usize = 50_000;

/// Below this folder the kernel shows its cgroups.
const ROOT: &str = "sys/fs/cgroup";

/// The cgroups of a machine that perch would treat otherwise than the kernel's scheduler does. Paths
/// begin with `/`, as in /proc/PID/cgroup.
#[derive(Debug, Default, PartialEq)]
pub struct Groups {
    /// Cgroups that were looked at.
    pub looked: usize,
    /// True if there are more than were looked at.
    pub cut: bool,
    /// Cgroups whose files could not all be read.
    pub unread: Vec<String>,
    /// Groups with a limit of CPU time (`cpu.max`), and what they may use: per cents of one CPU.
    pub limited: Vec<(String, f64)>,
    /// Groups of SCHED_IDLE (`cpu.idle`).
    pub idle: Vec<String>,
    /// Groups whose CPUs are a partition that the kernel does not balance (`cpuset.cpus.partition`).
    pub isolated: Vec<String>,
}

/// Looks at each cgroup that has a cpu controller, of the second version or the first.
///
/// # Errors
/// When the folder of all cgroups cannot be listed.
pub(super) fn look(tree: &Tree) -> Result<Groups, UnseenError> {
    let mut groups = Groups::default();
    let mut folders: VecDeque<String> = roots(tree)?.into();
    while let Some(folder) = folders.pop_front() {
        if groups.looked == MOST_GROUPS {
            groups.cut = true;
            break;
        }
        groups.looked += 1;
        let Ok(names) = tree.names(&folder) else {
            groups.unread.push(short(&folder));
            continue;
        };
        if !groups.look_at(tree, &folder, &names) {
            groups.unread.push(short(&folder));
        }
        for name in names {
            let below = format!("{folder}/{name}");
            // No link, which may lead back.
            let kind = std::fs::symlink_metadata(tree.path(&below)).map(|found| found.is_dir());
            if kind.unwrap_or(false) {
                folders.push_back(below);
            }
        }
    }
    Ok(groups)
}

/// The folders in which a hierarchy with cpu controllers begins: the mount of the second version, or
/// of the first a folder for each set of controllers.
fn roots(tree: &Tree) -> Result<Vec<String>, UnseenError> {
    let is_root = |folder: &str| {
        let has = |file: &str| tree.path(&format!("{folder}/{file}")).exists();
        has("cgroup.controllers") || has("cpu.shares")
    };
    if is_root(ROOT) {
        return Ok(vec![ROOT.to_string()]);
    }
    let mut folders = Vec::new();
    for name in tree.names(ROOT)? {
        let folder = format!("{ROOT}/{name}");
        let found = std::fs::symlink_metadata(tree.path(&folder));
        // `cpu` is often a link to `cpu,cpuacct`.
        if found.is_ok_and(|found| found.is_dir()) && is_root(&folder) {
            folders.push(folder);
        }
    }
    Ok(folders)
}

/// A cgroup's path as the kernel writes it.
fn short(folder: &str) -> String {
    match folder.strip_prefix(ROOT) {
        None | Some("") => "/".to_string(),
        Some(path) => path.to_string(),
    }
}

impl Groups {
    /// Looks at a group's files; false if one of them cannot be read.
    fn look_at(&mut self, tree: &Tree, folder: &str, names: &[String]) -> bool {
        let mut all = true;
        let mut read = |file: &str| {
            if names.binary_search_by(|name| name.as_str().cmp(file)).is_err() {
                return None;
            }
            let text = tree.text(&format!("{folder}/{file}"));
            all &= text.is_ok();
            text.ok().flatten()
        };
        let max = read("cpu.max");
        let quota = read("cpu.cfs_quota_us");
        let period = quota.as_ref().and_then(|_| read("cpu.cfs_period_us"));
        let limit = match (max, quota, period) {
            (Some(max), ..) => {
                max.split_once(' ').and_then(|(quota, period)| percent(quota, period))
            }
            (None, Some(quota), Some(period)) => percent(&quota, &period),
            _ => None,
        };
        let idle = read("cpu.idle").is_some_and(|text| text == "1");
        let partition = read("cpuset.cpus.partition");
        let path = || short(folder);
        if let Some(percent) = limit {
            self.limited.push((path(), percent));
        }
        if idle {
            self.idle.push(path());
        }
        // "isolated invalid (why)" is one that is not in force.
        if partition.is_some_and(|text| text == "isolated") {
            self.isolated.push(path());
        }
        all
    }
}

/// Per cents of one CPU; none where there is no limit (`max`, or -1 in the first version).
fn percent(quota: &str, period: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    Some(100.0 * number(quota)? as f64 / number(period)? as f64)
}
