// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch doctor`: its output and its exit codes. Guests show that it is right
//! (../guests/doctor.rs).

use serde_json::Value;

use crate::support::{file, printed, refused, told};

/// The checks, whose names scripts know.
const NAMES: &str = "kernel btf rights scheduler functions task-groups machine offline-cpus capacities \
                     cluster capacity cache overload steer behind spread sched_idle memory isolated-cpus cgroups cpu-limits \
                     idle-groups processes real-time configuration";

/// On any host, by any user.
#[test]
fn this_host_is_looked_at() {
    let (code, out, said) = told("doctor --format json");
    let found: Value = serde_json::from_str(&out).unwrap();
    let checks = found["checks"].as_array().unwrap();
    let names: Vec<&str> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert_eq!(names.join(" "), NAMES);
    let has = |mark: &str| checks.iter().any(|check| check["mark"] == mark);
    let expected = match (has("problem"), has("unknown")) {
        (true, _) => 3,
        (false, true) => 1,
        (false, false) => 0,
    };
    assert_eq!(code, Some(expected), "{out}{said}");
    assert_eq!(found["can_run"], !has("problem"));
    let (_, out, _) = told("doctor");
    for name in names {
        let is_there = out.lines().any(|line| line.split_whitespace().nth(1) == Some(name));
        assert!(is_there, "{name}: {out}");
    }
}

#[test]
fn configurations_are_refused_with_the_words_of_perch_run() {
    let bad = file("doctor", "bad.toml", "detail = true\nslice_us = 1\n");
    let words = ["bad.toml:2: slice_us: 1: expected 100 to 1000000"];
    refused(&format!("doctor --config {bad}"), &words);
    refused(&format!("run --config {bad}"), &words);
    refused("doctor --set cluster=on", &["unknown mode \"on\""]);
    refused("doctor --format csv", &["table, json"]);
}

#[test]
fn help_tells_the_exit_codes() {
    let help = printed("doctor --help");
    assert!(help.contains("  3  perch cannot run here"), "{help}");
}
