// SPDX-License-Identifier: GPL-2.0-only
//! rt-app's files: what they do, and what is refused by its line.

use std::path::Path;

use perch_policy::Era;
use perch_sim::Outcome;
use perch_sim::workload::{Class, Workload};

use crate::common::{machine, scenario};

fn spec(test: &str, text: &str, keys: &str) -> String {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.json"));
    std::fs::write(&path, text).expect("a file");
    format!("rtapp:{}{keys}", path.display())
}

fn workload(test: &str, text: &str) -> Workload {
    let found = Workload::parse(&spec(test, text, ""), &machine("juno"));
    found.unwrap_or_else(|error| panic!("{error}"))
}

/// A second of it.
fn run(test: &str, text: &str, keys: &str) -> Outcome {
    let machine = machine("kunpeng920");
    let workload = Workload::parse(&spec(test, text, keys), &machine);
    let workload = workload.unwrap_or_else(|error| panic!("{error}"));
    scenario(&machine, Era::V7_2, workload, [0, 1000])
        .run()
        .expect("it runs")
}

#[test]
fn a_timer_keeps_its_period_and_a_sleep_does_not() {
    let periodic = "{\"tasks\": {\"a\": {\"run\": 3000, \"timer\": {\"ref\": \"unique\", \"period\": 10000}}}}";
    let outcome = run("timer", periodic, "");
    assert_eq!(outcome.metrics.counted, 99);
    // A fork, and a wake-up a period; the last falls on the end.
    assert!(
        (99..=101).contains(&outcome.metrics.wakeups),
        "{:?}",
        outcome.metrics.wakeups
    );
    let sleeps = "{\"tasks\": {\"a\": {\"run\": 3000, \"sleep\": 10000}}}";
    let counted = run("sleep", sleeps, "").metrics.counted;
    assert_eq!(counted, 76, "a round takes 13 ms");
}

#[test]
fn a_late_timer_is_set_anew_unless_it_is_absolute() {
    // Once 45 ms of work, then short rounds: an absolute timer catches up.
    let file = |mode: &str| {
        format!(
            "{{\"tasks\": {{\"a\": {{\"loop\": 1, \"phases\": {{\n\
             \"long\": {{\"run\": 45000, \"timer\": {{\"ref\": \"unique\", \"period\": 10000, \"mode\": \"{mode}\"}}}},\n\
             \"short\": {{\"loop\": -1, \"run\": 1000, \"timer\": {{\"ref\": \"unique\", \"period\": 10000, \"mode\": \"{mode}\"}}}}}}}}}}}}"
        )
    };
    let absolute = run("absolute", &file("absolute"), "").metrics.counted;
    let relative = run("relative", &file("relative"), "").metrics.counted;
    assert_eq!((absolute, relative), (98, 95));
}

