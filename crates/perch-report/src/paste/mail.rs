// SPDX-License-Identifier: GPL-2.0-or-later
//! Plain text that goes into a mail to a kernel list: ASCII, and lines of at most 75 columns.
//!
//! Above the tables stand the circumstances that bring them back. An arm beyond the second has a
//! table of its own beside the baseline, so that lines stay short whatever arms there are.

use std::fmt::Write;

use crate::figure::{figure, interval, percent};
use crate::grid::{Align, Grid};
use crate::paste::Origin;
use crate::paste::sheet::Sheet;
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
pub fn wrapped(text: &str, first: &str, next: &str, end: &str) -> String {
    wrap(text.split_whitespace(), WIDTH, [first, next, end])
}

/// Returns words in lines of `width`, given the beginnings of the first and of the next lines and the
/// end of each line that another follows. A word that is longer than a line has a line of its own.
pub fn wrap<'a>(
    words: impl Iterator<Item = &'a str>,
    width: usize,
    [first, next, end]: [&str; 3],
) -> String {
    let mut done = String::new();
    let mut line = first.to_string();
    let mut is_empty = true;
    for word in words {
        let needed = line.chars().count() + 1 + word.chars().count() + end.len();
        if !is_empty && needed > width {
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

/// Returns the table of the first arm and of `arm`, where there is one.
fn table(sheet: &Sheet, arm: Option<usize>) -> String {
    // Published changes belong to the second arm.
    let published = arm == Some(1) && sheet.rows.iter().any(|row| row.published_pct.is_some());
    let mut grid = Grid::new(&[""], &[&cut(&sheet.arms[0], NAME)]);
    if let Some(arm) = arm {
        grid.columns("", &[&cut(&sheet.arms[arm], NAME), "gain", "+-95%"], Align::Right);
    }
    if published {
        grid.column("", "published", Align::Right);
    }
    grid.column("", "", Align::Left);
    let label = if published { SHORT_LABEL } else { LABEL };
    for row in &sheet.rows {
        let mut cells = vec![cut(&row.label, label), short(row.figures[0].value)];
        if let Some(arm) = arm {
            let found = &row.figures[arm];
            cells.extend([short(found.value), gain(row.gain_pct(arm)), half(found.ci95_pct)]);
        }
        if published {
            cells.push(row.published_pct.map_or(String::new(), |pct| gain(row.gain_of(pct))));
        }
        cells.push(format!("{}{}", mark(row.unsettled, "*"), mark(row.fitted, "f")));
        grid.row(cells);
    }
    let mut text = wrapped(&title(sheet), "", "  ", "") + &grid.text();
    let notes = [
        (sheet.rows.iter().any(|row| row.unsettled), format!("*: {}", settled::MARK)),
        (sheet.rows.iter().any(|row| row.fitted), "f: costs were fitted on this row".to_string()),
    ];
    for (_, note) in notes.iter().filter(|(is_there, _)| *is_there) {
        let _ = writeln!(text, "{note}");
    }
    text
}

/// The widths of an arm's name, and of a row's label with and without published changes beside it.
const NAME: usize = 10;
const SHORT_LABEL: usize = 17;
const LABEL: usize = 27;

fn mark(is_there: bool, mark: &str) -> &str {
    if is_there { mark } else { "" }
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
    format!("{} results{place}{unit}; a positive gain is better:", sheet.benchmark)
}

/// Returns a figure in at most 10 characters.
fn short(value: f64) -> String {
    if value.abs() < 1e9 { figure(value) } else { format!("{value:.3e}") }
}

/// Returns a gain in at most 9 characters.
fn gain(pct: f64) -> String {
    if pct.abs() < 1e4 || !pct.is_finite() { percent(pct) } else { format!("{pct:+.1e}%") }
}

/// Returns half the width of an interval in at most 6 characters.
fn half(half: Option<f64>) -> String {
    match half {
        Some(half) if half >= 1e3 => format!("{half:.0e}"),
        half => interval(half),
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
