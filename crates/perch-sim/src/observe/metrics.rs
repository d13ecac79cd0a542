// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of a run beside its scores.

use std::ops::{Deref, DerefMut};

use perch_sched::hardware::C2c;
use perch_sched::observe::Counts;

/// The figures of the measured part of a run (the warm-up is not counted). They begin with the
/// scheduler's [`Counts`], whose fields are read as if they were this structure's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// The scheduler's counts.
    pub(crate) counts: Counts,
    /// Waits of woken tasks that `latency_ns` is the sum of.
    pub latencies: u64,
    /// Events handled: timers, ends of segments, interrupts, and ticks of each CPU.
    pub events: u64,
    /// Simulated time measured.
    pub simulated_ns: u64,
    /// Time that CPUs were not idle, summed over them.
    pub busy_ns: u64,
    /// The same by CPU, nanoseconds.
    pub busy_by_cpu: Vec<u64>,
    /// Transfers of the kernel's contended cache lines, by the CPUs and the code that met there;
    /// `None` for a machine that has no figures for them.
    pub c2c: Option<Box<C2c>>,
    /// Units of work that the workload counted.
    pub counted: u64,
    /// Counts of the virtual machines, all of them together.
    pub guest: GuestMetrics,
}

impl Deref for Metrics {
    type Target = Counts;

    fn deref(&self) -> &Counts {
        &self.counts
    }
}

impl DerefMut for Metrics {
    fn deref_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

/// Counts of virtual machines. Wake-ups and switches of their vCPUs are among the host's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuestMetrics {
    /// Wake-ups of guests' tasks.
    pub wakeups: u64,
    /// Interrupts that one vCPU sent to another for these.
    pub interrupts: u64,
    /// Times that a vCPU halted.
    pub halts: u64,
    /// Ticks of the guests' kernels.
    pub ticks: u64,
    /// Switches between guests' tasks.
    pub switches: u64,
    /// Tasks that a vCPU took from another one's queue.
    pub balanced: u64,
    /// Packets that vhost moved.
    pub packets: u64,
    /// Time that vCPUs ran on a CPU of the host, summed over them; nanoseconds.
    pub vcpus_ran_ns: u64,
    /// Time that they could have run and did not, as far as the wait is over; nanoseconds.
    pub vcpus_waited_ns: u64,
    /// Time that guests' tasks had, as far as they have left their vCPU since; nanoseconds.
    pub ran_ns: u64,
    /// Work of leaving guests and entering them, and of their interrupts; nanoseconds.
    pub overhead_ns: u64,
    /// Time that vCPUs ran to wait for a lock, as far as the wait is over; nanoseconds.
    pub spun_ns: u64,
}

impl Metrics {
    /// The scheduler's counts, and the busy time of each CPU; everything else is 0.
    pub(crate) fn of(counts: Counts, busy_by_cpu: Vec<u64>) -> Metrics {
        Metrics {
            latencies: counts.wake_latency.total(),
            counts,
            busy_ns: busy_by_cpu.iter().sum(),
            busy_by_cpu,
            ..Metrics::default()
        }
    }

    /// Share of busy time that was the kernel's, percent; 0 when nothing ran.
    pub fn kernel_pct(&self) -> f64 {
        match self.busy_ns {
            0 => 0.0,
            busy_ns => 100.0 * self.kernel_ns as f64 / busy_ns as f64,
        }
    }
}
