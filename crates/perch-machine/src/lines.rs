// SPDX-License-Identifier: GPL-2.0-or-later
//! The conversion of a byte's place in a text into the line that an error names.

/// The offsets at which the lines of a text begin.
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub fn new(text: &str) -> Lines {
        let after_newline = text.match_indices('\n').map(|(at, _)| at + 1);
        Lines(std::iter::once(0).chain(after_newline).collect())
    }

    /// Returns the line, from 1, of the byte at `at`.
    pub fn of(&self, at: usize) -> usize {
        self.0.partition_point(|&start| start <= at)
    }
}
