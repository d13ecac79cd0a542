// SPDX-License-Identifier: GPL-2.0-or-later
//! What the checks of the books say of a state that they refuse.

use std::fmt;

/// A statement about the books that does not hold, and where. It tells a developer of a bug, and no
/// program acts on it, so it is words and no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    #[doc(hidden)]
    pub fn new(why: impl Into<String>) -> Violation {
        Violation(why.into())
    }

    /// Says where it was found.
    pub fn within(self, place: impl fmt::Display) -> Violation {
        Violation(format!("{place}: {self}"))
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Violation {}

/// Returns from the calling function with a [`Violation`] unless `$what` holds. The rest of the
/// arguments is its text, as `format!` takes it.
#[macro_export]
macro_rules! hold {
    ($what:expr, $($why:tt)+) => {
        if !$what {
            return Err($crate::Violation::new(format!($($why)+)));
        }
    };
}
