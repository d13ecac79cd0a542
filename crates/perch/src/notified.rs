// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch agent notified`: runs a command as a service manager does, and prints what it says to one.

use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::thread;
use std::time::Duration;

use clap::Args;

use crate::output::{Failure, emit};

/// The agent's command.
pub const NOTIFIED: &str = "notified";

/// Its arguments.
#[derive(Args)]
pub struct Arguments {
    /// Time in which a sign of life must come, in seconds
    #[arg(long)]
    watchdog: u64,
    /// The command
    #[arg(required = true, trailing_var_arg = true)]
    command: Vec<String>,
}

/// Prints `PID=` and then each message, a line for each of its lines, until the command ends.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let wrong = |error: std::io::Error| Failure::run(format!("{NOTIFIED}: {error}"));
    let folder = tempfile::tempdir().map_err(wrong)?;
    let path = folder.path().join("notify");
    let socket = UnixDatagram::bind(&path).map_err(wrong)?;
    let within = Duration::from_secs(arguments.watchdog);
    let mut child = Command::new(&arguments.command[0])
        .args(&arguments.command[1..])
        .env("NOTIFY_SOCKET", &path)
        .env("WATCHDOG_USEC", within.as_micros().to_string())
        .spawn()
        .map_err(wrong)?;
    emit(&format!("PID={}\n", child.id()))?;
    let own = UnixDatagram::unbound().map_err(wrong)?;
    own.connect(&path).map_err(wrong)?;
    let ended = thread::spawn(move || {
        let status = child.wait();
        // An empty message ends the loop below.
        let _ = own.send(&[]);
        status
    });
    let mut message = [0; 4096];
    loop {
        let length = socket.recv(&mut message).map_err(wrong)?;
        if length == 0 {
            break;
        }
        emit(&String::from_utf8_lossy(&message[..length]))?;
    }
    let status = ended.join().expect("it only waits").map_err(wrong)?;
    match status.code() {
        Some(0) => Ok(()),
        code => Err(Failure {
            code: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
            message: format!("{NOTIFIED}: {status}"),
        }),
    }
}
