// SPDX-License-Identifier: GPL-2.0-or-later
//! A small streaming writer of Parquet files: flat tables of numbers and words, that data frames
//! and databases load. It supports what perch writes and no more: required and optional columns,
//! PLAIN values, one data page (version 1) a column and row group, LZ4_RAW where that is shorter.
//!
//! The crates that can do all of Parquet bring Arrow and tens of other crates along, for a
//! writer of one flat table. The format is <https://github.com/apache/parquet-format>.
//!
//! ```
//! use perch_parquet::{Column, Kind, Value, Writer};
//!
//! let columns = [Column::new("cpu", Kind::U32), Column::optional("reason", Kind::Text)];
//! let mut writer = Writer::new(Vec::new(), &columns, &[("machine", "juno")])?;
//! writer.row(&[Value::U32(3), Value::Text("target idle")])?;
//! writer.row(&[Value::U32(1), Value::Null])?;
//! let file = writer.finish()?;
//! assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
//! # Ok::<(), perch_parquet::Error>(())
//! ```

mod column;
mod metadata;
mod thrift;
mod writer;

pub use column::{Column, Kind, Value};
pub use writer::{Error, Writer};
