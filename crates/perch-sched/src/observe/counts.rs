// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts of what the scheduler did: the one reader of events that every run has.

use perch_machine::Distance;
use perch_policy::{CacheStep, Reason};

use super::Latencies;
use super::event::{Decided, Observed, Placed, RtStep};

/// Counts since counting began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Wake-ups decided by the policy or by an outside scheduler, forks included.
    pub wakeups: u64,
    /// Those wake-ups by reason, but for an outside scheduler's, which has none; the index is `Reason as usize`.
    pub by_reason: Vec<u64>,
    /// CPUs that scans examined.
    pub examined: u64,
    /// Wake-ups by the distance from the waker's CPU to the chosen one, nearest first.
    pub wake_distance: [u64; 7],
    /// Wake-ups by the distance from the wakee's previous CPU to the chosen one.
    pub migrations: [u64; 7],
    /// Wake-ups whose chosen CPU was busy.
    pub chosen_busy: u64,
    /// Wake-ups of tasks that EEVDF had left on their queue, or that their CPU was about to switch
    /// away from, so that there was nothing to decide.
    pub stayed: u64,
    /// Decisions by the CPU that was chosen, up to the highest CPU that was ever chosen.
    pub chosen: Vec<u64>,
    /// The sum of the times from wake-up to running, in nanoseconds.
    pub latency_ns: u64,
    /// The counts of those times by length.
    pub wake_latency: Latencies,
    /// The longest of those times, in nanoseconds.
    pub max_latency_ns: u64,
    /// Switches to another task.
    pub context_switches: u64,
    /// Wake-ups that preempted a running task.
    pub preemptions: u64,
    /// Tasks moved by the balancer, by distance.
    pub balanced: [u64; 7],
    /// Ticks of CPUs that were busy.
    pub ticks: u64,
    /// Decisions by what the cache mechanism did in the course of them; the index is `CacheStep as
    /// usize`.
    pub by_cache_step: [u64; CacheStep::ALL.len()],
    /// Times that a task started to run in another LLC than before, for whatever reason it moved.
    pub llc_changes: u64,
    /// Those changes that brought the task back to the LLC that it had left within 50 ms.
    pub bounces: u64,
    /// The time that CPUs spent in the kernel, summed over the CPUs, in nanoseconds; a part of the
    /// time in which they were busy. It is what the model charges for switches, wake-ups with their
    /// scans, ticks, newidle passes that brought a task, messages and futex calls, waits for
    /// contended lines, and the system calls that a workload names. It has neither the refill of a
    /// task's own caches nor the work that keeps an idle CPU busy.
    pub kernel_ns: u64,
    /// The counts of the real-time class.
    pub rt: RtMetrics,
}

/// Counts of the real-time class. The policy does not decide its wake-ups.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtMetrics {
    /// Wake-ups, forks included.
    pub wakeups: u64,
    /// Those wake-ups that sent the task to a CPU with a lower priority.
    pub lowest: u64,
    /// Waiting tasks that were pushed to another CPU.
    pub pushes: u64,
    /// Waiting tasks that a CPU pulled to itself.
    pub pulls: u64,
    /// Times that a CPU looked for tasks to pull.
    pub pull_reads: u64,
    /// Counters of overloaded CPUs that were read by those looks.
    pub counter_loads: u64,
    /// Times that a CPU became overloaded.
    pub overloads: u64,
    /// Times that a tick preempted a real-time task, so that fair tasks get their share.
    pub limited: u64,
    /// Wake-ups, pushes and pulls by the distance that the task moved, nearest first.
    pub moves: [u64; 7],
}

impl Counts {
    /// Returns counts of 0.
    pub fn new() -> Counts {
        Counts { by_reason: vec![0; Reason::ALL.len()], ..Counts::default() }
    }

    /// Counts an event.
    #[inline(always)]
    pub(crate) fn see(&mut self, what: &Observed<'_>) {
        match *what {
            Observed::Asked(_) => {}
            Observed::Decided(ref decided) => self.see_decision(decided),
            Observed::Placed(ref placed) => self.see_placed(placed),
            Observed::Stayed { .. } => self.stayed += 1,
            Observed::Switched { latency_ns, .. } => {
                self.context_switches += 1;
                if let Some(latency_ns) = latency_ns {
                    self.latency_ns += latency_ns;
                    self.wake_latency.record(latency_ns);
                    self.max_latency_ns = self.max_latency_ns.max(latency_ns);
                }
            }
            Observed::Preempted { .. } => self.preemptions += 1,
            Observed::Balanced { distance, .. } => self.balanced[distance as usize] += 1,
            Observed::Ticked { .. } => self.ticks += 1,
            Observed::ChangedLlc { bounces, .. } => {
                self.llc_changes += 1;
                self.bounces += u64::from(bounces);
            }
            Observed::InKernel { ns, .. } => self.kernel_ns += ns,
            Observed::RtMoved(ref moved) => {
                match moved.step {
                    RtStep::Stay | RtStep::Allowed => {}
                    RtStep::Lowest => self.rt.lowest += 1,
                    RtStep::Push => self.rt.pushes += 1,
                    RtStep::Pull => self.rt.pulls += 1,
                }
                self.rt.moves[moved.distance as usize] += 1;
            }
            Observed::RtWoken { busy, .. } => {
                self.rt.wakeups += 1;
                self.chosen_busy += u64::from(busy);
            }
            Observed::RtOverloaded { .. } => self.rt.overloads += 1,
            Observed::RtLooked { loads, .. } => {
                self.rt.pull_reads += 1;
                self.rt.counter_loads += u64::from(loads);
            }
            Observed::RtLimited { .. } => self.rt.limited += 1,
        }
    }

    fn see_placed(&mut self, placed: &Placed) {
        self.wakeups += 1;
        self.see_choice(placed.cpu, placed.from_waker, placed.from_prev, placed.busy);
    }

    fn see_decision(&mut self, decided: &Decided<'_>) {
        let verdict = decided.verdict;
        self.wakeups += 1;
        self.by_reason[verdict.reason as usize] += 1;
        self.by_cache_step[verdict.cache as usize] += 1;
        self.examined += u64::from(verdict.examined);
        self.see_choice(verdict.cpu, decided.from_waker, decided.from_prev, decided.busy);
    }

    #[inline(always)]
    fn see_choice(&mut self, cpu: usize, from_waker: Distance, from_prev: Distance, busy: bool) {
        self.wake_distance[from_waker as usize] += 1;
        self.migrations[from_prev as usize] += 1;
        self.chosen_busy += u64::from(busy);
        if self.chosen.len() <= cpu {
            self.chosen.resize(cpu + 1, 0);
        }
        self.chosen[cpu] += 1;
    }
}
