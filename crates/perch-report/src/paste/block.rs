// SPDX-License-Identifier: GPL-2.0-or-later
//! Figures as multiples of the first arm's, in blocks of one unit and one direction: the input of
//! the formats of replies on the kernel list.

use crate::figure::figure;
use crate::paste::sheet::{Row, Sheet};
use crate::settled;

/// The rows of a sheet that measure the same.
pub struct Block<'a> {
    /// The benchmark with the place where it ran, or the workload of a comparison.
    pub test: String,
    /// The benchmark or the workload without its keys.
    pub kind: &'a str,
    /// The score that the rows show, where it has a name.
    pub quantity: Option<&'a str>,
    /// The unit of the figures.
    pub unit: &'a str,
    /// True where more is better.
    pub higher_is_better: bool,
    /// True where each row is a statistic; else all are means.
    pub of_statistics: bool,
    /// The loads, with the figures.
    pub rows: Vec<(&'a str, &'a Row)>,
}

impl<'a> Block<'a> {
    /// Returns the blocks of a sheet, in the order of their first rows.
    pub fn of(sheet: &'a Sheet) -> Vec<Block<'a>> {
        let of_statistics = sheet.iterations.is_some();
        let mut blocks: Vec<Block> = Vec::new();
        for row in &sheet.rows {
            let (test, kind, load, quantity) = match &sheet.iterations {
                _ if !sheet.place.is_empty() => {
                    let (load, score) = match row.label.split_once(':') {
                        Some((load, score)) => (load, Some(score.trim_start())),
                        None => (row.label.as_str(), None),
                    };
                    let test = format!("{} ({})", sheet.benchmark, sheet.place);
                    (test, sheet.benchmark.as_str(), load, score)
                }
                // The title of a comparison's statistics is the score, and their rows are named
                // by statistics.
                Some(found) => {
                    let (kind, _) = kind_and_keys(&found.workload);
                    let score = Some(sheet.benchmark.as_str());
                    (found.workload.clone(), kind, row.label.as_str(), score)
                }
                None => {
                    let (kind, keys) = kind_and_keys(&sheet.benchmark);
                    let score = Some(row.label.as_str());
                    (sheet.benchmark.clone(), kind, keys, score)
                }
            };
            let same = |block: &&mut Block| {
                (block.quantity, block.unit, block.higher_is_better)
                    == (quantity, row.unit.as_str(), row.higher_is_better)
            };
            match blocks.iter_mut().find(same) {
                Some(block) => block.rows.push((load, row)),
                None => blocks.push(Block {
                    test,
                    kind,
                    quantity,
                    unit: &row.unit,
                    higher_is_better: row.higher_is_better,
                    of_statistics,
                    rows: vec![(load, row)],
                }),
            }
        }
        blocks
    }
}

/// Splits `tbench:n=16` at its colon; a command line has none.
fn kind_and_keys(workload: &str) -> (&str, &str) {
    match workload.split_once(':') {
        Some((kind, keys)) if !workload.contains(char::is_whitespace) => (kind, keys),
        _ => (workload, "-"),
    }
}

/// Returns a load in the words of such replies: `n=4` as `4-threads`, `groups=4` as `4-groups`.
/// `noun` is what the benchmark's `n` counts. Other loads stay as they are.
pub fn load_in_words(load: &str, noun: &str) -> String {
    let is_number = |value: &str| !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
    match load.split_once('=') {
        Some((key, value)) if is_number(value) => match (key, noun) {
            ("n", "") => value.to_string(),
            ("n", noun) => format!("{value}-{noun}"),
            (key, _) => format!("{value}-{key}"),
        },
        _ => one_word(load),
    }
}

/// Returns `text` without blanks, at which scripts cut a line into fields.
pub fn one_word(text: &str) -> String {
    text.replace(char::is_whitespace, "_")
}

/// An arm's figure beside the first arm's. A part is none where there is no such number.
pub struct Share {
    /// The figure as a multiple of the first arm's; 0 where both are 0.
    pub multiple: Option<f64>,
    /// How much better it is, in percent of the first arm's; 0 where both are 0.
    pub gain_pct: Option<f64>,
    /// Its standard deviation in percent of itself; 0 where both are 0.
    pub std_pct: Option<f64>,
}

impl Share {
    /// Returns the share of an arm.
    pub fn of(row: &Row, arm: usize) -> Share {
        let (first, found) = (row.figures[0].value, &row.figures[arm]);
        let (multiple, gain_pct) = match (first == 0.0, found.value == 0.0) {
            (true, true) => (0.0, 0.0),
            _ => (found.value / first, row.gain_pct(arm)),
        };
        let std_pct =
            found.std.map(|std| if std == 0.0 { 0.0 } else { 100.0 * std / found.value.abs() });
        let sayable = |value: &f64| value.is_finite();
        Share {
            multiple: Some(multiple).filter(sayable),
            gain_pct: Some(gain_pct).filter(sayable),
            std_pct: std_pct.filter(sayable),
        }
    }
}

/// Returns a number with two digits after the point, with fewer where that would not be readable,
/// and a dash for none.
pub fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_string(),
        Some(value) if value.abs() < 1e7 => format!("{value:.2}"),
        Some(value) => format!("{value:.1e}"),
    }
}

/// Returns what a reader must know of a row beside its figures; empty where that is nothing.
pub fn remarks(arms: &[String], row: &Row) -> String {
    let mut remarks = Vec::new();
    if row.figures[0].value == 0.0 {
        for (arm, found) in arms.iter().zip(&row.figures) {
            if found.value != 0.0 {
                let value = figure(found.value);
                remarks.push(format!("from 0: {arm} is {value} {}", row.unit));
            }
        }
    }
    if row.fitted {
        remarks.push("fitted".to_string());
    }
    if row.unsettled {
        remarks.push(settled::MARK.to_string());
    }
    remarks.join(", ")
}

/// Returns the width of the widest text, at least `least`.
pub fn width<'a>(texts: impl IntoIterator<Item = &'a String>, least: usize) -> usize {
    let widths = texts.into_iter().map(|text| text.chars().count());
    widths.max().unwrap_or(0).max(least)
}
