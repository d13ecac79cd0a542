// SPDX-License-Identifier: GPL-2.0-or-later
//! Numbers in JSON.

use serde::{Deserialize, Deserializer};

/// JSON has null for what is no number, such as a change from 0.
pub(crate) fn null_is_nan<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}
