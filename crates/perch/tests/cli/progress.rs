// SPDX-License-Identifier: GPL-2.0-or-later
//! Bars are for people: they are drawn on a terminal, after a while, and nowhere else.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::perch;

const PERCH: &str = env!("CARGO_BIN_EXE_perch");

/// What a terminal is sent by `command` of a shell, both its streams.
fn on_a_terminal(command: &str) -> String {
    let output = Command::new("script")
        .args(["-q", "-e", "-c", command, "/dev/null"])
        .env("TERM", "xterm")
        .output()
        .expect("script of util-linux");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command}: {text}");
    text
}

/// The words of a run of so many repetitions.
fn run(repetitions: u32) -> Vec<String> {
    let words = "compare -m juno -w tbench:n=4 --arm a:capacity=off --measure 1s --jobs 1";
    let words = words.split(' ').map(str::to_string);
    let count = ["--repetitions".to_string(), repetitions.to_string()];
    words.chain(count).collect()
}

/// What is seen of it, and how many seconds it took as it says itself.
fn seen(repetitions: u32) -> (String, f64) {
    let text = on_a_terminal(&format!("{PERCH} {}", run(repetitions).join(" ")));
    let (_, after) = text.split_once("simulations in ").expect("its last words");
    let seconds = after.split(' ').next().unwrap().parse();
    (text, seconds.unwrap())
}

#[test]
fn a_long_run_has_a_bar_with_rate_and_time_left_on_a_terminal_only() {
    // However fast the machine is: more of it until it takes long.
    let mut repetitions = 16;
    let text = loop {
        let (text, seconds) = seen(repetitions);
        if seconds > 3.0 {
            break text;
        }
        repetitions *= 2;
    };
    assert!(text.contains("/s, ") && text.contains(" left"), "{text:?}");
    assert!(text.contains("tbench:n=4 ["), "{text:?}");
    let quiet = run(repetitions).join(" ");
    let quiet = on_a_terminal(&format!("{PERCH} {quiet} --quiet"));
    assert!(!quiet.contains(" left"), "{quiet:?}");
    let words = run(repetitions);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = perch(&words);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "{said:?}");
    assert!(!said.contains(['\u{1b}', '\r']), "{said:?}");
}

/// Reading has one too; a pipe that is slow shows how much came, as nobody knows how much there is.
#[test]
fn reading_has_a_bar_as_well() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("progress");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("run.perch");
    let path = file.to_str().unwrap();
    let words = "compare -m juno -w tbench:n=4 --arm a:capacity=off --repetitions 1 -q --record";
    let words: Vec<&str> = words.split(' ').chain([path]).collect();
    assert!(perch(&words).status.success());
    let half = fs::metadata(&file).unwrap().len() / 2;
    let slowly = format!(
        "(head -c {half} {path}; sleep 3; tail -c +{} {path})",
        half + 1
    );
    let text = on_a_terminal(&format!("{slowly} | {PERCH} replay -"));
    assert!(text.contains("stdin ") && text.contains("iB/s"), "{text:?}");
    let output = Command::new("sh")
        .args(["-c", &format!("{slowly} | {PERCH} replay -")])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(
        output.stderr.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&output.stderr)
    );
}
