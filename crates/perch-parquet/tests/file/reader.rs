// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of Parquet files that supports what the test of the writer needs. It is strict: it
//! panics where the file has something that the format's description does not allow.

use std::collections::BTreeMap;

use perch_parquet::{Column, Kind};

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    Null,
    Bool(bool),
    I32(i32),
    I64(i64),
    U32(u32),
    U64(u64),
    F64(f64),
    Text(String),
}

/// The contents of a file.
pub struct Table {
    pub columns: Vec<Column>,
    pub rows: Vec<Vec<Cell>>,
    pub pairs: Vec<(String, String)>,
    /// The rows and the unpacked bytes of each row group.
    pub groups: Vec<(i64, i64)>,
}

/// A value of any of Thrift's types.
#[derive(Clone, Debug, PartialEq)]
enum Thing {
    Bool(bool),
    Int(i64),
    Bytes(Vec<u8>),
    List(Vec<Thing>),
    Struct(BTreeMap<i64, Thing>),
}

impl Thing {
    fn field(&self, id: i64) -> &Thing {
        self.maybe(id)
            .unwrap_or_else(|| panic!("no field {id} in {self:?}"))
    }

    fn maybe(&self, id: i64) -> Option<&Thing> {
        match self {
            Thing::Struct(fields) => fields.get(&id),
            other => panic!("{other:?} is no structure"),
        }
    }

    fn int(&self) -> i64 {
        match self {
            Thing::Int(v) => *v,
            other => panic!("{other:?} is no number"),
        }
    }

    fn text(&self) -> String {
        match self {
            Thing::Bytes(v) => String::from_utf8(v.clone()).expect("UTF-8"),
            other => panic!("{other:?} is no text"),
        }
    }

    fn list(&self) -> &[Thing] {
        match self {
            Thing::List(v) => v,
            other => panic!("{other:?} is no list"),
        }
    }
}

/// Bytes that a reader takes from the front.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take(&mut self, n: usize) -> &[u8] {
        let (head, rest) = self.0.split_at(n);
        self.0 = rest;
        head
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("as many")
    }

    fn varint(&mut self) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
        }
        panic!("a number of more than ten bytes");
    }

    fn zigzag(&mut self) -> i64 {
        let v = self.varint();
        (v >> 1) as i64 ^ -((v & 1) as i64)
    }

    fn thing(&mut self, kind: u8) -> Thing {
        match kind {
            3 => Thing::Int(i64::from(self.byte() as i8)),
            4..=6 => Thing::Int(self.zigzag()),
            8 => {
                let n = self.varint() as usize;
                Thing::Bytes(self.take(n).to_vec())
            }
            9 => {
                let head = self.byte();
                let n = match head >> 4 {
                    15 => self.varint(),
                    n => u64::from(n),
                };
                Thing::List((0..n).map(|_| self.thing(head & 15)).collect())
            }
            12 => self.structure(),
            other => panic!("type {other}"),
        }
    }

    fn structure(&mut self) -> Thing {
        let mut fields = BTreeMap::new();
        let mut id = 0;
        loop {
            let head = self.byte();
            if head == 0 {
                return Thing::Struct(fields);
            }
            id = match head >> 4 {
                0 => self.zigzag(),
                delta => id + i64::from(delta),
            };
            let thing = match head & 15 {
                1 => Thing::Bool(true),
                2 => Thing::Bool(false),
                kind => self.thing(kind),
            };
            assert!(fields.insert(id, thing).is_none(), "field {id} twice");
        }
    }
}

/// Reads a file.
pub fn read(file: &[u8]) -> Table {
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
    let end = file.len() - 8;
    let length = u32::from_le_bytes(file[end..end + 4].try_into().expect("four")) as usize;
    let mut bytes = Bytes(&file[end - length..end]);
    let footer = bytes.structure();
    assert!(
        bytes.0.is_empty(),
        "{} bytes after the footer",
        bytes.0.len()
    );
    assert_eq!(footer.field(1).int(), 1);
    let columns = schema(footer.field(2).list());
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut groups = Vec::new();
    let mut at = 4;
    for group in footer.field(4).list() {
        let first = rows.len();
        let count = group.field(3).int();
        rows.resize(first + count as usize, Vec::new());
        let chunks = group.field(1).list();
        assert_eq!(chunks.len(), columns.len());
        let mut unpacked = 0;
        for (column, chunk) in columns.iter().zip(chunks) {
            let data = chunk.field(3);
            assert_eq!(data.field(1).int(), physical(column.kind));
            assert_eq!(data.field(3).list()[0].text(), column.name);
            assert_eq!(data.field(5).int(), count);
            // The chunks lie one behind the other, without a gap.
            assert_eq!(data.field(9).int(), at as i64);
            let packed = data.field(7).int() as usize;
            let codec = data.field(4).int();
            let (cells, size) = page(&file[at..at + packed], codec, column);
            assert_eq!(data.field(6).int(), size);
            assert_eq!(cells.len() as i64, count);
            for (row, cell) in rows[first..].iter_mut().zip(cells) {
                row.push(cell);
            }
            at += packed;
            unpacked += size;
        }
        assert_eq!(group.field(2).int(), unpacked);
        groups.push((count, unpacked));
    }
    assert_eq!(at, end - length);
    assert_eq!(footer.field(3).int(), rows.len() as i64);
    let pairs = footer.maybe(5).map_or(&[][..], Thing::list);
    let pairs = pairs.iter().map(|p| (p.field(1).text(), p.field(2).text()));
    Table {
        columns,
        rows,
        pairs: pairs.collect(),
        groups,
    }
}

