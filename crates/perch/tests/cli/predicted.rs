// SPDX-License-Identifier: GPL-2.0-or-later
//! The predictions of experiments/predicted/: their files fit together, and they run.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The `benchmark,where,row` of each line of a CSV file, by the names in its first line.
fn cells(csv: &str) -> BTreeSet<String> {
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let places = ["benchmark", "where", "row"]
        .map(|name| names.iter().position(|other| *other == name).unwrap());
    let cell = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        places.map(|place| fields[place]).join(",")
    };
    lines.map(cell).collect()
}

#[test]
fn each_prediction_has_a_figure_for_each_cell_and_runs() {
    let folder = Path::new(ROOT).join("experiments/predicted");
    let files = std::fs::read_dir(&folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let predicted =
        names.filter_map(|name| name.strip_suffix(".simulated.csv").map(str::to_string));
    let predicted: BTreeSet<String> = predicted.collect();
    assert!(predicted.len() >= 3, "{predicted:?}");
    for name in predicted {
        let read =
            |end: &str| std::fs::read_to_string(folder.join(format!("{name}{end}"))).unwrap();
        let published = cells(&read(".csv"));
        assert_eq!(published, cells(&read(".simulated.csv")), "{name}");
        // The whole file is read and checked before its lightest cell is run.
        let first = match name.as_str() {
            "hikey960" => "pipe/*",
            "milan-cache" => "schbench-new/*/workers=1",
            _ => "tbench/*/n=6",
        };
        let file = format!("experiments/predicted/{name}.toml");
        let output = Command::new(env!("CARGO_BIN_EXE_perch"))
            .args(["experiment", "run", &file, "--only", first, "--format", "csv", "-q"])
            .args(["--effort", "quick"])
            .current_dir(ROOT)
            .output()
            .unwrap();
        assert!(output.status.success(), "{name}: {output:?}");
        let ran = cells(&String::from_utf8(output.stdout).unwrap());
        assert!(ran.len() == 1 && ran.is_subset(&published), "{name}: {ran:?}");
    }
}
