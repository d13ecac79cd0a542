// SPDX-License-Identifier: GPL-2.0-or-later
//! Writing a recording.

use std::io::Write;

use perch_policy::CpuMask;

use super::wakeups::Filling;
use super::{BLOCK, Decisions, Footer, Header, PREFIX, SIGNATURE, VERSION, kind};
use crate::decision::Decision;
use crate::moment::{Columns, CpuRow, GroupRow, Row, TaskRow, WakeUp};

/// A writer of a recording, block by block: the blocks that it wrote before something goes wrong
/// can be read.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    filling: Filling,
    wake_ups: u64,
    /// A block of decisions that is being written.
    decisions: Vec<u8>,
    nr_decisions: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a recording of a machine with so many CPUs and sets of CPUs that share something
    /// (`Topology::nr_shared`). This function fills in the header's columns and rows.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn new(
        mut out: W,
        mut header: Header,
        cpus: usize,
        groups: usize,
    ) -> std::io::Result<Writer<W>> {
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect();
        header.cpu = names(CpuRow::NAMES);
        header.group = names(GroupRow::NAMES);
        header.task = names(TaskRow::NAMES);
        header.rows = Some([cpus, groups]);
        out.write_all(SIGNATURE)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let mut writer = Writer {
            out,
            filling: Filling::new(cpus, groups),
            wake_ups: 0,
            decisions: Vec::new(),
            nr_decisions: 0,
        };
        writer.block(kind::HEADER, &serde_json::to_vec(&header)?)?;
        Ok(writer)
    }

    /// Adds a wake-up: waker and wakee, the CPUs that the wakee may use (`None` for all), the row
    /// of every CPU, and the rows of what CPUs share by the topology's numbers.
    ///
    /// # Errors
    /// Returns the errors of the operating system, above all that of a full disk.
    ///
    /// # Panics
    /// Panics when there are not as many CPUs or groups as at the beginning.
    pub fn add(
        &mut self,
        wake_up: &WakeUp,
        tasks: [&Row<TaskRow>; 2],
        affinity: Option<&CpuMask>,
        cpus: &[Row<CpuRow>],
        groups: &[Row<GroupRow>],
    ) -> std::io::Result<()> {
        self.filling.add(wake_up, tasks, affinity, cpus, groups);
        if self.filling.bytes.len() >= BLOCK {
            self.flush()?;
        }
        Ok(())
    }

    /// Adds a decision about a queue.
    ///
    /// # Errors
    /// Returns the errors of the operating system, above all that of a full disk.
    pub fn decide(&mut self, decision: &Decision) -> std::io::Result<()> {
        let bytes = std::mem::take(&mut self.decisions);
        self.decisions = postcard::to_extend(decision, bytes).map_err(std::io::Error::other)?;
        self.nr_decisions += 1;
        if self.decisions.len() >= BLOCK { self.flush_decisions() } else { Ok(()) }
    }

    fn flush_decisions(&mut self) -> std::io::Result<()> {
        let mut bytes = std::mem::take(&mut self.decisions);
        if !bytes.is_empty() {
            self.block(kind::DECISIONS, &bytes)?;
            bytes.clear();
        }
        self.decisions = bytes;
        Ok(())
    }

    /// Writes out what there is so far; a recorder calls this now and then while few wake-ups come.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn flush(&mut self) -> std::io::Result<()> {
        if self.filling.wake_ups > 0 {
            let mut bytes = std::mem::take(&mut self.filling.bytes);
            self.block(kind::WAKE_UPS, &bytes)?;
            self.wake_ups += self.filling.wake_ups;
            bytes.clear();
            self.filling.bytes = bytes;
            self.filling.clear();
        }
        self.flush_decisions()?;
        self.out.flush()
    }

    /// Ends the recording; the number of wake-ups in the footer is this writer's. Returns the
    /// footer as it was written, and the output.
    ///
    /// # Errors
    /// Returns the errors of the operating system.
    pub fn finish(mut self, footer: Footer) -> std::io::Result<(Footer, W)> {
        self.flush()?;
        let footer = Footer {
            wake_ups: self.wake_ups,
            decisions: footer
                .decisions
                .map(|counts| Decisions { recorded: self.nr_decisions, ..counts }),
            ..footer
        };
        self.block(kind::FOOTER, &serde_json::to_vec(&footer)?)?;
        self.out.flush()?;
        Ok((footer, self.out))
    }

    /// Writes a block at once, so that a block that does not fit leaves only its beginning in the
    /// file.
    fn block(&mut self, kind: u8, raw: &[u8]) -> std::io::Result<()> {
        let packed = lz4_flex::block::compress(raw);
        let stored = if packed.len() < raw.len() { &packed } else { raw };
        let mut block = Vec::with_capacity(PREFIX + stored.len());
        block.push(kind);
        block.extend((stored.len() as u32).to_le_bytes());
        block.extend((raw.len() as u32).to_le_bytes());
        let mut sum = crc32fast::Hasher::new();
        sum.update(&block);
        sum.update(stored);
        block.extend(sum.finalize().to_le_bytes());
        block.extend(stored);
        self.out.write_all(&block)
    }
}
