// SPDX-License-Identifier: GPL-2.0-or-later
//! Every source file names its licence in its first line, and is at most 500 lines long.

use crate::{Complaint, Tree};

/// The longest that a source file may be.
pub const LONGEST_FILE: usize = 500;
const LICENCE: &str = "SPDX-License-Identifier: GPL-2.0-or-later";

/// Check both rules on every source file.
pub fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_source(path)) {
        let mut lines = text.lines();
        let mut first = lines.next().unwrap_or("");
        if first.starts_with("#!") {
            first = lines.next().unwrap_or("");
        }
        if !first.contains(LICENCE) {
            complaints.push(Complaint::new(
                path,
                1,
                "the first line must be an SPDX-License-Identifier of GPL-2.0-or-later \
                 (the second, after a #! line)",
            ));
        }
        let length = text.lines().count();
        // A program writes generated files, and no person reads one as a whole.
        if length > LONGEST_FILE && !path.ends_with("/generated.rs") {
            complaints.push(Complaint::new(
                path,
                LONGEST_FILE,
                format!(
                    "{length} lines; a source file has at most {LONGEST_FILE}: split it by what \
                     it is about"
                ),
            ));
        }
    }
    complaints
}

fn is_source(path: &str) -> bool {
    let extension = path
        .rsplit('/')
        .next()
        .and_then(|name| name.rsplit_once('.'));
    match extension {
        Some((_, extension)) => ["rs", "c", "h", "def", "sh"].contains(&extension),
        None => path == "x" || path == ".ci/run" || path.starts_with("scripts/"),
    }
}
