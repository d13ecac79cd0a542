// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch replay` asks perch's model, or another policy, about the wake-ups of a recording.

mod agreement;
mod list;
mod queues;
mod trace;

use std::path::{Path, PathBuf};

use clap::Args;
use perch_policy::{Era, Mechanism, Mode, Modes, Policy, Reason, Topology};
use perch_record::format::{Header, Undecided};
use perch_record::{Agreement, Cause, Distance, Outcome, Tally};
use perch_report::{Align, Format, Grid};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::arguments::{at_least_one, threads};
use crate::output::{Failure, emit};
use crate::recording::Recording;

use self::agreement::share;

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
    format: Option<String>,
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
    /// Also write what was recorded as a Perfetto trace
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    trace: Option<PathBuf>,
    /// Threads; the result does not depend on them [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<u32>,
}

/// The kernel's own modes with the changes that the user asks for; `None` without changes.
fn other(modes: Modes, set: &[String]) -> Result<Option<Modes>, Failure> {
    let mut other = modes;
    for pair in set.iter().flat_map(|text| text.split(',')) {
        let wrong = |why: String| Failure::input(format!("--set {pair}: {why}"));
        let (mechanism, mode) = pair
            .split_once('=')
            .ok_or_else(|| wrong("expected MECHANISM=MODE".to_string()))?;
        let mode: Mode = mode.parse().map_err(|e| wrong(format!("{e}")))?;
        let recording = Mechanism::named(mechanism).map(Mechanism::recording);
        let lacks = recording.filter(|(whose, _)| *whose != perch_policy::Recording::Kernel);
        if let Some((_, lacks)) = lacks.filter(|_| mode != Mode::Off) {
            return Err(wrong(format!(
                "a recording does not have what {mechanism} decides by: {lacks}"
            )));
        }
        other
            .set(mechanism, mode)
            .map_err(|e| wrong(format!("{e}")))?;
    }
    Ok((!set.is_empty()).then_some(other))
}

/// Returns whether two paths lead to the same file.
fn same(one: &Path, other: &Path) -> bool {
    let [one, other] = [one, other].map(std::fs::canonicalize);
    matches!((one, other), (Ok(one), Ok(other)) if one == other)
}

/// Carries out `perch replay`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let format = arguments.format.as_deref();
    if let (true, Some(other)) = (arguments.list, format.filter(|name| *name != "csv")) {
        return Err(Failure::input(format!(
            "--list --format {other}: expected csv"
        )));
    }
    let format = match format.filter(|_| !arguments.list) {
        Some(name) => {
            let parsed = name.parse::<Format>();
            parsed.map_err(|e| Failure::input(format!("--format: {e}")))?
        }
        None => Format::Table,
    };
    for (option, path) in [
        ("--output", &arguments.output),
        ("--trace", &arguments.trace),
    ] {
        if let Some(path) = path.as_deref().filter(|path| same(path, &arguments.file)) {
            return Err(Failure::input(format!(
                "{option} {}: that is the recording itself; expected another file",
                path.display()
            )));
        }
    }
    // Without a bar: lines and a bar on the same terminal would overwrite each other.
    let lines = arguments.list && arguments.output.is_none();
    let mut recording = Recording::open(&arguments.file, arguments.era, lines)?;
    let model = recording.model;
    let other = other(model.modes(), &arguments.set)?.map(|m| Policy::new(model.era(), m));
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
    let (outcome, trace) = match &arguments.trace {
        // Lists and traces keep the order of the file, so one thread makes them.
        Some(path) => {
            let (outcome, trace) = trace::trace(&mut recording, other, path)?;
            (outcome, Some(trace))
        }
        None => {
            let (reader, jobs) = (&mut recording.reader, threads(arguments.jobs));
            let outcome = perch_record::replay(reader, &topology, model, other, jobs);
            (outcome.map_err(|error| recording.wrong(error))?, None)
        }
    };
    recording.warn();
    if outcome.model.asked == 0 {
        return Err(recording.no_wake_ups(outcome.others));
    }
    trace.map_or(Ok(()), trace::Trace::keep)?;
    let report = Report {
        path: &recording.path,
        header: &recording.header,
        topology: &topology,
        model,
        other,
        outcome: &outcome,
        undecided: recording
            .reader
            .footer()
            .map(|footer| footer.undecided.clone()),
    };
    emit(&match format {
        Format::Table => report.text(Grid::text),
        Format::Markdown => report.text(Grid::markdown),
        Format::Csv => report.csv(),
        Format::Json => report.json(),
    })
}

/// A replay to be shown.
struct Report<'a> {
    path: &'a str,
    header: &'a Header,
    topology: &'a Topology,
    model: Policy,
    other: Option<Policy>,
    outcome: &'a Outcome,
    undecided: Option<Undecided>,
}

