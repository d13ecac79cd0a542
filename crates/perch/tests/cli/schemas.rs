// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch schema`: the files that perch carries and the results that it writes are what the schemas
//! say, and misspelt keys are not.

mod results;
mod validator;

use std::path::{Path, PathBuf};

use perch_experiment::Experiment;
use perch_machine::Machine;
use perch_plan::Settings;
use perch_sweep::{Simulation, Sweep};
use serde_json::Value;

use crate::support::perch;
use validator::check;

/// The names that `perch schema` lists.
const FORMS: [&str; 19] = [
    "machine",
    "experiment",
    "sweep",
    "simulation",
    "configuration",
    "compare",
    "experiment-run",
    "raw",
    "diff",
    "simulate",
    "sweep-collect",
    "sweep-rank",
    "import",
    "replay",
    "teach",
    "advise",
    "doctor",
    "trial",
    "stats",
];

fn printed(arguments: &[&str]) -> String {
    let output = perch(arguments);
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {words}");
    String::from_utf8(output.stdout).unwrap()
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&printed(&["schema", name])).unwrap()
}

/// Every file of ours that ends in `.toml`, below a folder of the tree.
fn toml_below(folder: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
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

/// The blocks of a language in a page of the documentation.
fn blocks<'a>(page: &'a str, language: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!("```{language}\n");
    let blocks = page.split(&begin).skip(1).collect::<Vec<_>>().into_iter();
    blocks.map(|block| block.split_once("```").expect("a block ends").0)
}

/// The form of a file, its name, and what is in it.
type Carried = (&'static str, String, Value);

/// The form that a file of TOML has, by its keys.
fn form_of(value: &Value) -> &'static str {
    match value {
        _ if value.get("axes").is_some() => "sweep",
        _ if value.get("benchmark").is_some() => "experiment",
        _ => "machine",
    }
}

/// The files of the repository, and the examples of its documentation that are whole files.
fn carried() -> Vec<Carried> {
    let mut all = Vec::new();
    for folder in ["experiments", "crates/perch-machine/library"] {
        for path in toml_below(folder) {
            let value = read(&std::fs::read_to_string(&path).unwrap());
            all.push((form_of(&value), path.display().to_string(), value));
        }
    }
    let settings = include_str!("../../../perch-fuzz/seeds/settings/all.toml");
    all.push(("configuration", "all.toml".to_string(), read(settings)));
    let sweeps = include_str!("../../../../docs/sweeps.md");
    let machines = include_str!("../../../../docs/machines.md");
    for page in [sweeps, machines] {
        let values = blocks(page, "toml").map(read);
        all.extend(values.map(|value| (form_of(&value), "an example".to_string(), value)));
    }
    for block in blocks(sweeps, "json") {
        let value = serde_json::from_str(block).unwrap();
        all.push(("simulation", "an example".to_string(), value));
    }
    all
}

/// Returns whether the reader of a form takes what is in a file of it.
fn reads(form: &str, value: &Value) -> Result<(), String> {
    let toml = || {
        let value = toml::Value::try_from(value).expect("a table of TOML");
        toml::to_string(&value).expect("a table of TOML")
    };
    let said = |error: &dyn std::fmt::Display| error.to_string();
    match form {
        "machine" => Machine::from_toml_str(&toml(), "file").map(drop).map_err(|e| said(&e)),
        "sweep" => Sweep::from_toml(&toml(), "file").map(drop).map_err(|e| said(&e)),
        "configuration" => Settings::from_toml(&toml(), "file").map(drop).map_err(|e| said(&e)),
        "simulation" => {
            let read = Simulation::from_json(&value.to_string(), "file");
            read.map(drop).map_err(|e| said(&e))
        }
        "experiment" => {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let folder = root.join("experiments");
            // A path in a file is relative to where perch runs: here, the root of the repository.
            let text = toml().replace("\"experiments", &format!("\"{}", folder.display()));
            let beside = |name: &str| {
                let places = [folder.join(name), folder.join("predicted").join(name)];
                let place = places.iter().find(|path| path.exists());
                Ok(std::fs::read_to_string(place.expect("figures")).unwrap())
            };
            let read = Experiment::from_toml(&text, "file", &beside);
            read.map(drop).map_err(|e| said(&e))
        }
        other => panic!("no reader of {other}"),
    }
}

