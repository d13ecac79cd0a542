// SPDX-License-Identifier: GPL-2.0-or-later
//! The score, or several scores, of a simulation that a benchmark's cells show.

use perch_file::Spanned;

use super::raw::{RawBenchmark, RawPrinted};
use super::refuse::refuse;
use crate::error::{ExperimentError, Source};
use crate::model::{Judging, Wanted};
use crate::published::Printed;

/// One score of a benchmark.
pub(super) struct ScoreOf<'a> {
    /// The text behind the colon in a row's name, where rows have several scores.
    pub suffix: Option<&'a str>,
    pub wanted: Wanted,
    /// The place of the unit in the file, and the key that the unit stands under.
    pub unit: &'a Spanned<String>,
    pub unit_key: &'static str,
    pub judging: Judging,
}

impl ScoreOf<'_> {
    /// Returns the name of the cell of `row`.
    pub fn cell_of(&self, row: &str) -> String {
        match self.suffix {
            Some(suffix) => format!("{row}:{suffix}"),
            None => row.to_string(),
        }
    }
}

/// Returns the meaning of the signs of a benchmark's printed changes.
pub(super) fn printed(benchmark: &RawBenchmark) -> Printed {
    match benchmark.printed {
        RawPrinted::Rise => Printed::Rise,
        RawPrinted::Fall => Printed::Fall,
    }
}

/// Reads the scores from the one of the two forms that the benchmark uses.
pub(super) fn scores<'a>(
    source: &Source,
    benchmark: &'a RawBenchmark,
) -> Result<Vec<ScoreOf<'a>>, ExperimentError> {
    let wrong = |key: &str, reason: &str, expected: &str| {
        Err(refuse(source, &benchmark.name, key, reason, expected))
    };
    let judging = |rounded: &Option<Spanned<f64>>, relative: bool| match rounded {
        Some(off) if !(off.get_ref().is_finite() && *off.get_ref() >= 0.0) => {
            let reason = format!("{} is not a distance", off.get_ref());
            let expected = "expected how far a rounded figure may be off, 0 or more";
            Err(refuse(source, off, "within_rounded", &reason, expected))
        }
        rounded => Ok(Judging {
            within_rounded: rounded.as_ref().map(|off| *off.get_ref()),
            relative: benchmark.relative || relative,
        }),
    };
    let Some(several) = &benchmark.scores else {
        let Some(unit) = &benchmark.unit else {
            let expected = "expected `unit`, or `scores = [...]` with a unit each";
            return wrong("benchmark.unit", "it has no unit", expected);
        };
        return Ok(vec![ScoreOf {
            suffix: None,
            wanted: Wanted { name: benchmark.score.clone(), unit: unit.get_ref().clone() },
            unit,
            unit_key: "benchmark.unit",
            judging: judging(&benchmark.within_rounded, false)?,
        }]);
    };
    let (key, apart) = ("benchmark.scores", "expected each score to say so itself");
    if benchmark.score.is_some() || benchmark.unit.is_some() || benchmark.within_rounded.is_some() {
        let reason = "`score`, `unit` or `within_rounded` beside several scores";
        return wrong(key, reason, apart);
    }
    if benchmark.statistics.is_some() {
        let expected = "expected rows = [...], each a workload";
        return wrong(key, "several scores of rows that are statistics", expected);
    }
    if several.is_empty() {
        return wrong(key, "it has no scores", "expected at least one");
    }
    let mut scores: Vec<ScoreOf> = Vec::new();
    for score in several {
        let name = score.name.get_ref();
        if scores.iter().any(|other| other.suffix == Some(name)) {
            let reason = format!("`{name}` is there twice");
            return Err(refuse(source, &score.name, key, &reason, ""));
        }
        scores.push(ScoreOf {
            suffix: Some(name),
            wanted: Wanted { name: Some(name.clone()), unit: score.unit.get_ref().clone() },
            unit: &score.unit,
            unit_key: "benchmark.scores.unit",
            judging: judging(&score.within_rounded, score.relative)?,
        });
    }
    Ok(scores)
}

/// Returns the indices of `scores`, grouped by unit, because a table has one unit.
pub(super) fn by_unit(scores: &[ScoreOf]) -> Vec<Vec<usize>> {
    let mut tables: Vec<Vec<usize>> = Vec::new();
    for (index, score) in scores.iter().enumerate() {
        let same = |table: &&mut Vec<usize>| scores[table[0]].wanted.unit == score.wanted.unit;
        match tables.iter_mut().find(same) {
            Some(table) => table.push(index),
            None => tables.push(vec![index]),
        }
    }
    tables
}

