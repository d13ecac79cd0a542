// SPDX-License-Identifier: GPL-2.0-or-later
//! Arrows between C files: what they include in quotes.

use super::arrow::Arrow;
use crate::Tree;
use crate::lexer::{Kind, Language, tokens};
use crate::tree::{folder_of, join};

/// The includes of all C files whose targets are in the tree: beside the file that includes, in a
/// folder above it, or below `policy/include`.
pub fn arrows(tree: &Tree) -> Vec<Arrow> {
    let mut found = Vec::new();
    for (path, source) in tree.files() {
        if Language::of(path) != Some(Language::C) {
            continue;
        }
        for token in tokens(source, Language::C) {
            let Some(name) = included(token.text).filter(|_| token.kind == Kind::Directive) else {
                continue;
            };
            if let Some(to) = target(tree, path, name).filter(|to| to != path) {
                let (from, name) = (path.to_owned(), name.to_owned());
                found.push(Arrow {
                    from,
                    to,
                    line: token.line,
                    name,
                });
            }
        }
    }
    found
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
