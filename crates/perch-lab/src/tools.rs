// SPDX-License-Identifier: GPL-2.0-or-later
//! Programs to run in a guest: the host's own, or those of Debian's packages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::apt::{Apt, Host};
use crate::arch::Arch;
use crate::elf::{self, Elf};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::tree;

/// A program that perch can fetch.
struct Known {
    name: &'static str,
    /// Debian's package.
    package: &'static str,
    /// Its path in the package.
    path: &'static str,
    /// A file that the program reads, at the same path in the package and in the guest.
    data: Option<&'static str>,
}

const fn known(
    name: &'static str,
    package: &'static str,
    path: &'static str,
    data: Option<&'static str>,
) -> Known {
    Known { name, package, path, data }
}

/// The file of operations that tbench and dbench replay.
const CLIENT: Option<&str> = Some("usr/share/dbench/client.txt");

/// The benchmarks that Debian packages, and programs that are handy beside them.
const KNOWN: [Known; 15] = [
    known("bpftool", "bpftool", "usr/sbin/bpftool", None),
    known("busybox", "busybox-static", "bin/busybox", None),
    known("cyclictest", "rt-tests", "usr/bin/cyclictest", None),
    known("dbench", "dbench", "usr/bin/dbench", CLIENT),
    known("hackbench", "rt-tests", "usr/bin/hackbench", None),
    known("iperf3", "iperf3", "usr/bin/iperf3", None),
    known("netperf", "netperf", "usr/bin/netperf", None),
    known("netserver", "netperf", "usr/bin/netserver", None),
    known("numactl", "numactl", "usr/bin/numactl", None),
    known("perf", "linux-perf", "usr/bin/perf", None),
    known("rt-app", "rt-app", "usr/bin/rt-app", None),
    known("stress-ng", "stress-ng", "usr/bin/stress-ng", None),
    known("sysbench", "sysbench", "usr/bin/sysbench", None),
    known("tbench", "dbench", "usr/bin/tbench", CLIENT),
    known("tbench_srv", "dbench", "usr/bin/tbench_srv", None),
];

/// The applets of Debian's busybox, separated by white space.
const APPLETS: &str = include_str!("tools/applets.txt");

/// A program, and the files that it needs to run in a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// The program's name in the guest.
    pub name: String,
    /// Its path on the host.
    pub program: PathBuf,
    /// Paths on the host of its libraries, by file name, and of its loader, by its path in the
    /// guest.
    pub libraries: BTreeMap<String, PathBuf>,
    /// Files that it reads: the path on the host, and the path at which it looks for them.
    pub files: Vec<(PathBuf, String)>,
}

impl Tool {
    /// The program `name` for guests of `arch`: a path, a program on the host's PATH, or a known
    /// one from its Debian package, which is fetched into the store once.
    ///
    /// # Errors
    /// [`Error::Input`] when it is unknown and nowhere to be found, or cannot run in such a guest,
    /// else the error that prevented fetching it.
    pub fn find(store: &Store, name: &str, arch: Arch) -> Result<Tool> {
        let known = KNOWN.iter().find(|known| known.name == name);
        match (own(name, known, arch), known) {
            (Some(path), known) => {
                let folders = elf::host_folders(arch);
                let mut tool = assemble(&path, arch, &folders)?;
                if let Some(known) = known {
                    tool.name = name.to_string();
                    tool.files = known.files(Path::new("/"))?;
                }
                Ok(tool)
            }
            (None, Some(known)) => packaged(store, known, arch),
            (None, None) => Err(unknown(name, arch)),
        }
    }

    /// Refuses the program `name` where [`Tool::find`] cannot have it and busybox has no such applet.
    /// Fetches nothing, so a program that a package has may still be refused later.
    ///
    /// # Errors
    /// As [`Tool::find`].
    pub fn foresee(name: &str, arch: Arch) -> Result<()> {
        let is_applet = APPLETS.split_whitespace().any(|applet| applet == name);
        let known = KNOWN.iter().find(|known| known.name == name);
        match own(name, known, arch) {
            _ if is_applet => Ok(()),
            Some(path) => assemble(&path, arch, &elf::host_folders(arch)).map(drop),
            None if known.is_some() => Ok(()),
            None => Err(unknown(name, arch)),
        }
    }

    /// The program at `path` with libraries from the host's folders; the program may be for another
    /// architecture than the host's.
    pub(crate) fn at(path: &Path) -> Result<Tool> {
        let bytes = fs::read(path).map_err(Error::file("read the program", path))?;
        let arch = elf::parse(&bytes).map(|elf| elf.arch).or_else(Arch::host);
        let arch = arch.ok_or_else(|| unfit(path, "it is no program for a guest"))?;
        assemble(path, arch, &elf::host_folders(arch))
    }
}

