// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of results that perch did not write as they stand.

use super::*;
use crate::html::html;
use crate::html::tests::{compared, with_loads};
use serde_json::json;

/// A comparison whose score has statistics and iterations.
fn described() -> Value {
    let mut found = compared();
    for arm in found["scores"][0]["arms"].as_array_mut().unwrap() {
        arm["statistics"] = json!([
            {"statistic": "mean", "value": 5.0, "delta_pct": 0.0, "delta_ci95_pct": 0.5},
            {"statistic": "std", "value": 0.1, "delta_pct": null, "delta_ci95_pct": null},
        ]);
        arm["iterations"] = json!([5.0, 5.5, 6.0]);
    }
    found
}

/// Makes a page of the results, if they are taken.
fn shown(value: &Value) -> Result<String, String> {
    let found = Results::parse(&value.to_string());
    found.map(|found| html(&[found], "0.1.0")).map_err(|why| why.to_string())
}

#[test]
fn what_the_types_let_pass_is_refused_by_its_place() {
    for (given, at, value, place) in [
        (compared(), "/scores/0/arms/1/arm", json!("c"), "scores[0].arms[1].arm: "),
        (compared(), "/totals/0/per_second", json!([1.0, 2.0, 3.0]), "totals[0].per_second: "),
        (compared(), "/scores/0/arms/0/ci95", json!(-1.0), "scores[0].arms[0].ci95: "),
        (compared(), "/latency/1/buckets/1/0", json!(1), "latency[1].buckets[1]: "),
        (compared(), "/cpus/0/busy_pct/2", json!(1e300), "cpus[0].busy_pct[2]: "),
        (compared(), "/arms", json!([]), "arms: "),
        (described(), "/scores/0/arms/1/statistics", json!([]), "scores[0].arms[1].statistics: "),
        (with_loads("n=1"), "/cells/1/further", json!([]), "cells[1].further: "),
        (with_loads("n=1"), "/loads/1/latency", json!([]), "loads[1].latency: "),
    ] {
        let mut changed = given;
        *changed.pointer_mut(at).unwrap() = value;
        let why = shown(&changed).unwrap_err();
        assert!(why.contains(&format!(" as perch writes it: {place}")), "{why}");
    }
}

#[test]
fn a_value_of_another_type_is_named_with_its_line() {
    let mut changed = compared();
    changed["hz"] = json!("often");
    let text = serde_json::to_string_pretty(&changed).unwrap();
    let line = 1 + text.lines().position(|line| line.contains("often")).unwrap();
    let why = Results::parse(&text).unwrap_err().to_string();
    assert!(why.contains(&format!("line {line} ")), "{why}");
}
