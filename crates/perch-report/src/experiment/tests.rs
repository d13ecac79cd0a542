// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the formats, on a report made by hand.

use super::*;
use crate::comparison::tests::read;
use perch_experiment::{ArmIterations, ArmResult};
use serde_json::{Value, json};

fn cell(row: &str, published: [f64; 3], simulated: [f64; 3], calibration: bool) -> Value {
    let [baseline, patched, delta_pct] = simulated;
    let pct = published[2];
    json!({
        "benchmark": "tbench", "where": "node0", "row": row, "unit": "MB/s", "higher_is_better": true,
        "machine": "kunpeng920", "calibration": calibration, "repetitions": 2,
        "published": {"baseline": published[0], "patched": published[1], "delta_pct": pct},
        "simulated": {"baseline": baseline, "patched": patched, "delta_pct": delta_pct,
            "ci95_pct": 0.25, "baseline_std": 0.5, "patched_std": 0.75},
        "baseline_ratio": baseline / published[0],
        "tolerance": {"low_pct": pct - 3.0, "high_pct": pct + 3.0},
        "verdict": "undecided", "direction": (pct.abs() > 3.0).then_some("disagrees"),
        "within": (delta_pct - pct).abs() <= 3.0, "sign_agrees": delta_pct * pct > 0.0,
        "fitted": if calibration { &["baseline"][..] } else { &[] },
    })
}

fn fit(benchmark: Option<&str>) -> Value {
    let closeness =
        |rms_pp: f64| json!({"rows": 2, "rms_pp": rms_pp, "spearman": benchmark.map(|_| 0.5)});
    json!({
        "benchmark": benchmark, "where": benchmark.map(|_| "node0"), "unit": benchmark.map(|_| "MB/s"),
        "simulated": closeness(6.61),
        "postings": [{"posting": "v8", "posted": closeness(1.25), "simulated": closeness(6.61)}],
    })
}

fn report() -> Report {
    read(json!({
        "experiment": "cluster-scan", "title": "Scan the cluster first", "source": "a mail",
        "machine": "kunpeng920", "era": "6.5", "hz": 250, "model": "0123456789abcdef", "seed": 1,
        "arms": [{"name": "baseline", "modes": "cluster=off"}, {"name": "patched", "modes": "cluster=posted"}],
        "cells": [
            cell("n=1", [325.9673, 378.9117, 16.24], [330.0, 379.5, 15.0], true),
            cell("n=32", [10368.6333, 10566.8667, 1.91], [10000.0, 9900.0, -1.0], false),
            cell("n=64", [7868.77, 8182.01, 3.98], [10000.0, 9500.0, -5.0], false),
        ],
        "fits": [fit(None), fit(Some("tbench"))],
        "summary": {"scored": 2, "within": 1, "agrees": 0, "disagrees": 1, "undecided": 1,
            "sign_scored": 1, "sign_agrees": 0, "direction_agrees": 0, "direction_disagrees": 1,
            "direction_undecided": 0, "baseline_close": 1, "baseline_rows": 2},
    }))
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
            std: Some(0.5),
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
fn several_reports_are_a_json_list() {
    let text = experiments(&[report(), report()], Format::Json);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.as_array().map(Vec::len), Some(2));
}

/// Returns a report of a benchmark whose rows are statistics, on two machines.
fn with_statistics() -> Report {
    let mut report = report();
    report.machine = "juno, pixel3".to_string();
    let rows = report.cells.clone();
    report.cells.clear();
    for (place, machine) in [("juno", "juno"), ("pixel3-MC", "pixel3")] {
        for (cell, row) in rows.iter().zip(["mean", "std", "99th"]) {
            report.cells.push(CellReport {
                benchmark: "hackbench".to_string(),
                place: place.to_string(),
                row: row.to_string(),
                unit: "s".to_string(),
                higher_is_better: false,
                machine: machine.to_string(),
                ..cell.clone()
            });
        }
        let values = |base: u32| (0..20).map(|i| f64::from(base + i * i % 23)).collect();
        let arms = [("baseline", 600), ("patched", 580)]
            .map(|(arm, base)| ArmIterations { arm: arm.to_string(), values: values(base) });
        report.iterations.push(Iterations {
            benchmark: "hackbench".to_string(),
            place: place.to_string(),
            machine: machine.to_string(),
            workload: "hackbench:loops=100".to_string(),
            unit: "s".to_string(),
            higher_is_better: false,
            arms: arms.to_vec(),
        });
    }
    report
}

#[test]
fn statistics_are_rows_of_a_table() {
    insta::assert_snapshot!(experiments(&[with_statistics()], Format::Table));
}

#[test]
fn json_has_every_iteration_beside_the_cells() {
    let text = experiments(&[with_statistics()], Format::Json);
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let found = &value["iterations"][1];
    assert_eq!(found["where"], "pixel3-MC");
    assert_eq!(found["machine"], "pixel3");
    assert_eq!(found["workload"], "hackbench:loops=100");
    assert_eq!(found["higher_is_better"], false);
    assert_eq!(found["arms"][1]["arm"], "patched");
    assert_eq!(found["arms"][1]["values"][2], 584.0);
    assert_eq!(value["cells"][5]["higher_is_better"], false);
    // Where rows are workloads the formats add nothing.
    let text = experiments(&[report()], Format::Json);
    assert!(!text.contains("iterations"), "{text}");
}

/// A deviation may be 0, and then its change is not a number.
#[test]
fn a_change_from_nothing_is_null_empty_or_a_dash() {
    let mut report = report();
    report.cells.truncate(1);
    report.cells[0].simulated.delta_pct = f64::NAN;
    report.cells[0].simulated.ci95_pct = None;
    let text = experiments(&[report.clone()], Format::Csv);
    assert!(text.contains(",330,379.5,,,1.01"), "{text}");
    let value: serde_json::Value =
        serde_json::from_str(&experiments(&[report.clone()], Format::Json)).unwrap();
    assert!(value["cells"][0]["simulated"]["delta_pct"].is_null());
    let text = experiments(&[report], Format::Table);
    assert!(text.contains("  379.50      -  "), "{text}");
}
