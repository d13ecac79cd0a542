// SPDX-License-Identifier: GPL-2.0-or-later
//! Packages of the distribution, through an apt with a state of its own inside the store: this
//! module changes nothing of the host's, and needs no root.

mod host;
mod sources;

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::process;
use crate::store::{Locked, Store};

pub(crate) use host::Host;
use sources::Source;

/// The age up to which package lists are used again, unless the mirror has dropped a package that
/// they name.
const LISTS_KEEP: Duration = Duration::from_secs(24 * 3600);

/// The bytes on disk for each byte of a package: the package itself, its files (xz packs kernels
/// and libraries to a quarter), and a kernel's payload, which is unpacked once more.
const ROOM_PER_BYTE: u64 = 10;

/// The bytes on disk that lists and apt's own files take. Bookworm's and sid's lists are 9 and 24
/// MB.
const ROOM_FOR_LISTS: u64 = 100_000_000;

/// A package of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Package {
    pub name: String,
    /// The version; empty for the newest.
    pub version: String,
}

impl Package {
    pub fn newest(name: impl Into<String>) -> Package {
        Package { name: name.into(), version: String::new() }
    }

    fn argument(&self) -> String {
        if self.version.is_empty() {
            self.name.clone()
        } else {
            format!("{}={}", self.name, self.version)
        }
    }
}

/// One selection of suites for one architecture.
pub(crate) struct Apt<'a> {
    locked: &'a Locked<'a>,
    folder: PathBuf,
    /// The selection's name in messages and file names.
    name: String,
    /// `-o` arguments that every program of apt gets.
    options: Vec<OsString>,
    /// True when the packages are for another architecture than the host's.
    foreign: bool,
    /// The suite that wins over the others of the selection.
    preferred: Option<String>,
}

impl<'a> Apt<'a> {
    /// The suite `suite` alone, from the host's mirror.
    pub fn suite(locked: &'a Locked, host: &Host, arch: Arch, suite: &str) -> Result<Apt<'a>> {
        let source = host.archive().other(suite);
        Apt::new(locked, arch, suite, &[source], None)
    }

    /// The host's own suites.
    pub fn own(locked: &'a Locked, host: &Host, arch: Arch) -> Result<Apt<'a>> {
        Apt::new(locked, arch, "own", host.sources(), None)
    }

    /// The host's own suites and `suite`, whose packages win over theirs.
    pub fn own_and(locked: &'a Locked, host: &Host, arch: Arch, suite: &str) -> Result<Apt<'a>> {
        let mut sources = host.sources().to_vec();
        sources.push(host.archive().other(suite));
        Apt::new(locked, arch, &format!("own+{suite}"), &sources, Some(suite))
    }

    fn new(
        locked: &'a Locked,
        arch: Arch,
        name: &str,
        sources: &[Source],
        preferred: Option<&str>,
    ) -> Result<Apt<'a>> {
        let folder = locked.store().root().join("apt");
        let make = |path: PathBuf| fs::create_dir_all(&path).map_err(Error::file("make", &path));
        make(folder.join("lists/partial"))?;
        make(folder.join("cache/archives/partial"))?;
        let architecture = arch.debian();
        let name = format!("{name}.{architecture}");
        let list = folder.join(format!("{name}.sources"));
        let text: String = sources.iter().map(|s| s.stanza(architecture)).collect();
        let changed = fs::read_to_string(&list).ok().as_ref() != Some(&text);
        fs::write(&list, &text).map_err(Error::file("write", &list))?;

        let mut options = Vec::new();
        let mut option = |key: &str, value: OsString| {
            let mut pair = OsString::from(format!("{key}="));
            pair.push(value);
            options.extend([OsString::from("-o"), pair]);
        };
        option("Dir::Etc::sourcelist", list.into());
        option("Dir::Etc::sourceparts", "/dev/null".into());
        option("Dir::Etc::preferences", "/dev/null".into());
        option("Dir::Etc::preferencesparts", "/dev/null".into());
        option("Dir::State::lists", folder.join("lists").into());
        option("Dir::Cache", folder.join("cache").into());
        // apt builds its index anew each time, in half a second; a kept index would be the largest
        // file here.
        option("Dir::Cache::pkgcache", "".into());
        option("Dir::Cache::srcpkgcache", "".into());
        // Selections share the lists' folder, so none may remove another's.
        option("APT::Get::List-Cleanup", "false".into());
        option("APT::Update::Error-Mode", "any".into());
        // apt run by root would change to the user _apt, who cannot enter root's home.
        option("APT::Sandbox::User", "root".into());
        option("APT::Architecture", architecture.into());
        option("APT::Architectures", architecture.into());
        option("Debug::NoLocking", "true".into());
        option("Acquire::Languages", "none".into());
        for unwanted in ["DEP-11", "DEP-11-icons", "DEP-11-icons-small", "CNF"] {
            let key = format!("Acquire::IndexTargets::deb::{unwanted}::DefaultEnabled");
            option(&key, "false".into());
        }
        let nothing = folder.join("no-packages");
        fs::write(&nothing, "").map_err(Error::file("write", &nothing))?;
        let foreign = Arch::host() != Some(arch);
        if foreign {
            // No package of the host's can serve a program of another architecture.
            option("Dir::State::status", nothing.into());
        }
        let apt = Apt {
            locked,
            folder,
            name,
            options,
            foreign,
            preferred: preferred.map(str::to_string),
        };
        if changed || !apt.is_fresh() {
            apt.update()?;
        }
        Ok(apt)
    }

    fn stamp(&self) -> PathBuf {
        self.folder.join(format!("{}.updated", self.name))
    }

    fn is_fresh(&self) -> bool {
        let updated = fs::metadata(self.stamp()).and_then(|metadata| metadata.modified());
        // A stamp from the future has no age; then the lists are fetched again.
        updated.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < LISTS_KEEP))
    }

