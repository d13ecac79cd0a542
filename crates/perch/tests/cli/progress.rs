// SPDX-License-Identifier: GPL-2.0-or-later
//! Bars are for people: perch draws them on a terminal, after a while. The tests wait for a bar, for as
//! long as the host needs.

use std::fs;
use std::io::Read;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::support::{file, printed, told};

const PERCH: &str = env!("CARGO_BIN_EXE_perch");

/// Begins a command that ends with its terminal, even where the tests run under nohup.
const HANG_UP: &str = "env --default-signal=HUP";

/// The run of a shell's command on a terminal, which ends with this value.
struct Terminal(Child);

impl Terminal {
    /// `input` goes to the command's standard input, a pipe.
    fn run(command: &str) -> (Terminal, ChildStdin) {
        let child = Command::new("script")
            .args(["-q", "-e", "-c", command, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("script of util-linux");
        let input = child.stdin.take().unwrap();
        (Terminal(child), input)
    }

    /// Waits until `is` holds of the text that was sent to the terminal; `None` if the command ends
    /// first.
    fn shows(&mut self, is: impl Fn(&str) -> bool) -> Option<String> {
        let output = self.0.stdout.as_mut().unwrap();
        let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
        loop {
            let text = String::from_utf8_lossy(&bytes);
            if is(&text) {
                return Some(text.into_owned());
            }
            match output.read(&mut piece).unwrap_or(0) {
                0 => return None,
                read => bytes.extend(&piece[..read]),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A comparison that takes minutes.
const LONG: &str =
    "compare -m juno -w tbench:n=4 --arm a:capacity=off --measure 1s --repetitions 20000 --jobs 1";

#[test]
fn a_long_run_has_a_bar_with_rate_and_time_left_on_a_terminal() {
    let (mut terminal, _input) = Terminal::run(&format!("exec {HANG_UP} {PERCH} {LONG}"));
    let bar = |text: &str| text.contains("/s, ") && text.contains(" left");
    let text = terminal.shows(bar).expect("a bar");
    assert!(text.contains("tbench:n=4 ["), "{text:?}");
}

#[test]
fn off_a_terminal_are_words_alone() {
    let words = "compare -m juno -w tbench:n=4 --arm a:capacity=off --effort quick --repetitions 2";
    let (_, _, said) = told(words);
    assert_eq!(said.lines().count(), 1, "{said:?}");
    assert!(!said.contains(['\u{1b}', '\r']), "{said:?}");
}

/// Reading a recording shows a bar too. For a pipe it shows the amount read, since perch does not know
/// the total. The pipe gives perch the recording's first half, and then a byte now and then.
#[test]
fn reading_has_a_bar_as_well() {
    let path = file("progress", "run.perch", []);
    printed(&format!(
        "compare -m juno -w tbench:n=4 --arm a:capacity=off --effort quick --repetitions 1 -q \
         --record {path}"
    ));
    let half = fs::metadata(&path).unwrap().len() / 2;
    let slowly = format!(
        "(head -c {half} {path}; while sleep 0.2; do head -c 1 /dev/zero; done) | {PERCH} replay -"
    );
    let (mut terminal, _input) = Terminal::run(&format!("exec {HANG_UP} sh -c '{slowly}'"));
    let bar = |text: &str| text.contains("stdin ") && text.contains("iB/s");
    terminal.shows(bar).expect("a bar");
}
