// SPDX-License-Identifier: GPL-2.0-or-later
//! The differences between stock kernels outside the choice of a CPU: the constants of the fair
//! class and of the balancer. The wake-up path's own rules are [`perch_policy::Rules`].

use perch_policy::{Change, Changes, DomainView, Era, Level};

/// The fair class of an era and its constants, scaled for the machine; all in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum FairRules {
    /// CFS (docs/mechanisms/stock.md#cfs).
    Cfs {
        /// `sched_latency`: the period in which every runnable task runs once; a sleeper is
        /// credited half of it.
        latency_ns: u64,
        /// `sched_min_granularity`: the shortest slice.
        min_granularity_ns: u64,
        /// `sched_wakeup_granularity`: how far the running task must be ahead of a wakee that
        /// preempts it.
        wakeup_granularity_ns: u64,
        /// True if a slice lies between the shortest slice and the latency. 3.4 does not bound its
        /// slices yet.
        bounded: bool,
    },
    /// EEVDF (docs/mechanisms/stock.md#eevdf).
    Eevdf {
        /// `base_slice`: the slice that every task asks for.
        slice_ns: u64,
    },
}

/// The rule for how far from its queue's virtual time an entity may be when it leaves the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LagLimit {
    /// The limit is two slices, and at least a tick (6.12).
    TwoSlices,
    /// The limit is a slice and a tick (7.2).
    SliceAndTick,
}

impl LagLimit {
    /// Returns the limit in nanoseconds of run time at weight 1024, for slices of `slice_ns` and
    /// ticks of `tick_ns`.
    pub fn ns(self, slice_ns: u64, tick_ns: u64) -> u64 {
        match self {
            LagLimit::TwoSlices => (2 * slice_ns).max(tick_ns),
            LagLimit::SliceAndTick => slice_ns + tick_ns,
        }
    }
}

/// The running tasks that never count as misfits, however far they exceed their CPU's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// Every task can count as a misfit.
    Nobody,
    /// Tasks that are pinned to one CPU never count (not yet in 5.6).
    Pinned,
    /// Tasks on the largest CPU that they may use never count (in 6.12, not yet in 6.1).
    NowhereLarger,
}

/// The means by which fair tasks get a share of a CPU beside real-time tasks that never sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtLimit {
    /// The real-time class may use 950 ms of each second (`sched_rt_runtime_us`, up to 6.11).
    Throttle,
    /// The kernel gives starving fair tasks 50 ms of each second (`fair_server`, since 6.12).
    Server,
}

/// How eagerly the kernel makes a running task give way: a choice of the kernel's configuration,
/// which each era has as the kernels did that its tables were measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// Code of the kernel is not preempted (`PREEMPT_NONE`, `PREEMPT_VOLUNTARY` without
    /// `PREEMPT_DYNAMIC`).
    Voluntary,
    /// Code of the kernel is preempted at once (`CONFIG_PREEMPTION`, as arm64's default was and as
    /// every kernel with `PREEMPT_DYNAMIC` is built).
    Full,
    /// As `Full`, but a fair task that is to give way on another CPU gets no interrupt: it goes on
    /// until it leaves the kernel next, and at most until its CPU's tick (`PREEMPT_LAZY`, the
    /// default since 7.0 where the architecture has it).
    Lazy,
}

/// The most tasks that one pass of the balancer moves.
pub const NR_MIGRATE: u32 = 32;

/// A task that ran more recently than this, in nanoseconds, is cache-hot. It is also the least ceiling
/// of `max_newidle_lb_cost`.
pub const MIGRATION_COST_NS: u64 = 500_000;

/// An era's rules on one machine: the changes that its kernel has, and the constants that depend on
/// them. What a change does stands in its row of [`perch_policy::CHANGES`].
#[derive(Clone, Copy, Debug)]
pub struct EraRules {
    changes: Changes,
    /// The fair class.
    pub fair: FairRules,
    /// The preemption model of the kernel's configuration.
    pub preemption: Preemption,
    /// The factor by which the interval between two passes is longer on a busy CPU.
    pub busy_factor: u64,
    /// `imbalance_pct` of domains wider than an LLC.
    pub wide_imbalance_pct: u32,
    /// A newly idle CPU does not look for work when its average idle time is shorter than this, in
    /// nanoseconds.
    pub newidle_least_ns: u64,
    /// The tasks that never are misfits.
    pub stuck: Stuck,
    /// The ratio from which a capacity counts as larger than another, in 1024ths.
    pub larger_1024: u64,
    /// The shortest time between two reports of a queue's load to its group, in nanoseconds.
    pub contribution_ns: u64,
    /// EEVDF: the rule for how much lag a task keeps.
    pub lag: LagLimit,
    /// The means that keep real-time tasks from taking all the time of a CPU.
    pub rt_limit: RtLimit,
}

