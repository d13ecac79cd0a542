// SPDX-License-Identifier: GPL-2.0-or-later
//! Bars are for people: perch draws them on a terminal, after a while, and nowhere else.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::perch;

const PERCH: &str = env!("CARGO_BIN_EXE_perch");

/// The text that a shell's `command` sends to a terminal, on both of its streams.
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

/// The arguments of a run of so many repetitions.
fn run(repetitions: u32) -> Vec<String> {
    let words = "compare -m juno -w tbench:n=4 --arm a:capacity=off --measure 1s --jobs 1";
    let words = words.split(' ').map(str::to_string);
    let count = ["--repetitions".to_string(), repetitions.to_string()];
    words.chain(count).collect()
}

/// The text on the terminal of such a run, and the seconds that it took by its own words.
fn seen(repetitions: u32) -> (String, f64) {
    let command = format!("{PERCH} {}", run(repetitions).join(" "));
    let text = on_a_terminal(&command);
    let (_, after) = text.split_once("simulations in ").expect("its last words");
    let seconds = after.split(' ').next().unwrap().parse();
    (text, seconds.unwrap())
}

#[test]
fn a_long_run_has_a_bar_with_rate_and_time_left_on_a_terminal_only() {
    // The test asks for as many repetitions as take long on this machine, and not for many more.
    let mut repetitions = 8;
    let text = loop {
        let (text, seconds) = seen(repetitions);
        if seconds > 3.0 {
            break text;
        }
        let times = (3.3 / seconds.max(0.1)).max(1.1);
        repetitions = (f64::from(repetitions) * times).ceil() as u32;
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

/// Reading a recording shows a bar too. For a slow pipe it shows the amount read, since perch does
/// not know the total.
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
    let slowly = |pause: &str| {
        let rest = half + 1;
        format!("(head -c {half} {path}; {pause}; tail -c +{rest} {path}) | {PERCH} replay -")
    };
    // perch draws the bar as it reads, from two seconds after its begin on. On a busy host that may be
    // some seconds after the first half was written.
    let text = on_a_terminal(&slowly("sleep 10"));
    assert!(text.contains("stdin ") && text.contains("iB/s"), "{text:?}");
    let output = Command::new("sh")
        .args(["-c", &slowly("sleep 3")])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(
        output.stderr.is_empty(),
        "{:?}",
        String::from_utf8_lossy(&output.stderr)
    );
}
