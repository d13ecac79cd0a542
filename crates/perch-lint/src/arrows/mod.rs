// SPDX-License-Identifier: GPL-2.0-or-later
//! The arrows of the tree: between crates by their manifests, between files of a crate by their
//! imports and the methods they call, between C headers by their includes. No circle has more than
//! two files, and no arrow runs back up the order of `house.txt`.

mod arrow;
mod circles;
mod floors;
mod headers;
mod items;
mod methods;
mod modules;
mod rooms;

pub use arrow::Arrow;

use crate::{Complaint, House, Tree};

/// Check floors, rooms, walls and circles.
pub fn check(tree: &Tree, house: &House) -> Vec<Complaint> {
    let arrows = arrows(tree);
    let mut complaints = floors::check(tree, house);
    complaints.extend(rooms::check(tree, house, &arrows));
    complaints.extend(circles::check(tree, house, &arrows));
    complaints
}

/// Every arrow of the tree, one a pair of files: the first line that makes it.
pub fn arrows(tree: &Tree) -> Vec<Arrow> {
    let mut all = headers::arrows(tree);
    all.extend(modules::arrows(tree, &floors::crates(tree)));
    all.sort_by(|a, b| (&a.from, &a.to, a.line).cmp(&(&b.from, &b.to, b.line)));
    all.dedup_by(|a, b| (&a.from, &a.to) == (&b.from, &b.to));
    all
}
