// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch trial` in a guest: perch schedules in its turns and in no others, both have waits, and
//! however the trial ends, the kernel is on its own scheduler. The tests ask for no times: a guest's are
//! its own.

use perch_lab::guest::{Output, Process, Signal, Status};
use serde_json::Value;

use crate::guest::{Lab, PERCH, SHELL};
use crate::validator::check;

/// Starts tasks that wake each other until the guest ends; the pauses leave the emulator time for the
/// trial.
const LOAD: &str = "while :; do hackbench -T -p -g 1 -f 4 -l 20 || exit 1; sleep 0.1; done";

/// A counter's command that writes down which state sched_ext is in, and counts how often it was off: at
/// both ends of each turn. So the counter grows by one in each of stock's turns and stays in perch's,
/// whatever the time.
const OFF: &str = "cat /sys/kernel/sched_ext/state >> /tmp/states; grep -c disabled /tmp/states";

/// Two pairs of turns, or more, in the guest's time.
fn trial(further: &str) -> String {
    format!(
        "perch trial --every 500ms --settle 100ms --format json --counter 'off={OFF}' {further}"
    )
}

/// The states that the counter saw, of which the first is from before the trial.
fn states(lab: &Lab) -> Vec<String> {
    let text = lab.text("cat /tmp/states");
    text.lines().skip(1).map(str::to_string).collect()
}

/// The value of a measure in a row of the table.
fn value<'a>(report: &'a Value, measure: &str, key: &str) -> &'a Value {
    let rows = report["measures"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["measure"] == measure);
    &row.unwrap_or_else(|| panic!("no {measure}: {report}"))[key]
}

/// The report on stdout, which must be as its schema says.
fn report(output: &Output) -> Value {
    let report = serde_json::from_str(&output.text());
    let report = report.unwrap_or_else(|error| panic!("{error}: {}", output.error_text()));
    let schema = std::process::Command::new(PERCH).args(["schema", "trial"]).output();
    let schema = serde_json::from_slice(&schema.unwrap().stdout).unwrap();
    assert_eq!(check(&schema, &report), None, "{report}");
    for key in report.as_object().unwrap().keys() {
        let mut lacking = report.clone();
        lacking.as_object_mut().unwrap().remove(key);
        assert!(check(&schema, &lacking).is_some(), "{key} may be missing");
    }
    report
}

#[test]
fn turns_alternate_until_a_condition_holds() {
    let lab = Lab::boot("7.2", 8);
    let _load = lab.start(LOAD);
    // In perch's turns the counter stays: the change is -100 % in each pair, from the third on enough.
    let output = lab.run(&trial("--for 5s --revert-if 'off>5%' --revert-if 'off<-50%'"));
    let said = output.error_text();
    println!("{said}");
    assert_eq!(output.status, Status::Code(5), "{said}");
    lab.is_on_its_own();
    lab.is_well();
    let report = report(&output);
    assert_eq!(report["ended"], "reverted", "{report}");
    assert_eq!(report["condition"]["condition"], "off<-50%", "{report}");
    assert_eq!(report["planned"], 10, "{report}");
    assert!(said.contains("turn 6 of 10, perch"), "{said}");
    assert_eq!(value(&report, "off", "change_pct"), -100.0, "{report}");
    assert_eq!(value(&report, "off", "ci95_pct"), 0.0, "{report}");

    let turns = report["turns"].as_array().unwrap();
    let order: Vec<&str> = turns.iter().map(|turn| turn["scheduler"].as_str().unwrap()).collect();
    assert_eq!(order, ["stock", "perch", "perch", "stock", "stock", "perch"]);
    let seen: Vec<&str> = order
        .iter()
        .flat_map(|side| [if *side == "perch" { "enabled" } else { "disabled" }; 2])
        .collect();
    assert_eq!(states(&lab), seen);

    // The load waits under either, and its wake-ups are counted.
    for measure in ["p50_wait", "p99_wait", "mean_wait", "wakeups", "cpu_time"] {
        for side in ["stock", "perch"] {
            let found = value(&report, measure, side).as_f64();
            assert!(found.is_some_and(|found| found > 0.0), "{measure}: {report}");
        }
        assert_eq!(value(&report, measure, "pairs"), 3, "{report}");
    }
}

/// Starts a trial of an hour and waits until perch schedules.
fn amid(lab: &Lab) -> Process {
    lab.text("rm -f /tmp/states");
    let process = lab.start(&format!("exec {}", trial("--for 1h")));
    lab.until("perch is loaded", || lab.scheduler() == "perch");
    process
}

