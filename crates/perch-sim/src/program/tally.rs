// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures that a workload is judged by, as its programs note them: units of work, requests,
//! wake-up latencies and its stopwatch.

use crate::observe::{Requests, WAKE_PERCENTILES};

/// The stopwatch of a workload that is judged by how long it takes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stopwatch {
    /// The moment at which its measured part began.
    pub started_ns: Option<u64>,
    /// The moment at which it was done.
    pub stopped_ns: Option<u64>,
    /// Tasks that have done their part, see [`perch_workload::Op::StopClockAfter`].
    arrived: u32,
}

/// The figures that a workload is judged by.
#[derive(Debug, Default)]
pub struct Tally {
    counted: u64,
    stopwatch: Stopwatch,
    requests: Option<Box<Requests>>,
}

impl Tally {
    /// The moments at which the workload started and stopped its clock.
    pub fn stopwatch(&self) -> Stopwatch {
        self.stopwatch
    }

    /// Units of work that tasks have done since counting began.
    pub fn counted(&self) -> u64 {
        self.counted
    }

    /// Counts units of work anew.
    pub fn start_counting(&mut self) {
        self.counted = 0;
    }

    /// Keeps wake-up latencies and requests from now on, or no longer. Returns those kept so far.
    pub fn keep_requests(&mut self, requests: Option<Requests>) -> Option<Requests> {
        let kept = std::mem::replace(&mut self.requests, requests.map(Box::new));
        kept.map(|requests| *requests)
    }

    /// Ends a batch of the wake-up latencies that are kept, if they are; see
    /// [`Requests::end_batch`].
    pub fn end_batch(&mut self) -> Option<[f64; WAKE_PERCENTILES.len()]> {
        self.requests.as_mut()?.end_batch()
    }

    /// A task has done a unit of work.
    #[inline]
    pub fn count(&mut self) {
        self.counted += 1;
    }

    /// A task has done a unit of work, which is one request of the second under way.
    pub fn count_request(&mut self, now_ns: u64) {
        self.count();
        if let Some(requests) = &mut self.requests {
            requests.done(now_ns);
        }
    }

    /// A task that was woken ran after this time.
    pub fn note_latency(&mut self, latency_ns: u64) {
        if let Some(requests) = &mut self.requests {
            requests.woken(latency_ns);
        }
    }

    /// A task starts the clock, and counting with it, unless another one has. Returns whether it
    /// did.
    pub fn start_clock(&mut self, now_ns: u64) -> bool {
        if self.stopwatch.started_ns.is_some() {
            return false;
        }
        self.stopwatch.started_ns = Some(now_ns);
        self.start_counting();
        true
    }

    /// A task stops the clock.
    pub fn stop_clock(&mut self, now_ns: u64) {
        self.stopwatch.stopped_ns = Some(now_ns);
    }

    /// A task has done its part; the last of `tasks` stops the clock.
    pub fn stop_clock_after(&mut self, tasks: u32, now_ns: u64) {
        self.stopwatch.arrived += 1;
        if self.stopwatch.arrived == tasks {
            self.stop_clock(now_ns);
        }
    }
}
