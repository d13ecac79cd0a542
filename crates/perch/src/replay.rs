// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay` asks perch's model, or another policy, about the wake-ups of a recording.

mod agreement;
mod list;
mod queues;

use std::iter;
use std::path::{Path, PathBuf};

use clap::Args;
use perch_policy::{Era, Policy};
use perch_record::{Agreement, Cause, Outcome, ReplayResult, Tally};
use perch_report::{Align, Format, Grid, json, share};

use crate::arguments::{at_least_one, threads};
use crate::output::{Failure, emit_as};
use crate::recording::Recording;

/// The arguments of `perch replay`.
#[derive(Args)]
#[command(after_long_help = perch_policy::mechanisms_in_words())]
pub struct Arguments {
    /// The recording; - for stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Compare the kernel's own choices with those of other modes, for example cluster=posted
    #[arg(long = "set", value_name = "MODES")]
    set: Vec<String>,
    /// Model the kernel by the rules of this era [default: by the recorded kernel's version]
    #[arg(long, value_name = "ERA")]
    era: Option<Era>,
    /// How to write the result: table, markdown, csv or json [default: table]; with --list only
    /// csv
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// List the wake-ups themselves: what was chosen, and what the policies say
    #[arg(long)]
    list: bool,
    /// List the decisions about queues instead, one JSON object per line, with the reason where the
    /// model's answer differs
    #[arg(long, conflicts_with = "list")]
    list_decisions: bool,
    /// The file to list them to [default: stdout]
    #[arg(long, short, value_name = "FILE", requires = "list")]
    output: Option<PathBuf>,
    /// Threads; the result does not depend on them [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<u32>,
}

/// Returns the policy with the model's modes and the changes that the user asks for; `None` without
/// changes.
fn other(model: Policy, set: &[String]) -> Result<Option<Policy>, Failure> {
    let mut modes = model.modes();
    for pair in set.iter().flat_map(|text| text.split(',')) {
        let changed = perch_record::change_mode(&mut modes, pair);
        changed.map_err(|error| Failure::input(format!("--set {pair}: {error}")))?;
    }
    Ok((!set.is_empty()).then(|| Policy::new(model.era(), modes)))
}

/// Returns whether two paths lead to the same file.
fn same(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(std::fs::canonicalize);
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

/// Carries out `perch replay`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if arguments.list && arguments.format.is_some_and(|format| format != Format::Csv) {
        return Err(Failure::input("--list: expected --format csv"));
    }
    if let Some(path) = arguments.output.as_deref().filter(|path| same(path, &arguments.file)) {
        return Err(Failure::input(format!(
            "--output {}: that is the recording itself; expected another file",
            path.display()
        )));
    }
    // Without a bar: lines and a bar on the same terminal would overwrite each other.
    let lines = arguments.list && arguments.output.is_none();
    let mut recording = Recording::open(&arguments.file, arguments.era, lines)?;
    let model = recording.model;
    let other = other(model, &arguments.set)?;
    let topology = recording.topology.clone();
    if arguments.list {
        list::list(&mut recording, other, arguments.output.as_deref())?;
        recording.warn();
        return Ok(());
    }
    if arguments.list_decisions {
        queues::list(&mut recording)?;
        recording.warn();
        return Ok(());
    }
    let (reader, jobs) = (&mut recording.reader, threads(arguments.jobs));
    let outcome = perch_record::replay(reader, &topology, model, other, jobs);
    let outcome = outcome.map_err(|error| recording.wrong(error))?;
    recording.warn();
    if outcome.model.asked == 0 {
        return Err(recording.no_wake_ups(outcome.others));
    }
    let (path, reader) = (&recording.path, &recording.reader);
    let report = Report {
        result: ReplayResult::of(path, reader, &topology, model, other, &outcome),
        outcome: &outcome,
        undecided: (reader.footer()).and_then(|footer| footer.undecided.words()),
    };
    let format = arguments.format.unwrap_or_default();
    let text = match format {
        Format::Table => report.text(Grid::text),
        Format::Markdown => report.text(Grid::markdown),
        Format::Csv => csv(&outcome),
        Format::Json => json(&report.result),
    };
    emit_as(format, &text)
}

/// A replay to be shown to a person.
struct Report<'a> {
    result: ReplayResult<'a>,
    outcome: &'a Outcome,
    undecided: Option<String>,
}

