// SPDX-License-Identifier: GPL-2.0-or-later
//! A wake-up as the recorder's program hands it out: the structures of bpf/raw.h, which
//! scripts/mirrors translates, and the sets and rows that follow the fixed part.

#[rustfmt::skip]
#[allow(missing_docs, non_camel_case_types, dead_code, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod generated;

use generated::{
    RAW_ALLOWED, RAW_IDLE, RAW_IDLE_LATER, RAW_SCHED_IDLE_ONLY, RAW_SCHED_IDLE_ONLY_LATER,
    RAW_SEEN, RAW_SETS,
};
pub use generated::{
    RAW_CONTEXT_KNOWN as CONTEXT_KNOWN, RAW_EXITING as EXITING, RAW_HEARD as HEARD,
    RAW_IN_TASK as IN_TASK, raw_cpu as RawCpu, raw_group as RawGroup, raw_near as RawNear,
    raw_task as RawTask, raw_wake as RawWake,
};

/// The number of CPUs of the largest machine that can be recorded.
pub const MAX_CPUS: usize = generated::RAW_MAX_CPUS as usize;

/// The sets of `enum raw_set`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Set {
    Seen = RAW_SEEN,
    Idle = RAW_IDLE,
    SchedIdleOnly = RAW_SCHED_IDLE_ONLY,
    IdleLater = RAW_IDLE_LATER,
    SchedIdleOnlyLater = RAW_SCHED_IDLE_ONLY_LATER,
    Allowed = RAW_ALLOWED,
}

const SETS: usize = RAW_SETS as usize;
const HEAD: usize = size_of::<RawWake>();
const ROW: usize = size_of::<RawCpu>();
const GROUP: usize = size_of::<RawGroup>();

/// Returns the number of bytes of a record's sets and capacities.
fn middle(cpus: usize) -> usize {
    SETS * cpus.div_ceil(64) * 8 + (cpus * 2).next_multiple_of(8)
}

/// Returns the number of bytes of the longest record of a machine with so many CPUs, and so many
/// groups whose capacity is recorded.
pub fn most(cpus: usize, groups: usize) -> usize {
    HEAD + middle(cpus) + 2 * cpus * ROW + groups * GROUP
}

/// The record of one wake-up.
pub struct Record<'a> {
    /// The record's fixed part.
    pub wake: RawWake,
    sets: &'a [u8],
    capacities: &'a [u8],
    /// The rows at the beginning of the choice, then those at its end.
    rows: &'a [u8],
    groups: &'a [u8],
    cpus: usize,
}

impl<'a> Record<'a> {
    /// Reads a record from bytes; returns `None` when there are not as many bytes as the record
    /// announces.
    pub fn parse(bytes: &'a [u8], cpus: usize) -> Option<Record<'a>> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        // SAFETY: the structure has only integers in the layout of C, for which any bytes are a
        // valid value; the read is unaligned.
        let wake = unsafe { head.as_ptr().cast::<RawWake>().read_unaligned() };
        let (sets, rest) = rest.split_at_checked(SETS * cpus.div_ceil(64) * 8)?;
        let (capacities, rest) = rest.split_at_checked((cpus * 2).next_multiple_of(8))?;
        let (rows, rest) = rest.split_at_checked((wake.rows as usize).min(2) * cpus * ROW)?;
        let groups = if wake.rows == 2 { rest } else { &[] };
        Some(Record { wake, sets, capacities, rows, groups, cpus })
    }

    /// Returns true where a CPU is in a set.
    pub fn has(&self, set: Set, cpu: usize) -> bool {
        let word = set as usize * self.cpus.div_ceil(64) + cpu / 64;
        let at = word * 8 + cpu % 64 / 8;
        cpu < self.cpus && self.sets[at] >> (cpu % 8) & 1 != 0
    }

    /// Returns the capacity that a CPU, which the recorder saw, has left for fair tasks.
    pub fn capacity(&self, cpu: usize) -> u16 {
        let bytes = [self.capacities[2 * cpu], self.capacities[2 * cpu + 1]];
        u16::from_ne_bytes(bytes)
    }

    /// Returns the row of a CPU, at the beginning or at the end of the choice.
    pub fn row(&self, cpu: usize, later: bool) -> Option<RawCpu> {
        let at = (usize::from(later) * self.cpus + cpu) * ROW;
        let row = self.rows.get(at..at + ROW)?;
        // SAFETY: the same holds as for the fixed part above.
        (cpu < self.cpus).then(|| unsafe { row.as_ptr().cast::<RawCpu>().read_unaligned() })
    }

    /// Returns the capacities of the groups, in the order of the recorder's places; none where the
    /// kernel did not compare groups.
    pub fn groups(&self) -> impl Iterator<Item = RawGroup> {
        // SAFETY: the same holds as for the fixed part above.
        self.groups
            .chunks_exact(GROUP)
            .map(|group| unsafe { group.as_ptr().cast::<RawGroup>().read_unaligned() })
    }
}
