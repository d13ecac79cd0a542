// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay` and `perch advise` on good files, and on all kinds of bad ones.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{file, json, printed, refused, told};
use perch_machine::{Machine, library};
use perch_policy::{Era, Mode, Modes, Policy, Topology};
use perch_record::format::{Footer, Header, Writer};
use perch_record::synthetic::{Synthetic, synthetic};

pub const LOAD: Synthetic =
    Synthetic { seed: 1, wake_ups: 4_000, every_ns: 1_000_000, busy_pct: 70, real_time_every: 0 };

fn machine() -> Machine {
    library::load("jacobsville").expect("in the library")
}

pub fn recording(what: Synthetic) -> Vec<u8> {
    let modes = Modes { cluster: Mode::Upstream, capacity: Mode::Upstream, ..Modes::default() };
    let mut file = Vec::new();
    synthetic(&mut file, &machine(), Policy::new(Era::V7_2, modes), what).expect("memory");
    file
}

pub fn put(name: &str, bytes: impl AsRef<[u8]>) -> String {
    file("recordings", name, bytes)
}

/// Records a simulation of pairs on pipes.
pub fn simulated(name: &str) -> String {
    let path = put(name, []);
    printed(&format!(
        "compare -m jacobsville -w pipe:pairs=2 --arm s:cluster=upstream --repetitions 1 \
         --warmup 2ms --measure 4ms --quiet --record {path}"
    ));
    path
}

/// Demands that both commands refuse the file alike.
fn both_refuse(path: &str, words: &[&str]) {
    for command in ["replay", "advise"] {
        refused(&format!("{command} {path}"), words);
    }
}

#[test]
fn a_recording_of_the_model_agrees_and_needs_no_advice() {
    let path = put("model", recording(LOAD));
    let text = printed(&format!("replay {path}"));
    assert!(text.contains("in 4000 of 4000: 100.00 %"), "{text}");
    let text = printed(&format!("advise {path}"));
    assert!(text.contains("The model of 7.2 explains 100.00 %"), "{text}");
    assert!(text.contains("capacity: cannot act here"), "{text}");
    assert!(text.contains("What it cannot know:"), "{text}");
}

#[test]
fn teach_sets_two_recordings_side_by_side() {
    let guest = put("guest", recording(LOAD));
    let simulated = simulated("simulated");
    let teach = |one: &str, other: &str| format!("lab teach --guest {one} --simulated {other}");
    let with = |further: &str| printed(&format!("{} {further}", teach(&guest, &simulated)));
    let json = json(&format!("{} --format json --window 10s", teach(&guest, &simulated)));
    let [guest_is, simulated_is] = ["guest", "simulated"].map(|whose| &json["loads"][0][whose]);
    // The synthetic load has no end, and all of it counts; the model made its choices.
    let total = &guest_is["agreement"]["total"];
    assert_eq!(total["same"], total["wake_ups"], "{json}");
    assert!(total["wake_ups"].as_u64() > Some(3_000), "{json}");
    assert_eq!(simulated_is["kernel"], "simulated 7.2");
    assert!(simulated_is["to_wake"]["count"].as_u64() > Some(0), "{json}");
    let text = with("");
    for row in ["previous idle, %", "wake-ups, 1/s", "replay agrees, %"] {
        assert!(text.contains(row), "{row} in {text}");
    }
    assert!(with("--format markdown").contains("| guest | simulated | difference |"));
    for (one, other, says) in [
        (&simulated, &guest, "expected a recording of a kernel"),
        (&guest, &guest, "one of a simulation"),
        (&guest, &put("teach.text", b"no recording"), "not a recording of perch"),
        (&"missing.perch".to_string(), &simulated, "missing.perch"),
    ] {
        refused(&teach(one, other), &[says]);
    }
    refused("lab teach -m x5570", &["--pairs"]);
    refused("lab teach --pairs 1 -m nosuch", &["nosuch"]);
}

