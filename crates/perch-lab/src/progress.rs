// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages about the work in progress, for a person who waits.

/// The receiver of messages. The command shows them on a terminal; a test or a script wants
/// [`Silent`].
pub trait Progress: Send + Sync {
    /// Takes a message: the work that it names is under way, and `fraction` of it, from 0 to 1, is
    /// done where that is known.
    ///
    /// The store calls this often while it fetches something, so it must return at once.
    fn step(&self, message: &str, fraction: Option<f64>);
}

/// Drops every message.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _message: &str, _fraction: Option<f64>) {}
}
