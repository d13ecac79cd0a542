// SPDX-License-Identifier: GPL-2.0-or-later
//! Gates, which answer yes or no.

mod diff;

use std::sync::LazyLock;

use perch_report::Results;

use crate::support::{directory, file, printed, refused, told};

/// A comparison of two arms that differ by much and are settled: the balancer needs no more than a second to
/// spread tasks over the LLC.
const COMPARE: &str = "compare -m kunpeng920 -w tcp_rr:n=1,where=cpu0-7 --arm stock:cluster=off \
                       --arm near:cluster=perch --warmup 1s --measure 1s --repetitions 3 --jobs 2";

/// Runs the comparison with further arguments, and returns its exit code, stdout and stderr.
fn compare(further: &str) -> (Option<i32>, String, String) {
    told(&format!("{COMPARE} {further}"))
}

/// The change of the second arm's first score, in percent.
fn change() -> f64 {
    let (code, json, stderr) = compare("-q --format json");
    assert_eq!(code, Some(0), "{stderr}");
    let Ok(Results::Comparison(found)) = Results::parse(&json) else {
        panic!("no comparison: {json}");
    };
    let score = &found.scores[0];
    assert_eq!(score.name, "transactions", "the tests name this score");
    assert!(score.arms[1].delta_ci95_pct.unwrap() > 0.0);
    score.arms[1].delta_pct
}

#[test]
fn gates_pass_fail_or_stay_undecided() {
    let pct = change();
    let (code, stdout, stderr) = compare("--fail-if transactions<-50%");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("transactions ("), "{stdout}");
    assert!(
        stderr.contains("perch: gate 'transactions<-50%' passed: transactions of near changed by"),
        "{stderr}"
    );
    // Results stand on stdout whatever the gates answer.
    let failing = format!("near:transactions>{}%", pct - 50.0);
    let (code, stdout, stderr) =
        compare(&format!("-q --fail-if {failing} --fail-if transactions<-50%"));
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stdout.contains("transactions ("), "{stdout}");
    assert!(stderr.contains("failed: transactions of near"), "{stderr}");
    assert!(stderr.contains("the whole 95 % interval lies above"), "{stderr}");
    assert!(stderr.contains("perch: 1 of 2 answers"), "{stderr}");
    assert!(!stderr.contains("passed"), "{stderr}");
    let (code, _, stderr) = compare(&format!("--fail-if transactions>{pct}%"));
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("undecided: transactions of near"), "{stderr}");
}

#[test]
fn gates_name_arms_and_scores_that_exist() {
    let refused = |further: &str, words: &[&str]| {
        refused(&format!("{COMPARE} -q {further}"), words);
    };
    refused("--fail-if far:transactions<-2%", &["no arm `far`", "expected one of near"]);
    refused("--fail-if stock:transactions<-2%", &["first arm, `stock`", "one of near"]);
    refused("--fail-if transactions-2%", &["--fail-if", "expected [ARM:]SCORE<PERCENT%"]);
}

#[test]
fn unknown_score_lists_those_that_were_measured() {
    let (code, stdout, stderr) = compare("-q --fail-if speed<-2%");
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stdout.contains("transactions ("), "{stdout}");
    assert!(stderr.contains("no score `speed`; expected one of transactions, "), "{stderr}");
    assert!(stderr.contains("wake-up latency"), "{stderr}");
}

/// Writes the JSON of the comparison, with `from` replaced by `to`, and returns the file's path.
fn written(name: &str, from: &str, to: &str) -> String {
    let (code, json, stderr) = compare("-q --format json");
    assert_eq!(code, Some(0), "{stderr}");
    assert!(json.contains(from), "no `{from}` in {json}");
    file("gates", name, json.replacen(from, to, 1))
}

/// A small experiment of three cells in the JSON of `perch experiment run`, which runs once.
fn experiment() -> String {
    const RUN: &str =
        "experiment run cluster-scan -q --only */node0/n=4 --repetitions 2 --format json";
    static JSON: LazyLock<String> = LazyLock::new(|| printed(RUN));
    JSON.clone()
}

#[test]
fn check_fails_where_a_kept_cell_no_longer_agrees() {
    let json = experiment();
    let with = |name: &str, verdict: &str| {
        let mut found: serde_json::Value = serde_json::from_str(&json).unwrap();
        let report = match found.is_array() {
            true => &mut found[0],
            false => &mut found,
        };
        for cell in report["cells"].as_array_mut().unwrap() {
            cell["calibration"] = false.into();
            cell["verdict"] = verdict.into();
        }
        file("gates", name, found.to_string())
    };
    let [agrees, undecided, disagrees] = ["agrees", "undecided", "disagrees"]
        .map(|verdict| with(&format!("{verdict}.json"), verdict));
    let check = |new: &str, kept: &str| told(&format!("experiment check {new} --against {kept}"));
    let (code, stdout, stderr) = check(&agrees, &agrees);
    assert_eq!((code, stdout.as_str()), (Some(0), ""), "{stderr}");
    assert!(stderr.contains(" 0 failed"), "{stderr}");
    assert_eq!(check(&agrees, &disagrees).0, Some(0));
    let (code, stdout, stderr) = check(&undecided, &agrees);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("worse"), "{stdout}");
    let (code, stdout, stderr) = check(&disagrees, &agrees);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stdout.contains("FAILED"), "{stdout}");
    assert!(stderr.contains("disagree that agreed in"), "{stderr}");
    let comparison = written("no-cells.json", "", "");
    refused(&format!("experiment check {comparison} --against {agrees}"), &["no cells"]);
}

/// The commands of perch in a block of YAML, each with its continued lines.
fn commands(yaml: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in yaml.lines().map(str::trim) {
        let line = line.strip_prefix("- ").unwrap_or(line);
        if goes_on {
            let last = commands.last_mut().unwrap();
            last.push('\n');
            last.push_str(line);
        } else if line.starts_with("perch ") {
            commands.push(line.to_string());
        } else {
            continue;
        }
        goes_on = line.ends_with('\\');
    }
    commands
}

/// A shell runs the commands of both examples, with a short window, and no gate fails.
#[test]
fn examples_for_ci_run() {
    let page = include_str!("../../../../docs/gates.md");
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    assert_eq!(blocks.len(), 2, "one example for GitHub, one for GitLab");
    for (number, block) in blocks.iter().enumerate() {
        let (yaml, _) = block.split_once("```").unwrap();
        let commands = commands(yaml);
        assert_eq!(commands.len(), 1 + number, "{commands:?}");
        let folder = directory(&format!("gates-ci-{number}"));
        // The result that GitLab's example keeps is one of its own first command.
        let keep = match number {
            0 => "",
            _ => "cp new.json kept.json",
        };
        let script = format!(
            "perch() {{
               case $1 in
                 compare) \"$PERCH\" \"${{@/n=4,where=node0/n=1,where=cpu0-7}}\" --warmup 1s --measure 1s --repetitions 3 ;;
                 *) \"$PERCH\" \"$@\" ;;
               esac
             }}
             set -eu\n{}\n{keep}\n{}",
            commands[0],
            commands[1..].join("\n")
        );
        let output = std::process::Command::new("bash")
            .args(["-c", &script])
            .env("PERCH", env!("CARGO_BIN_EXE_perch"))
            .current_dir(&folder)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {stderr}");
        assert!(stderr.contains("passed: "), "{stderr}");
    }
}
