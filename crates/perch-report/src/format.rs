// SPDX-License-Identifier: GPL-2.0-or-later
//! The formats that `--format` takes.

use std::fmt;
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

/// Every format, by name.
const FORMATS: [(&str, Format); 4] = [
    ("table", Format::Table),
    ("markdown", Format::Markdown),
    ("csv", Format::Csv),
    ("json", Format::Json),
];

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

/// The forms beyond [`FORMATS`], by name.
const PASTES: [(&str, Paste); 2] = [("lkml", Paste::Lkml), ("mmtests", Paste::Mmtests)];

impl FromStr for ResultFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<ResultFormat, UnknownFormat> {
        if let Some((_, paste)) = PASTES.iter().find(|(known, _)| *known == name) {
            return Ok(ResultFormat::Paste(*paste));
        }
        let plain = name.parse().map(ResultFormat::Plain);
        plain.map_err(|UnknownFormat { name, mut known }: UnknownFormat| {
            known.extend(PASTES.iter().map(|(name, _)| *name));
            UnknownFormat { name, known }
        })
    }
}

/// The error for a format that this version doesn't have, or that does not fit the results asked
/// for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat {
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown format `{}`: expected one of {}", self.name, self.known.join(", "))
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        let found = FORMATS.iter().find(|(known, _)| *known == name);
        found.map(|(_, format)| *format).ok_or_else(|| UnknownFormat {
            name: name.to_string(),
            known: FORMATS.iter().map(|(name, _)| *name).collect(),
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
