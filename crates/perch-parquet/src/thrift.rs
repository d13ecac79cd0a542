// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of Thrift's compact protocol that Parquet's metadata needs.

/// The types of fields.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// A structure that is being written; its fields must come in ascending order.
pub struct Struct<'a> {
    out: &'a mut Vec<u8>,
    last: u8,
}

impl Struct<'_> {
    /// Writes a structure; `fields` writes the structure's fields.
    pub fn write(out: &mut Vec<u8>, fields: impl FnOnce(&mut Struct)) {
        fields(&mut Struct { out, last: 0 });
        out.push(0);
    }

    /// Writes a field's head. The numbers of Parquet's fields are all near enough to the one before
    /// for the short form.
    fn head(&mut self, id: u8, kind: u8) {
        debug_assert!(id > self.last && id - self.last < 16);
        self.out.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    pub fn bool(&mut self, id: u8, value: bool) {
        self.head(id, if value { TRUE } else { FALSE });
    }

    pub fn i8(&mut self, id: u8, value: i8) {
        self.head(id, I8);
        self.out.push(value as u8);
    }

    pub fn i32(&mut self, id: u8, value: i32) {
        self.head(id, I32);
        varint(self.out, zigzag(value.into()));
    }

    pub fn i64(&mut self, id: u8, value: i64) {
        self.head(id, I64);
        varint(self.out, zigzag(value));
    }

    pub fn text(&mut self, id: u8, value: &str) {
        self.head(id, BINARY);
        text(self.out, value);
    }

    pub fn nested(&mut self, id: u8, fields: impl FnOnce(&mut Struct)) {
        self.head(id, STRUCT);
        Struct::write(self.out, fields);
    }

    /// Writes a list of structures.
    pub fn structs<T>(&mut self, id: u8, items: &[T], mut fields: impl FnMut(&mut Struct, &T)) {
        self.list(id, STRUCT, items.len());
        for item in items {
            Struct::write(self.out, |s| fields(s, item));
        }
    }

    /// Writes a list of numbers.
    pub fn i32s(&mut self, id: u8, items: &[i32]) {
        self.list(id, I32, items.len());
        for &item in items {
            varint(self.out, zigzag(item.into()));
        }
    }

    /// Writes a list of words.
    pub fn texts(&mut self, id: u8, items: &[&str]) {
        self.list(id, BINARY, items.len());
        items.iter().for_each(|item| text(self.out, item));
    }

    fn list(&mut self, id: u8, kind: u8, length: usize) {
        self.head(id, LIST);
        if length < 15 {
            self.out.push((length as u8) << 4 | kind);
        } else {
            self.out.push(0xf0 | kind);
            varint(self.out, length as u64);
        }
    }
}

fn text(out: &mut Vec<u8>, value: &str) {
    varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes are worked out by hand from the protocol's description.
    #[test]
    fn bytes_are_those_of_the_protocol() {
        let mut out = Vec::new();
        Struct::write(&mut out, |s| {
            s.i32(1, -1);
            s.i64(3, 300);
            s.text(4, "ab");
            s.bool(5, true);
            s.nested(10, |s| s.i8(1, 64));
            s.i32s(11, &[1; 15]);
        });
        let mut expected = vec![0x15, 0x01, 0x26, 0xd8, 0x04, 0x18, 0x02, b'a', b'b', 0x11];
        expected.extend([0x5c, 0x13, 0x40, 0x00, 0x19, 0xf5, 0x0f]);
        expected.extend([0x02; 15]);
        expected.push(0x00);
        assert_eq!(out, expected);
    }
}
