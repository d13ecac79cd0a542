// SPDX-License-Identifier: GPL-2.0-only
//! The formats that `--format` takes.

use std::fmt;
use std::str::FromStr;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Aligned columns for a terminal.
    #[default]
    Table,
    /// Markdown tables.
    Markdown,
    /// One line a row, with a header; figures in full precision.
    Csv,
    /// Indented JSON; figures in full precision.
    Json,
}

/// Every format, by name.
const FORMATS: [(&str, Format); 4] = [
    ("table", Format::Table),
    ("markdown", Format::Markdown),
    ("csv", Format::Csv),
    ("json", Format::Json),
];

/// A format that this version doesn't have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        write!(
            f,
            "unknown format `{}`: expected one of {}",
            self.0,
            names.join(", ")
        )
    }
}

impl std::error::Error for UnknownFormat {}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        let found = FORMATS.iter().find(|(known, _)| *known == name);
        found
            .map(|(_, format)| *format)
            .ok_or_else(|| UnknownFormat(name.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_format_meets_the_known_ones() {
        let error = "xml".parse::<Format>().unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown format `xml`: expected one of table, markdown, csv, json"
        );
        assert_eq!("csv".parse(), Ok(Format::Csv));
    }
}
