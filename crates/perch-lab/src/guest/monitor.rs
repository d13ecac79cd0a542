// SPDX-License-Identifier: GPL-2.0-or-later
//! QEMU's monitor, over which a guest is stopped, goes on, and is saved: lines of JSON, as QEMU's
//! docs/interop/qmp-spec.rst describes them.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// How long QEMU may take to answer. It answers between two turns of the guest's CPUs.
const PATIENCE: Duration = Duration::from_secs(600);

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
        Ok(Monitor { stream: BufReader::new(stream), greeted: false })
    }

    /// Has QEMU carry out a command, waits until it has, and returns its answer. The arguments are
    /// an object of JSON.
    ///
    /// # Errors
    /// Those of the stream; `Other` with QEMU's answer when it refuses.
    pub fn execute(&mut self, command: &str, arguments: &str) -> io::Result<String> {
        if !self.greeted {
            self.ask("qmp_capabilities", "{}")?;
            self.greeted = true;
        }
        self.ask(command, arguments)
    }

    fn ask(&mut self, command: &str, arguments: &str) -> io::Result<String> {
        let request = format!("{{\"execute\": \"{command}\", \"arguments\": {arguments}}}\n");
        self.stream.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            // Between answers QEMU greets and tells of events.
            if line.starts_with("{\"return\"") {
                return Ok(line);
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
        monitor.execute("stop", "{}").unwrap();
        let refused = monitor.execute("sotp", "{}").unwrap_err().to_string();
        assert!(refused.contains("no such command"), "{refused}");
        let mut asked = String::new();
        let mut lines = BufReader::new(there);
        for _ in 0..3 {
            lines.read_line(&mut asked).unwrap();
        }
        let lines: Vec<&str> = asked.lines().collect();
        assert_eq!(lines[0], "{\"execute\": \"qmp_capabilities\", \"arguments\": {}}");
        assert_eq!(lines[1], "{\"execute\": \"stop\", \"arguments\": {}}");
        drop(monitor);
    }

    #[test]
    fn a_qemu_that_is_gone_is_an_error() {
        let (here, there) = UnixStream::pair().unwrap();
        drop(there);
        assert!(Monitor::new(here).unwrap().execute("stop", "{}").is_err());
    }
}
