// SPDX-License-Identifier: GPL-2.0-or-later
//! The JSON Schema of a configuration file, made of the tables by which the file is read.

use schemars::{Schema, json_schema};
use serde_json::{Map, Value, json};

use super::table::{BAND, MODES, Most, PARTIAL, SETTINGS, Setting, Tuning};
use crate::interface::MAX_BANDS;
use crate::rule::{Draft, Key};
use crate::value::Slot;
use crate::{band, partial};

/// Returns the schema of a configuration file.
pub fn schema() -> Schema {
    let mut keys = Map::new();
    keys.insert(MODES.name.to_string(), json!({ "description": MODES.help, "type": "string" }));
    for setting in SETTINGS {
        keys.insert(setting.name.to_string(), setting.schema());
    }
    keys.insert(
        BAND.name.to_string(),
        json!({
            "description": BAND.help,
            "type": "array",
            "maxItems": MAX_BANDS,
            "items": band(),
        }),
    );
    keys.insert(
        PARTIAL.name.to_string(),
        json!({ "description": PARTIAL.help, "type": "array", "items": partial() }),
    );
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "configuration of perch run",
        "description": "The live scheduler's settings, as perch run --config takes them. All are optional.",
        "type": "object",
        "properties": keys,
        "additionalProperties": false,
    })
}

/// The schema of a rule of the real-time band.
fn band() -> Value {
    json!({
        "type": "object",
        "properties": properties(band::Draft::KEYS),
        "additionalProperties": false,
        "required": ["priority"],
        "anyOf": [
            { "required": ["comm"] },
            { "required": ["cgroup"] },
            { "required": ["nice"] },
        ],
        // Tasks of SCHED_FIFO take no turns.
        "not": {
            "required": ["policy", "slice_ms"],
            "properties": { "policy": { "const": "fifo" } },
        },
    })
}

/// The schema of a rule of the tasks that perch schedules.
fn partial() -> Value {
    json!({
        "type": "object",
        "properties": properties(partial::Draft::KEYS),
        "additionalProperties": false,
        "anyOf": [
            { "required": ["comm"] },
            { "required": ["cgroup"] },
            { "required": ["user"] },
        ],
    })
}

/// The schemas of a rule's keys.
fn properties<D: Draft>(keys: &[Key<D>]) -> Map<String, Value> {
    let keys = keys.iter().map(|key| {
        let mut schema = (key.schema)();
        let words = format!("{}: {}", key.help, key.range);
        schema.insert("description".to_string(), words.into());
        (key.name.to_string(), schema.to_value())
    });
    keys.collect()
}

impl Setting {
    fn schema(&self) -> Value {
        let unit = match self.unit {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        let mut schema = json!({ "description": format!("{}{unit}", self.help) });
        if self.is_switch() {
            schema["type"] = "boolean".into();
        } else {
            schema["type"] = "integer".into();
            schema["minimum"] = self.range.least.into();
            schema["maximum"] = self.most_of_all().into();
        }
        // A setting without a constant default has one that depends on the machine.
        match (self.slot)(&mut Tuning::default()) {
            Slot::Number(value) => schema["default"] = (*value).into(),
            Slot::Switch(value) => schema["default"] = (*value).into(),
            Slot::Maybe(_) => {}
        }
        schema
    }

    /// The highest number that there may be, whatever the other settings are.
    fn most_of_all(&self) -> u64 {
        match self.range.most {
            Most::Is(most) => most,
            Most::Setting(name, _) => {
                let other = SETTINGS.iter().find(|setting| setting.name == name);
                other.map_or(u64::MAX, Setting::most_of_all)
            }
        }
    }
}
