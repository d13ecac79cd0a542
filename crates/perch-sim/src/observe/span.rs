// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of a stretch of a run that scores are made of.

/// The counts of a run up to a moment, since counting began.
#[derive(Clone, Copy, Debug, Default)]
pub struct SoFar {
    /// The moment, nanoseconds.
    pub now_ns: u64,
    /// Units of work that the workload counted.
    pub counted: u64,
    /// Waits of woken tasks until they ran, and their sum in nanoseconds.
    pub latencies: u64,
    /// See `latencies`.
    pub latency_ns: u64,
    /// Time that CPUs were not idle, summed over them, and the kernel's part of it; nanoseconds.
    pub busy_ns: u64,
    /// See `busy_ns`.
    pub kernel_ns: u64,
}

impl SoFar {
    /// The stretch from `begin` until this moment.
    pub fn since(&self, begin: &SoFar) -> Span {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let latencies = self.latencies - begin.latencies;
        let busy_ns = self.busy_ns - begin.busy_ns;
        Span {
            seconds: (self.now_ns - begin.now_ns) as f64 / 1e9,
            counted: (self.counted - begin.counted) as f64,
            latency_us: share(self.latency_ns - begin.latency_ns, latencies).map(|ns| ns / 1e3),
            kernel_pct: share(self.kernel_ns - begin.kernel_ns, busy_ns).map(|part| 100.0 * part),
        }
    }
}

/// The figures of a stretch of a run, except those of requests.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Its length.
    pub seconds: f64,
    /// Units of work that the workload counted.
    pub counted: f64,
    /// The mean wait of a woken task until it ran; none where nothing was woken.
    pub latency_us: Option<f64>,
    /// Share of busy time that was the kernel's; none where nothing ran.
    pub kernel_pct: Option<f64>,
}

/// A part of the measured time, by the figures of the whole. A figure is none where the part has
/// nothing that it could be made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// The workload's scores, in the order of the outcome's.
    pub scores: Vec<Option<f64>>,
    /// The mean wait of a woken task until it ran.
    pub latency_us: Option<f64>,
    /// Share of busy time that was the kernel's, percent.
    pub kernel_pct: Option<f64>,
}
