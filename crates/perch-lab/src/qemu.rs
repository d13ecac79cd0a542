// SPDX-License-Identifier: GPL-2.0-or-later
//! A QEMU that can make the topology: the host's when it is new enough, else one unpacked from the
//! distribution's packages into the store, with the libraries that the host lacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::apt::{Apt, Host, Package};
use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::guest::Clock;
use crate::process;
use crate::store::{Locked, Store};
use crate::tree;

/// The first version in which CPUs can share an L2 cache (`smp-cache` with `modules`).
pub(crate) const WITH_L2_CLUSTERS: Version = (10, 0, 0);

/// The first version with which perch's plugin was tried.
const WITH_PLUGIN: Version = (10, 0, 0);

/// The oldest version on which guests were tried (Debian 12's).
const OLDEST: Version = (7, 2, 0);

/// The folder of the store with unpacked QEMUs.
const SHELF: &str = "qemu";

/// Major, minor and micro.
pub type Version = (u32, u32, u32);

/// The abilities that a QEMU needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The architecture of the guest.
    pub arch: Arch,
    /// True when groups of CPUs share an L2 cache.
    pub l2_clusters: bool,
    /// True when QEMU loads perch's plugin, as it does for a deterministic guest.
    pub plugin: bool,
}

impl Need {
    /// What a guest with this clock needs beside.
    pub fn with_clock(self, clock: Clock) -> Need {
        let plugin = self.plugin || clock.has_plugin();
        Need { plugin, ..self }
    }

    fn program(self) -> String {
        format!("qemu-system-{}", self.arch)
    }

    fn package(self) -> &'static str {
        match self.arch {
            Arch::X86_64 => "qemu-system-x86",
            Arch::Aarch64 => "qemu-system-arm",
        }
    }

    /// The oldest version that has them. arm64's clusters are older than [`OLDEST`].
    fn version(self) -> Version {
        match self.arch {
            _ if self.plugin => WITH_PLUGIN,
            Arch::X86_64 if self.l2_clusters => WITH_L2_CLUSTERS,
            _ => OLDEST,
        }
    }
}

/// A QEMU that runs on this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Qemu {
    /// `qemu-system-x86_64` or its like.
    pub program: PathBuf,
    /// Folders for `-L`; empty when the program finds its data itself.
    pub data: Vec<PathBuf>,
    /// The folder for `LD_LIBRARY_PATH`; `None` when the host has all of its libraries.
    pub library_path: Option<PathBuf>,
    /// The version that it prints itself.
    pub version: Version,
}

impl Qemu {
    /// A QEMU that meets `need`: on PATH, in the store, or from the distribution's own suites or
    /// its backports.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is none and none can be fetched, else the error that prevented
    /// it.
    pub fn find(store: &Store, need: Need) -> Result<Qemu> {
        let installed = tree::on_path(&need.program()).map(|program| Qemu::new(program, None));
        let unfit = match installed {
            Some(Ok(qemu)) if qemu.version >= need.version() => return Ok(qemu),
            Some(Ok(qemu)) => format!("it is {}", dotted(qemu.version)),
            Some(Err(error)) => error.to_string(),
            None => format!("there is no {}", need.program()),
        };
        if let Some(qemu) = kept(store, need) {
            return Ok(qemu);
        }
        let locked = store.lock()?;
        if let Some(qemu) = kept(store, need) {
            return Ok(qemu);
        }
        let version = dotted(need.version());
        let host = Host::find(
            &format!("a QEMU {version} or newer (on PATH {unfit})"),
            &format!("install one, or put it on PATH as {}", need.program()),
        )?;
        fetch(&locked, &host, need)
    }

    /// A command that runs it, its libraries and data folders already given.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        for folder in &self.data {
            command.arg("-L").arg(folder);
        }
        command
    }

    /// The QEMU at `program`, below `tree` when perch unpacked it. perch runs it once, to see
    /// whether it does run and to read its version.
    fn new(program: PathBuf, tree: Option<(&Path, Arch)>) -> Result<Qemu> {
        let mut qemu = Qemu { program, data: Vec::new(), library_path: None, version: (0, 0, 0) };
        if let Some((tree, host)) = tree {
            let folders = ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"];
            let folders = folders.map(|folder| tree.join(folder));
            qemu.data = folders.into_iter().filter(|folder| folder.is_dir()).collect();
            qemu.library_path = Some(tree::libraries(tree, host));
        }
        let mut command = qemu.command();
        let said = process::output(command.arg("--version"), "saying its version")?;
        qemu.version = version(&said).ok_or_else(|| Error::Program {
            program: qemu.program.display().to_string(),
            doing: "saying its version".to_string(),
            said: said.lines().next().unwrap_or_default().to_string(),
        })?;
        Ok(qemu)
    }

    /// The QEMU in a folder of the store.
    fn load(folder: &Path, need: Need) -> Result<Qemu> {
        let program = folder.join("usr/bin").join(need.program());
        Qemu::new(program, Some((folder, host_arch()?)))
    }
}

