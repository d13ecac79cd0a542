// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of a diff: what an old result and a new one answer to the same question.

use std::fmt::Write as _;

use perch_experiment::{CountDiff, Diff, ScoreDiff};

use crate::experiment::{finite, optional};
use crate::figure::{direction, figure, interval, percent};
use crate::format::Format;
use crate::grid::Grid;
use crate::records::{json, write_csv};

/// Tables leave out counts that moved by less than this, in percent. CSV and JSON have them all.
const SHOWN_PCT: f64 = 1.0;

/// Returns `diff` in the form of `format`.
pub fn diff(diff: &Diff, format: Format) -> String {
    match format {
        Format::Table => sections(diff, "", Grid::text),
        Format::Markdown => sections(diff, "### ", Grid::markdown),
        Format::Csv => csv(diff),
        Format::Json => json(diff),
    }
}

fn sections(diff: &Diff, mark: &str, write: fn(&Grid) -> String) -> String {
    let blank = if mark.is_empty() { "" } else { "\n" };
    let [old, new] = diff.repetitions;
    let mut text = format!(
        "{}: {}, Linux {}, {old} old and {new} new repetitions\n",
        diff.workload, diff.machine, diff.era
    );
    for score in &diff.scores {
        let direction = direction(score.higher_is_better);
        let title = format!("{} ({}, {direction})", score.name, score.unit);
        let _ = writeln!(text, "\n{mark}{title}{blank}");
        text.push_str(&write(&score_grid(score)));
    }
    // A rate that was 0 or became 0 has moved, however small it is.
    let is_shown =
        |count: &&CountDiff| count.delta_pct.is_nan() || count.delta_pct.abs() >= SHOWN_PCT;
    let shown: Vec<&CountDiff> = diff.counts.iter().filter(is_shown).collect();
    if !shown.is_empty() {
        let _ = writeln!(text, "\n{mark}counts that moved, per simulated second{blank}");
        text.push_str(&write(&count_grid(&shown)));
    }
    match diff.counts.len() - shown.len() {
        0 => {}
        further => {
            let _ = writeln!(text, "\nmoved by less than {SHOWN_PCT} %: {further} counts");
        }
    }
    if diff.counts.is_empty() {
        text.push_str("\nno count moved\n");
    }
    text
}

fn score_grid(score: &ScoreDiff) -> Grid {
    let mut grid = Grid::new(&["arm"], &["old", "±95%", "new", "±95%", "change", "±95% (points)"]);
    let half = |half: Option<f64>| half.map_or(String::new(), figure);
    for arm in &score.arms {
        grid.row(vec![
            arm.arm.clone(),
            figure(arm.old),
            half(arm.old_ci95),
            figure(arm.new),
            half(arm.new_ci95),
            percent(arm.delta_pct),
            interval(arm.delta_ci95_pct),
        ]);
    }
    grid
}

fn count_grid(counts: &[&CountDiff]) -> Grid {
    let mut grid = Grid::new(&["kind", "event", "arm"], &["old", "new", "change"]);
    for count in counts {
        grid.row(vec![
            count.kind.replace('_', " "),
            count.name.clone(),
            count.arm.clone(),
            format!("{:.0}", count.old),
            format!("{:.0}", count.new),
            percent(count.delta_pct),
        ]);
    }
    grid
}

/// Writes one line per figure.
fn csv(diff: &Diff) -> String {
    let header = [
        "kind",
        "name",
        "unit",
        "arm",
        "old",
        "old_ci95",
        "new",
        "new_ci95",
        "delta_pct",
        "delta_ci95_pct",
    ];
    let mut records = vec![header.map(str::to_string).to_vec()];
    for score in &diff.scores {
        records.extend(score.arms.iter().map(|arm| {
            vec![
                "score".to_string(),
                score.name.clone(),
                score.unit.clone(),
                arm.arm.clone(),
                arm.old.to_string(),
                optional(arm.old_ci95),
                arm.new.to_string(),
                optional(arm.new_ci95),
                finite(arm.delta_pct),
                optional(arm.delta_ci95_pct),
            ]
        }));
    }
    let counts = diff.counts.iter().map(|count| {
        vec![
            count.kind.to_string(),
            count.name.clone(),
            "1/s".to_string(),
            count.arm.clone(),
            count.old.to_string(),
            String::new(),
            count.new.to_string(),
            String::new(),
            finite(count.delta_pct),
            String::new(),
        ]
    });
    records.extend(counts);
    write_csv(&records)
}
