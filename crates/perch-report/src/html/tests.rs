// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the page, for results made by hand.

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
            "verdict": if within { "agrees" } else { "undecided" },
            "further": [{"arm": "perch", "mean": 380.0, "delta_pct": 17.0, "ci95_pct": null}],
        })
    };
    json!({
        "experiment": "cluster-scan", "title": "Scan <first> & \"last\"", "source": "a mail",
        "machine": "kunpeng920", "era": "6.5", "hz": 250, "seed": 1,
        "arms": [{"name": "baseline", "modes": "cluster=off"}, {"name": "patched", "modes": "cluster=posted"}],
        "cells": [cell(row, 325.0, 378.0, true), cell("n=64", 7868.0, 8182.0, false)],
        "summary": {"scored": 2, "within": 1, "agrees": 1, "undecided": 1, "direction_agrees": 2, "sign_scored": 2, "sign_agrees": 2,
            "baseline_close": 2, "baseline_rows": 2},
    })
}

fn waited(arm: &str, us: u32) -> serde_json::Value {
    json!({"arm": arm, "wakeups": 100, "mean_us": us, "p50_us": us, "p90_us": us, "p99_us": 2 * us,
        "p99_9_us": 2 * us, "max_us": 2 * us, "buckets": [[us * 1000, 98], [us * 2000, 2]]})
}

/// Returns the counts of the loads of [`experiment`]'s cells, on juno, which has six CPUs.
pub(crate) fn with_loads(row: &str) -> serde_json::Value {
    let load = |row: &str, moved: f64| {
        json!({
            "benchmark": "tbench", "where": "node0", "row": row, "machine": "juno",
            "workload": "tbench:n=1",
            "latency": [waited("baseline", 1), waited("patched", 3)],
            "decisions": [{"name": "target idle", "per_second": [30.0, 10.0]},
                {"name": "LLC scan", "per_second": [10.0, 0.0]}],
            "migrations": [{"name": "LLC", "per_second": [40.0, 10.0]}],
            "cpus": [{"arm": "baseline", "busy_pct": [50.0, 0.0, 0.0, 0.0, 0.0, 7.0]},
                {"arm": "patched", "busy_pct": [50.0 - moved, moved, 0.0, 0.0, 0.0, 0.01]}],
        })
    };
    let mut found = experiment(row);
    found["loads"] = json!([load(row, 1.0), load("n=64", 2.0)]);
    found["machines_toml"] = json!([perch_machine::resolve("juno").unwrap().to_toml()]);
    found
}

