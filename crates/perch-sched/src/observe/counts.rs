// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts of what the scheduler did: one of the readers of what happens, and the only one that every
//! run has, so each count is made where the thing happens.

use perch_machine::Distance;
use perch_policy::{CacheStep, Reason, Verdict};

use super::Latencies;

/// Counts since counting began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
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
    /// Nanoseconds from wake-up to running, summed.
    pub latency_ns: u64,
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
    /// Ticks of CPUs that were busy.
    pub ticks: u64,
    /// Decisions by what the cache mechanism did on the way; the index is `CacheStep as usize`.
    pub by_cache_step: [u64; CacheStep::ALL.len()],
    /// Times that a task started to run in another LLC than before, whoever moved it.
    pub llc_changes: u64,
    /// Of those, back in the LLC that it had left within 50 ms.
    pub bounces: u64,
    /// Time that CPUs spent in the kernel, summed over them; a part of the time that they were busy. What the model
    /// charges for it: switches, wake-ups with their scans, ticks, newidle passes that brought a
    /// task, messages and futex calls, waiting for contended lines, and what a workload says is a
    /// system call. Not the refill of a task's own caches, nor what keeps an idle CPU busy.
    pub kernel_ns: u64,
    /// What the real-time class did.
    pub rt: RtMetrics,
}

/// Counts of the real-time class; its wake-ups are none that the policy decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtMetrics {
    /// Wake-ups, forks included.
    pub wakeups: u64,
    /// Of those, sent to a CPU that ran something lower.
    pub lowest: u64,
    /// Waiting tasks that were pushed to another CPU.
    pub pushes: u64,
    /// Waiting tasks that a CPU pulled.
    pub pulls: u64,
    /// Times that a CPU looked whether there is anything to pull.
    pub pull_reads: u64,
    /// Counters of overloaded CPUs that were read for that.
    pub counter_loads: u64,
    /// Times that a CPU became overloaded.
    pub overloads: u64,
    /// Times that a tick took the CPU from real-time tasks for the others' share.
    pub limited: u64,
    /// Wake-ups, pushes and pulls by the distance that they carried the task, nearest first.
    pub moves: [u64; 7],
}

impl Counts {
    /// Nothing counted yet.
    pub fn new() -> Counts {
        Counts {
            by_reason: vec![0; Reason::ALL.len()],
            ..Counts::default()
        }
    }
    pub(crate) fn decision(
        &mut self,
        verdict: &Verdict,
        from_waker: Distance,
        from_prev: Distance,
        busy: bool,
    ) {
        self.wakeups += 1;
        self.by_reason[verdict.reason as usize] += 1;
        self.by_cache_step[verdict.cache as usize] += 1;
        self.examined += u64::from(verdict.examined);
        self.wake_distance[from_waker as usize] += 1;
        self.migrations[from_prev as usize] += 1;
        self.chosen_busy += u64::from(busy);
        if self.chosen.len() <= verdict.cpu {
            self.chosen.resize(verdict.cpu + 1, 0);
        }
        self.chosen[verdict.cpu] += 1;
    }
}
