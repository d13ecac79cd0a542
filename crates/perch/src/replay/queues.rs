// SPDX-License-Identifier: GPL-2.0-or-later
//! The part of a replay that is about queues.

use std::io::{BufWriter, ErrorKind, Write};

use perch_record::{Decision, Outcome, Replay, Why};
use perch_report::{Align, Grid, share};
use serde::Serialize;

use crate::output::Failure;
use crate::recording::Recording;

/// Returns how many decisions agree, in a sentence.
pub fn sentence(outcome: &Outcome) -> String {
    let (asked, differ) = outcome
        .kinds()
        .fold((0, 0), |(asked, differ), (_, tally)| (asked + tally.asked, differ + tally.differ()));
    let unasked = match outcome.unasked {
        0 => String::new(),
        n => format!("; it was not asked about {n}"),
    };
    format!(
        "of the decisions about queues it makes {} of {asked} as the kernel did: {}{unasked}\n\n",
        asked - differ,
        share(asked - differ, asked, 2)
    )
}

/// Returns a table of the kinds; `None` if none was recorded.
pub fn table(outcome: &Outcome) -> Option<Grid> {
    outcome.kinds().next()?;
    let mut grid = Grid::new(&["decision"], &["asked", "a choice", "otherwise"]);
    for why in Why::ALL {
        grid.column("because", why.name(), Align::Right);
    }
    for (kind, tally) in outcome.kinds() {
        let mut row = vec![
            kind.name().to_string(),
            tally.asked.to_string(),
            tally.choice.to_string(),
            tally.differ().to_string(),
        ];
        row.extend(tally.by_why.iter().map(u64::to_string));
        grid.row(row);
    }
    Some(grid)
}

/// Appends a row for each kind to the CSV of wake-ups: its columns of what was at stake are those of
/// decisions with a choice, and the forced decisions are those without; how many of each differ is
/// not counted.
pub fn csv(outcome: &Outcome, out: &mut String) {
    for (kind, tally) in outcome.kinds() {
        let wrong = tally.by_why[Why::Model as usize];
        *out += &format!(
            "decisions,{},{},{},{},,{wrong},{},\n",
            kind.name(),
            tally.asked,
            tally.differ(),
            tally.choice,
            tally.asked - tally.choice
        );
    }
}

#[derive(Serialize)]
struct Line<'a> {
    kind: &'static str,
    why: Option<&'static str>,
    #[serde(flatten)]
    decision: &'a Decision,
}

/// Lists the decisions in the order of the file.
pub fn list(recording: &mut Recording) -> Result<(), Failure> {
    let (topology, hz) = (recording.topology.clone(), recording.header.hz);
    let replay = Replay::new(&topology, hz, recording.model, None);
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut outcome = Outcome::default();
    let mut failed = None;
    while failed.is_none() {
        let block = recording.reader.next_block();
        let Some(block) = block.map_err(|error| recording.wrong(error))? else {
            break;
        };
        let look = |decision: &Decision, why: Option<Why>| {
            let line = Line { kind: decision.kind().name(), why: why.map(Why::name), decision };
            let written = serde_json::to_writer(&mut out, &line).map_err(std::io::Error::from);
            let written = written.and_then(|()| out.write_all(b"\n"));
            failed = failed.take().or(written.err());
        };
        let asked = replay.decisions(&block, &mut outcome, look);
        asked.map_err(|error| recording.wrong(error))?;
    }
    match failed.map_or_else(|| out.flush(), Err) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::run(format!("stdout: {error}"))),
    }
}
