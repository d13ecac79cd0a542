// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay --list` writes a line for each wake-up, as CSV.

use std::io::{ErrorKind, Write};
use std::path::Path;

use perch_file::Fresh;
use perch_policy::Policy;
use perch_record::{Cause, Decided, Replay};

use crate::output::Failure;
use crate::recording::Recording;

/// A wake-up in the list.
#[derive(serde::Serialize)]
struct Row {
    at_ns: u64,
    class: &'static str,
    flags: u32,
    this_cpu: u32,
    prev_cpu: u32,
    waker: u32,
    wakee: u32,
    chosen: u32,
    model: Option<usize>,
    reason: Option<&'static str>,
    target: Option<usize>,
    cause: Option<&'static str>,
    other: Option<usize>,
    other_reason: Option<&'static str>,
}

impl Row {
    fn of(decided: &Decided) -> Row {
        let w = decided.moment.wake_up();
        let (model, other) = match &decided.verdicts {
            Some((model, other)) => (Some(model), other.as_ref()),
            None => (None, None),
        };
        Row {
            at_ns: w.at_ns,
            class: w.class.name(),
            flags: w.flags,
            this_cpu: w.this_cpu,
            prev_cpu: w.prev_cpu,
            waker: w.waker,
            wakee: w.wakee,
            chosen: w.chosen,
            model: model.map(|v| v.cpu),
            reason: model.map(|v| v.reason.name()),
            target: model.map(|v| v.target),
            cause: decided.cause.map(Cause::name),
            other: other.map(|v| v.cpu),
            other_reason: other.map(|v| v.reason.name()),
        }
    }
}

/// Lists a recording's wake-ups to a file, or to stdout.
pub fn list(
    recording: &mut Recording,
    other: Option<Policy>,
    output: Option<&Path>,
) -> Result<(), Failure> {
    let name = output.map_or("stdout".to_string(), |path| path.display().to_string());
    let cannot = |error: &dyn std::fmt::Display| Failure::run(format!("{name}: {error}"));
    let Some(path) = output else {
        let mut writer = csv::Writer::from_writer(std::io::stdout().lock());
        return write(recording, other, &mut writer, &cannot);
    };
    let file = Fresh::create(path).map_err(|e| cannot(&e))?;
    let mut writer = csv::Writer::from_writer(file);
    write(recording, other, &mut writer, &cannot)?;
    let file = writer.into_inner().map_err(|e| cannot(&e.error()))?;
    file.keep().map_err(|e| cannot(&e))
}

/// Writes every wake-up, until the reader has seen enough (`| head`), which is not a failure.
fn write<W: Write>(
    recording: &mut Recording,
    other: Option<Policy>,
    writer: &mut csv::Writer<W>,
    cannot: &dyn Fn(&dyn std::fmt::Display) -> Failure,
) -> Result<(), Failure> {
    let topology = recording.topology.clone();
    let mut replay = Replay::new(&topology, recording.header.hz, recording.model, other);
    let mut written = Ok(());
    while written.is_ok() {
        let block = recording.reader.next_block();
        let Some(block) = block.map_err(|e| recording.wrong(e))? else {
            break;
        };
        let look = |decided: &Decided| {
            if written.is_ok() {
                written = writer.serialize(Row::of(decided));
            }
        };
        let done = replay.block(&block, look).map(|_| ());
        done.map_err(|e| recording.wrong(e))?;
    }
    match written.and_then(|()| Ok(writer.flush()?)) {
        Err(error) => match error.kind() {
            csv::ErrorKind::Io(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
            _ => Err(cannot(&error)),
        },
        Ok(()) => Ok(()),
    }
}
