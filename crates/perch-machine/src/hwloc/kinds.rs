// SPDX-License-Identifier: GPL-2.0-or-later
//! The capacities in hwloc's kinds of CPUs: Linux's own where a kind has them, else those that the
//! highest frequencies of unlike cores tell.

use super::set;
use super::xml::{CpuKind, Document};
use crate::draft::{Draft, Group};
use crate::error::{MachineError, Place};
use crate::survey;
use std::collections::BTreeMap;

/// The CPUs of one type of core (`CoreType`).
struct Type {
    group: Group,
    efficiency: Option<i64>,
    /// The highest frequency among them; 0 where none is told.
    mhz: u64,
}

/// Reads the capacities of the CPUs in `numbers`, the highest frequency of the most capable, and says in
/// the sources where the capacities come from.
///
/// # Errors
/// When a kind has a cpuset or a capacity that cannot be read, or no capacity while another has one.
pub(super) fn capacities(
    document: &Document,
    numbers: &[u32],
    draft: &mut Draft,
) -> Result<(), MachineError> {
    let origin = draft.origin.clone();
    let (mut kinds, mut told) = (Vec::new(), 0);
    for kind in &document.cpu_kinds {
        let place = Place { key: "cpukind".to_string(), line: Some(kind.line) };
        let mut cpus = set(&kind.cpuset, "cpuset", &place, &origin)?;
        cpus.retain(|cpu| numbers.binary_search(cpu).is_ok());
        told += cpus.len();
        if told > numbers.len() {
            let reason = "a CPU of this kind is of another, too";
            return Err(place.problem(&origin, reason, "expected each CPU in one kind"));
        }
        if !cpus.is_empty() {
            kinds.push((kind, Group { cpus, place }));
        }
    }
    let linux = |kind: &CpuKind| kind.infos.contains_key("LinuxCapacity");
    if let Some((_, first)) = kinds.iter().find(|(kind, _)| linux(kind)) {
        if told != numbers.len() {
            let reason = format!("the kinds have {told} CPUs of {}", numbers.len());
            let expected = "expected each CPU in one kind, where a kind has a LinuxCapacity";
            return Err(first.place.problem(&origin, reason, expected));
        }
        for (kind, group) in kinds {
            let value = kind.infos.get("LinuxCapacity").map(|text| text.trim());
            let Some(value) = value.and_then(|text| text.parse().ok()) else {
                let reason = "LinuxCapacity is not a number, or only other kinds have it";
                return Err(group.place.problem(&origin, reason, "expected it of each kind"));
            };
            draft.capacities.push((group, value));
        }
        survey::scale_capacities(draft);
        return Ok(());
    }
    let count = kinds.len();
    let types = types(kinds);
    let mut by_mhz: Vec<&Type> = types.values().collect();
    by_mhz.sort_by_key(|one| one.mhz);
    let least = by_mhz.first().map_or(0, |one| one.mhz);
    let most = by_mhz.last().map_or(0, |one| one.mhz);
    if let Ok(mhz @ 1..) = u32::try_from(most) {
        draft.hardware.frequency_mhz = mhz;
    }
    let falls = by_mhz.windows(2).all(|pair| pair[0].efficiency <= pair[1].efficiency);
    if least == 0 || least == most || !falls || told != numbers.len() {
        if count > 1 {
            draft.sources.push(format!(
                "hwloc tells {count} kinds of CPUs, but neither LinuxCapacity nor, for the slower CoreType, a \
                 lower FrequencyMaxMHz, so all are taken for alike"
            ));
        }
        return Ok(());
    }
    let words = types.iter().map(|(name, one)| format!("{name} {} MHz", one.mhz));
    draft.sources.push(format!(
        "capacities are the largest FrequencyMaxMHz of each CoreType: {}; the slower kind also does less in \
         a cycle, so they differ more than this",
        words.collect::<Vec<_>>().join(", ")
    ));
    let values = types.into_values();
    draft.capacities = values.map(|one| (one.group, (one.mhz * 1024 / most).max(1))).collect();
    Ok(())
}

/// Gathers the kinds by their type of core. Alike cores are of several kinds where some reach a higher
/// frequency, so kinds without a type are one.
fn types(kinds: Vec<(&CpuKind, Group)>) -> BTreeMap<String, Type> {
    let mut types: BTreeMap<String, Type> = BTreeMap::new();
    for (kind, group) in kinds {
        let name = kind.infos.get("CoreType").cloned().unwrap_or_default();
        let mhz = kind.infos.get("FrequencyMaxMHz");
        let mhz = mhz.and_then(|text| text.trim().parse().ok());
        let mhz = mhz.filter(|mhz| (1..=100_000).contains(mhz)).unwrap_or(0);
        match types.get_mut(&name) {
            Some(one) => {
                one.mhz = one.mhz.max(mhz);
                one.group.cpus.extend(group.cpus);
            }
            None => {
                let efficiency = kind.efficiency;
                let one = Type { group, efficiency, mhz };
                types.insert(name, one);
            }
        }
    }
    types
}