    /// Fetches the lists that changed from the mirror.
    fn update(&self) -> Result<()> {
        self.locked.check_space("a list of packages", ROOM_FOR_LISTS)?;
        let (suites, _) = self.name.rsplit_once('.').unwrap_or((&self.name, ""));
        self.say(&format!("reading the list of packages ({suites})"), None);
        let stamp = self.stamp();
        let _ = fs::remove_file(&stamp);
        let mut update = self.command("apt-get", &["-q", "update"]);
        process::output(&mut update, "reading the list of packages")?;
        fs::write(&stamp, "").map_err(Error::file("write", &stamp))
    }

    /// Names of packages that begin with `prefix`, in no order.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>> {
        let mut command = self.command("apt-cache", &["pkgnames", prefix]);
        let text = process::output(&mut command, "looking for packages")?;
        Ok(text.lines().map(str::to_string).collect())
    }

    /// The packages that have to be unpacked so that the programs of `package` run: itself, and
    /// each that it depends on and that the host lacks or has in a version too old.
    pub fn with_dependencies(&self, package: &str) -> Result<Vec<Package>> {
        let mut packages = match self.simulate(package, &[]) {
            // The host's packages may be inconsistent, after an upgrade that stopped half way for
            // example. perch does not repair that.
            Err(Error::Program { .. }) if !self.foreign => {
                let mut status = OsString::from("Dir::State::status=");
                status.push(self.nothing());
                let all = self.simulate(package, &["-o".into(), status])?;
                let installed = installed()?;
                let lacks = |found: &Package| !installed.contains(&found.name);
                all.into_iter().filter(lacks).collect()
            }
            packages => packages?,
        };
        // Where the host has the package installed, it has its dependencies too.
        if packages.iter().all(|found| found.name != package) {
            packages.push(Package::newest(package));
        }
        Ok(packages)
    }

    /// The packages that apt would install for `package`.
    fn simulate(&self, package: &str, options: &[OsString]) -> Result<Vec<Package>> {
        let mut command = self.command("apt-get", options);
        command.args(["-q", "-s", "install", "--no-install-recommends"]);
        if let Some(suite) = &self.preferred {
            command.args(["-t", suite]);
        }
        let text = process::output(command.arg(package), &format!("looking for {package}"))?;
        Ok(text.lines().filter_map(installation).collect())
    }

    /// The path of an empty record of installed packages.
    fn nothing(&self) -> PathBuf {
        self.folder.join("no-packages")
    }

    /// Fetches `packages`, which `plan` names, and unpacks them into the folder `into`.
    ///
    /// When one of them is gone from the mirror, the lists are read again and `plan` is asked anew.
    pub fn unpack(
        &self,
        what: &str,
        plan: impl Fn(&Apt) -> Result<Vec<Package>>,
        into: &Path,
    ) -> Result<()> {
        let folder = into.join(".packages");
        let make = || fs::create_dir_all(&folder).map_err(Error::file("make", &folder));
        make()?;
        let first = plan(self).and_then(|packages| self.download(what, &packages, &folder));
        if let Err(error) = first {
            if matches!(error, Error::Space { .. }) {
                return Err(error);
            }
            fs::remove_dir_all(&folder).map_err(Error::file("remove", &folder))?;
            make()?;
            self.update().map_err(|_| error)?;
            self.download(what, &plan(self)?, &folder)?;
        }
        self.say(&format!("unpacking {what}"), None);
        for package in files(&folder)? {
            let mut dpkg = Command::new("dpkg");
            dpkg.arg("-x").arg(&package).arg(into);
            process::output(&mut dpkg, &format!("unpacking {}", package.display()))?;
        }
        fs::remove_dir_all(&folder).map_err(Error::file("remove", &folder))
    }

    fn download(&self, what: &str, packages: &[Package], folder: &Path) -> Result<()> {
        let named: Vec<String> = packages.iter().map(Package::argument).collect();
        let arguments = |first: &[&'static str]| -> Vec<String> {
            let first = first.iter().map(|word| word.to_string());
            first.chain(named.iter().cloned()).collect()
        };
        let doing = format!("fetching {what}");
        let mut uris = self.command("apt-get", &arguments(&["-q", "download", "--print-uris"]));
        let total: u64 =
            process::output(uris.current_dir(folder), &doing)?.lines().filter_map(uri_size).sum();
        self.locked.check_space(what, total * ROOM_PER_BYTE)?;

        let message = format!("{doing} ({:.1} MB)", total as f64 / 1e6);
        let mut download = self.command("apt-get", &arguments(&["-q", "download"]));
        download.current_dir(folder).stdin(Stdio::null());
        let partial = self.folder.join("cache/archives/partial");
        process::watched(&mut download, &doing, || {
            let done = size(folder) + size(&partial);
            self.say(&message, Some((done as f64 / total.max(1) as f64).min(1.0)));
        })
    }

    fn command(&self, program: &str, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Command {
        let mut command = Command::new(program);
        // perch parses the output, so apt has to write it in English.
        command.env("LC_ALL", "C").args(&self.options).args(arguments);
        command
    }

    fn say(&self, message: &str, fraction: Option<f64>) {
        let store: &Store = self.locked.store();
        store.say(message, fraction);
    }
}

