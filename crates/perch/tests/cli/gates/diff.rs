// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch diff`: an old comparison against a new one.

use serde_json::Value;

use super::{experiment, written};
use crate::support::{file, refused, told};

#[test]
fn diff_of_a_result_with_itself_is_zero() {
    let path = written("same.json", "", "");
    let diff = |further: &str| told(&format!("diff {path} {path} {further}"));
    let (code, json, stderr) = diff("--format json");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let found: Value = serde_json::from_str(&json).unwrap();
    let scores = found["scores"].as_array().unwrap();
    assert_eq!(scores.len(), 2, "{json}");
    for arm in scores.iter().flat_map(|score| score["arms"].as_array().unwrap()) {
        assert_eq!(
            (arm["delta_pct"].as_f64(), arm["delta_ci95_pct"].as_f64()),
            (Some(0.0), Some(0.0))
        );
    }
    for empty in ["counts", "differs", "notes"] {
        assert_eq!(found[empty], serde_json::json!([]), "{empty}");
    }
    let (code, table, stderr) =
        diff("--fail-if transactions<0% --fail-if 'stock:wake-up latency>0%'");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(table.contains("no count moved"), "{table}");
    assert_eq!(stderr.matches(" passed: ").count(), 3, "{stderr}");
    for format in ["markdown", "csv"] {
        let (code, text, _) = diff(&format!("--format {format}"));
        assert!(code == Some(0) && text.contains("near"), "{text}");
    }
}

#[test]
fn diff_shows_what_moved_between_builds() {
    let old = written("old.json", "", "");
    let text = std::fs::read_to_string(&old).unwrap();
    // A build that is twice as fast in one arm, and wakes up a CPU less.
    let mut new: Value = serde_json::from_str(&text).unwrap();
    let mean = &mut new["scores"][0]["arms"][1]["mean"];
    *mean = (2.0 * mean.as_f64().unwrap()).into();
    new["totals"][0]["per_second"][0] = 1.into();
    let new = file("gates", "new.json", new.to_string());
    let (code, table, stderr) = told(&format!("diff {old} {new} --fail-if near:transactions>50%"));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(table.contains("+100.00%"), "{table}");
    assert!(table.contains("counts that moved"), "{table}");
    let (code, _, stderr) = told(&format!("diff {old} {new} --fail-if stock:transactions>50%"));
    assert_eq!(code, Some(0), "{stderr}");
    refused(&format!("diff {old} {new} --fail-if far:x<1%"), &["no arm `far`", "stock, near"]);
}

#[test]
fn diff_of_different_questions_is_refused() {
    let old = written("v7.json", "", "");
    let new = written("v65.json", "\"era\": \"7.2\"", "\"era\": \"6.5\"");
    refused(
        &format!("diff {old} {new}"),
        &["era is `7.2` in the old and `6.5` in the new", "--anyway"],
    );
    let (code, table, stderr) = told(&format!("diff {old} {new} --anyway"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(table.contains("+0.00%"), "{table}");
}

#[test]
fn result_of_an_experiment_is_refused_by_name() {
    let comparison = written("comparison.json", "", "");
    let experiment = file("gates", "experiment.json", experiment());
    refused(
        &format!("diff {comparison} {experiment}"),
        &[&format!("{experiment} is a result of perch experiment run"), "perch experiment check"],
    );
}
