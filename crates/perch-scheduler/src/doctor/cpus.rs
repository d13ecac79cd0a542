// SPDX-License-Identifier: GPL-2.0-or-later
//! Looks for CPUs that are not like the others.

use crate::tree::{Tree, UnseenError};

/// CPUs that are absent, and those that are apart from the others. Each list ascends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs that are there and offline.
    pub offline: Vec<u32>,
    /// CPUs that the kernel's scheduler does not balance (`isolcpus=`, or a partition of cpusets).
    pub isolated: Vec<u32>,
    /// CPUs that do without a tick while one task runs there (`nohz_full=`).
    pub tickless: Vec<u32>,
    /// On x86, the cores of the slower kinds.
    pub slow: Vec<u32>,
}

/// Reads the kernel's lists.
///
/// # Errors
/// When one of them cannot be read.
pub(super) fn look(tree: &Tree) -> Result<Cpus, UnseenError> {
    let list = |name: &str| tree.cpus(&format!("sys/devices/system/cpu/{name}"));
    let (mut offline, online) = (list("present")?, list("online")?);
    if online.is_empty() {
        offline.clear();
    }
    offline.retain(|cpu| online.binary_search(cpu).is_err());
    let mut slow = tree.cpus("sys/devices/cpu_atom/cpus")?;
    slow.extend(tree.cpus("sys/devices/cpu_lowpower/cpus")?);
    slow.sort_unstable();
    Ok(Cpus { offline, isolated: list("isolated")?, tickless: list("nohz_full")?, slow })
}
