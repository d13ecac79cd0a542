// SPDX-License-Identifier: GPL-2.0-or-later
//! Writes the tables of what the BPF program counts from the lists that C includes, as calls of the
//! macro `counted` of src/interface/mod.rs.

use std::path::Path;
use std::{env, fs};

/// The lists: the file, the macro of its lines, and the enum that is made of them with its comment.
const LISTS: [[&str; 4]; 2] = [
    [
        "events.def",
        "EVENT",
        "Event",
        "The events that are counted besides the reasons: `enum perch_event`.",
    ],
    [
        "waits.def",
        "WAIT",
        "WaitReason",
        "The reasons by which waits are told apart: `enum perch_wait_reason`.",
    ],
];

/// `StolenLlc` for `STOLEN_LLC`.
fn variant(name: &str) -> String {
    let word = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_string() + &rest.to_lowercase()
    };
    name.split('_').map(word).collect()
}

fn main() {
    let mut out = String::new();
    for [file, call, of, about] in LISTS {
        let path = Path::new("../perch-scheduler/bpf").join(file);
        println!("cargo::rerun-if-changed={}", path.display());
        let text = fs::read_to_string(&path).expect("the list is in the tree");
        out += &format!("counted! {{ {of}, {about:?}:\n");
        for line in text.lines().filter_map(|line| line.strip_prefix(call)?.strip_prefix('(')) {
            let (name, help) = line.split_once(", ").expect("a name and a text");
            let help = help.strip_suffix(')').expect("one line each");
            out += &format!("{} = {:?}, {help};\n", variant(name), name.to_lowercase());
        }
        out += "}\n";
    }
    let folder = env::var_os("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&folder).join("counted.rs"), out).expect("cargo's folder takes files");
}
