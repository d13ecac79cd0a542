// SPDX-License-Identifier: GPL-2.0-or-later
//! Compiles the BPF C of a scheduler from a checkout of github.com/sched-ext/scx, or of a kernel's
//! tools/sched_ext, natively: its own headers, ours in place of libbpf's, and the kernel's functions.

use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use perch_file::{FileError, Kind};

use crate::clang::{self, WANTED};
use crate::native;

macro_rules! ours {
    ($($path:literal)*) => { [$(($path, include_str!(concat!("../native/", $path)))),*] };
}

/// Our headers and sources, by their path from the folder that the compiler is given.
const OURS: [(&str, &str); 11] = ours!(
    "abi.h" "native.h" "foreign.h" "format.h" "exports.h" "kfuncs.c" "more.c" "scx/common.bpf.h"
    "bpf/bpf_helpers.h" "bpf/bpf_core_read.h" "bpf/bpf_tracing.h"
);

/// The map types that src/maps.rs knows, and those whose readers are not there.
#[rustfmt::skip]
const MAP_TYPES: [&str; 10] = [
    "HASH", "ARRAY", "PERCPU_ARRAY", "LRU_HASH", "QUEUE", "STACK", "TASK_STORAGE", "CGRP_STORAGE",
    "RINGBUF", "PERF_EVENT_ARRAY",
];

/// The reason why a scheduler could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// There is no clang, or only an old one.
    #[error(
        "a scheduler is compiled by clang {WANTED} or newer, and {0}: install \
         clang-{WANTED}, or set PERCH_CLANG to one"
    )]
    Clang(String),
    /// A source cannot be read.
    #[error(transparent)]
    Read(#[from] FileError),
    /// A file cannot be read or written.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The path leads to no scheduler.
    #[error("{path}: {reason}", path = path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// What was expected there.
        reason: String,
    },
    /// The compiler refused a source.
    #[error("{path} cannot be compiled:\n{errors}", path = path.display())]
    Source {
        /// The source.
        path: PathBuf,
        /// The compiler's errors, without its warnings.
        errors: String,
    },
    /// The linker failed for another reason than what is missing.
    #[error("{path} cannot be linked:\n{errors}", path = path.display())]
    Link {
        /// The scheduler.
        path: PathBuf,
        /// What the linker says.
        errors: String,
    },
    /// The scheduler needs what the simulated kernel lacks; one line each.
    #[error("{path} needs what the simulated kernel lacks:\n{lines}", path = path.display(),
            lines = needs.join("\n"))]
    Unsupported {
        /// The scheduler.
        path: PathBuf,
        /// A sentence for each function and map type.
        needs: Vec<String>,
    },
}

/// A scheduler that was compiled.
#[derive(Debug)]
pub struct Compiled {
    /// The scheduler's short name, `cosmos` for `scx_cosmos`.
    pub name: String,
    /// The shared object.
    pub object: Vec<u8>,
}

fn file_error(path: &Path) -> impl FnOnce(std::io::Error) -> CompileError {
    let path = path.to_path_buf();
    move |error| CompileError::File { path, error }
}

fn read(path: &Path) -> Result<String, CompileError> {
    Ok(perch_file::text(path, Kind::SCHEDULER)?)
}

fn write(path: &Path, text: &str) -> Result<(), CompileError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(file_error(folder))?;
    }
    fs::write(path, text).map_err(file_error(path))
}

/// A scheduler's sources and the headers beside them.
struct Sources {
    name: String,
    main: PathBuf,
    /// The other sources that its build script names.
    others: Vec<PathBuf>,
    /// The folders in which the compiler looks for headers, ours first.
    folders: Vec<PathBuf>,
    vmlinux: PathBuf,
}

/// The path of the BPF C of the scheduler at `path`, which is its folder or the file.
fn find_main(path: &Path) -> Result<PathBuf, CompileError> {
    let path = path.canonicalize().map_err(file_error(path))?;
    if path.is_file() {
        return Ok(path);
    }
    let main = ["src/bpf/main.bpf.c", "bpf/main.bpf.c", "main.bpf.c"];
    if let Some(found) = main.iter().map(|name| path.join(name)).find(|p| p.is_file()) {
        return Ok(found);
    }
    Err(CompileError::Path {
        reason: "expected the folder of a scheduler, with src/bpf/main.bpf.c, or a .bpf.c file"
            .to_string(),
        path,
    })
}

