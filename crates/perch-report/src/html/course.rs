// SPDX-License-Identifier: GPL-2.0-or-later
//! Charts of scores over the measured time.

use perch_experiment::Comparison;

use super::captioned;
use super::chart::{self, Axis, Point, Series, Ticks, Words};

/// Draws the course of the first score and of every score that was not steady.
pub(super) fn courses(body: &mut String, title: &str, found: &Comparison) {
    let Some(window) = &found.window else {
        return;
    };
    let scores = found.scores.iter().enumerate();
    let drawn = scores.filter(|(index, score)| {
        let has_course = score.arms.iter().any(|arm| arm.course.iter().any(Option::is_some));
        let moves = score.arms.iter().any(|arm| arm.transient_ms.is_some());
        has_course && (*index == 0 || moves)
    });
    for (index, (_, score)) in drawn.enumerate() {
        if index == 0 {
            body.push_str("<h3>Over the measured time</h3>\n");
        }
        let label = format!("{}, {}", score.name, score.unit);
        let mut series: Vec<Series> = Vec::new();
        for (look, arm) in score.arms.iter().enumerate() {
            let parts = arm.course.len() as f64;
            let middle_s = |part: usize| {
                (window.warmup_ms + window.measure_ms * (part as f64 + 0.5) / parts) / 1e3
            };
            let course = arm.course.iter().enumerate();
            let points: Vec<Point> = course
                .filter_map(|(part, value)| Some(Point::at(middle_s(part), (*value)?)))
                .collect();
            let least = points.iter().map(|p| p.y).fold(f64::INFINITY, f64::min);
            let most = points.iter().map(|p| p.y).fold(f64::NEG_INFINITY, f64::max);
            series.push(Series { name: arm.arm.clone(), points, look, published: false });
            if let Some(end_ms) = arm.transient_ms.filter(|_| least <= most) {
                series.push(Series {
                    name: format!("{} not settled before", arm.arm),
                    points: [least, most].map(|y| Point::at(end_ms / 1e3, y)).to_vec(),
                    look,
                    published: true,
                });
            }
        }
        let caption = format!(
            "{label}: the mean over the repetitions in each twentieth of the measured time. An upright, \
             dashed line stands where the score no longer changes with time, or in the middle, where it \
             may go on; without such a line it was steady."
        );
        let words =
            Words { name: &format!("{title}: {label} over the measured time"), said: &caption };
        let axis = |name, ticks| Axis { name, ticks };
        let x = axis("simulated time, s", Ticks::Numbers);
        let y = axis(&label, Ticks::Near);
        captioned(body, &chart::lines(&words, &x, &y, &series), &caption);
    }
}
