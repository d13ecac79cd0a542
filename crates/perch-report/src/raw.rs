// SPDX-License-Identifier: GPL-2.0-or-later
//! A writer of every repetition's scores, one per line: for data frames, databases and spreadsheets.
//! docs/formats.md describes the columns.

use std::io::{self, Write};
use std::path::Path;

use perch_experiment::Repetition;
use schemars::Schema;

use crate::format::UnknownEnding;

/// The format in which repetitions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawFormat {
    /// Comma-separated, with a header.
    Csv,
    /// A list of objects, one per line.
    Json,
}

impl RawFormat {
    /// Returns the format that the file's ending names.
    ///
    /// # Errors
    /// Another ending, or none.
    pub fn of(path: &Path) -> Result<RawFormat, UnknownEnding> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        match ending.to_str() {
            Some("csv") => Ok(RawFormat::Csv),
            Some("json") => Ok(RawFormat::Json),
            _ => Err(UnknownEnding(path.to_path_buf())),
        }
    }
}

/// Returns the schema of the JSON: a list with an object for each repetition.
pub fn raw_schema() -> Schema {
    perch_file::result_schema::<Vec<Repetition>>("every repetition of a run of perch")
}

/// The output.
enum Sink<W: Write> {
    Csv(Box<csv::Writer<W>>),
    /// The second field is true where an object stands in the list already.
    Json(W, bool),
}

/// A writer that writes repetitions as they come: its memory does not grow with their number.
pub struct RawWriter<W: Write>(Sink<W>);

impl<W: Write> RawWriter<W> {
    /// Begins a file. Its content does not depend on how perch was called.
    ///
    /// # Errors
    /// Returns an error when writing fails.
    pub fn new(mut out: W, format: RawFormat) -> io::Result<RawWriter<W>> {
        Ok(RawWriter(match format {
            RawFormat::Csv => Sink::Csv(Box::new(csv::Writer::from_writer(out))),
            RawFormat::Json => {
                out.write_all(b"[")?;
                Sink::Json(out, false)
            }
        }))
    }

    /// Adds one repetition.
    ///
    /// # Errors
    /// Returns an error when writing fails: then the file is lost.
    pub fn add(&mut self, repetition: &Repetition) -> io::Result<()> {
        match &mut self.0 {
            Sink::Csv(writer) => writer.serialize(repetition).map_err(io::Error::other),
            Sink::Json(out, any) => {
                let comma = if std::mem::replace(any, true) { "," } else { "" };
                let object = serde_json::to_string(repetition)?;
                write!(out, "{comma}\n{object}")
            }
        }
    }

    /// Ends the file. Returns the output.
    ///
    /// # Errors
    /// Returns an error when writing fails.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Sink::Csv(writer) => writer.into_inner().map_err(|error| error.into_error()),
            Sink::Json(mut out, _) => {
                out.write_all(b"\n]\n")?;
                out.flush()?;
                Ok(out)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: RawFormat) -> Vec<u8> {
        let mut writer = RawWriter::new(Vec::new(), format).unwrap();
        for (repetition, value) in [(0, 0.1 + 0.2), (1, 5e-324)] {
            let given = Repetition {
                experiment: Some("e|f"),
                benchmark: Some("b"),
                place: Some("node0-1"),
                row: None,
                machine: "kunpeng920",
                workload: "tbench:n=4,where=\"a\"",
                era: "6.5",
                arm: "baseline",
                modes: "cluster=off,capacity=off",
                repetition,
                seed: u64::MAX,
                score: "throughput",
                unit: "MB/s",
                higher_is_better: true,
                value,
                divisor: 1.0,
            };
            writer.add(&given).unwrap();
        }
        writer.finish().unwrap()
    }

    fn words(format: RawFormat) -> String {
        String::from_utf8(written(format)).unwrap()
    }

    #[test]
    fn csv_and_json_are_lines_of_their_kind() {
        insta::assert_snapshot!("csv", words(RawFormat::Csv));
        insta::assert_snapshot!("json", words(RawFormat::Json));
    }

    /// The values come back to the last bit, as do seeds that are too large for a double.
    #[test]
    fn json_and_csv_read_back() {
        let found: Vec<serde_json::Value> =
            serde_json::from_slice(&written(RawFormat::Json)).unwrap();
        let bytes = written(RawFormat::Csv);
        let mut reader = csv::Reader::from_reader(bytes.as_slice());
        let names = reader.headers().unwrap().clone();
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!((found.len(), lines.len()), (2, 2));
        for ((object, line), expected) in found.iter().zip(&lines).zip([0.1 + 0.2, 5e-324]) {
            assert_eq!(object["value"].as_f64(), Some(expected));
            assert_eq!(object["seed"].as_u64(), Some(u64::MAX));
            assert!(object["row"].is_null());
            let at = |name| line.get(names.iter().position(|n| n == name).unwrap());
            assert_eq!(at("value").unwrap().parse(), Ok(expected));
            assert_eq!(at("workload"), object["workload"].as_str());
        }
    }

    #[test]
    fn endings_say_how_it_is_written() {
        let of = |name: &str| RawFormat::of(Path::new(name));
        assert_eq!(of("a/b.csv"), Ok(RawFormat::Csv));
        assert_eq!(of("b.x.JSON"), Ok(RawFormat::Json));
        for name in ["raw", "raw.parquet", ".csv", "csv", "a.csv.gz", ""] {
            let error = of(name).unwrap_err().to_string();
            assert!(error.ends_with(".csv or .json"), "{error}");
        }
    }
}
