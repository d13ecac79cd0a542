// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of trace-cmd's trace.dat, versions 6 and 7: trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5)
//! describe the file, and the kernel's `header_page` and `header_event` the ring buffers' pages in it.
//! The crates that could read it are under the Apache licence only.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::event::Event;
use crate::format::{Cursor, Format, Formats};
use crate::perf::{RecordError, is_too_old};
use crate::progress::Tell;
use crate::weave::Weaver;
use crate::{ImportError, Origin};

/// The most bytes that version 6 has before its pages; most are kallsyms.
const MOST_HEAD: u64 = 1 << 26;
/// All that is read and decompressed is at most so many times the file. Pages shrink to a tenth.
const MOST_TIMES: u64 = 64;
/// The largest page of a ring buffer, of 128 pages of memory.
const MOST_PAGE: usize = 1 << 23;

/// Numbers of options; the sections of version 7 that tell of the events come one after the other.
const BUFFER: u64 = 3;
const CLOCK: u64 = 4;
const UNAME: u64 = 5;
const CPU_COUNT: u64 = 8;
const TIME_SHIFT: u64 = 12;
const GUEST: u64 = 13;
const TSC2NSEC: u64 = 14;
const HEADER_INFO: u64 = 16;
const EVENT_FORMATS: u64 = 18;
const BUFFER_TEXT: u64 = 22;

fn wrong<T>(why: String) -> Result<T, ImportError> {
    Err(ImportError::Input(why))
}

fn damaged(at: u64, source: RecordError) -> ImportError {
    ImportError::Record { at, source }
}

/// The file.
struct Dat<'a> {
    file: File,
    size: u64,
    big: bool,
    zlib: bool,
    /// The bytes that may still be read or decompressed.
    left: u64,
    read: u64,
    tell: Tell<'a>,
}

impl Dat<'_> {
    fn spend(&mut self, at: u64, bytes: u64) -> Result<(), ImportError> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| damaged(at, RecordError::Expands(MOST_TIMES)))?;
        Ok(())
    }

    fn bytes(&mut self, at: u64, size: u64) -> Result<Vec<u8>, ImportError> {
        if at.checked_add(size).is_none_or(|end| end > self.size) {
            return Err(damaged(at, RecordError::CutOff));
        }
        self.spend(at, size)?;
        let mut bytes = vec![0; size as usize];
        self.file.read_exact_at(&mut bytes, at)?;
        self.read += size;
        (self.tell)(self.read.min(self.size), self.size);
        Ok(bytes)
    }

    /// Reads what is compressed at this place, and returns also where it ends.
    fn unpacked(&mut self, at: u64) -> Result<(Vec<u8>, u64), ImportError> {
        let head = self.bytes(at, 8)?;
        let mut head = Cursor::new(&head, self.big);
        let (packed, plain) = (head.number(4).unwrap_or(0), head.number(4).unwrap_or(0));
        self.spend(at, plain)?;
        let bytes = self.bytes(at + 8, packed)?;
        let plain = plain as usize;
        let bad = |why: &dyn std::fmt::Display| damaged(at, RecordError::Packed(why.to_string()));
        let out = if self.zlib {
            miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(&bytes, plain)
                .map_err(|why| bad(&why))?
        } else {
            let mut out = Vec::with_capacity(plain);
            let mut decoder = ruzstd::decoding::FrameDecoder::new();
            decoder.decode_all_to_vec(&bytes, &mut out).map_err(|why| bad(&why))?;
            out
        };
        match out.len() {
            size if size == plain => Ok((out, at + 8 + packed)),
            size => Err(bad(&format_args!("{size} bytes, expected {plain}"))),
        }
    }

    /// Returns whether a section is compressed, and its size.
    fn section_head(&mut self, at: u64) -> Result<(bool, u64), ImportError> {
        let head = self.bytes(at, 16)?;
        let number = |at: usize, size| Cursor::new(&head[at..], self.big).number(size).unwrap_or(0);
        Ok((number(2, 2) & 1 == 1, number(8, 8)))
    }

    fn section(&mut self, at: u64) -> Result<Vec<u8>, ImportError> {
        match self.section_head(at)? {
            (true, _) => Ok(self.unpacked(at + 16)?.0),
            (false, size) => self.bytes(at + 16, size),
        }
    }
}

