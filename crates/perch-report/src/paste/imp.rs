// SPDX-License-Identifier: GPL-2.0-or-later
//! The form of the replies in which K Prateek Nayak reports tests of scheduler series: below a box
//! with test, unit and direction a row for each load, in which every arm has its figure as a
//! multiple of the first's, the improvement in percent and the coefficient of variation.
//!
//! Those replies set headings by eye; here a heading ends where its column ends.

use std::fmt::Write;

use crate::paste::block::{Block, Share, load_in_words, number, remarks, width};
use crate::paste::mail::{ascii, wrapped};
use crate::paste::sheet::Sheet;

/// The length of the lines around a test's description.
const LINE: usize = 66;
/// The least widths of a load, a multiple, an improvement and a coefficient of variation.
const LOAD: usize = 9;
const MULTIPLE: usize = 4;
const GAIN: usize = 6;
const VARIATION: usize = 5;
/// The blanks between two columns.
const GAP: &str = "     ";

/// Returns the tables of a sheet, one for each unit and direction.
pub fn tables(sheet: &Sheet) -> String {
    let blocks = Block::of(sheet);
    let tables: Vec<String> = blocks.iter().map(|block| table(sheet, block)).collect();
    ascii(&tables.join("\n"))
}

fn table(sheet: &Sheet, block: &Block) -> String {
    let mut text = description(block);
    let (heading, noun) = words(block);
    let loads = block.rows.iter().map(|(load, _)| load_in_words(load, noun));
    let loads: Vec<String> = loads.collect();
    let load_width = width(&loads, LOAD);
    let loads = loads.iter().map(|load| format!("{load:>load_width$}"));
    let first = format!("{heading:<load_width$}");
    let mut columns = vec![[first].into_iter().chain(loads).collect::<Vec<_>>()];
    for (arm, name) in sheet.arms.iter().enumerate() {
        let shares: Vec<Share> = (block.rows.iter().map(|(_, row)| Share::of(row, arm))).collect();
        let of = |part: fn(&Share) -> Option<f64>, least| {
            let numbers: Vec<String> = shares.iter().map(|share| number(part(share))).collect();
            let width = width(&numbers, least);
            let padded = numbers.iter().map(|number| format!("{number:>width$}"));
            padded.collect::<Vec<_>>()
        };
        let multiples = of(|share| share.multiple, MULTIPLE);
        let gains = of(|share| share.gain_pct, GAIN);
        let variations = of(|share| share.std_pct, VARIATION);
        let cells = multiples.iter().zip(&gains).zip(&variations);
        let cells = cells.map(|((multiple, gain), cv)| format!("{multiple} [{gain}]({cv})"));
        let heading = format!("{name}[pct imp](CV)");
        let mut cells: Vec<String> = [heading].into_iter().chain(cells).collect();
        let width = width(&cells, 0);
        for cell in &mut cells {
            *cell = format!("{cell:>width$}");
        }
        columns.push(cells);
    }
    let remarks = block.rows.iter().map(|(_, row)| remarks(&sheet.arms, row));
    columns.push([String::new()].into_iter().chain(remarks).collect());
    for line in 0..=block.rows.len() {
        let cells: Vec<&str> = columns.iter().map(|column| column[line].as_str()).collect();
        let _ = writeln!(text, "{}", cells.join(GAP).trim_end());
    }
    text
}

/// Returns the lines above a table.
fn description(block: &Block) -> String {
    let line = "=".repeat(LINE);
    let units = match block.quantity {
        Some(name) => format!("Normalized {name} in {}", block.unit),
        None => format!("Normalized {}", block.unit),
    };
    let direction = if block.higher_is_better { "Higher" } else { "Lower" };
    let statistic = if block.of_statistics { "Named in each row" } else { "AMean" };
    let mut text = format!("{line}\n");
    for (name, value) in [
        ("Test", block.test.as_str()),
        ("Units", &units),
        ("Interpretation", &format!("{direction} is better")),
        ("Statistic", statistic),
    ] {
        let first = format!("{name:<14}: ");
        let next = " ".repeat(first.len());
        text.push_str(&wrapped(value, &first, &next, ""));
    }
    text + &line + "\n"
}

/// Returns the heading of the loads, and what a benchmark's `n` counts, which is empty where its
/// number stands alone.
fn words(block: &Block) -> (&'static str, &'static str) {
    match block.kind.to_ascii_lowercase().as_str() {
        _ if block.of_statistics => ("Case:", ""),
        "tbench" | "tbench-net" => ("Clients:", ""),
        "tcp_rr" | "udp_rr" | "tcp_stream" => ("Clients:", "clients"),
        kind if kind.starts_with("schbench") => ("#workers:", ""),
        _ => ("Case:", "threads"),
    }
}
