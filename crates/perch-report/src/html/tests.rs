// SPDX-License-Identifier: GPL-2.0-only
//! The page of results made by hand.

use super::*;
use serde_json::json;

fn experiment(row: &str) -> serde_json::Value {
    let cell = |row: &str, baseline: f64, patched: f64, within: bool| {
        json!({
            "benchmark": "tbench", "where": "node0", "row": row, "unit": "MB/s",
            "higher_is_better": true, "machine": "kunpeng920",
            "published": {"baseline": baseline, "patched": patched, "delta_pct": 16.24},
            "simulated": {"baseline": baseline, "patched": patched, "delta_pct": null, "ci95_pct": 0.4},
            "baseline_ratio": 1.0, "calibration": false, "within": within, "sign_agrees": true,
            "further": [{"arm": "perch", "mean": 380.0, "delta_pct": 17.0, "ci95_pct": null}],
        })
    };
    json!({
        "experiment": "cluster-scan", "title": "Scan <first> & \"last\"", "source": "a mail",
        "machine": "kunpeng920", "era": "6.5", "hz": 250, "seed": 1,
        "arms": [{"name": "baseline", "modes": "cluster=off"}, {"name": "patched", "modes": "cluster=posted"}],
        "cells": [cell(row, 325.0, 378.0, true), cell("n=64", 7868.0, 8182.0, false)],
        "summary": {"scored": 2, "within": 1, "sign_scored": 2, "sign_agrees": 2,
            "baseline_close": 2, "baseline_rows": 2},
    })
}

fn compared() -> serde_json::Value {
    let arm = |name: &str, mean: f64| json!({"arm": name, "mean": mean, "ci95": null, "delta_pct": 0.0, "delta_ci95_pct": null});
    let count = |name: &str| json!({"name": name, "per_second": [10.0, 0.0]});
    json!({
        "machine": "juno", "workload": "pipe", "era": "7.2", "hz": 250, "seed": 1, "repetitions": 1,
        "arms": [{"name": "a", "modes": "capacity=off"}, {"name": "b", "modes": "capacity=posted"}],
        "scores": [{"name": "rate", "unit": "1/s", "higher_is_better": true,
            "arms": [arm("a", 5.0), arm("b", 6.0)]}],
        "decisions": [count("target idle")], "chosen": [], "cache": [], "wake_distance": [count("LLC")],
        "migrations": [], "balanced": [], "totals": [count("wake-ups")],
    })
}

fn count(page: &str, what: &str) -> usize {
    page.matches(what).count()
}

#[test]
fn every_chart_has_its_words_and_every_section_its_table() {
    let results = [experiment("n=1").to_string(), compared().to_string()];
    let results: Vec<Results> = results.iter().map(|t| Results::parse(t).unwrap()).collect();
    let page = html(&results, "0.1.0");
    // Agreement and tbench; a score and three kinds of counts.
    assert_eq!(count(&page, "<svg role=\"img\" aria-label="), 6);
    assert_eq!(count(&page, "<figcaption>"), 6);
    assert_eq!(count(&page, "<table>"), 5);
    assert_eq!(count(&page, "<h2 id="), 2);
    assert!(page.contains("Scan &lt;first&gt; &amp; &quot;last&quot;"));
    assert!(page.contains("pipe on juno") && page.contains("published baseline"));
    // One file: nothing is fetched.
    for outside in ["src=", "@import", "url(", "<script", "href=\"http"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// Every colour of a chart is one that the style knows in light, in dark and on paper.
#[test]
fn the_style_knows_every_colour() {
    let results = [experiment("n=1").to_string(), compared().to_string()];
    let results: Vec<Results> = results.iter().map(|t| Results::parse(t).unwrap()).collect();
    let page = html(&results, "0.1.0");
    let (style, body) = page.split_once("</style>").unwrap();
    for attribute in ["fill=\"", "stroke=\""] {
        for part in body.split(attribute).skip(1) {
            let color = part.split('"').next().unwrap();
            let known = style.contains(&format!("[{attribute}{color}\"]"));
            assert!(known || color == "none", "{attribute}{color}");
        }
    }
}

#[test]
fn rows_of_other_kinds_have_a_table_without_a_chart_of_their_own() {
    let results = Results::parse(&json!([experiment("patch3")]).to_string()).unwrap();
    let page = html(&[results], "0.1.0");
    assert!(page.contains("<td>patch3</td>"));
    assert_eq!(count(&page, "<table>"), 1);
}

#[test]
fn what_is_no_result_is_refused_in_words() {
    let mut broken = experiment("n=1");
    broken["cells"][0]["unit"] = json!(7);
    for (text, expected) in [
        ("{", "is not JSON"),
        ("{}", "is neither of"),
        ("[]", "is neither of"),
        (
            broken.to_string().as_str(),
            "is not an experiment: invalid type: integer `7`",
        ),
    ] {
        let error = Results::parse(text).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}
