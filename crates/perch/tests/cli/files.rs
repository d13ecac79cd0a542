// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that perch refuses for what they are, how large they are or what they ask for.

use rustix::fs::{FileType, Mode};

use crate::refusals::COMPARE;
use crate::support::{directory, file, perch, refused, told};

/// A device has no end: perch names it before it reads any of it.
#[test]
fn devices_and_directories_are_no_files() {
    for path in ["/dev/zero", "/"] {
        for line in ["machine show", "machine import", "report", "experiment run", "replay"] {
            refused(&format!("{line} {path}"), &[path, "expected a regular file"]);
        }
        let regular = [path, "expected a regular file"];
        refused(&format!("import {path} -o /no/such/folder/out"), &regular);
        refused(&format!("run --config {path}"), &regular);
        for kind in ["rtapp", "recorded"] {
            let words = [path, "expected a regular file or a pipe"];
            refused(&format!("{COMPARE} -w {kind}:{path}"), &words);
        }
    }
}

#[test]
fn a_file_that_is_larger_than_any_of_its_kind() {
    let path = directory("large").join("large.toml");
    let large = std::fs::File::create(&path).unwrap();
    // The file has no blocks: only its length is large.
    large.set_len(1 << 40).unwrap();
    for line in ["machine show", "experiment run", "run --config"] {
        let line = format!("{line} {}", path.display());
        refused(&line, &["large.toml", "MiB", "perch reads"]);
    }
}

/// The input stands, whatever name it has as the output.
#[test]
fn no_command_writes_over_what_it_reads() {
    let report = file("own", "own.json", "{}");
    let trace = file("own", "own.trace", "no trace\n");
    for (path, line) in [
        (&report, format!("report {report} -o {report}")),
        (&trace, format!("import {trace} -o {trace}")),
    ] {
        let before = std::fs::read(path).unwrap();
        assert!(!perch(&line).status.success(), "{line}");
        assert_eq!(std::fs::read(path).unwrap(), before);
    }
}

/// The traces of several arms are no trace.
#[test]
fn a_pipe_takes_the_file_of_one_arm() {
    let path = directory("one-arm").join("pipe");
    let _ = std::fs::remove_file(&path);
    let (kind, mode) = (FileType::Fifo, Mode::RUSR | Mode::WUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    let line = format!("{COMPARE} -w pipe --arm b:off --trace {}", path.display());
    refused(&line, &["is a pipe", "one --arm"]);
}

#[test]
fn counts_that_would_take_hours_are_refused() {
    let nodes = "name = \"a\"\n[topology]\npackages = 8192\ncores_per_llc = 1\n";
    let nodes = file("counts", "nodes.toml", nodes);
    refused(&format!("machine show {nodes}"), &["nodes.toml:2", "8192 nodes", "1024"]);
    for (task, words) in [
        ("{\"instance\": 100000, \"run\": 1}", "\"a\": expected at most 32768 threads"),
        (
            "{\"instance\": 30000, \"loop\": 500, \"phases\": {\"p\": {\"loop\": 2, \"run\": 1}}}",
            "more than 1048576 events",
        ),
    ] {
        let text = format!("{{\"tasks\": {{\n\"a\": {task}}}}}");
        let path = file("counts", "rt.json", &text);
        refused(&format!("{COMPARE} -w rtapp:{path}"), &["rt.json", "line 2", words]);
    }
}

/// Names come from anybody, and a terminal must not obey them.
#[test]
fn names_are_printed_without_what_steers_a_terminal() {
    let text = "name = \"a\u{1b}[31m\"\n";
    let path = file("steers", "red\u{1b}[31m.toml", text);
    let names = ["machine show", "report", "replay"].map(|line| format!("{line} {path}"));
    for line in names.into_iter().chain(["machine sh\u{1b}[31mow juno".to_string()]) {
        let (code, _, said) = told(&line);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("\\u001b[31m") && !said.contains('\u{1b}'), "{said}");
    }
}

/// The results of somebody else, or of another version, are named with their place.
#[test]
fn results_that_perch_did_not_write() {
    let score = "{\"name\": \"s\", \"unit\": \"u\", \"higher_is_better\": true, \"arms\": []}";
    let text = format!(
        "{{\"machine\": \"juno\", \"workload\": \"pipe\", \"era\": \"7.2\", \"hz\": 250, \"seed\": 1,\n\
         \"repetitions\": 1, \"arms\": [{{\"name\": \"a\", \"modes\": \"\"}}], \"scores\": [{score}],\n\
         \"decisions\": [], \"cache\": [], \"wake_distance\": [], \"migrations\": [], \"balanced\": [],\n\
         \"totals\": []}}"
    );
    let path = file("results", "changed.json", &text);
    refused(&format!("report {path}"), &["changed.json", "scores[0].arms"]);
    let path = file("results", "typed.json", text.replace("250", "\"often\""));
    refused(&format!("report {path}"), &["typed.json", "line 1 "]);
}
