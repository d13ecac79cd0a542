// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks a running scheduler for its statistics: the side of `perch stats`.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Report;
use crate::error::SchedulerError;

/// A scheduler that is alive answers within milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to a scheduler.
#[derive(Debug)]
pub struct Client {
    reader: BufReader<UnixStream>,
}

#[derive(Deserialize)]
struct Response {
    errno: i32,
    #[serde(default)]
    args: Answer,
}

#[derive(Default, Deserialize)]
struct Answer {
    #[serde(default)]
    resp: Value,
}

impl Client {
    /// Connects to the scheduler that answers at `path`.
    ///
    /// # Errors
    /// [`SchedulerError::NoStatistics`] when none does, with what to do.
    pub fn connect(path: &Path) -> Result<Client, SchedulerError> {
        let none = |message: String| SchedulerError::NoStatistics(message);
        let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => none(format!(
                "no scheduler gives statistics at {}: start one with sudo perch run",
                path.display()
            )),
            ErrorKind::PermissionDenied => none(format!(
                "{} may not be read by this user: sudo perch stats",
                path.display()
            )),
            _ => none(format!("cannot connect to {}: {error}", path.display())),
        })?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .map_err(|error| none(error.to_string()))?;
        Ok(Client {
            reader: BufReader::new(stream),
        })
    }

    /// The statistics now.
    ///
    /// # Errors
    /// [`SchedulerError::NoStatistics`] when the scheduler has gone or is another one than perch.
    pub fn report(&mut self) -> Result<Report, SchedulerError> {
        let none = |message: String| SchedulerError::NoStatistics(message);
        let gone = |error: std::io::Error| none(format!("the scheduler does not answer: {error}"));
        let request = b"{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n";
        self.reader.get_mut().write_all(request).map_err(gone)?;
        let mut line = String::new();
        if self.reader.read_line(&mut line).map_err(gone)? == 0 {
            return Err(none("the scheduler has ended".to_string()));
        }
        let other =
            || none("another scheduler than perch is loaded, and answers otherwise".to_string());
        let response: Response = serde_json::from_str(&line).map_err(|_| other())?;
        if response.errno != 0 {
            let message = format!("the scheduler refused to answer: {}", response.args.resp);
            return Err(none(message));
        }
        serde_json::from_value(response.args.resp).map_err(|_| other())
    }
}
