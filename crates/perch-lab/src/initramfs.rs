// SPDX-License-Identifier: GPL-2.0-or-later
//! The guest's files: an initramfs, which the kernel unpacks into memory.
//!
//! A guest has one folder of programs and one of libraries, and every name by which loaders and
//! scripts of the common distributions know these leads there; so a program from any of them
//! finds what it needs at the path where it looks.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cpio::{Kind, Writer};
use crate::elf;
use crate::error::{Error, Result};
use crate::kernel::Kernel;
use crate::tools::{Busybox, Tool};

/// The folder of programs.
const PROGRAMS: &str = "usr/bin";

/// The folder of libraries.
const LIBRARIES: &str = "usr/lib";

/// Names that lead to [`PROGRAMS`] or [`LIBRARIES`], longest first.
const ALIASES: [(&str, &str); 8] = [
    ("usr/lib/aarch64-linux-gnu", LIBRARIES),
    ("usr/lib/x86_64-linux-gnu", LIBRARIES),
    ("usr/lib64", LIBRARIES),
    ("usr/sbin", PROGRAMS),
    ("lib64", LIBRARIES),
    ("sbin", PROGRAMS),
    ("bin", PROGRAMS),
    ("lib", LIBRARIES),
];

/// Folders that the guest's init mounts something on, or that programs write to.
const FOLDERS: [&str; 9] = ["dev", "etc", "mnt", "proc", "root", "run", "sys", "tmp", "var"];

/// The files of /etc that programs read before they use a network, here only the loopback.
const ETC: [(&str, &str); 6] = [
    ("etc/hosts", "127.0.0.1 localhost guest\n::1 localhost guest\n"),
    ("etc/protocols", "ip 0 IP\nicmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nipv6 41 IPv6\n"),
    ("etc/services", "echo 7/tcp\necho 7/udp\ndomain 53/udp\n"),
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"),
    ("etc/group", "root:x:0:\nnogroup:x:65534:\n"),
    (
        "etc/nsswitch.conf",
        "passwd: files\ngroup: files\nhosts: files\nprotocols: files\nservices: files\n",
    ),
];

#[derive(Clone)]
enum Entry {
    Folder,
    Link(String),
    Device(u32, u32),
    /// Permissions and content.
    Bytes(u32, Vec<u8>),
    /// The host's file, which is read when the archive is built; of a program only the parts that
    /// are loaded go in.
    Host(PathBuf, Shape),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Program,
    Data,
}

/// The files of a guest's first file system.
#[derive(Clone)]
pub struct Contents {
    /// The entries by path, relative to the root; their order puts a folder before its files.
    entries: BTreeMap<String, Entry>,
}

impl Contents {
    /// A file system with `init` as the program that the kernel starts, and with the files of every
    /// guest: /dev/console, empty folders to mount on and the files of /etc that programs read.
    pub fn new(init: impl Into<Vec<u8>>) -> Contents {
        let mut contents = Contents { entries: BTreeMap::new() };
        for folder in FOLDERS.iter().chain(&[PROGRAMS, LIBRARIES]) {
            contents.folder(folder);
        }
        for (alias, folder) in ALIASES {
            let up = "../".repeat(alias.matches('/').count());
            contents.put(alias, Entry::Link(format!("{up}{folder}")));
        }
        contents.put("dev/console", Entry::Device(5, 1));
        for (path, text) in ETC {
            contents.bytes(path, 0o644, text);
        }
        contents.bytes("init", 0o755, init);
        contents
    }

    /// Adds an empty folder and those above it.
    pub fn folder(&mut self, guest: &str) -> &mut Contents {
        let path = settled(guest);
        for (at, _) in path.match_indices('/') {
            let above = &path[..at];
            self.entries.entry(above.to_string()).or_insert(Entry::Folder);
        }
        self.entries.entry(path).or_insert(Entry::Folder);
        self
    }

    /// Adds a file with these permissions (0o644, 0o755) and bytes.
    pub fn bytes(&mut self, guest: &str, mode: u32, bytes: impl Into<Vec<u8>>) -> &mut Contents {
        self.put(&settled(guest), Entry::Bytes(mode, bytes.into()))
    }

