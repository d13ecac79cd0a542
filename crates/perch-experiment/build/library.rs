// SPDX-License-Identifier: GPL-2.0-or-later
//! Lists the folder experiments/ for src/library.rs and src/trust.rs: each NAME.toml, with the
//! published figures in NAME.csv and the simulated ones in NAME.simulated.csv.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::fail;

const FOLDER: &str = "../../experiments";

/// Writes the lists into Rust files of the build.
pub fn list() {
    println!("cargo::rerun-if-changed={FOLDER}");
    let names = names("");
    for name in &names {
        if !exists(&format!("{name}.csv")) {
            fail(&format!(
                "experiments/{name}.csv is missing: an experiment is a NAME.toml beside the \
                 published figures in NAME.csv"
            ));
        }
    }
    let entry = |name: &String| {
        let (toml, csv) = (included(&format!("{name}.toml")), included(&format!("{name}.csv")));
        format!("({name:?}, {toml}, {csv})")
    };
    write(
        "experiments.rs",
        &[("EXPERIMENTS", "(&str, &str, &str)", names.iter().map(entry).collect())],
    );

    let predicted = self::names("predicted/");
    let held = names.iter().chain(&predicted);
    let held = held.filter(|name| exists(&format!("{name}.simulated.csv")));
    let entry = |name: &String| {
        let files = ["toml", "csv", "simulated.csv"].map(|end| included(&format!("{name}.{end}")));
        format!("({})", files.join(", "))
    };
    // A file without figures is a machine of the predictions.
    let machines = predicted.iter().filter(|name| !exists(&format!("{name}.csv")));
    let machine = |name: &String| {
        let file = format!("{name}.toml");
        format!("(\"experiments/{file}\", {})", included(&file))
    };
    write(
        "held.rs",
        &[
            ("HELD", "(&str, &str, &str)", held.map(entry).collect()),
            ("MACHINES", "(&str, &str)", machines.map(machine).collect()),
        ],
    );
}

/// The names of the TOML files in a folder below experiments/, sorted, with the folder.
fn names(folder: &str) -> Vec<String> {
    let path = Path::new(FOLDER).join(folder);
    let entries = fs::read_dir(path);
    let entries = entries.unwrap_or_else(|e| fail(&format!("experiments/{folder}: {e}")));
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some(format!("{folder}{}", name.strip_suffix(".toml")?))
        })
        .collect();
    names.sort();
    names
}

fn exists(file: &str) -> bool {
    Path::new(FOLDER).join(file).is_file()
}

fn included(file: &str) -> String {
    let path = format!("/../../experiments/{file}");
    format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {path:?}))")
}

/// Writes lists with their names and the types of their entries.
fn write(file: &str, lists: &[(&str, &str, Vec<String>)]) {
    let mut out = String::new();
    for (name, of, entries) in lists {
        out += &format!("const {name}: [{of}; {}] = [\n", entries.len());
        for entry in entries {
            out += &format!("    {entry},\n");
        }
        out += "];\n";
    }
    let path = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join(file);
    if let Err(error) = fs::write(&path, out) {
        fail(&format!("{}: {error}", path.display()));
    }
}