#[test]
fn instances_loops_and_repeated_keys_are_what_rt_app_makes_of_them() {
    let file = "{\n\"global\": {\"duration\": 2, \"calibration\": \"CPU0\", \"default_policy\": \"SCHED_RR\"},\n\
        \"tasks\": {\n\
        \"three\": {\"instance\": 3, \"loop\": 2, \"policy\": \"SCHED_OTHER\", \"priority\": -7, \"delay\": 500, \"taskgroup\": \"/a/b\",\n\
        \"cpus\": [1, 2], \"util_min\": 100, \"phases\": {\"p\": {\"loop\": 5, \"run\": 100, \"sleep\": 50, \"run\": 200}, \"q\": {\"run1\": 10}}},\n\
        \"rt\": {\"loop\": 4, \"runtime\": 100, \"sleep\": 1000, \"yield\": \"\"}}}";
    let made = workload("instances", file);
    assert_eq!(made.tasks.len(), 4);
    let groups: Vec<(&str, Option<usize>)> = made
        .groups
        .iter()
        .map(|g| (g.name.as_str(), g.parent))
        .collect();
    assert_eq!(groups, [("/a", None), ("/a/b", Some(0))]);
    let (first, last) = (&made.tasks[0], &made.tasks[3]);
    assert_eq!(
        (first.nice, first.class, first.group, first.uclamp),
        (-7, Class::Fair, Some(1), (100, 1024))
    );
    assert_eq!(first.allowed.iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(last.class, Class::Rr(10));
    let outcome = run("instances", file, "");
    assert_eq!(outcome.metrics.counted, 3 * 2 + 4);
    // 3 threads x 2 loops x (5 x 300 + 10), as fast on every CPU there, and 4 x 100 by the clock; us.
    let work = (3 * 2 * 1510 + 4 * 100) * 1000;
    assert!(
        (work..work * 11 / 10).contains(&outcome.metrics.busy_ns),
        "{}",
        outcome.metrics.busy_ns
    );
}

#[test]
fn work_is_calibrated_on_the_cpu_that_the_file_says() {
    let file = |calibration: &str| {
        format!(
            "{{\"global\": {{\"calibration\": {calibration}}}, \"tasks\": {{\"a\": {{\"run\": 1000}}}}}}"
        )
    };
    let machine = machine("juno");
    let first = |calibration: &str| {
        format!(
            "{:?}",
            workload("calibration", &file(calibration)).tasks[0].program[0]
        )
    };
    for cpu in 0..machine.cpus.len() {
        let ns = 1_000_000 * u64::from(machine.cpus[cpu].capacity) / 1024;
        assert_eq!(first(&format!("\"CPU{cpu}\"")), format!("Run(Const({ns}))"));
    }
    assert_eq!(first("150"), "Run(Const(1000000))");
}

#[test]
fn what_is_not_simulated_is_refused_by_its_line() {
    let task = |body: &str| format!("{{\"tasks\": {{\n\"a\": {{\n\"run\": 5,\n{body}\n}}}}}}");
    for (text, line, words) in [
        (
            task("\"lock\": \"m\""),
            4,
            "\"lock\": this event of rt-app is not simulated yet",
        ),
        (task("\"barrier1\": \"b\""), 4, "not simulated yet"),
        (task("\"fork\": \"a\""), 4, "not simulated yet"),
        (task("\"mem\": 100"), 4, "not simulated yet"),
        (task("\"running\": 5"), 4, "no such key"),
        (
            task("\"policy\": \"SCHED_DEADLINE\""),
            4,
            "SCHED_DEADLINE is not simulated",
        ),
        (task("\"dl-runtime\": 5"), 4, "deadline class"),
        (task("\"cpus\": [99]"), 4, "expected CPUs from 0 to 5"),
        (task("\"cpus\": []"), 4, "at least one CPU"),
        (task("\"priority\": 20"), 4, "from -20 to 19"),
        (task("\"sleep\": -1"), 4, "from 0 to"),
        (task("\"timer\": {\"ref\": \"x\"}"), 4, "a ref and a period"),
        (
            task("\"timer\": {\"ref\": \"x\", \"period\": 5, \"mode\": \"odd\"}"),
            4,
            "relative or absolute",
        ),
        (task("\"phases\": {}"), 3, "beside \"phases\""),
        (
            task("\"util_min\": 600, \"util_max\": 500"),
            2,
            "beyond its util_max",
        ),
        (
            "{\"tasks\": {\"a\": {\"phases\": {\n\"p\": {\"cpus\": [1], \"run\": 1}}}}}"
                .to_string(),
            2,
            "from phase to phase",
        ),
        (
            "{\"tasks\": {\"a\": {\"run\": 0}}}".to_string(),
            1,
            "takes no time",
        ),
        (
            "{\"tasks\": {\"a\": {\"run\": 1, \"phases\": 3}}}".to_string(),
            1,
            "beside",
        ),
        ("{\"tasks\": {}}".to_string(), 1, "one at least"),
        (
            "{\n\"global\": {\"pi_enabled\": true}, \"tasks\": {\"a\": {\"run\": 1}}}".to_string(),
            2,
            "priority inheritance",
        ),
        (
            "{\n\"global\": {\"speed\": 3}}".to_string(),
            2,
            "no such global key",
        ),
        (
            "{\"tasks\": {},\n\"tasks\": {}}".to_string(),
            2,
            "expected once",
        ),
        (
            "{\n\n\"task\": {}}".to_string(),
            3,
            "tasks, global or resources",
        ),
    ] {
        let spec = spec("refused", &text, "");
        let error = Workload::parse(&spec, &machine("juno"))
            .expect_err(&text)
            .to_string();
        assert!(
            error.contains(&format!("line {line}: ")) && error.contains(words),
            "{text}: {error}"
        );
    }
    let error = Workload::parse("rtapp:/no/such.json", &machine("juno"))
        .expect_err("none")
        .to_string();
    assert!(error.contains("/no/such.json"), "{error}");
}
