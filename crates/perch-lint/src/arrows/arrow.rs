// SPDX-License-Identifier: GPL-2.0-or-later
//! An arrow between two files, and the graph that arrows make.

use std::collections::{BTreeMap, BTreeSet};

/// One file needs another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrow {
    /// The file that needs.
    pub from: String,
    /// The file that is needed.
    pub to: String,
    /// The line of `from` that says so.
    pub line: usize,
    /// The name that `from` uses.
    pub name: String,
}

/// The files that each file needs.
pub fn graph(arrows: &[Arrow]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in arrows {
        graph.entry(&arrow.from).or_default().insert(&arrow.to);
        graph.entry(&arrow.to).or_default();
    }
    graph
}
