// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch top` on a terminal, with a socket that answers as a scheduler does.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::support::refused;

const ROWS: u16 = 20;
const COLUMNS: u16 = 80;

/// So long nothing comes only if perch hangs, however busy the host is.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A path for a socket that only one test has.
fn socket(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("perch-top-{name}-{}", std::process::id()));
    let _ = fs::remove_file(&path);
    path
}

/// Answers one client: at the n-th request a scheduler that made 100 decisions in each of n seconds;
/// goes after so many.
fn serve(listener: &UnixListener, answers: u64) {
    let (stream, _) = listener.accept().unwrap();
    let mut requests = BufReader::new(&stream).lines();
    for n in 1..=answers {
        // perch has ended.
        let Some(Ok(_)) = requests.next() else { return };
        let (uptime_ns, wakeups) = (n * 1_000_000_000, n * 100);
        let report = serde_json::json!({
            "at_ns": 0, "uptime_ns": uptime_ns, "busy_ns": 0, "restarts": 0,
            "overloaded_cpus": 0, "overload_sum": 0, "overload_lowest": 0,
            "partial_tasks": 0, "partial_refused": 0, "machine": "A CPU", "kernel": "7.2",
            "modes": "cluster=perch", "band": "", "partial": "", "cpus": 4,
            "reasons": { "target idle": { "wakeups": wakeups } }, "direct": wakeups,
        });
        let answer = serde_json::json!({ "errno": 0, "args": { "resp": report } });
        let _ = (&stream).write_all(format!("{answer}\n").as_bytes());
    }
}

/// perch on a terminal, whose screen the test reads.
struct Screen {
    ours: OwnedFd,
    child: Child,
    bytes: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    raw: Vec<u8>,
}

impl Screen {
    fn of(arguments: &[&str]) -> Screen {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let size = Winsize { ws_row: ROWS, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let child = Command::new(env!("CARGO_BIN_EXE_perch"))
            .args(arguments)
            .env("TERM", "xterm")
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let (sender, bytes) = channel();
        let mut reader = File::from(ours.try_clone().unwrap());
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(got @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..got].to_vec()).is_err() {
                    return;
                }
            }
        });
        let parser = vt100::Parser::new(ROWS, COLUMNS, 0);
        Screen { ours, child, bytes, parser, raw: Vec::new() }
    }

    /// Waits until the screen shows a text.
    fn shows(&mut self, text: &str) {
        while !self.parser.screen().contents().contains(text) {
            let Ok(bytes) = self.bytes.recv_timeout(PATIENCE) else {
                let _ = self.child.kill();
                panic!("no {text:?} on\n{}", self.parser.screen().contents());
            };
            self.parser.process(&bytes);
            self.raw.extend(bytes);
        }
    }

    fn press(&self, keys: &str) {
        File::from(self.ours.try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    /// Demands that perch ends well and leaves the terminal as it was.
    fn ends(mut self) {
        assert!(self.child.wait().unwrap().success());
        let modes = tcgetattr(self.ours.as_fd()).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO));
        // The other screen is left, and the cursor shown.
        while self.parser.screen().alternate_screen() || self.parser.screen().hide_cursor() {
            let bytes = self.bytes.recv_timeout(PATIENCE).expect("a terminal as it was");
            self.parser.process(&bytes);
        }
    }
}

/// perch top at this socket, where a scheduler answers so often.
fn watching(socket: &Path, answers: u64) -> Screen {
    let listener = UnixListener::bind(socket).unwrap();
    thread::spawn(move || serve(&listener, answers));
    let path = socket.to_str().unwrap();
    Screen::of(&["top", "--every", "100ms", "--socket", path])
}

#[test]
fn a_terminal_shows_rates_and_is_left_as_it_was() {
    let socket = socket("keys");
    let mut screen = watching(&socket, u64::MAX);
    screen.shows("100 wake-ups/s");
    screen.shows("target idle");
    screen.shows("by rate");
    screen.press("q");
    screen.ends();
    let _ = fs::remove_file(socket);
}

#[test]
fn a_scheduler_that_goes_leaves_the_last_figures_and_control_c_ends() {
    let socket = socket("gone");
    let mut screen = watching(&socket, 3);
    screen.shows("up for 00:00:03");
    screen.shows("gone once since perch top watches");
    screen.press("\x03");
    screen.ends();
    let _ = fs::remove_file(socket);
}

#[test]
fn without_a_terminal_or_a_scheduler_top_says_what_to_do() {
    refused("top --socket /nowhere", &["needs a terminal", "perch stats --interval 1s"]);
    let mut screen = Screen::of(&["top", "--socket", "/nowhere"]);
    screen.shows("start one with sudo perch run");
    assert_eq!(screen.child.wait().unwrap().code(), Some(1));
    assert!(!screen.parser.screen().alternate_screen());
}
