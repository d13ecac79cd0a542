// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernels of arms that ran on real ones.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel that an arm ran on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ArmKernel {
    /// The arm's name.
    pub arm: String,
    /// The kernel's release, as `uname -r` prints it.
    pub release: String,
    /// Ticks of the kernel per second; 0 where nobody knows them.
    pub hz: u32,
}

/// The releases of all kernels, each once, in the order of the arms.
pub(super) fn releases(kernels: &[ArmKernel]) -> String {
    let mut releases: Vec<&str> = Vec::new();
    for kernel in kernels {
        if !releases.contains(&kernel.release.as_str()) {
            releases.push(&kernel.release);
        }
    }
    releases.join(" and ")
}

/// The ticks per second that all kernels have; 0 where they differ.
pub(super) fn common_hz(kernels: &[ArmKernel]) -> u32 {
    let first = kernels.first().map_or(0, |kernel| kernel.hz);
    if kernels.iter().all(|kernel| kernel.hz == first) { first } else { 0 }
}
