// SPDX-License-Identifier: GPL-2.0-or-later
//! A writer of every repetition's scores, a line each: for data frames, databases and spreadsheets.
//! docs/formats.md describes the columns.

use std::io::{self, Write};
use std::path::Path;

use perch_experiment::Repetition;
use perch_parquet::{Column, Kind, Value};
use schemars::{Schema, json_schema};
use serde_json::{Map, json};

/// The format in which repetitions are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawFormat {
    /// Comma-separated, with a header.
    Csv,
    /// A list of objects, one a line.
    Json,
    /// A table.
    Markdown,
    /// A Parquet file.
    Parquet,
}

const ENDINGS: [(&str, RawFormat); 4] = [
    ("csv", RawFormat::Csv),
    ("json", RawFormat::Json),
    ("md", RawFormat::Markdown),
    ("parquet", RawFormat::Parquet),
];

impl RawFormat {
    /// Returns the format that the file's ending names.
    ///
    /// # Errors
    /// Returns a sentence that lists the endings.
    pub fn of(path: &Path) -> Result<RawFormat, String> {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        let known = |(name, _): &&(&str, RawFormat)| ending.eq_ignore_ascii_case(name);
        let found = ENDINGS.iter().find(known).map(|(_, format)| *format);
        let endings = ENDINGS.map(|(name, _)| format!(".{name}"));
        found.ok_or_else(|| {
            format!(
                "{}: its ending says how it is written, expected one of {}",
                path.display(),
                endings.join(", ")
            )
        })
    }
}

const COLUMNS: usize = 16;

fn columns() -> [Column; COLUMNS] {
    [
        Column::optional("experiment", Kind::Text),
        Column::optional("benchmark", Kind::Text),
        Column::optional("where", Kind::Text),
        Column::optional("row", Kind::Text),
        Column::new("machine", Kind::Text),
        Column::new("workload", Kind::Text),
        Column::new("era", Kind::Text),
        Column::new("arm", Kind::Text),
        Column::new("modes", Kind::Text),
        Column::new("repetition", Kind::U32),
        Column::new("seed", Kind::U64),
        Column::new("score", Kind::Text),
        Column::new("unit", Kind::Text),
        Column::new("higher_is_better", Kind::Bool),
        Column::new("value", Kind::F64),
        Column::new("divisor", Kind::F64),
    ]
}

/// Returns the schema of the JSON: a list with an object for each repetition.
pub fn raw_schema() -> Schema {
    let mut properties = Map::new();
    for column in columns() {
        let kind = match column.kind {
            Kind::Bool => "boolean",
            Kind::I32 | Kind::I64 | Kind::U32 | Kind::U64 => "integer",
            Kind::F64 => "number",
            Kind::Text => "string",
        };
        // A score that nothing was counted for is null, as a column without a value is.
        let is_null = column.optional || column.name == "value";
        let kind = match is_null {
            true => json!([kind, "null"]),
            false => json!(kind),
        };
        properties.insert(column.name, json!({ "type": kind }));
    }
    let required: Vec<&String> = properties.keys().collect();
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "every repetition of a run of perch",
        "type": "array",
        "items": { "type": "object", "properties": properties, "required": required },
    })
}

fn values<'a>(of: &Repetition<'a>) -> [Value<'a>; COLUMNS] {
    let optional = |text: Option<&'a str>| text.map_or(Value::Null, Value::Text);
    [
        optional(of.experiment),
        optional(of.benchmark),
        optional(of.place),
        optional(of.row),
        Value::Text(of.machine),
        Value::Text(of.workload),
        Value::Text(of.era),
        Value::Text(of.arm),
        Value::Text(of.modes),
        Value::U32(of.repetition),
        Value::U64(of.seed),
        Value::Text(of.score),
        Value::Text(of.unit),
        Value::Bool(of.higher_is_better),
        Value::F64(of.value),
        Value::F64(of.divisor),
    ]
}

/// The output.
enum Sink<W: Write> {
    Csv(Box<csv::Writer<W>>),
    /// The second field is true where an object stands in the list already.
    Json(W, bool),
    Markdown(W),
    Parquet(Box<perch_parquet::Writer<W>>),
}

