// SPDX-License-Identifier: GPL-2.0-or-later
//! A description of the fields of a [`Report`], for tools that know nothing of perch: the answer to the
//! request `stats_meta`, made of the report's JSON Schema.

use schemars::schema_for;
use serde_json::{Map, Value, json};

use super::Report;
use perch_plan::interface::Event;

/// The structures of a report with what their names begin with for scx_stats' converter to OpenMetrics,
/// and the label that tells several of one kind apart.
const STRUCTURES: [(&str, &str, Option<&str>); 5] = [
    ("Report", "perch_", None),
    ("Decisions", "perch_", Some("reason")),
    ("Cache", "perch_llc_", Some("llc")),
    ("Waits", "perch_waits_", Some("reason")),
    ("GroupWaits", "perch_group_waits_", Some("cgroup")),
];

/// The name of the structure that a schema refers to.
fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/$defs/")
}

/// The type of a number or a text.
fn datum(schema: &Value) -> &'static str {
    match schema["type"].as_str() {
        Some("string") => "string",
        _ if schema["format"] == "int64" => "i64",
        _ => "u64",
    }
}

/// A field as scx_stats describes it.
fn field(schema: &Value) -> Value {
    let mut field = match (referred(&schema["additionalProperties"]), schema["type"].as_str()) {
        (Some(of), _) => json!({ "dict": { "key": "string", "datum": { "struct": of } } }),
        (None, Some("array")) => json!({ "array": datum(&schema["items"]) }),
        (None, _) => json!({ "datum": datum(schema) }),
    };
    field["desc"] = schema["description"].clone();
    field
}

/// The structures by name.
pub(super) fn meta() -> Value {
    let report = schema_for!(Report).to_value();
    let structures = STRUCTURES.map(|(name, prefix, label)| {
        let schema = if name == "Report" { &report } else { &report["$defs"][name] };
        let all = schema["properties"].as_object().into_iter().flatten();
        let mut fields: Map<String, Value> =
            all.map(|(name, schema)| (name.clone(), field(schema))).collect();
        let mut user = json!({ "_om_prefix": prefix });
        let mut about = json!({ "name": name, "desc": schema["description"] });
        match label {
            Some(label) => user["_om_label"] = label.into(),
            None => {
                about["top"] = "true".into();
                let events = Event::ALL.iter();
                fields.extend(events.map(|event| {
                    (event.name().to_string(), json!({ "datum": "u64", "desc": event.help() }))
                }));
            }
        }
        about["user"] = user;
        about["fields"] = fields.into();
        (name.to_string(), about)
    });
    Value::Object(structures.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_of_a_report_is_described() {
        let report = serde_json::to_value(super::super::tests::sample()).unwrap();
        let meta = meta();
        let (report, described) = (report.as_object().unwrap(), &meta["Report"]["fields"]);
        assert!(report.keys().eq(described.as_object().unwrap().keys()), "{described:#}");
        for (name, value) in report {
            let field = &described[name];
            assert!(field["desc"].is_string(), "{name}");
            let datum = field["datum"].as_str();
            assert_eq!(value.is_object(), field["dict"]["datum"]["struct"].is_string(), "{name}");
            assert_eq!(value.is_string(), datum == Some("string"), "{name}");
        }
        let signed = described.as_object().unwrap().iter().filter(|(_, f)| f["datum"] == "i64");
        let signed: Vec<_> = signed.map(|(name, _)| name.as_str()).collect();
        assert_eq!(signed, ["overload_lowest", "overload_sum"]);
        let waits = &meta["GroupWaits"]["fields"];
        assert_eq!(
            (&waits["buckets"]["array"], &waits["limited"]["datum"]),
            (&"u64".into(), &"u64".into())
        );
    }
}
