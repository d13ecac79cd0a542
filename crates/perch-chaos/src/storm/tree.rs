// SPDX-License-Identifier: GPL-2.0-or-later
//! The cgroups of a round, below one of their own. Several storms may change them at the same time.

use std::fs;
use std::path::{Path, PathBuf};

use perch_engine::Random;

const ROOT: &str = "/sys/fs/cgroup";
const OURS: &str = "/sys/fs/cgroup/chaos";
/// Names of groups at each level, and the number of levels.
const NAMES: [&str; 3] = ["a", "b", "c"];
const LEVELS: u64 = 3;
const CONTROLLERS: [&str; 3] = ["+cpu", "+cpuset", "+memory"];

/// Writes a file of a group; the kernel may refuse.
pub(crate) fn set(group: &Path, file: &str, value: &str) -> bool {
    fs::write(group.join(file), value).is_ok()
}

/// Lets groups below have the controllers.
fn delegate(group: &Path) {
    for controller in CONTROLLERS {
        set(group, "cgroup.subtree_control", controller);
    }
}

/// Makes the group that is above all others.
///
/// # Errors
/// In words, where there can be none.
pub(crate) fn create() -> Result<(), String> {
    delegate(ROOT.as_ref());
    fs::create_dir_all(OURS).map_err(|error| format!("{OURS}: {error}"))?;
    delegate(OURS.as_ref());
    Ok(())
}

/// A place for a group, whether there is one or not.
pub(crate) fn place(random: &mut Random) -> PathBuf {
    let mut path = PathBuf::from(OURS);
    for _ in 0..=random.below(LEVELS) {
        path.push(NAMES[random.below(NAMES.len() as u64) as usize]);
    }
    path
}

/// Makes a group, and those above it. Where a group above has tasks of its own, controllers end
/// there.
pub(crate) fn make(group: &Path) {
    let _ = fs::create_dir_all(group);
    for above in group.ancestors().skip(1) {
        if !above.starts_with(OURS) {
            break;
        }
        delegate(above);
    }
}

/// Removes a group, if it is empty.
pub(crate) fn remove(group: &Path) {
    let _ = fs::remove_dir(group);
}

/// Moves a process into a group, if that takes any.
pub(crate) fn enter(group: &Path, pid: i32) -> bool {
    set(group, "cgroup.procs", &pid.to_string())
}

/// Moves a process out of all groups.
///
/// # Errors
/// In words, when the kernel refuses.
pub(crate) fn leave(pid: i32) -> Result<(), String> {
    let file = format!("{ROOT}/cgroup.procs");
    fs::write(&file, pid.to_string()).map_err(|error| format!("{pid} to {file}: {error}"))
}

/// Calls `visit` with each group, those below first.
pub(crate) fn each(visit: &mut dyn FnMut(&Path)) {
    descend(OURS.as_ref(), visit);
}

fn descend(group: &Path, visit: &mut dyn FnMut(&Path)) {
    let entries = fs::read_dir(group).into_iter().flatten().flatten();
    for entry in entries {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            descend(&entry.path(), visit);
        }
    }
    visit(group);
}
