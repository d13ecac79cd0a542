// SPDX-License-Identifier: GPL-2.0-or-later
//! The structures that the loader and the BPF program share: `bpf/interface.h`, as scripts/mirrors
//! has it, by shorter names.

#[rustfmt::skip]
#[allow(missing_docs, non_camel_case_types, dead_code, clippy::all)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod generated;

pub use generated::{
    PERCH_ARENA_BASE as ARENA_BASE, PERCH_BAND_CGROUP as BAND_CGROUP, PERCH_BAND_COMM as BAND_COMM,
    PERCH_BAND_NICE as BAND_NICE, PERCH_BAND_USER as BAND_USER, PERCH_NONE as NONE,
    perch_band as Band, perch_config as Config, perch_cpu as Cpu, perch_exit as Exit,
    perch_group_cell as GroupCell, perch_group_slot as Group, perch_group_waits as GroupWaits,
    perch_idle as Idle, perch_llc as Llc, perch_memory as Memory, perch_slot as Slot,
    perch_wait as Wait, perch_waits as Waits,
};
pub use perch_policy::mirror::{Occupancy, Overload, Process, Seat};

/// How many events a CPU has counters for.
pub const MAX_EVENTS: usize = generated::PERCH_MAX_EVENTS as usize;
/// How many reasons a CPU has counters for.
pub const MAX_REASONS: usize = generated::PERCH_MAX_REASONS as usize;
/// How many buckets a CPU has for the waits of one reason.
pub const WAIT_BUCKETS: usize = generated::PERCH_WAIT_BUCKETS as usize;
/// How many rules the real-time band may have.
pub const MAX_BANDS: usize = generated::PERCH_MAX_BANDS as usize;
/// Bytes of a rule's command name, its 0 included.
pub const BAND_GLOB: usize = generated::PERCH_BAND_GLOB as usize;
/// Bytes of a rule's cgroup path.
pub const BAND_PATH: usize = generated::PERCH_BAND_PATH as usize;
/// Bytes of one folder's name in such a path, its 0 included.
pub const BAND_NAME: usize = generated::PERCH_BAND_NAME as usize;

macro_rules! counted {
    ($of:ident, $about:literal: $($variant:ident = $name:literal, $help:literal;)*) => {
        #[doc = $about]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(usize)]
        pub enum $of { $(#[doc = $help] $variant,)* }

        impl $of {
            /// All of them, by number.
            pub const ALL: &'static [$of] = &[$($of::$variant,)*];

            /// The name under which it is counted.
            pub fn name(self) -> &'static str {
                match self { $($of::$variant => $name,)* }
            }

            /// What is counted, in a few words.
            pub fn help(self) -> &'static str {
                match self { $($of::$variant => $help,)* }
            }
        }
    };
}

counted! {
    Event, "The events that are counted besides the reasons: `enum perch_event`.":
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
    CpuOffline = "cpu_offline", "CPUs that went offline";
    CpuOnline = "cpu_online", "CPUs that came back online";
    Relieved = "relieved", "Tasks that waited so long that they came first for once";
    Parted = "parted", "Running tasks sent from a busy core to an idle one";
    Behind = "behind", "Wakees put behind their waker, which was about to sleep";
    Spread = "spread", "Wakees that left a busy LLC for the least busy one";
    LimitReached = "limit_reached", "Times that a task group had used up its cpu.max";
    LimitHeld = "limit_held", "Tasks that waited for the next period of their group's cpu.max";
    LimitPassed = "limit_passed", "Of those, tasks that ran nevertheless, having waited so long";
    Preferred = "preferred", "Running tasks sent to an idle core that the kernel prefers";
    TasksUnrecorded = "tasks_unrecorded", "Births of tasks for whose group or band the kernel had no memory";
}

counted! {
    WaitReason, "The reasons by which waits are told apart: `enum perch_wait_reason`.":
    Idle = "idle", "The task woke and was put straight on an idle CPU";
    Queued = "queued", "The task woke and was queued behind others";
    Behind = "behind", "The task woke and went behind its waker";
    Forked = "forked", "The task was forked";
    Preempted = "preempted", "The task's slice ended, or another task took its CPU";
    Moved = "moved", "The task ran on another CPU than the one that it was to run on";
    Limited = "limited", "The task was held back by its group's cpu.max";
    Band = "band", "The task is of the real-time band";
}

const _: () = assert!(Event::ALL.len() == generated::PERCH_NR_EVENTS as usize);
const _: () = assert!(WaitReason::ALL.len() == generated::PERCH_NR_WAITS as usize);

#[cfg(test)]
mod tests {
    use super::{Event, WaitReason};

    /// The names of `enum perch_event` are those of `Event`, number by number.
    #[test]
    fn events_have_the_numbers_of_c() {
        let generated = include_str!("generated.rs");
        for &event in Event::ALL {
            let name = event.name().to_uppercase();
            let line = format!("pub const PERCH_EV_{name}: perch_event = {};", event as usize);
            assert!(generated.contains(&line), "{line}");
        }
    }

    /// Likewise those of `enum perch_wait_reason`.
    #[test]
    fn wait_reasons_have_the_numbers_of_c() {
        let generated = include_str!("generated.rs");
        for &reason in WaitReason::ALL {
            let name = reason.name().to_uppercase();
            let line =
                format!("pub const PERCH_WAIT_{name}: perch_wait_reason = {};", reason as usize);
            assert!(generated.contains(&line), "{line}");
        }
    }
}