    /// Adds a symbolic link at `guest` that leads to `target`.
    pub fn link(&mut self, guest: &str, target: &str) -> &mut Contents {
        self.put(&settled(guest), Entry::Link(target.to_string()))
    }

    /// Adds a file of the host with its permissions, read when the archive is built.
    pub fn file(&mut self, host: &Path, guest: &str) -> &mut Contents {
        self.put(&settled(guest), Entry::Host(host.to_path_buf(), Shape::Data))
    }

    /// Adds a program of the host, with its loader and libraries.
    ///
    /// # Errors
    /// [`Error::File`] when it cannot be read, [`Error::Missing`] when a library is missing.
    pub fn program(&mut self, host: &Path, guest: &str) -> Result<&mut Contents> {
        let tool = Tool::at(host)?;
        Ok(self.add(&tool, guest))
    }

    /// Adds the running program as /bin/perch.
    ///
    /// # Errors
    /// As [`Contents::program`].
    pub fn perch(&mut self) -> Result<&mut Contents> {
        // The program's path will not do: a newer build may have replaced the file since.
        self.program(Path::new("/proc/self/exe"), "bin/perch")
    }

    /// Adds a tool under its name in /bin, with all that it needs.
    pub fn tool(&mut self, tool: &Tool) -> &mut Contents {
        self.add(tool, &format!("{PROGRAMS}/{}", tool.name))
    }

    /// Adds busybox, and a link for each of its applets whose name no other file has.
    pub fn busybox(&mut self, busybox: &Busybox) -> &mut Contents {
        self.tool(&busybox.tool);
        for applet in &busybox.applets {
            let path = format!("{PROGRAMS}/{applet}");
            let link = Entry::Link("busybox".to_string());
            self.entries.entry(path).or_insert(link);
        }
        self
    }

    /// Adds the kernel's configuration, which programs look for in /boot/config-RELEASE, and the
    /// modules that the guest's init loads.
    pub fn kernel(&mut self, kernel: &Kernel) -> &mut Contents {
        if let Some(config) = &kernel.config {
            self.file(config, &format!("boot/config-{}", kernel.release));
        }
        for module in &kernel.modules {
            let name = module.file_name().unwrap_or_default().to_string_lossy();
            self.file(module, &format!("modules/{name}"));
        }
        self
    }

    /// Writes the archive, uncompressed, to the file `out`, and returns its size in bytes.
    ///
    /// # Errors
    /// [`Error::File`] when a file cannot be read or `out` cannot be written.
    pub fn build(&self, out: &Path) -> Result<u64> {
        let failed = |error| Error::file("write", out)(error);
        let mut writer = Writer::new(BufWriter::new(File::create(out).map_err(failed)?));
        for (path, entry) in &self.entries {
            let written = match entry {
                Entry::Folder => writer.entry(path, 0o755, &Kind::Folder),
                Entry::Link(target) => writer.entry(path, 0o777, &Kind::Link(target)),
                Entry::Device(major, minor) => {
                    writer.entry(path, 0o600, &Kind::Device(*major, *minor))
                }
                Entry::Bytes(mode, bytes) => writer.entry(path, *mode, &Kind::File(bytes)),
                Entry::Host(host, shape) => {
                    let (mode, bytes) = read(host, *shape)?;
                    writer.entry(path, mode, &Kind::File(&bytes))
                }
            };
            written.map_err(failed)?;
        }
        writer.finish().map_err(failed)
    }

    fn add(&mut self, tool: &Tool, guest: &str) -> &mut Contents {
        let program = |path: &PathBuf| Entry::Host(path.clone(), Shape::Program);
        self.put(&settled(guest), program(&tool.program));
        for (name, host) in &tool.libraries {
            let path = match name.strip_prefix('/') {
                // The loader goes to the path that stands in the program.
                Some(path) => settled(path),
                None => format!("{LIBRARIES}/{name}"),
            };
            // Two tools that bring the same library share the first one's.
            if !self.entries.contains_key(&path) {
                self.put(&path, program(host));
            }
        }
        for (host, guest) in &tool.files {
            self.file(host, guest);
        }
        self
    }

    fn put(&mut self, path: &str, entry: Entry) -> &mut Contents {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above);
        }
        self.entries.insert(path.to_string(), entry);
        self
    }
}

