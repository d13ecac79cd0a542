// SPDX-License-Identifier: GPL-2.0-only
//! The formats, on a report made by hand.

use super::*;
use perch_experiment::{ArmModes, ArmResult, Published, Simulated};

fn cell(row: &str, published: [f64; 3], simulated: [f64; 3], calibration: bool) -> CellReport {
    let [baseline, patched, delta_pct] = simulated;
    CellReport {
        benchmark: "tbench".to_string(),
        place: "node0".to_string(),
        row: row.to_string(),
        unit: "MB/s".to_string(),
        published: Published {
            baseline: published[0],
            patched: Some(published[1]),
            delta_pct: published[2],
            sd_pct: None,
        },
        simulated: Simulated {
            baseline,
            patched,
            delta_pct,
            ci95_pct: Some(0.25),
        },
        baseline_ratio: baseline / published[0],
        calibration,
        within: (delta_pct - published[2]).abs() <= 3.0,
        sign_agrees: delta_pct * published[2] > 0.0,
        fitted: if calibration {
            vec!["baseline".to_string()]
        } else {
            Vec::new()
        },
        further: Vec::new(),
    }
}

fn report() -> Report {
    Report {
        experiment: "cluster-scan".to_string(),
        title: "Scan the cluster first".to_string(),
        source: "a mail".to_string(),
        machine: "kunpeng920".to_string(),
        era: "6.5".to_string(),
        hz: 250,
        seed: 1,
        arms: [("baseline", "cluster=off"), ("patched", "cluster=posted")]
            .map(|(name, modes)| ArmModes {
                name: name.to_string(),
                modes: modes.to_string(),
            })
            .to_vec(),
        cells: vec![
            cell(
                "n=1",
                [325.9673, 378.9117, 16.24],
                [330.0, 379.5, 15.0],
                true,
            ),
            cell(
                "n=32",
                [10368.6333, 10566.8667, 1.91],
                [10000.0, 9900.0, -1.0],
                false,
            ),
            cell(
                "n=64",
                [7868.77, 8182.01, 3.98],
                [10000.0, 9500.0, -5.0],
                false,
            ),
        ],
        summary: Summary {
            scored: 2,
            within: 1,
            sign_scored: 1,
            sign_agrees: 0,
            baseline_close: 1,
            baseline_rows: 2,
        },
    }
}

fn with_further() -> Report {
    let mut report = report();
    for cell in &mut report.cells {
        let ci95_pct = None;
        cell.further = vec![ArmResult {
            arm: "perch".to_string(),
            mean: 400.5,
            delta_pct: 21.5,
            ci95_pct,
        }];
    }
    report
}

#[test]
fn the_terminal_shows_both_tables_side_by_side() {
    insta::assert_snapshot!(experiments(&[report()], Format::Table));
}

#[test]
fn further_arms_follow_as_columns() {
    insta::assert_snapshot!(experiments(&[with_further()], Format::Table));
}

#[test]
fn markdown_is_a_section_a_table() {
    insta::assert_snapshot!(experiments(&[report()], Format::Markdown));
}

#[test]
fn csv_is_flat_and_complete() {
    insta::assert_snapshot!(experiments(&[report(), with_further()], Format::Csv));
}

#[test]
fn json_has_the_keys_of_the_contract() {
    insta::assert_snapshot!(experiments(&[report()], Format::Json));
}

#[test]
fn several_reports_are_a_json_list() {
    let text = experiments(&[report(), report()], Format::Json);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.as_array().map(Vec::len), Some(2));
}
