// SPDX-License-Identifier: GPL-2.0-or-later
//! The reasons why perch schedules nothing, or no longer.

use std::time::Duration;

use crate::exit::Ended;
use crate::kernel::UnableError;
use crate::refusal::RefusedError;
use crate::stats::StatisticsError;
use perch_plan::settings::SettingsError;

/// The reason why `perch run` or `perch stats` failed, in words for the person who asked.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// The configuration makes no sense: what and where.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// This kernel, this machine or this user cannot run it: what is missing and what to do.
    #[error(transparent)]
    Unable(#[from] UnableError),
    /// The kernel refused a program.
    #[error(transparent)]
    Refused(#[from] RefusedError),
    /// The kernel took the program and later let it go.
    #[error("{0}")]
    Ended(Ended),
    /// The program does its work no longer, and the kernel had not noticed.
    #[error(
        "the timer of perch's BPF program, which looks at every queue, has not come for {} s: perch \
         unloaded itself; the kernel is back on its own scheduler",
        .0.as_secs()
    )]
    Still(Duration),
    /// Statistics were asked for, and no scheduler gives any.
    #[error(transparent)]
    NoStatistics(#[from] StatisticsError),
}

impl SchedulerError {
    /// True if the user's input is wrong; false if the input is right and the work could not be
    /// done.
    pub fn is_input(&self) -> bool {
        matches!(self, SchedulerError::Settings(_))
    }

    /// True if it would fail again for as long as this kernel runs and this user asks: waiting does not
    /// help.
    pub fn lasts(&self) -> bool {
        match self {
            SchedulerError::Unable(error) => error.lasts(),
            SchedulerError::Refused(error) => !matches!(error, RefusedError::Attach { .. }),
            _ => false,
        }
    }

    /// True if somebody unloaded the scheduler by hand, who would not want it back.
    pub fn is_by_hand(&self) -> bool {
        matches!(self, SchedulerError::Ended(ended) if ended.is_by_hand())
    }
}
