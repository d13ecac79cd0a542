// SPDX-License-Identifier: GPL-2.0-or-later
//! Experiments, their published figures, arms and modes.

use std::fs;
use std::path::Path;

use perch_experiment::{Arm, Experiment};
use perch_fuzz::refused;
use perch_policy::Modes;

use crate::{budget, files, read, scratch, strings, text, tree};

#[test]
fn arm() {
    let seeds = strings(&[
        "near:cluster=perch",
        "all:cluster=posted,capacity=upstream,cache=off,overload=off,steer=perch",
        "cluster=off",
        "l:overload=perch@16",
    ]);
    let words = r#"
cluster¦capacity¦cache¦overload¦steer¦off¦posted¦upstream¦perch¦=¦,¦:¦layout=¦none¦\0¦\u{1b}[31m¦ "#;
    text("arm", 8000, seeds, words, &|input, _| {
        let arm = String::from_utf8_lossy(input);
        match arm.parse::<Modes>() {
            Ok(modes) => match modes.to_string().parse::<Modes>() {
                Ok(again) if again == modes => {}
                other => return Err(format!("{modes} is read again as {other:?}")),
            },
            Err(error) => refused(&error.to_string(), "", input)?,
        }
        match Arm::parse(&arm, perch_policy::Era::V7_2) {
            Ok(_) => Ok(()),
            Err(error) => refused(&error.to_string(), &arm, input),
        }
    });
}

fn judged(path: &Path, origin: &str, input: &[u8]) -> Result<(), String> {
    match Experiment::from_file(path, budget()) {
        Ok(_) => Ok(()),
        Err(error) => refused(&error.to_string(), origin, input),
    }
}

/// The experiments, beside whose inputs their figures are.
#[test]
fn experiment() {
    for name in ["cache-inhibit", "capacity-wakeup", "cluster-scan", "queue-steer", "rt-overload"] {
        let figures = format!("{name}.csv");
        let path = crate::folder().join(&figures);
        fs::create_dir_all(crate::folder()).expect("a folder");
        fs::write(path, read(&tree("experiments").join(figures))).expect("a file");
    }
    let words = r#"
[[arm]]¦[[benchmark]]¦[[calibration]]¦[c2c]¦name¦modes¦workload¦places¦rows¦scores¦published¦
repetitions¦warmup_ms¦measure_ms¦hz¦era¦"5.5"¦machine¦columns¦where¦row¦{n}¦{}¦relative = true¦
"/dev/zero"¦"../"¦=¦[¦]¦{¦}¦"¦nan¦\0¦\u{1b}"#;
    text("experiment", 700, files("experiments", ".toml"), words, &|input, path| {
        judged(path, &path.display().to_string(), input)
    });
}

#[test]
fn figures() {
    let words = r#"
benchmark¦where¦row¦baseline¦patched¦unit¦,¦"¦""¦\r\n¦%¦#¦nan¦inf¦-¦ ¦\0¦\u{1b}¦\u{feff}"#;
    let folder = scratch("figures");
    let experiment = read(&tree("experiments/cluster-scan.toml"));
    let experiment = String::from_utf8(experiment).expect("TOML is text");
    let experiment = experiment.replace("\"cluster-scan.csv\"", "\"../figures.input\"");
    assert!(experiment.contains("figures.input"));
    let path = folder.join("experiment.toml");
    fs::write(&path, experiment).expect("a file");
    let mut seeds = files("experiments", ".csv");
    // Most are changes of the figures that belong to the experiment.
    let own = read(&tree("experiments/cluster-scan.csv"));
    seeds.extend(vec![own; 8]);
    text("figures", 600, seeds, words, &|input, _| judged(&path, "figures", input));
}