pub(crate) fn compared() -> serde_json::Value {
    let arm = |name: &str, mean: f64| json!({"arm": name, "mean": mean, "ci95": null, "delta_pct": 0.0, "delta_ci95_pct": null});
    let count = |name: &str| json!({"name": name, "per_second": [10.0, 0.0]});
    json!({
        "machine": "juno", "workload": "pipe", "era": "7.2", "hz": 250, "seed": 1, "repetitions": 1,
        "arms": [{"name": "a", "modes": "capacity=off"}, {"name": "b", "modes": "capacity=posted"}],
        "scores": [{"name": "rate", "unit": "1/s", "higher_is_better": true,
            "arms": [arm("a", 5.0), arm("b", 6.0)]}],
        "latency": [waited("a", 2), waited("b", 40)],
        "cpus": [{"arm": "a", "busy_pct": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "chosen_per_second": []},
            {"arm": "b", "busy_pct": [99.0, 0.0, 0.0, 0.0, 0.0, 0.0], "chosen_per_second": []}],
        "machine_toml": perch_machine::resolve("juno").unwrap().to_toml(),
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
    // The page has charts for agreement and tbench, a score, latency, the machine and three kinds
    // of counts.
    assert_eq!(count(&page, "<svg role=\"img\" aria-label="), 8);
    assert_eq!(count(&page, "<title>"), 1 + 8);
    assert_eq!((count(&page, "<desc>"), count(&page, "<figcaption>")), (8, 8));
    assert_eq!(count(&page, "<table>"), 7);
    assert_eq!(count(&page, "<h2 id="), 2);
    assert!(page.contains("Scan &lt;first&gt; &amp; &quot;last&quot;"));
    assert!(page.contains("pipe on juno") && page.contains("published baseline"));
    // The page is one file: it fetches nothing.
    for outside in ["src=", "@import", "url(", "<script", "href=\"http"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// The page of an experiment's loads has the same parts: it draws the load where the arms differ
/// most.
#[test]
fn what_an_experiments_loads_did_is_shown_by_table() {
    let results = Results::parse(&with_loads("n=1").to_string()).unwrap();
    let page = html(&[results], "0.1.0");
    // The page has charts for agreement and tbench, latency by load, reasons, distances and the
    // machine.
    assert_eq!(count(&page, "<svg role=\"img\" aria-label="), 6);
    assert_eq!(count(&page, "<table>"), 5);
    for what in [
        "at n=64, where the arms differ most",
        // The mean of two loads, each with three quarters.
        "<td>target idle</td><td>75.00</td><td>100.00</td>",
        "<td>CPU 1</td><td>0.0 %</td><td>2.0 %</td>",
        "<td>n=64</td><td>1.000</td><td>2.000</td>",
        "1 of 2 changes agree, 0 disagree, 1 are undecided; 2 of 2 directions agree",
        "<a href=\"#s1-tbench--node0\">",
        "<h3 id=\"s1-tbench--node0\">",
    ] {
        assert!(page.contains(what), "{what}: {page}");
    }
}

/// Somebody may have shortened a result, or given it the CPUs of another machine.
#[test]
fn what_does_not_fit_together_is_left_out() {
    let mut found = compared();
    found["cpus"][0]["busy_pct"] = json!([1.0]);
    found["cpus"][1]["busy_pct"] = json!([]);
    found["latency"] = json!([]);
    let page = html(&[Results::parse(&found.to_string()).unwrap()], "0.1.0");
    assert_eq!(count(&page, "<svg role=\"img\" aria-label="), 4);
    found["machine_toml"] = json!("name = 3");
    found["latency"] = json!([waited("a", 1)]);
    let page = html(&[Results::parse(&found.to_string()).unwrap()], "0.1.0");
    assert_eq!(count(&page, "<svg role=\"img\" aria-label="), 5);
}

/// Every CPU of the largest machines has a bar with its figure, in the page's width.
#[test]
fn machines_are_drawn_with_every_cpu_in_the_width_of_the_page() {
    for name in perch_machine::library::names() {
        let machine = perch_machine::resolve(name).unwrap();
        let shares: Vec<f64> = (0..machine.cpus.len()).map(|cpu| (cpu % 101) as f64).collect();
        let words = Words { name: "a", said: "b" };
        let svg = machine::draw(&machine, &words, &[("one", &shares), ("two", &shares)]);
        let figures = svg.split("text-anchor=\"middle\"").nth(1).unwrap();
        assert_eq!(count(figures, "<text "), 2 * machine.cpus.len(), "{name}");
        assert!(svg.len() < 2000 + 200 * machine.cpus.len(), "{name}: {}", svg.len());
        for x in svg.split('M').skip(1) {
            let x: i32 = x.split(' ').next().unwrap().parse().unwrap();
            assert!((0..chart::WIDTH as i32).contains(&x), "{name}: {x}");
        }
        let rows = machine::rows(&machine, 32, &[("one", &shares)]);
        assert!((1..=32).contains(&rows.len()), "{name}: {}", rows.len());
    }
}

/// The style knows every colour of a chart in light, in dark and on paper.
#[test]
fn the_style_knows_every_colour() {
    let results = [with_loads("n=1").to_string(), compared().to_string()];
    let results = results.iter().map(|text| Results::parse(text).unwrap());
    let results: Vec<Results> = results.collect();
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
        (broken.to_string().as_str(), "is not an experiment: invalid type: integer `7`"),
    ] {
        let error = Results::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// A comparison that measured for a time has a chart of its first score over that time, with a line where
/// an arm's transient ended; a score that was steady has none beyond the first.
#[test]
fn scores_are_drawn_over_the_measured_time_with_the_end_of_a_transient() {
    let mut found = compared();
    let before =
        count(&html(&[Results::parse(&found.to_string()).unwrap()], "0.1.0"), "<svg role=\"img\"");
    found["window"] = json!({"warmup_ms": 250.0, "measure_ms": 250.0, "balance_ms": 96.0});
    let second = found["scores"][0].clone();
    found["scores"].as_array_mut().unwrap().push(second);
    for score in 0..2 {
        for arm in 0..2 {
            found["scores"][score]["arms"][arm]["course"] = json!([1.0, null, 3.0, 4.0]);
        }
    }
    let drawn =
        |found: &serde_json::Value| html(&[Results::parse(&found.to_string()).unwrap()], "0.1.0");
    let page = drawn(&found);
    // The second score has its bars, and no course.
    assert_eq!(count(&page, "<svg role=\"img\""), before + 2);
    assert_eq!(count(&page, "over the measured time\""), 1);
    assert!(!page.contains("not settled before"));
    found["scores"][1]["arms"][1]["transient_ms"] = json!(300.0);
    let page = drawn(&found);
    assert_eq!(count(&page, "over the measured time\""), 2);
    assert!(page.contains("b not settled before"));
    assert!(page.contains("time alone still changed rate of b until 300 ms"), "{page}");
}
