// SPDX-License-Identifier: GPL-2.0-or-later
//! As much of JSON Schema as our schemas have.

use serde_json::Value;

/// Looks for the first contradiction between a value and a schema: its place and the keyword.
///
/// The crates that do all of JSON Schema bring fifty others along. This one knows the keywords that
/// our schemas have, and panics at any other, so that none is passed over.
fn contradiction(root: &Value, schema: &Value, value: &Value, at: &str) -> Option<String> {
    let Some(keywords) = schema.as_object() else {
        return (schema == &Value::Bool(false)).then(|| format!("{at}: nothing may be here"));
    };
    keywords.iter().find_map(|(keyword, of)| {
        let holds = |schema: &Value| contradiction(root, schema, value, at).is_none();
        let wrong = |is_right: bool| (!is_right).then(|| format!("{at}: {keyword} {of}"));
        let number = value.as_f64();
        let length = value.as_array().map(Vec::len);
        match keyword.as_str() {
            // A pattern stands beside the type that matters here, and its reader has tests.
            "$schema" | "$defs" | "title" | "description" | "default" | "format" | "pattern" => {
                None
            }
            "$ref" => {
                let path = of.as_str().unwrap().strip_prefix('#').unwrap();
                contradiction(root, root.pointer(path).unwrap(), value, at)
            }
            "type" => wrong(match of {
                Value::Array(types) => types.iter().any(|of| has_type(value, of)),
                of => has_type(value, of),
            }),
            "const" => wrong(value == of),
            "enum" => wrong(of.as_array().unwrap().contains(value)),
            "not" => wrong(!holds(of)),
            "anyOf" => wrong(of.as_array().unwrap().iter().any(holds)),
            "oneOf" => wrong(of.as_array().unwrap().iter().filter(|one| holds(one)).count() == 1),
            "minimum" => wrong(number.is_none_or(|n| n >= of.as_f64().unwrap())),
            "maximum" => wrong(number.is_none_or(|n| n <= of.as_f64().unwrap())),
            "minLength" => wrong(
                value
                    .as_str()
                    .is_none_or(|text| text.chars().count() as u64 >= of.as_u64().unwrap()),
            ),
            "minItems" => wrong(length.is_none_or(|n| n as u64 >= of.as_u64().unwrap())),
            "maxItems" => wrong(length.is_none_or(|n| n as u64 <= of.as_u64().unwrap())),
            "items" => value.as_array().and_then(|all| {
                let mut all = all.iter().enumerate();
                all.find_map(|(n, one)| contradiction(root, of, one, &format!("{at}[{n}]")))
            }),
            "required" => wrong(value.as_object().is_none_or(|map| {
                let mut keys = of.as_array().unwrap().iter();
                keys.all(|key| map.contains_key(key.as_str().unwrap()))
            })),
            "properties" => value.as_object().and_then(|map| {
                map.iter().find_map(|(key, value)| {
                    contradiction(root, of.get(key)?, value, &format!("{at}.{key}"))
                })
            }),
            "patternProperties" => value.as_object().and_then(|map| {
                let mut patterns = of.as_object().unwrap().iter();
                patterns.find_map(|(pattern, of)| {
                    let mut keys = map.iter().filter(|(key, _)| begins(key, pattern));
                    keys.find_map(|(key, value)| {
                        contradiction(root, of, value, &format!("{at}.{key}"))
                    })
                })
            }),
            "additionalProperties" => value.as_object().and_then(|map| {
                let of_keyword = |name: &str| keywords.get(name).and_then(Value::as_object);
                let named = |key: &str| {
                    of_keyword("properties").is_some_and(|known| known.contains_key(key))
                        || of_keyword("patternProperties")
                            .is_some_and(|known| known.keys().any(|one| begins(key, one)))
                };
                let mut others = map.iter().filter(|(key, _)| !named(key));
                others
                    .find_map(|(key, value)| contradiction(root, of, value, &format!("{at}.{key}")))
            }),
            other => panic!("{at}: a schema has the keyword {other}"),
        }
    })
}

/// Returns whether a key matches a pattern, of which our schemas have one form: a word that keys begin
/// with, and a dot.
fn begins(key: &str, pattern: &str) -> bool {
    let word = pattern.strip_prefix('^').and_then(|p| p.strip_suffix("\\."));
    let word = word.expect("a pattern that the tests know");
    assert!(word.chars().all(char::is_alphanumeric), "{pattern}");
    key.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'))
}

fn has_type(value: &Value, of: &Value) -> bool {
    match of.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        other => panic!("a schema has the type {other}"),
    }
}

/// Returns the first place where a value contradicts a schema, and why.
pub fn check(schema: &Value, value: &Value) -> Option<String> {
    contradiction(schema, schema, value, "")
}
