// SPDX-License-Identifier: GPL-2.0-or-later
//! Computes the model's version: the digest of every source that a simulation's result may depend
//! on. Two builds of the same sources have the same version, whoever made them.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::fail;

/// The sources of the model. The library's machines are in perch-machine.
const SOURCES: [&str; 16] = [
    "policy",
    "crates/perch-engine/src",
    "crates/perch-experiment/src",
    "crates/perch-file/src",
    "crates/perch-machine/library",
    "crates/perch-machine/src",
    "crates/perch-plan/src",
    "crates/perch-policy/build",
    "crates/perch-policy/build.rs",
    "crates/perch-policy/src",
    "crates/perch-sched/src",
    "crates/perch-scheduler/bpf",
    "crates/perch-scx/native",
    "crates/perch-scx/src",
    "crates/perch-sim/src",
    "crates/perch-workload/src",
];

/// The crates of others that decide figures: their versions are part of the model's.
const NUMBERS: [&str; 5] = ["distrs", "hdrhistogram", "libm", "rand_core", "rand_xoshiro"];

/// Sets the variable PERCH_MODEL of the crate.
pub fn digest() {
    let root = Path::new("../..");
    let mut hash = Sha256::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
        for file in files(&root.join(source)) {
            let text = fs::read(&file).unwrap_or_else(|error| unread(&file, &error));
            let name = file.strip_prefix(root).unwrap_or(&file);
            // The length before each part, so that no two lists of files give the same bytes.
            for part in [name.as_os_str().as_encoded_bytes(), &text] {
                hash.update((part.len() as u64).to_le_bytes());
                hash.update(part);
            }
        }
    }
    let lock = root.join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let lock = fs::read_to_string(&lock).unwrap_or_else(|error| unread(&lock, &error));
    for package in lock.split("[[package]]") {
        let is = |name: &&&str| package.contains(&format!("\nname = \"{name}\"\n"));
        if NUMBERS.iter().any(|name| is(&name)) {
            hash.update(package.trim());
        }
    }
    let digest: Vec<String> =
        (hash.finalize().iter().take(8)).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=PERCH_MODEL={}", digest.concat());
}

/// Returns all files below a path, or the path itself, in an order of their own.
fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_path_buf()];
    }
    let read = fs::read_dir(path).unwrap_or_else(|error| unread(path, &error));
    let mut entries: Vec<PathBuf> =
        read.map(|entry| entry.unwrap_or_else(|error| unread(path, &error)).path()).collect();
    entries.sort();
    entries.iter().flat_map(|entry| files(entry)).collect()
}

fn unread(path: &Path, error: &std::io::Error) -> ! {
    fail(&format!("{}: {error}", path.display()))
}
