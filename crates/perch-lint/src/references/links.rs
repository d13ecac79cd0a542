// SPDX-License-Identifier: GPL-2.0-or-later
//! Links of Markdown: `[text](target)` and `[name]: target`.

use std::ops::Range;

use super::mentions::{Place, place_after};

/// A link to a file or an anchor. Links to other sites and to mail addresses are none.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// The path as it is written, without the anchor; empty for the page itself.
    pub path: String,
    /// The anchor, or a section that the text names behind the link.
    pub place: Option<Place>,
    /// The link in the text, from the bracket that closes its words.
    pub range: Range<usize>,
    /// The target in the text.
    pub target_range: Range<usize>,
}

/// The links of a page.
pub fn links(text: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("](") {
        let start = at + 2;
        let Some(length) = text[start..].find([')', '\n']) else {
            continue;
        };
        found.extend(link(text, at, start..start + length));
    }
    for (at, _) in text.match_indices("]: ") {
        let begins_line = text[..at]
            .rsplit('\n')
            .next()
            .is_some_and(|line| line.starts_with('[') && !line[1..].contains(['[', ']']));
        let start = at + 3;
        let length = text[start..].find('\n').unwrap_or(text.len() - start);
        if begins_line {
            found.extend(link(text, at, start..start + length));
        }
    }
    found
}

fn link(text: &str, at: usize, target_range: Range<usize>) -> Option<Link> {
    let target = text[target_range.clone()].trim();
    // A title may follow in quotes.
    let target = target.split_whitespace().next().unwrap_or("");
    if target.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = target
        .split_once('#')
        .map_or((target, None), |(p, a)| (p, Some(a)));
    let end = target_range.end + 1;
    let place = match anchor {
        Some(anchor) => Some(Place::Anchor(anchor.to_owned())),
        None => place_after(text.get(end..).unwrap_or("")),
    };
    Some(Link {
        path: path.to_owned(),
        place,
        range: at..target_range.end,
        target_range,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_both_forms_and_leaves_other_sites() {
        let text =
            "[a](b.md#c) and [d](https://e.f/g) and\n[h](i.md), §2.1.\n[j]: k.md \"title\"\n";
        let found: Vec<_> = links(text)
            .into_iter()
            .map(|link| (link.path, link.place))
            .collect();
        assert_eq!(
            found,
            [
                ("b.md".to_owned(), Some(Place::Anchor("c".to_owned()))),
                ("i.md".to_owned(), Some(Place::Section("2.1".to_owned()))),
                ("k.md".to_owned(), None),
            ]
        );
    }
}
