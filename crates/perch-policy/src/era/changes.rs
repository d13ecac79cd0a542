// SPDX-License-Identifier: GPL-2.0-or-later
//! The changes to stock kernels that the simulation follows, each with the first version that has
//! it: the one place that dates a rule.
//!
//! Dates are those of mainline releases. Stable and vendors' kernels take changes over earlier.
//! Where only two kernels are known to lie around a change, its row says which, and which date was
//! taken for it; without a better hint that is the first kernel that was read and has the change.

use super::Era;

/// A change to the stock kernel: a row of [`CHANGES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The change.
    pub change: Change,
    /// The first era that has it.
    pub since: Era,
    /// What kernels do since, in a few words.
    pub name: &'static str,
    /// The commit; empty where it is unknown.
    pub commit: &'static str,
    /// How far the date is to be trusted; empty where it is known.
    pub doubt: &'static str,
    /// Why the kernel changed, or what it did before.
    pub why: &'static str,
}

macro_rules! changes {
    ($($change:ident: $major:literal, $minor:literal, $name:literal,
       $commit:literal, $doubt:literal, $why:literal;)*) => {
        /// The name of a change to the stock kernel; the rules ask for it ([`Era::has`]).
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Change {
            $(#[doc = $name] $change,)*
        }

        /// Every change, in the order of [`Change`] and of their dates.
        pub const CHANGES: &[Row] = &[$(Row {
            change: Change::$change,
            since: Era::at($major, $minor),
            name: $name,
            commit: $commit,
            doubt: $doubt,
            why: $why,
        },)*];
    };
}

changes! {
    TurnsGoOn: 3, 15,
        "a group that its CPU picks again goes on with its turn",
        "678d5718d8d0", "from memory",
        "a pick puts back and sets only the levels that differ";
    GrowingIntervals: 3, 16,
        "intervals of balancing grow with the domain",
        "143e1e28cb40", "from memory",
        "one function sets up the domains of every level";
    BusyFactor32: 3, 16,
        "intervals are 32 times as long on busy CPUs (64 before)",
        "143e1e28cb40", "from memory",
        "one function sets up the domains of every level";
    RtPushByInterrupt: 4, 1,
        "a CPU that turns to something lower asks overloaded CPUs by interrupt to push (it pulled before)",
        "b6366f048e0c", "from memory; the model has the rounds of 4.15 (4bdced5c9a29)",
        "many CPUs that pulled at once fought for one queue's lock";
    Averages: 4, 9,
        "wake-ups, groups and balancing go by PELT's averages, and the scan goes CPU by CPU",
        "10e2f1acd010", "parts came from 3.8 (PELT) to 5.5 (kinds of groups); taken as 4.9 for all",
        "the model of 3.4 is one piece: its loads are weights, which only its own search can compare; 4.9 \
         brought the scan. The slow path, the balancer (5.5) and the recent CPU (4.16) come early with it";
    WakeCap: 4, 9,
        "on asymmetric machines a wake-up that fits badly is balanced like a fork (wake_cap)",
        "3273163c6775", "from memory",
        "wake-ups saw no difference between CPUs";
    ScanByCost: 4, 9,
        "the idle scan goes as far as its cost allows (SIS_PROP)",
        "", "between 4.9 (the scan) and 5.5, taken as 4.9 for want of that kernel's rule",
        "scans of large LLCs cost more than they found";
    MovedIsCold: 4, 9,
        "a task that has just been moved is no longer cache-hot",
        "", "between 3.4 and 5.5, taken as 4.9",
        "its data is on the CPU that it came from";
    OldestFirst: 4, 15,
        "balancing looks first at the task that was picked least recently",
        "", "from memory",
        "the task that was queued last has the warmest cache";
    Uclamp: 5, 3,
        "tasks have uclamp",
        "", "",
        "user space knows what a task needs";
    Preemptible: 5, 5,
        "code of the kernel is preempted",
        "", "a choice of configuration, not a change; taken as that of the tables of 5.5",
        "arm64's default; every kernel with PREEMPT_DYNAMIC";
    PipeWakesOne: 5, 5,
        "a write to an empty pipe wakes one reader, a read of a full one wakes one writer",
        "0ddad21d3e99", "",
        "every write, and every read that freed a page, woke all that waited";
    BoundedSlices: 5, 5,
        "slices lie between the shortest slice and the latency",
        "0c2de3f054a5", "5.13 in Linux, from memory; the model has it since 5.5",
        "slices of light tasks got too short to be of use";
    NumaImbalance: 5, 6,
        "a few tasks may stay together on a NUMA node",
        "b396f52326de", "",
        "pairs that talk were torn apart";
    CapacityScan: 5, 7,
        "wake_cap is gone; asymmetric machines scan for a CPU that fits",
        "000619680c37", "",
        "the slow path is too slow for wake-ups";
    CountsWaiting: 5, 7,
        "balancing classifies groups also by the tasks that wait (runnable averages)",
        "070f5e860ee2", "between 5.6 and 6.1; 5.7 from memory",
        "utilisation alone cannot tell a CPU that is full from one that is overloaded";
    LaterGroups: 5, 8,
        "fork and exec count waiting tasks, compare full groups by load, and break ties by utilisation",
        "6c8116c914b6", "5.7 to 5.9 in three parts, taken as 5.8, which fixed the load",
        "the groups of 5.5 forgot to work out the load";
    WideImbalance117: 5, 10,
        "domains beyond the LLC tolerate 17 % (25 % before)",
        "2208cdaa56c9", "",
        "25 % left CPUs of small systems uneven for long";
    BusyFactor16: 5, 10,
        "intervals are 16 times as long on busy CPUs, and a tick shorter than that",
        "e4d32e4d5444", "the tick is known; the factor from memory",
        "passes of several levels fell due together for ever";
    RecentAlways: 5, 10,
        "each search replaces a wakee's recent CPU",
        "", "",
        "until then only a search that took it did, and a waker that pulls remembered its own CPU";
    LlcByTasks: 5, 10,
        "within an LLC balancing fills spare capacity by number of tasks",
        "16b0a7a1a0af", "between 5.6 and 6.1; 5.10 from memory",
        "tasks of little utilisation were left on one CPU";
    LoadByFailures: 5, 10,
        "each failed pass doubles the load that a task may have and still be moved",
        "5a7f55590467", "",
        "with few tasks of great load none was small enough";
    PinnedFits: 5, 12,
        "a task that is pinned to one CPU is never a misfit",
        "0ae78eec8aa6", "between 5.6 and 6.1; 5.12 from memory",
        "passes failed for a task that cannot move";
    PushesForTasks: 5, 12,
        "repeated failures push the running task only if the pass was to count tasks",
        "e9b9734b7465", "between 5.6 and 6.1; 5.12 from memory",
        "pushes made tasks swap CPUs without end";
    LargerByTwentieth: 5, 13,
        "a capacity is larger from 5 % on, and a misfit goes to a CPU, not a group, that is larger",
        "4aed8aa41524", "",
        "a quarter hid the differences between mid-sized and big CPUs";
    NewidleByCost: 5, 17,
        "a newly idle CPU compares its idle time with the pass's cost alone",
        "c5b0a7eefc70", "between 5.10 and 6.1; 5.17 from memory",
        "0.5 ms is far more than most passes cost";
    SisUtil: 6, 0,
        "the idle scan goes as far as the LLC's utilisation allows (SIS_UTIL)",
        "70fb5ccf2ebb", "",
        "average idle time says little about the chance to find an idle CPU";
    IdleByWakeList: 6, 0,
        "an idle CPU of the waker's LLC enqueues the wakee itself",
        "f3dd3f674555", "5.8 did so for a wakee that still goes to sleep there",
        "the waker pays for less, and the idle CPU has time";
    UtilOfMany: 6, 1,
        "a pass that moves utilisation takes none from a queue with one task",
        "", "between 5.6 and 6.1, taken as 6.1",
        "that task runs, so it cannot be detached";
    UtilByFailures: 6, 1,
        "a pass that moves utilisation counts util_est, and halves it with each failed pass",
        "", "between 5.6 and 6.1, taken as 6.1",
        "no task was small enough, and the pass failed for ever";
    PendingUntilQueued: 6, 2,
        "a CPU with a wakee on its list counts as taken until it has enqueued it",
        "d6962c4fe8f9", "before, it cleared the flag first",
        "others saw it idle in between, and chose it too";
    UtilFitsCpu: 6, 2,
        "the margin of a fifth is for utilisation alone, not for uclamp",
        "48d5e9daa8b7", "",
        "a task clamped to a CPU's capacity did not fit that CPU";
    StopsAtMean: 6, 3,
        "a fully busy group beyond the mean load takes nothing",
        "91dcf1e8068e", "between 5.6 and 6.5; 6.3 by the tag that merged it",
        "the difference wrapped around";
    LastFullyBusy: 6, 5,
        "of several fully busy groups the last is the busiest",
        "5fd6d7f43958", "between 6.1 and 6.5, taken as 6.5",
        "a core whose threads are busy is to shed a task";
    IdleCoreBalances: 6, 5,
        "a CPU of an idle core balances for its group",
        "b1bfeab9b002", "6.6 in Linux; the model has it since 6.5",
        "a thread of a busy core is a poor place for the task that it pulls";
    Eevdf: 6, 6,
        "the fair class is EEVDF",
        "147f3efaa241", "",
        "CFS had no notion of latency but heuristics";
    RatedContributions: 6, 7,
        "a queue reports to its group once a millisecond at most",
        "1528c661c24b", "",
        "on large machines the group's line was contended";
    EstGotAll: 6, 8,
        "util_est of a task that waited for its CPU stays",
        "50181c0cff31", "",
        "what it used is less than what it wanted";
    BornByQueue: 6, 10,
        "a task is born with the utilisation of its queue",
        "72bffbf57c52", "",
        "an error of scale made it half of what the CPU has left";
    NowhereLarger: 6, 10,
        "a task on the largest CPU that it may use is no misfit",
        "22d5607400c6", "between 6.1 and 6.12; 6.10 by the date of the commit",
        "passes failed for a task that has no better CPU";
    MisfitNoFailure: 6, 10,
        "a pass that could not move a misfit is no failed pass",
        "58eeb2d79b54", "between 6.1 and 6.12; 6.10 by the date of the commit",
        "it says nothing about the machine's load";
    DelayedDequeue: 6, 12,
        "a task that sleeps while it owes time stays queued, as does its group",
        "152e11f6df29", "",
        "sleepers got rid of what they owed";
    FairServer: 6, 12,
        "a server runs starving fair tasks; the real-time class is not throttled",
        "557a6bfc662c", "",
        "throttling left CPUs idle that real-time tasks could use";
    EligibleFirst: 6, 14,
        "balancing moves no delayed task, and one that owes time last",
        "", "",
        "such a task would not run where it is taken";
    PipeWakesForPage: 6, 14,
        "a read wakes a writer only if it frees a page of a full pipe",
        "aaec5a95d596", "",
        "the writer found the pipe still full and slept again";
    Slice700Us: 6, 15,
        "the slice is 0.70 ms (0.75 before)",
        "2ae891b82695", "",
        "3 ms is a multiple of the tick, which made slices a tick longer";
    GroupsByAffinity: 6, 19,
        "fork and exec compare groups by the CPUs that the task may use",
        "82d6e01a0699", "",
        "a group of which a task may use one CPU looked as idle as all its CPUs";
    NewidleBySuccess: 6, 19,
        "newidle passes are drawn by lot, as often as they succeeded lately",
        "33cf66d88306", "",
        "most passes find nothing";
    YieldForfeits: 6, 19,
        "a task that yields while it is owed time forfeits the rest of its slice",
        "79104becf42b", "between 6.12 and 7.2; 6.19 by the date of the commit",
        "it was picked again at once";
    PreemptLazy: 7, 0,
        "the kernel is preempted lazily",
        "", "a choice of configuration, whose default changed in 7.0",
        "fair tasks gave way more often than throughput wants";
    ExtServer: 7, 0,
        "a server runs starving tasks of sched_ext, too",
        "", "not in Debian's 6.19.14, in its 7.0.13",
        "real-time tasks that never sleep had their scheduler thrown out";
    RtPullsAgain: 7, 1,
        "a CPU pulls itself again, unless the kernel is PREEMPT_RT",
        "", "RT_PUSH_IPI is on in Debian's 7.0.13 and off in its 7.1.13",
        "interrupts cost more than the locks where these are held for a short time";
    WholeWeights: 7, 2,
        "queues reckon with weights in full",
        "", "between 6.18 and 7.2, taken as 7.2",
        "groups of small shares lost their last bits";
    LagSliceAndTick: 7, 2,
        "a task keeps lag of a slice and a tick (two slices before)",
        "", "between 6.18 and 7.2, taken as 7.2",
        "a task overruns its slice by a tick at most";
    KeepsOlderLag: 7, 2,
        "a delayed task leaves with the greater of its lags",
        "", "between 6.18 and 7.2, taken as 7.2",
        "a delayed task could owe more than when it fell asleep";
    PreemptsAgain: 7, 2,
        "a wake-up dequeues a delayed task that it finds and looks again; forks preempt nobody",
        "", "between 6.18 and 7.2 in parts, the first in 6.19; taken as 7.2",
        "a delayed task at the head kept wakees from preempting";
    MovesDelayed: 7, 2,
        "a pass that moves load moves delayed tasks too",
        "", "between 6.14 and 7.2, taken as 7.2",
        "their load counts where they are queued";
    EstBeyondCapacity: 7, 2,
        "util_est of a task that uses more than its CPU's capacity falls",
        "", "between 6.12 and 7.2, taken as 7.2",
        "an estimate from a large CPU stayed when the task ran on small ones";
    IdleSeesPolicy: 7, 2,
        "a CPU with SCHED_IDLE tasks is not idle to a SCHED_IDLE wakee",
        "", "between 6.12 and 7.2, taken as 7.2",
        "two of them share a CPU as equals";
    EmptyMaskFailsEarly: 7, 2,
        "no allowed CPU in the LLC ends the scan before its budget is read",
        "", "between 6.12 and 7.2, taken as 7.2",
        "such a scan has nothing to look at";
}

impl Change {
    /// Returns the change's row.
    pub fn row(self) -> &'static Row {
        &CHANGES[self as usize]
    }
}