fn physical(kind: Kind) -> i64 {
    match kind {
        Kind::Bool => 0,
        Kind::I32 | Kind::U32 => 1,
        Kind::I64 | Kind::U64 => 2,
        Kind::F64 => 5,
        Kind::Text => 6,
    }
}

fn schema(elements: &[Thing]) -> Vec<Column> {
    let (root, leaves) = elements.split_first().expect("a root");
    assert_eq!(root.field(5).int() as usize, leaves.len());
    let leaf = |element: &Thing| {
        let converted = element.maybe(6).map(Thing::int);
        let kind = match (element.field(1).int(), converted) {
            (0, None) => Kind::Bool,
            (1, None) => Kind::I32,
            (1, Some(13)) => Kind::U32,
            (2, None) => Kind::I64,
            (2, Some(14)) => Kind::U64,
            (5, None) => Kind::F64,
            (6, Some(0)) => Kind::Text,
            other => panic!("a column of {other:?}"),
        };
        // The logical type says the same as the converted one.
        let logical = element.maybe(10);
        match kind {
            Kind::Text => assert!(logical.expect("a string").maybe(1).is_some()),
            Kind::U32 | Kind::U64 => {
                let integer = logical.expect("an integer").field(10);
                let bits = if kind == Kind::U32 { 32 } else { 64 };
                assert_eq!(integer.field(1).int(), bits);
                assert_eq!(integer.field(2), &Thing::Bool(false));
            }
            _ => assert_eq!(logical, None),
        }
        Column {
            name: element.field(4).text(),
            kind,
            optional: match element.field(3).int() {
                0 => false,
                1 => true,
                other => panic!("repetition {other}"),
            },
        }
    };
    leaves.iter().map(leaf).collect()
}

/// Returns the values of a chunk that is one page, and the chunk's size when unpacked, header
/// included.
fn page(chunk: &[u8], codec: i64, column: &Column) -> (Vec<Cell>, i64) {
    let mut bytes = Bytes(chunk);
    let header = bytes.structure();
    let head = chunk.len() - bytes.0.len();
    assert_eq!(header.field(1).int(), 0, "a data page");
    assert_eq!(header.field(3).int() as usize, bytes.0.len());
    assert_eq!(
        header.field(4).int() as u32,
        crc32fast::hash(bytes.0) as i32 as u32
    );
    let size = header.field(2).int();
    let raw = match codec {
        0 => bytes.0.to_vec(),
        7 => lz4_flex::block::decompress(bytes.0, size as usize).expect("LZ4"),
        other => panic!("codec {other}"),
    };
    assert_eq!(raw.len() as i64, size);
    let data = header.field(5);
    assert_eq!((data.field(2).int(), data.field(3).int()), (0, 3));
    let rows = data.field(1).int() as usize;
    let mut bytes = Bytes(&raw);
    let mut is = vec![true; rows];
    if column.optional {
        is.clear();
        let length = u32::from_le_bytes(bytes.array()) as usize;
        let mut levels = Bytes(bytes.take(length));
        while !levels.0.is_empty() {
            let run = levels.varint();
            assert_eq!(run & 1, 0, "runs only");
            let level = levels.byte();
            assert!(level < 2);
            is.resize(is.len() + (run >> 1) as usize, level == 1);
        }
    }
    assert_eq!(is.len(), rows);
    let values = is.iter().filter(|is| **is).count();
    let bits = match column.kind {
        Kind::Bool => bytes.take(values.div_ceil(8)).to_vec(),
        _ => Vec::new(),
    };
    let mut next = 0;
    let mut cell = |is: bool| {
        if !is {
            return Cell::Null;
        }
        next += 1;
        match column.kind {
            Kind::Bool => Cell::Bool(bits[(next - 1) / 8] >> ((next - 1) % 8) & 1 != 0),
            Kind::I32 => Cell::I32(i32::from_le_bytes(bytes.array())),
            Kind::I64 => Cell::I64(i64::from_le_bytes(bytes.array())),
            Kind::U32 => Cell::U32(u32::from_le_bytes(bytes.array())),
            Kind::U64 => Cell::U64(u64::from_le_bytes(bytes.array())),
            Kind::F64 => Cell::F64(f64::from_le_bytes(bytes.array())),
            Kind::Text => {
                let length = u32::from_le_bytes(bytes.array()) as usize;
                Cell::Text(String::from_utf8(bytes.take(length).to_vec()).expect("UTF-8"))
            }
        }
    };
    let cells: Vec<Cell> = is.iter().map(|&is| cell(is)).collect();
    assert!(bytes.0.is_empty(), "{} bytes left", bytes.0.len());
    (cells, head as i64 + size)
}
