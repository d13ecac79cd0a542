// SPDX-License-Identifier: GPL-2.0-or-later
//! Plain text that goes into a mail to a kernel list: ASCII, and lines of at most 75 columns.
//!
//! A table has the form that the published ones of its kind have: a number of clients and two
//! columns (tbench, netperf), statistics between bars (hackbench, sysbench), mmtests' comparison
//! (schbench), or a name, two figures and a remark (all others). Above the tables stand the
//! circumstances that bring them back. An arm beyond the second has a table of its own beside the
//! baseline, so that lines stay short whatever arms there are.

use std::fmt::Write;

use crate::figure::{direction, figure};
use crate::paste::Origin;
use crate::paste::mmtests;
use crate::paste::sheet::{Row, Sheet};
use crate::settled;

/// The number of columns that a line may have: a mail client can quote such a line a few times
/// without wrapping it.
pub const WIDTH: usize = 75;

/// The text of a mail above its tables.
pub struct Heading<'a> {
    /// The command that was run, and perch's version.
    pub origin: &'a Origin,
    /// The machine, the kernel, its ticks and the seed.
    pub circumstances: String,
    /// The arms' names and modes.
    pub arms: Vec<(&'a str, &'a str)>,
    /// The source of the published figures that stand beside these, if there are any.
    pub source: Option<&'a str>,
    /// True where a kernel ran in guests, and nothing was simulated.
    pub in_guests: bool,
}

/// Returns the heading as text.
pub fn heading(heading: &Heading) -> String {
    let origin = heading.origin;
    let mut text = if !heading.in_guests {
        format!("Simulated by perch {}, not measured:\n\n", origin.version)
    } else {
        format!("Run by perch {} in guests, not on the machine itself:\n\n", origin.version)
    };
    text.push_str(&wrapped(&origin.command, "  ", "      ", " \\"));
    text.push('\n');
    text.push_str(&wrapped(&heading.circumstances, "", "  ", ""));
    for (name, modes) in &heading.arms {
        text.push_str(&wrapped(&format!("{name}: {modes}"), "  ", "    ", ""));
    }
    if let Some(source) = heading.source {
        text.push_str(&wrapped(&format!("Published in: {source}"), "", "  ", ""));
    }
    ascii(&text)
}

