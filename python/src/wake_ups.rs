// SPDX-License-Identifier: GPL-2.0-or-later
//! The rows of a recording: its wake-ups, or its decisions about queues, a block of the file at a time.

use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use perch_policy::{Era, Policy};
use perch_record::format::{Block, FormatError};
use perch_record::{Cause, Decided, Decision, Outcome, Replay, Why};

use crate::recording::Opened;
use crate::rows::{Rows, schema};

/// What a row is.
#[derive(Clone, Copy)]
pub enum What {
    /// A wake-up, with the choice of another policy.
    WakeUps(Option<Policy>),
    /// A decision about a queue.
    Decisions,
}

impl What {
    fn schema(self) -> SchemaRef {
        use DataType::{UInt32, UInt64, Utf8};
        schema(match self {
            What::WakeUps(_) => &[
                ("at_ns", UInt64, false),
                ("class", Utf8, false),
                ("flags", UInt32, false),
                ("this_cpu", UInt32, false),
                ("prev_cpu", UInt32, false),
                ("waker", UInt32, false),
                ("wakee", UInt32, false),
                ("chosen", UInt32, false),
                ("model", UInt32, true),
                ("reason", Utf8, true),
                ("target", UInt32, true),
                ("cause", Utf8, true),
                ("other", UInt32, true),
                ("other_reason", Utf8, true),
            ],
            What::Decisions => &[
                ("at_ns", UInt64, false),
                ("cpu", UInt32, false),
                ("kind", Utf8, false),
                ("waiting", UInt32, false),
                ("why", Utf8, true),
                ("decision", Utf8, false),
            ],
        })
    }
}

/// Returns the rows of a recording.
pub fn rows(path: PathBuf, era: Option<Era>, what: What) -> Rows {
    Rows::new(path.display().to_string(), what.schema(), move || {
        let opened = Opened::new(&path, era)?;
        let other = match what {
            What::WakeUps(other) => other,
            What::Decisions => None,
        };
        let hz = opened.reader.header().hz;
        let replay = Replay::new(&opened.subject.topology, hz, opened.subject.model, other);
        let mut batches = Batches { opened, replay, what };
        Ok(Box::new(move || batches.step()))
    })
}

/// A recording that is being read, one batch for each of its blocks that has rows.
struct Batches {
    opened: Opened,
    replay: Replay,
    what: What,
}

impl Batches {
    fn wrong(&self, error: impl Display) -> ArrowError {
        ArrowError::ParseError(format!("{}: {error}", self.opened.path))
    }

    fn step(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        loop {
            let block = self.opened.reader.next_block();
            let Some(block) = block.map_err(|error| self.wrong(error))? else {
                return Ok(None);
            };
            let columns = match self.what {
                What::WakeUps(_) => WakeUps::columns(&mut self.replay, &block),
                What::Decisions => Decisions::columns(&self.replay, &block),
            };
            let columns = columns.map_err(|error| self.wrong(error))?;
            if columns.iter().any(|column| !column.is_empty()) {
                return RecordBatch::try_new(self.what.schema(), columns).map(Some);
            }
        }
    }
}

/// The columns of a block's wake-ups, as they are filled.
#[derive(Default)]
struct WakeUps {
    at_ns: Vec<u64>,
    class: Vec<&'static str>,
    /// Flags, this_cpu, prev_cpu, waker, wakee and chosen.
    numbers: [Vec<u32>; 6],
    /// The model's choice, its target, and the other policy's choice.
    cpus: [Vec<Option<u32>>; 3],
    /// The model's reason, the cause of a difference, and the other policy's reason.
    texts: [Vec<Option<&'static str>>; 3],
}

impl WakeUps {
    fn columns(replay: &mut Replay, block: &Block) -> Result<Vec<ArrayRef>, FormatError> {
        let mut rows = WakeUps::default();
        replay.block(block, |decided| rows.add(decided))?;
        let [flags, this_cpu, prev_cpu, waker, wakee, chosen] =
            rows.numbers.map(|column| Arc::new(UInt32Array::from(column)) as ArrayRef);
        let [model, target, other] =
            rows.cpus.map(|column| Arc::new(UInt32Array::from(column)) as ArrayRef);
        let [reason, cause, other_reason] =
            rows.texts.map(|column| Arc::new(StringArray::from(column)) as ArrayRef);
        Ok(vec![
            Arc::new(UInt64Array::from(rows.at_ns)),
            Arc::new(StringArray::from(rows.class)),
            flags,
            this_cpu,
            prev_cpu,
            waker,
            wakee,
            chosen,
            model,
            reason,
            target,
            cause,
            other,
            other_reason,
        ])
    }

    fn add(&mut self, decided: &Decided) {
        let w = decided.moment.wake_up();
        let (model, other) = match &decided.verdicts {
            Some((model, other)) => (Some(model), other.as_ref()),
            None => (None, None),
        };
        self.at_ns.push(w.at_ns);
        self.class.push(w.class.name());
        let numbers = [w.flags, w.this_cpu, w.prev_cpu, w.waker, w.wakee, w.chosen];
        for (column, number) in self.numbers.iter_mut().zip(numbers) {
            column.push(number);
        }
        let cpus = [
            model.map(|verdict| verdict.cpu),
            model.map(|verdict| verdict.target),
            other.map(|verdict| verdict.cpu),
        ];
        for (column, cpu) in self.cpus.iter_mut().zip(cpus) {
            column.push(cpu.map(|cpu| cpu as u32));
        }
        let texts = [
            model.map(|verdict| verdict.reason.name()),
            decided.cause.map(Cause::name),
            other.map(|verdict| verdict.reason.name()),
        ];
        for (column, text) in self.texts.iter_mut().zip(texts) {
            column.push(text);
        }
    }
}

/// The columns of a block's decisions about queues, as they are filled.
#[derive(Default)]
struct Decisions {
    at_ns: Vec<u64>,
    cpu: Vec<u32>,
    kind: Vec<&'static str>,
    waiting: Vec<u32>,
    why: Vec<Option<&'static str>>,
    decision: Vec<String>,
}

impl Decisions {
    fn columns(replay: &Replay, block: &Block) -> Result<Vec<ArrayRef>, FormatError> {
        let mut rows = Decisions::default();
        let mut outcome = Outcome::default();
        replay.decisions(block, &mut outcome, |decision, why| rows.add(decision, why))?;
        Ok(vec![
            Arc::new(UInt64Array::from(rows.at_ns)),
            Arc::new(UInt32Array::from(rows.cpu)),
            Arc::new(StringArray::from(rows.kind)),
            Arc::new(UInt32Array::from(rows.waiting)),
            Arc::new(StringArray::from(rows.why)),
            Arc::new(StringArray::from(rows.decision)),
        ])
    }

    fn add(&mut self, decision: &Decision, why: Option<Why>) {
        self.at_ns.push(decision.at_ns);
        self.cpu.push(decision.cpu);
        self.kind.push(decision.kind().name());
        self.waiting.push(decision.queue.waiting.len() as u32);
        self.why.push(why.map(Why::name));
        let text = serde_json::to_string(decision).expect("numbers and truth values");
        self.decision.push(text);
    }
}
