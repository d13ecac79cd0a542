// SPDX-License-Identifier: GPL-2.0-or-later
//! Checks of the books.

/// Leaves with an error that says what does not hold.
#[macro_export]
macro_rules! hold {
    ($what:expr, $($why:tt)+) => {
        if !$what {
            return Err(format!($($why)+));
        }
    };
}
