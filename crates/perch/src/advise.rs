// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch advise`: sums up a recording for each mechanism, for a person who decides whether to try
//! that mechanism; or says what `perch run` would load on a machine, and why.

#[cfg(test)]
mod tests;
mod words;

use std::path::PathBuf;

use clap::Args;
use perch_plan::Settings;
use perch_policy::{Mechanism, Topology};
use perch_record::advice::{Advice, Change, Net, Share, advise};
use perch_report::{Align, Grid, json, wrap};
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::{Form, at_least_one, threads};
use crate::output::{Failure, emit};
use crate::recording::Recording;

/// The arguments of `perch advise`.
#[derive(Args)]
pub struct Arguments {
    /// The recording; - for stdin
    #[arg(value_name = "FILE", required_unless_present = "machine")]
    file: Option<PathBuf>,
    /// Instead of a recording: what perch run would load on this machine, by name (perch machine
    /// list), or a TOML file
    #[arg(short, long, value_name = "MACHINE", conflicts_with_all = ["file", "era", "jobs", "format"])]
    machine: Option<String>,
    /// Model the kernel by the rules of this era [default: by the recorded kernel's version]
    #[arg(long, value_name = "ERA")]
    era: Option<perch_policy::Era>,
    /// How to write the result
    #[arg(long, value_enum, default_value_t = Form::Table, value_name = "FORMAT")]
    format: Form,
    /// Threads; the result does not depend on them [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<u32>,
}

/// Carries out `perch advise`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = match (arguments.machine, arguments.file) {
        (Some(machine), _) => return by_shape(&machine),
        (None, file) => file.expect("one of the two is there"),
    };
    let mut recording = Recording::open(&file, arguments.era, false)?;
    let topology = recording.topology.clone();
    let advice = advise(&mut recording.reader, &topology, recording.model, threads(arguments.jobs));
    let advice = advice.map_err(|error| recording.wrong(error))?;
    recording.warn();
    if advice.asked == 0 {
        return Err(recording.no_wake_ups(advice.real_time));
    }
    let of = Of {
        file: &recording.path,
        machine: &recording.machine.name,
        kernel: &recording.header.kernel,
        era: recording.model.era().to_string(),
        command: recording.header.command.join(" "),
        cpus: topology.nr_cpus(),
        lost: recording.reader.footer().map(|footer| footer.dropped),
    };
    emit(&match arguments.format {
        Form::Table => text(&of, &advice),
        Form::Json => as_json(&of, &advice),
    })
}

/// Prints what `perch run` would load on the machine.
fn by_shape(name: &str) -> Result<(), Failure> {
    let machine = perch_machine::resolve(name)?;
    let mut grid = Grid::new(&["mechanism", "mode", "why"], &[]);
    for chosen in Settings::default().choices(&Topology::new(&machine)) {
        let (mechanism, mode) = (chosen.mechanism.to_string(), chosen.mode.to_string());
        grid.row(vec![mechanism, mode, chosen.why]);
    }
    emit(&format!("perch run on {}:\n{}", machine.name, grid.text()))
}

/// The subject of the advice: a recording, its machine and its kernel.
#[derive(Serialize, JsonSchema)]
struct Of<'a> {
    /// The file.
    file: &'a str,
    /// The recorded machine's name.
    machine: &'a str,
    /// The recorded kernel's version.
    kernel: &'a str,
    /// The kernel that the model is of.
    era: String,
    /// The command that was recorded.
    command: String,
    /// CPUs of the machine.
    cpus: usize,
    /// Wake-ups that were not recorded; null where the end of the file is missing.
    lost: Option<u64>,
}

/// A recording's length, seconds.
fn seconds(advice: &Advice) -> f64 {
    let (from, to) = advice.span_ns.unwrap_or_default();
    (to - from) as f64 / 1e9
}

/// Breaks a paragraph into lines; each but the first begins with two blanks.
fn paragraph(text: &str) -> String {
    // A number and its sign stay together.
    let text = text.replace(" %", "\u{a0}%");
    wrap(text.split(' '), 90, ["", "  ", ""]).replace('\u{a0}', " ")
}

fn text(of: &Of, advice: &Advice) -> String {
    let mut out = paragraph(&words::subject(of, advice));
    out += &paragraph(&words::trust(advice, &of.era));
    out.push('\n');
    for mechanism in Mechanism::ALL {
        let said = words::mechanism(advice, mechanism, of.cpus);
        out += &paragraph(&format!("{mechanism}: {}", said.text));
    }
    if !advice.changes.is_empty() {
        out += &format!("\n{}", figures(advice).text());
    }
    out += "\nWhat it cannot know:\n";
    for point in words::unknown(of, advice) {
        out += &paragraph(&format!("- {point}"));
    }
    out
}