impl EraRules {
    /// Returns the rules of `era` on a machine with `nr_cpus` CPUs. Slices grow with the logarithm
    /// of the number of CPUs up to 8, as the kernel's default `tunable_scaling` has it.
    pub fn new(era: Era, nr_cpus: usize) -> EraRules {
        let factor = u64::from(1 + (nr_cpus.clamp(1, 8) as u32).ilog2());
        let fair = match era.has(Change::Eevdf) {
            false => FairRules::Cfs {
                latency_ns: 6_000_000 * factor,
                min_granularity_ns: 750_000 * factor,
                wakeup_granularity_ns: 1_000_000 * factor,
                bounded: era.has(Change::BoundedSlices),
            },
            true if era.has(Change::Slice700Us) => FairRules::Eevdf { slice_ns: 700_000 * factor },
            true => FairRules::Eevdf { slice_ns: 750_000 * factor },
        };
        EraRules {
            changes: era.changes(),
            fair,
            preemption: match (era.has(Change::Preemptible), era.has(Change::PreemptLazy)) {
                (false, _) => Preemption::Voluntary,
                (true, false) => Preemption::Full,
                (true, true) => Preemption::Lazy,
            },
            busy_factor: match (era.has(Change::BusyFactor32), era.has(Change::BusyFactor16)) {
                (false, _) => 64,
                (true, false) => 32,
                (true, true) => 16,
            },
            wide_imbalance_pct: if era.has(Change::WideImbalance117) { 117 } else { 125 },
            newidle_least_ns: if era.has(Change::NewidleByCost) { 0 } else { 500_000 },
            stuck: match (era.has(Change::PinnedFits), era.has(Change::NowhereLarger)) {
                (false, _) => Stuck::Nobody,
                (true, false) => Stuck::Pinned,
                (true, true) => Stuck::NowhereLarger,
            },
            larger_1024: if era.has(Change::LargerByTwentieth) { 1078 } else { 1280 },
            contribution_ns: if era.has(Change::RatedContributions) { 1_000_000 } else { 0 },
            lag: if era.has(Change::LagSliceAndTick) {
                LagLimit::SliceAndTick
            } else {
                LagLimit::TwoSlices
            },
            rt_limit: if era.has(Change::FairServer) { RtLimit::Server } else { RtLimit::Throttle },
        }
    }

    /// Returns whether the era's kernel has the change.
    #[inline(always)]
    pub fn has(&self, change: Change) -> bool {
        self.changes.has(change)
    }

    /// Returns whether the kernel is 3.4's, which balances and shares by the weight of queued tasks
    /// (`balance/weights.rs`) and has no averages of load.
    #[inline(always)]
    pub fn by_weight(&self) -> bool {
        !self.has(Change::Averages)
    }

    /// Returns whether the length of an idle scan depends on the average idle time of the waker's CPU
    /// and on the cost of scans (SIS_PROP), and not on the LLC's utilisation (SIS_UTIL).
    #[inline(always)]
    pub fn scans_by_cost(&self) -> bool {
        self.has(Change::ScanByCost) && !self.has(Change::SisUtil)
    }

    /// Returns whether a CPU that turns from a real-time task to something lower asks the overloaded
    /// CPUs by interrupt to push their tasks, and pulls none itself (RT_PUSH_IPI).
    #[inline(always)]
    pub fn asks_to_push(&self) -> bool {
        self.has(Change::RtPushByInterrupt) && !self.has(Change::RtPullsAgain)
    }

    /// Returns `imbalance_pct` of `domain`: the load from which a group counts as imbalanced, in
    /// percent of the other group's.
    pub fn imbalance_pct(&self, domain: &DomainView<'_>) -> u32 {
        let near =
            if self.by_weight() { domain.level() == Level::Smt } else { domain.shares_llc() };
        if near { domain.imbalance_pct() } else { self.wide_imbalance_pct }
    }

    /// Returns whether the capacity `this` is so much larger than `other` that the balancer cares
    /// (`larger_1024`).
    pub fn is_larger(&self, this: u32, other: u32) -> bool {
        u64::from(this) * 1024 > u64::from(other) * self.larger_1024
    }
}

/// The load weight of each nice level from -20 to 19: a step changes it by a quarter; nice 0 is
/// 1024. The values are the user-visible ones of the kernel's documentation (sched-nice-design).
pub const NICE_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];

#[cfg(test)]
mod tests;
