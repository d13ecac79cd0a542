// SPDX-License-Identifier: GPL-2.0-or-later
//! Recorded workloads: files that `perch import` wrote, which a run does once and times.
//!
//! The workload is a closed loop. A task that another task woke in the recording waits for that
//! task here, however long that takes; a task that a timer or a device woke sleeps for as long as
//! it did in the recording. No recording says how many cache lines a message has or how many a task uses;
//! docs/import.md says what perch assumes.

mod check;
mod error;
mod read;
mod script;

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;

use perch_engine::Dist;

use crate::keys::Keys;
use crate::workload::Workload;
use crate::{Measure, Op, Space, SpecError, TaskSpec};

pub use error::{LineError, ReadError, ScriptError, Unending};
pub use read::{LONGEST_NS, MOST_STEPS, MOST_TASKS};
pub use script::{Script, ScriptTask, Step};

/// Name of such workloads: `recorded:FILE`.
pub use crate::words::RECORDED as NAME;

/// Cache lines that a wakee has to fetch from its waker, an assumption: as many as in `pipe`.
const LINES: u32 = 16;
/// Cache lines of its own that a task touches every time it runs, an assumption: as many as in
/// `pipe`.
const FOOTPRINT: u32 = 32;
/// Percent by which each stretch of work takes longer or shorter than in the recording, by chance.
/// Without this spread all repetitions would be the same run.
const SPREAD: u64 = 5;

/// Builds the workload that a file of `perch import` describes.
pub(crate) fn replay(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let path = std::mem::take(&mut keys.file);
    let lines = keys.number("lines", LINES, 0, 1_000_000)?;
    let footprint = keys.number("footprint", FOOTPRINT, 0, 1_000_000)?;
    let spread = keys.number("spread", SPREAD, 0, 100)?;
    let sync = keys.is_on("sync")?;
    let allowed = keys.cpus()?;
    if path.is_empty() {
        return Err(SpecError::NoRecordedFile);
    }
    let file = perch_file::open(Path::new(&path))?;
    let script = Script::read(&mut BufReader::new(file))
        .map_err(|why| SpecError::RecordedFile { path, why })?;
    let mut pairs = BTreeMap::new();
    let mut processes = BTreeMap::new();
    let mut tasks = Vec::with_capacity(script.tasks.len());
    for (number, task) in script.tasks.iter().enumerate() {
        let mut program = Vec::with_capacity(task.steps.len() + 3);
        // The clock runs from whoever gets a CPU first: of tasks that start together on one CPU,
        // that need not be the first of the recording.
        if task.start.is_some() {
            program.push(Op::StartClock);
        }
        let mut channel = |from: u32, to: u32| {
            let next = pairs.len() as u32;
            *pairs.entry((from, to)).or_insert(next)
        };
        for step in &task.steps {
            match *step {
                Step::Compute(0) => {}
                Step::Compute(ns) => program.push(Op::Run(Dist::around(ns, spread))),
                Step::Wake(other) => {
                    let channel = channel(number as u32, other);
                    program.extend([Op::Send { channel, lines, sync }, Op::Count]);
                }
                Step::Await(other) => {
                    program.push(Op::Receive { channel: channel(other, number as u32) });
                }
                Step::Sleep(ns) => program.push(Op::Sleep(Dist::Const(ns))),
                Step::Next(ns) => program.push(Op::Next(ns)),
                Step::Fork(child) => program.push(Op::Fork(child)),
                Step::Exec => program.push(Op::Exec),
            }
        }
        program.extend([Op::StopClockAfter(script.tasks.len() as u32), Op::Exit]);
        let next = processes.len() as u32;
        tasks.push(TaskSpec {
            nice: task.nice,
            class: task.class,
            space: Some(*processes.entry(task.process).or_insert(next)),
            ..TaskSpec::new(program, &allowed, footprint, task.start.map(Dist::Const))
        });
    }
    Ok(Workload {
        channels: pairs.len(),
        ..Workload::of(tasks, vec![Space::default(); processes.len()], Measure::time())
    })
}
