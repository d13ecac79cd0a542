// SPDX-License-Identifier: GPL-2.0-or-later
//! What differs between stock kernels outside the choice of a CPU: the fair class's constants
//! and the balancer's. The wake-up path's own rules are [`perch_policy::Rules`].

use perch_policy::{DomainView, Era, Level};

/// Which fair class, with its constants already scaled for the machine; all nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum FairRules {
    /// CFS (docs/mechanisms/stock.md#cfs).
    Cfs {
        /// `sched_latency`: the period in which everybody runs once; a sleeper gets half.
        latency_ns: u64,
        /// `sched_min_granularity`: the shortest slice.
        min_granularity_ns: u64,
        /// `sched_wakeup_granularity`: how far behind a wakee must be to preempt.
        wakeup_granularity_ns: u64,
        /// A slice is no shorter than the shortest, and no longer than the latency (not yet in
        /// 3.4).
        bounded: bool,
    },
    /// EEVDF (docs/mechanisms/stock.md#eevdf).
    Eevdf {
        /// `base_slice`: what a task asks for.
        slice_ns: u64,
    },
}

/// How far from the queue's virtual time a task may be when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LagLimit {
    /// Two slices, and at least a tick (6.12).
    TwoSlices,
    /// A slice and a tick (7.2).
    SliceAndTick,
}

impl LagLimit {
    /// The limit, nanoseconds of run time at weight 1024.
    pub fn ns(self, slice_ns: u64, tick_ns: u64) -> u64 {
        match self {
            LagLimit::TwoSlices => (2 * slice_ns).max(tick_ns),
            LagLimit::SliceAndTick => slice_ns + tick_ns,
        }
    }
}

/// Which running tasks never count as misfits, however little of them fits their CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stuck {
    /// All count.
    Nobody,
    /// Tasks pinned to one CPU (not yet in 5.6).
    Pinned,
    /// Tasks that are on the largest CPU they may use (6.12, not yet in 6.1).
    NowhereLarger,
}

/// How fair tasks get a share beside real-time ones that never stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtLimit {
    /// The real-time class may use 950 ms of each second (`sched_rt_runtime_us`, up to 6.11).
    Throttle,
    /// Fair tasks that starve are served 50 ms of each second (`fair_server`, since 6.12).
    Server,
}

/// The balancer's rules. 3.4's is another one (`by_weight`), for which most of the fields say
/// nothing. That of 5.5 was new then (reworked from sums of load to kinds of groups,
/// 5.5), and much of what follows is how it was mended.
#[derive(Clone, Copy, Debug)]
pub struct BalanceRules {
    /// Most tasks moved by one pass.
    pub nr_migrate: u32,
    /// How much longer a busy CPU waits between two passes.
    pub busy_factor: u64,
    /// A busy CPU's interval is a tick shorter, so that levels do not fall due together for ever
    /// (5.10).
    pub busy_less_a_tick: bool,
    /// `imbalance_pct` of domains wider than an LLC (117 since 5.10).
    pub wide_imbalance_pct: u32,
    /// Groups are compared by the weight of what is queued, and nothing else (3.4: `weights.rs`).
    pub by_weight: bool,
    /// Intervals do not grow with the domain: a millisecond at least, 8 between NUMA nodes (3.4).
    pub fixed_intervals: bool,
    /// Who was queued last is moved first, not who was queued or picked least recently (3.4).
    pub newest_first: bool,
    /// A task that has just been moved is not cache-hot any more (not yet in 3.4).
    pub moved_is_cold: bool,
    /// Newly idle CPUs do not look for work when they usually idle shorter than this, nanoseconds
    /// (5.10 has it; in 6.1 only what the pass costs counts).
    pub newidle_least_ns: u64,
    /// 7.2: a newidle pass is tried at random, as often as such passes succeeded lately.
    pub newidle_by_success: bool,
    /// Groups are also classified by who waits in them: runnable averages (not yet in 5.6).
    pub counts_waiting: bool,
    /// Of fully busy groups the first found is the busiest (still so in 6.1).
    pub fully_busy_first: bool,
    /// Among idle CPUs one of an idle core balances for its group.
    pub idle_core_balances: bool,
    /// A local group that is fully busy takes nothing once it is beyond the mean load. In 5.6 the
    /// difference still wraps, and it takes what the busiest has beyond the mean.
    pub stops_at_mean: bool,
    /// Within an LLC spare capacity is filled by number of tasks, not by utilisation (not yet in 5.6).
    pub llc_by_tasks: bool,
    /// Few tasks may stay together on a NUMA node (new in 5.6).
    pub numa_imbalance: bool,
    /// A queue of one is no source of utilisation (not yet in 5.6).
    pub util_of_many: bool,
    /// A load may go that is larger than the imbalance, twice as large for each failed pass. In
    /// 5.6 it may be twice as large, and after a few failures of any size.
    pub load_by_failures: bool,
    /// Repeated failures push the running task over, whatever the pass was to move; later only if
    /// tasks were to be counted.
    pub pushes_for_all: bool,
    /// A misfit that could not be moved counts as no failure (6.12, not yet in 6.1).
    pub misfit_no_failure: bool,
    /// Who never is a misfit.
    pub stuck: Stuck,
    /// How much larger a capacity must be to count as larger, 1024ths: a quarter; since 5.13 a
    /// twentieth.
    pub larger_1024: u64,
    /// Misfits go to groups with larger CPUs; since 5.13 it is the balancing CPU itself that must
    /// be larger.
    pub larger_by_group: bool,
    /// uclamp bounds utilisation before it is held against a capacity and its margin; since 6.2
    /// the margin is for utilisation alone (`util_fits_cpu`).
    pub clamps_util: bool,
}