/// Busybox: a guest's shell and everyday programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busybox {
    /// The program.
    pub tool: Tool,
    /// The names of its applets.
    pub applets: Vec<String>,
}

impl Busybox {
    /// The host's busybox, else Debian's static one.
    ///
    /// # Errors
    /// As [`Tool::find`]; [`Error::Input`] when its table of applets is not found, which every
    /// busybox had so far.
    pub fn find(store: &Store, arch: Arch) -> Result<Busybox> {
        let tool = Tool::find(store, "busybox", arch)?;
        let bytes = fs::read(&tool.program).map_err(Error::file("read", &tool.program))?;
        let applets = applets(&bytes);
        if !applets.iter().any(|name| name == "sh") {
            return Err(unfit(&tool.program, "it is no busybox with a shell"));
        }
        Ok(Busybox { tool, applets })
    }
}

/// The names in a busybox's table of applets, sorted. perch reads the table because it cannot run a
/// busybox of another architecture. The names stand one behind the other, each with a zero at its
/// end, and a further zero ends the table; the first are those of test(1).
fn applets(busybox: &[u8]) -> Vec<String> {
    const FIRST: &[u8] = b"\0[\0[[\0";
    let found = busybox.windows(FIRST.len()).position(|at| at == FIRST);
    let table = found.map_or(&[][..], |at| &busybox[at + 1..]);
    let names = table.split(|byte| *byte == 0);
    let names = names.take_while(|name| !name.is_empty());
    names.map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

impl Known {
    /// Its data below `root`, and their path in the guest.
    fn files(&self, root: &Path) -> Result<Vec<(PathBuf, String)>> {
        let Some(data) = self.data else {
            return Ok(Vec::new());
        };
        let file = root.join(data);
        if !file.is_file() {
            return Err(Error::Missing(format!(
                "{} reads {}, which is not there; install {} whole",
                self.name,
                file.display(),
                self.package
            )));
        }
        Ok(vec![(file, format!("/{data}"))])
    }
}

/// The program of this host that `name` means in a guest of `arch`, if there is one.
fn own(name: &str, known: Option<&Known>, arch: Arch) -> Option<PathBuf> {
    if name.contains('/') {
        Some(PathBuf::from(name)).filter(|path| path.exists())
    } else if Arch::host() == Some(arch) {
        installed(name, known)
    } else {
        None
    }
}

fn unknown(name: &str, arch: Arch) -> Error {
    if name.contains('/') {
        return Error::Input(format!(
            "there is no program {name}: expected a path or a name on PATH"
        ));
    }
    Error::Input(format!(
        "there is no `{name}` on PATH for {arch}, and perch has no package for it (it has them for {}); \
         install it, or give its path",
        KNOWN.map(|known| known.name).join(", ")
    ))
}

/// The program on the host; of a wrapper, the program that the wrapper runs.
fn installed(name: &str, known: Option<&Known>) -> Option<PathBuf> {
    let path = tree::on_path(name)?;
    let script = fs::read(&path).is_ok_and(|bytes| bytes.starts_with(b"#!"));
    if !script || known.is_none() {
        return Some(path);
    }
    // Distributions that keep a perf for each kernel have a script that runs the running one's.
    let folders = ["/usr/lib/linux-tools", "/usr/lib"];
    let mut programs: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(folder).into_iter().flatten())
        .filter_map(|entry| Some(entry.ok()?.path().join(name)))
        .chain(versioned(path.parent()?, name))
        .filter(|path| path.is_file())
        .collect();
    programs.sort();
    programs.pop()
}

/// `NAME_VERSION` beside a wrapper called `NAME`.
fn versioned(folder: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("{name}_");
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .filter(|path| {
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let version = file.strip_prefix(&prefix).unwrap_or_default();
            version.starts_with(|c: char| c.is_ascii_digit())
        })
        .collect()
}

/// A known program from its package, which is fetched when the store lacks it.
fn packaged(store: &Store, known: &Known, arch: Arch) -> Result<Tool> {
    let name = format!("tools/{arch}/{}", known.package);
    let folder = match store.get(&name) {
        Some(folder) => folder,
        None => fetch(store, known, arch, &name)?,
    };
    // The package's own libraries come first: the host's may be of other versions since an update.
    let mut folders = vec![tree::libraries(&folder, arch)];
    if Arch::host() == Some(arch) {
        folders.extend(elf::host_folders(arch));
    }
    // A package may have the program in /usr or beside it.
    let places = [folder.join(known.path), folder.join("usr").join(known.path)];
    let program = places.iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::Missing(format!(
            "Debian's {} has no {}; install {} and give its path",
            known.package, known.path, known.name
        ))
    })?;
    let mut tool = assemble(program, arch, &folders)?;
    tool.name = known.name.to_string();
    tool.files = known.files(&folder)?;
    Ok(tool)
}

