// SPDX-License-Identifier: GPL-2.0-or-later
//! A crate depends on crates of lower floors only, as its `Cargo.toml` says. A crate that only
//! tests need may be on any floor.

use crate::house::{HOUSE_FILE, House, line_of};
use crate::{Complaint, Tree};

/// Check every manifest below `crates/`.
pub fn check(tree: &Tree, house: &House) -> Vec<Complaint> {
    if house.floors.is_empty() {
        return Vec::new();
    }
    let mut complaints = Vec::new();
    for krate in crates(tree) {
        let Some(floor) = floor_of(house, &krate) else {
            let line = line_of(tree, "floors");
            let what = format!("the crate {krate} stands on no floor: add it to one");
            complaints.push(Complaint::new(HOUSE_FILE, line, what));
            continue;
        };
        let path = format!("crates/{krate}/Cargo.toml");
        for (line, needed) in needs(tree.text(&path).unwrap_or("")) {
            let Some(below) = floor_of(house, &needed) else {
                continue;
            };
            if below <= floor {
                let side = if below == floor {
                    "stands beside it"
                } else {
                    "stands above it"
                };
                let what = format!(
                    "{krate} may not depend on {needed}, which {side}: see floors in {HOUSE_FILE}"
                );
                complaints.push(Complaint::new(&path, line, what));
            }
        }
    }
    complaints
}

/// The crates of the tree: the names of the folders below `crates/` that have a manifest.
pub fn crates(tree: &Tree) -> Vec<String> {
    let names = tree.files().filter_map(|(path, _)| {
        let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        (!name.contains('/')).then(|| name.to_owned())
    });
    names.collect()
}

fn floor_of(house: &House, krate: &str) -> Option<usize> {
    house
        .floors
        .iter()
        .position(|floor| floor.iter().any(|name| name == krate))
}

/// The names that a manifest depends on, with their lines, but without the dependencies of tests.
fn needs(manifest: &str) -> Vec<(usize, String)> {
    let mut counts = false;
    let mut found = Vec::new();
    for (index, line) in manifest.lines().enumerate() {
        if let Some(section) = line.trim().strip_prefix('[') {
            let section = section.trim_end_matches(']');
            counts = section.ends_with("dependencies") && !section.ends_with("dev-dependencies");
        } else if counts {
            let name = line.split(['.', '=', ' ']).next().unwrap_or("").trim();
            if !name.is_empty() && !name.starts_with('#') {
                found.push((index + 1, name.to_owned()));
            }
        }
    }
    found
}
