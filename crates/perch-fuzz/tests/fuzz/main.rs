// SPDX-License-Identifier: GPL-2.0-or-later
//! One test for each format that perch reads.

mod experiments;
mod imports;
mod lab;
mod machines;
mod perfdata;
#[path = "../../../perch-import/tests/import/pftrace.rs"]
mod pftrace;
mod recordings;
mod results;
mod scale;
mod settings;
mod sweeps;
#[path = "../../../perch-import/tests/import/tracedat.rs"]
mod tracedat;
mod workloads;

use std::fs;
use std::path::{Path, PathBuf};

use perch_fuzz::{Check, Meter, Target};
use perch_workload::Budget;

#[global_allocator]
static METER: Meter = Meter;

/// The memory that the tasks of an input may take.
fn budget() -> Budget {
    Budget::of(16 << 20)
}

/// A path from the root of the repository.
fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The folder for inputs: `fuzz` in cargo's.
fn folder() -> PathBuf {
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    temporary.parent().expect("it is in cargo's folder").join("fuzz")
}

/// A folder of a test's own, which is empty.
fn scratch(name: &str) -> PathBuf {
    let folder = folder().join(name);
    // It is not there the first time.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    folder
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the files of a folder whose names end so, in the order of their names.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let folder = tree(folder);
    let listed = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<PathBuf> = listed.map(|entry| entry.expect("it is there").path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    assert!(!paths.is_empty(), "{}: no *{ending}", folder.display());
    paths.iter().map(|path| read(path)).collect()
}

/// The words of a list, with ¦ between them. A line may end behind that; controls are escaped as in
/// Rust.
fn words(list: &str) -> Vec<String> {
    let escapes = [("n", "\n"), ("r", "\r"), ("t", "\t"), ("0", "\0"), ("u{1b}", "\u{1b}")];
    let others = [("u{202e}", "\u{202e}"), ("u{feff}", "\u{feff}")];
    let escapes = escapes.into_iter().chain(others);
    let mean = |word: &str| {
        let word = word.strip_prefix('\n').unwrap_or(word).to_string();
        escapes.clone().fold(word, |word, (name, is)| word.replace(&format!("\\{name}"), is))
    };
    list.split('¦').map(mean).collect()
}

/// Tries inputs of a text.
fn text(name: &'static str, inputs: u32, seeds: Vec<Vec<u8>>, list: &str, check: Check) {
    let list = words(list);
    let words: &[&str] = &list.iter().map(String::as_str).collect::<Vec<_>>();
    let target = Target { name, inputs, seeds, words, binary: false, seal: |_| {}, check };
    perch_fuzz::fuzz(&target, &folder());
}

fn strings(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
