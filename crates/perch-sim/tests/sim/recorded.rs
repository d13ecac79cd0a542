// SPDX-License-Identifier: GPL-2.0-or-later
//! Recorded workloads: their file, and that they run to their end on any machine.

use std::path::Path;

use perch_policy::Era;
use perch_sim::workload::recorded::{Script, ScriptTask, Step};
use perch_sim::workload::{Class, Workload};
use perch_sim::{Outcome, Scenario};

use crate::common::{machine, scenario};

fn task(name: &str, start: Option<u64>, steps: &[Step]) -> ScriptTask {
    ScriptTask {
        name: name.to_string(),
        process: 0,
        class: Class::Fair,
        nice: 0,
        start,
        steps: steps.to_vec(),
    }
}

/// A parent that forks a child; the two wake each other `rounds` times.
fn pair(rounds: usize) -> Script {
    use Step::{Await, Compute, Exec, Fork, Next, Sleep, Wake};
    let round = |steps: &[Step]| {
        steps.iter().copied().cycle().take(rounds * steps.len()).collect::<Vec<_>>()
    };
    let parent = [
        vec![Compute(50_000), Fork(1)],
        round(&[Wake(1), Compute(2_000), Await(1)]),
        vec![Next(9_000_000)],
    ];
    let child = [vec![Exec], round(&[Await(0), Compute(3_000), Wake(0)]), vec![Sleep(100_000)]];
    Script {
        about: vec!["a line".to_string()],
        span_ns: 10_000_000,
        tasks: vec![
            ScriptTask {
                class: Class::Fifo(3),
                ..task("parent of two", Some(1_000), &parent.concat())
            },
            ScriptTask { nice: -5, process: 7, ..task("child", None, &child.concat()) },
        ],
    }
}

fn written(script: &Script) -> String {
    let mut file = Vec::new();
    script.write(&mut file).expect("memory takes it");
    String::from_utf8(file).expect("text")
}

/// Runs a script from a file of this test's own.
fn run(test: &str, script: &str, keys: &str, on: &str) -> Outcome {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.workload"));
    std::fs::write(&path, script).expect("a file");
    let machine = machine(on);
    let spec = format!("recorded:{}{keys}", path.display());
    let workload = Workload::parse(&spec, &machine).unwrap_or_else(|error| panic!("{error}"));
    let scenario = scenario(&machine, Era::V7_2, workload, [0, 10_000]);
    let outcome = scenario.run().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome, scenario.run().expect("the same again"));
    let other = Scenario { seed: 2, ..scenario };
    assert!(other.run().is_ok());
    outcome
}

#[test]
fn a_file_is_read_as_it_was_written() {
    let script = pair(40);
    let text = written(&script);
    let read = Script::read(&mut text.as_bytes()).expect("what perch wrote");
    assert_eq!(read, script);
    assert_eq!(written(&read), text);
    assert_eq!((script.wakes(), script.steps(), script.work_ns()), (80, 245, 50_000 + 40 * 5_000));
}

