// SPDX-License-Identifier: GPL-2.0-or-later
//! Writing a file, row by row, in the memory of one row group.

use std::io::Write;

use crate::column::{Column, Filling, Value};
use crate::metadata::{Chunk, Codec, RowGroup, footer, page_header};

/// A row group is written when its values have so many bytes: readers like a few MiB at a time.
const GROUP: usize = 8 << 20;
/// What a single word must not exceed, so that a page stays far below what its header can count.
const LONGEST: usize = 16 << 20;

/// Why a file cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operating system says so.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The columns make no table: the caller's mistake.
    #[error("columns: {0}")]
    Columns(String),
    /// A row is not one of this table.
    #[error("row {row}: {what}")]
    Row {
        /// From 0.
        row: u64,
        /// What is wrong.
        what: String,
    },
}

/// Writes a Parquet file. Nothing can be read of it before [`Writer::finish`].
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
    /// Begins a table of these columns. `pairs` are words about it that readers show as the file's
    /// metadata.
    ///
    /// # Errors
    /// Of no columns, or columns without a name or with another's name; or as the output has them.
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

    /// Adds a row, a value a column.
    ///
    /// # Errors
    /// When it is no row of this table: nothing of it is written then. Or as the output has them:
    /// then the file is lost.
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

    /// Ends the file. Returns what it was written to.
    ///
    /// # Errors
    /// As the output has them.
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
