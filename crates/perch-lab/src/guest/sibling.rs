// SPDX-License-Identifier: GPL-2.0-or-later
//! The perch that is the agent in a guest: this very program, or the one that was built from the
//! same sources for the guest's architecture.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use crate::arch::Arch;
use crate::elf;
use crate::error::{Error, Result};

/// The perch for guests of `arch`; `perch` is the host's.
///
/// For another architecture than the host's it is the file that the environment variable
/// PERCH_ARM64 (PERCH_AMD64) names, else `perch-arm64` beside `perch`, else where cargo puts what
/// it builds for another target.
///
/// # Errors
/// [`Error::Missing`] with how to come by it when there is none, [`Error::Input`] when the file
/// that the variable names is for another architecture.
pub fn perch_for(arch: Arch, perch: &Path) -> Result<PathBuf> {
    // `perch` itself may be for that architecture.
    if Arch::host() == Some(arch) || built_for(perch)? == Some(arch) {
        return Ok(perch.to_path_buf());
    }
    let variable = variable(arch);
    find(arch, perch, std::env::var_os(&variable))
}

fn variable(arch: Arch) -> String {
    format!("PERCH_{}", arch.debian().to_uppercase())
}

fn find(arch: Arch, perch: &Path, named: Option<OsString>) -> Result<PathBuf> {
    let variable = variable(arch);
    if let Some(path) = named.filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        let built = elf::arch_of(&path);
        let built = built.map_err(|why| {
            let path = path.display();
            Error::Input(format!("{variable} is {path}, which cannot be read: {why}"))
        });
        return match built? {
            Some(found) if found == arch => Ok(path),
            found => Err(Error::Input(format!(
                "{variable} is {}, which is {}; a perch for {arch} is needed (./x cross builds one)",
                path.display(),
                found.map_or("no program".to_string(), |found| format!("for {found}"))
            ))),
        };
    }
    let own = fs::canonicalize(perch).map_err(Error::file("find", perch))?;
    let places = places(arch, &own);
    let there = |path: &&PathBuf| built_for(path).is_ok_and(|found| found == Some(arch));
    places.iter().find(there).cloned().ok_or_else(|| {
        Error::Missing(format!(
            "the agent in a guest for {arch} is a perch for {arch}, and there is none; build it \
             (./x cross in perch's sources), or put one at {} or where {variable} says",
            places[0].display()
        ))
    })
}

/// The paths that it may have, the best first: beside the host's perch, then in cargo's folder for
/// the target, of the same profile or of the other.
fn places(arch: Arch, own: &Path) -> Vec<PathBuf> {
    let folder = own.parent().unwrap_or(Path::new("/"));
    let mut places = vec![folder.join(format!("perch-{}", arch.debian()))];
    if let Some(root) = folder.parent() {
        let target = root.join(format!("{arch}-unknown-linux-gnu"));
        let same = folder.file_name().unwrap_or_default();
        let profiles = [same, "debug".as_ref(), "release".as_ref()];
        places.extend(profiles.map(|profile| target.join(profile).join("perch")));
    }
    places
}

fn built_for(path: &Path) -> Result<Option<Arch>> {
    elf::arch_of(path).map_err(Error::file("read", path))
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// The shortest bytes that [`built_for`] takes for a program.
    fn program(arch: Arch) -> Vec<u8> {
        let mut file = vec![0; 64];
        file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        let machine: u16 = match arch {
            Arch::X86_64 => object::elf::EM_X86_64,
            Arch::Aarch64 => object::elf::EM_AARCH64,
        };
        file[18..20].copy_from_slice(&machine.to_le_bytes());
        file
    }

    fn put(folder: &TempDir, path: &str, arch: Arch) -> PathBuf {
        let path = fs::canonicalize(folder.path()).unwrap().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, program(arch)).unwrap();
        path
    }

    #[test]
    fn the_nearest_sibling_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let own = put(&folder, "debug/perch", Arch::X86_64);
        let found = |named: Option<&Path>| {
            let named = named.map(|path| path.as_os_str().to_os_string());
            find(Arch::Aarch64, &own, named)
        };
        let none = found(None).unwrap_err().to_string();
        assert!(none.contains("./x cross") && none.contains("PERCH_ARM64"), "{none}");
        assert!(none.contains("debug/perch-arm64"), "{none}");

        let cross = "aarch64-unknown-linux-gnu";
        let release = put(&folder, &format!("{cross}/release/perch"), Arch::Aarch64);
        assert_eq!(found(None).unwrap(), release);
        let debug = put(&folder, &format!("{cross}/debug/perch"), Arch::Aarch64);
        assert_eq!(found(None).unwrap(), debug);
        // A program for the host is refused although its name says that it is for arm64.
        let beside = put(&folder, "debug/perch-arm64", Arch::X86_64);
        assert_eq!(found(None).unwrap(), debug);
        let beside_now = put(&folder, "debug/perch-arm64", Arch::Aarch64);
        assert_eq!((found(None).unwrap(), &beside_now), (beside.clone(), &beside));

        let named = put(&folder, "elsewhere", Arch::Aarch64);
        assert_eq!(found(Some(&named)).unwrap(), named);
        let wrong = found(Some(&own)).unwrap_err().to_string();
        assert!(wrong.contains("for x86_64; a perch for aarch64"), "{wrong}");
        let gone = found(Some(Path::new("/no/such/perch"))).unwrap_err().to_string();
        assert!(gone.starts_with("PERCH_ARM64 is /no/such/perch,"), "{gone}");
    }

    #[test]
    fn a_guest_like_the_host_runs_the_host_s_own() {
        let Some(host) = Arch::host() else { return };
        let own = Path::new("/proc/self/exe");
        assert_eq!(perch_for(host, own).unwrap(), own);
    }
}
