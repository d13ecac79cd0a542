// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks a running scheduler for its statistics: the side of `perch stats`.

use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::Report;

/// The reason why no scheduler gives statistics.
#[derive(Debug, thiserror::Error)]
pub enum StatisticsError {
    /// No scheduler listens there.
    #[error("no scheduler gives statistics at {}: start one with sudo perch run", .0.display())]
    NoScheduler(PathBuf),
    /// The user may not connect to it.
    #[error("{} may not be read by this user: sudo perch stats", .0.display())]
    NoRights(PathBuf),
    /// The system does not connect.
    #[error("cannot connect to {}: {source}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The system does not bound how long an answer may take.
    #[error("{0}")]
    Patience(#[source] io::Error),
    /// The connection broke, or nothing came for too long.
    #[error("the scheduler does not answer: {0}")]
    Silent(#[source] io::Error),
    /// The scheduler was unloaded.
    #[error("the scheduler has ended")]
    Ended,
    /// The answer is not a report of perch's.
    #[error("another scheduler than perch is loaded, and answers otherwise")]
    Foreign(#[source] serde_json::Error),
    /// The scheduler does not know the request.
    #[error("the scheduler refused to answer: {0}")]
    Refused(Value),
}

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
    /// [`StatisticsError`] when none does, with what to do.
    pub fn connect(path: &Path) -> Result<Client, StatisticsError> {
        let stream = UnixStream::connect(path).map_err(|source| {
            let path = path.to_path_buf();
            match source.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                    StatisticsError::NoScheduler(path)
                }
                ErrorKind::PermissionDenied => StatisticsError::NoRights(path),
                _ => StatisticsError::Connect { path, source },
            }
        })?;
        stream
            .set_read_timeout(Some(PATIENCE))
            .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
            .map_err(StatisticsError::Patience)?;
        Ok(Client { reader: BufReader::new(stream) })
    }

    /// The statistics now.
    ///
    /// # Errors
    /// [`StatisticsError`] when the scheduler has gone or is another one than perch.
    pub fn report(&mut self) -> Result<Report, StatisticsError> {
        let request = b"{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n";
        let sent = self.reader.get_mut().write_all(request);
        sent.map_err(StatisticsError::Silent)?;
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        if read.map_err(StatisticsError::Silent)? == 0 {
            return Err(StatisticsError::Ended);
        }
        let response: Response = serde_json::from_str(&line).map_err(StatisticsError::Foreign)?;
        if response.errno != 0 {
            return Err(StatisticsError::Refused(response.args.resp));
        }
        serde_json::from_value(response.args.resp).map_err(StatisticsError::Foreign)
    }
}
