// SPDX-License-Identifier: GPL-2.0-or-later
//! A place in the tree where a rule is broken.

use std::fmt;

/// One broken rule. Complaints sort by file and line, which is the order they are printed in.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Complaint {
    /// Path from the root of the tree, with `/`.
    pub file: String,
    /// Line in that file, from 1.
    pub line: usize,
    /// The rule that is broken, and the way to mend it.
    pub what: String,
}

impl Complaint {
    /// A complaint about `line` of `file`.
    pub fn new(file: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.what)
    }
}