impl Report<'_> {
    fn text(&self, form: impl Fn(&Grid) -> String) -> String {
        let (result, outcome, model) = (&self.result, self.outcome, &self.outcome.model);
        let seconds = outcome.span_ns.map_or(0.0, |(from, to)| (to - from) as f64 / 1e9);
        let mut out = format!(
            "{}: {} wake-ups in {seconds:.1} s, Linux {}, {} CPUs\n",
            result.file,
            model.asked + outcome.others + outcome.unseen,
            result.kernel,
            result.cpus,
        );
        if outcome.others > 0 {
            out += &format!("{} of them are not the fair class's\n", outcome.others);
        }
        if let Some(words) = &self.undecided {
            out += &format!("{words}\n");
        }
        if outcome.unseen > 0 {
            out += &format!(
                "{} of them would be decided by what was not recorded, and are not counted\n",
                outcome.unseen
            );
        }
        out += &agreement::lines(&result.era, model);
        for (cause, count) in Cause::ALL.into_iter().zip(model.by_cause) {
            if count > 0 {
                let share = share(count, model.asked, 2);
                out += &format!("  otherwise, {}: {count}, {share}\n", cause.name());
            }
        }
        out += "\n";
        out += &form(&by_reason(model, "otherwise", true));
        if let Some(grid) = queues::table(outcome) {
            out += &format!("\n{}", queues::sentence(outcome));
            out += &form(&grid);
        }
        let (Some(other), Some(change)) = (&result.change, &outcome.change) else {
            return out;
        };
        let differ = change.asked - change.same;
        out += &format!(
            "\nwith {} {differ} choices would be others: {}\n\n",
            other.modes,
            share(differ, change.asked, 2)
        );
        out += &form(&by_reason(change, "changed", false));
        out += "\n";
        out += &form(&before_and_after(change));
        out
    }
}

fn csv(outcome: &Outcome) -> String {
    let mut out = "table,row,wake_ups,differ,idle_to_win,idle_to_win_differ,unexplained,\
                   forced,forced_differ\n"
        .to_string();
    let change = outcome.change.iter().map(|tally| ("change", tally));
    for (name, tally) in iter::once(("model", &outcome.model)).chain(change) {
        for (reason, stakes) in tally.reasons() {
            let (all, [_, idle]) = (stakes.iter().sum::<Agreement>(), &stakes);
            let forced = tally.forced[reason as usize];
            let counts = [
                all.asked,
                all.differ,
                idle.asked,
                idle.differ,
                all.unexplained,
                forced.asked,
                forced.differ,
            ];
            let cells = counts.map(|count| count.to_string()).join(",");
            out += &format!("{name},{},{cells}\n", reason.name());
        }
    }
    queues::csv(outcome, &mut out);
    out
}

/// A table of reasons. The last columns are of the choices in which there was an idle CPU to win, and
/// of those that differ for no cause that the recording shows, where `causes` are known.
fn by_reason(tally: &Tally, differ: &str, causes: bool) -> Grid {
    let mut grid = Grid::new(&["reason"], &["wake-ups", "share", differ]);
    grid.columns("with an idle CPU", &["wake-ups", differ], Align::Right);
    if causes {
        grid.column("", "model wrong", Align::Right);
    }
    for (reason, stakes) in tally.reasons() {
        let (all, [_, idle]) = (stakes.iter().sum::<Agreement>(), &stakes);
        let mut row = vec![
            reason.name().to_string(),
            all.asked.to_string(),
            share(all.asked, tally.asked, 2),
            all.differ.to_string(),
            idle.asked.to_string(),
            idle.differ.to_string(),
        ];
        row.extend(causes.then(|| all.unexplained.to_string()));
        grid.row(row);
    }
    grid
}

/// A table of the places of the kernel's choices and of the policy's.
fn before_and_after(tally: &Tally) -> Grid {
    let mut grid = Grid::new(&["the chosen CPU"], &["kernel", "policy"]);
    let mut row = |name: &str, [was, is]: [u64; 2]| {
        let cells = [name.to_string(), share(was, tally.asked, 2), share(is, tally.asked, 2)];
        grid.row(cells.to_vec());
    };
    for (distance, counts) in tally.distances() {
        if counts != [0, 0] {
            row(distance.name(), counts);
        }
    }
    row("is idle", tally.idle);
    row("fits the task", tally.fits);
    grid
}
