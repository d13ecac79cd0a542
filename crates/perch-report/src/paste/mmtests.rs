// SPDX-License-Identifier: GPL-2.0-or-later
//! Comparisons in the layout of mmtests' `compare-mmtests.pl`.
//!
//! The layout follows that script's rules, so that people and scripts who know its tables can read
//! these: a gain is positive whether more or less is better; the first arm is compared with itself;
//! a name is cut at its first `-` into two lines of headings, and one without a `-` stands in the
//! first line less its last letter; a change of a mean that is more than chance is between `*` in
//! place of parentheses.

use std::fmt::Write;

use crate::paste::sheet::{Row, Sheet};

/// The widths of a figure and of a change: digits before and after the point.
const FIELD: usize = 12;
const CHANGE: usize = 7;

/// Returns one table.
pub fn table(sheet: &Sheet) -> String {
    let names: Vec<(String, String)> = sheet.rows.iter().map(|row| name(sheet, row)).collect();
    let width = |side: fn(&(String, String)) -> &str| {
        let lengths = names.iter().map(|name| side(name).chars().count());
        lengths.max().unwrap_or(0)
    };
    let (statistic, operation) = (width(|name| &name.0), width(|name| &name.1));
    // Figures have two digits, as in most tables of mmtests; four where two would show nothing of
    // them.
    let values = || sheet.rows.iter().flat_map(|row| &row.figures);
    let is_small = values().any(|figure| figure.value != 0.0 && figure.value.abs() < 1.0);
    let digits = if is_small { 4 } else { 2 };
    let mut text = String::new();
    for line in 0..2 {
        let heading = sheet.arms.iter().enumerate().map(|(index, arm)| {
            let part = halves(arm)[line];
            // mmtests does the same: in the second line nothing makes up for the names of the rows.
            let indent = if index == 0 { statistic + 1 + operation } else { 0 };
            format!("{:indent$}{part:>width$}", "", width = FIELD + CHANGE + 4)
        });
        let _ = writeln!(text, "{}", heading.collect::<String>().trim_end());
    }
    for (row, (name, of)) in sheet.rows.iter().zip(&names) {
        let _ = write!(text, "{name:<statistic$} {of:<operation$}");
        for (arm, figure) in row.figures.iter().enumerate() {
            let gain = row.gain_pct(arm);
            let gain = if gain.is_finite() { gain } else { f64::NAN };
            let [open, close] = if is_mean(row) && arm > 0 && row.is_significant(arm) {
                ['*', '*']
            } else {
                ['(', ')']
            };
            let _ = write!(text, "{:FIELD$.digits$} {open}{gain:CHANGE$.2}%{close}", figure.value);
        }
        text.push('\n');
    }
    text
}

/// Splits an arm's name into the two lines of headings.
fn halves(arm: &str) -> [&str; 2] {
    match arm.split_once('-') {
        Some((first, rest)) => [first, rest],
        None => {
            let last = arm.char_indices().next_back().map_or(0, |(at, _)| at);
            [&arm[..last], arm]
        }
    }
}

fn is_mean(row: &Row) -> bool {
    match row.of_load() {
        Some((_, score)) => score.is_none(),
        None => row.label == "mean",
    }
}

/// Returns mmtests' name for the statistic of a row, and the name of the quantity.
fn name(sheet: &Sheet, row: &Row) -> (String, String) {
    let blank = |text: &str| text.replace(char::is_whitespace, "_");
    let benchmark = || blank(&sheet.benchmark);
    if let Some((number, score)) = row.of_load() {
        let Some(score) = score else {
            return ("Amean".to_string(), number.to_string());
        };
        let percentile = |of: &str| format!("{}th-qrtle-{number}", decimal(of));
        return match (score.strip_prefix("wake_p"), score.strip_prefix("rps")) {
            (Some(of), _) if of.parse::<f64>().is_ok() => ("Lat".to_string(), percentile(of)),
            (_, Some(of)) if of.parse::<f64>().is_ok() => ("Rps".to_string(), percentile(of)),
            _ => ("Amean".to_string(), format!("{}-{number}", blank(score))),
        };
    }
    let statistic = match row.label.as_str() {
        "mean" => "Amean".to_string(),
        "std" => "Stddev".to_string(),
        "min" => "Min".to_string(),
        "max" => "Max".to_string(),
        label if is_percentile(label) => label.to_string(),
        label => return ("Amean".to_string(), blank(label)),
    };
    (statistic, benchmark())
}

/// Returns true for `99th` and the like.
fn is_percentile(label: &str) -> bool {
    let number = label.strip_suffix("th").map(str::parse::<f64>);
    matches!(number, Some(Ok(_)))
}

/// Returns `50` as `50.0`.
fn decimal(number: &str) -> String {
    if number.contains('.') { number.to_string() } else { format!("{number}.0") }
}
