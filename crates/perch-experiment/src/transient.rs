// SPDX-License-Identifier: GPL-2.0-or-later
//! The end of a transient in a score's course, and whether there is one.
//!
//! Welch's method averages the repetitions batch by batch, so that what they have in common stands
//! out. The truncation point is that of MSER (White, 1997): the one that leaves the mean of the rest
//! with the least standard error. The batches before it are a transient where neither the scatter of the
//! batches nor that of the repetitions explains them. Batches follow one another and are not independent: a run
//! that wanders between states for seconds looks like a transient by its batches, but another
//! repetition wanders elsewhere.

use crate::stats::{deviation, mean, t95};

/// The number of batches that a measured time is divided into.
pub(crate) const BATCHES: u32 = 20;

/// The mean of a transient differs from the rest's by more standard errors than this. The truncation
/// point is chosen for the difference, so chance has many tries.
const STANDARD_ERRORS: f64 = 5.0;
/// A transient that moves the score's mean by a smaller part than this changes no figure that people
/// read.
const LEAST: f64 = 0.001;

/// Fewer repetitions than this say nothing about chance between them.
const LEAST_REPETITIONS: u32 = 3;

/// A score's course over the measured time, batch by batch. Its size does not depend on the number of
/// repetitions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    /// The sum of each batch's values, and how many there are.
    batches: Vec<(f64, u32)>,
    /// The difference between the first half's mean and the second half's in each repetition: how
    /// many there are, their sum, and that of their squares.
    halves: (u32, f64, f64),
}

impl Course {
    /// Adds a repetition. Its batches have no value where they have nothing to make one of.
    pub fn add(&mut self, values: &[Option<f64>]) {
        self.batches.resize(values.len(), (0.0, 0));
        for ((sum, n), value) in self.batches.iter_mut().zip(values) {
            if let Some(value) = value {
                *sum += value;
                *n += 1;
            }
        }
        let (first, second) = values.split_at(values.len() / 2);
        let mean_of = |half: &[Option<f64>]| {
            let known: Vec<f64> = half.iter().flatten().copied().collect();
            (!known.is_empty()).then(|| mean(&known))
        };
        if let (Some(first), Some(second)) = (mean_of(first), mean_of(second)) {
            let (n, sum, squares) = &mut self.halves;
            *n += 1;
            *sum += first - second;
            *squares += (first - second).powi(2);
        }
    }

    /// Returns the mean of each batch, where any repetition has a value there.
    pub fn means(&self) -> Vec<Option<f64>> {
        let mean = |&(sum, n): &(f64, u32)| (n > 0).then(|| sum / f64::from(n));
        self.batches.iter().map(mean).collect()
    }

    /// Returns the part of the measured time after which the score no longer changes with time, 0 to
    /// 1/2; none where it does not. A score that still changes at half of the time gives 1/2,
    /// however long it goes on.
    pub fn transient(&self) -> Option<f64> {
        let known: Vec<(usize, f64)> = (self.means().into_iter().enumerate())
            .filter_map(|(batch, mean)| Some((batch, mean?)))
            .collect();
        let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let end = truncation(&values)?;
        let (head, rest) = values.split_at(end);
        let error = deviation(rest) * (1.0 / head.len() as f64 + 1.0 / rest.len() as f64).sqrt();
        let differs = (mean(head) - mean(rest)).abs() > STANDARD_ERRORS * error;
        let moved = (mean(&values) - mean(rest)).abs() > LEAST * mean(rest).abs();
        let found = differs && moved && self.is_common();
        found.then(|| known[end].0 as f64 / self.batches.len() as f64)
    }

    /// Returns true where the halves of the repetitions differ in common, and not by the chance of
    /// each.
    fn is_common(&self) -> bool {
        let (n, sum, squares) = self.halves;
        if n < LEAST_REPETITIONS {
            return true;
        }
        let (n, freedom) = (f64::from(n), n as usize - 1);
        let mean = sum / n;
        let variance = (squares - n * mean * mean).max(0.0) / freedom as f64;
        mean.abs() > t95(freedom) * (variance / n).sqrt()
    }
}

