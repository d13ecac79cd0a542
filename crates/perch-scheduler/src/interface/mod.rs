// SPDX-License-Identifier: GPL-2.0-or-later
//! The mirror of `bpf/interface.h`: what the loader and the BPF program share.

#[cfg(test)]
mod layout;

/// `PERCH_ARENA_BASE`.
pub const ARENA_BASE: u64 = 0x1000_0000_0000;
/// `PERCH_NONE`.
pub const NONE: u32 = u32::MAX;
/// `PERCH_MAX_EVENTS`.
pub const MAX_EVENTS: usize = 54;
/// `PERCH_MAX_REASONS`.
pub const MAX_REASONS: usize = 64;
/// `PERCH_MAX_BANDS`.
pub const MAX_BANDS: usize = 16;
/// `PERCH_BAND_GLOB`.
pub const BAND_GLOB: usize = 32;
/// `PERCH_BAND_PATH`.
pub const BAND_PATH: usize = 192;
/// `PERCH_BAND_NAME`.
pub const BAND_NAME: usize = 64;
/// `PERCH_BAND_COMM`.
pub const BAND_COMM: u32 = 1;
/// `PERCH_BAND_CGROUP`.
pub const BAND_CGROUP: u32 = 2;
/// `PERCH_BAND_NICE`.
pub const BAND_NICE: u32 = 4;
/// Bytes of `struct perch_occupancy`.
pub const OCCUPANCY_SIZE: usize = 16;
/// Bytes of `struct perch_group_cell`.
pub const CELL_SIZE: usize = 16;
/// Bytes of `struct perch_seat`.
pub const SEAT_SIZE: usize = 16;

macro_rules! events {
    ($($variant:ident = $name:literal, $help:literal;)*) => {
        /// What is counted besides the reasons: `enum perch_event`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum Event { $(#[doc = $help] $variant,)* }

        impl Event {
            /// Every event, by number.
            pub const ALL: &'static [Event] = &[$(Event::$variant,)*];

            /// The name under which it is counted.
            pub fn name(self) -> &'static str {
                match self { $(Event::$variant => $name,)* }
            }

            /// What it counts, in a few words.
            pub fn help(self) -> &'static str {
                match self { $(Event::$variant => $help,)* }
            }
        }
    };
}

