// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles the plugins that QEMU loads, so that no user's machine needs a compiler. They belong to
//! the host's QEMU, which perch runs on x86-64; a perch for another architecture is a guest's agent
//! and carries none.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

const SOURCES: [&str; 9] =
    ["plugin", "accel", "boot", "jump", "machine", "lines", "count", "clock", "cost"];

fn main() {
    println!("cargo::rerun-if-changed=plugin");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let to = Path::new(&out).join("plugin.so");
    let target = env::var("TARGET").unwrap_or_default();
    if !target.starts_with("x86_64-") {
        fs::write(&to, b"").expect("OUT_DIR can be written to");
        return;
    }
    // `cc` finds the compiler; it builds archives only, so the compiler is called here.
    let compiler = cc::Build::new().opt_level(2).warnings(true).get_compiler();
    // A perch that is linked statically has `cc` ask for that, too, which a plugin cannot be.
    let flags = compiler.args().iter().filter(|flag| *flag != "-static");
    let mut command = Command::new(compiler.path());
    command
        .args(flags)
        .args([
            "-std=gnu11",
            "-Wextra",
            "-fvisibility=hidden",
            "-fPIC",
            "-shared",
            // The callback of every load and store calls into the other files.
            "-flto",
        ])
        .args(SOURCES.map(|name| format!("plugin/{name}.c")))
        .arg("-o")
        .arg(&to);
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("cannot run the C compiler for plugin/: {error}"));
    assert!(status.success(), "plugin/ does not compile: {status}");
}