/// The model of a kernel without the cluster scan is wrong about one that has it.
#[test]
fn agreement_is_named_by_its_worst_reason() {
    let path = put("worst", recording(LOAD));
    let wrong = format!("replay {path} --era 6.5");
    let json = json(&format!("{wrong} --format json"));
    let agreement = &json["agreement"];
    let counts = |part: &serde_json::Value| {
        ["wake_ups", "same"].map(|key| part[key].as_u64().expect("a count"))
    };
    let [total, forced, unforced] =
        ["total", "forced", "unforced"].map(|part| counts(&agreement[part]));
    assert_eq!(total, counts(&json["model"]));
    assert_eq!(total, [0, 1].map(|i| forced[i] + unforced[i]));
    assert!(forced[0] > 0 && unforced[0] > forced[0], "{agreement}");
    let worst = &agreement["worst"];
    let ([asked, same], reason) = (counts(worst), worst["reason"].as_str().expect("a name"));
    let of_reason = &json["model"]["reasons"][reason];
    assert!(asked >= 30 && same < asked, "{agreement}");
    assert_eq!(of_reason[1].as_u64(), Some(asked - same), "{agreement}");
    // Only a busy target can be forced, so no other reason may agree less often.
    for (name, counts) in json["model"]["reasons"].as_object().expect("by reason") {
        let [all, differ] = [0, 1].map(|i| counts[i].as_u64().expect("a count"));
        let is_worse = differ * asked > (asked - same) * all;
        assert!(all < 30 || !is_worse, "{name}: {counts}, {agreement}");
    }
    let share = 100.0 * same as f64 / asked as f64;
    let line = format!("\n  worst: {reason} {same} of {asked} ({share:.1} %)\n");
    for format in ["table", "markdown"] {
        let text = printed(&format!("{wrong} --format {format}"));
        assert!(text.contains(&line), "{line} in {text}");
        let line = format!("\n  forced, one CPU possible: in {0} of {0}, ", forced[0]);
        assert!(text.contains(&line), "{line} in {text}");
    }
    let csv = printed(&format!("{wrong} --format csv"));
    let names: Vec<_> = csv.lines().next().expect("names").split(',').collect();
    assert_eq!(names[7..], ["forced", "forced_differ"]);
    let cells = |line: &str| -> Vec<u64> {
        let cells = line.split(',').skip(2);
        cells.map(|cell| cell.parse().expect("a count")).collect()
    };
    let rows: Vec<_> = csv.lines().skip(1).map(cells).collect();
    assert!(rows.iter().all(|row| row.len() == 7), "{csv}");
    assert_eq!(rows.iter().map(|row| row[5]).sum::<u64>(), forced[0]);
}

#[test]
fn short_recording_has_no_worst_reason() {
    let few = Synthetic { wake_ups: 25, ..LOAD };
    let path = put("few", recording(few));
    let text = printed(&format!("replay {path}"));
    let line = "\n  worst: -, no reason has 30 choices that were not forced\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("NaN"), "{text}");
    let json = json(&format!("replay {path} --format json"));
    assert_eq!(json["agreement"]["worst"], serde_json::Value::Null);
    assert_eq!(json["agreement"]["worst_at_least"], 30);
    assert_eq!(json["agreement"]["total"]["wake_ups"], 25);
}

#[test]
fn stdin_is_a_recording_too() {
    let file = recording(LOAD);
    let path = put("stdin", &file);
    for command in ["replay", "advise"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_perch"))
            .args([command, "-", "--format", "json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program was built");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(&file).expect("it reads all");
        drop(pipe);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        let piped = String::from_utf8(output.stdout).expect("UTF-8");
        let named = printed(&format!("{command} {path} --format json"));
        assert_eq!(piped.replace("stdin", ""), named.replace(&path, ""));
    }
}

#[test]
fn list_has_one_line_per_wake_up() {
    let path = put("list", recording(LOAD));
    let csv = printed(&format!("replay --list {path}"));
    let file = put("list.csv", b"");
    printed(&format!("replay --list {path} -o {file}"));
    assert_eq!(std::fs::read_to_string(&file).expect("written"), csv);
    assert_eq!(csv.lines().count(), 4001);
    let names = csv.lines().next().expect("a header").split(',').count();
    assert!(csv.lines().all(|line| line.split(',').count() == names));
    refused(&format!("replay --list {path} --format json"), &["csv"]);
    let (code, _, said) = told(&format!("replay --list {path} -o /dev/full"));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("/dev/full") && said.contains("No space"), "{said}");
}

