// SPDX-License-Identifier: GPL-2.0-or-later
//! A writer of a file, row by row, in the memory of one row group.

use std::io::Write;

use crate::column::{Column, Filling, Value};
use crate::metadata::{Chunk, Codec, RowGroup, footer, page_header};

/// The writer writes a row group when its values have so many bytes: readers like a few MiB at a
/// time.
const GROUP: usize = 8 << 20;
/// No single text may exceed this size, so that a page stays far below the size that its header can
/// express.
const LONGEST: usize = 16 << 20;

/// The reason why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system returned an error.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The columns make no table, which is the caller's mistake.
    #[error("columns: {0}")]
    Columns(String),
    /// A row does not fit this table.
    #[error("row {row}: {what}")]
    Row {
        /// The row's number, from 0.
        row: u64,
        /// The fault of the row.
        what: String,
    },
}

/// A writer of a Parquet file. Nothing can be read from the file before [`Writer::finish`].
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    at: u64,
    columns: Vec<Column>,
    fillings: Vec<Filling>,
    groups: Vec<RowGroup>,
    pairs: Vec<(String, String)>,
    rows: u64,
}

const SIGNATURE: &[u8; 4] = b"PAR1";

impl<W: Write> Writer<W> {
    /// Begins a table of these columns. `pairs` are words about the table that readers show as the
    /// file's metadata.
    ///
    /// # Errors
    /// Returns an error for no columns, for columns without a name or with another's name, and
    /// where the output fails.
    pub fn new(mut out: W, columns: &[Column], pairs: &[(&str, &str)]) -> Result<Writer<W>, Error> {
        if columns.is_empty() {
            return Err(Error::Columns("expected at least one".to_string()));
        }
        for (i, column) in columns.iter().enumerate() {
            let name = &column.name;
            if name.is_empty() {
                return Err(Error::Columns(format!("number {i} has no name")));
            }
            if columns[..i].iter().any(|other| other.name == *name) {
                return Err(Error::Columns(format!("two are called {name:?}")));
            }
        }
        out.write_all(SIGNATURE)?;
        let pairs = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        Ok(Writer {
            out,
            at: SIGNATURE.len() as u64,
            columns: columns.to_vec(),
            fillings: columns.iter().map(|_| Filling::default()).collect(),
            groups: Vec::new(),
            pairs: pairs.collect(),
            rows: 0,
        })
    }

    /// Adds a row, with a value for each column.
    ///
    /// # Errors
    /// Returns an error when the row does not fit this table: then nothing of the row is written.
    /// Returns an error as well when the output fails: then the file is lost.
    pub fn row(&mut self, values: &[Value]) -> Result<(), Error> {
        let wrong = |what: String| {
            Err(Error::Row {
                row: self.rows,
                what,
            })
        };
        if values.len() != self.columns.len() {
            return wrong(format!(
                "{} values for {} columns",
                values.len(),
                self.columns.len()
            ));
        }
        for (value, column) in values.iter().zip(&self.columns) {
            let name = &column.name;
            match value.kind() {
                None if column.optional => {}
                None => return wrong(format!("nothing in {name:?}, which is not optional")),
                Some(kind) if kind != column.kind => {
                    return wrong(format!("{kind:?} in {name:?}, which is {:?}", column.kind));
                }
                Some(_) => {}
            }
            if let Value::Text(text) = value
                && text.len() > LONGEST
            {
                return wrong(format!(
                    "{} bytes in {name:?}: expected at most {LONGEST}",
                    text.len()
                ));
            }
        }
        for (value, filling) in values.iter().zip(&mut self.fillings) {
            filling.add(value);
        }
        self.rows += 1;
        if self.fillings.iter().map(Filling::len).sum::<usize>() >= GROUP {
            self.group()?;
        }
        Ok(())
    }

    /// Writes the rows so far as a row group.
    fn group(&mut self) -> Result<(), Error> {
        let mut group = RowGroup {
            rows: 0,
            chunks: Vec::new(),
        };
        for (column, filling) in self.columns.iter().zip(&mut self.fillings) {
            let (raw, rows) = filling.page(column.optional);
            let packed = lz4_flex::block::compress(&raw);
            let (codec, bytes) = match packed.len() < raw.len() {
                true => (Codec::Lz4Raw, &packed),
                false => (Codec::Uncompressed, &raw),
            };
            let crc = crc32fast::hash(bytes);
            let header = page_header(rows as i32, raw.len() as i32, bytes.len() as i32, crc);
            self.out.write_all(&header)?;
            self.out.write_all(bytes)?;
            group.rows = rows;
            group.chunks.push(Chunk {
                at: self.at,
                codec,
                unpacked: (header.len() + raw.len()) as u64,
                packed: (header.len() + bytes.len()) as u64,
            });
            self.at += (header.len() + bytes.len()) as u64;
        }
        self.groups.push(group);
        Ok(())
    }

    /// Ends the file. Returns the output.
    ///
    /// # Errors
    /// Returns the errors of the output.
    pub fn finish(mut self) -> Result<W, Error> {
        if self.fillings.iter().any(|filling| filling.len() > 0) {
            self.group()?;
        }
        let footer = footer(&self.columns, &self.groups, &self.pairs);
        self.out.write_all(&footer)?;
        self.out.write_all(&(footer.len() as u32).to_le_bytes())?;
        self.out.write_all(SIGNATURE)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
