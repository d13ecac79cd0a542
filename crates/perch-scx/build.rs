// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles perch's own scheduler to `perch.so`, the shared object of which each simulation loads a
//! copy.

// Its other part compiles to BPF.
#[allow(dead_code)]
#[path = "../perch-scheduler/build/bpf.rs"]
mod bpf;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use bpf::{fail, variable};

/// The program's own file, and the kernel's functions that it calls.
const SOURCES: [&str; 2] = ["native/perch.c", "native/kfuncs.c"];
const INCLUDES: [&str; 3] = ["native", "../perch-scheduler/bpf", "../../policy/include"];

fn main() {
    for path in [
        "native",
        "../perch-scheduler/bpf",
        "../perch-scheduler/build/bpf.rs",
        "../../policy",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=PERCH_CLANG");
    let out = PathBuf::from(variable("OUT_DIR"));
    let clang = bpf::find_clang();
    let objects: Vec<_> = SOURCES
        .iter()
        .map(|source| compile(&clang, Path::new(source), &out))
        .collect();
    link(&clang, &objects, &out.join("perch.so"));
}

/// The architecture, if it is not the one that this script runs on.
fn cross() -> Option<String> {
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    (!variable("HOST").starts_with(&format!("{arch}-"))).then_some(arch)
}

fn compile(clang: &str, source: &Path, out: &Path) -> PathBuf {
    let object = out.join(source.with_extension("o").file_name().unwrap_or_default());
    let (arch, flags): (_, &[_]) = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => ("x86", &[]),
        // Else atomic instructions would be calls of compiler-rt or libgcc.
        "aarch64" => ("arm64", &["-mno-outline-atomics"]),
        other => fail(&format!(
            "perch's BPF program has been written for x86_64 and aarch64, not for {other}"
        )),
    };
    let mut command = Command::new(clang);
    command
        .args(["-O2", "-g0", "-std=gnu11", "-fPIC"])
        // There is no libc: memcpy() of kfuncs.c must not become a call of itself.
        .arg("-ffreestanding")
        // BPF programs read a type's bytes as another's, as the kernel does.
        .arg("-fno-strict-aliasing")
        // Only a compiler for BPF knows the attribute by which a loader finds fields.
        .args(["-Wall", "-Werror", "-Wno-unknown-attributes"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .args(flags)
        .args(INCLUDES.iter().flat_map(|folder| ["-I", folder]))
        .args(["-include", "native.h", "-c"])
        .arg(source)
        .arg("-o")
        .arg(&object);
    if let Some(arch) = cross() {
        command.arg(format!("--target={arch}-linux-gnu"));
    }
    run(command);
    object
}

/// The program's variables are symbols that the loader looks up, and yet its own, whatever else
/// the process has loaded. The object needs no other, so what is missing is an error here; only a
/// weak function may be missing, which the program asks for before it calls it.
fn link(clang: &str, objects: &[PathBuf], to: &Path) {
    let linker = match cross() {
        None => clang.to_string(),
        Some(arch) => env::var("RUSTC_LINKER").unwrap_or_else(|_| format!("{arch}-linux-gnu-gcc")),
    };
    let mut command = Command::new(linker);
    command
        .args(["-shared", "-nostdlib"])
        .args(["-Wl,-Bsymbolic", "-Wl,-z,defs", "-Wl,-z,now"])
        .args(["-Wl,-z,noexecstack", "-Wl,--build-id=none"])
        .args(objects)
        .arg("-o")
        .arg(to);
    run(command);
}

fn run(mut command: Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(_) => fail(&format!("failed: {command:?}")),
        Err(error) => fail(&format!(
            "cannot run {}: {error}",
            command.get_program().to_string_lossy()
        )),
    }
}
