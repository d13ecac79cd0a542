// SPDX-License-Identifier: GPL-2.0-only
//! What differs between stock kernels outside the choice of a CPU: the fair class's constants
//! and the balancer's. The wake-up path's own rules are [`perch_policy::Rules`].

use perch_policy::Era;

/// Which fair class, with its constants already scaled for the machine; all nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum FairRules {
    /// CFS (mechanisms.md §8).
    Cfs {
        /// `sched_latency`: the period in which everybody runs once; a sleeper gets half.
        latency_ns: u64,
        /// `sched_min_granularity`: the shortest slice.
        min_granularity_ns: u64,
        /// `sched_wakeup_granularity`: how far behind a wakee must be to preempt.
        wakeup_granularity_ns: u64,
    },
    /// EEVDF (mechanisms.md §8).
    Eevdf {
        /// `base_slice`: what a task asks for.
        slice_ns: u64,
    },
}

/// An era's rules on one machine.
#[derive(Clone, Copy, Debug)]
pub struct EraRules {
    /// The fair class.
    pub fair: FairRules,
    /// A task that ran less than this ago is cache-hot; also the least `max_newidle_lb_cost`
    /// ceiling. 0.5 ms in every era.
    pub migration_cost_ns: u64,
    /// Most tasks moved by one balance pass.
    pub nr_migrate: u32,
    /// How much longer a busy CPU waits between two passes.
    pub busy_factor: u64,
    /// 7.2: a newidle pass is tried at random, as often as such passes succeeded lately.
    pub newidle_by_success: bool,
}

impl EraRules {
    /// The rules of `era` on a machine with `nr_cpus`. Slices grow with the logarithm of the
    /// number of CPUs up to 8, as the kernel's default `tunable_scaling` has it.
    pub fn new(era: Era, nr_cpus: usize) -> EraRules {
        let factor = u64::from(1 + (nr_cpus.clamp(1, 8) as u32).ilog2());
        let fair = match era {
            Era::V5_5 | Era::V6_5 => FairRules::Cfs {
                latency_ns: 6_000_000 * factor,
                min_granularity_ns: 750_000 * factor,
                wakeup_granularity_ns: 1_000_000 * factor,
            },
            Era::V7_2 => FairRules::Eevdf {
                slice_ns: 700_000 * factor,
            },
        };
        EraRules {
            fair,
            migration_cost_ns: 500_000,
            nr_migrate: 32,
            busy_factor: 16,
            newidle_by_success: era == Era::V7_2,
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