/// Returns the number of values to leave out at the beginning, at most half of them, so that the
/// mean of the rest has the least standard error; none where that is all of them.
fn truncation(values: &[f64]) -> Option<usize> {
    let most = values.len() / 2;
    if most < 2 {
        return None;
    }
    let squared_error = |end: usize| {
        let rest = &values[end..];
        deviation(rest).powi(2) / rest.len() as f64
    };
    // Of equal errors the first: a course without any change has no head.
    let end = (0..=most).min_by(|&a, &b| squared_error(a).total_cmp(&squared_error(b)))?;
    (end > 0).then_some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn course(repetitions: &[Vec<f64>]) -> Course {
        let mut course = Course::default();
        for values in repetitions {
            course.add(&values.iter().copied().map(Some).collect::<Vec<_>>());
        }
        course
    }

    /// Noise of 1 % around 100, and what `of` adds to each batch.
    fn noisy(seed: u64, repetitions: usize, of: impl Fn(usize) -> f64) -> Course {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut values = || {
            let value =
                |batch| 100.0 + (random.next_u64() % 2001) as f64 / 1000.0 - 1.0 + of(batch);
            (0..BATCHES as usize).map(value).collect()
        };
        course(&(0..repetitions).map(|_| values()).collect::<Vec<Vec<f64>>>())
    }

    #[test]
    fn a_head_that_differs_is_found_where_it_ends() {
        for (seed, end) in (1..10).flat_map(|end| [(1, end), (2, end)]) {
            let found = noisy(seed, 5, |batch| if batch < end { 20.0 } else { 0.0 });
            let least = end as f64 / f64::from(BATCHES);
            let found = found.transient();
            // The noise may make a later end look a little better, an earlier one never.
            assert!(
                found.is_some_and(|end| (least..=0.5).contains(&end)),
                "{seed} {end}: {found:?}"
            );
        }
    }

    #[test]
    fn a_drift_that_goes_on_is_a_transient_up_to_the_half() {
        let found = noisy(3, 5, |batch| batch as f64).transient();
        assert!(found.is_some_and(|end| end > 0.4), "{found:?}");
    }

    /// Chance makes a transient of one course in three hundred at most.
    #[test]
    fn noise_is_no_transient() {
        let found = (0..1000).filter(|seed| noisy(*seed, 3, |_| 0.0).transient().is_some());
        let n = found.count();
        assert!(n <= 3, "{n}");
    }

    /// Each repetition steps up or down once, at a time of its own: the mean of three has a course that
    /// no noise explains, and yet the fourth will do something else.
    #[test]
    fn repetitions_that_wander_have_no_transient_in_common() {
        let steps = |ends: &[(usize, f64)]| {
            let one = |&(end, height): &(usize, f64)| {
                let value = |batch| 100.0 + if batch < end { height } else { 0.0 };
                (0..20).map(value).collect::<Vec<f64>>()
            };
            course(&ends.iter().map(one).collect::<Vec<_>>())
        };
        let wander = [(5, 20.0), (9, -3.0), (12, 1.0)];
        assert_eq!(steps(&wander).transient(), None);
        assert!(steps(&wander[..1]).transient().is_some());
        assert!(steps(&[(5, 20.0), (6, 21.0), (5, 19.0)]).transient().is_some());
    }

    #[test]
    fn what_does_not_change_and_what_is_not_there_has_no_transient() {
        assert_eq!(course(&[vec![7.0; 20]]).transient(), None);
        assert_eq!(course(&[vec![0.0; 20]]).transient(), None);
        assert_eq!(Course::default().transient(), None);
        let mut empty = Course::default();
        empty.add(&[None; 20]);
        assert_eq!(empty.transient(), None);
        // A batch that has no value counts as time.
        let mut holes = Course::default();
        let value = |batch| (batch % 2 == 0).then_some(if batch < 8 { 9.0 } else { 1.0 });
        holes.add(&(0..20).map(value).collect::<Vec<_>>());
        assert_eq!(holes.transient(), Some(0.4));
    }
}
