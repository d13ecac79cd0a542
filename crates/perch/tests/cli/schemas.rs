// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch schema`: the files that perch carries and the results that it writes are what the schemas
//! say, and misspelt keys are not.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::support::perch;

/// The names that `perch schema` lists.
const FORMS: [&str; 4] = ["machine", "experiment", "compare", "experiment-run"];

fn printed(arguments: &[&str]) -> String {
    let output = perch(arguments);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {words}");
    String::from_utf8(output.stdout).unwrap()
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&printed(&["schema", name])).unwrap()
}

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
            "anyOf" => wrong(of.as_array().unwrap().iter().any(holds)),
            "oneOf" => wrong(
                of.as_array()
                    .unwrap()
                    .iter()
                    .filter(|one| holds(one))
                    .count()
                    == 1,
            ),
            "minimum" => wrong(number.is_none_or(|n| n >= of.as_f64().unwrap())),
            "maximum" => wrong(number.is_none_or(|n| n <= of.as_f64().unwrap())),
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
            "additionalProperties" => value.as_object().and_then(|map| {
                let named = |key: &str| {
                    keywords
                        .get("properties")
                        .is_some_and(|p| p.get(key).is_some())
                };
                let mut others = map.iter().filter(|(key, _)| !named(key));
                others
                    .find_map(|(key, value)| contradiction(root, of, value, &format!("{at}.{key}")))
            }),
            other => panic!("{at}: a schema has the keyword {other}"),
        }
    })
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

fn check(schema: &Value, value: &Value) -> Option<String> {
    contradiction(schema, schema, value, "")
}

/// Every file of ours that ends in `.toml`, below a folder of the tree.
fn toml_below(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder);
    let mut found = Vec::new();
    let mut folders = vec![root];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => folders.push(path),
                Some(ending) if ending == "toml" => found.push(path),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

fn read(text: &str) -> Value {
    toml::from_str(text).unwrap()
}

/// The form of a file, and what is in it.
fn carried() -> Vec<(&'static str, PathBuf, Value)> {
    let files = ["experiments", "crates/perch-machine/library"].map(toml_below);
    let files = files.into_iter().flatten().filter_map(|path| {
        let value = read(&std::fs::read_to_string(&path).unwrap());
        if value.get("axes").is_some() {
            // A sweep, of which there is no schema.
            return None;
        }
        let form = match value.get("benchmark") {
            Some(_) => "experiment",
            None => "machine",
        };
        Some((form, path, value))
    });
    files.collect()
}

#[test]
fn the_list_names_every_schema() {
    let list = printed(&["schema"]);
    let names: Vec<&str> = (list.lines().skip(1))
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(names, FORMS);
    for name in FORMS {
        assert_eq!(
            schema(name)["$schema"],
            "https://json-schema.org/draft/2020-12/schema"
        );
    }
    let output = perch(&["schema", "machines"]);
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        words.contains("`machines`: expected one of machine, experiment"),
        "{words}"
    );
}

#[test]
fn files_that_perch_carries_are_as_their_schemas_say() {
    let carried = carried();
    for form in ["machine", "experiment"] {
        let schema = schema(form);
        let files = carried.iter().filter(|(of, ..)| *of == form);
        let mut count = 0;
        for (_, path, value) in files {
            assert_eq!(check(&schema, value), None, "{}", path.display());
            count += 1;
        }
        assert!(count >= 8, "{count} files of {form}");
    }
}

/// A machine that perch writes is in the explicit form, which no file of the library has.
#[test]
fn machines_that_perch_writes_are_as_their_schema_says() {
    let schema = schema("machine");
    for machine in ["kunpeng920", "juno", "xeon240", "x5570"] {
        let text = printed(&["machine", "show", "--toml", machine]);
        assert_eq!(check(&schema, &read(&text)), None, "{machine}");
    }
}

