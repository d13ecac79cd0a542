// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch-lint [--arrows] [ROOT]`: check the tree at ROOT (the current folder) and print
//! what breaks a rule, a line each. Exit status 0 if nothing does, 1 if something does, 2 if the
//! tree or its `house.txt` cannot be read.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use perch_lint::{House, Tree, arrows, check};

const USAGE: &str = "usage: perch-lint [--arrows] [ROOT]
  --arrows  print every arrow between two files, and check nothing";

fn main() -> ExitCode {
    let mut root = PathBuf::from(".");
    let mut list = false;
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--arrows" => list = true,
            other if other.starts_with('-') => {
                eprintln!("perch-lint: unknown argument '{other}'\n{USAGE}");
                return ExitCode::from(2);
            }
            other => root = PathBuf::from(other),
        }
    }
    match run(&root, list) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("perch-lint: {error}");
            ExitCode::from(2)
        }
    }
}

/// Checks the tree, and returns whether it keeps every rule.
fn run(root: &Path, list: bool) -> Result<bool, String> {
    let tree = Tree::read(root).map_err(|error| format!("{}: {error}", root.display()))?;
    let house = House::of(&tree)?;
    if list {
        for arrow in arrows::arrows(&tree) {
            println!("{}:{} {} {}", arrow.from, arrow.line, arrow.to, arrow.name);
        }
        return Ok(true);
    }
    let complaints = check(&tree, &house);
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    for circle in &house.circles {
        eprintln!(
            "standing for now: a circle of up to {} files in {}: {}",
            circle.files, circle.within, circle.why
        );
    }
    if !complaints.is_empty() {
        eprintln!("{} complaints", complaints.len());
    }
    Ok(complaints.is_empty())
}
