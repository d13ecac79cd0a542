// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrows between C files: the files that they include in quotes.

use super::arrow::Arrow;
use crate::Tree;
use crate::lexer::{Kind, Language, tokens};
use crate::tree::{folder_of, join};

/// The includes of all C files whose targets are in the tree: beside the file that includes, in a
/// folder above it, or below `policy/include`.
///
/// A list (`.def`) is included several times, each time for another purpose. An include of its own
/// under `#ifdef NAME` is an arrow only of those files that define NAME.
pub fn arrows(tree: &Tree) -> Vec<Arrow> {
    let files: Vec<File<'_>> = tree
        .files()
        .filter(|(path, _)| Language::of(path) == Some(Language::C))
        .map(|(path, source)| read(tree, path, source))
        .collect();
    let mut found = Vec::new();
    for file in &files {
        for include in file
            .includes
            .iter()
            .filter(|include| !is_optional(file, include))
        {
            found.push(arrow(file.path, &include.to, include));
            let Some(list) = files.iter().find(|other| other.path == include.to) else {
                continue;
            };
            let wanted = list.includes.iter().filter(|other| {
                is_optional(list, other) && other.under.is_some_and(|name| file.defines(name))
            });
            found.extend(wanted.map(|other| arrow(file.path, &other.to, include)));
        }
    }
    found.retain(|arrow| arrow.from != arrow.to);
    found
}

/// The directives of a C file that make arrows.
struct File<'a> {
    path: &'a str,
    includes: Vec<Include<'a>>,
    defined: Vec<&'a str>,
}

struct Include<'a> {
    /// The file that it names.
    to: String,
    name: &'a str,
    line: usize,
    /// The name of the innermost `#ifdef` around it.
    under: Option<&'a str>,
}

impl File<'_> {
    fn defines(&self, name: &str) -> bool {
        self.defined.contains(&name)
    }
}

/// Returns whether a list includes this file for some of its users only.
fn is_optional(file: &File<'_>, include: &Include<'_>) -> bool {
    file.path.ends_with(".def") && include.under.is_some()
}

fn arrow(from: &str, to: &str, include: &Include<'_>) -> Arrow {
    let (from, to, name) = (from.to_owned(), to.to_owned(), include.name.to_owned());
    Arrow {
        from,
        to,
        line: include.line,
        name,
    }
}

fn read<'a>(tree: &Tree, path: &'a str, source: &'a str) -> File<'a> {
    let mut file = File {
        path,
        includes: Vec::new(),
        defined: Vec::new(),
    };
    // The names of the conditions that are open here; `None` for one that is no `#ifdef`.
    let mut open: Vec<Option<&str>> = Vec::new();
    for token in tokens(source, Language::C) {
        let Some(words) = token
            .text
            .strip_prefix('#')
            .filter(|_| token.kind == Kind::Directive)
        else {
            continue;
        };
        let mut words = words.split(|c: char| c.is_whitespace() || c == '(');
        let mut words = words.by_ref().filter(|word| !word.is_empty());
        match (words.next(), words.next()) {
            (Some("ifdef"), name) => open.push(name),
            (Some("if" | "ifndef"), _) => open.push(None),
            (Some("endif"), _) => drop(open.pop()),
            (Some("define"), Some(name)) => file.defined.push(name),
            _ => {}
        }
        if let Some(name) = included(token.text) {
            let under = open.iter().rev().find_map(|name| *name);
            if let Some(to) = target(tree, path, name) {
                file.includes.push(Include {
                    to,
                    name,
                    line: token.line,
                    under,
                });
            }
        }
    }
    file
}

fn included(directive: &str) -> Option<&str> {
    let rest = directive
        .strip_prefix('#')?
        .trim_start()
        .strip_prefix("include")?;
    let rest = rest.trim_start();
    let name = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
    name.or_else(|| rest.strip_prefix('<')?.split_once('>'))
        .map(|(name, _)| name)
}

fn target(tree: &Tree, path: &str, name: &str) -> Option<String> {
    let mut folder = folder_of(path);
    loop {
        if let Some(target) = join(folder, name).filter(|target| tree.is_file(target)) {
            return Some(target);
        }
        if folder.is_empty() {
            break;
        }
        folder = folder_of(folder);
    }
    join("policy/include", name).filter(|target| tree.is_file(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_includes_for_those_who_ask() {
        let tree = Tree::new([
            (
                "p/list.def",
                "#ifdef ALL\n#include \"one.h\"\n#endif\nX(1)\n",
            ),
            ("p/one.h", "#include \"base.h\"\n"),
            ("p/base.h", "#include \"list.def\"\n"),
            ("p/top.h", "#define ALL\n#include \"list.def\"\n"),
        ]);
        let found = arrows(&tree);
        let found: Vec<_> = found
            .iter()
            .map(|a| (a.from.as_str(), a.to.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("p/base.h", "p/list.def"),
                ("p/one.h", "p/base.h"),
                ("p/top.h", "p/list.def"),
                ("p/top.h", "p/one.h"),
            ]
        );
    }
}