/// How task groups are scheduled.
#[derive(Clone, Copy, Debug)]
pub struct GroupRules {
    /// Load is what is queued now, and over windows of 10 ms, not PELT's average (3.4).
    pub by_weight: bool,
    /// A queue tells its group of its load at most this often, nanoseconds (since 6.7).
    pub contribution_ns: u64,
    /// A group keeps its weight when its queue is empty (since 6.12, for delayed ones).
    pub keeps_empty: bool,
    /// Whenever its CPU chooses, a group begins a new turn, whether it goes on or not (3.4).
    pub turns_anew: bool,
}

/// An era's rules on one machine.
#[derive(Clone, Copy, Debug)]
pub struct EraRules {
    /// The fair class.
    pub fair: FairRules,
    /// The balancer.
    pub balance: BalanceRules,
    /// Task groups.
    pub groups: GroupRules,
    /// A task that ran less than this ago is cache-hot; also the least `max_newidle_lb_cost`
    /// ceiling. 0.5 ms in every era.
    pub migration_cost_ns: u64,
    /// How far an idle scan goes depends on how long the waker's CPU usually idles and on what
    /// scans cost (SIS_PROP, until 5.19), not on the LLC's utilisation (SIS_UTIL).
    pub scan_by_cost: bool,
    /// A task that uses more than its CPU's capacity keeps its util_est (still so in 6.12).
    pub est_within_capacity: bool,
    /// EEVDF: how much lag a task keeps.
    pub lag: LagLimit,
    /// EEVDF: who yields and is owed time forfeits the rest of its slice (7.2). In 6.12 whoever
    /// yields has its deadline moved a slice on, and keeps its vruntime.
    pub yield_forfeits: bool,
    /// What keeps real-time tasks from taking everything.
    pub rt_limit: RtLimit,
}

impl BalanceRules {
    const V3_4: BalanceRules = BalanceRules {
        busy_factor: 64,
        by_weight: true,
        fixed_intervals: true,
        newest_first: true,
        moved_is_cold: false,
        ..BalanceRules::V5_5
    };

    const V5_5: BalanceRules = BalanceRules {
        nr_migrate: 32,
        busy_factor: 32,
        busy_less_a_tick: false,
        wide_imbalance_pct: 125,
        by_weight: false,
        fixed_intervals: false,
        newest_first: false,
        moved_is_cold: true,
        newidle_least_ns: 500_000,
        newidle_by_success: false,
        counts_waiting: false,
        fully_busy_first: true,
        idle_core_balances: false,
        stops_at_mean: false,
        llc_by_tasks: false,
        numa_imbalance: false,
        util_of_many: false,
        load_by_failures: false,
        pushes_for_all: true,
        misfit_no_failure: false,
        stuck: Stuck::Nobody,
        larger_1024: 1280,
        larger_by_group: true,
        clamps_util: true,
    };

