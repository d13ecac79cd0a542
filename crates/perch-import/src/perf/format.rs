// SPDX-License-Identifier: GPL-2.0-or-later
//! The recorded kernel's layout of its events: the format files of tracefs, which perf stores.

use std::collections::BTreeMap;

use crate::ImportError;

/// A field of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
    signed: bool,
    /// Set where the field holds the place of a text; the value tells from where the place is
    /// counted.
    text_at: Option<Base>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Event,
    AfterField,
}

/// An event's layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Format {
    /// The event's name, such as `sched_switch`.
    pub name: String,
    fields: BTreeMap<String, Field>,
}

impl Format {
    /// Reads a format file: returns the event's number, and its layout.
    pub fn parse(text: &str) -> Option<(u16, Format)> {
        let (mut id, mut format) = (None, Format::default());
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_string();
            } else if let Some(number) = line.strip_prefix("ID:") {
                id = number.trim().parse().ok();
            } else if let Some(field) = line.trim_start().strip_prefix("field:") {
                let (name, field) = field_of(field)?;
                format.fields.insert(name, field);
            }
        }
        Some((id?, format)).filter(|(_, format)| !format.name.is_empty())
    }

    /// Reads a whole number from an event; returns `None` where there is no such field, or the
    /// event ends before the field.
    pub fn number(&self, raw: &[u8], big: bool, name: &str) -> Option<i64> {
        let field = self.fields.get(name)?;
        let bytes = raw.get(field.offset..field.offset.checked_add(field.size)?)?;
        if bytes.is_empty() || bytes.len() > 8 {
            return None;
        }
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let value = if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) };
        let unused = 64 - 8 * bytes.len() as u32;
        Some(if field.signed { (value << unused) as i64 >> unused } else { value as i64 })
    }

    /// Returns the bytes of a text; zeros may follow the text.
    pub fn text<'a>(&self, raw: &'a [u8], big: bool, name: &str) -> Option<&'a [u8]> {
        let field = self.fields.get(name)?;
        let Some(base) = field.text_at else {
            return raw.get(field.offset..field.offset.checked_add(field.size)?);
        };
        let place = self.number(raw, big, name)? as u64;
        let (offset, size) = ((place & 0xffff) as usize, (place >> 16 & 0xffff) as usize);
        let from = match base {
            Base::Event => offset,
            Base::AfterField => field.offset + field.size + offset,
        };
        raw.get(from..from.checked_add(size)?)
    }
}

/// Reads a line such as `unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;`.
fn field_of(text: &str) -> Option<(String, Field)> {
    let mut parts = text.split(';').map(str::trim);
    let declaration = parts.next()?;
    let (mut offset, mut size, mut signed) = (None, None, false);
    for part in parts {
        match part.split_once(':') {
            Some(("offset", value)) => offset = value.parse().ok(),
            Some(("size", value)) => size = value.parse().ok(),
            Some(("signed", value)) => signed = value == "1",
            _ => {}
        }
    }
    let text_at = match declaration {
        d if d.starts_with("__data_loc") => Some(Base::Event),
        d if d.starts_with("__rel_loc") => Some(Base::AfterField),
        _ => None,
    };
    let name = declaration.split('[').next()?;
    let name = match text_at {
        // The brackets of these declarations belong to the type.
        Some(_) => declaration.rsplit(' ').next()?,
        None => name.rsplit([' ', '*']).next()?,
    };
    let field = Field { offset: offset?, size: size?, signed, text_at };
    Some((name.to_string(), field))
}

/// Reads the layouts of the scheduler's events by their numbers, from perf's `HEADER_TRACING_DATA`.
///
/// # Errors
/// Returns an error where the section ends too early or has another format.
pub fn formats(section: &[u8]) -> Result<BTreeMap<u16, Format>, ImportError> {
    let mut cursor = Cursor { bytes: section, at: 0, big: false };
    cursor.walk().ok_or_else(|| {
        ImportError::Input(format!(
            "the descriptions of the recorded kernel's events are damaged at their byte {} of {}: record again",
            cursor.at,
            section.len()
        ))
    })
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    big: bool,
}

impl<'a> Cursor<'a> {
    fn walk(&mut self) -> Option<BTreeMap<u16, Format>> {
        if self.take(10)? != b"\x17\x08\x44tracing" {
            return None;
        }
        self.text()?;
        self.big = self.take(1)? == [1];
        self.take(1)?;
        self.number(4)?;
        for name in ["header_page", "header_event"] {
            if self.text()? != name.as_bytes() {
                return None;
            }
            self.block()?;
        }
        for _ in 0..self.number(4)? {
            self.block()?;
        }
        let mut found = BTreeMap::new();
        for _ in 0..self.number(4)? {
            let system = self.text()?;
            for _ in 0..self.number(4)? {
                let block = self.block()?;
                if system == b"sched" {
                    let (id, format) = Format::parse(&String::from_utf8_lossy(block))?;
                    found.insert(id, format);
                }
            }
        }
        Some(found)
    }

    fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(size)?)?;
        self.at += size;
        Some(bytes)
    }

    fn number(&mut self, size: usize) -> Option<u64> {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let big = self.big;
        let bytes = self.take(size)?;
        Some(if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    fn block(&mut self) -> Option<&'a [u8]> {
        let size = self.number(8)?;
        self.take(usize::try_from(size).ok()?)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let size = rest.iter().position(|&b| b == 0)?;
        self.at += size + 1;
        Some(&rest[..size])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORK: &str = "name: sched_process_fork\nID: 318\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:__data_loc char[] parent_comm;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:char child_comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\
        \nprint fmt: \"comm=%s\", __get_str(parent_comm)\n";

    #[test]
    fn fields_of_every_kind_are_found() {
        let (id, format) = Format::parse(FORK).expect("a format");
        assert_eq!((id, format.name.as_str()), (318, "sched_process_fork"));
        let mut raw = vec![62, 1, 0, 0, 0xfe, 0xff, 0xff, 0xff, 28, 0, 3, 0];
        raw.extend_from_slice(b"child\0\0\0\0\0\0\0\0\0\0\0sh\0");
        assert_eq!(format.number(&raw, false, "common_pid"), Some(-2));
        assert_eq!(format.number(&raw, false, "common_type"), Some(318));
        assert_eq!(format.text(&raw, false, "parent_comm"), Some(&b"sh\0"[..]));
        assert!(format.text(&raw, false, "child_comm").is_some_and(|t| t.starts_with(b"child\0")));
        assert_eq!(format.number(&raw[..6], false, "common_pid"), None);
        assert_eq!(format.number(&raw, false, "no_such"), None);
    }
}
