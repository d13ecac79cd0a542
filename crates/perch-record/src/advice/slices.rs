// SPDX-License-Identifier: GPL-2.0-or-later
//! Counts by slices of time, and the intervals that tell how far shares made of these counts can be
//! trusted.
//!
//! Wake-ups are not independent of each other: a busy phase has thousands that all look alike, and
//! an interval that takes each for a draw of its own would be far too narrow. So this module counts
//! everything by slices of time, and the difference between the slices says how far a share can be
//! trusted.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// The shortest slice, nanoseconds. It is three half-lives of the kernel's load averages (32 ms):
/// at a slice's end the averages have forgotten nine tenths of their values at its beginning.
const SLICE_NS: u64 = 100_000_000;
/// When there are more slices than this, the slices become twice as long, which bounds memory.
const MOST: usize = 4096;
/// With fewer slices than this their spread is itself hardly known (its standard error is a sixth),
/// so no share is given.
pub const LEAST_SLICES: usize = 20;
/// A normal distribution stays within this many deviations 95 times in 100.
const Z: f64 = 1.96;

/// Sums by slices of time. The sums of a recording's parts add up to those of the whole, however
/// the recording was divided.
#[derive(Clone, Debug)]
pub struct Slices {
    columns: usize,
    /// The number of doublings: a slice is `SLICE_NS << doubled` long.
    doubled: u32,
    rows: BTreeMap<u64, Vec<u64>>,
}

/// A share of wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "JsonShare")]
pub struct Share {
    /// These wake-ups.
    pub part: u64,
    /// Of so many.
    pub of: u64,
    /// The low end of the share's 95 % interval, 0 to 1; null where the recording is too short.
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// The high end.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

impl Share {
    /// Returns the share itself; 0 where there are no events.
    pub fn value(&self) -> f64 {
        match self.of {
            0 => 0.0,
            of => self.part as f64 / of as f64,
        }
    }
}

/// The wake-ups that a mode wins and loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "JsonNet")]
pub struct Net {
    /// Wake-ups that the mode wins.
    #[serde(rename = "won")]
    pub gains: u64,
    /// Wake-ups that the mode loses.
    #[serde(rename = "lost")]
    pub losses: u64,
    /// The low end of the 95 % interval of their difference as a share, -1 to 1; null where the
    /// recording is too short.
    #[schemars(with = "Option<f64>")]
    pub low: f64,
    /// The high end.
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

impl Slices {
    /// Returns empty sums with so many columns.
    pub fn new(columns: usize) -> Slices {
        Slices { columns, doubled: 0, rows: BTreeMap::new() }
    }

    /// Returns the sums of the slice that contains the given time.
    pub fn row(&mut self, at_ns: u64) -> &mut [u64] {
        let slice = at_ns / SLICE_NS;
        while self.rows.len() >= MOST && !self.rows.contains_key(&(slice >> self.doubled)) {
            self.double();
        }
        let columns = self.columns;
        let row = self.rows.entry(slice >> self.doubled);
        row.or_insert_with(|| vec![0; columns])
    }

    fn double(&mut self) {
        self.doubled += 1;
        for (slice, row) in std::mem::take(&mut self.rows) {
            add(self.rows.entry(slice >> 1).or_default(), &row);
        }
    }

    /// Adds sums that were counted elsewhere.
    pub fn add(&mut self, mut other: Slices) {
        while self.doubled < other.doubled {
            self.double();
        }
        while other.doubled < self.doubled {
            other.double();
        }
        for (slice, row) in other.rows {
            add(self.rows.entry(slice).or_default(), &row);
        }
        while self.rows.len() > MOST {
            self.double();
        }
    }

    /// Returns the number of slices with something in them.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the length of a slice, nanoseconds.
    pub fn slice_ns(&self) -> u64 {
        SLICE_NS << self.doubled
    }

    /// Returns a column's sum.
    pub fn sum(&self, column: usize) -> u64 {
        self.rows.values().map(|row| row[column]).sum()
    }

