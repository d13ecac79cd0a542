// SPDX-License-Identifier: GPL-2.0-or-later
//! The spread of iterations: one line of bars an arm, over a scale common to all.

use std::fmt::Write;

use crate::figure::figure;

/// The number of bars in a line.
const WIDTH: usize = 40;
/// The bars from the lowest to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns the scale, and a line for each arm with its iterations, in the arms' order.
///
/// A line is cut into equal spans from the least iteration of any arm to the greatest. A bar's
/// height is the number of iterations in its span, in eighths of the arm's fullest span and
/// rounded up, so that a single iteration shows; an empty span is blank.
pub(crate) fn shapes<'a>(arms: impl Iterator<Item = (&'a str, &'a [f64])> + Clone) -> String {
    let all = || arms.clone().flat_map(|(_, values)| values.iter().copied());
    let (low, high) =
        (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let names = arms.clone().map(|(name, _)| name.chars().count());
    let indent = names.max().unwrap_or(0);
    let (low_text, high_text) = (figure(low), figure(high));
    let room = (WIDTH + 2).saturating_sub(low_text.chars().count());
    let mut text = format!("{:indent$}  {low_text}{high_text:>room$}\n", "");
    for (name, values) in arms {
        let mut counts = [0; WIDTH];
        for value in values {
            counts[span(*value, low, high)] += 1;
        }
        let fullest = counts.iter().copied().max().unwrap_or(0).max(1);
        let bars = counts.iter().map(|count: &usize| match count {
            0 => ' ',
            some => BARS[(some * BARS.len()).div_ceil(fullest) - 1],
        });
        let _ = writeln!(text, "{name:<indent$}  |{}|", bars.collect::<String>());
    }
    text
}

/// Returns the span that `value` falls into; the greatest value falls into the last one.
fn span(value: f64, low: f64, high: f64) -> usize {
    if high <= low {
        return 0;
    }
    let share = (value - low) / (high - low);
    // The conversion cuts a float to an integer, and keeps it within the integer's range.
    ((share * WIDTH as f64) as usize).min(WIDTH - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_modes_look_other_than_one() {
        let near = |centre: f64| (0..30).map(move |i| centre + f64::from(i * i % 17));
        let baseline: Vec<f64> = near(7200.0).chain(near(7400.0)).collect();
        let patched: Vec<f64> = near(7390.0).chain(near(7395.0)).collect();
        let arms = [("baseline", &baseline[..]), ("patched", &patched[..])];
        insta::assert_snapshot!(shapes(arms.into_iter()));
    }

    #[test]
    fn one_iteration_among_many_shows_and_every_one_is_counted_in_the_span_it_is_in() {
        let mut values = vec![10.0; 99];
        values.push(50.0);
        let text = shapes([("a", &values[..])].into_iter());
        let line: Vec<char> = text.lines().nth(1).unwrap().chars().collect();
        assert_eq!(line.len(), "a  ||".len() + WIDTH);
        assert_eq!((line[4], line[5], line[3 + WIDTH]), ('█', ' ', '▁'));
        assert_eq!(
            [10.0, 10.9, 11.0, 49.9, 50.0].map(|value| span(value, 10.0, 50.0)),
            [0, 0, 1, 39, 39]
        );
    }

    #[test]
    fn iterations_that_are_all_the_same_have_a_shape() {
        let text = shapes([("a", &[5.0; 3][..]), ("longer", &[5.0; 2][..])].into_iter());
        assert!(text.lines().nth(1).unwrap().starts_with("a       |█ "), "{text}");
    }
}