/// Puts one more key into each table of a value, one table at a time.
fn with_a_wrong_key(value: &Value) -> Vec<Value> {
    let inside = |part: &Value, put: &dyn Fn(Value) -> Value| {
        let wrong = with_a_wrong_key(part).into_iter();
        wrong.map(put).collect::<Vec<Value>>()
    };
    match value {
        Value::Object(map) => {
            let with = |key: &str, value: Value| {
                let mut map = map.clone();
                map.insert(key.to_string(), value);
                Value::Object(map)
            };
            let mut all = vec![with("misspelt", Value::Bool(true))];
            for (key, part) in map {
                all.extend(inside(part, &|wrong| with(key, wrong)));
            }
            all
        }
        Value::Array(list) => {
            let parts = list.iter().enumerate();
            let all = parts.flat_map(|(at, part)| {
                inside(part, &|wrong| {
                    let mut list = list.clone();
                    list[at] = wrong;
                    Value::Array(list)
                })
            });
            all.collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn a_misspelt_key_in_any_table_is_refused() {
    let schemas = ["machine", "experiment"].map(|form| (form, schema(form)));
    for (form, path, value) in carried() {
        let (_, schema) = schemas.iter().find(|(of, _)| *of == form).unwrap();
        for wrong in with_a_wrong_key(&value) {
            assert!(
                check(schema, &wrong).is_some(),
                "{}: {wrong}",
                path.display()
            );
        }
    }
}

/// Removes one key of the outermost object, one at a time.
fn without_a_key(value: &Value) -> Vec<(String, Value)> {
    let map = value.as_object().unwrap();
    let without = |key: &String| {
        let rest = map.iter().filter(|(other, _)| *other != key);
        let rest: Map<String, Value> = rest.map(|(k, v)| (k.clone(), v.clone())).collect();
        (key.clone(), Value::Object(rest))
    };
    map.keys().map(without).collect()
}

#[test]
fn results_are_as_their_schemas_say() {
    let scan = |row| {
        let run =
            "experiment run cluster-scan --repetitions 2 --format json --arms perch --quiet --only";
        let arguments: Vec<&str> = run.split(' ').chain([row]).collect();
        printed(&arguments)
    };
    let statistics = "experiment run capacity-wakeup --repetitions 3 --format json --quiet --only \
                      sysbench/juno/mean";
    let short = [
        "--warmup",
        "2ms",
        "--measure",
        "4ms",
        "--quiet",
        "--format",
        "json",
    ];
    let arms = ["--arm", "a:cluster=off", "--arm", "b:cluster=perch"];
    let compare = |further: &[&str]| printed(&[&["compare"], further, &arms, &short].concat());
    let several = "experiment run cluster-scan cluster-scan --repetitions 1 --format json --quiet \
                   --only */node0/n=1";
    for (form, result) in [
        ("experiment-run", scan("tbench/node0/n=1")),
        ("experiment-run", printed(&words(statistics))),
        ("experiment-run", printed(&words(several))),
        (
            "compare",
            compare(&["-m", "kunpeng920", "-w", "tbench:n=4", "--statistics"]),
        ),
        // One repetition and nothing done: many figures are null.
        (
            "compare",
            compare(&[
                "-m",
                "rt480",
                "-w",
                "ffmpeg:instances=1",
                "--repetitions",
                "1",
            ]),
        ),
    ] {
        let schema = schema(form);
        let value: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(check(&schema, &value), None, "{form}");
        if value.is_object() {
            for (key, wrong) in without_a_key(&value) {
                // Keys that are left out where they are empty may be missing.
                let is_left_out = [
                    "iterations",
                    "latency",
                    "cpus",
                    "window",
                    "loads",
                    "fits",
                    "machine_toml",
                    "machines_toml",
                    "chosen",
                    "contention",
                ];
                let is_refused = check(&schema, &wrong).is_some();
                assert_eq!(
                    is_refused,
                    !is_left_out.contains(&key.as_str()),
                    "{form}: {key}"
                );
            }
        }
    }
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}
