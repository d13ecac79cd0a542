// SPDX-License-Identifier: GPL-2.0-or-later
//! The scores of a server-like workload: wake-up latencies, and requests a second.
//!
//! HDR histograms keep both. A histogram's size depends on the range of values and not on how many
//! there are: memory does not grow with simulated time.

use hdrhistogram::Histogram;

/// The percentiles of wake-up latency that are scores, as schbench prints them.
pub const WAKE_PERCENTILES: [(&str, f64); 4] =
    [("wake_p50.0", 0.5), ("wake_p90.0", 0.9), ("wake_p99.0", 0.99), ("wake_p99.9", 0.999)];

/// Latencies are kept to the nanosecond up to 2 µs, and to a thousandth of their value above.
const LATENCY_DIGITS: u8 = 3;
/// An hour, in nanoseconds: no task waits longer for its CPU in a sensible run, and a longer wait
/// counts as this.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Requests a second are kept to a ten-thousandth.
const RATE_DIGITS: u8 = 4;
const MOST_RATE: u64 = 1_000_000_000;

/// The tool counts requests once a second.
const SECOND_NS: u64 = 1_000_000_000;
/// Fewer samples than this give no useful 20th percentile.
const LEAST_SAMPLES: u64 = 10;

/// The requests and wake-ups of the measured part of a run.
#[derive(Debug)]
pub struct Requests {
    /// Wake-up latencies, nanoseconds: those of the batch under way, and those before it.
    batch_ns: Histogram<u64>,
    wake_ns: Histogram<u64>,
    /// Requests a second, a value for each sample.
    rates: Histogram<u64>,
    /// Length of a sample, and when the one under way began.
    sample_ns: u64,
    since_ns: u64,
    /// Requests of the sample under way.
    in_sample: u64,
}

fn histogram(high: u64, digits: u8) -> Histogram<u64> {
    Histogram::new_with_bounds(1, high, digits).expect("bounds that the library can hold")
}

fn us(ns: &Histogram<u64>, quantile: f64) -> f64 {
    ns.value_at_quantile(quantile) as f64 / 1000.0
}

impl Requests {
    /// No request yet of the `measure_ns` that begin at `now_ns`. A sample is a second long; if
    /// `measure_ns` is less than ten seconds, it is a tenth of that.
    pub fn new(now_ns: u64, measure_ns: u64) -> Requests {
        Requests {
            batch_ns: histogram(LONGEST_NS, LATENCY_DIGITS),
            wake_ns: histogram(LONGEST_NS, LATENCY_DIGITS),
            rates: histogram(MOST_RATE, RATE_DIGITS),
            sample_ns: SECOND_NS.min(measure_ns / LEAST_SAMPLES).max(1),
            since_ns: now_ns,
            in_sample: 0,
        }
    }

    /// A task that was woken ran after this time.
    pub fn woken(&mut self, latency_ns: u64) {
        self.batch_ns.saturating_record(latency_ns);
    }

    /// A task has done a request.
    pub fn done(&mut self, now_ns: u64) {
        self.close(now_ns);
        self.in_sample += 1;
    }

    /// Ends the samples that are over. The one under way is left out, as schbench does.
    pub fn close(&mut self, now_ns: u64) {
        let over = (now_ns - self.since_ns) / self.sample_ns;
        if over == 0 {
            return;
        }
        let rate = u128::from(self.in_sample) * u128::from(SECOND_NS) / u128::from(self.sample_ns);
        let rate = u64::try_from(rate).unwrap_or(u64::MAX);
        self.rates.saturating_record(rate);
        self.rates.saturating_record_n(0, over - 1);
        self.in_sample = 0;
        self.since_ns += over * self.sample_ns;
    }

    /// Ends a batch. Returns the [`WAKE_PERCENTILES`] of its wake-up latencies, in microseconds, if
    /// it has any.
    pub fn end_batch(&mut self) -> Option<[f64; WAKE_PERCENTILES.len()]> {
        let found = (!self.batch_ns.is_empty())
            .then(|| WAKE_PERCENTILES.map(|(_, quantile)| us(&self.batch_ns, quantile)));
        let added = self.wake_ns.add(&self.batch_ns);
        added.expect("both hold the same values");
        self.batch_ns.reset();
        found
    }

