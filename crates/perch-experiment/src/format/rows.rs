// SPDX-License-Identifier: GPL-2.0-or-later
//! The rows of a benchmark, and the efforts of those that need another one.

use perch_file::Spanned;

use super::raw::RawBenchmark;
use super::refuse::refuse;
use crate::error::{ExperimentError, Source};
use crate::statistic::Statistic;

/// The most rows of a benchmark: efforts and keys are looked for row by row.
const MOST: usize = 4096;

/// The rows of a benchmark, each with its name.
pub(super) enum Rows<'a> {
    Workloads(&'a [Spanned<String>]),
    Statistics(Vec<(&'a Spanned<String>, Statistic)>),
}

impl<'a> Rows<'a> {
    /// Reads the rows from the one of the two keys that the benchmark uses.
    pub fn of(source: &Source, benchmark: &'a RawBenchmark) -> Result<Rows<'a>, ExperimentError> {
        match (&benchmark.rows, &benchmark.statistics) {
            (Some(rows), None) if rows.len() > MOST => {
                let reason = format!("it has {} rows", rows.len());
                let expected = format!("expected at most {MOST}");
                Err(refuse(source, &benchmark.name, "benchmark.rows", &reason, &expected))
            }
            (Some(rows), None) => Ok(Rows::Workloads(rows)),
            (None, Some(statistics)) => {
                let read = |name: &'a Spanned<String>| match name.get_ref().parse() {
                    Ok(statistic) => Ok((name, statistic)),
                    Err(error) => {
                        let key = "benchmark.statistics";
                        let expected = "expected mean, std, min, max, or a percentile between 0 and \
                                    100 such as 99th";
                        Err(refuse(source, name, key, &format!("{error}"), expected))
                    }
                };
                Ok(Rows::Statistics(statistics.iter().map(read).collect::<Result<_, _>>()?))
            }
            (rows, _) => {
                let reason = match rows {
                    Some(_) => "its rows are both workloads and statistics",
                    None => "it has no rows",
                };
                let expected = "expected either rows = [...], each a workload, or statistics = [...] \
                            over the repetitions of one workload";
                let key = "benchmark.rows";
                Err(refuse(source, &benchmark.name, key, reason, expected))
            }
        }
    }
}

/// Refuses efforts that name a row or a place that the benchmark does not have.
pub(super) fn check_efforts(
    source: &Source,
    benchmark: &RawBenchmark,
    places: &[&Spanned<String>],
    rows: &Rows,
) -> Result<(), ExperimentError> {
    let place_names = names(places.iter().copied());
    for effort in &benchmark.effort {
        match (rows, &effort.rows) {
            (Rows::Workloads(rows), Some(named)) => {
                let row_names = names(rows.iter());
                for row in named {
                    known(source, row, "row", "benchmark.effort.rows", &row_names)?;
                }
            }
            (Rows::Statistics(_), Some(named)) => {
                let key = "benchmark.effort.rows";
                let reason = "statistics share their simulations";
                let expected = "expected no `rows` in the effort: it holds for all of them";
                return Err(match named.first() {
                    Some(row) => refuse(source, row, key, reason, expected),
                    None => refuse(source, &benchmark.name, key, reason, expected),
                });
            }
            (Rows::Workloads(_), None) => {
                let key = "benchmark.effort.rows";
                let reason = "an effort names no rows";
                let expected = "expected those that it is for";
                return Err(refuse(source, &benchmark.name, key, reason, expected));
            }
            (Rows::Statistics(_), None) => {}
        }
        for place in effort.places.iter().flatten() {
            known(source, place, "place", "benchmark.effort.places", &place_names)?;
        }
    }
    Ok(())
}

/// Refuses keys for rows that the benchmark does not have.
pub(super) fn check_keys(
    source: &Source,
    benchmark: &RawBenchmark,
    rows: &Rows,
) -> Result<(), ExperimentError> {
    let of = |rows: &Rows| match rows {
        Rows::Workloads(rows) => rows.iter().map(|row| row.get_ref().clone()).collect(),
        Rows::Statistics(_) => Vec::new(),
    };
    let rows: Vec<String> = of(rows);
    let unknown = benchmark.keys.iter().find(|(row, _)| !rows.contains(row));
    unknown.map_or(Ok(()), |(row, keys)| {
        let reason = format!("there is no row `{row}`");
        let expected = if rows.is_empty() {
            "expected no `keys` where rows are statistics".to_string()
        } else {
            format!("expected one of {}", rows.join(", "))
        };
        Err(refuse(source, keys, "benchmark.keys", &reason, &expected))
    })
}

fn names<'a>(names: impl Iterator<Item = &'a Spanned<String>>) -> Vec<&'a str> {
    names.map(|name| name.get_ref().as_str()).collect()
}

fn known(
    source: &Source,
    wanted: &Spanned<String>,
    what: &str,
    key: &str,
    names: &[&str],
) -> Result<(), ExperimentError> {
    if names.contains(&wanted.get_ref().as_str()) {
        return Ok(());
    }
    let reason = format!("there is no {what} `{}`", wanted.get_ref());
    let expected = format!("expected one of {}", names.join(", "));
    Err(refuse(source, wanted, key, &reason, &expected))
}
