// SPDX-License-Identifier: GPL-2.0-or-later
//! The formats that `--format` takes.

use std::str::FromStr;

use crate::paste::Paste;

/// The form in which results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for a terminal.
    #[default]
    Table,
    /// Markdown tables.
    Markdown,
    /// One line a row, with a header; figures have full precision.
    Csv,
    /// Indented JSON; figures have full precision.
    Json,
}

/// The form in which results of simulations are written: one of [`Format`], or one of those that are
/// pasted elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultFormat {
    /// A form that all results have.
    Plain(Format),
    /// A form for a mail, or to stand beside tables of mmtests or of other people's replies.
    Paste(Paste),
}

impl From<Format> for ResultFormat {
    fn from(format: Format) -> ResultFormat {
        ResultFormat::Plain(format)
    }
}

/// Every format by name, those that are pasted last.
const FORMATS: [(&str, ResultFormat); 6] = [
    ("table", ResultFormat::Plain(Format::Table)),
    ("markdown", ResultFormat::Plain(Format::Markdown)),
    ("csv", ResultFormat::Plain(Format::Csv)),
    ("json", ResultFormat::Plain(Format::Json)),
    ("lkml", ResultFormat::Paste(Paste::Lkml)),
    ("mmtests", ResultFormat::Paste(Paste::Mmtests)),
];

/// The error for a format that this version doesn't have, or that does not fit the results asked
/// for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{name}`: expected one of {}", known.join(", "))]
pub struct UnknownFormat {
    name: String,
    known: Vec<&'static str>,
}

/// Returns what `of` makes of the format of this name.
fn named<T>(name: &str, of: impl Fn(ResultFormat) -> Option<T>) -> Result<T, UnknownFormat> {
    let known = || FORMATS.iter().filter_map(|(known, format)| Some((*known, of(*format)?)));
    let found = known().find(|(known, _)| *known == name);
    found.map(|(_, format)| format).ok_or_else(|| UnknownFormat {
        name: name.to_string(),
        known: known().map(|(known, _)| known).collect(),
    })
}

impl FromStr for ResultFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<ResultFormat, UnknownFormat> {
        named(name, Some)
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        named(name, |format| match format {
            ResultFormat::Plain(format) => Some(format),
            ResultFormat::Paste(_) => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_format_meets_the_known_ones() {
        let error = "xml".parse::<Format>().unwrap_err().to_string();
        assert_eq!(error, "unknown format `xml`: expected one of table, markdown, csv, json");
        assert_eq!("csv".parse(), Ok(Format::Csv));
        let error = "xml".parse::<ResultFormat>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown format `xml`: expected one of table, markdown, csv, json, lkml, mmtests"
        );
        let csv = Ok(ResultFormat::Plain(Format::Csv));
        assert_eq!("csv".parse::<ResultFormat>(), csv);
        assert_eq!("lkml".parse(), Ok(ResultFormat::Paste(Paste::Lkml)));
    }
}
