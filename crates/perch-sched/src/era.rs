// SPDX-License-Identifier: GPL-2.0-or-later
//! The differences between stock kernels outside the choice of a CPU: the constants of the fair
//! class and of the balancer. The wake-up path's own rules are [`perch_policy::Rules`].

use perch_policy::{Change, DomainView, Era, Level};

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

/// The balancer's rules. 3.4 has a balancer of its own (`by_weight`), which reads few of these
/// fields. 5.5 reworked the balancer from sums of load to kinds of groups, and many of the fields
/// are corrections that later kernels made to it.
#[derive(Clone, Copy, Debug)]
pub struct BalanceRules {
    /// The greatest number of tasks that one pass moves.
    pub nr_migrate: u32,
    /// The factor by which the interval between two passes is longer on a busy CPU.
    pub busy_factor: u64,
    /// True if a busy CPU's interval is a tick shorter, so that the passes of several levels do not
    /// fall due together for ever (5.10).
    pub busy_less_a_tick: bool,
    /// `imbalance_pct` of domains wider than an LLC (117 since 5.10).
    pub wide_imbalance_pct: u32,
    /// True if the balancer compares groups by the weight of their queued tasks alone (3.4:
    /// `weights.rs`).
    pub by_weight: bool,
    /// True if the intervals do not grow with the domain: they are a millisecond at least, and 8
    /// milliseconds between NUMA nodes (3.4).
    pub fixed_intervals: bool,
    /// True if the balancer moves first the task that was enqueued last, and not the one that was
    /// enqueued or picked least recently (3.4).
    pub newest_first: bool,
    /// True if a task that has just been moved no longer counts as cache-hot (not yet in 3.4).
    pub moved_is_cold: bool,
    /// A newly idle CPU does not look for work when its average idle time is shorter than this, in
    /// nanoseconds. 5.10 has this limit; in 6.1 only the cost of the pass counts.
    pub newidle_least_ns: u64,
    /// True if a newidle pass is tried at random, as often as such passes succeeded lately (6.19).
    pub newidle_by_success: bool,
    /// True if delayed tasks do not count in a queue as tasks to take, and a task that would not be
    /// eligible beside the tasks of the balancing CPU stays, unless earlier passes failed (6.14).
    pub eligible_first: bool,
    /// True if a pass that moves load moves delayed tasks too (7.2).
    pub moves_delayed: bool,
    /// True if a group is also classified by the tasks that wait in it, as runnable averages show
    /// them (not yet in 5.6).
    pub counts_waiting: bool,
    /// True if the first of several fully busy groups is taken as the busiest (still so in 6.1).
    pub fully_busy_first: bool,
    /// True if a CPU of an idle core, where there is one among the idle CPUs, balances for its
    /// group.
    pub idle_core_balances: bool,
    /// True if a local group that is fully busy takes nothing once its load exceeds the mean. In
    /// 5.6 the difference still wraps around, and the group takes the load that the busiest has
    /// beyond the mean.
    pub stops_at_mean: bool,
    /// True if, within an LLC, the balancer fills spare capacity by number of tasks and not by
    /// utilisation (not yet in 5.6).
    pub llc_by_tasks: bool,
    /// True if a few tasks may stay together on a NUMA node (new in 5.6).
    pub numa_imbalance: bool,
    /// True if a pass that moves utilisation takes none from a queue with one task (not yet in
    /// 5.6).
    pub util_of_many: bool,
    /// True if a pass that moves utilisation counts a task with its util_est where that is greater,
    /// and each failed pass halves it (in 6.1, not yet in 5.6).
    pub util_by_failures: bool,
    /// True if each failed pass doubles the load that a task may have and still be moved, beginning
    /// with the imbalance. In 5.6 that load may be twice the imbalance, and any load after a few
    /// failures.
    pub load_by_failures: bool,
    /// True if repeated failures push the running task over, whatever the pass was to move. Later
    /// kernels do so only if the pass was to move a number of tasks.
    pub pushes_for_all: bool,
    /// True if a pass that could not move a misfit does not count as failed (in 6.12, not yet in
    /// 6.1).
    pub misfit_no_failure: bool,
    /// The tasks that never are misfits.
    pub stuck: Stuck,
    /// The ratio from which a capacity counts as larger than another, in 1024ths: a quarter more;
    /// since 5.13 a twentieth more.
    pub larger_1024: u64,
    /// True if misfits go to groups with larger CPUs; since 5.13 the balancing CPU itself must be
    /// larger.
    pub larger_by_group: bool,
    /// True if uclamp bounds the utilisation before it is compared with a capacity and its margin;
    /// since 6.2 the margin is for the utilisation alone (`util_fits_cpu`).
    pub clamps_util: bool,
}

