// SPDX-License-Identifier: GPL-2.0-or-later
//! The cgroups of this machine and what they do, as the kernel counts it under any scheduler.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use perch_file::Kind;

use crate::cgroup;

/// What a cgroup did in an interval, the groups below it included.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Its path from the root, without the first slash.
    pub path: String,
    /// The CPUs that its tasks used, in the mean.
    pub cpus: f64,
    /// The part of the interval in which a task of it waited for a CPU; none on kernels that do not
    /// count pressure.
    pub waited: Option<f64>,
    /// Its `cpu.weight`; none without a cpu controller.
    pub weight: Option<u64>,
    /// Its `cpu.max`, CPUs; none without a limit.
    pub limit: Option<f64>,
}

/// What was read of a cgroup.
struct Sample {
    used_us: f64,
    waited_us: Option<f64>,
}

/// Reads the cgroups now and then.
pub struct Groups {
    root: PathBuf,
    at: Duration,
    samples: BTreeMap<String, Sample>,
}

/// As many groups as the tallest screens show.
const MOST: usize = 100;

impl Groups {
    /// Those of a hierarchy; of none where the folder is of the first version or is not there.
    pub fn new(root: &Path) -> Groups {
        Groups { root: root.to_path_buf(), at: Duration::ZERO, samples: BTreeMap::new() }
    }

    /// The groups that used a CPU since the last look, the busiest first; none at the first look. `at` is
    /// the time since a moment of the caller's choice.
    pub fn look(&mut self, at: Duration) -> Vec<Group> {
        let mut samples = BTreeMap::new();
        // A folder of the first version may hold one of the second.
        if self.root.join("cgroup.controllers").exists() {
            self.walk(&mut String::new(), &mut samples);
        }
        let elapsed_us = at.saturating_sub(self.at).as_secs_f64() * 1e6;
        let before = std::mem::replace(&mut self.samples, samples);
        self.at = at;
        if elapsed_us <= 0.0 {
            return Vec::new();
        }
        let used = self.samples.iter().filter_map(|(path, now)| {
            let before = before.get(path)?;
            // Another group may have the name of one that is gone.
            let cpus = (now.used_us - before.used_us) / elapsed_us;
            let waited = now.waited_us.zip(before.waited_us);
            (cpus > 0.0).then(|| Group {
                path: path.clone(),
                cpus,
                waited: waited.map(|(now, before)| ((now - before) / elapsed_us).clamp(0.0, 1.0)),
                ..Group::default()
            })
        });
        let mut used: Vec<Group> = used.collect();
        used.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then_with(|| a.path.cmp(&b.path)));
        used.truncate(MOST);
        for group in &mut used {
            let weight = self.text(&group.path, "cpu.weight");
            group.weight = weight.and_then(|text| text.trim().parse().ok());
            let max = self.text(&group.path, "cpu.max");
            group.limit = max.and_then(|text| cgroup::limit(&text));
        }
        used
    }

    /// Reads all groups below `path`. A group that goes meanwhile is none.
    fn walk(&self, path: &mut String, samples: &mut BTreeMap<String, Sample>) {
        let Ok(entries) = fs::read_dir(self.root.join(&path)) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            // perch does not name what is not UTF-8.
            let Some(name) = name.to_str() else { continue };
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let length = path.len();
            if length > 0 {
                path.push('/');
            }
            path.push_str(name);
            let used_us = self.text(path, "cpu.stat");
            if let Some(used_us) = used_us.and_then(|text| cgroup::usage_us(&text)) {
                let pressure = self.text(path, "cpu.pressure");
                let waited_us = pressure.and_then(|text| cgroup::some_us(&text));
                samples.insert(path.clone(), Sample { used_us, waited_us });
                self.walk(path, samples);
            }
            path.truncate(length);
        }
    }

    fn text(&self, path: &str, file: &str) -> Option<String> {
        perch_file::text(&self.root.join(path).join(file), Kind::SYSFS).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a group's files.
    fn write(root: &Path, path: &str, used_us: u64, waited_us: u64) {
        let folder = root.join(path);
        fs::create_dir_all(&folder).unwrap();
        let stat = format!("usage_usec {used_us}\nuser_usec 0\n");
        fs::write(folder.join("cpu.stat"), stat).unwrap();
        let pressure = format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={waited_us}\n");
        fs::write(folder.join("cpu.pressure"), pressure).unwrap();
    }

    #[test]
    fn groups_are_those_that_used_a_cpu_since_the_last_look() {
        let root = std::env::temp_dir().join(format!("perch-top-groups-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let mut groups = Groups::new(&root);
        // No such folder.
        assert_eq!(groups.look(Duration::from_secs(1)), []);
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join("cgroup.controllers"), "cpu\n").unwrap();
        write(&root, "web", 5_000_000, 0);
        write(&root, "web/front", 1_000_000, 100_000);
        write(&root, "idle", 7, 0);
        fs::create_dir_all(root.join("no-group/web")).unwrap();
        assert_eq!(groups.look(Duration::from_secs(2)), []);

        write(&root, "web", 8_000_000, 0);
        write(&root, "web/front", 2_000_000, 600_000);
        write(&root, "new", 9_000_000, 0);
        fs::write(root.join("web/cpu.weight"), "250\n").unwrap();
        fs::write(root.join("web/cpu.max"), "150000 100000\n").unwrap();
        fs::write(root.join("web/front/cpu.max"), "max 100000\n").unwrap();
        let web = Group {
            path: "web".to_string(),
            cpus: 1.5,
            waited: Some(0.0),
            weight: Some(250),
            limit: Some(1.5),
        };
        let front = Group {
            path: "web/front".to_string(),
            cpus: 0.5,
            waited: Some(0.25),
            weight: None,
            limit: None,
        };
        assert_eq!(groups.look(Duration::from_secs(4)), [web, front]);
        // Nothing happened since, and the kernel may have stopped to count pressure.
        fs::remove_file(root.join("new/cpu.pressure")).unwrap();
        assert_eq!(groups.look(Duration::from_secs(5)), []);
        write(&root, "new", 9_100_000, 0);
        assert_eq!(groups.look(Duration::from_secs(6))[0].waited, None);
        // A clock that stands makes no rates.
        write(&root, "new", 9_200_000, 0);
        assert_eq!(groups.look(Duration::from_secs(6)), []);
        // The first version's folders have no such file.
        fs::remove_file(root.join("cgroup.controllers")).unwrap();
        write(&root, "new", 9_300_000, 0);
        assert_eq!(groups.look(Duration::from_secs(7)), []);
        fs::remove_dir_all(&root).unwrap();
    }
}