/// The changes that the kernel of an era has, as a set.
#[derive(Clone, Copy)]
pub struct Changes(u128);

impl Changes {
    /// Returns whether the change is among them.
    #[inline(always)]
    pub const fn has(self, change: Change) -> bool {
        self.0 >> change as u32 & 1 != 0
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has = CHANGES.iter().map(|row| row.change).filter(|&change| self.has(change));
        let names: Vec<_> = has.map(|change| format!("{change:?}")).collect();
        write!(f, "Changes({})", names.join(" "))
    }
}

impl Era {
    /// Returns whether the era's kernel has the change.
    pub fn has(self, change: Change) -> bool {
        self >= change.row().since
    }

    /// Returns all changes that the era's kernel has.
    pub fn changes(self) -> Changes {
        const { assert!(CHANGES.len() <= 128) };
        let has = CHANGES.iter().filter(|row| self.has(row.change));
        Changes(has.map(|row| 1 << row.change as u32).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_stand_in_the_order_of_their_names_and_dates() {
        for (place, row) in CHANGES.iter().enumerate() {
            assert_eq!(row.change as usize, place);
            assert!(row.since > Era::V3_4 && row.since <= Era::V7_2, "{row:?}");
            assert_eq!(row.since.to_string().parse(), Ok(row.since), "{row:?}");
        }
        assert!(CHANGES.is_sorted_by_key(|row| row.since));
    }
}
