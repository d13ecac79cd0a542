// SPDX-License-Identifier: GPL-2.0-or-later
//! Every file, section and anchor that a comment or a page speaks of exists.
//!
//! A link of Markdown is followed as a browser would. A mention in prose (`wake.h`, `docs/live.md`,
//! an anchor, a section's number or a property after a page's name) counts as good if it names a
//! file beside the one that speaks, above it, in the same crate, or the only file of the tree that
//! has this name.

mod files;
mod links;
mod mentions;
mod pages;

use std::collections::BTreeSet;

use crate::house::{HOUSE_FILE, House, line_of};
use crate::nearest::nearest;
use crate::text::{self, Kind};
use crate::{Complaint, Tree};

use files::{Around, Found};
use mentions::{Mention, Place};

/// Check every reference of the tree, and that every exception of `house` is needed.
pub fn check(tree: &Tree, house: &House) -> Vec<Complaint> {
    let mut checker = Checker {
        tree,
        house,
        used: BTreeSet::new(),
        complaints: Vec::new(),
    };
    for (path, source) in tree.files() {
        if path == HOUSE_FILE {
            continue;
        }
        for block in text::blocks(path, source) {
            // A test may make pages up.
            if block.kind == Kind::Literal && path.contains("/tests/") {
                continue;
            }
            let mut text = block.text.clone();
            if block.kind == Kind::Page {
                for link in links::links(&block.text) {
                    checker.link(path, block.line_at(link.range.start), &link);
                    mentions::blank(&mut text, link.target_range.clone());
                }
            }
            for mention in mentions::mentions(&text, block.kind) {
                let line = block.line_at(mention.offset);
                let around = Around {
                    line: mentions::line_around(&text, mention.offset),
                    page: &block.text,
                };
                checker.mention(path, line, &mention, around);
            }
        }
    }
    checker.unused();
    checker.complaints
}

struct Checker<'a> {
    tree: &'a Tree,
    house: &'a House,
    /// Indices of the exceptions that something needed.
    used: BTreeSet<usize>,
    complaints: Vec<Complaint>,
}

impl Checker<'_> {
    fn complain(&mut self, file: &str, line: usize, what: String, near: &[&str]) {
        let hint = if near.is_empty() {
            String::new()
        } else {
            format!("; nearest: {}", near.join(", "))
        };
        self.complaints
            .push(Complaint::new(file, line, what + &hint));
    }

    fn link(&mut self, file: &str, line: usize, link: &links::Link) {
        let Some(target) = files::linked(self.tree, file, &link.path) else {
            let near = nearest(&link.path, self.tree.files().map(|(path, _)| path));
            let what = format!("the link to '{}' leads to no file", link.path);
            self.complain(file, line, what, &near);
            return;
        };
        self.place(file, line, &target, link.place.as_ref());
    }

    fn mention(&mut self, file: &str, line: usize, mention: &Mention, around: Around<'_>) {
        if self.is_elsewhere(&mention.name) {
            return;
        }
        match files::find(self.tree, file, &mention.name, around) {
            Found::One(target) => self.place(file, line, &target, mention.place.as_ref()),
            Found::Folder => {}
            Found::Several(files) => {
                let near: Vec<&str> = files.iter().take(3).map(String::as_str).collect();
                let what = format!(
                    "'{}' is the name of {} files, none of them near: name its folder too",
                    mention.name,
                    files.len()
                );
                self.complain(file, line, what, &near);
            }
            Found::Nothing => {
                let all = self
                    .tree
                    .files()
                    .map(|(path, _)| path)
                    .chain(self.tree.folders());
                let near = nearest(&mention.name, all);
                self.complain(file, line, format!("there is no '{}'", mention.name), &near);
            }
        }
    }

    /// The heading, section or property `place` of the page `target`.
    fn place(&mut self, file: &str, line: usize, target: &str, place: Option<&Place>) {
        let (Some(place), Some(text)) = (place, self.tree.text(target)) else {
            return;
        };
        let (wanted, known) = match place {
            Place::Anchor(_) if !target.ends_with(".md") => return,
            Place::Anchor(name) => (format!("#{name}"), pages::anchors(text)),
            Place::Section(number) => (format!("§{number}"), pages::sections(text)),
            Place::Property(name) => (name.clone(), pages::properties(text)),
        };
        if known.contains(&wanted) {
            return;
        }
        let mut near = nearest(&wanted, known.iter().map(String::as_str));
        if near.is_empty() {
            near = known.iter().map(String::as_str).take(3).collect();
        }
        self.complain(file, line, format!("{target} has no '{wanted}'"), &near);
    }

    fn is_elsewhere(&mut self, name: &str) -> bool {
        let house = self.house;
        let found = house
            .elsewhere
            .iter()
            .position(|entry| files::matches(&entry.name, name));
        self.used.extend(found);
        found.is_some()
    }

    fn unused(&mut self) {
        for (index, entry) in self.house.elsewhere.iter().enumerate() {
            if !self.used.contains(&index) {
                let line = line_of(self.tree, &entry.name);
                let what = format!(
                    "nothing speaks of '{}' any more: remove this entry",
                    entry.name
                );
                self.complaints.push(Complaint::new(HOUSE_FILE, line, what));
            }
        }
    }
}
