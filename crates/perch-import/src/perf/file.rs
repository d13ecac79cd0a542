// SPDX-License-Identifier: GPL-2.0-or-later
//! The file around perf's records: the header, the events, and the facts about the machine that
//! perf stored.

use std::collections::BTreeMap;
use std::io::{BufRead, Read, Seek, SeekFrom};

use byteorder::{BigEndian, ByteOrder, LittleEndian};
use linux_perf_event_reader::{
    AttrFlags, Endianness, PerfEventAttr, RawData, RecordParseInfo, RecordType, SampleFormat,
    get_record_id, get_record_identifier,
};

use super::error::RecordError;
use super::{Attr, understood};
use crate::ImportError;

const HEADER_SIZE: usize = 104;
/// Beyond these sizes a file is believed to be damaged: the number of events in a file, and the
/// bytes of a section.
const MOST_ATTRS: u64 = 4096;
const MOST_BYTES: u64 = 1 << 28;

/// Numbers of the sections after the records.
const TRACING_DATA: usize = 1;
const OSRELEASE: usize = 4;
const NRCPUS: usize = 7;

/// A part of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Section {
    pub offset: u64,
    pub size: u64,
}

/// All parts of the file but the records.
#[derive(Debug)]
pub struct Header {
    pub endian: Endianness,
    /// The place of the records; in a file that was written into a pipe they go on to its end.
    pub data: Section,
    /// The file was written into a pipe: what it says about itself comes as records.
    pub piped: bool,
    /// The recorded kernel's release.
    pub release: Option<String>,
    /// The number of the recorded machine's CPUs.
    pub cpus: Option<u32>,
    attrs: Vec<Attr>,
    /// The index of the event to which a record belongs, by perf's number.
    ids: BTreeMap<u64, usize>,
    tracing_data: Vec<u8>,
}

fn damaged(what: &str) -> ImportError {
    ImportError::Input(format!("{what}: the file is damaged or was cut off"))
}

/// Reads a part of the file whose place was read from the same file.
fn bytes<R: BufRead + Seek>(
    file: &mut R,
    section: Section,
    what: &str,
) -> Result<Vec<u8>, ImportError> {
    if section.size > MOST_BYTES {
        return Err(damaged(&format!("{what} has {} bytes", section.size)));
    }
    file.seek(SeekFrom::Start(section.offset))?;
    let mut bytes = Vec::new();
    file.by_ref().take(section.size).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == section.size {
        Ok(bytes)
    } else {
        Err(damaged(&format!("{what} goes beyond the end")))
    }
}

impl Header {
    pub fn read<R: BufRead + Seek>(file: &mut R) -> Result<Header, ImportError> {
        let mut head = [0; HEADER_SIZE];
        file.read_exact(&mut head[..16]).map_err(|_| damaged("there is no header"))?;
        match &head[..8] {
            b"PERFILE2" => Header::read_as::<LittleEndian, R>(file, head, Endianness::LittleEndian),
            _ => Header::read_as::<BigEndian, R>(file, head, Endianness::BigEndian),
        }
    }

    fn read_as<T: ByteOrder, R: BufRead + Seek>(
        file: &mut R,
        mut head: [u8; HEADER_SIZE],
        endian: Endianness,
    ) -> Result<Header, ImportError> {
        let mut header = Header {
            endian,
            data: Section { offset: 16, size: u64::MAX - 16 },
            piped: T::read_u64(&head[8..]) == 16,
            release: None,
            cpus: None,
            attrs: Vec::new(),
            ids: BTreeMap::new(),
            tracing_data: Vec::new(),
        };
        if header.piped {
            return Ok(header);
        }
        file.read_exact(&mut head[16..]).map_err(|_| damaged("the header is cut off"))?;
        let section = |at: usize| Section {
            offset: T::read_u64(&head[at..]),
            size: T::read_u64(&head[at + 8..]),
        };
        let attr_size = T::read_u64(&head[16..]);
        let (table, data) = (section(24), section(40));
        if data.size == 0 {
            return Err(ImportError::Input(
                "perf did not finish this file: let perf sched record end by itself or by Ctrl-C"
                    .to_string(),
            ));
        }
        header.data = data;
        header.events::<T, R>(file, table, attr_size)?;
        header.features::<T, R>(file, &head[72..])?;
        Ok(header)
    }

    /// Reads the events, each with the numbers by which records name it.
    fn events<T: ByteOrder, R: BufRead + Seek>(
        &mut self,
        file: &mut R,
        table: Section,
        attr_size: u64,
    ) -> Result<(), ImportError> {
        let sized = (80..=4096).contains(&attr_size) && table.size % attr_size == 0;
        if !sized || table.size / attr_size > MOST_ATTRS || table.size == 0 {
            return Err(damaged("its table of events makes no sense"));
        }
        let table = bytes(file, table, "its table of events")?;
        for entry in table.chunks(attr_size as usize) {
            let (attr, ids) = entry.split_at(entry.len() - 16);
            let ids = Section { offset: T::read_u64(ids), size: T::read_u64(&ids[8..]) };
            let ids = bytes(file, ids, "the numbers of an event")?;
            self.event::<T>(attr, &ids)?;
        }
        Ok(())
    }

