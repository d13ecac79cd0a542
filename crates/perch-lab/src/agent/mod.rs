// SPDX-License-Identifier: GPL-2.0-or-later
//! The agent: perch itself inside the guest, which starts programs and moves files as the host
//! asks over a virtio-serial port.

pub mod frame;
mod scheduled;
mod serve;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

pub use scheduled::{FAILED, Scheduled};
pub use serve::serve;

/// Serves the host on the port `port`, until the host says that it is done. `job` is a file with
/// one [`frame::Request::Start`] in it: the agent runs that program first and says nothing of it
/// until it has ended. A message sent meanwhile would arrive at a moment that the host decides, and
/// a deterministic guest's run would no longer be the same each time.
///
/// # Errors
/// Those of the port, in words that name it.
pub fn run(port: &Path, job: Option<&Path>) -> io::Result<()> {
    let name = |path: &Path, error: io::Error| {
        io::Error::new(error.kind(), format!("{}: {error}", path.display()))
    };
    let opened = OpenOptions::new().read(true).write(true).open(port);
    let input = opened.map_err(|error| name(port, error))?;
    let output = input.try_clone().map_err(|error| name(port, error))?;
    let job = match job {
        None => None,
        Some(path) => {
            let mut file = File::open(path).map_err(|error| name(path, error))?;
            frame::receive(&mut file).map_err(|error| name(path, error))?
        }
    };
    serve(input, output, job).map_err(|error| name(port, error))
}
