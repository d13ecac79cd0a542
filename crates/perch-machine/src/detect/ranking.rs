// SPDX-License-Identifier: GPL-2.0-or-later
//! Which cores the kernel prefers to others of their kind: some reach a higher frequency than the rest
//! (Intel's Turbo Boost Max 3.0, which Linux calls ITMT, and AMD's preferred cores).
//!
//! The rankings are those that the kernel's scheduler uses (SD_ASYM_PACKING), and so only where it
//! does:
//!
//! 1. `cpufreq/amd_pstate_prefcore_ranking`, where `amd_pstate/prefcore` is `enabled`;
//! 2. `acpi_cppc/highest_perf`, where `sched_itmt_enabled` says so, from which intel_pstate takes them.
//!    It is a sysctl on 6.13 and before, and in debugfs on newer kernels.
//!
//! An administrator who writes 0 to `sched_itmt_enabled` switches both off.

use super::capacity::{HIGHEST_PERF, Reading, highest_perf};
use super::tree::Tree;
use crate::draft::Group;
use crate::error::MachineError;

/// The rankings of a tree.
pub(super) struct Rankings {
    /// None where the kernel prefers no core.
    pub values: Vec<(Group, u64)>,
    /// Where the values come from, or why there are none though cores differ.
    pub note: Option<String>,
}

/// The switch, on 6.13 and before and on newer kernels.
const SWITCHES: [&str; 2] =
    ["proc/sys/kernel/sched_itmt_enabled", "sys/kernel/debug/x86/sched_itmt_enabled"];

const PREFCORE: &str = "cpufreq/amd_pstate_prefcore_ranking";

/// Reads the rankings of the CPUs online.
///
/// # Errors
/// When a file holds something else than a number.
pub(super) fn read(tree: &Tree, online: &[u32]) -> Result<Rankings, MachineError> {
    let switch = SWITCHES.iter().find_map(|file| tree.text_at(file));
    let switch = switch.map(|text| matches!(text.as_str(), "1" | "Y"));
    let amd = tree.text("cpu/amd_pstate/prefcore").as_deref() == Some("enabled");
    let mut values = Vec::new();
    let mut untold = None;
    for &cpu in online {
        let reading = if amd { prefcore(tree, cpu)? } else { highest_perf(tree, cpu)? };
        match reading {
            Ok((file, value)) => {
                let (cpus, place) = (vec![cpu], tree.place(&file));
                values.push((Group { cpus, place }, value));
            }
            Err(why) => untold = untold.or(Some(why)),
        }
    }
    let (least, most) = values
        .iter()
        .fold((u64::MAX, 0), |(least, most), (_, value)| (least.min(*value), most.max(*value)));
    if least >= most {
        return Ok(Rankings::none(None));
    }
    let name = if amd { PREFCORE } else { HIGHEST_PERF };
    let rank = format!("{name} ranks cores, from {least} to {most}");
    let why_not = match switch {
        Some(false) => Some("sched_itmt_enabled is off, so the kernel prefers none".to_string()),
        None if !amd => Some(
            "no file that can be read says that the kernel prefers any, or (sys/devices/cpu_core, cpu_atom, \
             cpu_lowpower) that they are of several kinds"
                .to_string(),
        ),
        _ => untold,
    };
    Ok(match why_not {
        Some(why) => Rankings::none(Some(format!("{rank}; {why}"))),
        None => {
            Rankings { values, note: Some(format!("{rank}, and the kernel prefers the higher")) }
        }
    })
}

fn prefcore(tree: &Tree, cpu: u32) -> Result<Reading, MachineError> {
    let file = format!("cpu/cpu{cpu}/{PREFCORE}");
    Ok(match tree.number(&file)? {
        None => Err(format!("{file} is missing")),
        Some(rank @ 1..=255) => Ok((file, rank as u64)),
        Some(rank) => Err(format!("{file} is {rank}, expected 1 to 255")),
    })
}

impl Rankings {
    fn none(note: Option<String>) -> Rankings {
        Rankings { values: Vec::new(), note }
    }
}
