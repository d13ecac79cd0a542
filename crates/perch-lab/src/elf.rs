// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs as files: the machine that they are for, and the loader and libraries that they need.
//!
//! perch reads them and never runs them as `ldd` would, since a program may be for another machine.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use object::LittleEndian as LE;
use object::elf::{
    DT_NEEDED, DT_RPATH, DT_RUNPATH, DT_STRSZ, DT_STRTAB, EM_AARCH64, EM_X86_64, FileHeader64,
    PT_LOAD,
};
use object::read::StringTable;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};

use crate::arch::Arch;
use crate::error::{Error, Result};

/// The loader and the libraries that a program or a library asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Elf {
    pub arch: Arch,
    /// The loader, which a library and a static program lack.
    pub interpreter: Option<String>,
    /// File names of libraries.
    pub needed: Vec<String>,
    /// Folders to search first, `$ORIGIN` not yet replaced.
    pub run_path: Vec<String>,
}

/// Reads an ELF file; `None` when it is none that a guest can run.
pub(crate) fn parse(file: &[u8]) -> Option<Elf> {
    let header = FileHeader64::<LE>::parse(file).ok()?;
    let mut elf =
        Elf { arch: machine(header)?, interpreter: None, needed: Vec::new(), run_path: Vec::new() };
    // Segments suffice, and `loaded_part` leaves no sections.
    let segments = header.program_headers(LE, file).ok()?;
    for segment in segments {
        if let Ok(Some(interpreter)) = segment.interpreter(LE, file) {
            elf.interpreter = Some(String::from_utf8_lossy(interpreter).into_owned());
        }
        let Ok(Some(entries)) = segment.dynamic(LE, file) else {
            continue;
        };
        let value = |tag| {
            let entry = entries.iter().find(|entry| entry.tag32(LE) == Some(tag))?;
            Some(entry.d_val(LE))
        };
        let (Some(address), Some(size)) = (value(DT_STRTAB), value(DT_STRSZ)) else {
            continue;
        };
        let mut loaded = segments.iter().filter(|s| s.p_type(LE) == PT_LOAD);
        let strings = loaded.find_map(|s| s.data_range(LE, file, address, size).ok()?);
        let strings = StringTable::new(strings.unwrap_or_default(), 0, size);
        for entry in entries {
            let text = || String::from_utf8(entry.string(LE, strings).ok()?.to_vec()).ok();
            match entry.tag32(LE) {
                Some(DT_NEEDED) => elf.needed.extend(text()),
                Some(DT_RPATH | DT_RUNPATH) => {
                    let paths = text().unwrap_or_default();
                    elf.run_path.extend(paths.split(':').map(str::to_string));
                }
                _ => {}
            }
        }
    }
    Some(elf)
}

/// The machine that a file is for; `None` for one that no guest has.
fn machine(header: &FileHeader64<LE>) -> Option<Arch> {
    match header.e_machine.get(LE) {
        EM_X86_64 => Some(Arch::X86_64),
        EM_AARCH64 => Some(Arch::Aarch64),
        _ => None,
    }
}

/// Returns `file` without the parts that no segment loads, symbols and debug information; a debug
/// build of perch shrinks to a tenth. A file that is no ELF file is returned as it is.
pub(crate) fn loaded_part(mut file: Vec<u8>) -> Vec<u8> {
    let Ok(header) = FileHeader64::<LE>::parse(&*file) else {
        return file;
    };
    let Ok(segments) = header.program_headers(LE, &*file) else {
        return file;
    };
    let headers = header.e_phoff.get(LE) + u64::from(header.e_phnum.get(LE)) * 56;
    let ends = segments.iter().map(|s| s.p_offset(LE).saturating_add(s.p_filesz(LE)));
    let end = ends.fold(headers, u64::max) as usize;
    if segments.is_empty() || end >= file.len() {
        return file;
    }
    file.truncate(end);
    // The table of sections is gone, so its offset, entry size, length and names become 0.
    file[0x28..0x30].fill(0);
    file[0x3a..0x40].fill(0);
    file
}

