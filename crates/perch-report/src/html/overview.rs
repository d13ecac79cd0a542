// SPDX-License-Identifier: GPL-2.0-or-later
//! The overview at the head of the page: the contents, links to them, and the main figures.

use std::fmt::Write;

use perch_experiment::{Comparison, Report};

use super::escape;
use crate::figure::percent;
use crate::paste::sheet::Sheet;

/// Returns the name by which a link refers to the heading of a section.
pub fn anchor(section: usize, title: &str) -> String {
    let plain = title.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' });
    format!("s{section}-{}", plain.collect::<String>())
}

/// Returns the title of a table of cells.
pub fn sheet_title(sheet: &Sheet) -> String {
    match sheet.place.as_str() {
        "" => sheet.benchmark.clone(),
        place => format!("{}, {place}", sheet.benchmark),
    }
}

/// Adds an experiment: how many of its changes agree with the published ones, and its tables.
pub fn experiment(contents: &mut String, section: usize, report: &Report) {
    let summary = &report.summary;
    // Where all published figures are relative there is no baseline to be close to.
    let baselines = match summary.baseline_rows {
        0 => String::new(),
        rows => format!(
            ", {} of {rows} baselines at 0.8 to 1.25 of the published",
            summary.baseline_close
        ),
    };
    let said = format!(
        "{} of {} changes agree, {} disagree, {} are undecided; {} of {} directions agree\
         {baselines}; {}, Linux {}.",
        summary.agrees,
        summary.scored,
        summary.disagrees,
        summary.undecided,
        summary.direction_agrees,
        summary.sign_scored,
        report.machine,
        report.era
    );
    entry(contents, section, &report.title, &said);
    let tables = Sheet::of_report(report);
    let tables = tables.iter().map(|sheet| {
        let title = sheet_title(sheet);
        let to = anchor(section, &title);
        format!("<a href=\"#{to}\">{}</a>", escape(&title))
    });
    let tables: Vec<String> = tables.collect();
    let _ = writeln!(contents, "<br>{}</li>", tables.join(" · "));
}

/// Adds a comparison, and the difference of each arm's first score from the first arm's.
pub fn comparison(contents: &mut String, section: usize, title: &str, found: &Comparison) {
    let said = found.scores.first().map_or(String::new(), |score| {
        let changes = score.arms.iter().skip(1);
        let changes = changes.map(|arm| format!("{} {}", arm.arm, percent(arm.delta_pct)));
        let changes: Vec<String> = changes.collect();
        if changes.is_empty() {
            String::new()
        } else {
            format!("{}: {}.", score.name, changes.join(", "))
        }
    });
    entry(contents, section, title, &said);
    contents.push_str("</li>\n");
}

fn entry(contents: &mut String, section: usize, title: &str, said: &str) {
    let (title, said) = (escape(title), escape(said));
    let _ = write!(contents, "<li><a href=\"#s{section}\">{title}</a><br>{said}");
}