#[test]
fn a_file_that_was_cut_off_is_read_up_to_there() {
    let file = recording(LOAD);
    // The footer is the last block; a file without it has all wake-ups.
    let path = put("cut", &file[..file.len() - 5]);
    for command in ["replay", "advise"] {
        let (code, text, said) = told(&format!("{command} {path}"));
        assert!(code == Some(0) && said.contains("ends at byte"), "{said}");
        assert!(text.contains("4000 wake-ups"), "{command}");
    }
    // A file that is cut within its first wake-ups has none to replay.
    both_refuse(&put("cut-early", &file[..5000]), &["no wake-up", "record"]);
    both_refuse(&put("cut-header", &file[..100]), &["cut off after 100 bytes"]);
}

#[test]
fn a_damaged_file_is_refused_with_the_place() {
    let mut file = recording(LOAD);
    let place = file.len() / 2;
    file[place] ^= 4;
    both_refuse(&put("damaged", &file), &["byte ", "checksum"]);
    let mut file = recording(LOAD);
    file[8] = 9;
    both_refuse(&put("newer", &file), &["version 9", "version 1"]);
    both_refuse(&put("foreign", b"PAR1\x15\x04"), &["not a recording"]);
    both_refuse(&put("empty", b""), &["not a recording"]);
    both_refuse("/", &["directory"]);
}

/// A recording without wake-ups, whose header `change` has changed.
fn with_header(change: impl Fn(&mut Header, &mut [usize; 2])) -> Vec<u8> {
    let machine = machine();
    let topology = Topology::new(&machine);
    let mut header = Header {
        machine: machine.to_toml(),
        kernel: "7.2.0".to_string(),
        era: "7.2".to_string(),
        hz: 250,
        ..Header::default()
    };
    let mut rows = [topology.nr_cpus(), topology.nr_shared()];
    change(&mut header, &mut rows);
    let writer = Writer::new(Vec::new(), header, rows[0], rows[1]).expect("memory");
    writer.finish(Footer::default()).expect("memory").1
}

#[test]
fn headers_that_contradict_themselves_are_refused() {
    let file = with_header(|_, _| {});
    both_refuse(&put("no-wake-ups", &file), &["no wake-up", "record"]);
    let file = with_header(|_, rows| rows[0] = 8);
    both_refuse(&put("rows", &file), &["8 CPUs", "24", "record again"]);
    let file = with_header(|header, _| header.era = "9.9".to_string());
    both_refuse(&put("era", &file), &["header", "9.9", "7.2"]);
    let file = with_header(|header, _| header.machine = "cpus = 3".to_string());
    both_refuse(&put("machine", &file), &["machine"]);
}

#[test]
fn a_recording_of_other_classes_only_makes_no_table() {
    let file = recording(Synthetic { real_time_every: 1, wake_ups: 50, ..LOAD });
    both_refuse(&put("real-time", &file), &["no wake-up of the fair class", "50 of others"]);
}