    /// Takes an event: its attributes, and the numbers by which records name it.
    fn event<T: ByteOrder>(&mut self, attr: &[u8], ids: &[u8]) -> Result<(), ImportError> {
        // Older versions of perf write shorter attributes than they announce.
        let (attr, _) = PerfEventAttr::parse::<_, T>(attr)
            .map_err(|_| damaged("an event's attributes make no sense"))?;
        let strange = attr.sample_format.difference(understood());
        if !strange.is_empty() {
            return Err(ImportError::Input(format!(
                "its samples hold {strange:?}, which perch does not read: record with plain perf sched record, without -g and the like"
            )));
        }
        // perf sets this where it follows a command, and not where it records all CPUs.
        if attr.flags.contains(AttrFlags::ENABLE_ON_EXEC) {
            return Err(ImportError::Input(
                "it has the events of one command alone, without those who wake it and what its CPUs do meanwhile: record all CPUs, perf record -a or perf sched record"
                    .to_string(),
            ));
        }
        let info = RecordParseInfo::new(&attr, self.endian);
        for id in ids.chunks_exact(8) {
            self.ids.insert(T::read_u64(id), self.attrs.len());
        }
        self.attrs.push(Attr { info });
        Ok(())
    }

    /// Takes an event of a file that was written into a pipe.
    pub fn piped_event<T: ByteOrder>(&mut self, body: &[u8]) -> Result<(), ImportError> {
        let size = body.get(4..8).map_or(0, T::read_u32) as usize;
        match body.split_at_checked(size) {
            Some((attr, ids)) if size >= 64 && self.attrs.len() < MOST_ATTRS as usize => {
                self.event::<T>(attr, ids)
            }
            _ => Err(damaged("an event's attributes make no sense")),
        }
    }

    /// Reads the sections after the records; a set of bits tells which of them the file has.
    fn features<T: ByteOrder, R: BufRead + Seek>(
        &mut self,
        file: &mut R,
        bits: &[u8],
    ) -> Result<(), ImportError> {
        let after = self.data.offset.checked_add(self.data.size);
        let after = after.ok_or_else(|| damaged("its records go beyond any file"))?;
        let words: Vec<u64> = bits.chunks_exact(8).map(T::read_u64).collect();
        let mut place = after;
        for feature in 0..64 * words.len() {
            if words[feature / 64] >> (feature % 64) & 1 == 0 {
                continue;
            }
            let entry = Section { offset: place, size: 16 };
            place += 16;
            if ![TRACING_DATA, OSRELEASE, NRCPUS].contains(&feature) {
                continue;
            }
            let entry = bytes(file, entry, "the table of what follows the records")?;
            let section = Section { offset: T::read_u64(&entry), size: T::read_u64(&entry[8..]) };
            let bytes = bytes(file, section, "what follows the records")?;
            match feature {
                TRACING_DATA => self.tracing_data = bytes,
                feature => self.feature::<T>(feature as u64, &bytes),
            }
        }
        Ok(())
    }

    /// Takes a fact about the recorded machine.
    pub fn feature<T: ByteOrder>(&mut self, feature: u64, bytes: &[u8]) {
        if feature == NRCPUS as u64 {
            self.cpus = bytes.get(..4).map(T::read_u32);
        } else if feature == OSRELEASE as u64 {
            let text = bytes.get(4..).unwrap_or_default();
            let text = text.split(|&b| b == 0).next().unwrap_or_default();
            self.release = Some(String::from_utf8_lossy(text).into_owned());
        }
    }

    /// Takes the descriptions of the kernel's events.
    pub fn piped_tracing_data<R: Read + ?Sized>(
        &mut self,
        file: &mut R,
        size: u32,
    ) -> Result<(), ImportError> {
        // Records begin at multiples of eight bytes.
        let padded = u64::from(size).next_multiple_of(8);
        file.take(padded).read_to_end(&mut self.tracing_data)?;
        if self.tracing_data.len() as u64 != padded {
            return Err(damaged("the descriptions of its events go beyond the end"));
        }
        self.tracing_data.truncate(size as usize);
        Ok(())
    }

    /// Returns the descriptions of the kernel's events.
    pub fn tracing_data(&self) -> Result<&[u8], ImportError> {
        if self.tracing_data.is_empty() {
            Err(ImportError::Input(
                "it has no events of the kernel's tracepoints: record with perf sched record"
                    .to_string(),
            ))
        } else {
            Ok(&self.tracing_data)
        }
    }

    /// Returns the layout of a record.
    pub fn info<T: ByteOrder>(
        &self,
        kind: RecordType,
        body: &[u8],
    ) -> Result<RecordParseInfo, RecordError> {
        let first = &self.attrs.first().ok_or(RecordError::NoEvent(0))?.info;
        let all = |format| self.attrs.iter().all(|attr| attr.info.sample_format.contains(format));
        let id = if all(SampleFormat::IDENTIFIER) {
            get_record_identifier::<T>(
                kind,
                RawData::from(body),
                first.common_data_offset_from_end.is_some(),
            )
        } else {
            get_record_id::<T>(kind, RawData::from(body), &first.id_parse_info)
        };
        match (id, self.attrs.len()) {
            (_, 1) | (None, _) => Ok(*first),
            // perf makes up records about the state before the recording; they have no number.
            (Some(0), _) => Ok(*first),
            (Some(id), _) => match self.ids.get(&id) {
                Some(&attr) => Ok(self.attrs[attr].info),
                None => Err(RecordError::NoEvent(id)),
            },
        }
    }
}
