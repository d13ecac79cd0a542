// SPDX-License-Identifier: GPL-2.0-or-later
//! Data of a task's own that it reads and writes where its program says so, beside the working set
//! that it uses whenever it runs.

use super::system::System;
use super::thread::Thread;
use crate::id::{CpuId, Id, IdVec, TaskId};

/// The place of a task's data.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The CPU whose caches hold it.
    cpu: CpuId,
    /// Lines that tasks had brought into these caches when its task had gone over it.
    fill: u64,
}

#[derive(Debug, Default)]
pub struct TaskData {
    places: IdVec<TaskId, Option<Place>>,
}

impl TaskData {
    /// The running task goes over `lines` of its own data: it pays for those that it does not find
    /// in the CPU's caches.
    pub fn touch<S: System>(
        &mut self,
        system: &mut S,
        cpu: usize,
        thread: &mut Thread,
        lines: u32,
    ) {
        let place = self.places.or_default(thread.task);
        let fill = system.fill(cpu);
        let warm = place.map(|at| at.cpu.index());
        let others = place.map_or(0, |at| fill - at.fill.min(fill));
        let cost = system.costs().refill_ns(lines.into(), warm, cpu, others);
        system.add_fill(cpu, lines);
        *place = Some(Place { cpu: CpuId::of(cpu), fill: system.fill(cpu) });
        system.charge(thread.task, cost);
        thread.done();
    }
}
