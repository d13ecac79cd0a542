// SPDX-License-Identifier: GPL-2.0-or-later
//! Columns: the kinds of their values, and the values as bytes.

/// The kind of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    Bool,
    /// An integer of 32 bits with a sign.
    I32,
    /// An integer of 64 bits with a sign.
    I64,
    /// An integer of 32 bits without a sign.
    U32,
    /// An integer of 64 bits without a sign.
    U64,
    /// A floating-point number of double precision.
    F64,
    /// A text in UTF-8.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name, which is not empty, and no other column's.
    pub name: String,
    /// The kind of the column's values.
    pub kind: Kind,
    /// True where a row may lack a value in the column.
    pub optional: bool,
}

impl Column {
    /// Returns a column in which every row has a value.
    pub fn new(name: &str, kind: Kind) -> Column {
        Column {
            name: name.to_string(),
            kind,
            optional: false,
        }
    }

    /// Returns a column in which a row may have [`Value::Null`].
    pub fn optional(name: &str, kind: Kind) -> Column {
        Column {
            optional: true,
            ..Column::new(name, kind)
        }
    }
}

/// The value of a row in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// The row has no value.
    Null,
    /// A value of [`Kind::Bool`].
    Bool(bool),
    /// A value of [`Kind::I32`].
    I32(i32),
    /// A value of [`Kind::I64`].
    I64(i64),
    /// A value of [`Kind::U32`].
    U32(u32),
    /// A value of [`Kind::U64`].
    U64(u64),
    /// A value of [`Kind::F64`].
    F64(f64),
    /// A value of [`Kind::Text`].
    Text(&'a str),
}

impl Value<'_> {
    /// Returns the kind of column that the value belongs in; `None` for [`Value::Null`].
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
    /// The PLAIN values of the rows that have one.
    values: Vec<u8>,
    /// The number of bits taken of the last byte, for a column of [`Kind::Bool`].
    bits: u32,
    /// Runs of rows that all have a value or all lack one: the length of each, and which of the
    /// two.
    runs: Vec<(u64, bool)>,
    rows: u64,
}

impl Filling {
    /// Adds a value of the column's kind, or [`Value::Null`].
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

    /// Returns the number of bytes so far.
    pub fn len(&self) -> usize {
        self.values.len() + 16 * self.runs.len()
    }

    /// Returns the page's bytes before they are packed, and the number of its rows; clears both.
    pub fn page(&mut self, optional: bool) -> (Vec<u8>, u64) {
        let mut page = Vec::with_capacity(self.values.len() + 16);
        if optional {
            // The definition levels take one bit each: they are written as runs, each its length
            // and its value, behind the number of their bytes.
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
