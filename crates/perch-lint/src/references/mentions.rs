// SPDX-License-Identifier: GPL-2.0-or-later
//! Words of prose that name a file of the tree.

use std::ops::Range;

use crate::text::Kind;

/// A place inside of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The anchor of a heading, without its `#`.
    Anchor(String),
    /// The number of a section, as `8` or `3.2`.
    Section(String),
    /// A numbered property, as `P17`.
    Property(String),
}

/// A word that names a file or a folder.
#[derive(Debug, PartialEq, Eq)]
pub struct Mention {
    /// The path, as it is written.
    pub name: String,
    /// The place in that file, if the text names one.
    pub place: Option<Place>,
    /// The byte of the text that the word begins at.
    pub offset: usize,
}

/// Extensions of files that only this tree can mean, even without a folder before them.
const OURS: [&str; 8] = ["md", "rs", "c", "h", "def", "sh", "mjs", "css"];
/// Extensions of files that users make too: these are checked where a folder of ours precedes.
const ANYBODYS: [&str; 6] = ["toml", "csv", "json", "snap", "txt", "xml"];
/// The folders at the top of the tree, and those that crates have.
const FOLDERS: [&str; 10] = [
    "crates",
    "docs",
    "experiments",
    "policy",
    "scripts",
    "src",
    "bpf",
    "tests",
    "library",
    "sources",
];
/// The folders that no other project has, which count in examples too.
const TOP: [&str; 5] = ["crates", "docs", "experiments", "policy", "scripts"];
/// Words that stand for a name which the reader chooses.
const BLANKS: [&str; 8] = [
    "NAME", "FILE", "CRATE", "DIR", "MACHINE", "PAGE", "OTHER", "X",
];

/// The files that `text` names. In examples only names below [`TOP`] count; in the strings of
/// programs only pages, which messages send people to.
pub fn mentions(text: &str, kind: Kind) -> Vec<Mention> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        let inside = c.is_alphanumeric() || "_-./*#$~<>{}:+@%\\&?=".contains(c);
        match (start, inside) {
            (None, true) => start = Some(at),
            (Some(first), false) => {
                found.extend(mention(text, first..at, kind));
                start = None;
            }
            _ => {}
        }
    }
    found
}

fn mention(text: &str, range: Range<usize>, kind: Kind) -> Option<Mention> {
    let word = &text[range.clone()];
    let trimmed = word.trim_start_matches(['*', ':', '=', '.', '#']);
    let hidden = word.starts_with(".ci/");
    let word = if hidden { word } else { trimmed };
    let offset = range.end - word.len();
    let word = word.trim_end_matches(['.', ':', '?', '*', '\\', '=', '&']);
    // wake.h:61 names a line.
    let word = match word.split_once(':') {
        Some((path, line)) if line.starts_with(|c: char| c.is_ascii_digit()) => path,
        _ => word,
    };
    let end = offset + word.len();
    let (name, anchor) = word
        .split_once('#')
        .map_or((word, None), |(n, a)| (n, Some(a)));
    if name.is_empty()
        || name.starts_with('/')
        || name.contains(|c: char| "$~<>{}:@%\\&?=+".contains(c))
    {
        return None;
    }
    if !is_name(name, kind) || name.split(['/', '.']).any(|part| BLANKS.contains(&part)) {
        return None;
    }
    let place = match anchor {
        Some(anchor) if !anchor.is_empty() => Some(Place::Anchor(anchor.to_owned())),
        _ if name.ends_with(".md") => place_after(&text[end..]),
        _ => None,
    };
    Some(Mention {
        name: name.to_owned(),
        place,
        offset,
    })
}

/// Returns whether a word is spelt like a file or folder of this tree.
fn is_name(name: &str, kind: Kind) -> bool {
    let (first, last) = match (name.split_once('/'), name.rsplit('/').next()) {
        (Some((first, _)), Some(last)) => (Some(first), last),
        (None, Some(last)) => (None, last),
        (_, None) => return false,
    };
    match kind {
        Kind::Comment | Kind::Page => {}
        Kind::Example => return first.is_some_and(|first| TOP.contains(&first)),
        Kind::Literal => return first == Some("docs") && last.ends_with(".md"),
    }
    let below_ours = first.is_some_and(|first| FOLDERS.contains(&first));
    match last.rsplit_once('.') {
        Some((stem, extension)) if OURS.contains(&extension) => !stem.is_empty(),
        Some((_, extension)) if ANYBODYS.contains(&extension) => below_ours,
        _ => below_ours || name == ".ci/run",
    }
}

/// The section or property that the text names next: `§8`, `, §3.2`, `(P17)`.
pub fn place_after(text: &str) -> Option<Place> {
    let rest = text.trim_start_matches(['`', '\'', ')', ',', '(', ' ', '\n']);
    if text.len() - rest.len() > 4 {
        return None;
    }
    if let Some(number) = rest.strip_prefix('§') {
        let number = number.trim_start();
        let end = number
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(number.len());
        let number = number[..end].trim_end_matches('.');
        return (!number.is_empty()).then(|| Place::Section(number.to_owned()));
    }
    let number = rest.strip_prefix('P')?;
    let end = number
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(number.len());
    let ends_word = !number[end..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
    (end > 0 && ends_word).then(|| Place::Property(format!("P{}", &number[..end])))
}

/// Replace a range of the text by as many spaces.
pub fn blank(text: &mut String, range: Range<usize>) {
    let spaces = " ".repeat(range.len());
    text.replace_range(range, &spaces);
}

/// The line of the text that the byte at `offset` stands on.
pub fn line_around(text: &str, offset: usize) -> &str {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let end = text[offset..]
        .find('\n')
        .map_or(text.len(), |at| offset + at);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, kind: Kind) -> Vec<String> {
        mentions(text, kind)
            .into_iter()
            .map(|mention| mention.name)
            .collect()
    }

    #[test]
    fn prose_names_files_and_folders() {
        let text = "see `wake.rs`, (run.rs:61), docs/README.md. crates/a/src and ./x; \
                    /proc/stat.c, NAME.md, capacity.json, experiments/a.toml, https://a.b/c.rs, \
                    $HOME/a.h, Vec::new, a.b, e.g. 1.5";
        assert_eq!(
            names(text, Kind::Comment),
            [
                "wake.rs",
                "run.rs",
                "docs/README.md",
                "crates/a/src",
                "experiments/a.toml"
            ]
        );
        assert_eq!(
            names(text, Kind::Example),
            ["docs/README.md", "crates/a/src", "experiments/a.toml"]
        );
        assert_eq!(names(text, Kind::Literal), ["docs/README.md"]);
    }

    #[test]
    fn a_place_may_stand_on_the_next_line() {
        let found = mentions(
            "live.md\n §3.2. lab.md#faults, testing.md (P17) a.md Per",
            Kind::Comment,
        );
        let places: Vec<_> = found.into_iter().map(|mention| mention.place).collect();
        assert_eq!(
            places,
            [
                Some(Place::Section("3.2".to_owned())),
                Some(Place::Anchor("faults".to_owned())),
                Some(Place::Property("P17".to_owned())),
                None
            ]
        );
    }
}
