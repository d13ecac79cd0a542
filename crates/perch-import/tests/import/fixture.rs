// SPDX-License-Identifier: GPL-2.0-or-later
//! A recording written by hand in the form that `trace-cmd report` prints, and the script that the
//! import must make of it.

use perch_import::{Options, import, import_text};

use crate::perfdata::put;

const REPORT: &str = include_str!("fixture.txt");
const WORKLOAD: &str = include_str!("fixture.workload");

#[test]
fn a_recording_becomes_the_workload_that_it_is() {
    let (script, summary) =
        import_text(&mut REPORT.as_bytes(), &Options::default()).expect("a report");
    let mut file = Vec::new();
    script.write(&mut file).expect("memory takes it");
    assert_eq!(String::from_utf8(file).expect("text"), WORKLOAD);
    assert_eq!((summary.lost, summary.early, summary.interrupts, summary.softirqs), (17, 1, 1, 1));
    assert_eq!((summary.real_time, summary.unseen, summary.gaps, summary.guessed), (1, 0, 0, 0));
    let names: Vec<&str> =
        summary.left_out.longest().iter().map(|names| names.name.as_str()).collect();
    assert_eq!(names, ["trace-cmd", "migration/1"]);
}

#[test]
fn lines_that_make_no_sense_are_named() {
    for (line, number) in [
        ("  <idle>-0       0-0x1    5.000000000: sched_waking:  comm=x prio=120", 1),
        ("\n  <idle>-0       0-0x1    5.0000: sched_waking:  comm=x pid=1 prio=120", 2),
        ("CPU:0 [many EVENTS DROPPED]", 1),
    ] {
        let error =
            import_text(&mut line.as_bytes(), &Options::default()).expect_err(line).to_string();
        assert!(error.contains(&format!("line {number} of")), "{error}");
    }
    let nothing =
        import_text(&mut "cpus=4\n".as_bytes(), &Options::default()).expect_err("nothing in it");
    assert!(nothing.to_string().contains("no events of the scheduler"), "{nothing}");
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
    assert!(why.contains("8 of its 9 switches") && why.contains("-P"), "{why}");
}

/// The same recording as the kernel's own `trace` shows it, and as trace-cmd does by default.
fn as_others_print_it(short: bool) -> String {
    let mut text = match short {
        true => "cpus=2\n".to_string(),
        false => {
            "# tracer: nop\n#\n# entries-in-buffer/entries-written: 20/20   #P:2\n#\n".to_string()
        }
    };
    for line in REPORT.lines().skip(1) {
        let Some((head, rest)) = line.split_once("-0x") else {
            text += &match short {
                true => format!("{line}\n"),
                false => "CPU:1 [LOST 17 EVENTS]\n".to_string(),
            };
            continue;
        };
        let (flags, rest) = rest.split_once(' ').expect("flags");
        let (task, cpu) = head.rsplit_once(' ').expect("a CPU");
        let context = match u8::from_str_radix(flags, 16).expect("bits") {
            bits if bits & 8 != 0 => 'h',
            bits if bits & 16 != 0 => 's',
            _ => '.',
        };
        let (time, rest) = rest.trim_start().split_once(':').expect("a time");
        // The kernel's clock shows microseconds.
        let time = if short { time } else { &time[..time.len() - 3] };
        let mut rest = rest.to_string();
        for (bits, letter) in
            [("0", "R"), ("1", "S"), ("2", "D"), ("16", "X"), ("32", "Z"), ("256", "R+")]
        {
            let (from, to) = (format!("prev_state={bits} "), format!("prev_state={letter} ==> "));
            rest = rest.replace(&from, &to);
        }
        if short && !rest.contains("fork") && !rest.contains("exec") {
            for word in ["prev_comm=", "next_comm=", " comm=", "target_cpu="] {
                rest = rest.replace(word, if word.starts_with('t') { "CPU:" } else { " " });
            }
            for (before, after) in [
                (" prev_pid=", ":"),
                (" next_pid=", ":"),
                (" prev_prio=", " ["),
                (" next_prio=", " ["),
                (" prio=", " ["),
                (" prev_state=", "] "),
            ] {
                rest = rest.replace(before, after);
            }
            let pid = rest.rfind(" pid=").filter(|_| rest.contains("sched_wak"));
            if let Some(pid) = pid {
                rest.replace_range(pid..pid + 5, ":");
            }
            rest = match rest.contains(" CPU:") {
                true => rest.replace(" CPU:", "] CPU:"),
                false => rest + "]",
            };
        }
        text += &format!("{task} [00{cpu}] d.{context}1. {time}: {rest}\n");
    }
    text
}

#[test]
fn trace_is_read_as_others_print_it() {
    let (expected, _) = import_text(&mut REPORT.as_bytes(), &Options::default()).expect("a report");
    for short in [false, true] {
        let text = as_others_print_it(short);
        let path = put(if short { "report.txt" } else { "trace.txt" }, text.as_bytes());
        let (script, summary) =
            import(&path, &Options::default()).unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!(script.tasks, expected.tasks, "{text}");
        assert_eq!((summary.cpus, summary.lost), (Some(2), 17), "{text}");
    }
    // Without flags nobody knows a timer's wake-up from a task's.
    let line = "a-1 [000] 5.000001: sched_waking: comm=b pid=2 prio=120 target_cpu=000";
    let why = import_text(&mut line.as_bytes(), &Options::default()).expect_err("no flags");
    assert!(why.to_string().contains("line 1 of"), "{why}");
}
