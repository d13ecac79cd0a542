// SPDX-License-Identifier: GPL-2.0-or-later
//! The ways of results to stdout, and of words and failures to stderr.

use std::io::{ErrorKind, Write};

use perch_experiment::ExperimentError;
use perch_machine::MachineError;

/// The reason why the command ends early.
#[derive(Debug)]
pub struct Failure {
    /// The exit code: 1 when the work failed, 2 when the request makes no sense.
    pub code: u8,
    /// The message for the user.
    pub message: String,
}

impl Failure {
    /// A failure because the request makes no sense.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure {
            code: 2,
            message: message.into(),
        }
    }

    /// A failure of the work itself.
    pub fn run(message: impl Into<String>) -> Failure {
        Failure {
            code: 1,
            message: message.into(),
        }
    }
}

impl From<MachineError> for Failure {
    fn from(error: MachineError) -> Failure {
        Failure::input(error.to_string())
    }
}

impl From<ExperimentError> for Failure {
    fn from(error: ExperimentError) -> Failure {
        let code = if error.is_input() { 2 } else { 1 };
        Failure {
            code,
            message: error.to_string(),
        }
    }
}

/// Writes `text` to stdout. A reader that has seen enough (`| head`) is no failure.
pub fn emit(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::run(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
