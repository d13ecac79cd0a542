// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay --list` writes a line for each wake-up, as CSV.

use std::io::{BufWriter, ErrorKind, Write};
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
    let mut file = match output {
        Some(path) => Some(BufWriter::new(Fresh::create(path).map_err(|e| cannot(&e))?)),
        None => None,
    };
    let mut stdout = BufWriter::new(std::io::stdout().lock());
    let out: &mut dyn Write = match &mut file {
        Some(file) => file,
        None => &mut stdout,
    };
    write(recording, other, out, &cannot)?;
    let Some(file) = file else {
        return Ok(());
    };
    let file = file.into_inner().map_err(|e| cannot(&e.into_error()))?;
    file.keep().map_err(|e| cannot(&e))
}

fn write(
    recording: &mut Recording,
    other: Option<Policy>,
    out: &mut dyn Write,
    cannot: &dyn Fn(&dyn std::fmt::Display) -> Failure,
) -> Result<(), Failure> {
    let mut writer = csv::Writer::from_writer(out);
    // A reader that has seen enough (`| head`) is not a failure.
    let goes_on = |result: Result<(), csv::Error>| match result {
        Ok(()) => Ok(true),
        Err(error) => match error.kind() {
            csv::ErrorKind::Io(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
            _ => Err(cannot(&error)),
        },
    };
    each(recording, other, |row| goes_on(writer.serialize(row)))?;
    goes_on(writer.flush().map_err(Into::into)).map(|_| ())
}

/// Hands every wake-up to `take`, until that tells it to stop.
fn each(
    recording: &mut Recording,
    other: Option<Policy>,
    mut take: impl FnMut(&Row) -> Result<bool, Failure>,
) -> Result<(), Failure> {
    let topology = recording.topology.clone();
    let mut replay = Replay::new(&topology, recording.header.hz, recording.model, other);
    let mut state = Ok(true);
    while matches!(state, Ok(true)) {
        let block = recording.reader.next_block();
        let Some(block) = block.map_err(|e| recording.wrong(e))? else {
            break;
        };
        let look = |decided: &Decided| {
            if matches!(state, Ok(true)) {
                state = take(&Row::of(decided));
            }
        };
        let done = replay.block(&block, look).map(|_| ());
        done.map_err(|e| recording.wrong(e))?;
    }
    state.map(|_| ())
}