#[cfg(test)]
mod tests {
    use crate::error::ExperimentError;
    use crate::model::Experiment;
    use crate::testing::{SCORES, SCORES_FIGURES};

    fn read(text: &str) -> Result<Experiment, ExperimentError> {
        Experiment::from_toml(text, "e.toml", &|_| Ok(SCORES_FIGURES.to_string()))
    }

    #[test]
    fn a_row_is_simulated_once_and_has_a_cell_a_score() {
        let experiment = read(SCORES).unwrap();
        let loads: Vec<_> = experiment.loads.iter().map(|load| load.path()).collect();
        assert_eq!(loads, ["several/all/two", "several/all/n=3", "multiples/all/n=2"]);
        // Where a row is not a key and value itself, another key says what the row stands for.
        assert_eq!(experiment.loads[0].workload, "schbench:workers=2");
        let cells = experiment.cells.iter();
        let cells: Vec<_> = cells.map(|c| (c.row.as_str(), c.load, c.score)).collect();
        assert_eq!(
            cells,
            [
                // Each unit has a table of its own.
                ("two:wake_p50.0", 0, 0),
                ("two:wake_p99.0", 0, 2),
                ("n=3:wake_p50.0", 1, 0),
                ("n=3:wake_p99.0", 1, 2),
                ("two:rps20", 0, 1),
                ("n=3:rps20", 1, 1),
                ("n=2", 2, 0),
            ]
        );
        let rounded = |i: usize| experiment.cells[i].judging.within_rounded;
        assert_eq!((rounded(0), rounded(1), rounded(4)), (Some(1.0), None, None));
        let fitted = experiment.cells.iter().map(|c| c.calibration.is_some());
        let fitted: Vec<_> = fitted.collect();
        assert_eq!(fitted, [true, true, false, false, true, false, false]);
        // The source printed these changes as gains; a change is positive where the patched figure
        // is larger.
        let change = |i: usize| experiment.cells[i].published.delta_pct;
        assert_eq!([0, 1, 4, 6].map(change), [-10.0, 25.0, -2.0, -9.0]);
    }

    /// Changes of the file, the line that the error blames for each, and words of the error.
    const CONTRADICTORY: &str = r#"
printed = "fall"\nscores | scores | name = "several" | `benchmark.printed` | several/all/two:wake_p50.0 of figures.csv:2 changes the other way | expected printed = "fall"
printed = "fall"\nscores | printed = "up"\nscores | printed = "fall" | unknown variant `up` | `rise` or `fall`
within_rounded = 1 } | within_rounded = -1 } | within_rounded = 1 } | `within_rounded`: -1 is not a distance | 0 or more
"rps20", unit = "req/s" | "rps20", unit = "us" | "rps20" | `benchmark.scores.unit` | was published in `req/s`
"rps20" | "wake_p50.0" | "rps20" | `benchmark.scores` | `wake_p50.0` is there twice
scores = [ | unit = "us"\nscores = [ | name = "several" | beside several scores | expected each score to say so
unit = "times" |  | name = "multiples" | `benchmark.unit` | it has no unit
keys = { two = | keys = { four = | keys = { | `benchmark.keys` | no row `four` | expected one of two, n=3
row = "two:*" | row = "four:*" | benchmarks = [ | `calibration` | there is no cell several/all/four:*
,\n    { name = "wake_p99.0", unit = "us" },\n] | ,\n] | name = "scores" | two:wake_p99.0 of figures.csv:3 | must be simulated
"#;

    #[test]
    fn what_contradicts_itself_is_named_with_line_and_key() {
        for row in CONTRADICTORY.lines().skip(1) {
            let columns: Vec<&str> = row.split(" | ").collect();
            let [from, to] = [0, 1].map(|column| columns[column].replace("\\n", "\n"));
            assert!(SCORES.contains(&from), "the file no longer says `{from}`");
            let error = read(&SCORES.replacen(&from, &to, 1)).unwrap_err();
            let message = error.to_string();
            let line = SCORES.lines().position(|line| line.contains(columns[2]));
            let place = format!("e.toml:{}", line.unwrap() + 1);
            for words in columns[3..].iter().copied().chain([place.as_str()]) {
                assert!(message.contains(words), "{row}: `{words}`: {message}");
            }
        }
    }
}
