// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles a crate's bpf/*.bpf.c to BPF by clang. Part of the build scripts of the crates that have
//! some: perch-scheduler and perch-record.

#[path = "clang.rs"]
mod clang;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// Compiles all of them into cargo's OUT_DIR; `includes` are folders of headers besides libbpf's.
pub fn compile_all(includes: &[&str]) {
    for path in ["bpf", "../perch-scheduler/build"].iter().chain(includes) {
        println!("cargo::rerun-if-changed={path}");
    }
    println!("cargo::rerun-if-env-changed=PERCH_CLANG");
    let out = PathBuf::from(variable("OUT_DIR"));
    let clang = find_clang();
    for source in programs() {
        compile(&clang, &source, includes, &out);
    }
}

/// bpf/*.bpf.c, sorted.
fn programs() -> Vec<PathBuf> {
    let entries = fs::read_dir("bpf").unwrap_or_else(|error| fail(&format!("bpf/: {error}")));
    let mut programs: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(".bpf.c"))
        .collect();
    programs.sort();
    programs
}

/// Compiles `source` to `out/NAME.bpf.o`, without DWARF where llvm-strip can take it out: BTF is
/// all that the loader reads.
fn compile(clang: &str, source: &Path, includes: &[&str], out: &Path) {
    let object = out.join(source.with_extension("o").file_name().unwrap_or_default());
    let arch = match variable("CARGO_CFG_TARGET_ARCH").as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => fail(&format!(
            "perch's BPF program has been written for x86_64 and aarch64, not for {other}"
        )),
    };
    let status = Command::new(clang)
        .args(["-g", "-O2", "-target", "bpf", "-mcpu=v4", "-std=gnu11"])
        .args(["-Wall", "-Werror"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        // A header is named by its path from bpf/, whichever folder of that includes it.
        .args(["-I", "bpf"])
        .args(includes.iter().flat_map(|folder| ["-I", folder]))
        // libbpf's headers for BPF programs, as libbpf-sys installed them.
        .arg("-isystem")
        .arg(variable("DEP_BPF_INCLUDE"))
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(_) => fail(&format!("{clang} could not compile {}", source.display())),
        Err(error) => fail(&format!("cannot run {clang}: {error}")),
    }
    for strip in strips(clang) {
        let done = Command::new(strip).arg("-g").arg(&object).status();
        if done.is_ok_and(|status| status.success()) {
            break;
        }
    }
}

/// The llvm-strip that comes with this clang, or any.
fn strips(clang: &str) -> [String; 2] {
    [clang.replace("clang", "llvm-strip"), "llvm-strip".to_string()]
}

/// A clang that is new enough.
pub fn find_clang() -> String {
    let wanted = clang::WANTED;
    clang::find().unwrap_or_else(|found| {
        fail(&format!(
            "perch's BPF program is compiled by clang {wanted} or newer, and {found}: \
             install clang-{wanted} (./x does), or set PERCH_CLANG to one"
        ))
    })
}

pub fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo has not set {name}")))
}

/// Ends the build with words instead of a panic's backtrace.
pub fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
