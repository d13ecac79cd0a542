// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay --list` writes a line for each wake-up, as CSV or as a Parquet file.

use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use perch_parquet::{Column, Kind, Value, Writer};
use perch_policy::Policy;
use perch_record::{Cause, Decided, Replay};

use crate::fresh::Fresh;
use crate::output::Failure;
use crate::recording::Recording;

/// The number of columns.
const COLUMNS: usize = 14;

fn columns() -> [Column; COLUMNS] {
    [
        Column::new("at_ns", Kind::U64),
        Column::new("class", Kind::Text),
        Column::new("flags", Kind::U32),
        Column::new("this_cpu", Kind::U32),
        Column::new("prev_cpu", Kind::U32),
        Column::new("waker", Kind::U32),
        Column::new("wakee", Kind::U32),
        Column::new("chosen", Kind::U32),
        Column::optional("model", Kind::U32),
        Column::optional("reason", Kind::Text),
        Column::optional("target", Kind::U32),
        Column::optional("cause", Kind::Text),
        Column::optional("other", Kind::U32),
        Column::optional("other_reason", Kind::Text),
    ]
}

fn values(decided: &Decided) -> [Value<'static>; COLUMNS] {
    let w = decided.moment.wake_up();
    let (model, other) = match &decided.verdicts {
        Some((model, other)) => (Some(model), other.as_ref()),
        None => (None, None),
    };
    let cpu = |cpu: Option<usize>| cpu.map_or(Value::Null, |cpu| Value::U32(cpu as u32));
    let text = |text: Option<&'static str>| text.map_or(Value::Null, Value::Text);
    [
        Value::U64(w.at_ns),
        Value::Text(w.class.name()),
        Value::U32(w.flags),
        Value::U32(w.this_cpu),
        Value::U32(w.prev_cpu),
        Value::U32(w.waker),
        Value::U32(w.wakee),
        Value::U32(w.chosen),
        cpu(model.map(|v| v.cpu)),
        text(model.map(|v| v.reason.name())),
        cpu(model.map(|v| v.target)),
        text(decided.cause.map(Cause::name)),
        cpu(other.map(|v| v.cpu)),
        text(other.map(|v| v.reason.name())),
    ]
}

/// Lists a recording's wake-ups to a file, or to stdout.
pub fn list(
    recording: &mut Recording,
    other: Option<Policy>,
    parquet: bool,
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
    write(recording, other, parquet, out, &cannot)?;
    let Some(file) = file else {
        return Ok(());
    };
    let file = file.into_inner().map_err(|e| cannot(&e.into_error()))?;
    file.keep().map_err(|e| cannot(&e))
}

fn write(
    recording: &mut Recording,
    other: Option<Policy>,
    parquet: bool,
    out: &mut dyn Write,
    cannot: &dyn Fn(&dyn std::fmt::Display) -> Failure,
) -> Result<(), Failure> {
    if parquet {
        let header = &recording.header;
        let era = recording.model.era().to_string();
        let modes = recording.model.modes().to_string();
        let others = other.map_or(String::new(), |other| other.modes().to_string());
        let command = header.command.join(" ");
        let pairs = [
            ("kernel", header.kernel.as_str()),
            ("machine", header.machine.as_str()),
            ("command", &command),
            ("era", &era),
            ("model", &modes),
            ("other", &others),
        ];
        let mut writer = Writer::new(out, &columns(), &pairs).map_err(|e| cannot(&e))?;
        each(recording, other, |values| {
            writer.row(values).map(|()| true).map_err(|e| cannot(&e))
        })?;
        return writer.finish().map(|_| ()).map_err(|e| cannot(&e));
    }
    let names = columns().map(|column| column.name);
    // A reader that has seen enough (`| head`) is no failure.
    let goes_on = |result: std::io::Result<()>| match result {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(cannot(&e)),
    };
    if goes_on(writeln!(out, "{}", names.join(",")))? {
        each(recording, other, |values| goes_on(line(out, values)))?;
    }
    goes_on(out.flush()).map(|_| ())
}

/// Hands every wake-up to `take`, until that tells it to stop.
fn each(
    recording: &mut Recording,
    other: Option<Policy>,
    mut take: impl FnMut(&[Value]) -> Result<bool, Failure>,
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
                state = take(&values(decided));
            }
        };
        let done = replay.block(&block, look).map(|_| ());
        done.map_err(|e| recording.wrong(e))?;
    }
    state.map(|_| ())
}

/// Writes a line of CSV; no value has a comma or a quote.
fn line(out: &mut dyn Write, values: &[Value]) -> std::io::Result<()> {
    for (i, value) in values.iter().enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        match value {
            Value::U32(v) => write!(out, "{v}")?,
            Value::U64(v) => write!(out, "{v}")?,
            Value::Text(v) => out.write_all(v.as_bytes())?,
            _ => {}
        }
    }
    out.write_all(b"\n")
}
