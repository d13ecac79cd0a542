// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run is measured by, beside its scores.

use perch_policy::CacheStep;
use perch_sched::hardware::C2c;
use perch_sched::observe::{Counts, Latencies, RtMetrics};

/// Counts over the measured part of a run (the warm-up is not counted).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Wake-ups decided by the policy, forks included.
    pub wakeups: u64,
    /// Of those, by reason; the index is `Reason as usize`.
    pub by_reason: Vec<u64>,
    /// CPUs that scans looked at.
    pub examined: u64,
    /// Wake-ups by the distance from the waker's CPU to the chosen one, nearest first.
    pub wake_distance: [u64; 7],
    /// Wake-ups by the distance from the wakee's previous CPU to the chosen one.
    pub migrations: [u64; 7],
    /// Wake-ups whose chosen CPU was busy.
    pub chosen_busy: u64,
    /// EEVDF: wake-ups of sleepers that had not left their queue; nothing to decide.
    pub delayed_wakeups: u64,
    /// Decisions by the CPU that was chosen, up to the last one that ever was.
    pub chosen: Vec<u64>,
    /// Nanoseconds from wake-up to running, summed; and how many.
    pub latency_ns: u64,
    /// See `latency_ns`.
    pub latencies: u64,
    /// The same by length.
    pub wake_latency: Latencies,
    /// Longest of them.
    pub max_latency_ns: u64,
    /// Switches to another task.
    pub context_switches: u64,
    /// Wake-ups that took the CPU from a running task.
    pub preemptions: u64,
    /// Tasks moved by the balancer, by distance.
    pub balanced: [u64; 7],
    /// Events handled: timers, ends of segments, interrupts, and ticks of each CPU.
    pub events: u64,
    /// Simulated time measured.
    pub simulated_ns: u64,
    /// Time that CPUs were not idle, summed over them.
    pub busy_ns: u64,
    /// The same by CPU, nanoseconds.
    pub busy_by_cpu: Vec<u64>,
    /// Decisions by what the cache mechanism did on the way; the index is `CacheStep as usize`.
    pub by_cache_step: [u64; CacheStep::ALL.len()],
    /// Times that a task started to run in another LLC than before, whoever moved it.
    pub llc_changes: u64,
    /// Of those, back in the LLC that it had left within 50 ms.
    pub bounces: u64,
    /// Time that CPUs spent in the kernel, summed over them; a part of `busy_ns`. What the model
    /// charges for it: switches, wake-ups with their scans, ticks, newidle passes that brought a
    /// task, messages and futex calls, waiting for contended lines, and what a workload says is a
    /// system call. Not the refill of a task's own caches, nor what keeps an idle CPU busy.
    pub kernel_ns: u64,
    /// Who met whom at the kernel's contended cache lines, where the machine has figures for
    /// them.
    pub c2c: Option<Box<C2c>>,
    /// Units of work that the workload counted.
    pub counted: u64,
    /// What the real-time class did.
    pub rt: RtMetrics,
    /// What happened in virtual machines, all of them together.
    pub guest: GuestMetrics,
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
}

impl Metrics {
    /// The scheduler's counts, and the busy time of each CPU; everything else is 0.
    pub(crate) fn of(counts: Counts, busy_by_cpu: Vec<u64>) -> Metrics {
        Metrics {
            wakeups: counts.wakeups,
            by_reason: counts.by_reason,
            examined: counts.examined,
            wake_distance: counts.wake_distance,
            migrations: counts.migrations,
            chosen_busy: counts.chosen_busy,
            delayed_wakeups: counts.delayed_wakeups,
            chosen: counts.chosen,
            latency_ns: counts.latency_ns,
            latencies: counts.wake_latency.total(),
            wake_latency: counts.wake_latency,
            max_latency_ns: counts.max_latency_ns,
            context_switches: counts.context_switches,
            preemptions: counts.preemptions,
            balanced: counts.balanced,
            by_cache_step: counts.by_cache_step,
            llc_changes: counts.llc_changes,
            bounces: counts.bounces,
            kernel_ns: counts.kernel_ns,
            rt: counts.rt,
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