/// Returns the words of `text` in lines of [`WIDTH`]; `end` closes each line that another follows.
/// A word that is longer than a line has a line of its own.
pub fn wrapped(text: &str, first: &str, next: &str, end: &str) -> String {
    let mut done = String::new();
    let mut line = first.to_string();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        let needed = line.chars().count() + 1 + word.chars().count() + end.len();
        if !is_empty && needed > WIDTH {
            let _ = writeln!(done, "{line}{end}");
            line = next.to_string();
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(done, "{line}");
    done
}

/// Returns a table, and one more for each arm beyond the second.
pub fn tables(sheet: &Sheet) -> String {
    let others = 1..sheet.arms.len().max(2);
    let all = others.map(|arm| {
        let arm = (arm < sheet.arms.len()).then_some(arm);
        table(sheet, arm)
    });
    ascii(&all.collect::<Vec<_>>().join("\n"))
}

fn table(sheet: &Sheet, arm: Option<usize>) -> String {
    let loads = sheet.rows.iter().map(Row::of_load);
    if sheet.iterations.is_some() {
        statistics(sheet, arm)
    } else if loads.clone().all(|load| matches!(load, Some((_, None)))) {
        sweep(sheet, arm)
    } else if loads.clone().all(|load| matches!(load, Some((_, Some(_))))) {
        comparison(sheet, arm)
    } else {
        remarks(sheet, arm)
    }
}

/// Returns the title of a table; the title has the unit, where all rows have the same.
fn title(sheet: &Sheet) -> String {
    let place = match sheet.place.as_str() {
        "" => String::new(),
        place => format!(" ({place})"),
    };
    let first = &sheet.rows[0];
    let unit = if sheet.rows.iter().all(|row| row.unit == first.unit) {
        format!(", {}", first.unit)
    } else {
        String::new()
    };
    format!("{} results{place}{unit}", sheet.benchmark)
}

/// Writes a table in the form in which tbench and netperf were published: `n: baseline patched
/// (delta)`.
fn sweep(sheet: &Sheet, arm: Option<usize>) -> String {
    let mut text = wrapped(
        &format!("{}, {}:", title(sheet), direction(sheet.rows[0].higher_is_better)),
        "",
        "  ",
        "",
    );
    let published = published(sheet, arm);
    let names = [&sheet.arms[0], arm.map_or(&String::new(), |arm| &sheet.arms[arm])]
        .map(|name| cut(name, 12));
    let mut line = format!("{:6}{:>12} {:>12}", "", names[0], names[1]);
    if published {
        let _ = write!(line, "{:>30}", "published");
    }
    let _ = writeln!(text, "{}", line.trim_end());
    for row in &sheet.rows {
        let (number, _) = row.of_load().unwrap_or((&row.label, None));
        let mut line = format!("{number:>4}: {:>12}", figure(row.figures[0].value));
        if let Some(arm) = arm {
            let found = &row.figures[arm];
            let _ = write!(line, " {:>12} {}", figure(found.value), change(found.delta_pct));
            let half = found.ci95_pct.map_or(String::new(), |half| format!("+-{half:.2}"));
            let _ = write!(line, " {half:>8}");
            if row.unsettled {
                let _ = write!(line, " {}", settled::MARK);
            }
        }
        if let (true, Some(pct)) = (published, row.published_pct) {
            let _ = write!(line, "  {}", change(pct));
            line.push_str(if row.fitted { " fitted" } else { "" });
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Writes a table in the form in which hackbench and sysbench were published: statistics between
/// bars.
fn statistics(sheet: &Sheet, arm: Option<usize>) -> String {
    let mut text = String::new();
    if let Some(found) = &sheet.iterations {
        let count = found.values.first().map_or(0, Vec::len);
        let title = format!(
            "{count} iterations of '{}' on {} ({}, {}):",
            found.workload,
            sheet.machine,
            sheet.rows[0].unit,
            // For a spread less is better, so the direction of the benchmark is taken from the
            // first row.
            direction(sheet.rows[0].higher_is_better)
        );
        text.push_str(&wrapped(&title, "", "  ", ""));
        text.push('\n');
    }
    let published = published(sheet, arm);
    let mut heads = vec![String::new(), cut(&sheet.arms[0], 14)];
    if let Some(arm) = arm {
        heads.extend([cut(&sheet.arms[arm], 14), "DELTA (%)".to_string()]);
    }
    if published {
        heads.push("PUBLISHED (%)".to_string());
    }
    let mut lines = vec![heads];
    for row in &sheet.rows {
        let label = match row.label.strip_suffix("th") {
            Some(percent) => format!("{percent}%"),
            None => cut(&row.label, 8),
        };
        let mut line = vec![label, fixed(row.figures[0].value)];
        if let Some(arm) = arm {
            let found = &row.figures[arm];
            line.extend([fixed(found.value), signed(found.delta_pct)]);
        }
        if let (true, Some(pct)) = (published, row.published_pct) {
            line.push(signed(pct) + if row.fitted { "*" } else { "" });
        }
        lines.push(line);
    }
    text.push_str(&barred(&lines));
    if published && sheet.rows.iter().any(|row| row.fitted) {
        text.push_str("* costs were fitted on this row\n");
    }
    if let (Some(found), Some(arm)) = (&sheet.iterations, arm) {
        for index in [0, arm] {
            let values = found.values.get(index).map_or(&[][..], Vec::as_slice);
            text.push_str(&box_line(&sheet.arms[index], values, &found.values));
        }
    }
    text
}

/// Writes columns between bars; a line of dashes sets their heads off.
fn barred(lines: &[Vec<String>]) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (index, line) in lines.iter().enumerate() {
        for (column, width) in widths.iter().enumerate() {
            let cell = line.get(column).map_or("", String::as_str);
            let _ = match column {
                0 => write!(text, "| {cell:<width$} "),
                _ => write!(text, "| {cell:>width$} "),
            };
        }
        text.push_str("|\n");
        if index == 0 {
            let dashes = widths.iter().map(|width| "-".repeat(width + 2));
            let _ = writeln!(text, "|{}|", dashes.collect::<Vec<_>>().join("+"));
        }
    }
    text
}

/// Draws the spread of an arm's iterations on a scale common to all arms: a line from the least to
/// the greatest, a box from the first quartile to the third, and `#` at the median.
fn box_line(name: &str, values: &[f64], all: &[Vec<f64>]) -> String {
    const SPANS: usize = 54;
    let every = || all.iter().flatten().copied();
    let low = every().fold(f64::INFINITY, f64::min);
    let high = every().fold(f64::NEG_INFINITY, f64::max);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return String::new();
    }
    let at = |share: f64| {
        let value = sorted[(share * (sorted.len() - 1) as f64).round() as usize];
        let place = (value - low) / (high - low);
        // Where all iterations are the same there is no scale; a float becomes an integer by
        // cutting.
        let place = if place.is_finite() { place } else { 0.0 };
        ((place * SPANS as f64) as usize).min(SPANS - 1)
    };
    let [least, first, median, third, most] = [0.0, 0.25, 0.5, 0.75, 1.0].map(at);
    let spans = (0..SPANS).map(|span| match span {
        _ if span == median => '#',
        _ if span == first => '[',
        _ if span == third => ']',
        _ if (first..third).contains(&span) => '=',
        _ if (least..=most).contains(&span) => '-',
        _ => ' ',
    });
    let spans: String = spans.collect();
    format!("{:<12} |{spans}|\n", cut(name, 12))
}

/// Writes a table in the form in which schbench was published: mmtests' comparison of two arms.
fn comparison(sheet: &Sheet, arm: Option<usize>) -> String {
    let mut text = wrapped(&format!("{}:", title(sheet)), "", "  ", "");
    let arms: Vec<usize> = [0].into_iter().chain(arm).collect();
    let mut sheet = sheet.only(&arms);
    for arm in &mut sheet.arms {
        *arm = cut(arm, 22);
    }
    text.push_str(&mmtests::table(&sheet));
    text
}

/// Writes a table in the form in which the results of the empty group queue were published: a name,
/// two figures and a remark.
fn remarks(sheet: &Sheet, arm: Option<usize>) -> String {
    let mut text = wrapped(&format!("{}:", title(sheet)), "", "  ", "");
    let head = arm.map_or("", |arm| &sheet.arms[arm]);
    let line = format!("{:22} {:>11} {:>11}", "", cut(&sheet.arms[0], 11), cut(head, 11));
    let last = if published(sheet, arm) { "published" } else { "" };
    let _ = writeln!(text, "{}", format!("{line}  {:12}{last}", "").trim_end());
    for row in &sheet.rows {
        let mut line = format!("{:22} {:>11}", cut(&row.label, 22), figure(row.figures[0].value));
        if let Some(arm) = arm {
            let found = &row.figures[arm];
            let remark = if row.unsettled {
                settled::MARK.to_string()
            } else {
                remark(row, found.delta_pct)
            };
            let _ = write!(line, " {:>11}  {remark:<12}", figure(found.value));
            if let (1, Some(pct)) = (arm, row.published_pct) {
                line.push_str(&self::remark(row, pct));
            }
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Returns a change in words.
fn remark(row: &Row, delta_pct: f64) -> String {
    match row.gain_of(delta_pct) {
        gain if !gain.is_finite() => "-".to_string(),
        gain if gain.abs() >= 1e5 => format!("{gain:+.0e}%"),
        gain if gain < 0.0 => format!("{:.1}% loss", -gain),
        0.0 => "no change".to_string(),
        gain => format!("{gain:.1}% win"),
    }
}

/// Returns the published changes, which belong to the second arm.
fn published(sheet: &Sheet, arm: Option<usize>) -> bool {
    arm == Some(1) && sheet.rows.iter().any(|row| row.published_pct.is_some())
}

fn change(pct: f64) -> String {
    match pct.abs() {
        size if size < 1e5 => format!("({:>7.2}%)", pct + 0.0),
        size if size.is_finite() => format!("({pct:>7.0e}%)"),
        _ => "(       -)".to_string(),
    }
}

fn signed(pct: f64) -> String {
    match pct.abs() {
        size if size < 1e5 => format!("{:+.3}", pct + 0.0),
        size if size.is_finite() => format!("{pct:+.2e}"),
        _ => "-".to_string(),
    }
}

/// Returns a number with six digits after the point, as the published tables have; with fewer where
/// six would not be readable.
fn fixed(value: f64) -> String {
    match value.abs() {
        size if size < 1e6 => format!("{value:.6}"),
        _ => format!("{value:.1}"),
    }
}

/// Returns the first `width` characters.
pub fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}

/// Replaces all characters beyond ASCII, which not every list welcomes in mails.
pub fn ascii(text: &str) -> String {
    let plain = |c: char| match c {
        ' '..='~' | '\n' => c,
        _ => '?',
    };
    text.chars().map(plain).collect()
}
