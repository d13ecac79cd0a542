// SPDX-License-Identifier: GPL-2.0-or-later
//! The machines that perch knows by name: every machine that the sources measured on, and one with
//! three kinds of CPU.

use crate::error::MachineError;
use crate::model::Machine;
use std::path::Path;

/// The name and the text of every library machine, in the order of `perch machine list`.
const MACHINES: [(&str, &str); 10] = [
    ("epyc7543", include_str!("../library/epyc7543.toml")),
    ("jacobsville", include_str!("../library/jacobsville.toml")),
    ("juno", include_str!("../library/juno.toml")),
    ("kunpeng920", include_str!("../library/kunpeng920.toml")),
    ("pixel3", include_str!("../library/pixel3.toml")),
    ("pixel3-phantom", include_str!("../library/pixel3-phantom.toml")),
    ("pixel4", include_str!("../library/pixel4.toml")),
    ("rt480", include_str!("../library/rt480.toml")),
    ("x5570", include_str!("../library/x5570.toml")),
    ("xeon240", include_str!("../library/xeon240.toml")),
];

/// Returns the library's names, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, _)| *name)
}

/// Returns the library machine `name`.
///
/// # Errors
/// Returns [`MachineError::Unknown`] when no library machine has that name.
pub fn load(name: &str) -> Result<Machine, MachineError> {
    match MACHINES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Machine::from_toml_str(text, &format!("library machine {name}")),
        None => Err(MachineError::Unknown { name: name.to_string(), near: near(name) }),
    }
}

/// Returns the library machine of that name, else the machine in the file at that path: the two
/// that `-m` takes.
///
/// # Errors
/// Returns [`MachineError::Unknown`] when the argument is neither, else the errors of
/// [`Machine::from_file`].
pub fn resolve(name_or_path: &str) -> Result<Machine, MachineError> {
    let path = Path::new(name_or_path);
    match load(name_or_path) {
        Err(MachineError::Unknown { .. }) if path.exists() => Machine::from_file(path),
        loaded => loaded,
    }
}

/// Returns the library's names within a few keystrokes of `name`, best first; all names when none
/// is so near.
fn near(name: &str) -> Vec<String> {
    // perch compares only the last part of a mistyped path.
    let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
    let wanted = stem.unwrap_or(name).to_lowercase();
    let mut ranked: Vec<(usize, &str)> = names()
        .filter_map(|known| {
            let distance = keystrokes(&wanted, known);
            let related = wanted.len() >= 3 && (known.contains(&wanted) || wanted.contains(known));
            (related || distance <= known.len() / 3).then_some((distance, known))
        })
        .collect();
    ranked.sort_unstable();
    if ranked.is_empty() {
        return names().map(str::to_string).collect();
    }
    ranked.into_iter().map(|(_, known)| known.to_string()).collect()
}

/// Returns the number of insertions, deletions and replacements that make `b` of `a` (Levenshtein).
fn keystrokes(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
