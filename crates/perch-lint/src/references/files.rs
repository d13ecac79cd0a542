// SPDX-License-Identifier: GPL-2.0-or-later
//! The file that a name stands for, seen from the file that speaks of it.

use crate::Tree;
use crate::tree::{folder_of, join};

/// The answer to a name.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// This file.
    One(String),
    /// A folder, or files by a pattern.
    Folder,
    /// These files, of which none is nearer than the others.
    Several(Vec<String>),
    /// No file.
    Nothing,
}

/// The file or folder that a link from `file` leads to.
pub fn linked(tree: &Tree, file: &str, path: &str) -> Option<String> {
    if path.is_empty() {
        return Some(file.to_owned());
    }
    let target = join(folder_of(file), path)?;
    (tree.is_file(&target) || tree.is_folder(&target)).then_some(target)
}

/// The words that a name stands among.
#[derive(Debug, Clone, Copy)]
pub struct Around<'a> {
    /// Its line.
    pub line: &'a str,
    /// Its page or comment.
    pub page: &'a str,
}

/// The file that prose in `file` means by `name`.
///
/// A name seen from the file's own folder or one above it comes first; then a file of the same
/// crate whose path ends in it; then the only file of the tree that does; then one whose crate the
/// same line names, or whose folder the same page names.
pub fn find(tree: &Tree, file: &str, name: &str, around: Around<'_>) -> Found {
    let name = name.strip_prefix("./").unwrap_or(name);
    if name.contains('*') {
        return by_pattern(tree, name);
    }
    let mut folder = folder_of(file);
    loop {
        if let Some(path) = join(folder, name) {
            if tree.is_file(&path) {
                return Found::One(path);
            }
            if tree.is_folder(&path) {
                return Found::Folder;
            }
        }
        if folder.is_empty() {
            break;
        }
        folder = folder_of(folder);
    }
    let tail = format!("/{}", name.trim_end_matches('/'));
    let all: Vec<&str> = tree
        .files()
        .map(|(path, _)| path)
        .filter(|path| path.ends_with(&tail))
        .collect();
    let mut near = all.iter().filter(|path| crate_of(path) == crate_of(file));
    let mut named = all.iter().filter(|path| {
        names_crate_of(around.line, path) || around.page.contains(&format!("{}/", folder_of(path)))
    });
    match (near.next(), &all[..], named.next()) {
        (Some(one), ..) | (None, [one], _) | (None, _, Some(one)) => Found::One((*one).to_owned()),
        (None, [], None) if tree.folders().any(|path| path.ends_with(&tail)) => Found::Folder,
        (None, [], None) => Found::Nothing,
        (None, several, None) => {
            Found::Several(several.iter().map(|path| (*path).to_owned()).collect())
        }
    }
}

/// The first two parts of a path below `crates`, else the first: the part of the tree that the file
/// belongs to.
fn crate_of(path: &str) -> &str {
    let parts = if path.starts_with("crates/") { 2 } else { 1 };
    let end = path
        .match_indices('/')
        .nth(parts - 1)
        .map_or(0, |(at, _)| at);
    &path[..end]
}

fn names_crate_of(around: &str, path: &str) -> bool {
    let name = crate_of(path).rsplit('/').next().unwrap_or("");
    let mut words = around.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
    !name.is_empty() && words.any(|word| word == name || word == name.replace('-', "_"))
}

fn by_pattern(tree: &Tree, pattern: &str) -> Found {
    let anywhere = format!("*/{pattern}");
    let exists = tree
        .files()
        .any(|(path, _)| matches(pattern, path) || matches(&anywhere, path));
    if exists {
        Found::Folder
    } else {
        Found::Nothing
    }
}

/// Returns whether `name` matches `pattern`, in which each `*` stands for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            (0..=tail.len()).any(|skip| tail.is_char_boundary(skip) && matches(rest, &tail[skip..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_looked_for_near_and_then_far() {
        let paths = [
            "crates/a/src/one.rs",
            "crates/a/src/x/two.rs",
            "crates/b/src/one.rs",
        ];
        let more = ["crates/b/src/three.rs", "p/p.md", "README.md"];
        let tree = Tree::new(paths.into_iter().chain(more).map(|path| (path, "")));
        let one = |path: &str| Found::One(path.to_owned());
        let find = |file, name, line| find(&tree, file, name, Around { line, page: line });
        assert_eq!(
            find("crates/a/src/x/two.rs", "one.rs", ""),
            one("crates/a/src/one.rs")
        );
        assert_eq!(
            find("crates/b/src/three.rs", "src/one.rs", ""),
            one("crates/b/src/one.rs")
        );
        assert_eq!(find("p/p.md", "three.rs", ""), one("crates/b/src/three.rs"));
        assert_eq!(
            find("p/p.md", "one.rs", ""),
            Found::Several(
                paths
                    .map(str::to_owned)
                    .into_iter()
                    .filter(|p| p.ends_with("one.rs"))
                    .collect()
            )
        );
        assert_eq!(
            find("p/p.md", "one.rs", "b's one.rs"),
            one("crates/b/src/one.rs")
        );
        assert_eq!(
            find("p/p.md", "one.rs", "in crates/b/src/"),
            one("crates/b/src/one.rs")
        );
        assert_eq!(find("p/p.md", "a/src/x/", ""), Found::Folder);
        assert_eq!(find("p/p.md", "src/*.rs", ""), Found::Folder);
        assert_eq!(find("p/p.md", "four.rs", ""), Found::Nothing);
    }
}