impl Report<'_> {
    fn text(&self, form: impl Fn(&Grid) -> String) -> String {
        let (outcome, model) = (self.outcome, &self.outcome.model);
        let seconds = outcome
            .span_ns
            .map_or(0.0, |(from, to)| (to - from) as f64 / 1e9);
        let mut out = format!(
            "{}: {} wake-ups in {seconds:.1} s, Linux {}, {} CPUs\n",
            self.path,
            model.asked + outcome.others + outcome.unseen,
            self.header.kernel,
            self.topology.nr_cpus(),
        );
        if outcome.others > 0 {
            out += &format!("{} of them are not the fair class's\n", outcome.others);
        }
        let undecided = self.undecided.as_ref().map(Undecided::words);
        if let Some(words) = undecided.flatten() {
            out += &format!("{words}\n");
        }
        if outcome.unseen > 0 {
            out += &format!(
                "{} of them would be decided by what was not recorded, and are not counted\n",
                outcome.unseen
            );
        }
        out += &agreement::lines(self.model.era(), model);
        for (cause, count) in Cause::ALL.into_iter().zip(model.by_cause) {
            if count > 0 {
                let share = share(count, model.asked);
                out += &format!("  otherwise, {}: {count}, {share}\n", cause.name());
            }
        }
        out += "\n";
        out += &form(&by_reason(model, "otherwise", true));
        if let Some(grid) = queues::table(outcome) {
            out += &format!("\n{}", queues::sentence(outcome));
            out += &form(&grid);
        }
        let (Some(other), Some(change)) = (self.other, &outcome.change) else {
            return out;
        };
        let differ = change.asked - change.same;
        out += &format!(
            "\nwith {} {differ} choices would be others: {}\n\n",
            other.modes(),
            share(differ, change.asked)
        );
        out += &form(&by_reason(change, "changed", false));
        out += "\n";
        out += &form(&before_and_after(change));
        out
    }

    fn csv(&self) -> String {
        let mut out = "table,row,wake_ups,differ,idle_to_win,idle_to_win_differ,unexplained,\
                       forced,forced_differ\n"
            .to_string();
        let tallies = [
            ("model", Some(&self.outcome.model)),
            ("change", self.outcome.change.as_ref()),
        ];
        for (name, tally) in tallies {
            for (tally, (reason, stakes)) in
                (tally.iter()).flat_map(|tally| reasons(tally).map(move |row| (tally, row)))
            {
                let (all, [_, idle]) = (whole(&stakes), &stakes);
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
        queues::csv(self.outcome, &mut out);
        out
    }

    fn json(&self) -> String {
        let json = Json {
            file: self.path,
            kernel: &self.header.kernel,
            era: self.model.era().to_string(),
            command: &self.header.command,
            cpus: self.topology.nr_cpus(),
            others: self.outcome.others,
            unseen: self.outcome.unseen,
            agreement: agreement::json(&self.outcome.model),
            causes: Cause::ALL
                .into_iter()
                .map(|cause| (cause.name(), self.outcome.model.by_cause[cause as usize]))
                .collect(),
            undecided: self
                .undecided
                .as_ref()
                .map(|u| u.by_name().into_iter().collect()),
            decisions: queues::json(self.outcome),
            model: JsonTally::of(self.model, &self.outcome.model),
            change: self
                .other
                .zip(self.outcome.change.as_ref())
                .map(|(p, t)| JsonTally::of(p, t)),
        };
        let text = serde_json::to_string_pretty(&json).unwrap_or_default();
        format!("{text}\n")
    }
}

/// Returns the schema of the JSON.
pub fn schema() -> Schema {
    perch_file::result_schema::<Json>("result of perch replay")
}

#[derive(Serialize, JsonSchema)]
struct Json<'a> {
    /// The file.
    file: &'a str,
    /// The recorded kernel's version.
    kernel: &'a str,
    /// The kernel that the model is of.
    era: String,
    /// The command that was recorded.
    command: &'a [String],
    /// CPUs of the machine.
    cpus: usize,
    /// Wake-ups of other classes.
    others: u64,
    /// Wake-ups that what was not recorded decides.
    unseen: u64,
    /// The agreement of the model with the kernel.
    agreement: agreement::Json,
    /// The choices that differ, by cause.
    causes: std::collections::BTreeMap<&'static str, u64>,
    /// Wake-ups that needed no decision, by reason; null where the end of the file is missing.
    undecided: Option<std::collections::BTreeMap<&'static str, u64>>,
    /// Decisions about queues, by kind.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    decisions: std::collections::BTreeMap<&'static str, queues::JsonKind>,
    /// The comparison of the kernel with the model in detail.
    model: JsonTally,
    /// The same of the model with the policy of --set; null without --set.
    change: Option<JsonTally>,
}

