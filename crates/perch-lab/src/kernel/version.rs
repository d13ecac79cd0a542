// SPDX-License-Identifier: GPL-2.0-or-later
//! The releases of the kernel that a user's words mean.

use crate::error::{Error, Result};

/// The oldest version on which one BPF object of perch was loaded (guest tests run on it).
pub const OLDEST: [u32; 2] = [6, 16];

/// The version that guests get when the user asks for no other: the newest on which all tests pass.
/// Raise it when they pass on a newer one.
pub const NEWEST_TESTED: [u32; 2] = [7, 2];

/// The releases that will do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// [`NEWEST_TESTED`].
    Tested,
    /// Anything from [`OLDEST`] on, tested ones first.
    Any,
    /// Releases whose numbers begin like this.
    Numbers(Vec<u32>),
    /// This very release.
    Release(String),
}

impl Wanted {
    /// Reads the words of a user.
    ///
    /// # Errors
    /// [`Error::Input`] when it does not begin with a number.
    pub fn parse(spec: &str) -> Result<Wanted> {
        if spec.is_empty() {
            return Ok(Wanted::Tested);
        }
        let parts: Option<Vec<u32>> = spec.split('.').map(|part| part.parse().ok()).collect();
        match parts {
            Some(parts) => Ok(Wanted::Numbers(parts)),
            None if !numbers(spec).is_empty() => Ok(Wanted::Release(spec.to_string())),
            None => Err(Error::Input(format!(
                "`{spec}` is neither a kernel's file nor a version such as 7.2 or 6.18.15"
            ))),
        }
    }

    /// The wish to fall back on when this one cannot be met: [`Wanted::Tested`] becomes
    /// [`Wanted::Any`].
    pub fn or_any(&self) -> Wanted {
        match self {
            Wanted::Tested => Wanted::Any,
            other => other.clone(),
        }
    }

    /// The newest of `releases` that will do.
    pub fn choose<'a>(&self, releases: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        releases
            .filter(|release| self.accepts(release))
            // Of two builds of one version, the one whose name sorts last wins.
            .max_by_key(|release| (self.rank(release), *release))
    }

    fn accepts(&self, release: &str) -> bool {
        let numbers = numbers(release);
        // A user gets a release candidate only by its whole name.
        let candidate = release.contains("-rc") || release.contains("~rc");
        match self {
            Wanted::Tested => !candidate && numbers.starts_with(&NEWEST_TESTED),
            Wanted::Any => !candidate && numbers[..] >= OLDEST[..],
            Wanted::Numbers(first) => !candidate && numbers.starts_with(first),
            Wanted::Release(whole) => release == whole,
        }
    }

    /// The rank of a release: a later one ranks higher, and a tested one higher than any untested
    /// one.
    fn rank(&self, release: &str) -> (bool, Vec<u32>) {
        let numbers = numbers(release);
        let untested = numbers[..] > NEWEST_TESTED[..] && !numbers.starts_with(&NEWEST_TESTED);
        (!(untested && *self == Wanted::Any), numbers)
    }
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wanted::Tested | Wanted::Any => f.write_str(&dotted(&NEWEST_TESTED)),
            Wanted::Numbers(numbers) => f.write_str(&dotted(numbers)),
            Wanted::Release(release) => f.write_str(release),
        }
    }
}

/// Numbers as in a release.
pub(crate) fn dotted(numbers: &[u32]) -> String {
    let words: Vec<String> = numbers.iter().map(u32::to_string).collect();
    words.join(".")
}

/// The numbers that a release begins with: 7, 2 and 12 of `7.2.12+deb13-cloud-amd64`.
pub fn numbers(release: &str) -> Vec<u32> {
    let end = release.find(|c: char| c != '.' && !c.is_ascii_digit());
    let head = &release[..end.unwrap_or(release.len())];
    head.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASES: [&str; 8] = [
        "6.1.9-amd64",
        "6.16.3+deb13-cloud-amd64",
        "6.16.12+deb13-cloud-amd64",
        "6.18.15+deb13-cloud-amd64",
        "7.2.9+deb13-cloud-amd64",
        "7.2.12+deb13-cloud-amd64",
        "7.3.4+deb13-cloud-amd64",
        "7.4-rc1-cloud-amd64",
    ];

    fn choose(spec: &str) -> Option<&'static str> {
        Wanted::parse(spec).unwrap().choose(RELEASES.into_iter())
    }

    #[test]
    fn a_version_stands_for_the_newest_that_begins_with_its_numbers() {
        assert_eq!(choose(""), Some("7.2.12+deb13-cloud-amd64"));
        assert_eq!(choose("7"), Some("7.3.4+deb13-cloud-amd64"));
        assert_eq!(choose("7.2"), Some("7.2.12+deb13-cloud-amd64"));
        assert_eq!(choose("6.16"), Some("6.16.12+deb13-cloud-amd64"));
        assert_eq!(choose("6.16.3"), Some("6.16.3+deb13-cloud-amd64"));
        // 6.1 is no prefix of 6.16: numbers are compared, not letters.
        assert_eq!(choose("6.1"), Some("6.1.9-amd64"));
        assert_eq!(choose("6.17"), None);
        assert_eq!(choose("7.4"), None);
        assert_eq!(choose("7.4-rc1-cloud-amd64"), Some("7.4-rc1-cloud-amd64"));
    }

    #[test]
    fn without_a_tested_version_an_older_one_is_better_than_a_newer() {
        let any = Wanted::Tested.or_any();
        assert_eq!(any.choose(RELEASES.into_iter()), choose(""));
        let untested = ["6.18.15-x", "7.3.4-x", "6.12.1-x"];
        assert_eq!(any.choose(untested.into_iter()), Some("6.18.15-x"));
        assert_eq!(any.choose(["7.3.4-x", "6.12.1-x"].into_iter()), Some("7.3.4-x"));
        assert_eq!(any.choose(["6.12.1-x"].into_iter()), None);
        assert_eq!(Wanted::Tested.choose(untested.into_iter()), None);
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for spec in ["seven", "v7.2", "-1", ".2"] {
            assert!(Wanted::parse(spec).is_err(), "{spec}");
        }
    }
}