fn fetch(store: &Store, known: &Known, arch: Arch, name: &str) -> Result<PathBuf> {
    let locked = store.lock()?;
    if let Some(folder) = store.get(name) {
        return Ok(folder);
    }
    let host = Host::find(
        &format!("`{}`, which is not on PATH,", known.name),
        "install it, or give its path",
    )?;
    let apt = Apt::own(&locked, &host, arch)?;
    locked.keep(name, |folder| {
        let plan = |apt: &Apt| apt.with_dependencies(known.package);
        apt.unpack(known.package, plan, folder)?;
        tree::flatten_libraries(folder, arch)
    })
}

/// The program at `path` with its libraries from `folders`.
fn assemble(path: &Path, arch: Arch, folders: &[PathBuf]) -> Result<Tool> {
    let bytes = fs::read(path).map_err(Error::file("read the program", path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut tool =
        Tool { name, program: path.to_path_buf(), libraries: BTreeMap::new(), files: Vec::new() };
    match elf::parse(&bytes) {
        Some(elf) if elf.arch == arch => {
            tool.libraries = elf::libraries(path, folders)?;
            tool.libraries.extend(loaded_later(&elf, folders));
            Ok(tool)
        }
        Some(elf) => Err(unfit(path, &format!("it is for {} and the guest is {arch}", elf.arch))),
        None => match interpreter(&bytes).as_deref() {
            Some("sh" | "ash") => Ok(tool),
            Some(other) => {
                Err(unfit(path, &format!("it is a script for {other}, which guests lack")))
            }
            None => Err(unfit(path, "it is neither a program nor a script for sh")),
        },
    }
}

/// The library that glibc loads when a thread ends or is cancelled, which no ELF file names.
fn loaded_later(elf: &Elf, folders: &[PathBuf]) -> Option<(String, PathBuf)> {
    elf.interpreter.as_ref()?;
    let name = "libgcc_s.so.1";
    let mut places = folders.iter().map(|folder| folder.join(name));
    Some((name.to_string(), places.find(|path| path.is_file())?))
}

/// The interpreter that a script's first line names.
fn interpreter(bytes: &[u8]) -> Option<String> {
    let line = bytes.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
    match words.next()? {
        "env" => words.find(|word| !word.starts_with('-')).map(str::to_string),
        program => Some(program.to_string()),
    }
}

fn unfit(path: &Path, why: &str) -> Error {
    Error::Input(format!("{} cannot run in a guest: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_on_path_comes_with_its_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        let Some(arch) = Arch::host() else { return };
        let tool = Tool::find(&store, "sh", arch).unwrap();
        assert_eq!(tool.name, "sh");
        assert!(tool.libraries.values().all(|path| path.is_file()), "{tool:?}");
    }

    #[test]
    fn what_cannot_run_is_refused_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path()).unwrap();
        let refused = |name: &str| {
            let error = Tool::find(&store, name, Arch::X86_64).unwrap_err();
            error.to_string()
        };
        let unknown = refused("perch-no-such-program");
        assert!(unknown.contains("hackbench") && unknown.contains("give its path"), "{unknown}");
        let script = folder.path().join("script");
        fs::write(&script, "#!/usr/bin/env -S python3 -u\n").unwrap();
        let message = refused(script.to_str().unwrap());
        assert!(message.contains("a script for python3"), "{message}");
        fs::write(&script, "#! /bin/sh\n").unwrap();
        assert!(Tool::find(&store, script.to_str().unwrap(), Arch::X86_64).is_ok());
        fs::write(&script, "text").unwrap();
        assert!(refused(script.to_str().unwrap()).contains("neither a program nor"));
        assert!(refused("./no-such-file").contains("no-such-file"));
    }

    #[test]
    fn missing_program_is_refused_before_anything_is_fetched() {
        let foreseen = |name: &str| Tool::foresee(name, Arch::X86_64).map_err(|e| e.to_string());
        let unknown = foreseen("perch-no-such-program").unwrap_err();
        assert!(unknown.contains("give its path"), "{unknown}");
        assert!(foreseen("./no-such-file").unwrap_err().contains("no-such-file"));
        // Debian has the first, and busybox the second.
        assert_eq!(foreseen("hackbench"), Ok(()));
        assert_eq!(foreseen("watchdog"), Ok(()));
    }

    #[test]
    fn a_busybox_tells_its_applets_without_being_run() {
        let table = b"code\0[\0[[\0acpid\0sh\0zcat\0\0more";
        assert_eq!(applets(table), ["[", "[[", "acpid", "sh", "zcat"]);
        assert_eq!(applets(b"\0[\0"), [""; 0]);
        assert_eq!(applets(b"\0[\0[[\0"), ["[", "[["]);
    }

    #[test]
    fn known_programs_are_sorted() {
        assert!(KNOWN.is_sorted_by_key(|known| known.name));
    }
}
