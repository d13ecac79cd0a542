// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of a comparison: arms on one workload, side by side.

use std::fmt::Write;

use perch_experiment::{Comparison, CountRow, ScoreRow};

use crate::circumstances;
use crate::contention;
use crate::experiment::{finite, optional};
use crate::figure::{direction, figure, interval, percent};
use crate::format::Format;
use crate::grid::{Align, Grid};
use crate::latency;
use crate::records::{json, write_csv};
use crate::settled;
use crate::shares::share_grid;
use crate::trust;

/// Returns `comparison` in the form of `format`.
pub fn comparison(comparison: &Comparison, format: Format) -> String {
    match format {
        Format::Table => sections(comparison, "", Grid::text),
        Format::Markdown => sections(comparison, "### ", Grid::markdown),
        Format::Csv => csv(comparison),
        Format::Json => json(comparison),
    }
}

fn sections(comparison: &Comparison, mark: &str, write: fn(&Grid) -> String) -> String {
    let blank = if mark.is_empty() { "" } else { "\n" };
    let mut text = format!(
        "{}: {}, {}\n",
        comparison.workload,
        circumstances::of_comparison(comparison),
        settled::times(comparison)
    );
    for doubt in settled::doubts(comparison) {
        let _ = writeln!(text, "{blank}{doubt}");
    }
    for (index, score) in comparison.scores.iter().enumerate() {
        // That the first is 0 is a doubt, above.
        if index > 0 && !score.occurred() {
            continue;
        }
        let direction = direction(score.higher_is_better);
        let title = format!("{} ({}, {direction})", score.name, score.unit);
        let _ = writeln!(text, "\n{mark}{title}{blank}");
        text.push_str(&write(&score_grid(comparison, score)));
        if score.arms.iter().any(|arm| !arm.statistics.is_empty()) {
            let _ = write!(text, "\n{}", write(&statistic_grid(score)));
        }
    }
    text.push_str(&latency::section(comparison, mark, write));
    for (title, rows) in counted(comparison) {
        let rows: Vec<&CountRow> = rows.iter().filter(|row| row.occurred()).collect();
        if !rows.is_empty() && comparison.place.is_some() {
            let _ = writeln!(text, "\n{mark}{title}, % of the recorded wake-ups{blank}");
            text.push_str(&write(&share_grid(comparison, &rows)));
        } else if !rows.is_empty() {
            let _ = writeln!(text, "\n{mark}{title}, per simulated second{blank}");
            text.push_str(&write(&count_grid(comparison, &rows)));
        }
    }
    text.push_str(&contention::sections(&comparison.contention, mark, write));
    for line in trust::lines(comparison) {
        let _ = writeln!(text, "\n{line}");
    }
    text
}

