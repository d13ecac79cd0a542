// SPDX-License-Identifier: GPL-2.0-or-later
//! The table in which replies to scheduler series on the kernel list compare hackbench, netperf,
//! tbench and schbench: a row for each case and load, the baseline as 1.00, and changes in percent
//! of which a positive one is a gain, each with its relative standard deviation.
//!
//! The columns stand where those replies have them. A name or a number that is wider widens its
//! column, and further arms follow to the right.

use std::fmt::Write;

use crate::paste::block::{Block, Share, load_in_words, number, one_word, remarks, width};
use crate::paste::mail::{WIDTH, ascii, wrapped};
use crate::paste::sheet::Sheet;

/// The least widths of the names of cases and loads.
const CASE: usize = 22;
const LOAD: usize = 14;
/// The least widths of the baseline, of a change, and of a deviation.
const BASELINE: usize = 5;
const CHANGE: usize = 6;
const STD: usize = 6;

/// Returns the tables of a sheet, one for each unit and direction.
pub fn tables(sheet: &Sheet) -> String {
    let blocks = Block::of(sheet);
    let tables: Vec<String> = blocks.iter().map(|block| table(sheet, block)).collect();
    ascii(&tables.join("\n"))
}

fn table(sheet: &Sheet, block: &Block) -> String {
    let quantity = block.quantity.map_or(String::new(), |name| format!(" {name}"));
    let direction = if block.higher_is_better { "more" } else { "less" };
    let title =
        format!("{}{quantity}, {}, {direction} is better, + is a gain", block.test, block.unit);
    let title = wrapped(&title, "", "", "");
    let underline = title.lines().map(|line| line.chars().count().min(WIDTH));
    let mut text = format!("{title}{}\n", "=".repeat(underline.max().unwrap_or(0)));
    let mut columns = vec![
        column("case", CASE, block.rows.iter().map(|_| one_word(block.kind))),
        column(
            "load",
            LOAD,
            block.rows.iter().map(|(load, _)| load_in_words(load, noun(block.kind))),
        ),
    ];
    for (arm, name) in sheet.arms.iter().enumerate() {
        let (heading, least) = match arm {
            0 => (format!("{name}(std%)"), BASELINE),
            _ => (format!("{name}%( std%)"), CHANGE),
        };
        let shares = || block.rows.iter().map(|(_, row)| Share::of(row, arm));
        let values: Vec<String> = match arm {
            0 => shares().map(|share| number(share.multiple)).collect(),
            _ => shares().map(|share| signed(share.gain_pct)).collect(),
        };
        let spreads: Vec<String> = shares().map(|share| number(share.std_pct)).collect();
        let (left, right) = (width(&values, least), width(&spreads, STD));
        let cells = values.iter().zip(&spreads);
        let cells = cells.map(|(value, std)| format!("{value:>left$} ({std:>right$})"));
        let mut cells: Vec<String> = [heading].into_iter().chain(cells).collect();
        let width = width(&cells, 0);
        for cell in &mut cells {
            *cell = format!("{cell:>width$}");
        }
        columns.push(cells);
    }
    let no_remark = String::new();
    let remarks = block.rows.iter().map(|(_, row)| remarks(&sheet.arms, row));
    columns.push([no_remark].into_iter().chain(remarks).collect());
    for line in 0..=block.rows.len() {
        let cells: Vec<&str> = columns.iter().map(|column| column[line].as_str()).collect();
        let _ = writeln!(text, "{}", cells.join("  ").trim_end());
    }
    text
}

/// Returns a column of names below its heading, all of one width.
fn column(heading: &str, least: usize, names: impl Iterator<Item = String>) -> Vec<String> {
    let cells: Vec<String> = [heading.to_string()].into_iter().chain(names).collect();
    let width = width(&cells, least);
    let padded = cells.iter().map(|cell| format!("{cell:<width$}"));
    padded.collect()
}

fn signed(value: Option<f64>) -> String {
    let shown = number(value);
    match value {
        Some(value) if value.is_sign_positive() => format!("+{shown}"),
        _ => shown,
    }
}

/// Returns what a benchmark's `n` counts.
fn noun(kind: &str) -> &'static str {
    if kind.starts_with("schbench") { "workers" } else { "threads" }
}
