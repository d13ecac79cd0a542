// SPDX-License-Identifier: GPL-2.0-or-later
//! Gates, which answer yes or no: `--fail-if` and `--junit`.

use std::process::Output;

use perch_report::Results;

use crate::refusals::{directory, refused};
use crate::support::perch;

/// A comparison of two arms that differ by much, in a moment.
const COMPARE: [&str; 17] = [
    "compare",
    "-m",
    "kunpeng920",
    "-w",
    "tcp_rr:n=4,where=node0",
    "--arm",
    "stock:cluster=off",
    "--arm",
    "near:cluster=perch",
    "--warmup",
    "20ms",
    "--measure",
    "20ms",
    "--repetitions",
    "3",
    "--jobs",
    "2",
];

/// Runs the comparison with further arguments, and returns its exit code, stdout and stderr.
fn compare(further: &[&str]) -> (Option<i32>, String, String) {
    told(&perch(&[&COMPARE[..], further].concat()))
}

fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// The change of the second arm's first score, in percent.
fn change() -> f64 {
    let (code, json, stderr) = compare(&["-q", "--format", "json"]);
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
    let (code, stdout, stderr) = compare(&["--fail-if", "transactions<-50%"]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("transactions ("), "{stdout}");
    assert!(
        stderr.contains("perch: gate 'transactions<-50%' passed: transactions of near changed by"),
        "{stderr}"
    );
    // Results stand on stdout whatever the gates answer.
    let failing = format!("near:transactions>{}%", pct - 50.0);
    let (code, stdout, stderr) = compare(&[
        "-q",
        "--fail-if",
        &failing,
        "--fail-if",
        "transactions<-50%",
    ]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stdout.contains("transactions ("), "{stdout}");
    assert!(stderr.contains("failed: transactions of near"), "{stderr}");
    assert!(
        stderr.contains("the whole 95 % interval lies above"),
        "{stderr}"
    );
    assert!(stderr.contains("perch: 1 of 2 answers"), "{stderr}");
    assert!(!stderr.contains("passed"), "{stderr}");
    let (code, _, stderr) = compare(&["--fail-if", &format!("transactions>{pct}%")]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("undecided: transactions of near"),
        "{stderr}"
    );
}

#[test]
fn gates_name_arms_and_scores_that_exist() {
    let refused = |further: &[&str], words: &[&str]| {
        refused(&[&COMPARE[..], &["-q"], further].concat(), words);
    };
    refused(
        &["--fail-if", "far:transactions<-2%"],
        &["no arm `far`", "expected one of near"],
    );
    refused(
        &["--fail-if", "stock:transactions<-2%"],
        &["first arm, `stock`", "one of near"],
    );
    refused(
        &["--fail-if", "transactions-2%"],
        &["--fail-if", "expected [ARM:]SCORE<PERCENT%"],
    );
    refused(&["--junit", "x.xml"], &["--fail-if"]);
    let unwritable = ["--junit", "/no/such/folder/x.xml"];
    let (code, stdout, stderr) = compare(&[&["--fail-if", "p99<-2%"], &unwritable[..]].concat());
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
}

#[test]
fn lab_refuses_gates_before_it_boots_guests() {
    let lab = |further: &[&str], words: &[&str]| {
        let arms = [
            "lab", "compare", "-m", "x5570", "--arm", "stock", "--arm", "perch",
        ];
        refused(&[&arms[..], further, &["--", "true"]].concat(), words);
    };
    lab(
        &["--fail-if", "far:time>2%"],
        &["no arm `far`", "expected one of perch"],
    );
    let one = ["--fail-if", "time>2%", "--repetitions", "1"];
    lab(&one, &["one repetition has no interval"]);
}

#[test]
fn unknown_score_lists_those_that_were_measured() {
    let (code, stdout, stderr) = compare(&["-q", "--fail-if", "speed<-2%"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stdout.contains("transactions ("), "{stdout}");
    assert!(
        stderr.contains("no score `speed`; expected one of transactions, "),
        "{stderr}"
    );
    assert!(stderr.contains("wake-up latency"), "{stderr}");
}

#[test]
fn one_repetition_or_one_arm_has_no_gate() {
    let alone = [
        "compare",
        "-m",
        "x5570",
        "-w",
        "runsleep:tasks=1,run_us=100,sleep_us=100",
    ];
    let gate = ["--fail-if", "transactions<-2%", "--arm", "a:cluster=off"];
    refused(
        &[&alone[..], &gate].concat(),
        &["only one arm", "second --arm"],
    );
    let one = ["--arm", "b:cache=off", "--repetitions", "1"];
    refused(
        &[&alone[..], &gate, &one].concat(),
        &["one repetition has no interval", "at least 2 repetitions"],
    );
}

#[test]
fn junit_has_one_test_per_gate_and_arm() {
    let path = directory("gates").join("gates.xml");
    let path = path.to_str().unwrap();
    let further = [
        "--arm",
        "far:cluster=posted",
        "--fail-if",
        "transactions<-50%",
    ];
    let failing = ["--fail-if", "near:wake-up latency>-99%", "--junit", path];
    let (code, _, stderr) = compare(&[&further[..], &failing].concat());
    assert_eq!(code, Some(3), "{stderr}");
    let xml = std::fs::read_to_string(path).unwrap();
    assert!(
        xml.contains("<testsuites tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"0\">"),
        "{xml}"
    );
    assert!(xml.contains("name=\"transactions&lt;-50% [far]\""), "{xml}");
    assert!(
        xml.contains("<failure message=\"gate &apos;near:wake-up latency&gt;-99%&apos; failed"),
        "{xml}"
    );
    let read = std::process::Command::new("python3")
        .args([
            "-c",
            "import sys, xml.dom.minidom as d; d.parse(sys.argv[1])",
            path,
        ])
        .output();
    // A second parser has its say where the host has one.
    if let Ok(read) = read {
        assert!(read.status.success(), "{read:?}");
    }
}
