// SPDX-License-Identifier: GPL-2.0-or-later
//! The results of simulations: of each its scores alone are kept, and sums of everything else.

use perch_sim::Metrics;

use crate::contention::LineSums;
use crate::tally::Tally;
use crate::transient::Course;

/// One score of one simulation.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub value: f64,
    /// Its values in the batches of the measured time.
    pub course: Vec<Option<f64>>,
    pub higher_is_better: bool,
}

/// The result of one simulation.
pub(super) struct Found {
    /// The scores that the experiment wants of the load, in that order.
    pub scores: Vec<Scored>,
    /// What was counted; none of a formula in place of the simulator.
    pub metrics: Option<Box<Metrics>>,
}

/// The scores and sums of one load's simulations.
pub(super) struct Kept {
    /// Of each score, whether more is better: by the workload, so the same in all simulations.
    pub higher_is_better: Vec<bool>,
    /// The values by arm, then by score, one a repetition.
    pub values: Vec<Vec<Vec<f64>>>,
    /// The courses over the measured time by arm, then by score.
    courses: Vec<Vec<Course>>,
    /// The contended lines by arm.
    pub lines: Vec<LineSums>,
    /// What was counted, by arm; none where nothing was.
    pub tallies: Vec<Tally>,
}

impl Kept {
    pub fn new(arms: usize) -> Kept {
        Kept {
            higher_is_better: Vec::new(),
            values: vec![Vec::new(); arms],
            courses: vec![Vec::new(); arms],
            lines: (0..arms).map(|_| LineSums::default()).collect(),
            tallies: Vec::new(),
        }
    }

    /// Returns the number of repetitions that every arm has.
    pub fn repetitions(&self) -> u32 {
        let of_arm = |values: &Vec<Vec<f64>>| values.first().map_or(0, Vec::len);
        self.values.iter().map(of_arm).min().unwrap_or(0) as u32
    }

    /// Returns by arm, then by score, the part of the measured time in which a score changed with time;
    /// see [`Course::transient`].
    pub fn transients(&self) -> Vec<Vec<Option<f64>>> {
        let of_arm = |courses: &Vec<Course>| courses.iter().map(Course::transient).collect();
        self.courses.iter().map(of_arm).collect()
    }

    /// Adds the next repetition of an arm.
    pub fn add(&mut self, arm: usize, found: Found) {
        let values = &mut self.values[arm];
        values.resize_with(found.scores.len(), Vec::new);
        let each = values.iter_mut().zip(&found.scores);
        each.for_each(|(values, score)| values.push(score.value));
        let courses = &mut self.courses[arm];
        courses.resize_with(found.scores.len(), Course::default);
        let each = courses.iter_mut().zip(&found.scores);
        each.for_each(|(course, score)| course.add(&score.course));
        if let Some(metrics) = &found.metrics {
            self.lines[arm].add(metrics.c2c.as_deref(), metrics.kernel_pct());
            self.tallies.resize(self.lines.len(), Tally::default());
            self.tallies[arm].add(metrics);
        }
        if self.higher_is_better.is_empty() {
            self.higher_is_better =
                found.scores.iter().map(|score| score.higher_is_better).collect();
        }
    }
}
