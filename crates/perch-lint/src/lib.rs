// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules of the house that a program can check, without compiling anything: `scripts/tidy`
//! runs this crate, and so do `./x test` and `./x lint`.
//!
//! Each rule reads a [`Tree`], which is every file of the repository in memory, and returns
//! [`Complaint`]s. The order of crates and rooms, and the few exceptions with their reasons, stand
//! in `crates/perch-lint/house.txt` ([`House`]).
//!
//! A new rule is a file beside these, one line in [`check`] and a pair of trees in
//! `tests/rules.rs`: one that breaks the rule and its mended twin.

pub mod arrows;
pub mod complaint;
pub mod form;
pub mod house;
pub mod lengths;
pub mod lexer;
pub mod nearest;
pub mod prose;
pub mod references;
pub mod text;
pub mod tree;

pub use complaint::Complaint;
pub use house::House;
pub use tree::Tree;

/// Every rule over the whole tree; complaints come sorted by file and line.
pub fn check(tree: &Tree, house: &House) -> Vec<Complaint> {
    let mut complaints = form::check(tree);
    complaints.extend(lengths::check(tree));
    complaints.extend(references::check(tree, house));
    complaints.extend(arrows::check(tree, house));
    complaints.extend(prose::check(tree));
    complaints.sort();
    complaints.dedup();
    complaints
}