/// `Inst NAME [OLD] (VERSION SUITE [ARCH])`, which apt says of a package that it would install.
fn installation(line: &str) -> Option<Package> {
    let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
    let (_, inside) = rest.split_once('(')?;
    let version = inside.split([' ', ')']).next()?;
    Some(Package {
        // A foreign package has its architecture after a colon.
        name: name.split(':').next()?.to_string(),
        version: version.to_string(),
    })
}

/// The names of the host's installed packages from dpkg's own record, where apt's opinion of their
/// state plays no part.
fn installed() -> Result<HashSet<String>> {
    let mut query = Command::new("dpkg-query");
    query.args(["-W", "-f", "${Package} ${db:Status-Status}\\n"]);
    let text = process::output(&mut query, "listing the host's packages")?;
    let lines = text.lines().filter_map(|line| line.strip_suffix(" installed"));
    Ok(lines.map(str::to_string).collect())
}

/// The size in `'URI' FILE SIZE HASH`.
fn uri_size(line: &str) -> Option<u64> {
    let mut words = line.strip_prefix('\'')?.split_whitespace();
    words.nth(2)?.parse().ok()
}

/// The files in a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(Error::file("read", folder))?;
    let mut paths: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    Ok(paths)
}

/// The sum of the sizes of the files in a folder, bytes.
fn size(folder: &Path) -> u64 {
    let paths = files(folder).unwrap_or_default();
    paths.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_would_install() {
        let new = "Inst seabios (1.16.3-2~bpo12+1 Debian Backports:oldstable-backports [all])";
        let package = installation(new).unwrap();
        assert_eq!(package.argument(), "seabios=1.16.3-2~bpo12+1");
        let upgrade = "Inst libc6:arm64 [2.36-9] (2.36-9+deb12u1 Debian:12 [arm64]) []";
        assert_eq!(installation(upgrade).unwrap().argument(), "libc6=2.36-9+deb12u1");
        assert_eq!(installation("Conf seabios (1.16 Debian [all])"), None);
        assert_eq!(installation("Remv seabios [1.16]"), None);
    }

    #[test]
    fn how_much_a_download_is() {
        let line = "'http://mirror.example/pool/a_1%2b2_amd64.deb' a_1+2_amd64.deb 33964 SHA256:16";
        assert_eq!(uri_size(line), Some(33_964));
        assert_eq!(uri_size("W: something"), None);
    }
}
