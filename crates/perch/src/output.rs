// SPDX-License-Identifier: GPL-2.0-or-later
//! Where results, words and failures go.

use std::io::{ErrorKind, Write};

use perch_experiment::ExperimentError;
use perch_machine::MachineError;

/// Why the command ends early.
#[derive(Debug)]
pub struct Failure {
    /// 1: what was asked failed. 2: it makes no sense.
    pub code: u8,
    /// For the user.
    pub message: String,
}

impl Failure {
    /// What was asked makes no sense.
    pub fn input(message: impl Into<String>) -> Failure {
        Failure {
            code: 2,
            message: message.into(),
        }
    }

    /// What was asked failed.
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
