// SPDX-License-Identifier: GPL-2.0-or-later
//! Columns: what they hold, and their values as bytes.

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Yes or no.
    Bool,
    /// 32 bits with a sign.
    I32,
    /// 64 bits with a sign.
    I64,
    /// 32 bits without.
    U32,
    /// 64 bits without.
    U64,
    /// A double.
    F64,
    /// UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name: not empty, and no other column's.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether a row may have nothing there.
    pub optional: bool,
}

impl Column {
    /// A column in which every row has something.
    pub fn new(name: &str, kind: Kind) -> Column {
        Column {
            name: name.to_string(),
            kind,
            optional: false,
        }
    }

    /// A column in which a row may have [`Value::Null`].
    pub fn optional(name: &str, kind: Kind) -> Column {
        Column {
            optional: true,
            ..Column::new(name, kind)
        }
    }
}

/// What a row has in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// [`Kind::Bool`].
    Bool(bool),
    /// [`Kind::I32`].
    I32(i32),
    /// [`Kind::I64`].
    I64(i64),
    /// [`Kind::U32`].
    U32(u32),
    /// [`Kind::U64`].
    U64(u64),
    /// [`Kind::F64`].
    F64(f64),
    /// [`Kind::Text`].
    Text(&'a str),
}

impl Value<'_> {
    /// The kind of column that it belongs in; `None` for nothing.
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Value::Null => return None,
            Value::Bool(_) => Kind::Bool,
            Value::I32(_) => Kind::I32,
            Value::I64(_) => Kind::I64,
            Value::U32(_) => Kind::U32,
            Value::U64(_) => Kind::U64,
            Value::F64(_) => Kind::F64,
            Value::Text(_) => Kind::Text,
        })
    }
}

/// A column's values since the last row group.
#[derive(Debug, Default)]
pub struct Filling {
    /// PLAIN values of the rows that have one.
    values: Vec<u8>,
    /// How many bits of the last byte are taken, of a column of [`Kind::Bool`].
    bits: u32,
    /// Runs of rows that have a value or don't: how many, and which.
    runs: Vec<(u64, bool)>,
    rows: u64,
}

impl Filling {
    /// Adds a value of the column's kind, or nothing.
    pub fn add(&mut self, value: &Value) {
        let is = *value != Value::Null;
        self.rows += 1;
        match self.runs.last_mut() {
            Some((length, same)) if *same == is => *length += 1,
            _ => self.runs.push((1, is)),
        }
        let out = &mut self.values;
        match *value {
            Value::Null => {}
            Value::Bool(is) => {
                if self.bits % 8 == 0 {
                    out.push(0);
                }
                if let (Some(last), true) = (out.last_mut(), is) {
                    *last |= 1 << (self.bits % 8);
                }
                self.bits += 1;
            }
            Value::I32(v) => out.extend_from_slice(&v.to_le_bytes()),
            Value::I64(v) => out.extend_from_slice(&v.to_le_bytes()),
            Value::U32(v) => out.extend_from_slice(&v.to_le_bytes()),
            Value::U64(v) => out.extend_from_slice(&v.to_le_bytes()),
            Value::F64(v) => out.extend_from_slice(&v.to_le_bytes()),
            Value::Text(v) => {
                out.extend_from_slice(&(v.len() as u32).to_le_bytes());
                out.extend_from_slice(v.as_bytes());
            }
        }
    }

    /// Bytes so far.
    pub fn len(&self) -> usize {
        self.values.len() + 16 * self.runs.len()
    }

    /// The page's bytes before they are packed, and its rows; forgets them.
    pub fn page(&mut self, optional: bool) -> (Vec<u8>, u64) {
        let mut page = Vec::with_capacity(self.values.len() + 16);
        if optional {
            // Definition levels of one bit: runs, each its length and its value, after their bytes.
            let mut levels = Vec::new();
            for &(length, is) in &self.runs {
                let mut head = length << 1;
                while head >= 0x80 {
                    levels.push(head as u8 | 0x80);
                    head >>= 7;
                }
                levels.extend([head as u8, u8::from(is)]);
            }
            page.extend_from_slice(&(levels.len() as u32).to_le_bytes());
            page.append(&mut levels);
        }
        page.append(&mut self.values);
        let rows = self.rows;
        (self.rows, self.bits) = (0, 0);
        self.runs.clear();
        (page, rows)
    }
}
