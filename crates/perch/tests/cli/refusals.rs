// SPDX-License-Identifier: GPL-2.0-or-later
//! perch refuses a request that makes no sense with exit code 2, a sentence on stderr that names
//! the mistake, and nothing on stdout.

mod budget;
mod tables;

use std::path::{Path, PathBuf};

use crate::support::perch;

/// Runs perch and demands a refusal whose message has each of `words`.
#[track_caller]
pub fn refused(arguments: &[&str], words: &[&str]) {
    let output = perch(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to stdout");
    for word in words {
        assert!(stderr.contains(word), "{arguments:?} should say `{word}`: {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

/// A directory of this test's own.
pub fn directory(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// A file of this test's own.
pub fn file(test: &str, name: &str, text: &str) -> String {
    let path = directory(test).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// A copy of the library's experiment with one text replaced by another.
fn experiment(test: &str, from: &str, to: &str) -> String {
    let given = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let figures = std::fs::read_to_string(given.join("cluster-scan.csv")).unwrap();
    file(test, "cluster-scan.csv", &figures);
    let text = std::fs::read_to_string(given.join("cluster-scan.toml")).unwrap();
    assert!(text.contains(from), "the experiment no longer says `{from}`");
    file(test, "changed.toml", &text.replacen(from, to, 1))
}

/// The line of `text` in the file at `path`, as errors name it.
fn at(path: &str, text: &str) -> String {
    let whole = std::fs::read_to_string(path).unwrap();
    let line = whole.lines().position(|line| line.contains(text)).unwrap();
    format!("changed.toml:{}", line + 1)
}

/// A comparison that lacks a workload.
pub const COMPARE: [&str; 5] = ["compare", "-m", "kunpeng920", "--arm", "a:cluster=off"];

#[test]
fn an_unknown_workload() {
    let arguments = [&COMPARE[..], &["-w", "tbnch:n=4"]].concat();
    refused(&arguments, &["unknown workload", "tbnch", "tbench, tbench-net"]);
}

#[test]
fn no_pairs() {
    let arguments = [&COMPARE[..], &["-w", "tbench:n=0"]].concat();
    refused(&arguments, &["tbench:n=0"]);
}

/// A pair that was not ready in time has nothing to say of the time that was to be measured.
#[test]
fn a_pair_that_begins_too_late() {
    let output = perch(&["agent", "pair", "--by", "pipe", "--from", "0", "--to", "1"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(output.stdout.is_empty() && stderr.contains("--warmup"), "{stderr}");
}

#[test]
fn an_arm_that_names_no_mechanism() {
    for (arm, words) in [
        ("a", "expected NAME:MECHANISM=MODE"),
        ("a:", "names no mechanism"),
        (":cluster=off", "the name before `:` is empty"),
        ("a:magic=perch", "unknown mechanism \"magic\": this version has cluster"),
        ("a:cluster=on", "expected off, posted, upstream or perch"),
    ] {
        refused(&["compare", "-m", "juno", "-w", "tbench:n=1", "--arm", arm], &[words]);
    }
    let twice = ["--arm", "a:cluster=perch", "-w", "tbench:n=1"];
    refused(&[&COMPARE[..], &twice].concat(), &["two arms `a`"]);
}

#[test]
fn an_unknown_machine_meets_its_neighbours() {
    refused(&["machine", "show", "kunpeng902"], &["kunpeng902", "did you mean kunpeng920?"]);
}

#[test]
fn a_machine_without_cpus() {
    let path = file("no-cpus", "empty.toml", "name = \"empty\"\n");
    let arguments = ["compare", "-m", &path, "-w", "tbench:n=1", "--arm", "a:cluster=off"];
    refused(&arguments, &["empty.toml", "expected"]);
    refused(&["machine", "show", &path], &["empty.toml"]);
}

#[test]
fn a_machine_that_is_no_toml_is_named_with_its_line() {
    let path = file("bad-machine", "bad.toml", "name = \"bad\"\n[topology\n");
    refused(&["machine", "show", &path], &["bad.toml:2"]);
}

#[test]
fn an_unknown_experiment() {
    refused(&["experiment", "run", "cluster"], &["no experiment `cluster`", "cluster-scan"]);
}

#[test]
fn an_experiment_that_is_no_toml_is_named_with_its_line() {
    let path = experiment("bad-toml", "hz = 250", "hz = = 250");
    refused(&["experiment", "run", &path], &[&at(&path, "hz = =")]);
}

#[test]
fn an_experiment_that_contradicts_itself_is_named_with_line_and_key() {
    for (test, from, to, words) in [
        ("key", "hz = 250", "hertz = 250", "unknown field `hertz`"),
        ("hz", "hz = 250", "hz = 5000", "`hz`: 5000 ticks a second; expected 100 to 1000"),
        ("machine", "\"kunpeng920\"", "\"kunpeng902\"", "did you mean kunpeng920?"),
        (
            "era",
            "era = \"6.5\"",
            "era = \"7.9\"",
            "unknown era \"7.9\": this version has 3.4 to 7.2",
        ),
        (
            "early",
            "era = \"6.5\"",
            "era = \"3.4\"",
            "`arm.modes`: cluster=posted does nothing in era 3.4",
        ),
        ("modes", "\"cluster=posted\"", "\"cluster=post\"", "expected off, posted, upstream"),
        ("arm", "name = \"patched\"", "name = \"better\"", "expected `baseline`, then `patched`"),
        ("workload", "\"tbench:{row}", "\"tbench:x{row}", "`benchmark.workload`"),
        ("unit", "unit = \"MB/s\"", "unit = \"GB/s\"", "was published in `MB/s`"),
        ("row", "rows = [\"n=1\",", "rows = [\"n=2\",", "tbench/node0/n=2 has no figures"),
        ("repetitions", "repetitions = ", "repetitions = 0 #", "expected at least 1"),
        ("column", "\"baseline\", \"patched\"]", "\"base\"]", "expected `baseline` or `patched`"),
        ("fitted", "row = \"n=128\"", "row = \"n=127\"", "no cell tbench/node0/n=127"),
    ] {
        let path = experiment(test, from, to);
        refused(&["experiment", "run", &path], &["changed.toml:", words]);
    }
}

#[test]
fn an_experiment_that_leaves_a_published_row_out() {
    let path = experiment("left-out", "\"n=4\", ", "");
    refused(&["experiment", "run", &path], &["tbench/node0/n=4", "must be simulated"]);
}

#[test]
fn an_experiment_without_its_figures() {
    let path = experiment("no-csv", "cluster-scan.csv", "gone.csv");
    refused(
        &["experiment", "run", &path],
        &[&at(&path, "gone.csv"), "`published`", "cannot read", "gone.csv"],
    );
}

#[test]
fn what_is_no_recording() {
    refused(&["replay", "no-such-file"], &["no-such-file", "No such file"]);
    let text = file("recording", "text", "1,2,3\n");
    refused(&["replay", &text], &["recording/text", "not a recording of perch"]);
    let newer = file("recording", "newer", "PERCHREC\u{9}\0\0\0");
    refused(&["replay", &newer], &["version 9", "version 1"]);
    let short = file("recording", "short", "PERCHREC\u{1}\0\0\0H");
    refused(&["replay", &short], &["cut off after 13 bytes"]);
    refused(&["record", "-o", "/tmp/x", "--buffer", "9g"], &["--buffer", "64k to 1g"]);
    refused(&["record"], &["--output"]);
    refused(&["replay", &text, "--era", "3.4"], &["--era 3.4", "5.5"]);
    // perch never writes over the file that it reads, whatever name the user gives it.
    let other = text.replace("/text", "/../recording/text");
    refused(&["replay", &text, "--list", "-o", &other], &["--output", "the recording itself"]);
    refused(&["replay", &text, "--trace", &text], &["--trace", "the recording itself"]);
    assert_eq!(std::fs::read_to_string(&text).unwrap(), "1,2,3\n");
    let (list, trace) = (format!("{text}.csv"), format!("{text}.pftrace"));
    refused(&["replay", &text, "--list", "-o", &list], &["not a recording"]);
    refused(&["replay", &text, "--trace", &trace], &["not a recording"]);
    assert!(![list, trace].iter().any(|path| std::fs::exists(path).unwrap()));
}

#[test]
fn an_unknown_format() {
    let arguments = ["experiment", "run", "cluster-scan", "--format", "xml"];
    refused(&arguments, &["xml", "table, markdown, csv, json"]);
}

#[test]
fn counts_and_times_that_make_no_sense() {
    let run = ["experiment", "run", "cluster-scan"];
    refused(&[&run[..], &["--jobs", "0"]].concat(), &["--jobs", "at least 1"]);
    refused(&[&run[..], &["--repetitions", "0"]].concat(), &["--repetitions", "at least 1"]);
    refused(&[&run[..], &["--only", "nothing"]].concat(), &["no cell", "benchmark/where/row"]);
    refused(&[&run[..], &["--arms", "magic"]].concat(), &["no arm `magic`", "perch"]);
    refused(&["experiment", "run"], &["NAME"]);
    let compare = [&COMPARE[..], &["-w", "tbench:n=1"]].concat();
    refused(&[&compare[..], &["--measure", "5"]].concat(), &["250ms or 2s"]);
    refused(&[&compare[..], &["--measure", "0s"]].concat(), &["at least 1"]);
    refused(
        &[&compare[..], &["--warmup", "0ms"]].concat(),
        &["the measured time must be at least 1"],
    );
    refused(
        &[&compare[..], &["--effort", "full", "--measure", "1s"]].concat(),
        &["--effort", "cannot be used with", "--measure"],
    );
    refused(&[&compare[..], &["--hz", "7"]].concat(), &["100 to 1000"]);
    refused(
        &[&compare[..], &["--era", "6.20"]].concat(),
        &["unknown era \"6.20\": the last Linux 6 was 6.19"],
    );
    for (arm, load, words, era) in [
        (
            "a:steer=perch,cache=posted",
            "pipe",
            "--arm a:steer=perch,cache=posted: cache=posted does nothing in era 3.4",
            "choose era 5.5 or a later one",
        ),
        (
            "a:steer=perch",
            "pipe:uclamp_min=100",
            "era 3.4 has no uclamp: leave uclamp_min and",
            "choose era 5.3 or a later one",
        ),
    ] {
        let early = ["compare", "-m", "juno", "--era", "3.4", "--arm", arm, "-w", load];
        refused(&early, &[words, era]);
    }
}

#[test]
fn recordings_that_cannot_be_imported() {
    let out = directory("import").join("out.workload").display().to_string();
    let text = file("import", "text.data", "no recording\n");
    refused(&["import", &text, "-o", &out], &["text.data", "expected a file of perf sched record"]);
    refused(&["import", "/no/such/file", "-o", &out], &["/no/such/file"]);
    refused(&["import", &text, "-o", &out, "-m", "no-such-machine"], &["no-such-machine"]);
    assert!(!Path::new(&out).exists());
    let cut = file("import", "cut.workload", "perch-workload 1\ntask 0 start=0 name=x\nc5\n");
    let spec = format!("recorded:{cut}");
    let arguments = ["compare", "-m", "juno", "-w", &spec, "--arm", "off:cluster=off"];
    refused(&arguments, &["cut.workload", "line 4", "cut off"]);
}
