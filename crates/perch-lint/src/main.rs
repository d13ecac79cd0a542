// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch-lint [--prose] [--arrows] [ROOT]`: check the tree at ROOT (the current folder) and print
//! what breaks a rule, a line each. Exit status 0 if nothing does, 1 if something does, 2 if the
//! tree or its `house.txt` cannot be read.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use perch_lint::{House, Tree, arrows, check, prose};

const USAGE: &str = "usage: perch-lint [--prose] [--arrows] [ROOT]
  --prose   print also each sentence that begins with a headless who, what or whether
  --arrows  print every arrow between two files, and check nothing";

fn main() -> ExitCode {
    let mut root = PathBuf::from(".");
    let (mut sentences, mut list) = (false, false);
    for argument in env::args().skip(1) {
        match argument.as_str() {
            "--prose" => sentences = true,
            "--arrows" => list = true,
            other if other.starts_with('-') => {
                eprintln!("perch-lint: unknown argument '{other}'\n{USAGE}");
                return ExitCode::from(2);
            }
            other => root = PathBuf::from(other),
        }
    }
    match run(&root, sentences, list) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("perch-lint: {error}");
            ExitCode::from(2)
        }
    }
}

/// Checks the tree, and returns whether it keeps every rule.
fn run(root: &Path, sentences: bool, list: bool) -> Result<bool, String> {
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
    if sentences {
        warn_of_prose(&tree);
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

/// Print headless sentences and how many each file has; they fail nothing.
fn warn_of_prose(tree: &Tree) {
    let found = prose::headless(tree);
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for sentence in &found {
        println!(
            "{}:{}: warning: headless: {}",
            sentence.file, sentence.line, sentence.what
        );
        *files.entry(&sentence.file).or_default() += 1;
    }
    for (file, number) in &files {
        println!("{number:5} {file}");
    }
    println!(
        "{:5} headless sentences in {} files",
        found.len(),
        files.len()
    );
}
