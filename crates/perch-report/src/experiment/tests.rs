// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the formats, on a report made by hand.

use super::*;
use crate::grid::tests::same_rows;
use perch_experiment::{
    ArmIterations, ArmModes, ArmResult, Posting, Published, Simulated, Summary, Tolerance,
};

fn cell(row: &str, published: [f64; 3], simulated: [f64; 3], calibration: bool) -> CellReport {
    let [baseline, patched, delta_pct] = simulated;
    CellReport {
        benchmark: "tbench".to_string(),
        place: "node0".to_string(),
        row: row.to_string(),
        unit: "MB/s".to_string(),
        higher_is_better: true,
        machine: "kunpeng920".to_string(),
        published: Published {
            baseline: published[0],
            patched: Some(published[1]),
            delta_pct: published[2],
            sd_pct: None,
            repeats: Vec::new(),
        },
        simulated: Simulated {
            baseline,
            patched,
            delta_pct,
            ci95_pct: Some(0.25),
            baseline_std: Some(0.5),
            patched_std: Some(0.75),
        },
        baseline_ratio: Some(baseline / published[0]),
        calibration,
        tolerance: Some(Tolerance { low_pct: published[2] - 3.0, high_pct: published[2] + 3.0 }),
        repetitions: 2,
        warmup_ms: 300.0,
        measure_ms: 100.0,
        transient_ms: None,
        is_short: false,
        verdict: Verdict::Undecided,
        direction: (published[2].abs() > 3.0).then_some(Verdict::Disagrees),
        within: (delta_pct - published[2]).abs() <= 3.0,
        sign_agrees: delta_pct * published[2] > 0.0,
        fitted: if calibration { vec!["baseline".to_string()] } else { Vec::new() },
        further: Vec::new(),
    }
}

fn fit(benchmark: Option<&str>) -> Fit {
    let closeness = |rms_pp| Closeness { rows: 2, rms_pp, spearman: benchmark.map(|_| 0.5) };
    let some = |text: &str| benchmark.map(|_| text.to_string());
    Fit {
        benchmark: benchmark.map(str::to_string),
        place: some("node0"),
        unit: some("MB/s"),
        simulated: closeness(6.61),
        postings: vec![Posting {
            posting: "v8".to_string(),
            posted: closeness(1.25),
            simulated: closeness(6.61),
        }],
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
        root_domain: None,
        model: "0123456789abcdef".to_string(),
        seed: 1,
        effort: None,
        arms: [("baseline", "cluster=off"), ("patched", "cluster=posted")]
            .map(|(name, modes)| ArmModes { name: name.to_string(), modes: modes.to_string() })
            .to_vec(),
        cells: vec![
            cell("n=1", [325.9673, 378.9117, 16.24], [330.0, 379.5, 15.0], true),
            cell("n=32", [10368.6333, 10566.8667, 1.91], [10000.0, 9900.0, -1.0], false),
            cell("n=64", [7868.77, 8182.01, 3.98], [10000.0, 9500.0, -5.0], false),
        ],
        iterations: Vec::new(),
        loads: Vec::new(),
        machines_toml: Vec::new(),
        c2c: None,
        fits: vec![fit(None), fit(Some("tbench"))],
        summary: Summary {
            scored: 2,
            within: 1,
            agrees: 0,
            disagrees: 1,
            undecided: 1,
            sign_scored: 1,
            sign_agrees: 0,
            direction_agrees: 0,
            direction_disagrees: 1,
            direction_undecided: 0,
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
fn markdown_has_the_rows_of_statistics() {
    let of = |format| experiments(&[with_statistics()], format);
    let (text, markdown) = (of(Format::Table), of(Format::Markdown));
    same_rows(&text, &markdown, 6);
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
