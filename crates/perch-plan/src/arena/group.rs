// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of task groups in the arena.

use perch_policy::{Image, Topology};

use super::array::Array;
use crate::interface::{Group, GroupCell, GroupWaits};
use crate::places::GroupPlaces;
use crate::settings::{DEFAULT_GROUPS, SettingsError, Tuning};

/// The most memory that the table takes unasked, with at most [`DEFAULT_GROUPS`].
const DEFAULT_BYTES: usize = 64 << 20;

/// The most that it may take: it stays resident.
const MOST_BYTES: usize = 1 << 30;

/// How many CPUs and counters of waits a group has.
#[derive(Clone, Copy)]
pub(super) struct Size {
    /// CPUs that may come online.
    possible: usize,
    /// Last-level caches that count the group's waits; 0: waits are not counted by group.
    parts: usize,
}

impl Size {
    pub fn new(tuning: &Tuning, topology: &Topology, possible: usize) -> Size {
        let counted = tuning.waits && tuning.group_waits;
        Size {
            possible,
            // CPUs without a last-level cache count in the first.
            parts: if counted { topology.nr_llcs().max(1) } else { 0 },
        }
    }

    /// Bytes of a group.
    fn each(self) -> usize {
        size_of::<Group>()
            + self.possible * size_of::<GroupCell>()
            + self.possible.div_ceil(64) * 8
            + self.parts * size_of::<GroupWaits>()
    }

    /// How many groups the table holds.
    fn slots(self, tuning: &Tuning) -> usize {
        match tuning.groups {
            Some(asked) => asked as usize,
            None => (DEFAULT_GROUPS.0 as usize).min(DEFAULT_BYTES / self.each()),
        }
    }
}

/// Checks that the table has a sensible size where so many CPUs may come online.
///
/// # Errors
/// [`SettingsError::Memory`] when it is not.
pub(super) fn check(
    tuning: &Tuning,
    topology: &Topology,
    possible: usize,
) -> Result<(), SettingsError> {
    fits(tuning, Size::new(tuning, topology, possible))
}

fn fits(tuning: &Tuning, size: Size) -> Result<(), SettingsError> {
    let asked = size.slots(tuning);
    let bytes = asked * size.each();
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(SettingsError::Memory {
        key: "groups",
        asked,
        mib: bytes >> 20,
        cpus: size.possible,
        most_mib: MOST_BYTES >> 20,
    })
}

/// Its place in an image.
pub(super) struct Reserved {
    groups: Array<Group>,
    cells: u64,
    queued: u64,
    /// The root group's first, which has no place in `groups`.
    waits: Array<GroupWaits>,
    size: Size,
}

impl Reserved {
    pub fn new(image: &mut Image, tuning: &Tuning, size: Size) -> Reserved {
        let nr = size.slots(tuning);
        Reserved {
            groups: Array::reserve(image, nr),
            cells: image.reserve(nr * size.possible * size_of::<GroupCell>()),
            queued: image.reserve(nr * size.possible.div_ceil(64) * 8),
            waits: Array::reserve(image, (nr + 1) * size.parts),
            size,
        }
    }

    /// Address of the waits.
    pub fn waits(&self) -> u64 {
        self.waits.at()
    }

    /// How many counters of waits each group has.
    pub fn parts(&self) -> usize {
        self.size.parts
    }

    /// Where the waits are, if they are counted.
    pub fn places(&self) -> Option<GroupPlaces> {
        (self.size.parts > 0).then(|| GroupPlaces {
            groups: self.groups.start(),
            nr_groups: self.len(),
            waits: self.waits.start(),
            parts: self.size.parts,
        })
    }

    /// Address of the first.
    pub fn at(&self) -> u64 {
        self.groups.at()
    }

    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Tells each where its CPUs are.
    pub fn fill(&self, image: &mut [u8]) {
        let possible = self.size.possible;
        for number in 0..self.len() {
            let words = possible.div_ceil(64);
            let group = Group {
                load: 0,
                weight: 0,
                counted: 0,
                parent: 0,
                refs: 0,
                queued: self.queued + (number * words * 8) as u64,
                cells: self.cells + (number * possible * size_of::<GroupCell>()) as u64,
                limited: 0,
                throttled: 0,
                idle: 0,
                sched_idle: 0,
                id: 0,
                left_ns: 0,
                quota_ns: 0,
                period_ns: 0,
                burst_ns: 0,
                renewed_ns: 0,
                line2: [0; 3],
            };
            self.groups.put(image, number, &group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(possible: usize, parts: usize) -> Size {
        Size { possible, parts }
    }

    #[test]
    fn the_table_has_a_size_that_the_machine_can_bear() {
        let default = Tuning::default();
        assert_eq!(size(8, 0).slots(&default), 4096);
        assert_eq!(size(8192, 0).slots(&default), 507);
        assert_eq!(size(8192, 512).slots(&default), 254);
        let words = format!("as far as they fit into {} MiB", DEFAULT_BYTES >> 20);
        assert_eq!(words, DEFAULT_GROUPS.1);
        assert!(fits(&default, size(8192, 512)).is_ok());
        let asked = |groups| Tuning { groups: Some(groups), ..Tuning::default() };
        assert_eq!(size(8, 1).slots(&asked(0)), 0);
        assert!(fits(&asked(65_536), size(480, 0)).is_ok());
        assert_eq!(
            fits(&asked(65_536), size(1024, 0)).unwrap_err().to_string(),
            "groups: 65536 of them take 1040 MiB on this machine of 1024 CPUs: expected at most \
             1024 MiB"
        );
    }

    #[test]
    fn every_group_has_places_of_its_own() {
        let mut image = Image::new(crate::interface::ARENA_BASE);
        let asked = Tuning { groups: Some(3), ..Tuning::default() };
        let reserved = Reserved::new(&mut image, &asked, size(130, 2));
        let mut bytes = image.bytes().to_vec();
        reserved.fill(&mut bytes);
        let word = |group: usize, field: usize| {
            let at = (reserved.at() - crate::interface::ARENA_BASE) as usize
                + group * size_of::<Group>()
                + field;
            u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap())
        };
        let mut ends = Vec::new();
        for group in 0..3 {
            let cells = word(group, std::mem::offset_of!(Group, cells));
            let queued = word(group, std::mem::offset_of!(Group, queued));
            ends.push((cells, cells + 130 * size_of::<GroupCell>() as u64));
            ends.push((queued, queued + 3 * 8));
        }
        let waits = reserved.waits();
        ends.push((waits, waits + 4 * 2 * size_of::<GroupWaits>() as u64));
        ends.sort_unstable();
        assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
        assert!((ends[6].1 - crate::interface::ARENA_BASE) as usize <= bytes.len());
    }
}
