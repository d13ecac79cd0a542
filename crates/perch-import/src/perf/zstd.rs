// SPDX-License-Identifier: GPL-2.0-or-later
//! What perf -z compressed: one zstd frame, which perf cuts into records wherever a buffer is full,
//! and never ends.

use ruzstd::decoding::FrameDecoder;

use super::error::RecordError;

/// A block that holds nothing and ends its frame.
const END: [u8; 3] = [1, 0, 0];
const CHUNK: usize = 1 << 16;

pub struct Zstd {
    decoder: FrameDecoder,
    begun: bool,
    /// Bytes that are no whole block yet.
    pending: Vec<u8>,
    chunk: Vec<u8>,
}

impl Default for Zstd {
    fn default() -> Zstd {
        Zstd {
            decoder: FrameDecoder::new(),
            begun: false,
            pending: Vec::new(),
            chunk: vec![0; CHUNK],
        }
    }
}

fn wrong(why: impl std::fmt::Display) -> RecordError {
    RecordError::Packed(why.to_string())
}

impl Zstd {
    /// Calls `each` with what a record's bytes complete, a block at a time: a block is 128 KiB at
    /// most. The decoder keeps back what later blocks may refer to.
    pub fn feed<E: From<RecordError>>(
        &mut self,
        bytes: &[u8],
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.pending.extend_from_slice(bytes);
        let mut pending = std::mem::take(&mut self.pending);
        let mut rest = &pending[..];
        if !self.begun {
            self.decoder.init(&mut rest).map_err(wrong)?;
            self.begun = true;
        }
        while let [low, middle, high, ..] = *rest {
            let head = u32::from_le_bytes([low, middle, high, 0]);
            // A block of one repeated byte has that byte alone.
            let size = match head >> 1 & 3 {
                1 => 1,
                _ => head as usize >> 3,
            };
            let Some((block, after)) = rest.split_at_checked(3 + size) else {
                break;
            };
            self.block(block, each)?;
            rest = after;
        }
        let done = pending.len() - rest.len();
        pending.drain(..done);
        self.pending = pending;
        Ok(())
    }

    /// Calls `each` with what the decoder has kept back.
    pub fn finish<E: From<RecordError>>(
        &mut self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.begun && !self.decoder.is_finished() { self.block(&END, each) } else { Ok(()) }
    }

    fn block<E: From<RecordError>>(
        &mut self,
        mut block: &[u8],
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        loop {
            let decoded = self.decoder.decode_from_to(block, &mut self.chunk);
            let (read, written) = decoded.map_err(wrong)?;
            block = block.get(read..).unwrap_or_default();
            match written {
                0 => return Ok(()),
                written => each(&self.chunk[..written])?,
            }
        }
    }
}
