// SPDX-License-Identifier: GPL-2.0-or-later
//! The macro with which the checks of the books refuse a state.

/// Returns from the calling function with an error unless `$what` holds. The rest of the arguments
/// is the error's text, as `format!` takes it.
#[macro_export]
macro_rules! hold {
    ($what:expr, $($why:tt)+) => {
        if !$what {
            return Err(format!($($why)+));
        }
    };
}