/// The changes that each mode would make, one per line.
fn figures(advice: &Advice) -> Grid {
    let mut grid = Grid::new(&["mechanism", "mode"], &[]);
    grid.columns("other CPU", &["share", "95 %"], Align::Right);
    grid.columns("the aim", &["nearer", "farther"], Align::Right);
    grid.columns("idle", &["won", "lost"], Align::Right);
    grid.columns("fits", &["won", "lost"], Align::Right);
    grid.column("", "verdict", Align::Left);
    for change in &advice.changes {
        let Change { changed, .. } = change;
        let mut row = vec![
            change.mechanism.to_string(),
            change.mode.to_string(),
            words::percent(changed.value()),
            words::range(changed),
        ];
        for net in [&change.near, &change.idle, &change.fits] {
            for count in [net.gains, net.losses] {
                row.push(words::percent(count as f64 / changed.of.max(1) as f64));
            }
        }
        row.push(change.verdict.name().to_string());
        grid.row(row);
    }
    grid
}

/// The effect of another mode.
#[derive(Serialize, JsonSchema)]
struct JsonChange {
    /// The mode.
    mode: &'static str,
    /// The choices that would be others.
    changed: Share,
    /// Wakees that would land nearer to the CPU that the kernel aims at, and farther from it.
    near: Net,
    /// Choices of an idle CPU in place of a busy one, and the reverse.
    idle: Net,
    /// Choices of a CPU that the task fits in place of one that is too slow for it, and the reverse.
    fits: Net,
    /// `better`, `worse`, `trade`, `sideways`, `nothing`, `unsure` or `unclear`.
    verdict: &'static str,
}

/// The advice about one mechanism.
#[derive(Serialize, JsonSchema)]
struct JsonMechanism {
    /// The mechanism's name.
    mechanism: &'static str,
    /// True where the machine has anything for it.
    can_act: bool,
    /// Its mode in the recorded kernel.
    kernel: &'static str,
    /// `try`, `trade`, `leave`, `cannot act` or `cannot tell`.
    advice: &'static str,
    /// The same in sentences.
    text: String,
    /// The effect of each other mode.
    changes: Vec<JsonChange>,
}

/// The advice.
#[derive(Serialize, JsonSchema)]
pub struct Json<'a> {
    #[serde(flatten)]
    of: &'a Of<'a>,
    /// Wake-ups of the fair class.
    wake_ups: u64,
    /// Wake-ups of the real-time class.
    real_time: u64,
    /// The recording's length.
    seconds: f64,
    /// The number of parts of the recording between which the intervals are made.
    slices: usize,
    /// The length of each.
    slice_ms: u64,
    /// The choices that the model explains; null, as all shares, where the recording is too short.
    explained: Option<Share>,
    /// Wake-ups for which the model found nothing idle.
    nothing_idle: Option<Share>,
    /// By mechanism.
    mechanisms: Vec<JsonMechanism>,
    /// Facts that the recording cannot tell, in sentences.
    unknown: Vec<String>,
}

fn as_json(of: &Of, advice: &Advice) -> String {
    let mechanisms = advice.kernel.iter().map(|(mechanism, kernel)| {
        let said = words::mechanism(advice, mechanism, of.cpus);
        let changes = advice.changes.iter().filter(move |c| c.mechanism == mechanism);
        JsonMechanism {
            mechanism: mechanism.name(),
            can_act: advice.shape.can_act(mechanism),
            kernel: kernel.name(),
            advice: said.advice.name(),
            text: said.text,
            changes: changes
                .map(|c| JsonChange {
                    mode: c.mode.name(),
                    changed: c.changed,
                    near: c.near,
                    idle: c.idle,
                    fits: c.fits,
                    verdict: c.verdict.name(),
                })
                .collect(),
        }
    });
    json(&Json {
        of,
        wake_ups: advice.asked,
        real_time: advice.real_time,
        seconds: seconds(advice),
        slices: advice.slices.0,
        slice_ms: advice.slices.1 / 1_000_000,
        explained: advice.explained,
        nothing_idle: advice.busy,
        mechanisms: mechanisms.collect(),
        unknown: words::unknown(of, advice),
    })
}
