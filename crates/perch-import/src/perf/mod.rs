// SPDX-License-Identifier: GPL-2.0-or-later
//! A reader of perf.data, the file of `perf sched record`. The crate linux-perf-event-reader reads
//! the records; this module reads the file around them. (The same author's linux-perf-data 0.13
//! reads that file, too: MIT or Apache-2.0, and it brings prost, and zstd in C.) perf's own `perf script` cannot
//! serve as the reader: it does not print whether an event was written in an interrupt.

mod error;
mod file;
mod sort;
mod zstd;

use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use byteorder::{BigEndian, ByteOrder, LittleEndian};
use linux_perf_event_reader::{
    Endianness, EventRecord, RawData, RawEventRecord, RecordParseInfo, RecordType, SampleFormat,
};

use crate::event::{Context, Event, Kind};
use crate::format::Formats;
use crate::progress::{Tell, Told};
use crate::weave::Weaver;
use crate::{ImportError, Origin};
pub use error::RecordError;
use file::Header;
pub use sort::Sorter;
use zstd::Zstd;

/// The records that perf itself writes between the kernel's.
mod own {
    pub const FIRST: u32 = 64;
    pub const ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE: u32 = 71;
    pub const FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// The largest number of events that wait for their turn: some 100 bytes each.
pub const MOST_WAITING: usize = 1 << 24;

/// Reads a perf.data file.
pub fn read(path: &Path, weaver: &mut Weaver, tell: Tell) -> Result<Origin, ImportError> {
    let file = perch_file::open(path)?;
    let bytes = file.metadata()?.len();
    let mut file = BufReader::with_capacity(1 << 20, Told::new(file, bytes, tell));
    let header = Header::read(&mut file)?;
    let mut formats = Formats::default();
    if !header.piped {
        formats = Formats::read(header.tracing_data()?)?;
        file.seek(SeekFrom::Start(header.data.offset))?;
    }
    let mut reader = Reader {
        header,
        formats,
        sorter: Sorter::default(),
        zstd: None,
        plain: Vec::new(),
        lost: 0,
        late: 0,
    };
    match reader.header.endian {
        Endianness::LittleEndian => reader.records::<LittleEndian>(&mut file, weaver)?,
        Endianness::BigEndian => reader.records::<BigEndian>(&mut file, weaver)?,
    }
    weaver.late(reader.late);
    reader.formats.leave_out(weaver);
    Ok(Origin {
        tool: "perf",
        release: reader.header.release,
        cpus: reader.header.cpus,
        lost: reader.lost,
    })
}

/// Refuses a release that is known to be one before 4.14.
pub fn is_too_old(release: Option<&str>) -> Result<(), ImportError> {
    let release = release.unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < (4, 14) => Err(ImportError::Input(format!(
            "it was recorded on Linux {release}, whose sched_switch has the state in another form: expected 4.14 or later"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a file that lacks the events without which no script can be made.
fn needs(formats: &Formats) -> Result<(), ImportError> {
    for name in ["sched_switch", "sched_waking or sched_wakeup"] {
        if !name.split(" or ").any(|name| formats.has(name)) {
            return Err(ImportError::Input(format!(
                "it has no {name} events: record with perf sched record"
            )));
        }
    }
    Ok(())
}

/// The kind of a record, its flags, and its size with this head.
fn head_of<T: ByteOrder>(head: &[u8; 8]) -> (u32, u16, usize) {
    let size = usize::from(T::read_u16(&head[6..]));
    (T::read_u32(head), T::read_u16(&head[4..]), size)
}

struct Reader {
    header: Header,
    formats: Formats,
    sorter: Sorter<Event>,
    /// The decoder of compressed records, and what they hold that is no whole record yet.
    zstd: Option<Zstd>,
    plain: Vec<u8>,
    lost: u64,
    late: u64,
}

impl Reader {
    fn records<T: ByteOrder>(
        &mut self,
        file: &mut dyn Read,
        weaver: &mut Weaver,
    ) -> Result<(), ImportError> {
        let data = self.header.data;
        let mut at = data.offset;
        let end = data.offset.saturating_add(data.size);
        let mut body = Vec::new();
        if !self.header.piped {
            self.fits()?;
        }
        while at < end {
            let begin = at;
            let damaged = |source: RecordError| ImportError::Record { at: begin, source };
            let mut head = [0; 8];
            // A file that was written into a pipe ends after any record.
            if self.header.piped && file.read(&mut head[..1])? == 0 {
                break;
            }
            let read = usize::from(self.header.piped);
            file.read_exact(&mut head[read..]).map_err(|_| damaged(RecordError::CutOff))?;
            let (kind, misc, size) = head_of::<T>(&head);
            let size = size.checked_sub(8).ok_or_else(|| damaged(RecordError::Short))?;
            body.resize(size, 0);
            file.read_exact(&mut body).map_err(|_| damaged(RecordError::CutOff))?;
            at += 8 + size as u64;
            match kind {
                // The decoder keeps records back, beyond the end of their round.
                own::FINISHED_ROUND if self.zstd.is_none() => {
                    let mut result = Ok(());
                    self.sorter.round(|event| {
                        if result.is_ok() {
                            result = weaver.event(&event);
                        }
                    });
                    result?;
                }
                own::COMPRESSED => self.compressed::<T>(&body).map_err(damaged)?,
                own::COMPRESSED2 => {
                    let size = body.get(..8).map_or(0, T::read_u64) as usize;
                    let bytes = body[8.min(body.len())..].get(..size);
                    let bytes = bytes.ok_or_else(|| damaged(RecordError::CutOff))?;
                    self.compressed::<T>(bytes).map_err(damaged)?;
                }
                own::AUXTRACE => {
                    return Err(ImportError::Input(
                        "it has traces of the processor's own (AUX): record with perf sched record"
                            .to_string(),
                    ));
                }
                own::ATTR => self.header.piped_event::<T>(&body)?,
                own::TRACING_DATA => {
                    let size = body.get(..4).map_or(0, T::read_u32);
                    self.header.piped_tracing_data(file, size)?;
                    at += u64::from(size).next_multiple_of(8);
                    self.formats = Formats::read(self.header.tracing_data()?)?;
                }
                own::FEATURE => {
                    let feature = body.get(..8).map_or(0, T::read_u64);
                    let bytes = body.get(8..).unwrap_or_default();
                    self.header.feature::<T>(feature, bytes);
                }
                kind if kind >= own::FIRST => {}
                kind => self.kernels::<T>(RecordType(kind), misc, &body).map_err(damaged)?,
            }
            if self.sorter.len() > MOST_WAITING {
                return Err(ImportError::Input(format!(
                    "more than {MOST_WAITING} events without an end of perf's round: record for a shorter time"
                )));
            }
        }
        let damaged = |source: RecordError| ImportError::Record { at, source };
        if let Some(mut zstd) = self.zstd.take() {
            zstd.finish(&mut |bytes| self.plain::<T>(bytes)).map_err(damaged)?;
            if !self.plain.is_empty() {
                return Err(damaged(RecordError::CutOff));
            }
        }
        self.fits()?;
        let mut result = Ok(());
        self.sorter.finish(|event| {
            if result.is_ok() {
                result = weaver.event(&event);
            }
        });
        result
    }

    /// Refuses a file that lacks events, or whose kernel wrote them in another form.
    fn fits(&self) -> Result<(), ImportError> {
        self.header.tracing_data()?;
        needs(&self.formats)?;
        is_too_old(self.header.release.as_deref())
    }

    /// Reads a record of compressed ones.
    fn compressed<T: ByteOrder>(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let mut zstd = self.zstd.take().unwrap_or_default();
        let result = zstd.feed(bytes, &mut |bytes| self.plain::<T>(bytes));
        self.zstd = Some(zstd);
        result
    }

    /// Reads the records that these bytes complete, which were compressed.
    fn plain<T: ByteOrder>(&mut self, bytes: &[u8]) -> Result<(), RecordError> {
        let mut plain = std::mem::take(&mut self.plain);
        plain.extend_from_slice(bytes);
        let mut rest = &plain[..];
        while let Some(head) = rest.first_chunk() {
            let (kind, misc, size) = head_of::<T>(head);
            let Some((record, after)) = rest.split_at_checked(size) else {
                break;
            };
            let body = record.get(8..).ok_or(RecordError::Short)?;
            if kind < own::FIRST {
                self.kernels::<T>(RecordType(kind), misc, body)?;
            }
            rest = after;
        }
        self.plain = rest.to_vec();
        Ok(())
    }

    /// Reads one of the kernel's records.
    fn kernels<T: ByteOrder>(
        &mut self,
        kind: RecordType,
        misc: u16,
        body: &[u8],
    ) -> Result<(), RecordError> {
        if kind == RecordType::LOST_SAMPLES {
            self.lost += body.get(..8).map_or(0, T::read_u64);
            return Ok(());
        }
        if ![RecordType::SAMPLE, RecordType::LOST, RecordType::COMM].contains(&kind) {
            return Ok(());
        }
        let info = self.header.info::<T>(kind, body)?;
        let record = RawEventRecord::new(kind, misc, RawData::from(body), info);
        let common = record.common_data().map_err(RecordError::Unread)?;
        let event = match record.parse().map_err(RecordError::Unread)? {
            EventRecord::Lost(lost) => {
                self.lost += lost.count;
                return Ok(());
            }
            EventRecord::Comm(comm) if comm.is_execve => {
                let Some((at_ns, cpu)) = common.timestamp.zip(common.cpu) else {
                    return Ok(());
                };
                Event {
                    at_ns,
                    cpu,
                    pid: comm.tid,
                    process: Some(comm.pid),
                    context: Context::Task,
                    kind: Kind::Exec,
                }
            }
            EventRecord::Sample(sample) => {
                let Some(raw) = sample.raw else {
                    return Ok(());
                };
                let times = sample.timestamp.zip(sample.cpu);
                let (at_ns, cpu) = times.ok_or(RecordError::NoTime)?;
                let raw = raw.as_slice();
                let Some(event) = self.formats.event(&raw, at_ns, cpu, sample.pid)? else {
                    return Ok(());
                };
                event
            }
            _ => return Ok(()),
        };
        self.late += u64::from(self.sorter.push(event.at_ns, event));
        Ok(())
    }
}

/// Returns the fields of samples that this module understands: all of these stand before the
/// tracepoint's own bytes, and their size does not depend on the record.
fn understood() -> SampleFormat {
    SampleFormat::IDENTIFIER
        | SampleFormat::IP
        | SampleFormat::TID
        | SampleFormat::TIME
        | SampleFormat::ADDR
        | SampleFormat::ID
        | SampleFormat::STREAM_ID
        | SampleFormat::CPU
        | SampleFormat::PERIOD
        | SampleFormat::RAW
}

/// The layout of the records of one of perf's events.
#[derive(Clone, Copy, Debug)]
struct Attr {
    info: RecordParseInfo,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_known_by_their_release() {
        for (release, old) in [
            ("4.13.0-rc1", true),
            ("3.10.0-957.el7", true),
            ("4.14-rc1", false),
            ("7.2.12+deb14", false),
            ("next", false),
        ] {
            assert_eq!(is_too_old(Some(release)).is_err(), old, "{release}");
        }
    }
}
