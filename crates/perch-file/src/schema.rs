// SPDX-License-Identifier: GPL-2.0-or-later
//! JSON Schemas of results.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// Returns the schema of what this version writes. Readers of results take more: files of older
/// versions, which lack keys, and keys that they do not know.
pub fn result_schema<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_string(), title.into());
    schema
}