/// Returns everything that is counted, each kind under its heading.
pub(crate) fn counted(comparison: &Comparison) -> [(&'static str, &[CountRow]); 8] {
    comparison.counted().map(|(key, rows)| {
        let title = match key {
            "decisions" => "decisions by reason",
            "chosen" => "decisions by chosen CPU",
            "cache" => "decisions by cache step",
            "wake_distance" => "decisions by distance from the waker",
            "migrations" => "wake-ups by distance from the previous CPU",
            "balanced" => "tasks moved by the balancer, by distance",
            "guests" => "virtual machines",
            _ => "in all",
        };
        (title, rows)
    })
}

fn score_grid(comparison: &Comparison, score: &ScoreRow) -> Grid {
    let mut grid = Grid::new(&["arm", "modes"], &["mean", "±95%", "delta", "±95% (points)"]);
    let marked = |arm| comparison.unsettled(arm).is_some();
    let has_marks = score.arms.iter().any(marked);
    if has_marks {
        grid.column("", "", Align::Left);
    }
    for (index, (arm, modes)) in score.arms.iter().zip(&comparison.arms).enumerate() {
        let (delta, half) = match index {
            // The first arm has no change: the others are compared with it.
            0 => (String::new(), String::new()),
            _ => (percent(arm.delta_pct), interval(arm.delta_ci95_pct)),
        };
        let ci95 = arm.ci95.map_or(String::new(), figure);
        let mut row =
            vec![arm.arm.clone(), modes.modes.clone(), figure(arm.mean), ci95, delta, half];
        if has_marks {
            let mark = if marked(arm) { settled::MARK } else { "" };
            row.push(mark.to_string());
        }
        grid.row(row);
    }
    grid
}

/// Makes a table with a row a statistic, in the manner of published tables whose rows are
/// statistics.
fn statistic_grid(score: &ScoreRow) -> Grid {
    let mut grid = Grid::new(&["row"], &[]);
    for (index, arm) in score.arms.iter().enumerate() {
        // The first arm has no change: the others are compared with it.
        let names = &["figure", "delta", "±95%"][..if index == 0 { 1 } else { 3 }];
        grid.columns(&arm.arm, names, Align::Right);
    }
    for row in 0..score.arms.first().map_or(0, |arm| arm.statistics.len()) {
        let mut cells = vec![score.arms[0].statistics[row].statistic.clone()];
        for (index, arm) in score.arms.iter().enumerate() {
            let found = &arm.statistics[row];
            cells.push(figure(found.value));
            if index > 0 {
                cells.push(percent(found.delta_pct));
                cells.push(interval(found.delta_ci95_pct));
            }
        }
        grid.row(cells);
    }
    grid
}

pub(crate) fn count_grid(comparison: &Comparison, rows: &[&CountRow]) -> Grid {
    let mut grid = Grid::new(&[""], &[]);
    for arm in &comparison.arms {
        grid.column("", &arm.name, Align::Right);
    }
    for row in rows {
        let counts = row.per_second.iter();
        let counts = counts.map(|count| latency::rate(count.unwrap_or(f64::NAN)));
        grid.row([row.name.clone()].into_iter().chain(counts).collect());
    }
    grid
}

/// Writes one line a figure: its kind, its name, the arm, the value, and the interval where the
/// figure has one. Arms on several kernels have a line with the name of their kernel.
fn csv(comparison: &Comparison) -> String {
    let header =
        ["kind", "name", "unit", "arm", "value", "ci95", "delta_pct", "delta_ci95_pct", "settled"];
    let mut records = vec![header.map(str::to_string).to_vec()];
    if circumstances::has_several_kernels(comparison) {
        for kernel in &comparison.kernels {
            let record = ["kernel", &kernel.release, "", &kernel.arm];
            records.push(record.map(str::to_string).to_vec());
        }
    }
    for score in &comparison.scores {
        for arm in &score.arms {
            records.push(vec![
                "score".to_string(),
                score.name.clone(),
                score.unit.clone(),
                arm.arm.clone(),
                finite(arm.mean),
                optional(arm.ci95),
                finite(arm.delta_pct),
                optional(arm.delta_ci95_pct),
                comparison.unsettled(arm).is_none().to_string(),
            ]);
        }
        for arm in &score.arms {
            // The line of the score holds the mean already.
            for found in arm.statistics.iter().filter(|s| s.statistic != "mean") {
                records.push(vec![
                    found.statistic.clone(),
                    score.name.clone(),
                    score.unit.clone(),
                    arm.arm.clone(),
                    finite(found.value),
                    String::new(),
                    finite(found.delta_pct),
                    optional(found.delta_ci95_pct),
                ]);
            }
        }
    }
    for (kind, rows) in counted(comparison) {
        for row in rows {
            for (arm, rate) in comparison.arms.iter().zip(&row.per_second) {
                let (name, unit) = (row.name.clone(), "1/s".to_string());
                let value = optional(*rate);
                records.push(vec![kind.to_string(), name, unit, arm.name.clone(), value]);
            }
        }
    }
    records.extend(latency::records(comparison));
    for record in &mut records {
        record.resize(header.len(), String::new());
    }
    write_csv(&records)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use perch_experiment::{StatisticScore, Thoroughness, Trust};
    use serde::de::DeserializeOwned;
    use serde_json::json;

    pub(crate) fn given() -> Comparison {
        let arm = |name: &str, mean: f64, delta_pct: f64| {
            json!({"arm": name, "mean": mean, "ci95": 12.5, "std": 5.0, "delta_pct": delta_pct,
                "delta_ci95_pct": 0.5})
        };
        let row =
            |name: &str, per_second: [f64; 2]| json!([{"name": name, "per_second": per_second}]);
        let waited = |arm: &str, wakeups: u32, us: Option<f64>, buckets: [[u32; 2]; 2]| {
            let long = us.map(|us| 2.5 * us);
            json!({"arm": arm, "wakeups": wakeups, "mean_us": us.map(|us| 1.5 * us), "p50_us": us,
                "p90_us": long, "p99_us": long, "p99_9_us": long, "max_us": long,
                "buckets": &buckets[..wakeups.min(2) as usize]})
        };
        let busy = |arm: &str, pct: f64| json!({"arm": arm, "busy_pct": [pct, 100.0], "chosen_per_second": [1000.0, 0.0]});
        let held = json!({"experiments": ["cluster-scan"], "cells": 12, "agrees": 9, "disagrees": 2,
            "directions": 10, "directions_agree": 8, "error_pp": 8.59, "no_change_error_pp": 17.3});
        let found = json!({
            "machine": "kunpeng920", "workload": "tbench:n=16", "era": "6.5", "hz": 250,
            "model": "0123456789abcdef", "seed": 1, "repetitions": 3,
            "window": {"warmup_ms": 3000.0, "measure_ms": 3000.0, "balance_ms": 2044.0, "effort": "normal"},
            "arms": [{"name": "a", "modes": "cluster=off"}, {"name": "b", "modes": "cluster=perch"}],
            "scores": [{"name": "throughput", "unit": "MB/s", "higher_is_better": true,
                "arms": [arm("a", 5259.1, 0.0), arm("b", 5928.0, 12.72)]}],
            "latency": [waited("a", 3, Some(1.0), [[1007, 2], [2559, 1]]), waited("b", 0, None, [[0; 2]; 2])],
            "cpus": [busy("a", 25.5), busy("b", 0.0)],
            "decisions": row("target idle", [1000.0, 1200.4]), "chosen": [],
            "cache": row("redirected", [0.0, 800.0]), "wake_distance": row("cluster", [10.0, 900.0]),
            "migrations": row("LLC", [3.0, 0.0]), "balanced": [],
            "totals": row("wake-ups", [1000.0, 1200.4]),
        });
        let trust = Trust { load: "tbench".to_string(), held: read(held), ..Trust::default() };
        Comparison { trust: Some(trust), ..read(found) }
    }

    /// What a result's JSON says.
    pub(crate) fn read<T: DeserializeOwned>(value: serde_json::Value) -> T {
        serde_json::from_value(value).expect("a result")
    }

    fn described() -> Comparison {
        let mut described = given();
        for (index, arm) in described.scores[0].arms.iter_mut().enumerate() {
            let found = |name: &str, value| StatisticScore {
                statistic: name.to_string(),
                value,
                delta_pct: 2.5 * index as f64,
                delta_ci95_pct: (name == "mean").then_some(0.5),
            };
            arm.statistics = vec![found("mean", arm.mean), found("99th", arm.mean + 25.0)];
            arm.iterations = (0..9).map(|i| arm.mean + f64::from(i * i)).collect();
        }
        described
    }

    #[test]
    fn statistics_follow_the_score() {
        insta::assert_snapshot!(comparison(&described(), Format::Table));
    }

    #[test]
    fn csv_has_a_line_a_statistic_but_the_mean() {
        let text = comparison(&described(), Format::Csv);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("99th")).collect();
        assert_eq!(
            lines,
            ["99th,throughput,MB/s,a,5284.1,,0,,", "99th,throughput,MB/s,b,5953,,2.5,,"]
        );
        assert!(!text.contains("mean"), "{text}");
    }

    #[test]
    fn what_was_measured_says_where() {
        let mut found = given();
        found.place = Some("a guest of 8 CPUs".to_string());
        found.trust = None;
        found.window = None;
        found.hz = 0;
        let text = comparison(&found, Format::Table);
        let words = "kunpeng920 as a guest of 8 CPUs, Linux 6.5, seed 1, model 0123456789abcdef, 3 repetitions\n";
        assert!(text.contains(words), "{text}");
    }

    /// The doubts of a comparison, and the words beside each arm's first score.
    fn doubted(change: impl Fn(&mut Comparison)) -> (Vec<String>, [bool; 2]) {
        let mut found = given();
        change(&mut found);
        let text = comparison(&found, Format::Table);
        let beside = ["a ", "b "].map(|arm| {
            let line = text.lines().find(|line| line.starts_with(arm)).unwrap();
            line.ends_with(settled::MARK)
        });
        (settled::doubts(&found), beside)
    }

    #[test]
    fn what_is_settled_has_no_doubts() {
        assert_eq!(doubted(|_| {}), (Vec::new(), [false; 2]));
    }

    #[test]
    fn a_transient_is_said_beside_its_figure_and_above() {
        let (doubts, beside) = doubted(|found| {
            found.scores[0].arms[1].transient_ms = Some(3450.0);
        });
        let words = "not settled: time alone still changed throughput of b until 3.45 s (--effort full \
                     goes on)";
        assert_eq!((doubts, beside), (vec![words.to_string()], [false, true]));
        let (doubts, _) = doubted(|found| {
            found.scores[0].arms[0].transient_ms = Some(4500.0);
        });
        assert!(doubts[0].contains("a until 4.5 s or longer"), "{doubts:?}");
    }

    #[test]
    fn times_that_end_before_the_balancer_had_its_turn_settle_nothing() {
        let short = |effort| {
            doubted(move |found: &mut Comparison| {
                let window = found.window.as_mut().unwrap();
                window.warmup_ms = 250.0;
                window.effort = effort;
            })
        };
        let (doubts, beside) = short(Some(Thoroughness::Full));
        let words = "not settled: a warm-up of 250 ms is shorter than the 2.044 s that";
        assert!(doubts[0].starts_with(words), "{doubts:?}");
        assert_eq!(beside, [true; 2]);
        // Nor does a time by hand.
        let (doubts, beside) = short(None);
        assert!(doubts[0].starts_with(words), "{doubts:?}");
        assert!(doubts[0].ends_with("(a longer --warmup, or none by hand)"), "{doubts:?}");
        assert_eq!(beside, [true; 2]);
    }

    #[test]
    fn window_by_hand_that_is_too_short_for_a_slow_change_is_said_to_be_so() {
        let (doubts, beside) = doubted(|found| {
            let window = found.window.as_mut().unwrap();
            window.measure_ms = 100.0;
            window.effort = None;
        });
        let words = "not settled: what was measured, 100 ms, is shorter than the 2.044 s that";
        assert!(doubts[0].starts_with(words), "{doubts:?}");
        assert!(doubts[0].ends_with("(a longer --measure, or none by hand)"), "{doubts:?}");
        assert_eq!((doubts.len(), beside), (1, [true; 2]));
    }

    #[test]
    fn one_repetition_and_nothing_measured_are_said() {
        let (doubts, _) = doubted(|found| {
            found.repetitions = 1;
            found.scores[0].arms[0].mean = 0.0;
        });
        assert!(doubts[0].starts_with("one repetition: "), "{doubts:?}");
        assert!(
            doubts[1].starts_with("throughput of a is 0: nothing came to an end in 3 s"),
            "{doubts:?}"
        );
    }

    #[test]
    fn the_terminal_shows_scores_and_then_counts() {
        insta::assert_snapshot!(comparison(&given(), Format::Table));
    }

    #[test]
    fn what_an_arm_does_not_count_is_no_zero_and_what_no_arm_did_is_no_row() {
        let mut found = given();
        let row = |name: &str, per_second: [Option<f64>; 2]| CountRow {
            name: name.to_string(),
            per_second: per_second.to_vec(),
        };
        found.decisions = vec![row("target idle", [Some(1000.0), None])];
        found.totals = vec![
            row("CPUs examined", [Some(0.0), None]),
            row("changes of LLC", [Some(0.0), Some(0.0)]),
            row("bounces", [Some(0.0), Some(3.0)]),
            row("rare", [Some(0.034), Some(0.6)]),
        ];
        for format in [Format::Table, Format::Markdown] {
            let text = comparison(&found, format);
            let line = |name: &str| -> Vec<&str> {
                let line = text.lines().find(|line| line.contains(name)).unwrap();
                line.split([' ', '|']).filter(|word| !word.is_empty()).collect()
            };
            assert_eq!(line("target idle"), ["target", "idle", "1000", "-"]);
            assert_eq!(line("rare"), ["rare", "0.03", "1"]);
            assert!(text.contains("bounces"), "{text}");
            for gone in ["CPUs examined", "changes of LLC"] {
                assert!(!text.contains(gone), "{text}");
            }
        }
        let text = comparison(&found, Format::Csv);
        assert!(text.contains("decisions by reason,target idle,1/s,b,,,,,\n"), "{text}");
        let text = comparison(&found, Format::Json);
        let json: Comparison = serde_json::from_str(&text).unwrap();
        assert_eq!(json.decisions, found.decisions);
        assert!(text.contains("null"), "{text}");
    }

    #[test]
    fn score_that_nothing_happened_for_is_read_again_and_is_no_table() {
        let mut found = given();
        let mut row = found.scores[0].clone();
        row.name = "wake-up latency".to_string();
        for arm in &mut row.arms {
            (arm.mean, arm.delta_pct) = (f64::NAN, f64::NAN);
            (arm.ci95, arm.delta_ci95_pct) = (Some(f64::NAN), Some(f64::NAN));
            arm.iterations = vec![f64::NAN; 2];
        }
        found.scores.push(row);
        for format in [Format::Table, Format::Markdown, Format::Csv] {
            assert!(!comparison(&found, format).contains("NaN"));
        }
        let table = comparison(&found, Format::Table);
        assert!(!table.contains("wake-up latency (MB/s"), "{table}");
        let text = comparison(&found, Format::Json);
        let read: Comparison = serde_json::from_str(&text).unwrap();
        let arm = &read.scores[1].arms[0];
        assert!(arm.mean.is_nan() && arm.iterations[0].is_nan());
        // One arm with a figure makes a row, in which the other has a dash.
        found.scores[1].arms[0].mean = 4.0;
        let table = comparison(&found, Format::Table);
        assert!(table.contains("wake-up latency (MB/s") && !table.contains("NaN"), "{table}");
    }

    #[test]
    fn percentiles_that_are_one_figure_are_said_to_be() {
        let mut found = given();
        let words = "50th = 99.9th of a: the model has no noise there";
        assert!(!comparison(&found, Format::Table).contains(words));
        found.latency[0].p99_9_us = 1.0004 * found.latency[0].p50_us;
        assert!(comparison(&found, Format::Table).contains(words));
    }

    #[test]
    fn csv_is_a_line_a_figure() {
        insta::assert_snapshot!(comparison(&given(), Format::Csv));
    }
}