/// The name of a scheduler is what follows `scx_` in the name of its file or of the nearest folder.
fn name_of(main: &Path) -> String {
    let stem = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_suffix(".bpf.c").unwrap_or(&name).to_string()
    };
    let names = main.ancestors().map(stem);
    let found = names.into_iter().find_map(|name| name.strip_prefix("scx_").map(str::to_string));
    found.unwrap_or_else(|| stem(main))
}

/// The newest vmlinux.h of a folder by the version in its name, before the link without a version,
/// which may lead to an older one than the sources need.
fn newest_vmlinux(folder: &Path) -> Option<PathBuf> {
    let version = |path: &Path| -> Option<Vec<u32>> {
        let name = path.file_name()?.to_str()?;
        let rest = name.strip_prefix("vmlinux-v")?.strip_suffix(".h")?;
        let number = rest.split('-').next()?;
        number.split('.').map(|part| part.parse().ok()).collect()
    };
    let entries = fs::read_dir(folder).ok()?;
    let paths = entries.flatten().map(|entry| entry.path());
    let newest = paths.filter_map(|path| Some((version(&path)?, path))).max().map(|(_, path)| path);
    newest.or_else(|| Some(folder.join("vmlinux.h")).filter(|path| path.is_file()))
}

impl Sources {
    fn find(path: &Path) -> Result<Sources, CompileError> {
        let main = find_main(path)?;
        let found = ["scheds/include", "include"].iter().find_map(|place| {
            let mut above = main.ancestors().skip(1);
            above.find_map(|folder| {
                let include = folder.join(place);
                let is = include.join("scx/common.bpf.h").is_file();
                is.then(|| (folder.to_path_buf(), include))
            })
        });
        let Some((root, include)) = found else {
            return Err(CompileError::Path {
                reason: "no folder above it has scheds/include/scx/common.bpf.h or \
                         include/scx/common.bpf.h: expected a checkout of \
                         github.com/sched-ext/scx, or a kernel's tools/sched_ext"
                    .to_string(),
                path: main,
            });
        };
        let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86" };
        let vmlinux = [
            root.join("scheds/vmlinux/arch").join(arch),
            root.join("scheds/vmlinux"),
            include.clone(),
            include.join("vmlinux"),
            root.join("build/include"),
            root.clone(),
        ];
        let vmlinux = vmlinux.iter().find_map(|folder| newest_vmlinux(folder));
        let Some(vmlinux) = vmlinux else {
            return Err(CompileError::Path {
                reason: format!(
                    "vmlinux.h is missing: expected one in scheds/vmlinux/arch/{arch}/, or in \
                     {}; bpftool btf dump file /sys/kernel/btf/vmlinux format c writes one",
                    include.display()
                ),
                path: root,
            });
        };
        let own = main.parent().map(Path::to_path_buf).unwrap_or_default();
        // lib/ of the checkout has headers that are named from there.
        let folders = vec![include.clone(), include.join("bpf-compat"), root.clone(), own];
        Ok(Sources { name: name_of(&main), others: others(&main)?, main, folders, vmlinux })
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.main).chain(&self.others)
    }
}

/// The sources that build.rs beside `main` adds to it by `add_source("...")`.
fn others(main: &Path) -> Result<Vec<PathBuf>, CompileError> {
    let script = main
        .ancestors()
        .skip(1)
        .take(3)
        .map(|folder| folder.join("build.rs"))
        .find(|script| script.is_file());
    let Some(script) = script else {
        return Ok(Vec::new());
    };
    let text = read(&script)?;
    let folder = script.parent().unwrap_or(Path::new(""));
    let names = text.split("add_source(\"").skip(1);
    Ok(names.filter_map(|rest| Some(folder.join(rest.split('"').next()?))).collect())
}

/// The names of the scheduler's `struct sched_ext_ops`.
fn ops(text: &str) -> Vec<&str> {
    let name = |rest: &'static str| {
        text.split(rest).skip(1).filter_map(|behind| {
            let behind = behind.trim_start();
            let end = behind.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            Some(&behind[..end])
        })
    };
    let mut names: Vec<_> = name("SCX_OPS_DEFINE(").collect();
    names.extend(name("struct sched_ext_ops "));
    names.retain(|name| !name.is_empty());
    names
}

