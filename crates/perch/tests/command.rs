// SPDX-License-Identifier: GPL-2.0-only
//! What the command prints when all is well.

mod support;

use std::io::Read;
use std::process::{Command, Stdio};

use support::perch;

/// Runs it, demands success, and returns what it wrote to stdout.
#[track_caller]
fn stdout(arguments: &[&str]) -> String {
    let output = perch(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Two small cells of the experiment, once each.
const SMALL: [&str; 7] = [
    "experiment",
    "run",
    "cluster-scan",
    "--only",
    "*/node0/n=4",
    "--repetitions",
    "2",
];

#[test]
fn lists_name_what_there_is() {
    assert!(stdout(&["experiment", "list"]).contains("cluster-scan"));
    assert!(stdout(&["machine", "list"]).contains("kunpeng920"));
    let workloads = stdout(&["workload", "list"]);
    assert!(workloads.contains("tbench") && workloads.contains("uclamp_min"));
}

/// A shell's and a manual's word of every command, and none of those that only perch calls.
#[test]
fn completions_and_manual_pages_have_every_command() {
    let script = stdout(&["completions", "bash"])
        + "\nCOMP_WORDS=(perch '') COMP_CWORD=1; _perch perch '' perch; echo ${COMPREPLY[@]}";
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let offered = String::from_utf8(output.stdout).unwrap();
    let offered: Vec<&str> = offered.split_whitespace().collect();
    let pages = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("man1");
    let _ = std::fs::remove_dir_all(&pages);
    stdout(&["man", pages.to_str().unwrap()]);
    let names: Vec<String> = std::fs::read_dir(&pages)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let help = stdout(&["--help"]);
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .collect();
    assert!(commands.len() > 10, "{commands:?}");
    for command in &commands {
        assert!(names.contains(&format!("perch-{command}.1")), "{command}");
        assert!(offered.contains(command), "{command} is not in {offered:?}");
    }
    assert!(names.contains(&"perch-experiment-run.1".to_string()));
    let page = std::fs::read_to_string(pages.join("perch-experiment-run.1")).unwrap();
    assert!(
        page.contains("repetitions") && page.contains(".TH"),
        "{page}"
    );
    for name in &names {
        assert!(
            !name.contains("agent") && !name.contains("self-test"),
            "{name}"
        );
    }
}

#[test]
fn a_machine_is_drawn_or_written_so_that_it_reads_back() {
    assert!(!stdout(&["machine", "show", "juno"]).is_empty());
    let text = stdout(&["machine", "show", "juno", "--toml"]);
    let machine = perch_machine::Machine::from_toml_str(&text, "stdout").unwrap();
    assert_eq!(machine.cpus.len(), 6);
}

#[test]
fn json_keeps_the_contract() {
    let text = stdout(&[&SMALL[..], &["--format", "json"]].concat());
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["experiment"], "cluster-scan");
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3);
    for cell in cells {
        for key in ["benchmark", "where", "row", "unit"] {
            assert!(cell[key].is_string(), "{key} of {cell}");
        }
        for key in ["baseline", "patched", "delta_pct"] {
            assert!(
                cell["published"][key].is_number(),
                "published {key} of {cell}"
            );
            assert!(
                cell["simulated"][key].is_number(),
                "simulated {key} of {cell}"
            );
        }
        assert!(cell["simulated"]["ci95_pct"].is_number(), "{cell}");
        assert!(cell["baseline_ratio"].is_number(), "{cell}");
        for key in ["calibration", "within", "sign_agrees"] {
            assert!(cell[key].is_boolean(), "{key} of {cell}");
        }
    }
    for key in [
        "scored",
        "within",
        "sign_scored",
        "sign_agrees",
        "baseline_close",
    ] {
        assert!(report["summary"][key].is_number(), "{key}");
    }
}

#[test]
fn the_result_does_not_depend_on_the_threads_and_the_seed_brings_it_back() {
    let with = |extra: &[&str]| stdout(&[&SMALL[..], &["--format", "csv"], extra].concat());
    let alone = with(&["--jobs", "1"]);
    assert_eq!(alone.lines().count(), 4);
    assert_eq!(alone, with(&["--jobs", "4"]));
    assert_ne!(alone, with(&["--seed", "2"]));
}

#[test]
fn further_arms_are_shown_when_asked_for() {
    let text = stdout(&[&SMALL[..], &["--arms", "perch,upstream"]].concat());
    assert!(text.contains("perch cluster=perch"), "{text}");
}

#[test]
fn quiet_means_an_empty_stderr() {
    let output = perch(&[&SMALL[..], &["--quiet"]].concat());
    assert!(
        output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let output = perch(&SMALL);
    assert!(String::from_utf8_lossy(&output.stderr).contains("12 simulations"));
}

#[test]
fn arms_compare_on_any_machine_and_workload() {
    let arms = ["--arm", "stock:cluster=off", "--arm", "near:cluster=perch"];
    let run = [
        "compare",
        "-m",
        "jacobsville",
        "-w",
        "tbench:n=2",
        "--measure",
        "50ms",
    ];
    let text = stdout(&[&run[..], &arms, &["--repetitions", "2"]].concat());
    for words in [
        "stock",
        "near",
        "cluster=perch",
        "decisions by reason",
        "wake-ups",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn a_row_is_measured_in_a_process_of_its_own() {
    let text = stdout(&[
        "bench",
        "--cpus",
        "8",
        "--seconds",
        "0.05",
        "--format",
        "json",
    ]);
    let result: serde_json::Value = serde_json::from_str(&text).unwrap();
    let row = &result["rows"][0];
    assert_eq!(row["cpus"], 8);
    assert!(
        row["events"].as_u64().is_some_and(|events| events > 0),
        "{row}"
    );
    assert_eq!(result["memory"].as_array().map(Vec::len), Some(2));
}

/// `perch ... | head -n 1` ends quietly.
#[test]
fn a_reader_that_leaves_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_perch"))
        .args(["machine", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{stderr}");
    assert!(stderr.is_empty(), "{stderr}");
}

/// A trace an arm, and the same comparison as without them.
#[test]
fn a_comparison_leaves_traces_where_it_is_told_to() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("traces");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.pftrace");
    let arguments = [
        "compare",
        "-m",
        "juno",
        "-w",
        "hackbench:groups=1",
        "--arm",
        "a:capacity=off",
        "--arm",
        "b:capacity=posted",
        "--repetitions",
        "1",
        "--format",
        "json",
    ];
    let traced = [&arguments[..], &["--trace", file.to_str().unwrap()]].concat();
    assert_eq!(stdout(&arguments), stdout(&traced));
    for arm in ["a", "b"] {
        let trace = std::fs::read(folder.join(format!("run.{arm}.pftrace"))).unwrap();
        // A packet, field 1 with a length, is what all of them begin with.
        assert!(trace.len() > 10_000 && trace[0] == 0x0a, "{}", trace.len());
    }
}
