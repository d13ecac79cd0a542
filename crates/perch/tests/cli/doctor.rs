// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch doctor`: its output and its exit codes. Guests show that it is right
//! (../guests/doctor.rs).

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{file, printed, refused, told};

/// The checks, whose names scripts know.
const NAMES: &str = "kernel btf rights scheduler functions task-groups machine offline-cpus capacities \
                     cluster capacity cache overload steer sched_idle memory isolated-cpus cgroups cpu-limits \
                     idle-groups processes real-time configuration";

/// Lays out a tree, and runs perch on it.
fn doctor(files: &[(&str, &str)], arguments: &str) -> (Option<i32>, String, String) {
    let root = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    on(root.path(), arguments)
}

fn on(root: &Path, arguments: &str) -> (Option<i32>, String, String) {
    told(&format!("doctor --root {} {arguments}", root.display()))
}

const KERNEL: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "7.2.12\n"),
    ("proc/1/stat", "1 (init) S 0"),
    ("sys/kernel/sched_ext/state", "disabled\n"),
    ("sys/kernel/btf/vmlinux", "none"),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/cpu0/topology/core_id", "0\n"),
    ("sys/devices/system/cpu/cpu1/topology/core_id", "1\n"),
];

/// On any host, by any user.
#[test]
fn this_host_is_looked_at() {
    let (code, out, said) = on(Path::new("/"), "--format json");
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
    let (_, out, _) = on(Path::new("/"), "");
    for name in names {
        let is_there = out.lines().any(|line| line.split_whitespace().nth(1) == Some(name));
        assert!(is_there, "{name}: {out}");
    }
}

#[test]
fn problems_end_with_3_and_say_what_to_do() {
    let lavd =
        [("sys/kernel/sched_ext/state", "enabled\n"), ("sys/kernel/sched_ext/root/ops", "lavd\n")];
    let (code, out, said) = doctor(&[KERNEL, &lavd].concat(), "");
    assert_eq!(code, Some(3), "{out}{said}");
    assert_eq!(said, "perch: cannot run here: scheduler\n");
    let at = out.find("problem  scheduler      another sched_ext scheduler is loaded: lavd\n");
    let rest = &out[at.unwrap_or_else(|| panic!("{out}"))..];
    let next = rest.lines().nth(1).unwrap().trim();
    assert_eq!(next, "to do: stop it first (the kernel runs one at a time)");
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
fn the_modes_are_those_asked_for() {
    let sound = file("doctor", "sound.toml", "modes = \"steer=off\"\n");
    let arguments = format!("--config {sound} --set overload=perch --format json");
    let (_, out, _) = doctor(KERNEL, &arguments);
    let found: Value = serde_json::from_str(&out).unwrap();
    let modes = found["modes"].as_str().unwrap();
    assert!(!modes.contains("overload") && !modes.contains("steer"), "{modes}");
    assert!(modes.contains("sched_idle=perch"), "{modes}");
    let checks = found["checks"].as_array().unwrap();
    let overload = checks.iter().find(|check| check["name"] == "overload").unwrap();
    assert_eq!(overload["mark"], "note", "{overload}");
}

#[test]
fn help_tells_the_exit_codes() {
    let help = printed("doctor --help");
    assert!(help.contains("  3  perch cannot run here"), "{help}");
}