/// The newest QEMU of the store that meets the need and still runs.
fn kept(store: &Store, need: Need) -> Option<Qemu> {
    let prefix = format!("{}_", need.package());
    let names = store.names(SHELF).into_iter().filter(|name| name.starts_with(&prefix));
    let folders = names.map(|name| store.root().join(SHELF).join(name));
    // An upgrade of the host may remove a library that a QEMU needs; such a QEMU is fetched anew.
    let qemus = folders.filter_map(|folder| Qemu::load(&folder, need).ok());
    qemus.filter(|qemu| qemu.version >= need.version()).max_by_key(|qemu| qemu.version)
}

fn fetch(locked: &Locked, host: &Host, need: Need) -> Result<Qemu> {
    let arch = host_arch()?;
    let package = need.package();
    let (mut best, mut failure) = (None, None);
    let own = Apt::own(locked, host, arch)?;
    let mut selections = vec![own];
    if let Some(backports) = host.backports() {
        selections.push(Apt::own_and(locked, host, arch, &backports)?);
    }
    for apt in &selections {
        // A suite may lack the package, or one that it depends on.
        let packages = match apt.with_dependencies(package) {
            Ok(packages) => packages,
            Err(error) => {
                failure = Some(failure.unwrap_or(error));
                continue;
            }
        };
        let offered = packages.iter().find(|found| found.name == package);
        let Some(offered) = offered.filter(|offered| !offered.version.is_empty()) else {
            continue;
        };
        best = best.max(upstream(&offered.version));
        if upstream(&offered.version) < Some(need.version()) {
            continue;
        }
        let name = format!("{SHELF}/{package}_{}", offered.version.replace(':', "%3a"));
        let plan = |apt: &Apt| -> Result<Vec<Package>> { apt.with_dependencies(package) };
        let what = format!("QEMU {}", offered.version);
        let folder = locked.keep(&name, |folder| {
            apt.unpack(&what, plan, folder)?;
            tree::flatten_libraries(folder, arch)?;
            // A QEMU that does not run is not kept.
            Qemu::load(folder, need).map(drop)
        })?;
        return Qemu::load(&folder, need);
    }
    let offered = match (best, failure) {
        (Some(version), _) => format!("offers {}", dotted(version)),
        (None, Some(failure)) => return Err(failure),
        (None, None) => "offers none".to_string(),
    };
    Err(Error::Missing(format!(
        "this machine needs QEMU {} or newer and the host's distribution {offered}; put a newer \
         {} on PATH, or choose a machine without clusters that share an L2 cache",
        dotted(need.version()),
        need.program()
    )))
}

fn host_arch() -> Result<Arch> {
    Arch::host().ok_or_else(|| {
        Error::Missing(format!(
            "packages can be fetched for x86_64 and aarch64 hosts and this one is {}; install QEMU",
            std::env::consts::ARCH
        ))
    })
}

/// The version in `QEMU emulator version 10.0.2 (…)`.
fn version(said: &str) -> Option<Version> {
    let (_, rest) = said.split_once("version ")?;
    numbers(rest)
}

/// QEMU's own version in the version of a package: 10.0.2 for `1:10.0.2+ds-2~bpo12+1`.
fn upstream(version: &str) -> Option<Version> {
    numbers(version.split_once(':').map_or(version, |(_, rest)| rest))
}

fn numbers(text: &str) -> Option<Version> {
    let end = text.find(|c: char| c != '.' && !c.is_ascii_digit());
    let mut parts = text[..end.unwrap_or(text.len())].split('.');
    let mut next = || parts.next().map_or(Some(0), |part| part.parse().ok());
    Some((next()?, next()?, next()?))
}

fn dotted((major, minor, micro): Version) -> String {
    format!("{major}.{minor}.{micro}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_as_qemu_and_debian_write_them() {
        let said = "QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright (c)\n";
        assert_eq!(version(said), Some((10, 0, 2)));
        assert_eq!(version("QEMU emulator version 9.2\n"), Some((9, 2, 0)));
        assert_eq!(version("something else"), None);
        assert_eq!(upstream("1:10.0.2+ds-2+deb13u1~bpo12+1"), Some((10, 0, 2)));
        assert_eq!(upstream("1:11.0~rc1"), Some((11, 0, 0)));
        assert_eq!(upstream("7.2"), Some((7, 2, 0)));
    }

    #[test]
    fn only_x86_clusters_need_the_newest() {
        let need = |arch, l2_clusters| {
            let plugin = false;
            Need { arch, l2_clusters, plugin }.version()
        };
        assert_eq!(need(Arch::X86_64, true), WITH_L2_CLUSTERS);
        assert_eq!(need(Arch::X86_64, false), OLDEST);
        assert_eq!(need(Arch::Aarch64, true), OLDEST);
    }
}
