// SPDX-License-Identifier: GPL-2.0-or-later
//! A cache line that tasks on several CPUs write.

use super::system::System;
use crate::id::{CpuId, Id};

/// A cache line that tasks on several CPUs write: it lies in the caches of the CPU that wrote it
/// last.
#[derive(Clone, Copy, Debug, Default)]
pub struct SharedLine {
    last_writer: Option<CpuId>,
}

impl SharedLine {
    /// A CPU writes the line. Returns the cost of bringing it there, nanoseconds.
    #[inline]
    pub fn write<S: System>(&mut self, system: &S, cpu: usize) -> u64 {
        match self.last_writer.replace(CpuId::of(cpu)) {
            Some(from) if from.index() != cpu => system.costs().transfer_ns(1, from.index(), cpu),
            _ => 0,
        }
    }
}