#[test]
fn files_that_make_no_sense_are_refused_by_their_line() {
    let good = written(&pair(2));
    let refused = |text: &str, line: usize, words: &str| {
        let error = Script::read(&mut text.as_bytes()).expect_err(words).to_string();
        assert!(error.starts_with(&format!("line {line}: ")), "{error}");
        assert!(error.contains(words), "{words}: {error}");
    };
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{good}");
        good.replacen(from, to, 1)
    };
    refused("", 1, "not a workload that perch import wrote");
    refused("\u{1}\u{2}", 1, "not a workload");
    refused(&with("perch-workload 1", "perch-workload 2"), 1, "version 1");
    refused(&with("w1", "w9"), 4, "expected another one of 0 to 1");
    refused(&with("w1", "w0"), 4, "expected another one");
    refused(&with("w1 c2000", "c2000"), 8, "there are tasks=2 steps=16");
    refused(&with("w1 c2000", "c1 c2000"), 4, "waits for task 1 forever");
    refused(&with("f1", "c1"), 6, "nobody does");
    refused(&with("start=forked", "start=5"), 6, "task 0 forks it");
    refused(&with("c2000", "z2000"), 5, "expected a step");
    refused(&with("c2000", "c99999999999999999999"), 5, "whole number");
    refused(&with("c2000", "é"), 5, "expected a step");
    refused(&with("nice=-5", "nice=-50"), 6, "-20 to 19");
    refused(&with("class=fifo:3", "class=dl:3"), 4, "fifo:PRIORITY");
    refused(&with("task 1", "task 7"), 6, "expected task 1");
    refused(&with("start=1000", "begin=1000"), 4, "expected process=");
    refused(&with("span 10000000\n", "w1\n"), 3, "before the first step");
    refused(&format!("{good}w1\n"), 9, "expected nothing");
    refused("perch-workload 1\nend tasks=0 steps=0\n", 1, "no tasks");
    refused(&format!("perch-workload 1\n{}", "c1 ".repeat(40_000)), 2, "65536 bytes");
    for end in 0..good.len() - 1 {
        assert!(Script::read(&mut &good.as_bytes()[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn all_wake_ups_happen_and_all_work_is_done() {
    let script = pair(200);
    for on in ["kunpeng920", "juno", "epyc7543"] {
        let outcome = run("pair", &written(&script), ",spread=0,lines=0,footprint=0", on);
        assert_eq!(outcome.metrics.counted, script.wakes());
        assert!(outcome.metrics.busy_ns >= script.work_ns(), "{:?}", outcome.metrics);
        // The parent keeps its period: it ends 9 ms after it appeared.
        let seconds = outcome.scores[0].value;
        assert!((0.009..0.0092).contains(&seconds), "{on}: {seconds}");
    }
}

#[test]
fn a_period_is_kept_whatever_the_work_and_a_sleep_is_not() {
    let text = |step: &str| {
        let steps = format!("c3000000 {step} ").repeat(10);
        format!(
            "perch-workload 1\ntask 0 start=0 name=x\n{}\nend tasks=1 steps=20\n",
            steps.trim_end()
        )
    };
    let seconds = |step: &str| {
        run(&format!("period-{step}"), &text(step), ",spread=0", "kunpeng920").scores[0].value
    };
    assert!((0.0999..0.1002).contains(&seconds("n10000000")));
    assert!((0.1299..0.1305).contains(&seconds("s10000000")));
    // A task does not sleep for a moment that is past.
    assert!((0.0299..0.0302).contains(&seconds("n1000000")));
}

#[test]
fn fewer_cpus_take_longer_for_the_same_wake_ups() {
    let mut script = Script::default();
    for pair in 0..8u32 {
        let (a, b) = (2 * pair, 2 * pair + 1);
        let rounds = |steps: [Step; 3]| steps.repeat(100);
        script.tasks.push(task(
            "a",
            Some(0),
            &rounds([Step::Compute(100_000), Step::Wake(b), Step::Await(b)]),
        ));
        script.tasks.push(task(
            "b",
            Some(0),
            &rounds([Step::Await(a), Step::Compute(100_000), Step::Wake(a)]),
        ));
    }
    let text = written(&script);
    let wide = run("wide", &text, ",where=cpu0-15", "kunpeng920");
    let narrow = run("narrow", &text, ",where=cpu0-1", "kunpeng920");
    assert_eq!(wide.metrics.counted, 1600);
    assert_eq!(narrow.metrics.counted, 1600);
    assert!(narrow.scores[0].value > 3.0 * wide.scores[0].value, "{narrow:?} {wide:?}");
}

#[test]
fn a_file_that_is_missing_or_not_named_is_an_error() {
    let machine = machine("kunpeng920");
    for (spec, words) in [
        ("recorded", "recorded:FILE"),
        ("recorded:/no/such/file", "/no/such/file"),
        ("recorded:/no/such/file,lanes=3", "/no/such/file"),
        ("recorded:/no/such/file,sync=perhaps", "yes or no"),
    ] {
        let error = Workload::parse(spec, &machine).expect_err(spec).to_string();
        assert!(error.contains(words), "{error}");
    }
}
