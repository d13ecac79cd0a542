// SPDX-License-Identifier: GPL-2.0-or-later
//! The host's distribution and the addresses of its packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::sources::{self, Source};
use crate::error::{Error, Result};
use crate::process;

/// A host from which Debian's packages can be fetched.
pub(crate) struct Host {
    codename: String,
    /// The host's sources of Debian's packages: at least one, and the first has a whole release.
    sources: Vec<Source>,
}

impl Host {
    /// Looks at this host, from whose mirror `wanted` is to be fetched.
    ///
    /// # Errors
    /// [`Error::Missing`], with `instead` as what to do, when there is no apt or it has no mirror of
    /// Debian.
    pub fn find(wanted: &str, instead: &str) -> Result<Host> {
        let release = fs::read_to_string("/etc/os-release")
            .or_else(|_| fs::read_to_string("/usr/lib/os-release"))
            .unwrap_or_default();
        let debian = os_release(&release, "ID").as_deref() == Some("debian");
        let codename = os_release(&release, "VERSION_CODENAME").filter(|_| debian);
        let codename = codename.unwrap_or_default();
        let lacking =
            |why: &str| Error::Missing(format!("{wanted} has to be fetched, and {why}; {instead}"));
        let mut config = Command::new("apt-config");
        config.args(["shell", "LIST", "Dir::Etc::sourcelist/f"]);
        config.args(["PARTS", "Dir::Etc::sourceparts/d"]);
        let config = match process::output(&mut config, "looking for the host's mirror") {
            Err(Error::Spawn { .. }) => return Err(lacking("this host has no apt")),
            config => config?,
        };
        let value = |name| shell_value(&config, name).map(PathBuf::from);
        let mut paths: Vec<PathBuf> = value("PARTS").map(parts).unwrap_or_default();
        paths.extend(value("LIST"));
        let listed = paths.iter().flat_map(|path| {
            // A list that only root may read is as good as none.
            let text = fs::read_to_string(path).unwrap_or_default();
            sources::parse(&path.to_string_lossy(), &text)
        });
        let sources = sources::debian(listed.collect(), &codename);
        if sources.is_empty() {
            return Err(lacking("this host's apt has no mirror of Debian among its sources"));
        }
        Ok(Host { codename, sources })
    }

    /// The suite with newer versions for the host's release; testing and unstable have none.
    pub fn backports(&self) -> Option<String> {
        let released = !self.codename.is_empty() && self.codename != "sid";
        // Testing has the next release's codename, and a host may use either name.
        let making = ["sid", "unstable", "testing"];
        let mut suites = self.archive().suites.iter();
        let released = released && !suites.any(|suite| making.contains(&suite.as_str()));
        released.then(|| format!("{}-backports", self.codename))
    }

    /// The source of a whole release of Debian.
    pub fn archive(&self) -> &Source {
        &self.sources[0]
    }

    /// All sources of Debian's packages that the host's apt knows.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }
}

/// The files of a folder that apt reads.
fn parts(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("list" | "sources"))
        })
        .collect();
    paths.sort();
    paths
}

/// `NAME='value'` as `apt-config shell` prints it.
fn shell_value(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let value = line.strip_prefix(name)?.strip_prefix('=')?;
        Some(value.trim_matches('\'').to_string())
    })
}

/// A value of os-release(5).
fn os_release(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let value = line.trim().strip_prefix(key)?.strip_prefix('=')?;
        Some(value.trim_matches(['"', '\'']).to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_and_without_quotes() {
        let text = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nID=debian\nVERSION_CODENAME=bookworm\n";
        assert_eq!(os_release(text, "ID").as_deref(), Some("debian"));
        assert_eq!(os_release(text, "PRETTY_NAME").as_deref(), Some("Debian GNU/Linux 12"));
        assert_eq!(os_release(text, "VERSION"), None);
        let text = "LIST='/etc/apt/sources.list'\nPARTS='/etc/apt/sources.list.d/'\n";
        assert_eq!(shell_value(text, "PARTS").as_deref(), Some("/etc/apt/sources.list.d/"));
        assert_eq!(shell_value(text, "NONE"), None);
    }
}
