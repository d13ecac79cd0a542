// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of perf and trace-cmd that perch imports.

use perch_fuzz::{Target, fuzz, refused};
use perch_import::{ImportError, Options, import, import_text};
use perch_workload::recorded::Script;

use crate::{folder, perfdata, read, text, tree};

/// A script that was made ends, and its file says the same when it is read and written again.
/// Control characters in names do not get that far.
fn judged<T>(found: Result<(Script, T), ImportError>, input: &[u8]) -> Result<(), String> {
    let script = match found {
        Ok((script, _)) => script,
        Err(error) => return refused(&error.to_string(), "", input),
    };
    script.check().map_err(|why| format!("the script: {why}"))?;
    let mut written = Vec::new();
    script.write(&mut written).expect("memory takes it");
    let again = Script::read(&mut &written[..]);
    let again = again.map_err(|error| format!("what was written is refused: {error}"))?;
    let mut twice = Vec::new();
    again.write(&mut twice).expect("memory takes it");
    match written == twice {
        true => Ok(()),
        false => Err("what was written is another script".to_string()),
    }
}

#[test]
fn trace_cmd() {
    let words = [
        "sched_switch:",
        "sched_waking:",
        "sched_wakeup:",
        "sched_wakeup_new:",
        "sched_process_fork:",
        "sched_process_exec:",
        "prev_pid=",
        "next_pid=",
        "prev_state=",
        "prev_prio=",
        "comm=",
        "pid=",
        "child_pid=",
        "target_cpu=",
        "cpus=",
        "CPU:1 [",
        "EVENTS DROPPED]",
        "<idle>-0",
        "-",
        "0x",
        "[",
        "]",
        " ",
        "\n",
        "\0",
        "\u{1b}",
        ".",
        ":",
    ];
    let seeds = vec![read(&tree("crates/perch-import/tests/import/fixture.txt"))];
    text("trace_cmd", 5000, seeds, &words, &|input, _| {
        judged(import_text(&mut &input[..], &Options::default()), input)
    });
}

#[test]
fn perf_data() {
    let target = Target {
        name: "perf_data",
        inputs: 3500,
        seeds: vec![perfdata::file(false, 6), perfdata::file(true, 6)],
        words: &[
            "PERFILE2",
            "2ELIFREP",
            "tracing",
            "\tfield:int pid;\toffset:8;\tsize:4;\tsigned:1;\n",
            "signed:",
            "size:",
            "offset:",
            "name: sched_switch\n",
            "ID: 301\n",
            "6.18.4",
        ],
        binary: true,
        seal: |_| {},
        check: &|input, path| judged(import(path, &Options::default()), input),
    };
    fuzz(&target, &folder());
}