#[test]
#[ignore = "three trials, for --long"]
fn trial_that_is_cut_off_leaves_the_kernel_on_its_own_scheduler() {
    let lab = Lab::boot("7.2", 8);
    let _load = lab.start(LOAD);

    let stopped = amid(&lab);
    stopped.signal(Signal::INT).unwrap();
    let output = lab.end("the trial, after Ctrl-C,", stopped);
    assert_eq!(output.status, Status::Code(0), "{}", output.error_text());
    lab.is_on_its_own();
    let report = report(&output);
    assert_eq!(report["ended"], "stopped", "{report}");
    // The first turn was over, stock's.
    assert!(!report["turns"].as_array().unwrap().is_empty(), "{report}");

    let killed = amid(&lab);
    killed.signal(Signal::KILL).unwrap();
    let output = lab.end("the trial, killed,", killed);
    assert_eq!(output.status, Status::Signal(9));
    lab.until("perch is gone with it", || lab.scheduler().is_empty());

    let mut ejected = amid(&lab);
    // Again, should its turn have ended meanwhile.
    lab.until("perch is ejected", || {
        lab.text("echo S > /proc/sysrq-trigger");
        !ejected.is_running()
    });
    let output = lab.end("the trial, its perch ejected,", ejected);
    let said = output.error_text();
    assert_eq!(output.status, Status::Code(4), "{said}");
    assert!(said.contains("SysRq-S unloaded perch"), "{said}");
    lab.is_on_its_own();
    let report = self::report(&output);
    assert_eq!(report["ended"], "failed", "{report}");
    let failure = report["failure"].as_str().unwrap();
    assert!(failure.contains("SysRq-S unloaded perch"), "{report}");
}

#[test]
#[ignore = "two trials, for --long"]
fn trial_of_a_cgroup_measures_its_tasks_and_no_others() {
    let lab = Lab::boot("7.2", 8);
    lab.text(&format!("{SHELL} cgroups; mkdir -p $ROOT/busy/below $ROOT/quiet"));
    let enter = |group: &str| format!("echo $$ > /sys/fs/cgroup/{group}/cgroup.procs");
    let _busy = lab.start(&format!("{}; {LOAD}", enter("busy/below")));
    // It sleeps before the trial begins, so nothing wakes it.
    let _quiet = lab.start(&format!("{}; exec sleep 1000000", enter("quiet")));
    let are_there = "cd /sys/fs/cgroup && [ -n \"$(cat busy/below/cgroup.procs)\" ] &&
         grep -q 'Name:.sleep' /proc/$(cat quiet/cgroup.procs)/status &&
         grep -q 'State:.S' /proc/$(cat quiet/cgroup.procs)/status";
    lab.until("one works and the other sleeps", || lab.run(are_there).success());
    for (group, is_busy) in [("/busy", true), ("/quiet", false)] {
        let output = lab.run(&trial(&format!("--for 1s --cgroup {group}")));
        assert_eq!(output.status, Status::Code(0), "{}", output.error_text());
        let report = report(&output);
        assert_eq!(report["cgroups"], serde_json::json!([group]), "{report}");
        for side in ["stock", "perch"] {
            let wakeups = value(&report, "wakeups", side).as_f64();
            let waited = value(&report, "p50_wait", side);
            assert_eq!(wakeups.is_some_and(|found| found > 0.0), is_busy, "{report}");
            assert_eq!(waited.is_f64(), is_busy, "{report}");
        }
    }
    lab.is_on_its_own();
    lab.is_well();
}

#[test]
fn trial_that_makes_no_sense_is_refused_before_it_begins() {
    let lab = Lab::boot("7.2", 8);
    for (arguments, words) in [
        ("--revert-if 'p95_wait>5%'", "expected one of p50_wait, p99_wait"),
        ("--counter 'a=echo many'", "printed `many`: expected a number"),
        ("--for 9m", "at least two turns of 300s"),
        ("--set cluster=on", "unknown mode \"on\""),
        ("-- --machine juno", "juno is not this machine"),
        ("--cgroup /none", "--cgroup /none"),
    ] {
        let output = lab.run(&format!("perch trial {arguments}"));
        let said = output.error_text();
        assert_eq!(output.status, Status::Code(2), "{arguments}: {said}");
        assert_eq!(output.text(), "", "{arguments}");
        assert!(said.contains(words), "{arguments}: {said}");
    }
    lab.text("sed -i 's,/bin/false,/bin/sh,' /etc/passwd");
    let output = lab.run("su nobody -c 'perch trial'");
    assert_eq!(output.status, Status::Code(3));
    assert!(output.error_text().contains("sudo perch trial"), "{}", output.error_text());
    lab.is_on_its_own();
}