/// The file that includes the program, and what its object exports beside it.
fn glue(main: &Path, ops: &[&str], vmlinux: &str) -> String {
    let mut text = format!("#include \"{}\"\n#define SCX_WHOLE_OPS\n", main.display());
    if !vmlinux.contains("uclamp_req") {
        text += "#define SCX_NO_UCLAMP\n";
    }
    let each: Vec<_> = ops.iter().map(|name| format!("each({name})")).collect();
    text += &format!("#define SCX_OPS(each) {}\n", each.join(" "));
    text + "#include \"exports.h\"\n"
}

/// The variables by which scx's headers name the values of sched_ext's enumerations, which a loader
/// looks up in the running kernel: those of vmlinux.h.
fn enumerations(vmlinux: &str) -> String {
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for line in vmlinux.lines() {
        let line = line.trim();
        let Some((name, value)) = line.split_once(" = ") else {
            continue;
        };
        let plain = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let value = value.trim_end_matches(',');
        let number = value.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if name.starts_with("SCX_") && name.chars().all(plain) && number && seen.insert(name) {
            text += &format!("unsigned long long __{name} = {value};\n");
        }
    }
    text
}

/// Compiles and links the scheduler at `path`: its folder in a checkout, or the C file of its program.
///
/// # Errors
/// What is missing, all functions and map types at once.
pub fn compile(path: &Path) -> Result<Compiled, CompileError> {
    let sources = Sources::find(path)?;
    let clang = clang::find().map_err(CompileError::Clang)?;
    let vmlinux = read(&sources.vmlinux)?;
    let mut needs = map_types(&sources)?;

    let folder = tempfile::tempdir().map_err(file_error(&std::env::temp_dir()))?;
    let at = |name: &str| folder.path().join(name);
    for (name, text) in OURS {
        write(&at(name), text)?;
    }
    write(&at("vmlinux.h"), &format!("#include \"{}\"\n", sources.vmlinux.display()))?;
    let main = read(&sources.main)?;
    let ops = ops(&main);
    if ops.is_empty() {
        return Err(CompileError::Path {
            reason: "there is no struct sched_ext_ops: expected SCX_OPS_DEFINE(NAME, ...)"
                .to_string(),
            path: sources.main,
        });
    }
    write(&at("program.c"), &glue(&sources.main, &ops, &vmlinux))?;
    write(&at("enumerations.c"), &enumerations(&vmlinux))?;

    let clang = Clang { name: clang, folder: folder.path(), headers: &sources.folders };
    let objects = match objects(&clang, &sources) {
        // What is not supported may well be what the compiler stumbles over.
        Err(CompileError::Source { .. }) if !needs.is_empty() => {
            return Err(CompileError::Unsupported { path: sources.main, needs });
        }
        objects => objects?,
    };
    let object = clang.link(&objects, &sources.main, &mut needs)?;
    if !needs.is_empty() {
        return Err(CompileError::Unsupported { path: sources.main, needs });
    }
    Ok(Compiled { name: sources.name, object })
}

/// Compiles all that is linked.
fn objects(clang: &Clang<'_>, sources: &Sources) -> Result<Vec<PathBuf>, CompileError> {
    let ours = ["more", "enumerations"];
    let made = |name: &str| clang.folder.join(name).with_extension("c");
    let mut objects = (ours.iter())
        .map(|name| clang.object(&made(name), &[], name))
        .collect::<Result<Vec<_>, _>>()?;
    objects.push(clang.program(&made("program"), &sources.main, "program")?);
    for (number, other) in sources.others.iter().enumerate() {
        objects.push(clang.program(other, other, &format!("other{number}"))?);
    }
    Ok(objects)
}

/// A line for each map type of the sources that the simulated kernel does not have, and for arenas.
fn map_types(sources: &Sources) -> Result<Vec<String>, CompileError> {
    let (mut unknown, mut arenas) = (BTreeSet::new(), false);
    for path in sources.all() {
        let text = read(path)?;
        arenas |= text.contains("__arena") || text.contains("sdt_task");
        for rest in text.split("BPF_MAP_TYPE_").skip(1) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let name = &rest[..end.unwrap_or(rest.len())];
            if !name.is_empty() && !MAP_TYPES.contains(&name) {
                unknown.insert(name.to_string());
            }
        }
    }
    let lines =
        unknown.iter().map(|name| format!("  the map type BPF_MAP_TYPE_{name} is not supported"));
    let arenas = arenas.then(|| "  arenas (__arena) are not supported".to_string());
    Ok(lines.chain(arenas).collect())
}