/// A buffer's CPUs, each with the place and the size of its pages.
#[derive(Default)]
struct Buffer {
    name: String,
    clock: String,
    cpus: Vec<(u32, u64, u64)>,
    /// The place of its section, in version 7.
    section: Option<u64>,
}

/// What the file says about itself.
#[derive(Default)]
struct About {
    formats: Formats,
    page: Format,
    buffers: Vec<Buffer>,
    clock: String,
    /// Multiplier and shift that make nanoseconds of the processor's clock.
    tsc: Option<(u64, u32)>,
    origin: Origin,
    /// The places of the sections of version 7.
    sections: Option<[u64; 3]>,
    guests: u64,
}

/// Reads a trace.dat file.
pub fn read(path: &Path, weaver: &mut Weaver, tell: Tell) -> Result<Origin, ImportError> {
    let file = perch_file::open(path)?;
    let size = file.metadata()?.len();
    let left = size.saturating_mul(MOST_TIMES);
    let mut dat = Dat { file, size, big: false, zlib: false, left, read: 0, tell };
    let mut about = About::default();
    about.origin.tool = "trace-cmd";
    about.read(&mut dat)?;
    is_too_old(about.origin.release.as_deref())?;
    // An instance counts where the recording has nothing else.
    about.buffers.retain(|buffer| buffer.cpus.iter().any(|(.., size)| *size > 0));
    about.buffers.sort_by_key(|buffer| !buffer.name.is_empty());
    let mut buffers = std::mem::take(&mut about.buffers).into_iter();
    let buffer = buffers.next().unwrap_or_default();
    for other in buffers {
        weaver.leave_out(&format!("buffer instances ({})", other.name), 1);
    }
    if about.guests > 0 {
        weaver.leave_out("recordings of guests", about.guests);
    }
    about.events(&mut dat, &buffer, weaver)?;
    about.formats.leave_out(weaver);
    Ok(about.origin)
}

impl About {
    fn read(&mut self, dat: &mut Dat) -> Result<(), ImportError> {
        let head = dat.bytes(0, dat.size.min(MOST_HEAD))?;
        let mut cursor = Cursor::new(&head, false);
        let version = cursor.begin().unwrap_or_default();
        dat.big = cursor.big;
        self.formats.big = cursor.big;
        if version == b"6" {
            let options = self.six(&mut cursor);
            let options = options.ok_or_else(|| damaged(cursor.at as u64, RecordError::Head))?;
            return options.into_iter().try_for_each(|(id, data)| self.option(dat, id, data));
        }
        if version != b"7" {
            return wrong(format!(
                "it is a trace.dat of version \"{}\": expected 6 or 7",
                version.escape_ascii()
            ));
        }
        let head = || damaged(0, RecordError::Head);
        let packing = cursor.text().ok_or_else(head)?;
        dat.zlib = packing == b"zlib";
        if ![&b"none"[..], b"zlib", b"zstd"].contains(&packing) {
            return wrong(format!(
                "it is compressed by \"{}\": expected zstd, zlib or none; trace-cmd convert --compression none writes it anew",
                packing.escape_ascii()
            ));
        }
        self.sections = Some([0; 3]);
        let mut at = cursor.text().and_then(|_| cursor.number(8)).ok_or_else(head)?;
        while at != 0 {
            let here = || damaged(at, RecordError::Head);
            let section = dat.section(at)?;
            let options = options(&mut Cursor::new(&section, dat.big), 8).ok_or_else(here)?;
            let mut next = None;
            for (id, data) in options {
                match id {
                    0 => next = Cursor::new(data, dat.big).number(8),
                    id => self.option(dat, id, data)?,
                }
            }
            at = next.ok_or_else(here)?;
        }
        for (nth, at) in self.sections.unwrap_or_default().into_iter().enumerate() {
            let section = dat.section(at)?;
            let mut cursor = Cursor::new(&section, dat.big);
            let found = match nth {
                0 => cursor.page().map(|page| self.page = page),
                1 => self.formats.ftrace(&mut cursor),
                _ => self.formats.systems(&mut cursor),
            };
            found.ok_or_else(|| damaged(at, RecordError::Head))?;
        }
        Ok(())
    }

