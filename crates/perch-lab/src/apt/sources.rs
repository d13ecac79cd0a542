// SPDX-License-Identifier: GPL-2.0-or-later
//! Where the host's own apt gets its packages from: sources.list(5), in both of its forms.
//!
//! Mirrors' addresses come from here and from nowhere else, so that a host behind a proxy or with
//! a mirror of its own keeps to it.

use std::fmt::Write;
use std::path::Path;

/// Names of Debian's releases that can carry what a guest needs, besides the host's own.
const RELEASES: [&str; 10] = [
    "bookworm",
    "trixie",
    "forky",
    "duke",
    "sid",
    "oldstable",
    "stable",
    "testing",
    "unstable",
    "experimental",
];

/// Keys of all of Debian's releases, the older name last.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.pgp",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
];

/// Binary packages at some addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    pub uris: Vec<String>,
    pub suites: Vec<String>,
    pub components: Vec<String>,
    /// Keyring files, fingerprints, or a whole key of several lines; empty for apt's own keys.
    pub signed_by: String,
    /// True when packages need no signature.
    pub trusted: bool,
    /// True when apt may use a release file that is past its date (mirrors of an archived state).
    pub expired: bool,
}

impl Source {
    /// Returns whether these are packages of Debian itself, and not of a third party.
    fn is_debian(&self, codename: &str) -> bool {
        let main = self.components.iter().any(|component| component == "main");
        let release = |suite: &String| {
            let name = suite.split(['-', '/']).next().unwrap_or_default();
            RELEASES.contains(&name) || (!codename.is_empty() && name == codename)
        };
        main && !self.suites.is_empty() && self.suites.iter().all(release)
    }

    /// Returns whether this source has a release itself, and not only its security or point
    /// updates.
    fn is_archive(&self) -> bool {
        self.suites.iter().any(|suite| !suite.contains(['-', '/']))
    }

    /// The `main` of another suite on the same mirror.
    pub fn other(&self, suite: &str) -> Source {
        let keyring = KEYRINGS.iter().find(|path| Path::new(path).exists());
        let signed_by = match keyring {
            // The host may trust its own release's keys only.
            Some(keyring) if !self.trusted => keyring.to_string(),
            _ => self.signed_by.clone(),
        };
        Source {
            suites: vec![suite.to_string()],
            components: vec!["main".to_string()],
            signed_by,
            ..self.clone()
        }
    }

    /// A stanza of a `.sources` file, for packages of one architecture.
    pub fn stanza(&self, architecture: &str) -> String {
        let mut text = format!(
            "Types: deb\nURIs: {}\nSuites: {}\nComponents: {}\nArchitectures: {architecture}\n",
            self.uris.join(" "),
            self.suites.join(" "),
            self.components.join(" "),
        );
        let mut field = |name: &str, value: &str| {
            writeln!(text, "{name}: {value}").expect("a string takes what is written to it");
        };
        if !self.signed_by.is_empty() {
            field("Signed-By", &self.signed_by);
        }
        if self.trusted {
            field("Trusted", "yes");
        }
        if self.expired {
            field("Check-Valid-Until", "no");
        }
        text.push('\n');
        text
    }
}

/// Debian's own among `sources`, the archive of a whole release first; empty when there is none.
pub(crate) fn debian(sources: Vec<Source>, codename: &str) -> Vec<Source> {
    let mut own: Vec<Source> =
        sources.into_iter().filter(|source| source.is_debian(codename)).collect();
    own.sort_by_key(|source| !source.is_archive());
    if own.first().is_some_and(Source::is_archive) { own } else { Vec::new() }
}

/// The sources in `text`, the content of a file called `name`. Lines that make no sense are left
/// out; apt complains about those.
pub(crate) fn parse(name: &str, text: &str) -> Vec<Source> {
    if name.ends_with(".sources") {
        deb822(text)
    } else {
        text.lines().filter_map(one_line).collect()
    }
}

/// `deb [ option=value … ] uri suite component…`
fn one_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb")?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let mut source = Source::default();
    let rest = match rest.strip_prefix('[') {
        Some(rest) => {
            let (options, rest) = rest.split_once(']')?;
            for (key, value) in options.split_whitespace().filter_map(|o| o.split_once('=')) {
                source.option(key, &value.replace(',', " "));
            }
            rest
        }
        None => rest,
    };
    let mut words = rest.split_whitespace().map(str::to_string);
    source.uris = words.next().filter(|uri| fetchable(uri)).into_iter().collect();
    source.suites = words.next().into_iter().collect();
    source.components = words.collect();
    (!source.uris.is_empty()).then_some(source)
}