/// The rules by which task groups are scheduled.
#[derive(Clone, Copy, Debug)]
pub struct GroupRules {
    /// True if the load of a group is the weight that is queued now, and that weight's average over
    /// windows of 10 ms, and not PELT's average (3.4).
    pub by_weight: bool,
    /// The shortest time between two reports of a queue's load to its group, in nanoseconds (since
    /// 6.7).
    pub contribution_ns: u64,
    /// True if a group keeps its weight when its queue is empty (since 6.12, because a delayed
    /// group stays queued).
    pub keeps_empty: bool,
    /// True if a group begins a new turn whenever its CPU picks, even if the same group goes on
    /// (3.4).
    pub turns_anew: bool,
}

/// An era's rules on one machine.
#[derive(Clone, Copy, Debug)]
pub struct EraRules {
    /// The fair class.
    pub fair: FairRules,
    /// The balancer.
    pub balance: BalanceRules,
    /// The preemption model of the kernel's configuration.
    pub preemption: Preemption,
    /// Task groups.
    pub groups: GroupRules,
    /// A task that ran more recently than this, in nanoseconds, is cache-hot. It is also the least
    /// ceiling of `max_newidle_lb_cost`. It is 0.5 ms in every era.
    pub migration_cost_ns: u64,
    /// True if the length of an idle scan depends on the average idle time of the waker's CPU and
    /// on the cost of scans (SIS_PROP, until 5.19), and not on the LLC's utilisation (SIS_UTIL).
    pub scan_by_cost: bool,
    /// True if the util_est of a task that uses more than its CPU's capacity does not fall (still
    /// so in 6.12).
    pub est_within_capacity: bool,
    /// True if the util_est of a task that waited for its CPU does not fall: what it used is less
    /// than what it wanted (6.8).
    pub est_got_all: bool,
    /// True if the first utilisation of a task follows that of its CPU's queue; before 6.10 an
    /// error of scale made it half of the CPU's spare capacity wherever the queue had any.
    pub born_by_queue: bool,
    /// True if the waker hands a task for an idle CPU of its own LLC to that CPU, which enqueues it
    /// (6.0). Earlier wakers enqueue it there themselves. A task that its CPU is about to switch
    /// away from goes there without a choice (5.8; here from 6.0 on); earlier wakers wait for the
    /// switch.
    pub idle_by_wake_list: bool,
    /// True if a CPU that takes a wakee off its list counts as taken until it has enqueued it.
    pub pending_until_queued: bool,
    /// EEVDF: true if a task or group that sleeps while it owes time stays queued (since 6.12).
    /// Before, it leaves and keeps its lag.
    pub delays_dequeue: bool,
    /// EEVDF: true if a delayed task leaves with the greater of its lag then and when it fell asleep
    /// (7.2); in 6.12 with its lag then.
    pub keeps_older_lag: bool,
    /// EEVDF: true if a wake-up looks again after it found a delayed task at the head of the queue,
    /// which it dequeues, and asks for the next buddy first; and if forks preempt nobody (7.2).
    pub preempts_again: bool,
    /// EEVDF: true if queues reckon with weights in the kernel's full unit, 1,048,576 at nice 0
    /// (7.2). Before, they drop the last ten bits, which only groups have. The simulation's weights
    /// have none of these bits; recorded ones do.
    pub whole_weights: bool,
    /// EEVDF: the rule for how much lag a task keeps.
    pub lag: LagLimit,
    /// EEVDF: true if a task that yields while it is owed time forfeits the rest of its slice
    /// (6.19). In 6.12 the deadline of every task that yields moves on by a slice, and its vruntime
    /// stays.
    pub yield_forfeits: bool,
    /// True if a CPU that turns from a real-time task to something lower asks the overloaded CPUs by
    /// interrupt to push their tasks, and pulls none itself (RT_PUSH_IPI, 4.1 to 7.0).
    pub rt_asks: bool,
    /// The means that keep real-time tasks from taking all the time of a CPU.
    pub rt_limit: RtLimit,
    /// The server gives its share to tasks of sched_ext as well.
    pub serves_ext: bool,
}

