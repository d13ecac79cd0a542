// SPDX-License-Identifier: GPL-2.0-or-later
//! Results as text to paste elsewhere: into a mail, or beside tables of mmtests.

mod lines;
mod mail;
mod mmtests;
pub(crate) mod sheet;

use perch_experiment::{ArmModes, Comparison, Contention, Report};
use serde::Serialize;

use crate::circumstances;
use crate::settled;
use crate::trust;
pub use mail::wrap;
use sheet::Sheet;

/// The origin of figures, for readers who meet the figures far from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// perch's version.
    #[serde(rename = "perch")]
    pub version: String,
    /// The command line that brings the figures back.
    pub command: String,
}

/// The layout of tables for pasting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paste {
    /// Plain text of at most 75 columns.
    Lkml,
    /// The layout of mmtests' comparisons.
    Mmtests,
}

/// Returns the text of experiments' reports.
pub fn paste_experiments(reports: &[Report], origin: &Origin, paste: Paste) -> String {
    let texts = reports.iter().map(|report| {
        let heading = mail::Heading {
            origin,
            circumstances: ["Machine ".to_string() + &circumstances::of_report(report)]
                .into_iter()
                .chain(settled::of_report(report))
                .chain(settled::cut_short(report))
                .collect::<Vec<_>>()
                .join("; "),
            arms: arms(&report.arms),
            source: Some(&report.source),
            in_guests: false,
        };
        let mut text = text(&heading, &Sheet::of_report(report), paste);
        if let Some(found) = &report.c2c {
            text.push_str(&contended(&found.arms, paste));
        }
        text
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the text of a comparison.
pub fn paste_comparison(comparison: &Comparison, origin: &Origin, paste: Paste) -> String {
    let heading = mail::Heading {
        origin,
        circumstances: format!(
            "Machine {}, {}",
            circumstances::of_comparison(comparison),
            [settled::times(comparison)]
                .into_iter()
                .chain(settled::doubts(comparison))
                .collect::<Vec<_>>()
                .join("; ")
        ),
        arms: arms(&comparison.arms),
        source: None,
        in_guests: comparison.place.is_some(),
    };
    let mut text = text(&heading, &Sheet::of_comparison(comparison), paste);
    if !comparison.contention.is_empty() {
        text.push_str(&contended(&comparison.contention, paste));
    }
    for line in trust::lines(comparison) {
        text.push_str(&match paste {
            Paste::Lkml => {
                format!("\n{}", mail::wrapped(&line, "", "  ", ""))
            }
            Paste::Mmtests => format!("\n# {line}\n"),
        });
    }
    text
}

/// Returns the contended cache lines, for which mmtests has no form.
fn contended(arms: &[Contention], paste: Paste) -> String {
    match paste {
        Paste::Lkml => lines::lines(arms),
        Paste::Mmtests => "\n# Contended cache lines are not shown in this format.\n".to_string(),
    }
}

fn text(heading: &mail::Heading, sheets: &[Sheet], paste: Paste) -> String {
    let mut text = match paste {
        Paste::Lkml => mail::heading(heading),
        // Every line that is not a row of a table begins with a #, with which no row begins.
        Paste::Mmtests => {
            let lines = mail::heading(heading);
            let lines = lines.lines().filter(|line| !line.is_empty());
            lines.map(|line| format!("# {line}\n")).collect()
        }
    };
    for sheet in sheets {
        text.push('\n');
        match paste {
            Paste::Lkml => text.push_str(&mail::tables(sheet)),
            Paste::Mmtests => {
                let place = match sheet.place.as_str() {
                    "" => String::new(),
                    place => format!(" {place}"),
                };
                text.push_str(&format!("# {}{place}\n", sheet.benchmark));
                text.push_str(&mmtests::table(sheet));
            }
        }
    }
    text
}

fn arms(arms: &[ArmModes]) -> Vec<(&str, &str)> {
    let arms = arms.iter();
    arms.map(|arm| (arm.name.as_str(), arm.modes.as_str())).collect()
}

#[cfg(test)]
mod tests;
