// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch sweep`, `perch store` and `perch simulate`: a sweep in parts, killed and resumed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SWEEP: &str = r#"
machine = "kunpeng920"
workload = "pipe:where=node0"
era = "6.5"
effort = { warmup_ms = 1, measure_ms = 1, repetitions = 2 }
baseline = "stock"
[axes]
workload.pairs = [1, 2]
arm = { stock = "off", posted = "cluster=posted" }
"#;

fn command(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_perch"));
    command.args(line.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command
}

fn perch(folder: &Path, line: &str) -> Output {
    command(folder, line).output().unwrap()
}

fn prints(folder: &Path, line: &str) -> String {
    let output = perch(folder, line);
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {words}");
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn refused(folder: &Path, line: &str, words: &str) {
    let output = perch(folder, line);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{line}: {said}");
    assert!(said.contains(words), "{line}: {said}");
}

/// A folder with a sweep in it.
fn with(sweep: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.toml"), sweep).unwrap();
    folder
}

#[test]
fn a_sweep_in_parts_makes_one_table() {
    let folder = with(SWEEP);
    let folder = folder.path();
    assert_eq!(prints(folder, "sweep plan s.toml --count"), "4\n");
    prints(folder, "sweep run s.toml --store st --shard 2/2 -q");
    let status = prints(folder, "sweep status s.toml --store st");
    assert!(status.starts_with("4 simulations: 2 are there, 2 are missing"), "{status}");
    let half = perch(folder, "sweep collect s.toml --store st");
    assert!(String::from_utf8_lossy(&half.stderr).contains("2 points"));
    prints(folder, "sweep run s.toml --store st --shard 1/2 -q");
    let csv = prints(folder, "sweep collect s.toml --store st --format csv");
    let first = csv.lines().next().unwrap();
    assert!(first.starts_with("arm,workload.pairs,score,unit,"), "{first}");
    // Two scores at each of four points.
    assert_eq!(csv.lines().count(), 1 + 8, "{csv}");
    let json = prints(folder, "sweep collect s.toml --store st --format json");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let base = rows.iter().filter(|row| row["point"]["arm"] == "stock");
    assert!(base.clone().count() == 4 && base.clone().all(|row| row["change_pct"] == 0.0));
    assert_eq!(prints(folder, "store verify st"), "4 results, all as they were written\n");
    let export = prints(folder, "store export st");
    assert_eq!(export.lines().count(), 1 + 4 * 2 * 2, "{export}");
}

#[test]
fn an_arm_may_be_another_scheduler() {
    let arms = r#"{ stock = "off", live = "live:", far = "live:behind=off" }"#;
    let sweep = SWEEP.replace(r#"{ stock = "off", posted = "cluster=posted" }"#, arms);
    let folder = with(&sweep.replace("6.5", "7.2"));
    let folder = folder.path();
    prints(folder, "sweep run s.toml --store st -q");
    let csv = prints(folder, "sweep collect s.toml --store st --format csv");
    let of = |arm: &str| -> Vec<&str> {
        let lines = csv.lines();
        let own = lines.filter_map(|line| line.strip_prefix(arm)?.strip_prefix(','));
        own.filter(|line| line.starts_with("2,round trips")).collect()
    };
    let arms = [of("stock"), of("live"), of("far")];
    assert!(arms.iter().all(|found| found.len() == 1), "{csv}");
    assert!(arms[0] != arms[1] && arms[1] != arms[2], "{csv}");
    prints(folder, "store verify st");
    // Before Linux 6.12 there is no sched_ext.
    fs::write(folder.join("old.toml"), sweep).unwrap();
    refused(folder, "sweep plan old.toml", "`modes`: Linux 6.5 has no sched_ext");
}

#[test]
fn arms_are_ranked_against_the_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let two = SWEEP.replace("[axes]", "[axes]\nmachine = [\"kunpeng920\", \"jacobsville\"]");
    let two = two.replace("machine = \"kunpeng920\"\n", "");
    fs::write(folder.join("s.toml"), two).unwrap();
    let table = prints(folder, "sweep rank s.toml --store st -q --by machine");
    // Both arms over all four rows, and over two of each machine.
    let lines = |of: &str, rows: &str| {
        let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        let all = table.lines().map(words);
        all.filter(|line| line.len() >= 8 && line[0] == of && line[1] == rows).count()
    };
    assert_eq!(lines("all", "4"), 2, "{table}");
    assert_eq!(lines("jacobsville", "2"), 2, "{table}");
    assert_eq!(lines("kunpeng920", "2"), 2, "{table}");
    let rows = prints(folder, "sweep rank s.toml --store st -q --rows");
    let has = |line: &str| line.starts_with("jacobsville") && line.contains("round trips");
    assert_eq!(rows.lines().filter(|line| has(line)).count(), 2, "{rows}");
    let json = prints(folder, "sweep rank s.toml --store st -q --format json");
    let found: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(found["rows"].as_array().map(Vec::len), Some(4));
    let base = found["baseline"].as_u64().unwrap() as usize;
    assert_eq!(found["arms"][base], "stock");
    assert_eq!(found["rows"][0]["arms"][base]["gain_pct"], 0.0);
    let csv = prints(folder, "sweep rank s.toml --store st -q --format csv");
    assert_eq!(csv.lines().count(), 1 + 4 * 2);
    // What makes no sense is said before an hour of simulations.
    for (option, words) in
        [("--by moon", "expected one of machine, workload.pairs"), ("--losses moon", "moon")]
    {
        refused(folder, &format!("sweep rank s.toml --store new -q {option}"), words);
        assert!(!folder.join("new").exists(), "{option}");
    }
    refused(folder, "sweep rank leauge --store st", "the library has composition, league");
}

/// A second after a second, which is what the balancer needs to spread tasks on six CPUs, and less.
#[test]
fn times_too_short_to_tell_are_said_in_every_format_and_count_for_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let sweep = |name: &str, warmup_ms: u32, measure_ms: u32| {
        let text = SWEEP
            .replace("kunpeng920", "juno")
            .replace(":where=node0", "")
            .replace("6.5", "7.2")
            .replace("cluster=posted", "capacity=perch")
            .replace("warmup_ms = 1,", &format!("warmup_ms = {warmup_ms},"))
            .replace("measure_ms = 1,", &format!("measure_ms = {measure_ms},"));
        fs::write(folder.join(name), text).unwrap();
    };
    let standings = |name: &str| -> Vec<[u64; 5]> {
        let line = format!("sweep rank {name} --store st -q --format json");
        let found: serde_json::Value = serde_json::from_str(&prints(folder, &line)).unwrap();
        let keys = ["better", "worse", "level", "undecided", "not_settled"];
        let standings = found["standings"].as_array().unwrap().iter();
        standings.map(|one| keys.map(|key| one[key].as_u64().unwrap())).collect()
    };
    let last = |name: &str, command: &str| -> Vec<String> {
        let table = prints(folder, &format!("sweep {command} {name} --store st"));
        let rows = table.lines().filter(|line| line.contains("round trips"));
        rows.map(str::to_string).collect()
    };
    sweep("long.toml", 1000, 1000);
    // Each arm in both rows: capacity has nothing to say about a pair.
    assert_eq!(standings("long.toml"), [[0, 0, 2, 0, 0]; 2]);
    let rows = last("long.toml", "collect");
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert!(rows.iter().all(|row| !row.contains("settled")), "{rows:?}");
    for (name, warmup_ms, measure_ms, why) in [
        ("early.toml", 10, 1000, "warmed up for less than 1000 ms"),
        ("short.toml", 1000, 10, "measured for less than 1000 ms"),
    ] {
        sweep(name, warmup_ms, measure_ms);
        assert_eq!(standings(name), [[0, 0, 0, 0, 2]; 2], "{name}");
        let rows = last(name, "collect");
        let said = format!("not settled: {why}");
        assert!(rows.iter().all(|row| row.ends_with(&said)), "{rows:?}");
        let csv = prints(folder, &format!("sweep collect {name} --store st --format csv"));
        assert_eq!(csv.matches(&format!(",false,{why},")).count(), 8, "{csv}");
        let rows = prints(folder, &format!("sweep rank {name} --store st -q --rows"));
        // Four in the lines of the rows, one over a column, three below the tables.
        assert_eq!(rows.matches("not settled").count(), 8, "{rows}");
        assert!(rows.contains("2 of 2 rows have an arm that is not settled"), "{rows}");
        let csv = prints(folder, &format!("sweep rank {name} --store st -q --format csv"));
        assert_eq!(csv.matches(",false,not settled,").count(), 4, "{csv}");
        let plan = prints(folder, &format!("sweep plan {name}"));
        let (_, spec) = plan.lines().next().unwrap().split_once(' ').unwrap();
        fs::write(folder.join("one.json"), spec).unwrap();
        let one: serde_json::Value =
            serde_json::from_str(&prints(folder, "simulate one.json")).unwrap();
        let scores = one["result"]["scores"].as_array().unwrap();
        assert!(scores.iter().all(|score| score["settled"] == false), "{one}");
    }
}

#[test]
fn a_plan_s_line_is_a_simulation() {
    let folder = with(SWEEP);
    let folder = folder.path();
    let plan = prints(folder, "sweep plan s.toml");
    let (key, spec) = plan.lines().next().unwrap().split_once(' ').unwrap();
    fs::write(folder.join("one.json"), spec).unwrap();
    let alone = prints(folder, "simulate one.json");
    assert!(alone.contains(key));
    prints(folder, "sweep run s.toml --store st -q");
    let kept = folder.join(format!("st/results/{}/{key}.json", &key[..2]));
    assert_eq!(fs::read_to_string(kept).unwrap(), alone);
    assert_eq!(prints(folder, "simulate one.json --store st"), alone);
}

/// A sweep is killed once at least one of its results is there; another process makes the rest.
#[test]
fn a_killed_sweep_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let seeds: Vec<String> = (1..=400).map(|seed| seed.to_string()).collect();
    let axis = format!("[axes]\nseed = [{}]\n", seeds.join(", "));
    fs::write(folder.join("s.toml"), SWEEP.replace("[axes]\n", &axis)).unwrap();
    let mut victim = command(folder, "sweep run s.toml --store st --jobs 2 -q").spawn().unwrap();
    let results = folder.join("st/results");
    // Either a result appears or the sweep ends, however slow the host is.
    while fs::read_dir(&results).map_or(0, Iterator::count) == 0 {
        assert!(victim.try_wait().unwrap().is_none_or(|status| status.success()));
        std::thread::yield_now();
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    prints(folder, "store prune st");
    let some = prints(folder, "store verify st");
    assert!(some.ends_with(" results, all as they were written\n"), "{some}");
    prints(folder, "sweep run s.toml --store st -q");
    assert_eq!(prints(folder, "store verify st"), "1600 results, all as they were written\n");
}

/// Every simulation of the sweeps that the tree carries is accepted.
#[test]
fn carried_sweeps_have_their_plans() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let line = "sweep plan experiments/sweeps/cluster-costs.toml --count";
    assert_eq!(prints(&root, line), "672\n");
    assert_eq!(prints(&root, "sweep plan composition --count"), "972\n");
    // The schedulers of the league are not part of perch.
    for (option, expected) in
        [("", "say --allow-scx"), ("--allow-scx", "bpfland.scx: No such file")]
    {
        refused(&root, &format!("sweep plan league --count {option}"), expected);
    }
}

#[test]
fn refusals_name_the_key_and_leave_no_store() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("s.toml"), SWEEP.replace("workload.pairs", "workload.pears")).unwrap();
    let refused = |line: &str, words: &str| refused(folder, line, words);
    refused("sweep run s.toml --store st", "pears");
    assert!(!folder.join("st").exists());
    fs::write(folder.join("s.toml"), SWEEP).unwrap();
    refused("sweep run s.toml --store st --shard 3/2", "3 of 2");
    refused("sweep run s.toml --store st --shard x", "3/64");
    refused("sweep status s.toml --store st", "perch-store.json");
    refused("store verify .", "perch-store.json");
    refused("sweep run s.toml --store .", "other files");
    refused("sweep run none.toml --store st", "none.toml");
    prints(folder, "sweep run s.toml --store st -q");
    refused("sweep collect s.toml --store st --score speed", "speed");
    fs::write(folder.join("one.json"), r#"{"workload": "pipe", "sede": 1}"#).unwrap();
    refused("simulate one.json", "sede");
    fs::write(folder.join("one.json"), r#"{"workload": "pipe"}"#).unwrap();
    refused("simulate one.json", "machine");
}