impl BalanceRules {
    /// Returns the balancer's rules of `era`.
    fn new(era: Era) -> BalanceRules {
        let by_weight = !era.has(Change::Averages);
        BalanceRules {
            nr_migrate: 32,
            busy_factor: match (era.has(Change::BusyFactor32), era.has(Change::BusyFactor16)) {
                (false, _) => 64,
                (true, false) => 32,
                (true, true) => 16,
            },
            busy_less_a_tick: era.has(Change::BusyFactor16),
            wide_imbalance_pct: if era.has(Change::WideImbalance117) { 117 } else { 125 },
            by_weight,
            fixed_intervals: !era.has(Change::GrowingIntervals),
            newest_first: !era.has(Change::OldestFirst),
            moved_is_cold: era.has(Change::MovedIsCold),
            newidle_least_ns: if era.has(Change::NewidleByCost) { 0 } else { 500_000 },
            newidle_by_success: era.has(Change::NewidleBySuccess),
            eligible_first: era.has(Change::EligibleFirst),
            moves_delayed: era.has(Change::MovesDelayed),
            counts_waiting: era.has(Change::CountsWaiting),
            fully_busy_first: !era.has(Change::LastFullyBusy),
            idle_core_balances: era.has(Change::IdleCoreBalances),
            stops_at_mean: era.has(Change::StopsAtMean),
            llc_by_tasks: era.has(Change::LlcByTasks),
            numa_imbalance: era.has(Change::NumaImbalance),
            util_of_many: era.has(Change::UtilOfMany),
            util_by_failures: era.has(Change::UtilByFailures),
            load_by_failures: era.has(Change::LoadByFailures),
            pushes_for_all: !era.has(Change::PushesForTasks),
            misfit_no_failure: era.has(Change::MisfitNoFailure),
            stuck: match (era.has(Change::PinnedFits), era.has(Change::NowhereLarger)) {
                (false, _) => Stuck::Nobody,
                (true, false) => Stuck::Pinned,
                (true, true) => Stuck::NowhereLarger,
            },
            larger_1024: if era.has(Change::LargerByTwentieth) { 1078 } else { 1280 },
            larger_by_group: !era.has(Change::LargerByTwentieth),
            clamps_util: !era.has(Change::UtilFitsCpu),
        }
    }

    /// Returns `imbalance_pct` of `domain`: the load from which a group counts as imbalanced, in
    /// percent of the other group's.
    pub fn imbalance_pct(&self, domain: &DomainView<'_>) -> u32 {
        let near = if self.by_weight { domain.level() == Level::Smt } else { domain.shares_llc() };
        if near { domain.imbalance_pct() } else { self.wide_imbalance_pct }
    }

    /// Returns whether the capacity `this` is so much larger than `other` that the balancer cares
    /// (`larger_1024`).
    pub fn is_larger(&self, this: u32, other: u32) -> bool {
        u64::from(this) * 1024 > u64::from(other) * self.larger_1024
    }
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
            fair,
            balance: BalanceRules::new(era),
            groups: GroupRules {
                by_weight: !era.has(Change::Averages),
                contribution_ns: if era.has(Change::RatedContributions) { 1_000_000 } else { 0 },
                keeps_empty: era.has(Change::DelayedDequeue),
                turns_anew: !era.has(Change::TurnsGoOn),
            },
            migration_cost_ns: 500_000,
            scan_by_cost: era.has(Change::ScanByCost) && !era.has(Change::SisUtil),
            preemption: match (era.has(Change::Preemptible), era.has(Change::PreemptLazy)) {
                (false, _) => Preemption::Voluntary,
                (true, false) => Preemption::Full,
                (true, true) => Preemption::Lazy,
            },
            est_within_capacity: !era.has(Change::EstBeyondCapacity),
            est_got_all: era.has(Change::EstGotAll),
            born_by_queue: era.has(Change::BornByQueue),
            idle_by_wake_list: era.has(Change::IdleByWakeList),
            pending_until_queued: era.has(Change::PendingUntilQueued),
            delays_dequeue: era.has(Change::DelayedDequeue),
            keeps_older_lag: era.has(Change::KeepsOlderLag),
            preempts_again: era.has(Change::PreemptsAgain),
            whole_weights: era.has(Change::WholeWeights),
            lag: if era.has(Change::LagSliceAndTick) {
                LagLimit::SliceAndTick
            } else {
                LagLimit::TwoSlices
            },
            yield_forfeits: era.has(Change::YieldForfeits),
            rt_asks: era.has(Change::RtPushByInterrupt) && !era.has(Change::RtPullsAgain),
            rt_limit: if era.has(Change::FairServer) { RtLimit::Server } else { RtLimit::Throttle },
            serves_ext: era.has(Change::ExtServer),
        }
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
