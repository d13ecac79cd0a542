// SPDX-License-Identifier: GPL-2.0-or-later
//! Finds clang, for the build scripts that compile BPF C and for perch-scx, which compiles schedulers
//! when it is asked to.

use std::env;
use std::process::Command;

/// The oldest clang whose BPF back end knows address spaces (arenas) as well as they are used.
pub const WANTED: u32 = 19;

/// Returns a clang that is new enough: $PERCH_CLANG and no other if that is set.
///
/// # Errors
/// What is there instead, as the end of a sentence.
pub fn find() -> Result<String, String> {
    if let Ok(clang) = env::var("PERCH_CLANG") {
        return match version(&clang) {
            Some(version) if version >= WANTED => Ok(clang),
            Some(version) => Err(format!("$PERCH_CLANG is {clang}, which is clang {version}")),
            None => Err(format!("$PERCH_CLANG is {clang}, which is not clang")),
        };
    }
    let mut names = vec![format!("clang-{WANTED}"), "clang".to_string()];
    names.extend((WANTED + 1..WANTED + 10).map(|version| format!("clang-{version}")));
    let mut found = "there is none".to_string();
    for name in names {
        match version(&name) {
            Some(version) if version >= WANTED => return Ok(name),
            Some(version) => found = format!("only clang {version} is here"),
            None => {}
        }
    }
    Err(found)
}

/// The major version of a clang; none if it does not run or is something else.
fn version(clang: &str) -> Option<u32> {
    let output = Command::new(clang).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (_, rest) = text.split_once("clang version ")?;
    rest.split('.').next()?.parse().ok()
}
