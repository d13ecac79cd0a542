// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU's monitor, over which a guest is stopped and goes on: lines of JSON, as QEMU's
//! docs/interop/qmp-spec.rst describes them.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long QEMU may take to answer. It answers between two turns of the guest's CPUs.
const PATIENCE: Duration = Duration::from_secs(60);

/// The connection.
pub(super) struct Monitor {
    stream: BufReader<UnixStream>,
    /// Set once perch has sent the first command, `qmp_capabilities`; QEMU carries out no other
    /// before it.
    greeted: bool,
}

impl Monitor {
    /// A connection over a stream whose other end QEMU has.
    ///
    /// # Errors
    /// Those of the stream.
    pub fn new(stream: UnixStream) -> io::Result<Monitor> {
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Monitor {
            stream: BufReader::new(stream),
            greeted: false,
        })
    }

    /// Sends QEMU a command without arguments, and waits until QEMU has carried it out.
    ///
    /// # Errors
    /// Those of the stream; `Other` with QEMU's answer when it refuses.
    pub fn execute(&mut self, command: &str) -> io::Result<()> {
        if !self.greeted {
            self.ask("qmp_capabilities")?;
            self.greeted = true;
        }
        self.ask(command)
    }

    fn ask(&mut self, command: &str) -> io::Result<()> {
        let request = format!("{{\"execute\": \"{command}\"}}\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            // Between answers QEMU greets and tells of events.
            if line.starts_with("{\"return\"") {
                return Ok(());
            }
            if line.starts_with("{\"error\"") {
                return Err(io::Error::other(format!("{command}: {}", line.trim())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_among_greetings_and_events() {
        let (here, mut there) = UnixStream::pair().unwrap();
        let mut monitor = Monitor::new(here).unwrap();
        let said = "{\"QMP\": {\"version\": {}}}\r\n{\"return\": {}}\r\n\
                    {\"timestamp\": {}, \"event\": \"STOP\"}\r\n{\"return\": {}}\r\n\
                    {\"error\": {\"desc\": \"no such command\"}}\r\n";
        there.write_all(said.as_bytes()).unwrap();
        monitor.execute("stop").unwrap();
        let refused = monitor.execute("sotp").unwrap_err().to_string();
        assert!(refused.contains("no such command"), "{refused}");
        let mut asked = String::new();
        let mut lines = BufReader::new(there);
        for _ in 0..3 {
            lines.read_line(&mut asked).unwrap();
        }
        let lines: Vec<&str> = asked.lines().collect();
        assert_eq!(lines[0], "{\"execute\": \"qmp_capabilities\"}");
        assert_eq!(lines[1], "{\"execute\": \"stop\"}");
        drop(monitor);
    }

    #[test]
    fn a_qemu_that_is_gone_is_an_error() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        assert!(Monitor::new(here).unwrap().execute("stop").is_err());
    }
}
