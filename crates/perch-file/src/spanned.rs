// SPDX-License-Identifier: GPL-2.0-or-later
//! A value of a TOML file with its place in it.

use std::borrow::Cow;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;

/// A value and where it stands, so that a refusal can name its line. It is toml's, with the one
/// thing that toml's lacks: the schema of the value is its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(transparent)]
pub struct Spanned<T>(toml::Spanned<T>);

impl<T> Spanned<T> {
    /// Returns where the value stands, in bytes of the text.
    pub fn span(&self) -> Range<usize> {
        self.0.span()
    }

    /// Returns the value.
    pub fn get_ref(&self) -> &T {
        self.0.get_ref()
    }

    /// Returns the value without its place.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: JsonSchema> JsonSchema for Spanned<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
