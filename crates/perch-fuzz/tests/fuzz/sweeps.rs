// SPDX-License-Identifier: GPL-2.0-or-later
//! Sweeps, simulations and stored results.

use std::fs;

use perch_experiment::{Limits, Simulation, Store, Stored, Sweep};
use perch_fuzz::refused;

use crate::{budget, scratch, strings, text};

fn limits() -> Limits {
    Limits { budget: budget(), ..Limits::default() }
}

const SWEEP: &str = r#"
machine = "kunpeng920"
workload = "pipe:where=node0"
era = "6.5"
effort = { warmup_ms = 1, measure_ms = 2, repetitions = 2 }
baseline = "stock"
conditions = ["workload.pairs <= 2 * cpus", "arm == \"stock\""]
[axes]
workload.pairs = { from = 1, to = 64, points = 4, scale = "log" }
hardware.transfer_ns.llc = [40, 55]
arm = { stock = "off", posted = "cluster=posted" }
[design]
points = 4
axes.hardware.ipi_ns.llc = { from = 100, to = 900 }
"#;

#[test]
fn sweep() {
    let words = r#"
machine¦workload¦arm¦era¦seed¦hz¦from¦to¦step¦points¦scale¦"log"¦hardware¦numa¦.¦=¦[¦]¦{¦}¦,¦"¦<=¦
==¦cpus¦*¦-¦1e9¦9223372036854775807¦nan¦inf¦\n¦\0¦\u{1b}"#;
    text("sweep", 1000, strings(&[SWEEP]), words, &|input, _| {
        let found = Sweep::from_toml(&String::from_utf8_lossy(input), "s.toml");
        let sweep = match found {
            Ok(sweep) => sweep.within(limits()),
            Err(error) => return refused(&error.to_string(), "s.toml", input),
        };
        // A million combinations that a condition leaves out take as long as a million points.
        if sweep.combinations() > 100 {
            return Ok(());
        }
        for point in sweep.points().take(3) {
            match point {
                Ok(point) if point.values.len() == sweep.names().len() => {}
                Ok(point) => return Err(format!("a point has {} values", point.values.len())),
                Err(error) => refused(&error.to_string(), "", input)?,
            }
        }
        Ok(())
    });
}

/// A simulation that is accepted is the same one when it is written and read again.
#[test]
fn simulation() {
    let words = r#"
"machine"¦"machine_toml"¦"changed"¦"workload"¦"effort"¦"quick"¦"seed"¦hardware.transfer_ns.llc¦
numa.distance¦:¦{¦}¦[¦]¦,¦null¦-1¦1e400¦4294967295¦\u0000¦\u{1b}"#;
    let seed = r#"{"machine": "kunpeng920", "changed": {"hardware.transfer_ns.llc": 40},
 "workload": "pipe:pairs=4", "era": "6.5", "modes": "cluster=posted",
 "effort": {"warmup_ms": 20, "measure_ms": 50, "repetitions": 5}, "seed": 1}"#;
    text("simulation", 800, strings(&[seed]), words, &|input, _| {
        let read = Simulation::from_json(&String::from_utf8_lossy(input), "s.json");
        let prepared = match read.and_then(|one| one.prepare("s.json", limits())) {
            Ok(prepared) => prepared,
            Err(error) => return refused(&error.to_string(), "", input),
        };
        let written = serde_json::to_string(&prepared.asked).expect("texts and numbers");
        let again = Simulation::from_json(&written, "again");
        let again = again.and_then(|one| one.prepare("again", limits()));
        match again {
            Ok(again) if again.key == prepared.key => Ok(()),
            other => Err(format!("{written} is another simulation: {other:?}")),
        }
    });
}

/// A damaged result is found, whatever the damage.
#[test]
fn stored() {
    let folder = scratch("store");
    let store = Store::open(&folder).expect("a store");
    let small = SWEEP.replace("points = 4, scale = \"log\"", "step = 100");
    let sweep = Sweep::from_toml(&small, "s.toml").expect("a sweep");
    let prepared = sweep.points().next().expect("a point").expect("it is one").prepared;
    let found = prepared.run().expect("it runs");
    let stored = Stored::new(prepared.key.clone(), prepared.asked, found);
    store.put(&stored).expect("it is kept");
    let key = prepared.key.as_str();
    let path = folder.join(format!("results/{}/{key}.json", &key[..2]));
    let seed = fs::read(&path).expect("it is there");
    let words = r#""key"¦"digest"¦"values"¦null¦0¦1e9¦,¦{¦}¦[¦]"#;
    let original = stored.clone();
    text("stored", 1500, vec![seed], words, &|input, _| {
        fs::write(&path, input).expect("a file");
        let faults = store.verify().expect("the folders are there");
        match store.get(&prepared.key) {
            // Blanks and the order of keys carry no figure.
            Ok(Some(found)) if found == original => Ok(()),
            Ok(_) if !faults.is_empty() => Ok(()),
            Ok(_) => Err("the damage is not found".to_string()),
            Err(error) if !faults.is_empty() => refused(&error.to_string(), "", input),
            Err(error) => Err(format!("verify does not find: {error}")),
        }
    });
}