    /// Reads version 6, which is in one piece but for the pages; returns its options.
    fn six<'a>(&mut self, cursor: &mut Cursor<'a>) -> Option<Vec<(u64, &'a [u8])>> {
        self.page = cursor.page()?;
        self.formats.ftrace(cursor)?;
        self.formats.systems(cursor)?;
        // kallsyms, the texts of trace_printk(), and saved_cmdlines.
        for size in [4, 4, 8] {
            let size = cursor.number(size)?;
            cursor.take(usize::try_from(size).ok()?)?;
        }
        let cpus = cursor.number(4)? as u32;
        self.origin.cpus = Some(cpus);
        let (mut found, mut kind) = (Vec::new(), cursor.take(10)?);
        if kind == b"options  \0" {
            found = options(cursor, 0)?;
            kind = cursor.take(10)?;
        }
        match kind {
            b"latency  \0" => found.push((BUFFER_TEXT, &[])),
            b"flyrecord\0" => self.table(cursor, cpus, String::new())?,
            _ => return None,
        }
        Some(found)
    }

    /// Reads a buffer's table of CPUs of version 6.
    fn table(&mut self, cursor: &mut Cursor, cpus: u32, name: String) -> Option<()> {
        let mut buffer = Buffer { name, ..Buffer::default() };
        for cpu in 0..cpus {
            buffer.cpus.push((cpu, cursor.number(8)?, cursor.number(8)?));
        }
        self.buffers.push(buffer);
        Some(())
    }

    /// Takes an option. Those that move all times alike, that repeat what the pages tell, and that name
    /// addresses and tasks outside the events are of no use.
    fn option(&mut self, dat: &mut Dat, id: u64, data: &[u8]) -> Result<(), ImportError> {
        let mut of = Cursor::new(data, dat.big);
        let text = String::from_utf8_lossy(data);
        let found = match id {
            BUFFER if self.sections.is_some() => self.buffer(&mut of),
            BUFFER => {
                let (at, name) = (of.number(8).unwrap_or(0), of.text().unwrap_or_default());
                let cpus = self.origin.cpus.unwrap_or(0);
                let table = dat.bytes(at, 10 + 16 * u64::from(cpus))?;
                let name = String::from_utf8_lossy(name).into_owned();
                self.table(&mut Cursor::new(&table[10..], dat.big), cpus, name)
            }
            CLOCK => {
                let inside = text.split_once('[').and_then(|(_, after)| after.split_once(']'));
                inside.map(|(clock, _)| self.clock = clock.to_string())
            }
            UNAME => {
                self.origin.release = text.split(' ').nth(2).map(str::to_string);
                Some(())
            }
            CPU_COUNT => of.number(4).map(|cpus| self.origin.cpus = Some(cpus as u32)),
            TSC2NSEC => of.number(4).zip(of.number(4)).map(|(multiplier, shift)| {
                self.tsc = Some((multiplier, (shift as u32).min(63)));
            }),
            GUEST => {
                self.guests += 1;
                Some(())
            }
            TIME_SHIFT => {
                return wrong(
                    "it is a guest's part of a recording, whose times its host shifts: import the host's file, or record in the guest alone"
                        .to_string(),
                );
            }
            BUFFER_TEXT => {
                return wrong(
                    "it holds the text of a latency tracer and no events: record with trace-cmd record -e sched"
                        .to_string(),
                );
            }
            HEADER_INFO..=EVENT_FORMATS => of.number(8).map(|at| {
                if let Some(sections) = &mut self.sections {
                    sections[(id - HEADER_INFO) as usize] = at;
                }
            }),
            _ => Some(()),
        };
        found.ok_or_else(|| {
            ImportError::Input(format!(
                "its option {id} of {} bytes makes no sense: the file is damaged or was cut off",
                data.len()
            ))
        })
    }

    /// Reads version 7's option of a buffer.
    fn buffer(&mut self, of: &mut Cursor) -> Option<()> {
        let section = Some(of.number(8)?);
        let mut text = || Some(String::from_utf8_lossy(of.text()?).into_owned());
        let mut buffer = Buffer { section, name: text()?, clock: text()?, ..Buffer::default() };
        of.number(4)?;
        for _ in 0..of.number(4)? {
            buffer.cpus.push((of.number(4)? as u32, of.number(8)?, of.number(8)?));
        }
        self.buffers.push(buffer);
        Some(())
    }

    /// Takes the events of a buffer in the order of time.
    fn events(
        &mut self,
        dat: &mut Dat,
        buffer: &Buffer,
        weaver: &mut Weaver,
    ) -> Result<(), ImportError> {
        let clock = if buffer.clock.is_empty() { &self.clock } else { &buffer.clock };
        let tsc = match (&clock[..], self.tsc) {
            ("" | "local" | "global" | "perf" | "mono" | "mono_raw" | "boot" | "tai", _) => None,
            ("x86-tsc" | "tsc2nsec", Some(tsc)) => Some(tsc),
            _ => {
                return wrong(format!(
                    "its clock is \"{}\", which does not tell nanoseconds: record with trace-cmd record -C local, or -C tsc2nsec",
                    clock.escape_debug()
                ));
            }
        };
        let place = self.page.place("data").filter(|(data, end)| data < end && *end <= MOST_PAGE);
        let place = place.ok_or_else(|| damaged(0, RecordError::Head))?;
        let compressed = match buffer.section {
            Some(section) => dat.section_head(section)?.0,
            None => false,
        };
        let mut cpus = Vec::new();
        for &(cpu, at, size) in buffer.cpus.iter().filter(|(.., size)| *size > 0) {
            let (mut at, mut left) = (at, size);
            if compressed {
                let count = dat.bytes(at, 4)?;
                left = Cursor::new(&count, dat.big).number(4).unwrap_or(0);
                at += 4;
            }
            cpus.push((cpu, Pages { at, left, compressed, place, ..Pages::default() }));
        }
        // The next event of each CPU, and the CPUs by its time.
        let mut waiting: Vec<Option<Event>> = vec![None; cpus.len()];
        let mut order = BinaryHeap::new();
        let mut turn = (0..cpus.len()).collect::<Vec<_>>();
        loop {
            for nth in turn.drain(..) {
                let (cpu, pages) = &mut cpus[nth];
                while let Some(raw) = pages.next(dat, &self.page)? {
                    let at_ns = match tsc {
                        Some((multiplier, shift)) => {
                            ((u128::from(pages.time) * u128::from(multiplier)) >> shift) as u64
                        }
                        None => pages.time,
                    };
                    let event = self.formats.event(&pages.plain[raw], at_ns, *cpu, None);
                    if let Some(event) = event.map_err(|error| damaged(pages.from, error))? {
                        waiting[nth] = Some(event);
                        order.push(Reverse((at_ns, nth)));
                        break;
                    }
                }
            }
            let Some(Reverse((_, nth))) = order.pop() else {
                break;
            };
            if let Some(event) = waiting[nth].take() {
                weaver.event(&event)?;
            }
            turn.push(nth);
        }
        let lost = cpus.iter().map(|(_, pages)| pages.lost);
        self.origin.lost = lost.fold(0, u64::saturating_add);
        Ok(())
    }
}

