// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduling classes, as `sched_setscheduler(2)` gives them.

use std::fmt;
use std::ops::RangeInclusive;

/// A task's scheduling class, with the task's priority in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    /// SCHED_OTHER: fair tasks share the time that real-time tasks leave, by nice level.
    #[default]
    Fair,
    /// SCHED_FIFO with this priority, 1 to 99, of which a higher one runs first. The task runs
    /// until it sleeps, yields, or a task of a higher priority comes.
    Fifo(u8),
    /// SCHED_RR with this priority, 1 to 99: the task runs as one of `Fifo` does, but gives way to
    /// tasks of its priority after 100 ms.
    Rr(u8),
}

/// Real-time priorities that a task may have.
pub const PRIORITIES: RangeInclusive<u8> = 1..=99;

/// The reason why there is no such class.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    /// The text names no class, or its priority is out of [`PRIORITIES`].
    #[error(
        "class={text}: expected fair, fifo:PRIORITY or rr:PRIORITY, with a real-time priority from \
         1 to 99"
    )]
    Unknown {
        /// The text.
        text: String,
    },
    /// The priority is out of [`PRIORITIES`].
    #[error("real-time priority {priority}: expected one from 1 to 99")]
    Priority {
        /// The priority.
        priority: u8,
    },
}

impl Class {
    /// The priority of a real-time task, 1 to 99; `None` for a fair task.
    #[inline]
    pub fn priority(self) -> Option<u8> {
        match self {
            Class::Fair => None,
            Class::Fifo(priority) | Class::Rr(priority) => Some(priority),
        }
    }

    /// Reads `fair`, `fifo:N` or `rr:N`.
    ///
    /// # Errors
    /// The text is something else, or the priority is out of [`PRIORITIES`].
    pub fn parse(text: &str) -> Result<Class, ClassError> {
        let priority = |text: &str| {
            let number = text.parse::<u8>().ok();
            number.filter(|priority| PRIORITIES.contains(priority))
        };
        let class = match text.split_once(':') {
            None if text == "fair" => Some(Class::Fair),
            Some(("fifo", rest)) => priority(rest).map(Class::Fifo),
            Some(("rr", rest)) => priority(rest).map(Class::Rr),
            _ => None,
        };
        class.ok_or_else(|| ClassError::Unknown { text: text.to_string() })
    }

    /// Refuses a priority out of [`PRIORITIES`].
    ///
    /// # Errors
    /// [`ClassError::Priority`].
    pub fn check(self) -> Result<(), ClassError> {
        match self.priority() {
            Some(priority) if !PRIORITIES.contains(&priority) => {
                Err(ClassError::Priority { priority })
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Class::Fair => f.write_str("fair"),
            Class::Fifo(priority) => write!(f, "fifo:{priority}"),
            Class::Rr(priority) => write!(f, "rr:{priority}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_as_they_are_written() {
        let classes = [Class::Fair, Class::Fifo(1), Class::Fifo(99), Class::Rr(50)];
        for class in classes {
            assert_eq!(Class::parse(&class.to_string()), Ok(class));
        }
        for text in ["", "fifo", "fifo:", "fifo:0", "rr:100", "rr:-1", "Fair", "rr:5:5", "dl:1"] {
            let why = Class::parse(text).expect_err(text).to_string();
            assert!(why.contains("expected fair, fifo:PRIORITY or rr:PRIORITY"), "{why}");
        }
    }
}
