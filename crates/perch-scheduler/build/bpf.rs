// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles a crate's bpf/*.bpf.c to BPF by clang. Part of the build scripts of the crates that have
//! some: perch-scheduler and perch-record.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// The oldest clang whose BPF back end knows address spaces (arenas) as well as they are used.
const CLANG_WANTED: u32 = 19;

/// Compiles all of them into cargo's OUT_DIR; `includes` are folders of headers besides libbpf's.
pub fn compile_all(includes: &[&str]) {
    for path in ["bpf", "../perch-scheduler/build/bpf.rs"]
        .iter()
        .chain(includes)
    {
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
    [
        clang.replace("clang", "llvm-strip"),
        "llvm-strip".to_string(),
    ]
}

/// A clang that is new enough: $PERCH_CLANG and no other if that is set.
pub fn find_clang() -> String {
    if let Ok(clang) = env::var("PERCH_CLANG") {
        match clang_version(&clang) {
            Some(version) if version >= CLANG_WANTED => return clang,
            Some(version) => fail(&format!(
                "$PERCH_CLANG is {clang}, which is clang {version}; \
                 perch's BPF program needs clang {CLANG_WANTED} or newer"
            )),
            None => fail(&format!("$PERCH_CLANG is {clang}, which is not clang")),
        }
    }
    let mut names = vec![format!("clang-{CLANG_WANTED}"), "clang".to_string()];
    names.extend((CLANG_WANTED + 1..CLANG_WANTED + 10).map(|version| format!("clang-{version}")));
    let mut old = None;
    for name in names {
        match clang_version(&name) {
            Some(version) if version >= CLANG_WANTED => return name,
            Some(version) => old = Some(version),
            None => {}
        }
    }
    let found = old.map_or("there is none".to_string(), |version| {
        format!("only clang {version} is here")
    });
    fail(&format!(
        "perch's BPF program is compiled by clang {CLANG_WANTED} or newer, and {found}: \
         install clang-{CLANG_WANTED} (./x does), or set PERCH_CLANG to one"
    ))
}

/// The major version of a clang; none if it does not run or is something else.
fn clang_version(clang: impl AsRef<OsStr>) -> Option<u32> {
    let output = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, rest) = text.split_once("clang version ")?;
    rest.split('.').next()?.parse().ok()
}

pub fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo has not set {name}")))
}

/// Ends the build with words instead of a panic's backtrace.
pub fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
