// SPDX-License-Identifier: GPL-2.0-only
//! The mirror of bpf/raw.h: a wake-up as the recorder's program hands it out.

/// `RAW_MAX_CPUS`.
pub const MAX_CPUS: usize = 1024;
/// `RAW_WORDS`.
const WORDS: usize = MAX_CPUS / 64;

/// `struct raw_cpu`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct RawCpu {
    pub idle_since_ns: u64,
    pub load: u32,
    pub runnable: u32,
    pub util: u32,
    pub capacity: u32,
    pub curr_load: u32,
    pub idle_exit_ns: u32,
    pub nr_idle_scan: u32,
    pub nr_running: u16,
    pub nr_delayed: u16,
    pub idle: u8,
    pub sched_idle: u8,
    pub idle_cores: u8,
    pub pad: [u8; 5],
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
    pub util: u32,
    pub flags: u32,
    pub uclamp_min: u16,
    pub uclamp_max: u16,
    pub pad: u32,
}

/// `struct raw_wake` without its CPUs.
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
    pub waker: RawTask,
    pub wakee: RawTask,
    pub allowed: [u64; WORDS],
}

const _: () = assert!(size_of::<RawCpu>() == 48);
const _: () = assert!(size_of::<RawTask>() == 48);
const _: () = assert!(size_of::<RawWake>() == 264);

/// A wake-up and its CPUs, from the bytes of a record; `None` when they are not that many.
pub fn parse(bytes: &[u8], cpus: usize) -> Option<(RawWake, impl Iterator<Item = RawCpu> + '_)> {
    let (head, rows) = bytes.split_at_checked(size_of::<RawWake>())?;
    let rows = rows.get(..cpus * size_of::<RawCpu>())?;
    // SAFETY: integers in the layout of C, of which any bytes are a value; unaligned reads.
    let wake = unsafe { head.as_ptr().cast::<RawWake>().read_unaligned() };
    let rows = rows.chunks_exact(size_of::<RawCpu>());
    // SAFETY: likewise.
    let rows = rows.map(|row| unsafe { row.as_ptr().cast::<RawCpu>().read_unaligned() });
    Some((wake, rows))
}