/// The libraries that `program` needs and those that these need, from file name to path.
///
/// Each is looked for in the folders that a file itself names, then in `folders`, in order. The
/// loader is in the result under its whole path.
///
/// # Errors
/// [`Error::Missing`], which names the library that is not found and the file that needs it.
pub(crate) fn libraries(program: &Path, folders: &[PathBuf]) -> Result<BTreeMap<String, PathBuf>> {
    let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
    let mut queue = VecDeque::from([program.to_path_buf()]);
    while let Some(path) = queue.pop_front() {
        let bytes = fs::read(&path).map_err(Error::file("read", &path))?;
        let Some(elf) = parse(&bytes) else {
            continue;
        };
        let missing = |name: &str| {
            Error::Missing(format!(
                "{} needs {name}, which is in none of the host's library folders nor in the \
                 package that it came from; install what has it",
                path.display()
            ))
        };
        if let Some(interpreter) = &elf.interpreter {
            let own = locate_interpreter(interpreter, folders).ok_or_else(|| missing(interpreter));
            found.insert(interpreter.clone(), own?);
        }
        let origin = path.parent().unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        let own = elf.run_path.iter();
        let own = own.map(|folder| {
            PathBuf::from(folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
        });
        let places: Vec<PathBuf> = own.chain(folders.iter().cloned()).collect();
        for name in &elf.needed {
            if found.contains_key(name) || is_loader(name, &found) {
                continue;
            }
            let mut candidates = places.iter().map(|folder| folder.join(name));
            let library = candidates.find(|path| is_for(path, elf.arch));
            let library = library.ok_or_else(|| missing(name))?;
            found.insert(name.clone(), library.clone());
            queue.push_back(library);
        }
    }
    Ok(found)
}

/// Returns whether `name` is the loader, which libc lists among its libraries.
fn is_loader(name: &str, found: &BTreeMap<String, PathBuf>) -> bool {
    found.keys().any(|known| known.starts_with('/') && known.ends_with(&format!("/{name}")))
}

/// The loader's file in `folders`, where a package's own come before the host's, else at its path.
fn locate_interpreter(interpreter: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = Path::new(interpreter);
    let name = path.file_name()?;
    let mut places = folders.iter().map(|folder| folder.join(name));
    places.find(|path| path.is_file()).or_else(|| path.is_file().then(|| path.to_path_buf()))
}

/// The machine that the file at `path` is for, by its first bytes; `None` when it is no ELF file
/// for a guest.
pub(crate) fn arch_of(path: &Path) -> std::io::Result<Option<Arch>> {
    use std::io::Read;
    let mut start = Vec::new();
    let header = size_of::<FileHeader64<LE>>() as u64;
    fs::File::open(path)?.take(header).read_to_end(&mut start)?;
    let header = FileHeader64::<LE>::parse(&*start).ok();
    Ok(header.and_then(machine))
}

/// Returns whether the file at `path` is an ELF file for `arch`.
fn is_for(path: &Path, arch: Arch) -> bool {
    arch_of(path).is_ok_and(|found| found == Some(arch))
}

/// The folders in which the host's loader looks: those of LD_LIBRARY_PATH, those that ld.so.conf(5)
/// lists, then those of the common distributions.
pub(crate) fn host_folders(arch: Arch) -> Vec<PathBuf> {
    let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> =
        std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect();
    configured(Path::new("/etc/ld.so.conf"), &mut folders, 0);
    let triplet = arch.multiarch();
    for base in ["/lib", "/usr/lib"] {
        folders.push(Path::new(base).join(triplet));
    }
    folders.extend(["/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from));
    folders
}

/// Adds the folders that a file in the form of ld.so.conf names. `depth` ends a circle of
/// inclusions.
fn configured(file: &Path, folders: &mut Vec<PathBuf>, depth: u32) {
    let text = fs::read_to_string(file).unwrap_or_default();
    for line in text.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        if let Some(pattern) = line.strip_prefix("include ") {
            let pattern = file.parent().unwrap_or(Path::new("/")).join(pattern.trim());
            let files = pattern.to_str().and_then(|text| glob::glob(text).ok());
            for path in files.into_iter().flatten().flatten().filter(|_| depth < 4) {
                configured(&path, folders, depth + 1);
            }
        } else if line.starts_with('/') {
            folders.push(PathBuf::from(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_very_program_needs() {
        let program = std::env::current_exe().unwrap();
        let elf = parse(&fs::read(&program).unwrap()).unwrap();
        assert_eq!(Some(elf.arch), Arch::host());
        assert!(elf.interpreter.is_some(), "tests are linked dynamically");
        assert!(elf.needed.iter().any(|name| name.starts_with("libc.so")), "{elf:?}");
        let libraries = libraries(&program, &host_folders(elf.arch)).unwrap();
        for name in &elf.needed {
            assert!(is_loader(name, &libraries) || libraries[name].is_file(), "{name}");
        }
        assert!(libraries.contains_key(&elf.interpreter.unwrap()));
    }

    #[test]
    fn a_program_runs_without_what_is_never_loaded() {
        let whole = fs::read(std::env::current_exe().unwrap()).unwrap();
        let before = whole.len();
        let part = loaded_part(whole);
        assert!(part.len() < before);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, &part).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        let ran = std::process::Command::new(&path).arg("--list").output().unwrap();
        assert!(ran.status.success());
        assert!(parse(&part).is_some_and(|elf| !elf.needed.is_empty()));
    }

    #[test]
    fn a_library_that_is_nowhere_is_named_with_who_wants_it() {
        let program = std::env::current_exe().unwrap();
        let interpreter = parse(&fs::read(&program).unwrap()).unwrap().interpreter.unwrap();
        let error = libraries(&program, &[]).unwrap_err().to_string();
        assert!(error.contains(program.to_str().unwrap()), "{error}");
        assert!(!error.contains(&interpreter), "it is at its own path: {error}");
    }

    #[test]
    fn included_files_are_those_that_match_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("ld.so.conf", "include parts/*.conf\n/last # the comment\ninclude /nowhere/*.conf\n");
        write("parts/b.conf", "/b\nrelative\n");
        write("parts/a.conf", "/a\n");
        write("parts/c.conf.old", "/never\n");
        let mut folders = Vec::new();
        configured(&folder.path().join("ld.so.conf"), &mut folders, 0);
        assert_eq!(folders, ["/a", "/b", "/last"].map(PathBuf::from));
        // A file that includes itself ends.
        write("parts/a.conf", "/a\ninclude a.conf\n");
        configured(&folder.path().join("parts/a.conf"), &mut folders, 0);
    }

    #[test]
    fn damaged_headers_do_no_harm() {
        let mut whole = fs::read("/proc/self/exe").unwrap();
        whole.truncate(1 << 16);
        // The header and the segments' headers, byte by byte.
        for at in 4..0x400 {
            for value in [0, 0x7f, 0xff] {
                let was = std::mem::replace(&mut whole[at], value);
                parse(&whole);
                whole[at] = was;
            }
        }
    }

    #[test]
    fn damaged_files_are_no_programs() {
        assert_eq!(parse(b"#!/bin/sh\n"), None);
        let whole = fs::read("/proc/self/exe").unwrap();
        for length in [0, 4, 63, 64, 100, 300] {
            if let Some(elf) = parse(&whole[..length]) {
                assert!(elf.needed.is_empty());
            }
            loaded_part(whole[..length].to_vec());
        }
    }
}