    const V6_5: BalanceRules = BalanceRules {
        nr_migrate: 32,
        busy_factor: 16,
        busy_less_a_tick: true,
        wide_imbalance_pct: 117,
        by_weight: false,
        fixed_intervals: false,
        newest_first: false,
        moved_is_cold: true,
        newidle_least_ns: 0,
        newidle_by_success: false,
        counts_waiting: true,
        fully_busy_first: false,
        idle_core_balances: true,
        stops_at_mean: true,
        llc_by_tasks: true,
        numa_imbalance: true,
        util_of_many: true,
        load_by_failures: true,
        pushes_for_all: false,
        misfit_no_failure: false,
        stuck: Stuck::Pinned,
        larger_1024: 1078,
        larger_by_group: false,
        clamps_util: false,
    };

    const V6_15: BalanceRules = BalanceRules {
        misfit_no_failure: true,
        stuck: Stuck::NowhereLarger,
        ..BalanceRules::V6_5
    };

    const V7_2: BalanceRules = BalanceRules {
        newidle_by_success: true,
        ..BalanceRules::V6_15
    };

    /// How much busier, in percent of the other, a group of this domain must be to count as
    /// imbalanced.
    pub fn imbalance_pct(&self, domain: &DomainView<'_>) -> u32 {
        let near = match self.by_weight {
            true => domain.level() == Level::Smt,
            false => domain.shares_llc(),
        };
        match near {
            true => domain.imbalance_pct(),
            false => self.wide_imbalance_pct,
        }
    }

    /// Whether a capacity is larger than another, enough to matter.
    pub fn is_larger(&self, this: u32, other: u32) -> bool {
        u64::from(this) * 1024 > u64::from(other) * self.larger_1024
    }
}

impl EraRules {
    /// The rules of `era` on a machine with `nr_cpus`. Slices grow with the logarithm of the
    /// number of CPUs up to 8, as the kernel's default `tunable_scaling` has it.
    pub fn new(era: Era, nr_cpus: usize) -> EraRules {
        let factor = u64::from(1 + (nr_cpus.clamp(1, 8) as u32).ilog2());
        let cfs = FairRules::Cfs {
            latency_ns: 6_000_000 * factor,
            min_granularity_ns: 750_000 * factor,
            wakeup_granularity_ns: 1_000_000 * factor,
            bounded: era != Era::V3_4,
        };
        let eevdf = FairRules::Eevdf {
            slice_ns: 700_000 * factor,
        };
        let (fair, balance) = match era {
            Era::V3_4 => (cfs, BalanceRules::V3_4),
            Era::V5_5 => (cfs, BalanceRules::V5_5),
            Era::V6_5 => (cfs, BalanceRules::V6_5),
            Era::V6_15 => (eevdf, BalanceRules::V6_15),
            Era::V7_2 => (eevdf, BalanceRules::V7_2),
        };
        let lazy = matches!(era, Era::V6_15 | Era::V7_2);
        EraRules {
            fair,
            balance,
            groups: GroupRules {
                by_weight: era == Era::V3_4,
                contribution_ns: if lazy { 1_000_000 } else { 0 },
                keeps_empty: lazy,
                turns_anew: era == Era::V3_4,
            },
            migration_cost_ns: 500_000,
            scan_by_cost: era == Era::V5_5,
            est_within_capacity: era != Era::V7_2,
            lag: match era {
                Era::V7_2 => LagLimit::SliceAndTick,
                _ => LagLimit::TwoSlices,
            },
            yield_forfeits: era == Era::V7_2,
            rt_limit: match era {
                Era::V3_4 | Era::V5_5 | Era::V6_5 => RtLimit::Throttle,
                Era::V6_15 | Era::V7_2 => RtLimit::Server,
            },
        }
    }
}

/// Load weight of a nice level: each step is worth a quarter more or less; nice 0 is 1024. The
/// values are the user-visible ones of the kernel's documentation (sched-nice-design).
pub const NICE_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904,
    3906, 3121, 2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87,
    70, 56, 45, 36, 29, 23, 18, 15,
];
