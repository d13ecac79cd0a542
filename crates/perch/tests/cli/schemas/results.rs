// SPDX-License-Identifier: GPL-2.0-or-later
//! The commands print what their schemas say.

use std::fs;

use perch_import::{Options, import_text};
use perch_scheduler::stats::Source;
use serde_json::{Map, Value};

use super::schema;
use super::validator::check;
use crate::recordings::{LOAD, put, recording, simulated};
use crate::support::{directory, file, json, printed, told};

/// Keys that are left out where they are empty.
const LEFT_OUT: [(&str, &str); 11] = [
    ("experiment-run", "iterations"),
    ("experiment-run", "loads"),
    ("experiment-run", "fits"),
    ("experiment-run", "machines_toml"),
    ("compare", "latency"),
    ("compare", "cpus"),
    ("compare", "window"),
    ("compare", "machine_toml"),
    ("compare", "chosen"),
    ("compare", "contention"),
    ("replay", "decisions"),
];

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

/// Demands that a result is what the schema of its form says, and would not be without one of its keys.
fn holds(form: &str, value: &Value) {
    let schema = schema(form);
    assert_eq!(check(&schema, value), None, "{form}");
    if !value.is_object() {
        return;
    }
    for (key, wrong) in without_a_key(value) {
        let may_be_missing = match form {
            // The events that a scheduler counts stand beside its other keys.
            "stats" => {
                value[&key].is_u64()
                    && !schema["properties"].as_object().unwrap().contains_key(&key)
            }
            _ => LEFT_OUT.contains(&(form, key.as_str())),
        };
        assert_eq!(check(&schema, &wrong).is_none(), may_be_missing, "{form}: {key}");
    }
}

#[test]
fn results_are_as_their_schemas_say() {
    let run = |further: &str| json(&format!("experiment run {further} --format json --quiet"));
    let compare = |further: &str| {
        let arms = "--arm a:cluster=off --arm b:cluster=perch --warmup 2ms --measure 4ms --quiet";
        json(&format!("compare {further} {arms} --format json"))
    };
    for (form, result) in [
        (
            "experiment-run",
            run("cluster-scan --repetitions 2 --arms perch --only tbench/node0/n=1"),
        ),
        ("experiment-run", run("capacity-wakeup --repetitions 2 --only sysbench/juno/mean")),
        ("experiment-run", run("cluster-scan cluster-scan --repetitions 1 --only */node0/n=1")),
        ("compare", compare("-m kunpeng920 -w tbench:n=4 --statistics")),
        // One repetition and nothing done: many figures are null.
        ("compare", compare("-m rt480 -w ffmpeg:instances=1 --repetitions 1")),
    ] {
        holds(form, &result);
    }
}

#[test]
fn checks_of_a_machine_are_as_their_schema_says() {
    for root in ["/", "/nowhere"] {
        let (_, out, _) = told(&format!("doctor --format json --root {root}"));
        holds("doctor", &serde_json::from_str(&out).unwrap());
    }
}

#[test]
fn diffs_are_as_their_schema_says() {
    let compare = |seed| {
        printed(&format!(
            "compare -m kunpeng920 -w tbench:n=4 --arm a:cluster=off --arm b:cluster=perch \
             --warmup 2ms --measure 4ms --repetitions 2 --quiet --format json --seed {seed}"
        ))
    };
    let [old, new] = ["1", "2"].map(|seed| file("schemas", &format!("{seed}.json"), compare(seed)));
    holds("diff", &json(&format!("diff {old} {new} --format json")));
}

#[test]
fn sweeps_and_their_results_are_as_their_schemas_say() {
    let folder = directory("schemas-sweep");
    let store = folder.join("store");
    let _ = fs::remove_dir_all(&store);
    let store = store.to_str().unwrap();
    let sweep = file(
        "schemas-sweep",
        "sweep.toml",
        "workload = \"pipe:pairs=2\"\nbaseline = \"off\"\n\
         effort = { warmup_ms = 1, measure_ms = 1, repetitions = 2 }\n\
         [axes]\nmachine = [\"kunpeng920\", \"x5570\"]\n\
         arm = { off = \"off\", near = \"cluster=perch\" }\nhardware.wake_ns = [400, 500]\n",
    );
    let plan = printed(&format!("sweep plan {sweep}"));
    let asked = schema("simulation");
    for line in plan.lines() {
        let (_, simulation) = line.split_once(' ').unwrap();
        let simulation: Value = serde_json::from_str(simulation).unwrap();
        assert_eq!(check(&asked, &simulation), None, "{line}");
    }
    let (_, first) = plan.lines().next().unwrap().split_once(' ').unwrap();
    let spec = file("schemas-sweep", "spec.json", first);
    holds("simulate", &json(&format!("simulate {spec}")));
    printed(&format!("sweep run {sweep} --store {store} --quiet"));
    let export = printed(&format!("store export {store} --format json"));
    assert_eq!(export.lines().count(), 8);
    for line in export.lines() {
        holds("simulate", &serde_json::from_str(line).unwrap());
    }
    let rows = json(&format!("sweep collect {sweep} --store {store} --format json"));
    assert!(rows.as_array().is_some_and(|rows| rows.len() >= 8), "{rows}");
    holds("sweep-collect", &rows);
    let rank = format!("sweep rank {sweep} --store {store} --quiet --format json");
    holds("sweep-rank", &json(&rank));
}

#[test]
fn what_is_made_of_recordings_is_as_the_schemas_say() {
    let path = put("schemas", recording(LOAD));
    for (form, further) in
        [("replay", ""), ("replay", "--set cluster=perch"), ("replay", "--era 6.5"), ("advise", "")]
    {
        holds(form, &json(&format!("{form} {path} --format json {further}")));
    }
    let simulated = simulated("schemas.simulated");
    let teach = format!("lab teach --guest {path} --simulated {simulated} --format json");
    holds("teach", &json(&teach));
    let report = include_str!("../../../../perch-import/tests/import/fixture.txt");
    let (_, summary) = import_text(&mut report.as_bytes(), &Options::default()).unwrap();
    assert!(!summary.kept.longest().is_empty());
    holds("import", &serde_json::to_value(&summary).unwrap());
}

/// A report has every reason and event, loaded or not.
#[test]
fn statistics_are_as_their_schema_says() {
    let report = serde_json::to_value(Source::default().report()).unwrap();
    assert!(report["reasons"].as_object().unwrap().len() > 5, "{report}");
    holds("stats", &report);
}
