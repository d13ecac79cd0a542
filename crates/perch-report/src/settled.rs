// SPDX-License-Identifier: GPL-2.0-or-later
//! Words that tell whether figures may be believed.

use perch_experiment::{Comparison, Report, ScoreRow, Thoroughness, Unsettled, Window};

use crate::figure::figure;

/// The words beside a figure that is not settled.
pub(crate) const MARK: &str = "not settled";

/// Returns how often and how long the arms were simulated.
pub(crate) fn times(found: &Comparison) -> String {
    let n = found.repetitions;
    let repetitions = format!("{n} repetition{}", if n == 1 { "" } else { "s" });
    match &found.window {
        None => repetitions,
        Some(window) => {
            format!("{repetitions} of {} after {}", time(window.measure_ms), time(window.warmup_ms))
        }
    }
}

/// Returns the reasons for doubt, a sentence each.
pub(crate) fn doubts(found: &Comparison) -> Vec<String> {
    let mut doubts = Vec::new();
    if found.repetitions == 1 {
        doubts.push("one repetition: nothing tells how far another would differ".to_string());
    }
    if let Some(score) = found.scores.first() {
        let empty = score.arms.iter().filter(|arm| arm.mean == 0.0);
        let arms: Vec<&str> = empty.map(|arm| arm.arm.as_str()).collect();
        if let (false, Some(window)) = (arms.is_empty(), &found.window) {
            doubts.push(format!(
                "{} of {} is 0: nothing came to an end in {}; measure longer (--measure)",
                score.name,
                arms.join(", "),
                time(window.measure_ms)
            ));
        }
    }
    let Some(window) = &found.window else {
        return doubts;
    };
    let moving: Vec<String> = found.scores.iter().filter_map(|s| moving(s, window)).collect();
    if !moving.is_empty() {
        doubts.push(format!(
            "{MARK}: time alone still changed {}{}",
            moving.join("; "),
            more(window)
        ));
    }
    doubts.extend(match Unsettled::of(Some(window), None) {
        Some(Unsettled::Early(balance_ms)) => Some(format!(
            "{MARK}: a warm-up of {} is shorter than the {} that the balancer may need to spread the \
             tasks{}",
            time(window.warmup_ms),
            time(balance_ms),
            more(window)
        )),
        Some(Unsettled::Short(balance_ms)) => Some(format!(
            "{MARK}: what was measured, {}, is shorter than the {} that the balancer may need to spread \
             the tasks: a slower change does not show{}",
            time(window.measure_ms),
            time(balance_ms),
            match window.effort {
                None => " (a longer --measure, or none by hand)",
                Some(_) => more(window),
            }
        )),
        Some(Unsettled::Moves(_)) | None => None,
    });
    doubts
}

/// Returns a line that names the cells whose scores were not steady; none where all were.
pub(crate) fn of_report(report: &Report) -> Option<String> {
    let moving = report.cells.iter().filter(|cell| cell.transient_ms.is_some());
    let paths: Vec<String> =
        moving.map(|cell| format!("{}/{}/{}", cell.benchmark, cell.place, cell.row)).collect();
    (!paths.is_empty()).then(|| {
        format!(
            "{}: time alone still changed {} of {} cells: {}",
            MARK,
            paths.len(),
            report.cells.len(),
            paths.join(", ")
        )
    })
}

/// Returns a line that names the cells whose effort was spent before a verdict; none where all had
/// enough.
pub(crate) fn cut_short(report: &Report) -> Option<String> {
    let short = report.cells.iter().filter(|cell| cell.is_short);
    let mut places: Vec<(String, Vec<&str>)> = Vec::new();
    for cell in short {
        let place = format!("{}/{}", cell.benchmark, cell.place);
        match places.last_mut() {
            Some((last, rows)) if *last == place => rows.push(&cell.row),
            _ => places.push((place, vec![&cell.row])),
        }
    }
    let words: Vec<String> =
        places.iter().map(|(place, rows)| format!("{place} {}", rows.join(" "))).collect();
    (!words.is_empty()).then(|| {
        format!(
            "too short for a verdict at this effort, and undecided (--effort normal goes on): {}",
            words.join(", ")
        )
    })
}

/// Returns until when a score changed in which arms; none where it was steady in all.
fn moving(score: &ScoreRow, window: &Window) -> Option<String> {
    let half_ms = window.warmup_ms + window.measure_ms / 2.0;
    let arms = score.arms.iter().filter_map(|arm| {
        let until_ms = arm.transient_ms?;
        // Nobody looks for an end in the second half: what is left would be too little to compare.
        let longer = if until_ms >= half_ms { " or longer" } else { "" };
        Some(format!("{} until {}{longer}", arm.arm, time(until_ms)))
    });
    let arms: Vec<String> = arms.collect();
    (!arms.is_empty()).then(|| format!("{} of {}", score.name, arms.join(" and of ")))
}

/// Returns what to do about it.
fn more(window: &Window) -> &'static str {
    match window.effort {
        None => " (a longer --warmup, or none by hand)",
        Some(Thoroughness::Quick) => " (--effort normal goes on)",
        Some(Thoroughness::Normal) => " (--effort full goes on)",
        Some(Thoroughness::Full) => " (the effort is spent: --warmup and --measure by hand go on)",
    }
}

/// Returns a time of `ms` milliseconds in the unit that people would use.
fn time(ms: f64) -> String {
    let (value, unit) = match ms {
        _ if ms >= 1000.0 => (ms / 1000.0, "s"),
        _ if ms >= 1.0 || ms == 0.0 => (ms, "ms"),
        _ => (ms * 1000.0, "us"),
    };
    let shown = figure(value);
    let shown = if shown.contains('.') {
        shown.trim_end_matches('0').trim_end_matches('.')
    } else {
        &shown
    };
    format!("{shown} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let shown: Vec<String> = [0.0, 0.25, 1.0, 250.0, 2044.0, 60_000.0].map(time).into();
        assert_eq!(shown, ["0 ms", "250 us", "1 ms", "250 ms", "2.044 s", "60 s"]);
    }
}