/// A comparison of two policies.
#[derive(Serialize, JsonSchema)]
struct JsonTally {
    /// The second policy's modes.
    modes: String,
    /// Wake-ups that were compared.
    wake_ups: u64,
    /// Those for which both choose the same CPU.
    same: u64,
    /// By reason: wake-ups, and those that differ.
    reasons: std::collections::BTreeMap<&'static str, [u64; 2]>,
    /// By reason: choices while no CPU was idle, and with an idle CPU to win.
    stakes: std::collections::BTreeMap<&'static str, [JsonAgreement; 2]>,
    /// By distance from the previous CPU: the first policy's choices, and the second one's.
    distances: std::collections::BTreeMap<&'static str, [u64; 2]>,
    /// Choices of idle CPUs: the first policy's, and the second one's.
    idle: [u64; 2],
    /// Choices of CPUs that the task fits: the first policy's, and the second one's.
    fits: [u64; 2],
    /// CPUs that the second policy looked at.
    examined: u64,
}

/// The choices for one reason.
#[derive(Serialize, JsonSchema)]
struct JsonAgreement {
    /// True of those with an idle CPU to win.
    idle_to_win: bool,
    /// The choices.
    wake_ups: u64,
    /// Those that differ.
    differ: u64,
    /// Those that differ for no cause.
    unexplained: u64,
}

impl JsonAgreement {
    fn of(agreement: Agreement, idle_to_win: bool) -> JsonAgreement {
        JsonAgreement {
            idle_to_win,
            wake_ups: agreement.asked,
            differ: agreement.differ,
            unexplained: agreement.unexplained,
        }
    }
}

impl JsonTally {
    fn of(policy: Policy, tally: &Tally) -> JsonTally {
        JsonTally {
            modes: policy.modes().to_string(),
            wake_ups: tally.asked,
            same: tally.same,
            reasons: reasons(tally)
                .map(|(r, stakes)| (r.name(), whole(&stakes)))
                .map(|(name, all)| (name, [all.asked, all.differ]))
                .collect(),
            stakes: reasons(tally)
                .map(|(r, [saturated, idle])| {
                    let parts = [(saturated, false), (idle, true)];
                    (
                        r.name(),
                        parts.map(|(part, is)| JsonAgreement::of(part, is)),
                    )
                })
                .collect(),
            distances: distances(tally).map(|(d, n)| (d.name(), n)).collect(),
            idle: tally.idle,
            fits: tally.fits,
            examined: tally.examined,
        }
    }
}

/// The counts of a reason, whatever was at stake.
fn whole(stakes: &[Agreement; 2]) -> Agreement {
    let mut all = stakes[0];
    all.add(&stakes[1]);
    all
}

/// Reasons that decided at all, the most frequent first: without and with an idle CPU to win.
fn reasons(tally: &Tally) -> impl Iterator<Item = (Reason, [Agreement; 2])> {
    let all = Reason::ALL.iter().copied().zip(tally.by_reason);
    let mut rows: Vec<_> = all.filter(|(_, stakes)| whole(stakes).asked > 0).collect();
    rows.sort_by_key(|(_, stakes)| std::cmp::Reverse(whole(stakes).asked));
    rows.into_iter()
}

/// The number of the reference's choices and of the policy's at each distance.
fn distances(tally: &Tally) -> impl Iterator<Item = (Distance, [u64; 2])> {
    let by = tally.by_distance;
    Distance::ALL.into_iter().map(move |d| {
        let was = by[d as usize].iter().sum();
        (d, [was, by.iter().map(|row| row[d as usize]).sum()])
    })
}

/// A table of reasons. The last columns are of the choices in which there was an idle CPU to win, and
/// of those that differ for no cause that the recording shows, where `causes` are known.
fn by_reason(tally: &Tally, differ: &str, causes: bool) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "reason", Align::Left);
    for name in ["wake-ups", "share", differ] {
        grid.column("", name, Align::Right);
    }
    for name in ["wake-ups", differ] {
        grid.column("with an idle CPU", name, Align::Right);
    }
    if causes {
        grid.column("", "model wrong", Align::Right);
    }
    for (reason, stakes) in reasons(tally) {
        let (all, [_, idle]) = (whole(&stakes), &stakes);
        let mut row = vec![
            reason.name().to_string(),
            all.asked.to_string(),
            share(all.asked, tally.asked),
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
    let mut grid = Grid::default();
    grid.column("", "the chosen CPU", Align::Left);
    grid.column("", "kernel", Align::Right);
    grid.column("", "policy", Align::Right);
    let mut row = |name: &str, [was, is]: [u64; 2]| {
        let cells = [
            name.to_string(),
            share(was, tally.asked),
            share(is, tally.asked),
        ];
        grid.row(cells.to_vec());
    };
    for (distance, counts) in distances(tally) {
        if counts != [0, 0] {
            row(distance.name(), counts);
        }
    }
    row("is idle", tally.idle);
    row("fits the task", tally.fits);
    grid
}