struct Clang<'f> {
    name: String,
    /// The folder that has our headers and gets what is made.
    folder: &'f Path,
    headers: &'f [PathBuf],
}

impl Clang<'_> {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.name);
        // As build.rs compiles perch's own, but that others' warnings are theirs.
        command.args(native::COMPILE).arg("-w");
        let (arch, flags) = native::arch(ARCH).expect("perch itself was built for it");
        command.arg(format!("-D__TARGET_ARCH_{arch}")).args(flags);
        if arch == "x86" {
            command.arg("-D__SCX_TARGET_ARCH_x86");
        }
        command
    }

    fn run(&self, mut command: Command, source: &Path) -> Result<(), CompileError> {
        let output = command
            .output()
            .map_err(|error| CompileError::Clang(format!("{} cannot run: {error}", self.name)))?;
        if output.status.success() {
            return Ok(());
        }
        Err(CompileError::Source {
            path: source.to_path_buf(),
            errors: errors(&String::from_utf8_lossy(&output.stderr)),
        })
    }

    /// Compiles one of our own sources, or what [`Clang::program`] has made.
    fn object(&self, source: &Path, flags: &[&str], name: &str) -> Result<PathBuf, CompileError> {
        let object = self.folder.join(name).with_extension("o");
        let mut command = self.command();
        command.arg("-I").arg(self.folder).args(flags);
        command.arg("-c").arg(source).arg("-o").arg(&object);
        self.run(command, source)?;
        Ok(object)
    }

    /// Compiles a source of the scheduler's. A function that is declared nowhere is one that is
    /// missing, which the linker names with all others.
    fn program(&self, source: &Path, named: &Path, name: &str) -> Result<PathBuf, CompileError> {
        let code = self.folder.join(name).with_extension("ll");
        let mut command = self.command();
        command.args(["-Wno-implicit-function-declaration", "-Wno-int-conversion"]);
        command.args(["-Wno-incompatible-pointer-types", "-Wno-return-type"]);
        // Each source has a license of this name, which only a loader for BPF asks for.
        command.arg(format!("-D_license=scx_license_of_{name}"));
        command.arg("-I").arg(self.folder);
        for folder in self.headers {
            command.arg("-I").arg(folder);
        }
        command.args(["-include", "native.h", "-include", "foreign.h"]);
        command.args(["-Xclang", "-disable-llvm-passes", "-emit-llvm", "-S"]);
        command.arg(source).arg("-o").arg(&code);
        self.run(command, named)?;
        write(&code, &divide_as_bpf(&read(&code)?))?;
        self.object(&code, &[], name)
    }

    /// Links; adds a line to `needs` for each function and variable that is nowhere.
    fn link(
        &self,
        objects: &[PathBuf],
        named: &Path,
        needs: &mut Vec<String>,
    ) -> Result<Vec<u8>, CompileError> {
        let to = self.folder.join("scheduler.so");
        let mut command = Command::new(&self.name);
        command.args(native::LINK).args(objects).arg("-o").arg(&to);
        let output = command
            .env("LC_ALL", "C")
            .output()
            .map_err(|error| CompileError::Clang(format!("{} cannot run: {error}", self.name)))?;
        if output.status.success() {
            return fs::read(&to).map_err(file_error(&to));
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let missing = missing(&words);
        if missing.is_empty() {
            return Err(CompileError::Link {
                path: named.to_path_buf(),
                errors: words.trim().to_string(),
            });
        }
        let lines = missing.iter().map(|name| {
            if data(name) {
                format!("  the kernel's variable {name} is not supported")
            } else {
                format!("  {name}() is not supported")
            }
        });
        needs.extend(lines);
        Ok(Vec::new())
    }
}

/// Variables of the kernel that programs name; all else that is missing is a function.
fn data(name: &str) -> bool {
    name.starts_with("CONFIG_") || name.ends_with("_data") || name == "jiffies"
}

/// The symbols that the linker, GNU's or LLVM's, has not found.
fn missing(words: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for line in words.lines() {
        let behind = ["undefined reference to `", "undefined symbol: "]
            .iter()
            .find_map(|text| line.split(text).nth(1));
        if let Some(name) = behind {
            names.insert(name.trim_end_matches(['\'', ' ']).to_string());
        }
    }
    names
}