events! {
    Examined = "examined", "CPUs that the decisions' scans looked at";
    Direct = "direct", "Tasks put straight on an idle CPU that was claimed for them";
    ClaimLost = "claim_lost", "Chosen idle CPUs that were gone when they were claimed";
    Queued = "queued", "Tasks queued behind others";
    Pinned = "pinned", "Tasks put on a CPU or queued that may use one CPU only";
    Preempted = "preempted", "Running tasks interrupted by a wakee far behind them";
    Kicked = "kicked", "Idle CPUs woken to take work that waits elsewhere";
    Revived = "revived", "Idle CPUs that were claimed and never used";
    StolenCluster = "stolen_cluster", "Tasks taken from a queue of the same cluster";
    StolenLlc = "stolen_llc", "Tasks taken from a queue of the same last-level cache";
    StolenNode = "stolen_node", "Tasks taken from a queue of the same node";
    StolenRemote = "stolen_remote", "Tasks taken from a queue of another node";
    Pulled = "pulled", "Tasks taken from a longer queue by a CPU that had work";
    NearIdle = "near_idle", "Wake-ups with an idle CPU in the target's cluster (detail)";
    NearTaken = "near_taken", "Of those, wake-ups that went to that cluster (detail)";
    MovedUp = "moved_up", "Running tasks sent on to a larger CPU that was idle";
    CalledUp = "called_up", "Running tasks that do not fit called by a larger CPU that went idle";
    LeftLarger = "left_larger", "Tasks that a smaller CPU did not steal, as they do not fit it";
    CacheRedirected = "cache_redirected", "Wake-ups aimed at an LLC that the process prefers";
    CacheFullUtil = "cache_full_util", "Wake-ups not sent to the preferred LLC, as it is too busy";
    CacheFullRunnable = "cache_full_runnable", "Wake-ups not sent to the preferred LLC, as too many tasks run";
    CacheUnfit = "cache_unfit", "Wake-ups not sent to the preferred LLC, as no CPU fits";
    CacheReturned = "cache_returned", "Wake-ups aimed at the preferred LLC that found no idle CPU";
    CacheKept = "cache_kept", "Tasks that another LLC left in a queue of the one they prefer";
    CacheMoved = "cache_moved", "Running tasks sent to an idle CPU of the LLC that they prefer";
    Bounced = "bounced", "Tasks that changed LLC and were back within 50 ms";
    ProcessesTracked = "processes_tracked", "Processes that got a place in the table";
    ProcessesEnded = "processes_ended", "Processes that gave their place in the table back";
    ProcessesUntracked = "processes_untracked", "Processes for which the table had no room";
    BandWakeups = "band_wakeups", "Wake-ups of tasks of the real-time band";
    BandQueued = "band_queued", "Times that a task of the band was queued";
    BandPreempted = "band_preempted", "CPUs interrupted for a task of the band";
    BandPushed = "band_pushed", "Tasks of the band queued on a CPU that runs a lower priority";
    BandCalled = "band_called", "CPUs told to come for a task of the band that waits";
    BandPulled = "band_pulled", "Tasks of the band taken by a CPU that ran a lower priority";
    BandThrottled = "band_throttled", "Periods of a CPU in which the band waited for the others";
    OverloadNone = "overload_none", "Questions how many CPUs are overloaded, answered none";
    OverloadOne = "overload_one", "Such questions answered one";
    OverloadMore = "overload_more", "Such questions answered several";
    BandWaited = "band_waited", "Overloaded CPUs, counted at their ticks";
    BandPassed = "band_passed", "Of those, while a lower priority ran where the waiting one may";
    BandRelieved = "band_relieved", "Tasks of the band that waited so long that they came first for once";
    GroupsTracked = "groups_tracked", "Task groups that got a place in the table";
    GroupsEnded = "groups_ended", "Task groups that gave their place in the table back";
    GroupsUntracked = "groups_untracked", "Task groups for which the table had no room";
    Credited = "credited", "Wakees that came before others as their group had nobody there";
    Relieved = "relieved", "Tasks that waited so long that they came first for once";
}

/// `struct perch_cpu`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Cpu {
    pub clock: u64,
    pub curr_vtime: u64,
    pub exec_start: u64,
    pub busy_ns: u64,
    pub served_ns: u64,
    pub idle_since_ns: u64,
    pub curr_weight: u32,
    pub util: u32,
    pub queued: u32,
    pub pull_from: u32,
    pub capacity: u32,
    pub node: u32,
    pub busy_seen_ns: u64,
    pub unused_claims: u32,
    pub stuck: u32,
    pub move_to: u32,
    pub flat: u32,
    pub allowed_at: u64,
    pub llc: u32,
    pub process: u32,
    pub refused: u32,
    pub homeward: u32,
    pub band_coming: u32,
    pub band_looked: u32,
    pub band_prio: u32,
    pub band_first: u32,
    pub band_movable: u32,
    pub band_spent: u32,
    pub band_changes: u32,
    pub overloaded: u32,
    pub overload_mark: u32,
    pub overload_home: u32,
    pub band_since_ns: u64,
    pub band_used_ns: u64,
    pub band_arrivals: u64,
    pub band_returns: u64,
    pub group: u32,
    pub impatient: u32,
    pub jumped: u64,
    pub events: [u64; MAX_EVENTS],
    pub reasons: [u64; MAX_REASONS],
}

/// `struct perch_band`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Band {
    pub slice_ns: u64,
    pub flags: u32,
    pub prio: u32,
    pub nice: i32,
    pub depth: u32,
    pub comm: [u8; BAND_GLOB],
    pub path: [u8; BAND_PATH],
    pub line: u64,
}

/// `struct perch_overload`; its pointer is an address in the arena.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Overload {
    pub counters: u64,
    pub nr: u32,
    pub layout: u32,
    pub exact: u32,
    pub pad: u32,
}

/// `struct perch_llc`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Llc {
    pub set: u32,
    pub nr_idle_scan: u32,
    pub span: u32,
    pub pad: u32,
    pub note_at_ns: u64,
    pub line: [u64; 5],
}

/// `struct perch_slot`; its first part is a `struct perch_process`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Slot {
    pub occupancy: u64,
    pub seats: u64,
    pub process: [u64; 4],
    pub tgid: u32,
    pub pad: [u32; 3],
}