    /// Returns the variance that the share `value(row)` of `of` would have if the recording were
    /// made again, estimated from the differences between slices. The slices are joined to ever
    /// longer ones as long as enough remain, and the largest variance counts: phases longer than a
    /// slice show only in longer slices.
    fn variance(&self, value: impl Fn(&[u64]) -> f64, of: usize) -> Option<f64> {
        let mut slices: Vec<(u64, f64, f64)> = self
            .rows
            .iter()
            .map(|(&slice, row)| (slice, value(row), row[of] as f64))
            .filter(|(_, _, of)| *of > 0.0)
            .collect();
        let all: f64 = slices.iter().map(|(_, _, of)| of).sum();
        let share = slices.iter().map(|(_, n, _)| n).sum::<f64>() / all;
        let mut largest = None::<f64>;
        while slices.len() >= LEAST_SLICES {
            let squares = slices.iter().map(|(_, n, of)| (n - share * of).powi(2));
            let count = slices.len() as f64;
            let variance = count / (count - 1.0) * squares.sum::<f64>() / (all * all);
            largest = Some(largest.map_or(variance, |v| v.max(variance)));
            slices = slices.chunk_by(|a, b| a.0 >> 1 == b.0 >> 1).map(join).collect();
        }
        largest
    }

    /// Returns the factor by which the slices' differences widen an interval: the size of a bunch
    /// of wake-ups in which one says as much as all. The factor is at least 1; it is `None` with
    /// too few slices, or where the share is 0 or 1 and shows no differences.
    pub fn bunch(&self, part: usize, of: usize) -> Option<f64> {
        let (n, all) = (self.sum(part), self.sum(of));
        if n == 0 || n == all {
            return None;
        }
        let share = n as f64 / all as f64;
        let independent = share * (1.0 - share) / all as f64;
        let variance = self.variance(|row| row[part] as f64, of)?;
        Some((variance / independent).max(1.0))
    }

    /// Returns the share of one column in another. The interval is Wilson's for as many independent
    /// draws as these wake-ups are worth ([`Slices::bunch`]); a column that is too rare to show its
    /// own bunches (fewer than 20) has at least the bunching of `usual`, but no more than if whole
    /// slices were alike. `None` with too few slices.
    pub fn share(&self, part: usize, of: usize, usual: f64) -> Option<Share> {
        if self.len() < LEAST_SLICES {
            return None;
        }
        let (n, all) = (self.sum(part), self.sum(of));
        if all == 0 {
            return None;
        }
        let usual = usual.min(all as f64 / self.len() as f64);
        let bunch = match self.bunch(part, of) {
            Some(bunch) if n.min(all - n) >= LEAST_SLICES as u64 => bunch,
            other => other.map_or(usual, |bunch| bunch.max(usual)),
        };
        let draws = all as f64 / bunch;
        let share = n as f64 / all as f64;
        let middle = (share + Z * Z / (2.0 * draws)) / (1.0 + Z * Z / draws);
        let half = Z / (1.0 + Z * Z / draws)
            * (share * (1.0 - share) / draws + Z * Z / (4.0 * draws * draws)).sqrt();
        Some(Share {
            part: n,
            of: all,
            low: if n == 0 { 0.0 } else { (middle - half).max(0.0) },
            high: if n == all { 1.0 } else { (middle + half).min(1.0) },
        })
    }

