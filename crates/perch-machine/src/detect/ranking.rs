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
const SWITCHES: [&str; 2] = [
    "proc/sys/kernel/sched_itmt_enabled",
    "sys/kernel/debug/x86/sched_itmt_enabled",
];

const HIGHEST_PERF: &str = "acpi_cppc/highest_perf";
const PREFCORE: &str = "cpufreq/amd_pstate_prefcore_ranking";

/// What firmware writes to `highest_perf` of all CPUs on some machines that can be overclocked;
/// intel_pstate asks the processor then.
const UNTOLD: u64 = 255;

/// Reads the rankings of the CPUs online.
///
/// # Errors
/// When a file holds something else than a number from 1 to 255.
pub(super) fn read(tree: &Tree, online: &[u32]) -> Result<Rankings, MachineError> {
    let switch = SWITCHES.iter().find_map(|file| tree.text_at(file));
    let switch = switch.map(|text| matches!(text.as_str(), "1" | "Y"));
    let amd = tree.text("cpu/amd_pstate/prefcore").as_deref() == Some("enabled");
    let name = if amd { PREFCORE } else { HIGHEST_PERF };
    let values = levels(tree, online, name)?;
    let (Some(least), Some(most)) = (
        values.iter().map(|(_, value)| *value).min(),
        values.iter().map(|(_, value)| *value).max(),
    ) else {
        return Ok(Rankings::none(None));
    };
    if least == most {
        return Ok(Rankings::none(None));
    }
    let rank = format!("{name} ranks cores, from {least} to {most}");
    let why_not = match switch {
        Some(false) => Some("sched_itmt_enabled is off, so the kernel prefers none"),
        None if !amd => Some("no file that can be read says that the kernel prefers any"),
        _ if !amd && most == UNTOLD => Some("255 is what firmware writes where it does not tell"),
        _ if values.len() < online.len() => {
            Some("some CPUs have no such rank, so none is preferred")
        }
        _ => None,
    };
    Ok(match why_not {
        Some(why) => Rankings::none(Some(format!("{rank}; {why}"))),
        None => Rankings {
            values,
            note: Some(format!("{rank}, and the kernel prefers the higher")),
        },
    })
}

/// The numbers in these files, of the CPUs that have one.
fn levels(tree: &Tree, online: &[u32], name: &str) -> Result<Vec<(Group, u64)>, MachineError> {
    let mut values = Vec::new();
    for &cpu in online {
        let file = format!("cpu/cpu{cpu}/{name}");
        let Some(value) = tree.number(&file)? else {
            continue;
        };
        let value = u64::try_from(value).ok();
        let Some(value @ 1..=255) = value else {
            continue;
        };
        let (cpus, place) = (vec![cpu], tree.place(&file));
        values.push((Group { cpus, place }, value));
    }
    Ok(values)
}

impl Rankings {
    fn none(note: Option<String>) -> Rankings {
        Rankings {
            values: Vec::new(),
            note,
        }
    }
}