/// The path without a slash in front, and with aliases followed.
fn settled(guest: &str) -> String {
    let parts = guest.split('/').filter(|part| !matches!(*part, "" | "."));
    let mut path = parts.collect::<Vec<_>>().join("/");
    // The path that an alias leads to may begin with another alias.
    while let Some(next) = ALIASES.iter().find_map(|(alias, folder)| {
        let rest = path.strip_prefix(alias)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| format!("{folder}{rest}"))
    }) {
        path = next;
    }
    path
}

fn read(host: &Path, shape: Shape) -> Result<(u32, Vec<u8>)> {
    let bytes = fs::read(host).map_err(Error::file("read", host))?;
    let metadata = fs::metadata(host).map_err(Error::file("read", host))?;
    Ok(match shape {
        Shape::Program => (0o755, elf::loaded_part(bytes)),
        Shape::Data => (metadata.permissions().mode() & 0o777, bytes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(contents: &Contents) -> Vec<&str> {
        contents.entries.keys().map(String::as_str).collect()
    }

    #[test]
    fn every_name_of_a_folder_leads_to_the_same_one() {
        assert_eq!(settled("/lib64/ld-linux-x86-64.so.2"), "usr/lib/ld-linux-x86-64.so.2");
        assert_eq!(settled("/lib/x86_64-linux-gnu/libc.so.6"), "usr/lib/libc.so.6");
        assert_eq!(settled("/usr/sbin/x"), "usr/bin/x");
        assert_eq!(settled("bin//sh"), "usr/bin/sh");
        assert_eq!(settled("/library/x"), "library/x");
    }

    #[test]
    fn folders_come_before_what_is_in_them() {
        let mut contents = Contents::new("#!/bin/sh\n");
        contents.bytes("/a/b/c", 0o644, "x").bytes("/opt/x", 0o755, "y");
        let keys = keys(&contents);
        let at = |path: &str| keys.iter().position(|key| *key == path).unwrap();
        assert!(at("a") < at("a/b") && at("a/b") < at("a/b/c"));
        assert!(at("dev") < at("dev/console"));
        assert!(keys.contains(&"init") && keys.contains(&"etc/hosts"));
        assert!(matches!(contents.entries["lib64"], Entry::Link(ref to) if to == "usr/lib"));
        assert!(matches!(contents.entries["usr/sbin"], Entry::Link(ref to) if to == "../usr/bin"));
    }

    #[test]
    fn a_program_brings_its_loader_and_libraries() {
        let mut contents = Contents::new("");
        contents.perch().unwrap();
        let keys = keys(&contents);
        assert!(keys.contains(&"usr/bin/perch"));
        assert!(keys.iter().any(|key| key.starts_with("usr/lib/libc.so")), "{keys:?}");
        assert!(keys.iter().any(|key| key.starts_with("usr/lib/ld-linux")), "{keys:?}");
    }

    #[test]
    fn the_same_contents_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let build = |name: &str| {
            let mut contents = Contents::new("#!/bin/sh\n");
            contents.perch().unwrap();
            let out = folder.path().join(name);
            let size = contents.build(&out).unwrap();
            let bytes = fs::read(&out).unwrap();
            assert_eq!(bytes.len() as u64, size);
            bytes
        };
        assert!(build("a") == build("b"));
    }

    #[test]
    fn a_tool_wins_over_the_applet_of_its_name() {
        let tool = |name: &str| Tool {
            name: name.to_string(),
            program: PathBuf::from("/bin/true"),
            libraries: BTreeMap::new(),
            files: Vec::new(),
        };
        let busybox = Busybox {
            tool: tool("busybox"),
            applets: vec!["sh".to_string(), "taskset".to_string()],
        };
        for first in [true, false] {
            let mut contents = Contents::new("");
            if first {
                contents.tool(&tool("taskset"));
            }
            contents.busybox(&busybox);
            if !first {
                contents.tool(&tool("taskset"));
            }
            assert!(matches!(contents.entries["usr/bin/taskset"], Entry::Host(..)));
            assert!(matches!(contents.entries["usr/bin/sh"], Entry::Link(_)));
        }
    }
}
