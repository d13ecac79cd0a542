// SPDX-License-Identifier: GPL-2.0-or-later
//! The model's version changes with what a figure may depend on, and with nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The paths that the build script hashes.
fn sources() -> Vec<String> {
    let script = include_str!("../build/model.rs");
    let list = script.split_once("const SOURCES").expect("the list").1;
    let list = list.split_once("];").expect("its end").0;
    let quoted = list.split('"').skip(1).step_by(2);
    quoted.map(str::to_string).collect()
}

/// The crates of the workspace that a crate is built from, itself among them.
fn built_from(name: &str, found: &mut BTreeSet<String>) {
    if !found.insert(name.to_string()) {
        return;
    }
    let path = root().join(format!("crates/{name}/Cargo.toml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let manifest: toml::Table = text.parse().unwrap();
    for section in ["dependencies", "build-dependencies"] {
        let names = manifest.get(section).and_then(toml::Value::as_table);
        for name in names.into_iter().flat_map(|names| names.keys()) {
            if name.starts_with("perch-") {
                built_from(name, found);
            }
        }
    }
}

#[test]
fn model_covers_every_crate_that_a_simulation_is_built_from_and_no_other() {
    let mut crates = BTreeSet::new();
    built_from("perch-experiment", &mut crates);
    assert!(crates.contains("perch-sched") && crates.contains("perch-scx"));
    let sources = sources();
    let code = sources.iter().filter_map(|path| {
        let (name, rest) = path.strip_prefix("crates/")?.split_once('/')?;
        rest.starts_with("src").then(|| name.to_string())
    });
    assert_eq!(code.collect::<BTreeSet<_>>(), crates);
    // What those crates are built from beside their own code is theirs as well, or everybody's.
    // perch-scx compiles the live scheduler's program natively.
    let own = (sources.iter()).filter(|path| *path != "crates/perch-scheduler/bpf");
    for path in own {
        let of_a_crate = path.strip_prefix("crates/").map(|path| {
            let name = path.split('/').next().expect("a path has a first part");
            crates.contains(name)
        });
        assert!(of_a_crate.unwrap_or(path == "policy"), "{path}");
        assert!(root().join(path).exists(), "{path}");
    }
}
