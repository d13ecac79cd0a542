// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording written by hand in the form that `trace-cmd report` prints, and the script that the
//! import must make of it.

use perch_import::{Options, import_text};

const REPORT: &str = include_str!("fixture.txt");
const WORKLOAD: &str = include_str!("fixture.workload");

#[test]
fn a_recording_becomes_the_workload_that_it_is() {
    let (script, summary) =
        import_text(&mut REPORT.as_bytes(), &Options::default()).expect("a report");
    let mut file = Vec::new();
    script.write(&mut file).expect("memory takes it");
    assert_eq!(String::from_utf8(file).expect("text"), WORKLOAD);
    assert_eq!(
        (
            summary.lost,
            summary.early,
            summary.interrupts,
            summary.softirqs
        ),
        (17, 1, 1, 1)
    );
    assert_eq!(
        (
            summary.real_time,
            summary.unseen,
            summary.gaps,
            summary.guessed
        ),
        (1, 0, 0, 0)
    );
    let names: Vec<&str> = summary
        .left_out
        .longest()
        .iter()
        .map(|names| names.name.as_str())
        .collect();
    assert_eq!(names, ["trace-cmd", "migration/1"]);
}

#[test]
fn lines_that_make_no_sense_are_named() {
    for (line, number) in [
        (
            "  <idle>-0       0-0x1    5.000000000: sched_waking:  comm=x prio=120",
            1,
        ),
        (
            "\n  <idle>-0       0-0x1    5.0000: sched_waking:  comm=x pid=1 prio=120",
            2,
        ),
        ("CPU:0 [many EVENTS DROPPED]", 1),
    ] {
        let error = import_text(&mut line.as_bytes(), &Options::default())
            .expect_err(line)
            .to_string();
        assert!(error.contains(&format!("line {number} of")), "{error}");
    }
    let nothing =
        import_text(&mut "cpus=4\n".as_bytes(), &Options::default()).expect_err("nothing in it");
    assert!(
        nothing.to_string().contains("no events of the scheduler"),
        "{nothing}"
    );
}

#[test]
fn recording_of_some_tasks_is_refused() {
    // Two tasks share a CPU with others, of which a recorder that follows the two tells nothing.
    let lines = (0..9).map(|i| {
        let prev = 1 + i % 2;
        format!("  a-{prev}  0-0x1  5.00000000{i}: sched_switch:  prev_comm=a prev_pid={prev} prev_prio=120 prev_state=1 next_comm=b next_pid=7 next_prio=120\n")
    });
    let text: String = lines.collect();
    let why = import_text(&mut text.as_bytes(), &Options::default()).expect_err("some tasks");
    let why = why.to_string();
    assert!(
        why.contains("8 of its 9 switches") && why.contains("-P"),
        "{why}"
    );
}
