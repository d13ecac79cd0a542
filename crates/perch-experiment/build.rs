// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists the folder experiments/ for src/library.rs: each NAME.toml, with the published figures in
//! NAME.csv.

use std::path::{Path, PathBuf};
use std::process::exit;
use std::{env, fs};

fn main() {
    let folder = "../../experiments";
    println!("cargo::rerun-if-changed={folder}");
    let entries = fs::read_dir(folder).unwrap_or_else(|e| fail(&format!("experiments/: {e}")));
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(name.strip_suffix(".toml")?.to_string())
        })
        .collect();
    names.sort();
    let mut out = format!(
        "const EXPERIMENTS: [(&str, &str, &str); {}] = [\n",
        names.len()
    );
    for name in names {
        let text = |ending: &str| {
            let file = format!("{name}.{ending}");
            if !Path::new(folder).join(&file).is_file() {
                fail(&format!(
                    "experiments/{file} is missing: an experiment is a NAME.toml beside the \
                     published figures in NAME.csv"
                ));
            }
            let path = format!("/../../experiments/{file}");
            format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))")
        };
        out += &format!("    ({name:?}, {}, {}),\n", text("toml"), text("csv"));
    }
    out += "];\n";
    let path = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("experiments.rs");
    if let Err(error) = fs::write(&path, out) {
        fail(&format!("{}: {error}", path.display()));
    }
}

/// Ends the build with a message instead of a panic's backtrace.
fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    exit(1)
}
