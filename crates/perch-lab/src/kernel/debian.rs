// SPDX-License-Identifier: GPL-2.0-or-later
//! Debian's kernels: which packages hold them, in which suites, and where in the package.

use std::path::{Path, PathBuf};

use super::stored::{Kernel, shelf, unpack};
use super::version::{NEWEST_TESTED, Wanted, dotted, numbers};
use crate::apt::{Apt, Host, Package};
use crate::arch::Arch;
use crate::error::{Error, Result};
use crate::store::Locked;

/// The suites that have kernels; the first that has a wanted one gives it. The last two have those
/// on which perch records but loads no scheduler: 6.12 and 6.1. Suites in the making come first,
/// although their lists are 9 MB against 0.3: trixie-backports' 7.2.12 was built with tools too old
/// to describe all of sched_ext's functions in its BTF (seven lack the form without `aux`), so that
/// no scheduler that calls one can be loaded there.
const SUITES: [&str; 5] = ["forky", "sid", "trixie-backports", "trixie", "bookworm"];

/// Packages with a bootable image, by the beginning of their names. Up to 6.18 it is in
/// linux-image; since 6.19 that only depends on linux-binary, which has it.
const IMAGES: [&str; 2] = ["linux-binary-", "linux-image-"];

/// The package with the configuration, since 7.2; before it is beside the image or nowhere.
const CONFIG: &str = "linux-base-";

/// Fetches the newest kernel that is wanted into the store.
pub(super) fn fetch(locked: &Locked, wanted: &Wanted, arch: Arch) -> Result<Kernel> {
    let host = Host::find(
        &format!("a kernel {wanted}"),
        "give --kernel FILE, a vmlinuz or vmlinux with sched_ext",
    )?;
    let mut seen: Vec<(usize, String)> = Vec::new();
    let mut failure = None;
    for (index, suite) in SUITES.iter().enumerate() {
        let listed = Apt::suite(locked, &host, arch, suite).and_then(|apt| {
            let releases = releases(&apt, arch)?;
            let chosen = wanted.choose(releases.iter().map(String::as_str));
            match chosen {
                Some(release) => fetch_release(locked, &apt, release, arch).map(Ok),
                None => Ok(Err(releases)),
            }
        });
        match listed {
            Ok(Ok(kernel)) => return Ok(kernel),
            Ok(Err(releases)) => seen.extend(releases.into_iter().map(|release| (index, release))),
            Err(error @ Error::Space { .. }) => return Err(error),
            // One mirror may lack a suite that another one has; a mirror that cannot be reached has
            // none.
            Err(error) => {
                let said = error.to_string();
                let absent = said.contains("404") || said.contains("not have a Release file");
                if !absent {
                    failure = Some(error);
                    break;
                }
            }
        }
    }
    let any = wanted.or_any().choose(seen.iter().map(|(_, release)| release.as_str()));
    if let Some((index, release)) = seen.iter().find(|(_, release)| Some(release.as_str()) == any) {
        let apt = Apt::suite(locked, &host, arch, SUITES[*index])?;
        return fetch_release(locked, &apt, release, arch);
    }
    // When a suite could not be read, the message says why; else no suite has the kernel.
    Err(failure.unwrap_or_else(|| missing(wanted, &seen)))
}

/// The releases of which a suite has a bootable image made for virtual machines. Such an image has
/// everything that a guest needs built in, and its package is a tenth of the general one.
fn releases(apt: &Apt, arch: Arch) -> Result<Vec<String>> {
    let flavour = format!("-cloud-{}", arch.debian());
    let mut releases = Vec::new();
    for prefix in IMAGES {
        let names = apt.names(prefix)?;
        let found = names.iter().filter_map(|name| name.strip_prefix(prefix));
        let found = found.filter(|release| release.ends_with(&flavour));
        releases.extend(found.filter(|release| !numbers(release).is_empty()).map(str::to_string));
    }
    releases.sort();
    releases.dedup();
    Ok(releases)
}

fn fetch_release(locked: &Locked, apt: &Apt, release: &str, arch: Arch) -> Result<Kernel> {
    let plan = |apt: &Apt| {
        let mut packages = Vec::new();
        for prefix in IMAGES.into_iter().chain([CONFIG]) {
            let name = format!("{prefix}{release}");
            // The first of these packages that exists has the image.
            let needed = prefix == CONFIG || packages.is_empty();
            if needed && apt.names(&name)?.contains(&name) {
                packages.push(Package::newest(name));
            }
        }
        Ok(packages)
    };
    let name = format!("{}/{release}", shelf(arch));
    let folder = locked.keep(&name, |folder| {
        let tree = folder.join("packages");
        apt.unpack(&format!("Linux {release}"), plan, &tree)?;
        let find = |places: [String; 2]| -> Option<PathBuf> {
            places.iter().map(|place| tree.join(place)).find(|path| path.is_file())
        };
        let modules = format!("usr/lib/modules/{release}");
        let image = find([format!("{modules}/vmlinuz"), format!("boot/vmlinuz-{release}")]);
        let image = image.ok_or_else(|| {
            Error::Missing(format!(
                "Debian's packages of Linux {release} have no vmlinuz where it used to be \
                 ({modules}/ or boot/); fetch it yourself and give --kernel FILE"
            ))
        })?;
        let config = find([format!("{modules}/config"), format!("boot/config-{release}")]);
        unpack(locked, &image, arch, folder, config)?;
        remove(&tree)
    })?;
    Kernel::load(&folder, arch)
}

fn remove(tree: &Path) -> Result<()> {
    std::fs::remove_dir_all(tree).map_err(Error::file("remove", tree))
}

/// The error for a kernel that no suite has.
fn missing(wanted: &Wanted, seen: &[(usize, String)]) -> Error {
    let mut series: Vec<Vec<u32>> =
        seen.iter().map(|(_, release)| numbers(release).into_iter().take(2).collect()).collect();
    series.sort();
    series.dedup();
    let series: Vec<String> = series.iter().map(|numbers| dotted(numbers)).collect();
    let there = if series.is_empty() { "none".to_string() } else { series.join(", ") };
    Error::Missing(format!(
        "the host's mirror has no kernel {wanted} of Debian (it has {there}); ask for one of these, \
         leave it out for {}, or give --kernel FILE",
        dotted(&NEWEST_TESTED)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_there_meets_those_that_are() {
        let seen = ["7.2.12+deb13-cloud-amd64", "6.12.4-cloud-amd64", "6.18.1-x", "6.18.2-x"];
        let seen: Vec<(usize, String)> = seen.iter().map(|s| (0, s.to_string())).collect();
        let message = missing(&Wanted::parse("6.20").unwrap(), &seen).to_string();
        assert!(message.contains("no kernel 6.20 of Debian (it has 6.12, 6.18, 7.2)"), "{message}");
    }
}
