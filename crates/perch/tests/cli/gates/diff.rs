// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch diff`: an old result against a new one, of comparisons and of experiments.

use serde_json::Value;

use super::{experiment, written};
use crate::support::{directory, file, printed, refused, told};

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

/// The small experiment in a file, after `change`.
fn changed(name: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut found: Value = serde_json::from_str(&experiment()).unwrap();
    change(&mut found);
    file("diff", name, found.to_string())
}

fn diff(old: &str, new: &str, further: &str) -> (Option<i32>, String, String) {
    told(&format!("diff {old} {new} {further}"))
}

fn scale(number: &mut Value, factor: f64) {
    *number = (factor * number.as_f64().unwrap()).into();
}

#[test]
fn experiment_against_itself_has_not_changed() {
    let path = changed("same.json", |_| {});
    let (code, json, stderr) = diff(&path, &path, "--format json");
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let found: Value = serde_json::from_str(&json).unwrap();
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3, "{json}");
    for cell in cells {
        let arms = cell["arms"].as_array().unwrap();
        let names: Vec<&str> = arms.iter().map(|arm| arm["arm"].as_str().unwrap()).collect();
        assert_eq!(names, ["baseline", "patched"]);
        for arm in arms {
            assert_eq!(arm["delta_pct"], 0.0);
            assert_eq!(arm["delta_ci95_pct"], 0.0);
            assert!(arm["old_ci95"].as_f64().unwrap() > 0.0);
        }
    }
    let gates = "--fail-if */node0/*<0% --fail-if patched:tbench/node0/n=4>0%";
    let (code, table, stderr) = diff(&path, &path, gates);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(table.contains("tbench, node0 (MB/s, more is better)"), "{table}");
    assert_eq!(stderr.matches(" passed: ").count(), 7, "{stderr}");
    for (format, words) in
        [("markdown", "| n=4 |"), ("csv", "cluster-scan,tbench,node0,n=4,MB/s,patched,")]
    {
        let (code, text, _) = diff(&path, &path, &format!("--format {format}"));
        assert!(code == Some(0) && text.contains(words), "{text}");
    }
}

/// The intervals are those of Welch, by hand: of n values with a standard deviation s the error is
/// s / sqrt n.
#[test]
fn changes_of_cells_have_intervals_and_gates() {
    let figures = |cell: &mut Value, patched: f64, std: f64| {
        cell["repetitions"] = 4.into();
        cell["simulated"]["patched"] = patched.into();
        cell["simulated"]["patched_std"] = std.into();
    };
    let old = changed("old.json", |found| figures(&mut found["cells"][0], 100.0, 2.0));
    let new = changed("new.json", |found| figures(&mut found["cells"][0], 90.0, 2.0));
    let (code, json, stderr) = diff(&old, &new, "--format json");
    assert_eq!(code, Some(0), "{stderr}");
    let found: Value = serde_json::from_str(&json).unwrap();
    let patched = &found["cells"][0]["arms"][1];
    let close = |value: &Value, expected: f64| {
        let value = value.as_f64().unwrap();
        assert!((value - expected).abs() < 1e-2, "{value}, not {expected}");
    };
    close(&patched["delta_pct"], -10.0);
    // 3.182 is Student's for 3 degrees of freedom.
    close(&patched["old_ci95"], 3.182);
    // Errors are 0.9 and 1 %, so freedom is 1.81^2 / (0.6561 + 1) * 3 = 5.93, and its quantile 2.453.
    close(&patched["delta_ci95_pct"], 2.453 * 1.81_f64.sqrt());
    let junit = directory("diff").join("cells.xml");
    let failing = format!("--fail-if */n=4<-5% --junit {}", junit.display());
    let (code, _, stderr) = diff(&old, &new, &failing);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("/node0/n=4 of patched changed by -10.00% ±3.30 points"), "{stderr}");
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("tests=\"6\" failures=\"1\""), "{xml}");
    let (code, _, stderr) = diff(&old, &new, "--fail-if patched:*<-10%");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("undecided: "), "{stderr}");
    let refused = |gate: &str, words: &[&str]| {
        let (code, _, stderr) = diff(&old, &new, &format!("-q --fail-if {gate}"));
        assert_eq!(code, Some(2), "{stderr}");
        assert!(words.iter().all(|word| stderr.contains(word)), "{stderr}");
    };
    refused("speed<-2%", &["no score `speed`", "tbench/node0/n=4"]);
    refused("far:*<-2%", &["no arm `far`", "baseline, patched"]);
}

