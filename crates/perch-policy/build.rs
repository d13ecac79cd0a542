// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles policy/ natively (the live scheduler compiles the same headers to BPF), and writes what
//! Rust takes from the table of mechanisms.

#[path = "build/emit.rs"]
mod emit;
#[path = "build/table.rs"]
mod table;

use std::path::{Path, PathBuf};
use std::process::exit;
use std::{env, fs};

fn main() {
    let policy = Path::new("../../policy");
    println!("cargo::rerun-if-changed={}", policy.display());
    println!("cargo::rerun-if-changed=build");
    write_table(&policy.join("include/perch/mechanisms.def"));
    // The model checker's copy; only the test that has its atomics pulls it in.
    for (source, library) in [("native", "perch_policy"), ("checked", "perch_policy_checked")] {
        cc::Build::new()
            .file(policy.join(format!("hosts/{source}.c")))
            .opt_level(2)
            .warnings(true)
            .extra_warnings(true)
            .warnings_into_errors(true)
            .flag("-std=gnu11")
            .compile(library);
    }
}

/// Writes a file of Rust for each part of the table that the sources include.
fn write_table(path: &Path) {
    let shown = "policy/include/perch/mechanisms.def";
    let text = fs::read_to_string(path).unwrap_or_else(|error| fail(&format!("{shown}: {error}")));
    let table = table::parse(&text)
        .unwrap_or_else(|(line, message)| fail(&format!("{shown}:{line}: {message}")));
    let folder = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    for (name, text) in [
        ("mechanisms.rs", emit::mechanisms(&table)),
        ("modes.rs", emit::modes(&table)),
        ("mirror.rs", emit::mirror(&table)),
        ("reasons.rs", emit::reasons(&table)),
    ] {
        let path = folder.join(name);
        if let Err(error) = fs::write(&path, text) {
            fail(&format!("{}: {error}", path.display()));
        }
    }
}

/// Ends the build with words instead of a panic's backtrace.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
