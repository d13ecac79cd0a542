// SPDX-License-Identifier: GPL-2.0-or-later
//! The recorded kernel's layout of its events: the format files of tracefs, which perf and trace-cmd
//! store, and the events that are read by them.

use std::collections::BTreeMap;

use crate::ImportError;
use crate::event::{Context, Event, Kind, Name, State};
use crate::perf::RecordError;
use crate::weave::Weaver;

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
        Some((id.unwrap_or(0), format))
    }

    /// Returns where a field begins, and where it ends.
    pub fn place(&self, name: &str) -> Option<(usize, usize)> {
        let field = self.fields.get(name)?;
        Some((field.offset, field.offset.checked_add(field.size)?))
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

/// The layouts of a recording's events by their numbers: of the scheduler's with their fields, of the
/// others the names.
#[derive(Debug, Default)]
pub struct Formats {
    events: BTreeMap<u16, Format>,
    pub big: bool,
    /// Events of no use, by number.
    left: BTreeMap<u16, u64>,
}

impl Formats {
    /// Reads perf's `HEADER_TRACING_DATA`.
    ///
    /// # Errors
    /// Returns an error where the section ends too early or has another format.
    pub fn read(section: &[u8]) -> Result<Formats, ImportError> {
        let mut cursor = Cursor::new(section, false);
        let mut formats = Formats::default();
        let mut walk = || {
            cursor.begin()?;
            formats.big = cursor.big;
            cursor.page()?;
            formats.ftrace(&mut cursor)?;
            formats.systems(&mut cursor)
        };
        walk().ok_or_else(|| {
            ImportError::Input(format!(
                "the descriptions of the recorded kernel's events are damaged at their byte {} of {}: record again",
                cursor.at,
                section.len()
            ))
        })?;
        Ok(formats)
    }

    /// Takes the formats of ftrace's own events.
    pub fn ftrace(&mut self, cursor: &mut Cursor) -> Option<()> {
        for _ in 0..cursor.number(4)? {
            self.event_of(b"ftrace", cursor.block()?)?;
        }
        Some(())
    }

    /// Takes the formats of all other events.
    pub fn systems(&mut self, cursor: &mut Cursor) -> Option<()> {
        for _ in 0..cursor.number(4)? {
            let system = cursor.text()?;
            for _ in 0..cursor.number(4)? {
                self.event_of(system, cursor.block()?)?;
            }
        }
        Some(())
    }

    fn event_of(&mut self, system: &[u8], text: &[u8]) -> Option<()> {
        let parsed = Format::parse(&String::from_utf8_lossy(text));
        if system == b"sched" {
            let (id, format) = parsed.filter(|(id, format)| *id != 0 && !format.name.is_empty())?;
            self.events.insert(id, format);
        } else if let Some((id, format)) = parsed {
            self.events.entry(id).or_insert(Format { fields: BTreeMap::new(), ..format });
        }
        Some(())
    }

    /// Returns true if one of the scheduler's events has this name.
    pub fn has(&self, name: &str) -> bool {
        self.events.values().any(|format| format.name == name && !format.fields.is_empty())
    }

    /// Counts the events of no use.
    pub fn leave_out(&self, weaver: &mut Weaver) {
        for (id, count) in &self.left {
            let name = self.events.get(id).map_or("unknown tracepoints", |format| &format.name);
            weaver.leave_out(name, *count);
        }
    }

    /// Reads an event's own bytes; returns `None` for an event of no use.
    pub fn event(
        &mut self,
        raw: &[u8],
        at_ns: u64,
        cpu: u32,
        process: Option<i32>,
    ) -> Result<Option<Event>, RecordError> {
        let big = self.big;
        let Some(id) = raw.get(..2) else {
            return Err(RecordError::ShortEvent);
        };
        let id = if big {
            u16::from_be_bytes([id[0], id[1]])
        } else {
            u16::from_le_bytes([id[0], id[1]])
        };
        let Some(format) = self.events.get(&id) else {
            *self.left.entry(id).or_default() += 1;
            return Ok(None);
        };
        let lacks =
            |field: &'static str| RecordError::NoField { event: format.name.clone(), field };
        let number = |name: &'static str| format.number(raw, big, name).ok_or_else(|| lacks(name));
        let pid = |name: &'static str| number(name).map(|n| n as i32);
        let name = |name: &'static str| {
            format.text(raw, big, name).map(Name::new).ok_or_else(|| lacks(name))
        };
        let sched = if format.fields.is_empty() { "" } else { &format.name };
        let kind = match sched {
            "sched_switch" => Kind::Switch {
                prev: pid("prev_pid")?,
                prev_name: name("prev_comm")?,
                prev_prio: pid("prev_prio")?,
                state: State::of_bits(number("prev_state")? as u64),
                next: pid("next_pid")?,
                next_prio: pid("next_prio")?,
                next_name: name("next_comm")?,
            },
            "sched_waking" => Kind::Waking { pid: pid("pid")?, name: name("comm")? },
            "sched_wakeup" => Kind::Wakeup { pid: pid("pid")?, name: name("comm")? },
            "sched_wakeup_new" => Kind::WakeupNew { pid: pid("pid")?, name: name("comm")? },
            "sched_process_fork" => {
                Kind::Fork { child: pid("child_pid")?, name: name("child_comm")? }
            }
            "sched_process_exec" => Kind::Exec,
            "sched_migrate_task" => Kind::Migrate,
            _ => {
                *self.left.entry(id).or_default() += 1;
                return Ok(None);
            }
        };
        let context = Context::of_flags(number("common_flags")? as u64);
        Ok(Some(Event {
            at_ns,
            cpu,
            pid: pid("common_pid")?,
            process: process.filter(|&p| p > 0),
            context,
            kind,
        }))
    }
}

/// A place in bytes that hold numbers of one byte order, texts and blocks.
pub struct Cursor<'a> {
    bytes: &'a [u8],
    pub at: usize,
    pub big: bool,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], big: bool) -> Cursor<'a> {
        Cursor { bytes, at: 0, big }
    }

    /// Reads how trace.dat begins, from which the byte order is known; returns its version.
    pub fn begin(&mut self) -> Option<&'a [u8]> {
        if self.take(10)? != b"\x17\x08\x44tracing" {
            return None;
        }
        let version = self.text()?;
        self.big = self.take(1)? == [1];
        self.take(5)?;
        Some(version)
    }

    /// Reads the kernel's layout of a page of its ring buffer.
    pub fn page(&mut self) -> Option<Format> {
        let mut blocks = [&[][..]; 2];
        for (name, block) in [&b"header_page"[..], b"header_event"].iter().zip(&mut blocks) {
            if self.text()? != *name {
                return None;
            }
            *block = self.block()?;
        }
        Some(Format::parse(&String::from_utf8_lossy(blocks[0]))?.1)
    }

    pub fn take(&mut self, size: usize) -> Option<&'a [u8]> {
        let bytes = self.bytes.get(self.at..self.at.checked_add(size)?)?;
        self.at += size;
        Some(bytes)
    }

    pub fn number(&mut self, size: usize) -> Option<u64> {
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let big = self.big;
        let bytes = self.take(size)?;
        Some(if big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    pub fn block(&mut self) -> Option<&'a [u8]> {
        let size = self.number(8)?;
        self.take(usize::try_from(size).ok()?)
    }

    pub fn text(&mut self) -> Option<&'a [u8]> {
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
