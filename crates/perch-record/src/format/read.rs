// SPDX-License-Identifier: GPL-2.0-or-later
//! Reading a recording, a block at a time.

use std::io::{ErrorKind, Read};

use super::bytes::Bytes;
use super::error::Damage;
use super::wakeups::Cursor;
use super::{Footer, FormatError, Header, MOST, PREFIX, SIGNATURE, VERSION, kind};
use crate::decision::Decision;
use crate::moment::{Columns, CpuRow, GroupRow, TaskRow};

/// The places of the file's columns in this version's rows.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub cpu: Vec<Option<u8>>,
    pub group: Vec<Option<u8>>,
    pub task: Vec<Option<u8>>,
}

/// A reader of a recording from its beginning to its end, which takes the memory of one block.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    /// The offset at which the next block begins.
    at: u64,
    header: Header,
    footer: Option<Footer>,
    cut_off: Option<u64>,
    known: std::sync::Arc<Known>,
}

/// The wake-ups, or the decisions about queues, between two points of a recording, which can be read
/// without the others.
#[derive(Debug)]
pub struct Block {
    /// The offset of the block in the file.
    pub at: u64,
    kind: u8,
    raw: Vec<u8>,
    known: std::sync::Arc<Known>,
}

impl Block {
    /// Returns a cursor at the block's first wake-up; a block of decisions has none.
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor {
            bytes: Bytes(match self.kind {
                kind::WAKE_UPS => &self.raw,
                _ => &[],
            }),
            known: &self.known,
        }
    }

    /// Returns the block's decisions about queues, and whether they make sense; a block of wake-ups
    /// has none.
    pub fn decisions(&self) -> impl Iterator<Item = Result<Decision, FormatError>> {
        let mut left: &[u8] = match self.kind {
            kind::DECISIONS => &self.raw,
            _ => &[],
        };
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let taken = postcard::take_from_bytes(left).map_err(|error| {
                left = &[];
                FormatError::Damaged { at: self.at, source: Damage::Decision(error) }
            });
            Some(taken.map(|(decision, rest)| {
                left = rest;
                decision
            }))
        })
    }
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// Returns an error when the file is not a recording, has another version, or is damaged before
    /// the first wake-up.
    pub fn new(mut input: R) -> Result<Reader<R>, FormatError> {
        let mut start = [0; 12];
        let got = fill(&mut input, &mut start)?;
        let (signature, version) = start.split_at(SIGNATURE.len());
        if got < SIGNATURE.len() && SIGNATURE.starts_with(&start[..got]) && got > 0 {
            return Err(FormatError::NoHeader { bytes: got as u64 });
        }
        if signature != SIGNATURE {
            let found = start[..got.min(SIGNATURE.len())].to_vec();
            return Err(FormatError::Foreign { found });
        }
        if got < start.len() {
            return Err(FormatError::NoHeader { bytes: got as u64 });
        }
        let found = u32::from_le_bytes([version[0], version[1], version[2], version[3]]);
        if found != VERSION {
            return Err(FormatError::Version { found, known: VERSION });
        }
        let mut reader = Reader {
            input,
            at: start.len() as u64,
            header: Header::default(),
            footer: None,
            cut_off: None,
            known: std::sync::Arc::default(),
        };
        match reader.block()? {
            Some((kind::HEADER, json)) => reader.begin(&json)?,
            Some(_) => {
                reader.at = start.len() as u64;
                return Err(reader.damaged(Damage::NoHeader));
            }
            None => {
                let bytes = reader.cut_off.unwrap_or(reader.at);
                return Err(FormatError::NoHeader { bytes });
            }
        }
        Ok(reader)
    }

    fn begin(&mut self, json: &[u8]) -> Result<(), FormatError> {
        let header: Header = serde_json::from_slice(json).map_err(FormatError::Header)?;
        let known = |names: &[String], mine: &[&str]| {
            let column = |name: &String| mine.iter().position(|m| m == name).map(|i| i as u8);
            match names.len() {
                0..=64 => Ok(names.iter().map(column).collect()),
                n => Err(FormatError::Columns(n)),
            }
        };
        self.known = std::sync::Arc::new(Known {
            cpu: known(&header.cpu, CpuRow::NAMES)?,
            group: known(&header.group, GroupRow::NAMES)?,
            task: known(&header.task, TaskRow::NAMES)?,
        });
        self.header = header;
        Ok(())
    }

    /// Returns the circumstances of the recording.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the counts at the recording's end; `None` before the reader reached the end, or when
    /// the file was cut off.
    pub fn footer(&self) -> Option<&Footer> {
        self.footer.as_ref()
    }

    /// Returns the offset at which the file ends, if it ends within a block or without a footer.
    pub fn cut_off(&self) -> Option<u64> {
        self.cut_off
    }

    /// Reads the next wake-ups or decisions; returns `None` at the end, see [`Reader::cut_off`].
    ///
    /// # Errors
    /// Returns an error when a block is damaged. The blocks before it are good.
    pub fn next_block(&mut self) -> Result<Option<Block>, FormatError> {
        loop {
            let at = self.at;
            match self.block()? {
                Some((kind @ (kind::WAKE_UPS | kind::DECISIONS), raw)) if self.footer.is_none() => {
                    let known = self.known.clone();
                    return Ok(Some(Block { at, kind, raw, known }));
                }
                Some((kind::FOOTER, json)) if self.footer.is_none() => {
                    let footer = serde_json::from_slice(&json);
                    self.footer = Some(footer.map_err(|e| {
                        self.at = at;
                        self.damaged(Damage::Footer(e))
                    })?);
                }
                Some((kind, _)) => {
                    self.at = at;
                    return Err(self.damaged(Damage::Kind(kind)));
                }
                None => {
                    if self.footer.is_none() && self.cut_off.is_none() {
                        self.cut_off = Some(self.at);
                    }
                    return Ok(None);
                }
            }
        }
    }

    /// Returns the error that the block which begins at `self.at` differs from the one that was
    /// written.
    fn damaged(&self, source: Damage) -> FormatError {
        let at = self.at;
        FormatError::Damaged { at, source }
    }

    /// Reads a block's kind and bytes; returns `None` at the end of the file.
    fn block(&mut self) -> Result<Option<(u8, Vec<u8>)>, FormatError> {
        let mut prefix = [0; PREFIX];
        let got = fill(&mut self.input, &mut prefix)?;
        if got < PREFIX {
            if got > 0 {
                self.cut_off = Some(self.at + got as u64);
            }
            return Ok(None);
        }
        let word = |i: usize| {
            let bytes = [prefix[i], prefix[i + 1], prefix[i + 2], prefix[i + 3]];
            u32::from_le_bytes(bytes)
        };
        let (stored, raw, sum) = (word(1) as usize, word(5) as usize, word(9));
        if stored > raw || raw > MOST {
            return Err(self.damaged(Damage::Size { stored, raw }));
        }
        let mut bytes = vec![0; stored];
        let got = fill(&mut self.input, &mut bytes)?;
        if got < stored {
            self.cut_off = Some(self.at + (PREFIX + got) as u64);
            return Ok(None);
        }
        let mut actual = crc32fast::Hasher::new();
        actual.update(&prefix[..PREFIX - 4]);
        actual.update(&bytes);
        if actual.finalize() != sum {
            return Err(self.damaged(Damage::Checksum));
        }
        if stored < raw {
            let unpacked = lz4_flex::block::decompress(&bytes, raw);
            bytes = unpacked.map_err(|e| self.damaged(e.into()))?;
        }
        self.at += (PREFIX + stored) as u64;
        Ok(Some((prefix[0], bytes)))
    }
}

/// Reads until the buffer is full or the input ends; returns the number of bytes.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}
