// SPDX-License-Identifier: GPL-2.0-or-later
//! Conversion of numbers in JSON.

use serde::{Deserialize, Deserializer};

/// Reads null as NaN: JSON writes null for a value that is not a number, such as a change from 0.
pub(crate) fn null_is_nan<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or(f64::NAN))
}

/// Reads the nulls in a list as NaN.
pub(crate) fn nulls_are_nan<'a, D: Deserializer<'a>>(from: D) -> Result<Vec<f64>, D::Error> {
    let values = Vec::<Option<f64>>::deserialize(from)?;
    let values = values.into_iter();
    Ok(values.map(|value| value.unwrap_or(f64::NAN)).collect())
}