/// Reads options; the last one has the number 0 and so many bytes.
fn options<'a>(cursor: &mut Cursor<'a>, last: usize) -> Option<Vec<(u64, &'a [u8])>> {
    let mut found = Vec::new();
    loop {
        let id = cursor.number(2)?;
        if id == 0 && last == 0 {
            return Some(found);
        }
        let size = cursor.number(4)?;
        found.push((id, cursor.take(size as usize)?));
        if id == 0 {
            return Some(found);
        }
    }
}

/// The pages of a CPU's ring buffer.
#[derive(Default)]
struct Pages {
    /// The place in the file of what follows, and how many bytes or compressed chunks that is.
    at: u64,
    left: u64,
    compressed: bool,
    /// Where a page's events begin and end.
    place: (usize, usize),
    /// Whole pages, and their place in the file.
    plain: Vec<u8>,
    from: u64,
    /// The places in them of the next page, the next event, and the end of this page's events.
    page: usize,
    next: usize,
    stop: usize,
    time: u64,
    lost: u64,
}

impl Pages {
    /// Goes to the next page; returns false where there is none.
    fn turn(&mut self, dat: &mut Dat, layout: &Format) -> Result<bool, ImportError> {
        let (data, size) = self.place;
        if self.page == self.plain.len() {
            if self.left == 0 {
                return Ok(false);
            }
            self.from = self.at;
            if self.compressed {
                (self.plain, self.at) = dat.unpacked(self.at)?;
                self.left -= 1;
            } else {
                self.plain = dat.bytes(self.at, size as u64)?;
                self.at += size as u64;
                self.left = self.left.saturating_sub(size as u64);
            }
            self.page = 0;
        }
        let bad = || damaged(self.from, RecordError::Page);
        let page = self.plain.get(self.page..self.page + size).ok_or_else(bad)?;
        let number = |name| layout.number(page, dat.big, name).map(|n| n as u64);
        let (time, commit) = number("timestamp").zip(number("commit")).ok_or_else(bad)?;
        let events = data + (commit & ((1 << 27) - 1)) as usize;
        if events > size {
            return Err(bad());
        }
        let lost = match commit >> 30 & 3 {
            0 | 1 => 0,
            2 => 1,
            // The count is a long number like the commit.
            _ => {
                let (begin, end) = layout.place("commit").ok_or_else(bad)?;
                Cursor::new(&page[events..], dat.big).number(end - begin).ok_or_else(bad)?
            }
        };
        self.lost = self.lost.saturating_add(lost);
        (self.next, self.stop) = (self.page + data, self.page + events);
        (self.time, self.page) = (time, self.page + size);
        Ok(true)
    }

