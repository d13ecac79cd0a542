// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch schema`: the files that perch carries and the results that it writes are what the schemas
//! say, and misspelt keys are not.

mod results;
mod validator;

use std::path::{Path, PathBuf};

use perch_experiment::{Experiment, Simulation, Sweep};
use perch_machine::Machine;
use perch_plan::Settings;
use serde_json::Value;

use crate::support::{json, printed, refused};
use validator::check;

/// The names that `perch schema` lists.
const FORMS: &str = "machine experiment sweep simulation configuration compare experiment-run diff \
                     simulate sweep-collect sweep-rank import replay teach advise doctor trial stats";

fn schema(name: &str) -> Value {
    json(&format!("schema {name}"))
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
    let list = printed("schema");
    let names: Vec<&str> =
        (list.lines().skip(1)).map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(names.join(" "), FORMS);
    for name in names {
        assert_eq!(schema(name)["$schema"], "https://json-schema.org/draft/2020-12/schema");
    }
    refused("schema machines", &["`machines`: expected one of machine, experiment"]);
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
        let text = printed(&format!("machine show --toml {machine}"));
        let value = read(&text);
        assert_eq!(check(&schema, &value), None, "{machine}");
        assert_eq!(reads("machine", &value), Ok(()), "{machine}");
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

/// Files of which the schema and the reader take the good ones, and refuse the others; ` ; ` is the
/// end of a line.
const SWEEPS: &str = r#"
good [axes] ; workload.pairs = [1, 2]
good [axes] ; "workload.pairs" = [1, 2] ; workload = ["pipe"]
good [axes] ; "hardware.wake_ns" = { from = 1, to = 2.5 }
good [axes] ; hardware.wake_ns = { from = 1, to = 8, scale = "log" }
bad [axes] ; hardware.wake_ns = { from = 1, to = 8, scale = "exp" }
bad [axes] ; hardware.wake_ns = { from = 1, upto = 8 }
bad [axes] ; hardware.wake_ns = 8
bad [axes] ; hardware.wake_ns = []
good [axes] ; arm = ["off", "cluster=posted"]
bad [axes] ; arm = { a = 1 }
bad [axes] ; era = [6.5]
good [axes] ; seed = { from = 1, to = 3, step = 1 }
bad [axes] ; seed = [-1]
bad [axes] ; cost.wake_ns = [1]
good effort = "normal"
bad effort = "some"
bad effort = { warmup_ms = 1, measure_ms = 1 }
good [design] ; points = 2 ; axes.hardware.wake_ns = [1, 2]
bad [design] ; points = 0 ; axes.hardware.wake_ns = [1, 2]
bad [design] ; points = 2 ; axes.arm = ["off"]
"#;
const CONFIGURATIONS: &str = r#"
good groups = 0 ; detail = true
bad slice_us = 99
bad slice_us = 100.5
bad detail = 1
bad modes = 1
good [[band]] ; comm = "a" ; priority = 99
bad [[band]] ; comm = "a" ; nice = 3
good [[band]] ; comm = "a" ; priority = 1 ; policy = "rr" ; slice_ms = 1
bad [[band]] ; comm = "a" ; priority = 1 ; policy = "fifo" ; slice_ms = 1
bad [[band]] ; comm = "a" ; priority = 1 ; policy = "other"
bad [[band]] ; priority = 1
bad [band] ; priority = 1 ; comm = "a"
good [[partial]] ; cgroup = "/web" ; user = 33
bad [[partial]]
bad [[partial]] ; user = -1
bad [[partial]] ; nice = 3
"#;

#[test]
fn schema_and_reader_agree_about_values() {
    let begin = "machine = \"kunpeng920\"\nworkload = \"pipe\"\n";
    for (form, begin, rows) in [("sweep", begin, SWEEPS), ("configuration", "", CONFIGURATIONS)] {
        let schema = schema(form);
        let agree = |text: &str, is_good: bool| {
            let value = read(text);
            let reader = reads(form, &value);
            assert_eq!(reader.is_ok(), is_good, "{text}: {reader:?}");
            let found = check(&schema, &value);
            assert_eq!(found.is_none(), is_good, "{text}: {found:?}");
        };
        for row in rows.lines().skip(1) {
            let (kind, text) = row.split_once(' ').unwrap();
            agree(&format!("{begin}{}\n", text.replace(" ; ", "\n")), kind == "good");
        }
        if form == "configuration" {
            let band = "[[band]]\ncomm = \"a\"\npriority = 1\n";
            let others = [("", true), (&*band.repeat(16), true), (&*band.repeat(17), false)];
            others.into_iter().for_each(|(text, is_good)| agree(text, is_good));
            agree(&"[[partial]]\nuser = \"root\"\n".repeat(20), true);
        }
    }
}
