// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch lab compare`: arms in guests of their own.

use std::fs;
use std::path::Path;
use std::process::Command;

use perch_lab::kernel::Kernel;
use perch_lab::{Arch, Store};

use crate::guest::{PERCH, Place};

/// What the command writes beside its score: whether a scheduler is loaded, and the change of the
/// arms' kernel.
const SCRIPT: &str = "cat /sys/kernel/sched_ext/state; \
                      grep -o NO_SIS_UTIL /sys/kernel/debug/sched/features; \
                      echo label: near; perch lab ping --cpus 0,1 --rounds 50 >&2";

/// A score that depends on the kernel alone, the kernel's release, and some wake-ups.
const KERNEL: &str = "echo Linux $(uname -r | cut -d. -f1); uname -r; \
                      perch lab ping --cpus 0,1 --rounds 50 >/dev/null";

/// Compares two arms that differ in nothing but their names, and returns the result and both arms'
/// output. One names its kernel by version, the other by the path of the same image.
fn equal_arms(outputs: &str, settle: &str) -> (serde_json::Value, [String; 2]) {
    let _place = Place::take();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(outputs);
    let image = Kernel::find(&Store::open().unwrap(), "7.2", Arch::X86_64);
    let image = image.unwrap_or_else(|error| panic!("{error}")).image;
    let arm = |name: &str, kernel: &str| {
        let words = "run --set cluster=off with feature=NO_SIS_UTIL clusters=off";
        format!("{name}='/bin/perch@{kernel}' {words}")
    };
    let (a, b) = (arm("a", "7.2"), arm("b", &image.display().to_string()));
    let output = Command::new(PERCH)
        .args(["lab", "compare", "-m", "kunpeng920", "--cpus", "4"])
        .args(["--repetitions", "1", "--jobs", "1", "--settle", settle])
        .args(["--untimed", "--format", "json"])
        .args(["--arm", &a, "--arm", &b, "--outputs"])
        .arg(&folder)
        .args(["--", "sh", "-c", SCRIPT])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let text = |arm: &str| fs::read_to_string(folder.join(format!("{arm}.0.txt"))).unwrap();
    let found = serde_json::from_slice(&output.stdout).unwrap();
    (found, ["a", "b"].map(text))
}

/// The mean score of each arm.
fn means(found: &serde_json::Value) -> [f64; 2] {
    let [score] = &found["scores"].as_array().unwrap()[..] else {
        panic!("one score: {found}");
    };
    assert_eq!(score["name"], "near: pipe between CPUs 0 and 1");
    [0, 1].map(|arm| score["arms"][arm]["mean"].as_f64().unwrap())
}

/// An arm's scheduler and its changes of the kernel are there when the command runs, its score is the
/// command's, and its kernel is named.
#[test]
fn an_arm_has_its_scheduler_and_its_kernel() {
    let (found, texts) = equal_arms("compared", "1s");
    assert!(means(&found).iter().all(|mean| *mean > 1000.0), "{found}");
    assert!(found["era"].as_str().unwrap().starts_with("7."), "{found}");
    for (arm, text) in texts.iter().enumerate() {
        assert_eq!(found["kernels"][arm]["release"], found["era"], "{found}");
        assert!(text.starts_with("enabled\nNO_SIS_UTIL\nlabel: near\npipe"));
    }
}

/// Equal arms have the same figures and the same output, to the byte: the guests are deterministic,
/// their seed does not depend on the arm, and a repetition's command begins at the same time in each.
#[test]
#[ignore = "two guests that do not differ as long as the host is idle (docs/hardware.md), for --long"]
fn arms_that_are_the_same_have_the_same_scores() {
    let (found, texts) = equal_arms("compared-equal", "4s");
    let means = means(&found);
    assert_eq!(means[0], means[1]);
    assert_eq!(found["scores"][0]["arms"][1]["delta_pct"], 0.0);
    assert_eq!(texts[0], texts[1]);
}

/// Every arm's guests run the arm's kernel, reports name it, gates judge the change between the
/// kernels, and both kernels' decisions have their reasons.
#[test]
#[ignore = "four guests, for --long"]
fn every_arm_runs_on_its_kernel() {
    let _place = Place::take();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("two-kernels");
    let output = Command::new(PERCH)
        .args(["lab", "compare", "-m", "kunpeng920", "--cpus", "2"])
        .args(["--repetitions", "2", "--jobs", "1", "--settle", "1s"])
        .args(["--untimed", "--format", "json", "--score", "major=Linux"])
        .args(["--kernel", "7.2", "--arm", "old=stock@6.18"])
        .args(["--arm", "new=stock"])
        .args(["--fail-if", "major>10%", "--fail-if", "major>20%", "--outputs"])
        .arg(&folder)
        .args(["--", "sh", "-c", KERNEL])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    for words in ["'major>10%' failed", "'major>20%' passed", "+16.67%"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut era = Vec::new();
    for (index, (arm, release)) in [("old", "6.18."), ("new", "7.2.")].into_iter().enumerate() {
        let kernel = &found["kernels"][index];
        assert_eq!(kernel["arm"], arm);
        let named = kernel["release"].as_str().unwrap();
        assert!(named.starts_with(release), "{found}");
        let text = fs::read_to_string(folder.join(format!("{arm}.1.txt"))).unwrap();
        assert_eq!(text.lines().nth(1), Some(named));
        era.push(named.to_string());
    }
    assert_eq!(found["era"], era.join(" and "));
}

/// Each arm's decisions come from a second guest, which records them.
#[test]
#[ignore = "four guests, for --long"]
fn decisions_of_every_arm_are_recorded() {
    let _place = Place::take();
    let output = Command::new(PERCH)
        .args(["lab", "compare", "-m", "kunpeng920", "--cpus", "2"])
        .args(["--repetitions", "1", "--jobs", "1", "--settle", "1s"])
        .args(["--untimed", "--format", "json", "--score", "major=Linux"])
        .args(["--decisions", "--arm", "old=stock@6.18"])
        .args(["--arm", "new=stock@7.2", "--", "sh", "-c", KERNEL])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for arm in [0, 1] {
        let rows = found["decisions"].as_array().unwrap().iter();
        let sum: f64 = rows.map(|row| row["per_second"][arm].as_f64().unwrap()).sum();
        assert!(sum > 0.0, "{found}");
    }
}

/// A scheduler that does not load is an error with its words, and no number.
#[test]
#[ignore = "a deterministic guest for an error, for --long"]
fn an_arm_whose_scheduler_does_not_load_is_an_error() {
    let _place = Place::take();
    let output = Command::new(PERCH)
        .args(["lab", "compare", "-q", "-m", "kunpeng920", "--cpus", "2"])
        .args(["--repetitions", "1", "--arm", "broken=sh -c 'echo no BTF; exit 3'"])
        .args(["--", "hackbench"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty());
    for words in ["arm broken, repetition 0", "could not be loaded", "no BTF"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
