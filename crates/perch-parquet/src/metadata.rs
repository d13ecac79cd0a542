// SPDX-License-Identifier: GPL-2.0-or-later
//! The file's metadata, by the numbers of parquet.thrift.

use crate::column::{Column, Kind};
use crate::thrift::Struct;

/// The numbers of encodings.
const PLAIN: i32 = 0;
const RLE: i32 = 3;

/// The compression of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Uncompressed = 0,
    Lz4Raw = 7,
}

/// The place of a column of a row group.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub at: u64,
    pub codec: Codec,
    /// The number of bytes before packing, the page's header included.
    pub unpacked: u64,
    pub packed: u64,
}

/// A row group.
#[derive(Clone, Debug)]
pub struct RowGroup {
    pub rows: u64,
    pub chunks: Vec<Chunk>,
}

/// Returns the physical type.
fn physical(kind: Kind) -> i32 {
    match kind {
        Kind::Bool => 0,
        Kind::I32 | Kind::U32 => 1,
        Kind::I64 | Kind::U64 => 2,
        Kind::F64 => 5,
        Kind::Text => 6,
    }
}

/// Writes the meaning that the physical type does not tell: the older converted type's number, and
/// the logical type.
fn meaning(element: &mut Struct, kind: Kind) {
    let integer = |element: &mut Struct, converted: i32, bits: i8| {
        element.i32(6, converted);
        element.nested(10, |logical| {
            logical.nested(10, |integer| {
                integer.i8(1, bits);
                integer.bool(2, false);
            });
        });
    };
    match kind {
        Kind::Text => {
            element.i32(6, 0);
            element.nested(10, |logical| logical.nested(1, |_| {}));
        }
        Kind::U32 => integer(element, 13, 32),
        Kind::U64 => integer(element, 14, 64),
        Kind::Bool | Kind::I32 | Kind::I64 | Kind::F64 => {}
    }
}

/// Returns a data page's header; the page's bytes come right behind it.
pub fn page_header(rows: i32, unpacked: i32, packed: i32, crc: u32) -> Vec<u8> {
    let mut out = Vec::new();
    Struct::write(&mut out, |page| {
        page.i32(1, 0);
        page.i32(2, unpacked);
        page.i32(3, packed);
        page.i32(4, crc as i32);
        page.nested(5, |data| {
            data.i32(1, rows);
            data.i32(2, PLAIN);
            data.i32(3, RLE);
            data.i32(4, RLE);
        });
    });
    out
}

/// Returns the metadata at the end of the file, before its length.
pub fn footer(columns: &[Column], groups: &[RowGroup], pairs: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    let root: [Option<&Column>; 1] = [None];
    let schema: Vec<Option<&Column>> = root.into_iter().chain(columns.iter().map(Some)).collect();
    Struct::write(&mut out, |file| {
        file.i32(1, 1);
        file.structs(2, &schema, |element, column| match column {
            None => {
                element.text(4, "schema");
                element.i32(5, columns.len() as i32);
            }
            Some(column) => {
                element.i32(1, physical(column.kind));
                element.i32(3, i32::from(column.optional));
                element.text(4, &column.name);
                meaning(element, column.kind);
            }
        });
        file.i64(3, groups.iter().map(|group| group.rows as i64).sum());
        file.structs(4, groups, |out, group| {
            let all: Vec<(&Column, &Chunk)> = columns.iter().zip(&group.chunks).collect();
            let unpacked = group.chunks.iter().map(|chunk| chunk.unpacked as i64);
            out.structs(1, &all, |out, &(column, chunk)| {
                out.i64(2, 0);
                out.nested(3, |data| {
                    data.i32(1, physical(column.kind));
                    data.i32s(2, &[PLAIN, RLE]);
                    data.texts(3, &[&column.name]);
                    data.i32(4, chunk.codec as i32);
                    data.i64(5, group.rows as i64);
                    data.i64(6, chunk.unpacked as i64);
                    data.i64(7, chunk.packed as i64);
                    data.i64(9, chunk.at as i64);
                });
            });
            out.i64(2, unpacked.sum());
            out.i64(3, group.rows as i64);
        });
        if !pairs.is_empty() {
            file.structs(5, pairs, |pair, (key, value)| {
                pair.text(1, key);
                pair.text(2, value);
            });
        }
        file.text(6, concat!("perch version ", env!("CARGO_PKG_VERSION")));
    });
    out
}
