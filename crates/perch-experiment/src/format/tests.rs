// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of places that are machines and rows that are statistics, read from a file;
//! crates/perch/tests/cli/refusals.rs tests every other refusal through the command.

use crate::error::ExperimentError;
use crate::model::{Experiment, machines};
use crate::statistic::Statistic;
use crate::testing::{FIGURES, STATISTICS};

fn read(text: &str, figures: &str) -> Result<Experiment, ExperimentError> {
    Experiment::from_toml(text, "e.toml", &|_| Ok(figures.to_string()))
}

/// Returns the message for [`STATISTICS`] when `from` is once replaced by `to`.
#[track_caller]
fn refused(from: &str, to: &str) -> String {
    assert!(STATISTICS.contains(from), "the file no longer says `{from}`");
    let error = read(&STATISTICS.replacen(from, to, 1), FIGURES).unwrap_err();
    assert!(error.is_input());
    error.to_string()
}

/// Returns the number of the line that contains `text`.
fn line(text: &str) -> usize {
    let found = STATISTICS.lines().position(|line| line.contains(text));
    found.unwrap() + 1
}

#[test]
fn a_place_has_its_own_machine_and_workload_else_the_ones_above_it() {
    let experiment = read(STATISTICS, FIGURES).unwrap();
    let loads: Vec<_> = experiment
        .loads
        .iter()
        .map(|load| (load.path(), load.machine.name.as_str(), load.workload.as_str()))
        .collect();
    assert_eq!(
        loads,
        [
            ("pairs/juno".to_string(), "juno", "tbench:n=2"),
            ("pairs/phone".to_string(), "pixel3", "tbench:n=3"),
            ("plain/all/n=1".to_string(), "juno", "tbench:n=1,where=all"),
        ]
    );
    assert_eq!(machines(&experiment.loads), ["juno", "pixel3"]);
}

#[test]
fn the_statistics_of_a_place_share_its_load_and_rows_that_are_workloads_are_means() {
    let experiment = read(STATISTICS, FIGURES).unwrap();
    let cells: Vec<_> =
        experiment.cells.iter().map(|cell| (cell.path(), cell.load, cell.statistic)).collect();
    assert_eq!(
        cells,
        [
            ("pairs/juno/mean".to_string(), 0, Statistic::Mean),
            ("pairs/juno/std".to_string(), 0, Statistic::Std),
            ("pairs/juno/99th".to_string(), 0, Statistic::Percentile(99.0)),
            ("pairs/phone/mean".to_string(), 1, Statistic::Mean),
            ("pairs/phone/std".to_string(), 1, Statistic::Std),
            ("pairs/phone/99th".to_string(), 1, Statistic::Percentile(99.0)),
            ("plain/all/n=1".to_string(), 2, Statistic::Mean),
        ]
    );
    assert!(experiment.cells[0].calibration.is_some());
}

#[test]
fn an_effort_holds_for_a_whole_table_of_statistics_and_the_places_it_names() {
    let experiment = read(STATISTICS, FIGURES).unwrap();
    let repetitions = experiment.loads.iter().map(|load| load.effort.repetitions);
    assert_eq!(repetitions.collect::<Vec<_>>(), [20, 30, 20]);
}

#[test]
fn the_machine_of_the_file_is_not_needed_where_every_place_has_its_own() {
    let alone = STATISTICS.replacen("machine = \"juno\"\n", "", 1);
    let alone = alone.replacen("name = \"juno\"\n", "name = \"juno\"\nmachine = \"juno\"\n", 1);
    let message = read(&alone, FIGURES).unwrap_err().to_string();
    assert!(message.contains("`all` has no machine; expected"), "{message}");
    let alone = alone.replacen(
        "places = [\"all\"]",
        "place = [{ name = \"all\", machine = \"pixel3\" }]",
        1,
    );
    let experiment = read(&alone, FIGURES).unwrap();
    assert_eq!(experiment.loads[2].machine.name, "pixel3");
}

/// Changes of the file, the line that the error blames for each, and words of the error. Names of
/// machines, workloads and statistics that do not exist, or that were not published.
const UNKNOWN: &str = r#"
machine = "pixel3" | machine = "pixle3" | machine = "pixel3" | `benchmark.place.machine` | did you mean pixel3
machine = "pixel3" | machin = "pixel3" | machine = "pixel3" | unknown field `machin` | `machine`
workload = "tbench:n=3" | workload = "tbench:n=x" | workload = "tbench:n=3" | `benchmark.place.workload` | n=x
workload = "tbench:n=2" | workload = "tbench:{row}" | workload = "tbench:n=2" | `{row}` in a workload whose rows are statistics | one workload for all
workload = "tbench:n=2" |  | name = "juno" | `juno` has no workload | expected `workload` in its [[benchmark.place]]
"99th"] | "99%"] | "99th"] | `benchmark.statistics` | no statistic `99%` | expected mean, std, min, max
"99th"] | "98th"] | "99th"] | `benchmark.statistics` | pairs/juno/98th has no figures | figures.csv
"99th"] | "99th", "mean"] | "99th"] | `benchmark.statistics` | pairs/juno/mean is there twice
, "99th"] | ] | name = "statistics" | pairs/juno/99th of figures.csv:4 | every published row must be simulated
"#;

/// Keys that contradict each other or the published figures.
const CONTRADICTORY: &str = r#"
statistics = [ | rows = ["n=1"]\nstatistics = [ | name = "pairs" | both workloads and statistics | expected either rows
rows = ["n=1"] |  | name = "plain" | it has no rows | expected either rows
places = ["all"] |  | name = "plain" | it has no places | expected either places
statistics = [ | places = ["juno"]\nstatistics = [ | name = "pairs" | places in both forms | expected either places
unit = "MB/s" | unit = "GB/s" | unit = "MB/s" | `benchmark.unit` | pairs/juno/mean was published in `MB/s`
repetitions = 20 | repetitions = 1 | repetitions = 20 | `repetitions` | 1 iteration has no std | expected at least 2
repetitions = 30 | repetitions = 1 | repetitions = 30 | `repetitions` | 1 iteration has no std
places = ["phone"] | rows = ["mean"] | places = ["phone"] | `benchmark.effort.rows` | share their simulations | expected no `rows`
places = ["phone"] | places = ["phones"] | places = ["phone"] | `benchmark.effort.places` | no place `phones` | expected one of juno, phone
row = "mean" | row = "median" | benchmarks = [ | `calibration` | no cell pairs/juno/median
"#;

#[test]
fn what_contradicts_itself_is_named_with_file_line_and_key() {
    for row in UNKNOWN.lines().skip(1).chain(CONTRADICTORY.lines().skip(1)) {
        let columns: Vec<&str> = row.split(" | ").collect();
        let message = refused(columns[0], &columns[1].replace("\\n", "\n"));
        let place = format!("e.toml:{}", line(columns[2]));
        for words in columns[3..].iter().copied().chain([place.as_str()]) {
            assert!(message.contains(words), "{row}: `{words}`: {message}");
        }
    }
}

#[test]
fn an_effort_of_workloads_still_names_its_rows() {
    let text = format!("{STATISTICS}\n").replacen(
        "rows = [\"n=1\"]",
        "rows = [\"n=1\"]\neffort = [{ repetitions = 3 }]",
        1,
    );
    let message = read(&text, FIGURES).unwrap_err().to_string();
    assert!(message.contains("an effort names no rows"), "{message}");
}