/// The compiler's errors, the first ten, each with its place.
fn errors(words: &str) -> String {
    let mut lines: Vec<_> = words
        .lines()
        .filter(|line| line.contains(" error: "))
        .map(|line| format!("  {line}"))
        .collect();
    // The expansion of one macro may be wrong in several ways.
    lines.dedup();
    lines.truncate(10);
    if lines.is_empty() { words.trim().to_string() } else { lines.join("\n") }
}

/// Makes the divisions in LLVM's code those of BPF: by 0 they give 0, and the whole dividend as their
/// remainder, where a CPU would end the process.
fn divide_as_bpf(code: &str) -> String {
    let mut text = String::with_capacity(code.len());
    for line in code.lines() {
        text += &divided(line).unwrap_or_else(|| line.to_string());
        text.push('\n');
    }
    for (operation, _) in DIVISIONS {
        for width in WIDTHS {
            text += &division(operation, width);
        }
    }
    text
}

/// The operations, and whether they give a remainder.
const DIVISIONS: [(&str, bool); 4] =
    [("udiv", false), ("sdiv", false), ("urem", true), ("srem", true)];
const WIDTHS: [&str; 3] = ["i16", "i32", "i64"];

/// The call that stands for a line `%3 = udiv i64 %1, %2`; none for a constant divisor.
fn divided(line: &str) -> Option<String> {
    let (to, rest) = line.split_once(" = ")?;
    let (operation, rest) = rest.split_once(' ')?;
    let (operation, _) = DIVISIONS.iter().find(|(name, _)| *name == operation)?;
    let (width, operands) = rest.split_once(' ')?;
    let (a, b) = operands.split_once(", ")?;
    if !WIDTHS.contains(&width) || !b.starts_with('%') {
        return None;
    }
    let b = b.split(',').next()?;
    Some(format!("{to} = call {width} @scx.{operation}.{width}({width} {a}, {width} {b})"))
}

/// The function that [`divided`] calls.
fn division(operation: &str, width: &str) -> String {
    let remainder = DIVISIONS.iter().any(|(name, is)| *name == operation && *is);
    let otherwise = if remainder { "%a" } else { "0" };
    format!(
        "define internal {width} @scx.{operation}.{width}({width} %a, {width} %b) alwaysinline {{\n\
         %z = icmp eq {width} %b, 0\n\
         %d = select i1 %z, {width} 1, {width} %b\n\
         %q = {operation} {width} %a, %d\n\
         %r = select i1 %z, {width} {otherwise}, {width} %q\n\
         ret {width} %r\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisions_by_zero_are_those_of_bpf() {
        assert_eq!(
            divided("  %3 = udiv i64 %1, %2").as_deref(),
            Some("  %3 = call i64 @scx.udiv.i64(i64 %1, i64 %2)")
        );
        assert_eq!(divided("  %3 = sdiv exact i64 %1, 8"), None);
        assert_eq!(divided("  %3 = urem i32 %1, 10"), None);
        assert!(division("urem", "i32").contains("i32 %a, i32 %q"));
        assert!(division("udiv", "i32").contains("i32 0, i32 %q"));
    }

    #[test]
    fn what_the_linker_misses_is_named_once() {
        let words = "ld: a.o: in function `f':\n\
                     a.c:(.text+0x1): undefined reference to `scx_bpf_xyz'\n\
                     b.c:(.text+0x9): undefined reference to `scx_bpf_xyz'\n\
                     ld.lld: error: undefined symbol: bpf_abc\n";
        let names: Vec<_> = missing(words).into_iter().collect();
        assert_eq!(names, ["bpf_abc", "scx_bpf_xyz"]);
    }

    #[test]
    fn a_scheduler_is_called_what_its_folder_is() {
        let name = |path: &str| name_of(Path::new(path));
        assert_eq!(name("/a/scx_cosmos/src/bpf/main.bpf.c"), "cosmos");
        assert_eq!(name("/a/scx_b/c/scx_simple.bpf.c"), "simple");
        assert_eq!(name("/a/mine.bpf.c"), "mine");
    }

    #[test]
    fn the_tables_of_callbacks_are_found() {
        let text = "SCX_OPS_DEFINE(one_ops,\n .name = \"one\");\n\
                    struct sched_ext_ops two_ops = {};\nconst struct sched_ext_ops *ops;";
        assert_eq!(ops(text), ["one_ops", "two_ops"]);
    }
}