    /// Goes to the next event, and returns the place of its own bytes; `time` is its time.
    fn next(
        &mut self,
        dat: &mut Dat,
        layout: &Format,
    ) -> Result<Option<Range<usize>>, ImportError> {
        loop {
            while self.next == self.stop {
                if !self.turn(dat, layout)? {
                    return Ok(None);
                }
            }
            let raw = self.step(dat.big).ok_or_else(|| damaged(self.from, RecordError::Page))?;
            if !raw.is_empty() {
                return Ok(Some(raw));
            }
        }
    }

    /// Reads what comes next in the page: an event, or time or padding, for which the place is empty.
    fn step(&mut self, big: bool) -> Option<Range<usize>> {
        const PADDING: u64 = 29;
        const TIME_EXTEND: u64 = 30;
        const TIME_STAMP: u64 = 31;
        const STAMP: u64 = (1 << 59) - 1;
        let begin = self.next;
        let mut cursor = Cursor::new(self.plain.get(begin..self.stop)?, big);
        let head = cursor.number(4)?;
        let (kind, delta) =
            if big { (head >> 27, head & ((1 << 27) - 1)) } else { (head & 31, head >> 5) };
        let (skip, size) = match kind {
            PADDING if delta == 0 => (self.stop - begin, 0),
            PADDING => (4 + cursor.number(4)? as usize, 0),
            TIME_EXTEND | TIME_STAMP => (8, 0),
            0 => (8, (cursor.number(4)? as usize).checked_sub(4)?.next_multiple_of(4)),
            words => (4, 4 * words as usize),
        };
        self.time = match kind {
            TIME_EXTEND => self.time.wrapping_add(cursor.number(4)? << 27 | delta),
            // The stamp lacks the highest bits.
            TIME_STAMP => {
                let stamp = self.time & !STAMP | (cursor.number(4)? << 27 | delta) & STAMP;
                if stamp < self.time { stamp.wrapping_add(STAMP + 1) } else { stamp }
            }
            _ => self.time.wrapping_add(delta),
        };
        self.next = begin.checked_add(skip)?.checked_add(size)?;
        (self.next <= self.stop).then_some(begin + skip..self.next)
    }
}
