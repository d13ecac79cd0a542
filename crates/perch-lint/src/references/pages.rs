// SPDX-License-Identifier: GPL-2.0-or-later
//! The places of a page of Markdown that a link can name: the anchors of its headings by GitHub's
//! rule, its numbered sections, its numbered properties.

use std::collections::{BTreeMap, BTreeSet};

/// The anchors of a page, each with its `#`: one a heading, and what HTML names.
pub fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    for heading in headings(text) {
        let anchor = anchor(heading);
        let before = times.entry(anchor.clone()).or_insert(0);
        found.insert(match *before {
            0 => format!("#{anchor}"),
            n => format!("#{anchor}-{n}"),
        });
        *before += 1;
    }
    for mark in [" id=\"", " name=\""] {
        for (at, _) in text.match_indices(mark) {
            let name = text[at + mark.len()..].split('"').next().unwrap_or("");
            found.insert(format!("#{name}"));
        }
    }
    found
}

/// The sections of a page that begin with a number, each as `§3.2`.
pub fn sections(text: &str) -> BTreeSet<String> {
    let numbers = headings(text).filter_map(|heading| {
        let words = heading.trim_start_matches('§').trim_start();
        let number = words
            .split_whitespace()
            .next()?
            .trim_end_matches(['.', ':', ')']);
        let numeric = number.starts_with(|c: char| c.is_ascii_digit())
            && number.chars().all(|c| c.is_ascii_digit() || c == '.');
        numeric.then(|| format!("§{number}"))
    });
    numbers.collect()
}

/// The properties that a page defines or names, each as `P17`. A range (`P1…P18`) names its ends.
pub fn properties(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let properties = words.filter(|word| {
        word.strip_prefix('P').is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    properties.map(str::to_owned).collect()
}

/// The words of the headings, outside of examples.
fn headings(text: &str) -> impl Iterator<Item = &str> {
    let mut example = false;
    text.lines().filter_map(move |line| {
        if line.trim_start().starts_with("```") {
            example = !example;
        }
        let words = line.trim_start_matches('#');
        let level = line.len() - words.len();
        let is_heading = !example && (1..=6).contains(&level) && words.starts_with(' ');
        is_heading.then(|| words.trim())
    })
}

/// GitHub's rule: lower case, letters, digits, `-` and `_` stay, spaces become `-`, and of a link
/// only its words count.
fn anchor(heading: &str) -> String {
    let mut anchor = String::new();
    let mut target = false;
    let mut before = ' ';
    for c in heading.chars() {
        if before == ']' && c == '(' {
            target = true;
        }
        before = c;
        if target {
            target = c != ')';
        } else if c == ' ' {
            anchor.push('-');
        } else if c.is_alphanumeric() || c == '-' || c == '_' {
            anchor.extend(c.to_lowercase());
        }
    }
    anchor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_follow_githubs_rule() {
        let text = "# A `b` of C, (d) – e!\n## Twice\n```\n# no\n```\n## Twice\n#no\n\
                    ### [x](y.md) & z_1\n<a id=\"own\"></a>\n";
        let found: Vec<_> = anchors(text).into_iter().collect();
        assert_eq!(
            found,
            ["#a-b-of-c-d--e", "#own", "#twice", "#twice-1", "#x--z_1"]
        );
    }

    #[test]
    fn sections_have_numbers() {
        let text = "## 3. One\n### 3.2 Two\n## §8 Three\n## 7.2 kernels\n## Four\n";
        let found: Vec<_> = sections(text).into_iter().collect();
        assert_eq!(found, ["§3", "§3.2", "§7.2", "§8"]);
        assert!(properties("**P17** holds; PELT, P").iter().eq(["P17"]));
    }
}