#[test]
fn the_list_names_every_schema() {
    let list = printed(&["schema"]);
    let names: Vec<&str> =
        (list.lines().skip(1)).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names, FORMS);
    for name in FORMS {
        assert_eq!(schema(name)["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
    let output = perch(&["schema", "machines"]);
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(words.contains("`machines`: expected one of machine, experiment"), "{words}");
}

#[test]
fn files_that_perch_carries_are_as_their_schemas_say() {
    let carried = carried();
    for (form, least) in
        [("machine", 12), ("experiment", 8), ("sweep", 2), ("simulation", 1), ("configuration", 1)]
    {
        let schema = schema(form);
        let files = carried.iter().filter(|(of, ..)| *of == form);
        let mut count = 0;
        for (_, path, value) in files {
            assert_eq!(check(&schema, value), None, "{path}");
            assert_eq!(reads(form, value), Ok(()), "{path}");
            count += 1;
        }
        assert!(count >= least, "{count} files of {form}");
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

/// A schema refuses a misspelt key where the reader does, and nowhere else: an arm of a sweep, for
/// one, may have any name.
#[test]
fn a_misspelt_key_in_any_table_is_refused_where_perch_refuses_it() {
    let forms = ["machine", "experiment", "sweep", "simulation", "configuration"];
    let schemas = forms.map(|form| (form, schema(form)));
    for (form, path, value) in carried() {
        let (_, schema) = schemas.iter().find(|(of, _)| *of == form).unwrap();
        let mut refused = 0;
        for wrong in with_a_wrong_key(&value) {
            let (schema, reader) = (check(schema, &wrong), reads(form, &wrong).err());
            assert_eq!(
                schema.is_some(),
                reader.is_some(),
                "{path}: {wrong}: {schema:?}, {reader:?}"
            );
            refused += usize::from(reader.is_some());
        }
        assert!(refused > 0, "{path}");
    }
}

/// Demands that the schema and the reader of a form both take these files, or both refuse them.
fn agree(form: &str, files: &[(String, bool)]) {
    let schema = schema(form);
    for (text, is_good) in files {
        let value = read(text);
        let reader = reads(form, &value);
        assert_eq!(reader.is_ok(), *is_good, "{text}: {reader:?}");
        let found = check(&schema, &value);
        assert_eq!(found.is_none(), *is_good, "{text}: {found:?}");
    }
}

#[test]
fn schema_and_reader_agree_about_values_of_sweeps() {
    let files = [
        ("[axes]\nworkload.pairs = [1, 2]", true),
        ("[axes]\n\"workload.pairs\" = [1, 2]\nworkload = [\"pipe\"]", true),
        ("[axes]\n\"hardware.wake_ns\" = { from = 1, to = 2.5 }", true),
        ("[axes]\nhardware.wake_ns = { from = 1, to = 8, scale = \"log\" }", true),
        ("[axes]\nhardware.wake_ns = { from = 1, to = 8, scale = \"exp\" }", false),
        ("[axes]\nhardware.wake_ns = { from = 1, upto = 8 }", false),
        ("[axes]\nhardware.wake_ns = 8", false),
        ("[axes]\nhardware.wake_ns = []", false),
        ("[axes]\narm = [\"off\", \"cluster=posted\"]", true),
        ("[axes]\narm = { a = 1 }", false),
        ("[axes]\nera = [6.5]", false),
        ("[axes]\nseed = { from = 1, to = 3, step = 1 }", true),
        ("[axes]\nseed = [-1]", false),
        ("[axes]\ncost.wake_ns = [1]", false),
        ("effort = \"normal\"", true),
        ("effort = \"some\"", false),
        ("effort = { warmup_ms = 1, measure_ms = 1 }", false),
        ("[design]\npoints = 2\naxes.hardware.wake_ns = [1, 2]", true),
        ("[design]\npoints = 0\naxes.hardware.wake_ns = [1, 2]", false),
        ("[design]\npoints = 2\naxes.arm = [\"off\"]", false),
    ];
    let files = files.map(|(lines, is_good)| {
        let text = format!("machine = \"kunpeng920\"\nworkload = \"pipe\"\n{lines}\n");
        (text, is_good)
    });
    agree("sweep", &files);
}

#[test]
fn schema_and_reader_agree_about_values_of_configurations() {
    let band = |lines: &str| format!("[[band]]\ncomm = \"a\"\n{lines}\n");
    let files = [
        (String::new(), true),
        ("groups = 0\ndetail = true\n".to_string(), true),
        ("slice_us = 99\n".to_string(), false),
        ("slice_us = 100.5\n".to_string(), false),
        ("detail = 1\n".to_string(), false),
        ("modes = 1\n".to_string(), false),
        (band("priority = 99"), true),
        (band("nice = 3"), false),
        (band("priority = 1\npolicy = \"rr\"\nslice_ms = 1"), true),
        (band("priority = 1\npolicy = \"fifo\"\nslice_ms = 1"), false),
        (band("priority = 1\npolicy = \"other\""), false),
        ("[[band]]\npriority = 1\n".to_string(), false),
        ("[band]\npriority = 1\ncomm = \"a\"\n".to_string(), false),
        (band("priority = 1").repeat(16), true),
        (band("priority = 1").repeat(17), false),
        ("[[partial]]\ncgroup = \"/web\"\nuser = 33\n".to_string(), true),
        ("[[partial]]\nuser = \"root\"\n".repeat(20), true),
        ("[[partial]]\n".to_string(), false),
        ("[[partial]]\nuser = -1\n".to_string(), false),
        ("[[partial]]\nnice = 3\n".to_string(), false),
    ];
    agree("configuration", &files);
}