#[test]
fn modes_that_make_no_sense_are_refused() {
    let path = put("modes", recording(Synthetic { wake_ups: 50, ..LOAD }));
    let cases = [
        ("clutser=off", "unknown mechanism \"clutser\""),
        ("cluster=on", "unknown mode \"on\""),
        ("cluster", "expected MECHANISM=MODE"),
        ("''", "expected MECHANISM=MODE"),
        ("cache=posted", "where each process ran"),
        ("overload=perch", "real-time tasks to give away"),
        ("steer=posted", "task group"),
    ];
    for (set, words) in cases {
        refused(&format!("replay {path} --set {set}"), &["--set", words]);
    }
    refused(&format!("advise {path} --era 3.4"), &["--era 3.4", "5.5"]);
    refused(&format!("advise {path} --format xml"), &["xml", "table, json"]);
}

/// The policy makes the same choices on the recording of a simulation as it made in the simulation,
/// in every era, in all modes and on every machine: the recording loses nothing that the policy
/// decides by.
#[test]
fn simulated_recordings_agree_altogether() {
    let runs = [
        ("kunpeng920", "hackbench:groups=2", "7.2", "cluster=upstream"),
        ("kunpeng920", "tbench:n=40,where=node0", "6.5", "cluster=perch"),
        ("juno", "sysbench:threads=8", "6.15", "capacity=upstream"),
        ("pixel3", "hackbench:groups=1", "5.5", "cluster=off"),
        ("epyc7543", "schbench:workers=16", "6.15", "cluster=posted"),
        ("x5570", "vm", "7.2", "steer=perch"),
    ];
    for (machine, workload, era, modes) in runs {
        let path = put(&format!("simulated-{machine}-{era}"), b"");
        printed(&format!(
            "compare -m {machine} -w {workload} --era {era} --arm it:{modes} --repetitions 1 \
             --warmup 5ms --measure 40ms --record {path} -q"
        ));
        let json = printed(&format!("replay {path} --format json"));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let (asked, same) = (&json["model"]["wake_ups"], &json["model"]["same"]);
        assert!(asked.as_u64() > Some(50), "{machine}, {workload}: {asked} wake-ups");
        assert_eq!(asked, same, "{machine}, {workload}, {era}, {modes}");
    }
    let path = put("simulated-cache", b"");
    let (code, _, said) = told(&format!(
        "compare -m epyc7543 -w pipe:pairs=2 --arm it:cache=perch --repetitions 1 --measure 1ms \
         --record {path}"
    ));
    assert!(code != Some(0) && said.contains("leave cache out"), "{said}");
}

/// The reason decides, not only the mode: an LLC of 8 CPUs is small, one of 32 is not.
#[test]
fn a_trace_of_a_simulation_is_a_load() {
    let (trace, load) = (put("load.pftrace", []), put("load.workload", []));
    let run = |load: &str, more: &str| {
        let line = format!(
            "compare -m jacobsville -w {load} --arm s:cluster=upstream --repetitions 1 \
             --warmup 0ms --measure 6ms --quiet --format json {more}"
        );
        let wake_ups = &json(&line)["totals"][0];
        assert_eq!(wake_ups["name"], "wake-ups");
        (wake_ups["per_second"][0].as_f64().expect("a rate") * 0.006).round()
    };
    let traced = run("pipe:pairs=2", &format!("--trace {trace}"));
    let found = json(&format!("import {trace} -o {load} --format json"));
    // The four tasks' first run follows a fork, which no event wakes.
    assert_eq!((found["tasks"].as_f64(), found["wakes"].as_f64()), (Some(4.0), Some(traced - 4.0)));
    let again = run(&format!("recorded:{load}"), "");
    assert!((again / traced - 1.0).abs() < 0.05, "{again} wake-ups, {traced} in the trace");
}

#[test]
fn advice_for_a_machine_says_why() {
    let small = printed("advise -m x5570");
    assert!(small.contains("cache       upstream  last-level caches have 8 CPUs"), "{small}");
    let large = printed("advise -m kunpeng920");
    assert!(large.contains("cache       perch  there are 4 last-level caches, of 32"), "{large}");
    refused("advise -m juno --format json", &["--format", "--machine"]);
    refused("advise -m juno x.perch", &["--machine"]);
}
