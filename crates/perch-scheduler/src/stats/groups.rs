// SPDX-License-Identifier: GPL-2.0-or-later
//! The waits of cgroups, as reports have them: by the cgroup's path.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirEntryExt;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Waits;
use crate::counters::ROOT_GROUP;

/// The waits for a CPU of a cgroup's tasks that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupWaits {
    /// Those in which `cpu.max` did not hold the task back.
    #[serde(flatten)]
    pub waits: Waits,
    /// Those in which it did.
    pub limited: u64,
    /// Their sum, nanoseconds.
    pub limited_ns: u64,
}

impl GroupWaits {
    /// Those that are not among `earlier` of the same scheduler.
    #[must_use]
    pub fn since(&self, earlier: &GroupWaits) -> GroupWaits {
        GroupWaits {
            waits: self.waits.since(&earlier.waits),
            limited: self.limited.saturating_sub(earlier.limited),
            limited_ns: self.limited_ns.saturating_sub(earlier.limited_ns),
        }
    }

    /// Adds those of another cgroup.
    pub fn add(&mut self, other: &GroupWaits) {
        self.waits.add(&other.waits);
        self.limited += other.limited;
        self.limited_ns += other.limited_ns;
    }
}

/// The paths of cgroups by their ids, which are the inodes of their folders.
#[derive(Debug)]
pub(super) struct Paths {
    /// The folder of the root group, of the second hierarchy.
    root: PathBuf,
    /// None for a cgroup that has no folder there. The kernel gives no id twice.
    known: BTreeMap<u64, Option<String>>,
}

impl Default for Paths {
    fn default() -> Paths {
        Paths::new("/sys/fs/cgroup".as_ref())
    }
}

impl Paths {
    fn new(root: &Path) -> Paths {
        Paths { root: root.to_path_buf(), known: BTreeMap::new() }
    }

    /// The waits by path. A cgroup that nobody can name, as it is gone or in another namespace, is left out.
    pub fn name(&mut self, counted: &BTreeMap<u64, GroupWaits>) -> BTreeMap<String, GroupWaits> {
        self.known.retain(|id, _| counted.contains_key(id));
        if counted.keys().any(|id| !self.known.contains_key(id)) {
            self.known = counted.keys().map(|&id| (id, None)).collect();
            self.note(ROOT_GROUP, "/");
            self.walk(&mut String::new());
        }
        let named = counted.iter().filter_map(|(id, waits)| {
            let path = self.known.get(id)?.clone()?;
            Some((path, waits.clone()))
        });
        named.collect()
    }

    #[cfg(test)]
    pub fn set(&mut self, path: &str, id: u64) {
        self.known.insert(id, Some(path.to_string()));
    }

    fn note(&mut self, id: u64, path: &str) {
        if let Some(known) = self.known.get_mut(&id) {
            *known = Some(path.to_string());
        }
    }

    /// Notes all cgroups below `path`. One that goes meanwhile is none.
    fn walk(&mut self, path: &mut String) {
        let folder = self.root.join(path.trim_start_matches('/'));
        let Ok(entries) = fs::read_dir(folder) else {
            return;
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let length = path.len();
            path.push('/');
            path.push_str(&entry.file_name().to_string_lossy());
            self.note(entry.ino(), path);
            self.walk(path);
            path.truncate(length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn waits(sum_ns: u64) -> GroupWaits {
        let waits = Waits { count: 1, sum_ns, buckets: vec![0, 0, 1] };
        GroupWaits { waits, ..GroupWaits::default() }
    }

    #[test]
    fn cgroups_are_named_by_their_folders() {
        let root = tempfile::tempdir().unwrap();
        let make = |path: &str| {
            let folder = root.path().join(path);
            fs::create_dir_all(&folder).unwrap();
            fs::metadata(folder).unwrap().ino()
        };
        let inner = make("a/b");
        let outer = make("a");
        let gone = make("c");
        fs::remove_dir(root.path().join("c")).unwrap();
        let mut paths = Paths::new(root.path());
        let mut counted =
            BTreeMap::from([(ROOT_GROUP, waits(1)), (inner, waits(2)), (gone, waits(3))]);
        let named = paths.name(&counted);
        assert_eq!(named.keys().collect::<Vec<_>>(), ["/", "/a/b"]);
        assert_eq!(named["/a/b"].waits.sum_ns, 2);
        // One that comes later, while another is gone.
        counted.remove(&gone);
        counted.insert(outer, waits(4));
        let named = paths.name(&counted);
        assert_eq!(named.keys().collect::<Vec<_>>(), ["/", "/a", "/a/b"]);
        assert_eq!(paths.known.len(), 3);
        assert!(paths.name(&BTreeMap::new()).is_empty());
    }
}
