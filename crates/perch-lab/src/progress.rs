// SPDX-License-Identifier: GPL-2.0-or-later
//! What is being done, for somebody who waits.

/// Who is told. The command shows it on a terminal; a test or a script wants [`Silent`].
pub trait Progress: Send + Sync {
    /// `message` is being done; `fraction` of it, from 0 to 1, is done where that is known.
    ///
    /// Called often while something is fetched: it must return at once.
    fn step(&self, message: &str, fraction: Option<f64>);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _message: &str, _fraction: Option<f64>) {}
}
