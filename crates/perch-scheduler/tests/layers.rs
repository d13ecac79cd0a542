// SPDX-License-Identifier: GPL-2.0-or-later
//! The layers of the BPF program, as bpf/README.md describes them: arrows go down only, and a
//! follower's condition stands in the list and nowhere else.

use std::fs;
use std::path::{Path, PathBuf};

/// Headers and programs of a folder of bpf/, each with its text without comments.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf").join(folder);
    let mut found: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "h" || ext == "c"))
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap();
            (path, without_comments(&text))
        })
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{} has no source", folder.display());
    found
}

fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    out + rest
}

/// The conditions of followers.def, by their fields of `perch_config`.
fn conditions() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bpf/followers.def");
    let list = without_comments(&fs::read_to_string(path).unwrap());
    let mut fields: Vec<_> = list
        .split("perch_config.")
        .skip(1)
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            rest[..end.unwrap()].to_string()
        })
        .collect();
    fields.sort();
    fields.dedup();
    fields
}

#[test]
fn the_base_includes_no_layer_above_it() {
    for (path, text) in sources("base") {
        for line in text.lines().filter(|line| line.contains("#include")) {
            for above in ["follow", "band/"] {
                assert!(!line.contains(above), "{}: {line}", path.display());
            }
        }
    }
}

#[test]
fn followers_do_not_include_the_band() {
    for (path, text) in sources("follow") {
        // call.h is where the list comes together, the band's three hooks too.
        if path.ends_with("call.h") {
            continue;
        }
        assert!(!text.contains("\"band/"), "{}", path.display());
    }
}

#[test]
fn a_condition_stands_in_the_list_alone() {
    let fields = conditions();
    assert!(fields.contains(&"utils".to_string()), "{fields:?}");
    for folder in ["", "base", "follow", "band"] {
        for (path, text) in sources(folder) {
            for field in &fields {
                // A follower may ask for its own mode, by comparing it.
                let asks = text
                    .match_indices(&format!("perch_config.{field}"))
                    .any(|(at, found)| !text[at + found.len()..].starts_with(" =="));
                assert!(!asks, "{} asks for {field}", path.display());
            }
        }
    }
}

#[test]
fn the_callbacks_and_the_base_ask_for_no_setting() {
    for (path, text) in sources("").into_iter().chain(sources("base")) {
        assert!(!text.contains("perch_config."), "{}", path.display());
    }
}

/// One policy: the live scheduler asks it in one place, which looks for no CPU itself and puts a
/// wakee where the policy says.
#[test]
fn the_policy_alone_chooses_a_wakees_cpu() {
    let all: Vec<_> = ["", "base", "follow", "band"].into_iter().flat_map(sources).collect();
    for asks in ["perch_select(", "perch_soon("] {
        let places = all.iter().filter(|(path, _)| !path.ends_with("decide.bpf.c"));
        let places = places.filter(|(_, text)| text.contains(asks)).map(|(path, _)| path);
        assert!(places.clone().count() == 1 && places.clone().all(|p| p.ends_with("choose.h")));
    }
    let choose = all.iter().find(|(path, _)| path.ends_with("base/choose.h"));
    let (_, text) = choose.expect("choose.h");
    for looks in ["_in_set(", "perch_host_", "idle_among(", "->topology.sets"] {
        assert!(!text.contains(looks), "choose.h looks for a CPU: {looks}");
    }
    for inserts in ["insert(", "insert_direct("] {
        assert_eq!(text.matches(inserts).count(), 1, "{inserts} outside of insert_wakee()");
    }
}