    /// Returns the excess of one column over another, as a share of a third. With fewer than 20 of
    /// both the interval is not to be trusted, but no better one can be had. Returns `None` with
    /// too few slices.
    pub fn net(&self, gains: usize, losses: usize, of: usize) -> Option<Net> {
        let (plus, minus, all) = (self.sum(gains), self.sum(losses), self.sum(of));
        let variance = self.variance(|row| row[gains] as f64 - row[losses] as f64, of)?;
        let net = (plus as f64 - minus as f64) / all as f64;
        let half = if plus + minus < LEAST_SLICES as u64 { 1.0 } else { Z * variance.sqrt() };
        Some(Net {
            gains: plus,
            losses: minus,
            low: (net - half).max(-1.0),
            high: (net + half).min(1.0),
        })
    }
}

fn add(sum: &mut Vec<u64>, more: &[u64]) {
    sum.resize(sum.len().max(more.len()), 0);
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

fn join(slices: &[(u64, f64, f64)]) -> (u64, f64, f64) {
    let sum = |f: fn(&(u64, f64, f64)) -> f64| slices.iter().map(f).sum();
    (slices[0].0 >> 1, sum(|s| s.1), sum(|s| s.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Wake-ups at these slices, so many of each, so many of them counted.
    fn counted(rows: &[(u64, u64, u64)]) -> Slices {
        let mut slices = Slices::new(2);
        for &(slice, part, of) in rows {
            let row = slices.row(slice * SLICE_NS);
            row[0] += part;
            row[1] += of;
        }
        slices
    }

    #[test]
    fn slices_that_are_alike_give_wilsons_interval() {
        // One in ten of each slice, as regular as can be: no bunches.
        let rows: Vec<_> = (0..100).map(|i| (i, 10, 100)).collect();
        let share = counted(&rows).share(0, 1, 1.0).expect("100 slices");
        assert_eq!((share.part, share.of), (1000, 10_000));
        // Wilson's interval for 1,000 of 10,000 (R: prop.test without correction).
        assert!((share.low - 0.09427).abs() < 1e-4, "{share:?}");
        assert!((share.high - 0.10604).abs() < 1e-4, "{share:?}");
    }

    #[test]
    fn bunches_widen_the_interval() {
        // The same share, all of it in every tenth slice: as good as 100 draws, not 10,000.
        let rows: Vec<_> = (0..100).map(|i| (i, if i % 10 == 0 { 100 } else { 0 }, 100)).collect();
        let slices = counted(&rows);
        let bunch = slices.bunch(0, 1).expect("something happens");
        assert!((90.0..120.0).contains(&bunch), "{bunch}");
        let share = slices.share(0, 1, 1.0).expect("100 slices");
        assert!(share.low < 0.06 && share.high > 0.16, "{share:?}");
    }

    #[test]
    fn phases_longer_than_a_slice_count() {
        // The first half of the recording always, the second never. The longest slices of which
        // twenty remain are five short ones.
        let rows: Vec<_> = (0..128).map(|i| (i, if i < 64 { 10 } else { 0 }, 10)).collect();
        let slices = counted(&rows);
        let bunch = slices.bunch(0, 1).expect("something happens");
        assert!(bunch > 39.0, "{bunch}: slices of 4 have 40 wake-ups that are alike");
    }

    #[test]
    fn what_never_happens_may_happen_all_the_same() {
        let rows: Vec<_> = (0..100).map(|i| (i, 0, 10)).collect();
        let share = counted(&rows).share(0, 1, 1.0).expect("100 slices");
        assert_eq!((share.part, share.low), (0, 0.0));
        assert!((0.002..0.005).contains(&share.high), "{share:?}");
        let wider = counted(&rows).share(0, 1, 10.0).expect("100 slices");
        assert!(wider.high > 0.03, "{wider:?}");
    }

    #[test]
    fn too_little_says_nothing() {
        let rows: Vec<_> = (0..19).map(|i| (i, 5, 1000)).collect();
        assert_eq!(counted(&rows).share(0, 1, 1.0), None);
        assert_eq!(counted(&rows).net(0, 0, 1), None);
        assert_eq!(counted(&[]).share(0, 1, 1.0), None);
    }

    #[test]
    fn gains_that_losses_outweigh_are_none() {
        let mut slices = Slices::new(3);
        for i in 0..64 {
            let row = slices.row(i * SLICE_NS);
            row.copy_from_slice(&[10, 10 + i % 2, 100]);
        }
        let net = slices.net(0, 1, 2).expect("64 slices");
        assert!(net.low < -0.005 && net.high < 0.0, "{net:?}");
        assert_eq!((net.gains, net.losses), (640, 672));
    }

    proptest! {
        /// Sums do not depend on how a recording was divided, nor on the order.
        #[test]
        fn parts_add_up(times in prop::collection::vec(0..u64::MAX, 1..200), cut: usize, far: bool) {
            let mut whole = Slices::new(1);
            let mut parts = [Slices::new(1), Slices::new(1)];
            // The times span far more slices than are kept, or few.
            let times: Vec<u64> = times.iter().map(|t| if far { *t } else { t % (30 * SLICE_NS) }).collect();
            for (i, &at) in times.iter().enumerate() {
                for extra in 0..40 {
                    let at = at.wrapping_add(extra * SLICE_NS);
                    whole.row(at)[0] += 1;
                    parts[(i.wrapping_mul(cut) >> 3) % 2].row(at)[0] += 1;
                }
            }
            let [mut one, other] = parts;
            one.add(other);
            prop_assert_eq!(&one.rows, &whole.rows);
            prop_assert_eq!(one.doubled, whole.doubled);
            prop_assert!(whole.len() <= MOST);
            prop_assert_eq!(whole.sum(0), times.len() as u64 * 40);
        }
    }
}