/// Stanzas of `Key: value`, where a line that begins with a blank continues the one before.
fn deb822(text: &str) -> Vec<Source> {
    let mut sources = Vec::new();
    let mut fields: Vec<(String, String)> = Vec::new();
    // A blank line ends a stanza; the last one may lack it.
    for line in text.lines().chain([""]) {
        if line.starts_with('#') {
            continue;
        }
        if line.trim().is_empty() {
            sources.extend(stanza(&std::mem::take(&mut fields)));
        } else if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = fields.last_mut() {
                value.push('\n');
                value.push_str(line.trim_end());
            }
        } else if let Some((key, value)) = line.split_once(':') {
            fields.push((key.trim().to_lowercase(), value.trim().to_string()));
        }
    }
    sources
}

fn stanza(fields: &[(String, String)]) -> Option<Source> {
    let words = |key: &str| -> Vec<String> {
        let values = fields.iter().filter(|(name, _)| name == key);
        values.flat_map(|(_, value)| value.split_whitespace().map(str::to_string)).collect()
    };
    let off = words("enabled").iter().any(|word| is_no(word));
    if off || !words("types").iter().any(|word| word == "deb") {
        return None;
    }
    let mut source = Source {
        uris: words("uris").into_iter().filter(|uri| fetchable(uri)).collect(),
        suites: words("suites"),
        components: words("components"),
        ..Source::default()
    };
    for (key, value) in fields {
        source.option(key, value);
    }
    (!source.uris.is_empty()).then_some(source)
}

impl Source {
    fn option(&mut self, key: &str, value: &str) {
        match key {
            "signed-by" => self.signed_by = value.to_string(),
            "trusted" => self.trusted = value == "yes" || value == "true",
            "check-valid-until" => self.expired = is_no(value),
            _ => {}
        }
    }
}

fn is_no(value: &str) -> bool {
    ["no", "false", "without", "off", "disable", "0"].contains(&value)
}

/// Returns whether packages can be fetched from `uri`; a disc does not have those that perch looks
/// for.
fn fetchable(uri: &str) -> bool {
    !uri.starts_with("cdrom:")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_string).collect()
    }

    #[test]
    fn the_one_line_form_with_options_comments_and_discs() {
        let text = "# deb http://mirror.example/old bookworm main\n\
                    deb cdrom:[Debian 12]/ bookworm main\n\
                    deb-src http://mirror.example/debian bookworm main\n\
                    \n\
                    deb [ arch=amd64,arm64 signed-by=/a.gpg,/b.gpg check-valid-until=no ] \
                    http://mirror.example/debian bookworm main contrib # mine\n\
                    deb\thttp://mirror.example/security bookworm-security main\n";
        let sources = parse("sources.list", text);
        assert_eq!(sources.len(), 2);
        assert_eq!(
            sources[0],
            Source {
                uris: words("http://mirror.example/debian"),
                suites: words("bookworm"),
                components: words("main contrib"),
                signed_by: "/a.gpg /b.gpg".to_string(),
                trusted: false,
                expired: true,
            }
        );
        assert_eq!(sources[1].suites, ["bookworm-security"]);
    }

    #[test]
    fn deb822_with_a_comment_inside_a_disabled_stanza_and_a_key_in_the_file() {
        let text = "Types: deb deb-src\n\
                    # http://mirror.example/archive\n\
                    URIs: http://mirror.example/debian\n\
                    Suites: trixie trixie-updates\n\
                    Components: main\n\
                    Signed-By:\n \
                     -----BEGIN PGP PUBLIC KEY BLOCK-----\n \
                     .\n \
                     abc\n\
                    \n\
                    Enabled: no\n\
                    Types: deb\n\
                    URIs: http://mirror.example/off\n\
                    Suites: trixie\n\
                    Components: main\n";
        let sources = parse("debian.sources", text);
        assert_eq!(sources.len(), 1);
        let source = &sources[0];
        assert_eq!(source.suites, ["trixie", "trixie-updates"]);
        assert_eq!(source.signed_by.lines().count(), 4);
        // A stanza that perch writes reads back as the same source.
        assert_eq!(parse("x.sources", &source.stanza("amd64")), std::slice::from_ref(source));
    }

    #[test]
    fn only_debians_own_archive_counts() {
        let text = "deb http://mirror.example/security bookworm-security main\n\
                    deb http://mirror.example/debian bookworm main\n\
                    deb http://vendor.example/apt nodistro main\n\
                    deb http://vendor.example/flat ./\n";
        let own = debian(parse("sources.list", text), "bookworm");
        assert_eq!(own.len(), 2);
        assert_eq!(own[0].uris, ["http://mirror.example/debian"]);
        let backports = own[0].other("trixie-backports");
        assert_eq!(backports.suites, ["trixie-backports"]);
        assert_eq!(backports.uris, own[0].uris);

        let ubuntu = "deb http://mirror.example/ubuntu noble main universe\n";
        assert!(debian(parse("sources.list", ubuntu), "").is_empty());
    }
}
