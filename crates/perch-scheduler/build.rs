// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles bpf/*.bpf.c to BPF by clang, and what the tests ask of its headers natively.

#[path = "build/bpf.rs"]
mod bpf;

fn main() {
    let native = ["src/pelt/native.c"];
    for path in ["../../policy"].iter().chain(&native) {
        println!("cargo::rerun-if-changed={path}");
    }
    cc::Build::new()
        .files(native)
        // The headers declare what only a host defines.
        .warnings(false)
        .opt_level(2)
        .flag("-std=gnu11")
        .compile("perch_interface");
    bpf::compile_all(&["../../policy/include"]);
}
