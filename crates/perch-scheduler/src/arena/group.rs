// SPDX-License-Identifier: GPL-2.0-or-later
//! The table of task groups in the arena.

use perch_policy::Image;

use super::array::Array;
use crate::interface::{Group, GroupCell};
use crate::settings::{DEFAULT_GROUPS, SettingsError, Tuning};

/// The most memory that the table takes unasked, with at most [`DEFAULT_GROUPS`].
const DEFAULT_BYTES: usize = 64 << 20;

/// The most that it may take: it stays resident.
const MOST_BYTES: usize = 1 << 30;

/// Bytes of a group where so many CPUs may come online.
fn each(possible: usize) -> usize {
    size_of::<Group>() + possible * size_of::<GroupCell>() + possible.div_ceil(64) * 8
}

/// How many groups the table holds.
pub(super) fn slots(tuning: &Tuning, possible: usize) -> usize {
    match tuning.groups {
        Some(asked) => asked as usize,
        None => (DEFAULT_GROUPS.0 as usize).min(DEFAULT_BYTES / each(possible)),
    }
}

/// Checks that the table has a sensible size where so many CPUs may come online.
///
/// # Errors
/// [`SettingsError::Memory`] when it is not.
pub(crate) fn check(tuning: &Tuning, possible: usize) -> Result<(), SettingsError> {
    let asked = slots(tuning, possible);
    let bytes = asked * each(possible);
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    Err(SettingsError::Memory {
        key: "groups",
        asked,
        mib: bytes >> 20,
        cpus: possible,
        most_mib: MOST_BYTES >> 20,
    })
}

/// Its place in an image.
pub(super) struct Reserved {
    groups: Array<Group>,
    cells: u64,
    queued: u64,
    possible: usize,
}

impl Reserved {
    pub fn new(image: &mut Image, possible: usize, nr: usize) -> Reserved {
        Reserved {
            groups: Array::reserve(image, nr),
            cells: image.reserve(nr * possible * size_of::<GroupCell>()),
            queued: image.reserve(nr * possible.div_ceil(64) * 8),
            possible,
        }
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
        for number in 0..self.len() {
            let words = self.possible.div_ceil(64);
            let group = Group {
                load: 0,
                weight: 0,
                counted: 0,
                parent: 0,
                refs: 0,
                queued: self.queued + (number * words * 8) as u64,
                cells: self.cells + (number * self.possible * size_of::<GroupCell>()) as u64,
                limited: 0,
                throttled: 0,
                idle: 0,
                sched_idle: 0,
                line: [0; 1],
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

    #[test]
    fn the_table_has_a_size_that_the_machine_can_bear() {
        let default = Tuning::default();
        assert_eq!(slots(&default, 8), 4096);
        assert_eq!(slots(&default, 8192), 507);
        let words = format!("as far as they fit into {} MiB", DEFAULT_BYTES >> 20);
        assert_eq!(words, DEFAULT_GROUPS.1);
        assert!(check(&default, 8192).is_ok());
        let asked = |groups| Tuning {
            groups: Some(groups),
            ..Tuning::default()
        };
        assert_eq!(slots(&asked(0), 8), 0);
        assert!(check(&asked(65_536), 480).is_ok());
        assert_eq!(
            check(&asked(65_536), 1024).unwrap_err().to_string(),
            "groups: 65536 of them take 1040 MiB on this machine of 1024 CPUs: expected at most \
             1024 MiB"
        );
    }

    #[test]
    fn every_group_has_places_of_its_own() {
        let mut image = Image::new(crate::interface::ARENA_BASE);
        let reserved = Reserved::new(&mut image, 130, 3);
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
        ends.sort_unstable();
        assert!(ends.windows(2).all(|two| two[0].1 <= two[1].0), "{ends:?}");
        assert!((ends[5].1 - crate::interface::ARENA_BASE) as usize <= bytes.len());
    }
}