/// A writer that writes repetitions as they come: its memory does not grow with their number.
pub struct RawWriter<W: Write>(Sink<W>);

fn of_parquet(error: perch_parquet::Error) -> io::Error {
    match error {
        perch_parquet::Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl<W: Write> RawWriter<W> {
    /// Begins a file. Its content does not depend on how perch was called.
    ///
    /// # Errors
    /// Returns an error when writing fails.
    pub fn new(mut out: W, format: RawFormat) -> io::Result<RawWriter<W>> {
        let names = columns().map(|column| column.name);
        Ok(RawWriter(match format {
            RawFormat::Csv => {
                let mut writer = csv::Writer::from_writer(out);
                writer.write_record(&names)?;
                Sink::Csv(Box::new(writer))
            }
            RawFormat::Json => {
                out.write_all(b"[")?;
                Sink::Json(out, false)
            }
            RawFormat::Markdown => {
                writeln!(out, "| {} |", names.join(" | "))?;
                writeln!(out, "|{}", " --- |".repeat(COLUMNS))?;
                Sink::Markdown(out)
            }
            RawFormat::Parquet => {
                let writer = perch_parquet::Writer::new(out, &columns(), &[]);
                Sink::Parquet(Box::new(writer.map_err(of_parquet)?))
            }
        }))
    }

    /// Adds one repetition.
    ///
    /// # Errors
    /// Returns an error when writing fails: then the file is lost.
    pub fn add(&mut self, repetition: &Repetition) -> io::Result<()> {
        let values = values(repetition);
        match &mut self.0 {
            Sink::Csv(writer) => writer.write_record(values.iter().map(text))?,
            Sink::Json(out, any) => {
                let comma = if std::mem::replace(any, true) {
                    ","
                } else {
                    ""
                };
                let pairs = columns().into_iter().zip(&values);
                let pairs = pairs.map(|(column, value)| {
                    let name = serde_json::Value::from(column.name);
                    format!("{name}: {}", json(value))
                });
                let object = pairs.collect::<Vec<_>>().join(", ");
                write!(out, "{comma}\n{{{object}}}")?;
            }
            Sink::Markdown(out) => {
                let cells = values.iter().map(|value| text(value).replace('|', "\\|"));
                writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "))?;
            }
            Sink::Parquet(writer) => writer.row(&values).map_err(of_parquet)?,
        }
        Ok(())
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
            Sink::Markdown(mut out) => {
                out.flush()?;
                Ok(out)
            }
            Sink::Parquet(writer) => writer.finish().map_err(of_parquet),
        }
    }
}

/// Returns a value in full precision; an empty text where there is none.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(v) => v.to_string(),
        Value::I32(v) => v.to_string(),
        Value::I64(v) => v.to_string(),
        Value::U32(v) => v.to_string(),
        Value::U64(v) => v.to_string(),
        Value::F64(v) => v.to_string(),
        Value::Text(v) => v.to_string(),
    }
}

fn json(value: &Value) -> serde_json::Value {
    match *value {
        Value::Null => json!(null),
        Value::Bool(v) => json!(v),
        Value::I32(v) => json!(v),
        Value::I64(v) => json!(v),
        Value::U32(v) => json!(v),
        Value::U64(v) => json!(v),
        Value::F64(v) => json!(v),
        Value::Text(v) => json!(v),
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
    fn csv_json_and_markdown_are_lines_of_their_kind() {
        insta::assert_snapshot!("csv", words(RawFormat::Csv));
        insta::assert_snapshot!("json", words(RawFormat::Json));
        insta::assert_snapshot!("markdown", words(RawFormat::Markdown));
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
        assert_eq!(of("b.x.PARQUET"), Ok(RawFormat::Parquet));
        for name in ["raw", "raw.txt", ".csv", "csv", "a.csv.gz", ""] {
            let error = of(name).unwrap_err();
            assert!(
                error.ends_with("one of .csv, .json, .md, .parquet"),
                "{error}"
            );
        }
    }
}
