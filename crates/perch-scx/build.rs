// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles perch's own scheduler to `perch.so`, the shared object of which each simulation loads a
//! copy.

// Its other part compiles to BPF.
#[allow(dead_code)]
#[path = "../perch-scheduler/build/bpf.rs"]
mod bpf;
#[path = "src/native.rs"]
mod native;

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
        "../perch-scheduler/build",
        "src/native.rs",
        "../../policy",
    ] {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=PERCH_CLANG");
    let out = PathBuf::from(variable("OUT_DIR"));
    let clang = bpf::find_clang();
    let objects: Vec<_> =
        SOURCES.iter().map(|source| compile(&clang, Path::new(source), &out)).collect();
    link(&clang, &objects, &out.join("perch.so"));
}

/// The architecture, if it is not the one that this script runs on.
fn cross() -> Option<String> {
    let arch = variable("CARGO_CFG_TARGET_ARCH");
    (!variable("HOST").starts_with(&format!("{arch}-"))).then_some(arch)
}

fn compile(clang: &str, source: &Path, out: &Path) -> PathBuf {
    let object = out.join(source.with_extension("o").file_name().unwrap_or_default());
    let name = variable("CARGO_CFG_TARGET_ARCH");
    let Some((arch, flags)) = native::arch(&name) else {
        fail(&format!(
            "perch's BPF program has been written for x86_64 and aarch64, not for {name}"
        ))
    };
    let mut command = Command::new(clang);
    command
        .args(native::COMPILE)
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

fn link(clang: &str, objects: &[PathBuf], to: &Path) {
    let linker = match cross() {
        None => clang.to_string(),
        Some(arch) => env::var("RUSTC_LINKER").unwrap_or_else(|_| format!("{arch}-linux-gnu-gcc")),
    };
    let mut command = Command::new(linker);
    command.args(native::LINK).args(objects).arg("-o").arg(to);
    run(command);
}

fn run(mut command: Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(_) => fail(&format!("failed: {command:?}")),
        Err(error) => {
            fail(&format!("cannot run {}: {error}", command.get_program().to_string_lossy()))
        }
    }
}