#[test]
fn statistics_without_deviation_leave_gates_undecided() {
    let run = "experiment run capacity-wakeup --repetitions 2 --format json --quiet --only \
               sysbench/juno/*";
    let json = printed(run);
    let old = file("diff", "statistics.json", &json);
    let mut found: Value = serde_json::from_str(&json).unwrap();
    for cell in found["cells"].as_array_mut().unwrap() {
        scale(&mut cell["simulated"]["baseline"], 1.1);
    }
    let new = file("diff", "statistics-more.json", found.to_string());
    let gate = "--fail-if baseline:sysbench/juno/max>-99%";
    let (code, _, stderr) = diff(&old, &new, gate);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("undecided: the change of sysbench/juno/max of baseline has no interval"),
        "{stderr}"
    );
    // The same iterations have the same maximum.
    let (code, _, stderr) = diff(&old, &old, "--fail-if sysbench/juno/max>0%");
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr.matches(" passed: ").count(), 2, "{stderr}");
    // Another question altogether: both files are named.
    let other = changed("other.json", |_| {});
    refused(&format!("diff {old} {other}"), &[&old, "capacity-wakeup", &other, "cluster-scan"]);
}

#[test]
fn baseline_of_relative_figures_has_no_change() {
    let path = changed("relative.json", |found| {
        found["cells"][0]["baseline_ratio"] = Value::Null;
    });
    let (code, json, stderr) = diff(&path, &path, "--format json");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("multiples of their own baseline: 1;"), "{stderr}");
    let found: Value = serde_json::from_str(&json).unwrap();
    let arms = found["cells"][0]["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 1, "{json}");
    assert_eq!(arms[0]["arm"], "patched");
}

#[test]
fn what_only_one_experiment_has_is_said() {
    let old = changed("all.json", |_| {});
    let new = changed("fewer.json", |found| {
        found["cells"].as_array_mut().unwrap().remove(0);
        found["cells"][0]["measure_ms"] = 1.into();
        found["arms"][1]["modes"] = "cluster=perch".into();
        scale(&mut found["cells"][0]["simulated"]["baseline"], 2.0);
    });
    let (code, table, stderr) = diff(&old, &new, "");
    assert_eq!(code, Some(0), "{stderr}");
    for words in [
        "only the old result has ",
        "warm-up and measured time differ in 1 of 2 cells",
        "the modes of arm patched were cluster=posted",
    ] {
        assert!(stderr.contains(words), "no `{words}`: {stderr}");
    }
    assert!(table.contains("+100.00%"), "{table}");
    let other = changed("era.json", |found| found["era"] = "7.2".into());
    refused(
        &format!("diff {old} {other}"),
        &["cluster-scan: era is `6.5` in the old and `7.2` in the new", "--anyway"],
    );
    assert_eq!(diff(&old, &other, "--anyway").0, Some(0));
}

#[test]
fn files_of_different_kinds_are_both_named() {
    let comparison = written("comparison.json", "", "");
    let experiment = changed("experiment.json", |_| {});
    refused(
        &format!("diff {comparison} {experiment}"),
        &[
            &format!("{comparison} is a result of perch compare"),
            &format!("{experiment} is a result of perch experiment run"),
            "expected two results of",
        ],
    );
}

#[test]
fn several_experiments_are_compared_by_name() {
    let one: Value = serde_json::from_str(&experiment()).unwrap();
    let mut two = one.clone();
    two["experiment"] = "again".into();
    let both = file("diff", "both.json", Value::from(vec![one.clone(), two.clone()]).to_string());
    let (code, json, stderr) = diff(&both, &both, "--format json --fail-if again/*<0%");
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(stderr.matches("passed: again/").count(), 6, "{stderr}");
    let found: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found.as_array().map(Vec::len), Some(2), "{json}");
    let alone = file("diff", "alone.json", two.to_string());
    let (code, _, stderr) = diff(&both, &alone, "");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("only the old result has cluster-scan"), "{stderr}");
}
