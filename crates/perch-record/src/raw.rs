// SPDX-License-Identifier: GPL-2.0-or-later
//! The mirror of bpf/raw.h: a wake-up as the recorder's program hands it out.

/// `RAW_MAX_CPUS`.
pub const MAX_CPUS: usize = 1024;
/// `RAW_EXITING`.
pub const EXITING: u32 = 8;
/// `RAW_IN_TASK`.
pub const IN_TASK: u32 = 1;
/// `RAW_CONTEXT_KNOWN`.
pub const CONTEXT_KNOWN: u32 = 2;

/// `enum raw_set`.
#[derive(Clone, Copy)]
pub enum Set {
    Seen,
    Idle,
    SchedIdleOnly,
    IdleLater,
    SchedIdleOnlyLater,
    Allowed,
}

/// `RAW_SETS`.
const SETS: usize = 6;

/// `struct raw_cpu`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawCpu {
    pub idle_since_ns: u64,
    pub load: u32,
    pub runnable: u32,
    pub util_avg: u32,
    pub util_est: u32,
    pub idle_exit_ns: u32,
    pub nr_running: u16,
    pub nr_delayed: u16,
}

/// `struct raw_near`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawNear {
    pub load: u32,
    pub nr_running: u16,
    pub nr_delayed: u16,
}

/// `struct raw_shared`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawShared {
    pub llc_idle_scan: u32,
    pub asym_idle_scan: u32,
    pub idle_cores: u32,
    pub pad: u32,
}

/// `struct raw_task`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawTask {
    pub flip_decay_at: u64,
    pub pid: u32,
    pub tgid: u32,
    pub last_wakee: u32,
    pub wakee_flips: u32,
    pub recent_cpu: u32,
    pub load: u32,
    pub util_avg: u16,
    pub util_est: u16,
    pub flags: u32,
    pub uclamp_min: u16,
    pub uclamp_max: u16,
    pub runnable: u16,
    pub numa_node: i16,
}

/// `struct raw_wake` without its sets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawWake {
    pub at_ns: u64,
    pub jiffies: u64,
    pub class: u32,
    pub wake_flags: u32,
    pub this_cpu: u32,
    pub prev_cpu: u32,
    pub chosen: u32,
    pub nr_allowed: u32,
    pub context: u32,
    pub rows: u32,
    pub turn: u32,
    pub pad: u32,
    pub waker: RawTask,
    pub wakee: RawTask,
    pub shared: [RawShared; 2],
    pub near: [RawNear; 2],
    pub later: [RawNear; 2],
}

const HEAD: usize = size_of::<RawWake>();
const ROW: usize = size_of::<RawCpu>();
const _: () = assert!(ROW == 32 && HEAD == 216);
const _: () = assert!(size_of::<RawTask>() == 48);

/// Bytes of a record's sets and capacities.
fn middle(cpus: usize) -> usize {
    SETS * cpus.div_ceil(64) * 8 + (cpus * 2).next_multiple_of(8)
}

/// The bytes that the longest record of a machine with so many CPUs has.
pub fn most(cpus: usize) -> usize {
    HEAD + middle(cpus) + 2 * cpus * ROW
}

/// A record.
pub struct Record<'a> {
    /// Its fixed part.
    pub wake: RawWake,
    sets: &'a [u8],
    capacities: &'a [u8],
    /// Rows at the beginning, then at the end.
    rows: &'a [u8],
    cpus: usize,
}

impl<'a> Record<'a> {
    /// From bytes; `None` when there are not as many as it says.
    pub fn parse(bytes: &'a [u8], cpus: usize) -> Option<Record<'a>> {
        let (head, rest) = bytes.split_at_checked(HEAD)?;
        // SAFETY: integers in the layout of C, of which any bytes are a value; an unaligned read.
        let wake = unsafe { head.as_ptr().cast::<RawWake>().read_unaligned() };
        let (sets, rest) = rest.split_at_checked(SETS * cpus.div_ceil(64) * 8)?;
        let (capacities, rest) = rest.split_at_checked((cpus * 2).next_multiple_of(8))?;
        let rows = rest.get(..(wake.rows as usize).min(2) * cpus * ROW)?;
        Some(Record {
            wake,
            sets,
            capacities,
            rows,
            cpus,
        })
    }

    /// Whether a CPU is in a set.
    pub fn has(&self, set: Set, cpu: usize) -> bool {
        let word = set as usize * self.cpus.div_ceil(64) + cpu / 64;
        let at = word * 8 + cpu % 64 / 8;
        cpu < self.cpus && self.sets[at] >> (cpu % 8) & 1 != 0
    }

    /// What a CPU that was seen has left for fair tasks.
    pub fn capacity(&self, cpu: usize) -> u16 {
        let bytes = [self.capacities[2 * cpu], self.capacities[2 * cpu + 1]];
        u16::from_ne_bytes(bytes)
    }

    /// Everything about a CPU, at the beginning or at the end.
    pub fn row(&self, cpu: usize, later: bool) -> Option<RawCpu> {
        let at = (usize::from(later) * self.cpus + cpu) * ROW;
        let row = self.rows.get(at..at + ROW)?;
        // SAFETY: as above.
        (cpu < self.cpus).then(|| unsafe { row.as_ptr().cast::<RawCpu>().read_unaligned() })
    }
}