/// `struct perch_group_slot`; its pointers are addresses in the arena.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Group {
    pub load: i64,
    pub weight: u32,
    pub counted: u32,
    pub parent: u32,
    pub refs: u32,
    pub queued: u64,
    pub cells: u64,
    pub line: [u64; 3],
}

/// `struct perch_memory`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Memory {
    pub flip_decay_at_ns: u64,
    pub pid: u32,
    pub last_wakee: u32,
    pub wakee_flips: u32,
    pub recent_cpu: u32,
    pub util_at_ns: u64,
    pub util: u32,
    pub util_est: u32,
    pub process: u32,
    pub llc: u32,
    pub llc_before: u32,
    pub pad: u32,
    pub llc_since_ns: u64,
}

/// Bytes of `struct perch_policy`, which perch-policy lays out.
pub const POLICY_SIZE: usize = 40;
/// Bytes of `struct perch_topology`, which perch-policy lays out.
pub const TOPOLOGY_SIZE: usize = 72;

/// `struct perch_config`; pointers are addresses in the arena.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Config {
    pub policy: [u8; POLICY_SIZE],
    pub topology: [u8; TOPOLOGY_SIZE],
    pub cpus: u64,
    pub llcs: u64,
    pub waiting: u64,
    pub misfits: u64,
    pub epochs: u64,
    pub llc_loads: u64,
    pub slice_ns: u64,
    pub slice_min_ns: u64,
    pub lag_ns: u64,
    pub preempt_ns: u64,
    pub balance_ns: u64,
    pub steal_remote_ns: u64,
    pub memories: u64,
    pub memory_mask: u32,
    pub nr_llcs: u32,
    pub nr_possible: u32,
    pub detail: u8,
    pub capacities: u8,
    pub cache: u8,
    pub utils: u8,
    pub slots: u64,
    pub nr_slots: u32,
    pub follows: u32,
    pub bands: u64,
    pub overload: u64,
    pub overloaded: u64,
    pub band_period_ns: u64,
    pub band_share_ns: u64,
    pub nr_bands: u32,
    pub band_cgroups: u32,
    pub groups: u64,
    pub nr_groups: u32,
    pub credits: u32,
}

/// `struct perch_exit`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Exit {
    pub code: i64,
    pub kind: i32,
    pub pad: u32,
    pub reason: [u8; 128],
    pub message: [u8; 1024],
}

/// Structures that may be copied as bytes.
///
/// # Safety
/// `repr(C)` without padding that a compiler chooses: every byte is initialised, and every bit
/// pattern is a value.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: an integer.
unsafe impl Plain for u64 {}
// SAFETY: integers and arrays of them; padding is spelled out (checked by the test of layouts,
// whose sizes would differ from the sums of the fields below).
unsafe impl Plain for Cpu {}
// SAFETY: as above.
unsafe impl Plain for Llc {}
// SAFETY: as above.
unsafe impl Plain for Band {}
// SAFETY: as above.
unsafe impl Plain for Overload {}
// SAFETY: as above.
unsafe impl Plain for Slot {}
// SAFETY: as above.
unsafe impl Plain for Group {}
// SAFETY: as above.
unsafe impl Plain for Config {}
// SAFETY: as above.
unsafe impl Plain for Exit {}

const _: () = assert!(
    size_of::<Cpu>() == 6 * 8 + 6 * 4 + 8 + 12 * 4 + 64 + 16 + 8 * (MAX_EVENTS + MAX_REASONS)
);
const _: () = assert!(size_of::<Llc>() == 64);
const _: () = assert!(size_of::<Slot>() == 64);
const _: () = assert!(size_of::<Group>() == 64);
const _: () = assert!(size_of::<Memory>() == 64);
const _: () = assert!(size_of::<Config>() == POLICY_SIZE + TOPOLOGY_SIZE + 21 * 8 + 32);
const _: () = assert!(size_of::<Band>() == 256);
const _: () = assert!(size_of::<Overload>() == 24);
const _: () = assert!(size_of::<Exit>() == 16 + 128 + 1024);

/// The bytes of a value.
pub(crate) fn bytes<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: `Plain` says that every byte is initialised.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}