    /// The [`WAKE_PERCENTILES`] of all batches that have ended, in microseconds; 0 without any.
    pub fn wake_percentiles_us(&self) -> [f64; WAKE_PERCENTILES.len()] {
        WAKE_PERCENTILES.map(|(_, quantile)| us(&self.wake_ns, quantile))
    }

    /// A percentile of the requests a second, 0 to 1: that share of the samples had no more.
    pub fn rate(&self, quantile: f64) -> f64 {
        self.rates.value_at_quantile(quantile) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_engine::Random;

    /// The nearest rank by its definition: the least value that this share of the sorted values does
    /// not exceed.
    fn nearest_rank(sorted: &[u64], quantile: f64) -> u64 {
        let rank = (quantile * sorted.len() as f64).ceil().max(1.0) as usize;
        sorted[rank - 1]
    }

    #[test]
    fn percentiles_are_those_of_a_sort_to_a_thousandth() {
        let mut random = Random::new(1, 1);
        for scale in [1_000, 50_000, 100_000_000] {
            let mut requests = Requests::new(0, 10 * SECOND_NS);
            let mut all: Vec<u64> = (0..20_000).map(|_| 1 + random.below(scale)).collect();
            all.iter().for_each(|&ns| requests.woken(ns));
            all.sort_unstable();
            requests.end_batch();
            for (name, quantile) in WAKE_PERCENTILES {
                let (found, sorted) =
                    (us(&requests.wake_ns, quantile), nearest_rank(&all, quantile));
                let sorted = sorted as f64 / 1000.0;
                assert!((found / sorted - 1.0).abs() <= 1e-3, "{name}: {found} {sorted}");
            }
        }
    }

    #[test]
    fn a_nanosecond_more_shows_among_short_latencies() {
        let mut requests = Requests::new(0, SECOND_NS);
        requests.woken(1234);
        assert_eq!(requests.end_batch(), Some([1.234; 4]));
        requests.woken(1235);
        assert_eq!(requests.end_batch(), Some([1.235; 4]));
        assert_eq!(requests.wake_percentiles_us(), [1.234, 1.235, 1.235, 1.235]);
        assert_eq!(requests.end_batch(), None);
    }

    /// 100, 200 … 1000 requests in ten seconds: two of ten samples had 200 or fewer.
    #[test]
    fn the_20th_percentile_is_of_whole_seconds() {
        let mut requests = Requests::new(7, 10 * SECOND_NS);
        for second in 0..10 {
            let n = (second + 1) * 100;
            for i in 0..n {
                requests.done(7 + second * SECOND_NS + i * SECOND_NS / n);
            }
        }
        requests.close(7 + 10 * SECOND_NS);
        assert_eq!(requests.rate(0.2), 200.0);
    }

    #[test]
    fn short_runs_have_samples_of_a_tenth_and_rates_of_a_second() {
        let mut requests = Requests::new(0, SECOND_NS);
        (0..1000).for_each(|i| requests.done(i * 1_000_000));
        requests.close(SECOND_NS);
        assert_eq!(requests.rates.len(), 10);
        assert_eq!((requests.rate(0.0), requests.rate(1.0)), (1000.0, 1000.0));
    }

    #[test]
    fn seconds_without_requests_count_and_the_last_part_does_not() {
        let mut requests = Requests::new(0, 10 * SECOND_NS);
        requests.done(0);
        requests.done(4 * SECOND_NS);
        requests.close(4 * SECOND_NS + 1);
        // 1, 0, 0, 0 and then the fifth, which has only begun.
        assert_eq!(requests.rates.len(), 4);
        assert_eq!((requests.rate(0.75), requests.rate(1.0)), (0.0, 1.0));
    }

    #[test]
    fn nothing_seen_is_zero_and_the_longest_is_no_error() {
        let mut requests = Requests::new(0, 1);
        assert_eq!((requests.wake_percentiles_us(), requests.rate(0.2)), ([0.0; 4], 0.0));
        requests.woken(u64::MAX);
        requests.end_batch();
        assert!(requests.wake_percentiles_us()[0] >= LONGEST_NS as f64 / 1000.0);
    }
}
