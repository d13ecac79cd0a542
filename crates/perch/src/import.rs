// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch import`: makes a workload of a recording by perf, trace-cmd or Perfetto.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use clap::Args;
use perch_file::Fresh;
use perch_import::{ImportError, Options, Summary};
use perch_policy::Topology;
use perch_report::{Grid, json};
use perch_workload::recorded::{NAME, Script};

use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit};

/// The number of commands that the table names; one row sums up the others.
const NAMES: usize = 12;

/// The arguments of `perch import`.
#[derive(Args)]
pub struct Arguments {
    /// A file of perf sched record (perf.data), of trace-cmd record (trace.dat) or of Perfetto, or
    /// a trace as text: of trace-cmd report, or the kernel's own
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The workload to write
    #[arg(long, short, value_name = "WORKLOAD")]
    output: PathBuf,
    /// The machine that was recorded, by name or TOML file: the work of its slower CPUs is scaled
    /// by their capacities [default: all CPUs are alike]
    #[arg(long, short, value_name = "MACHINE")]
    machine: Option<String>,
    /// Keep only commands with this name; * stands for anything; again for more
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Leave commands with this name out; perf and trace-cmd are left out unless --only is given
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// How to write the summary: table or json
    #[arg(long, default_value = "table", value_name = "FORMAT", value_parser = ["table", "json"])]
    format: String,
}

/// Carries out `perch import`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let file = arguments.file.display();
    let capacities = match &arguments.machine {
        Some(machine) => {
            let machine = perch_machine::resolve(machine)?;
            let topology = Topology::new(&machine);
            (0..machine.cpus.len()).map(|cpu| topology.capacity(cpu)).collect()
        }
        None => Vec::new(),
    };
    let options = Options { capacities, only: arguments.only, without: arguments.without };
    let meter = Meter::new(&file.to_string(), Unit::Bytes, false);
    let tell = |done, total| meter.advance(done, total);
    let imported = perch_import::import_telling(&arguments.file, &options, &tell);
    drop(meter);
    let (script, summary) = imported.map_err(|error| match error {
        ImportError::File(why) => Failure::input(why.to_string()),
        wrong => Failure::input(format!("{file}: {wrong}")),
    })?;
    let output = &arguments.output;
    write(&script, output)
        .map_err(|error| Failure::run(format!("{}: cannot write: {error}", output.display())))?;
    if arguments.format == "json" {
        return emit(&json(&summary));
    }
    emit(&words(&summary, output))
}

/// Writes the file: whole, or not at all.
fn write(script: &Script, path: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::new(Fresh::create(path)?);
    script.write(&mut out)?;
    out.into_inner()?.keep()
}

fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// The tasks by their command: the ones that ran longest, the rest in one row, and all of them.
fn commands(summary: &Summary) -> Grid {
    let mut grid = Grid::new(&["command"], &["tasks", "CPU ms", "wakes others"]);
    let row = |name: &str, tasks: u64, cpu_ns, wakes: u64| {
        vec![name.to_string(), tasks.to_string(), ms(cpu_ns), wakes.to_string()]
    };
    let longest = summary.kept.longest();
    let (shown, others) = longest.split_at(longest.len().min(NAMES));
    for names in shown {
        grid.row(row(&names.name, names.tasks, names.cpu_ns, names.wakes));
    }
    if !others.is_empty() {
        let sum = |of: fn(&perch_import::TaskSummary) -> u64| {
            others.iter().map(|names| of(names)).sum::<u64>()
        };
        let name = format!("{} more", others.len());
        grid.row(row(&name, sum(|n| n.tasks), sum(|n| n.cpu_ns), sum(|n| n.wakes)));
    }
    grid.row(row("all", summary.tasks, summary.cpu_ns, summary.wakes));
    grid
}

/// The tasks that ran and that the script leaves out, if there are any.
fn left_out(summary: &Summary) -> Option<String> {
    let names: Vec<&str> = summary
        .left_out
        .longest()
        .iter()
        .filter(|n| n.cpu_ns > 0)
        .map(|n| n.name.as_str())
        .collect();
    if names.is_empty() {
        return None;
    }
    let (named, more) = names.split_at(names.len().min(6));
    let more = match more.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "left out: {}{more}, {} ms; {} wake-ups by them are sleeps, {} of them are gone",
        named.join(", "),
        ms(summary.left_out.cpu_ns()),
        summary.wakes_in,
        summary.wakes_out
    ))
}

/// The words that go to stderr, for a person.
fn words(summary: &Summary, output: &Path) -> String {
    let grid = commands(summary);
    let kernel =
        summary.kernel.as_ref().map_or(String::new(), |release| format!(" on Linux {release}"));
    let cpus = summary.cpus.map_or(String::new(), |cpus| format!(", {cpus} CPUs"));
    let mut text = format!(
        "recorded by {}{kernel}{cpus}: {} ms\n{}",
        summary.tool,
        ms(summary.span_ns),
        grid.text()
    );
    let mut line = |text_of: String| {
        text.push_str(&text_of);
        text.push('\n');
    };
    line(format!(
        "wake-ups: {} by tasks ({} of a task that was awake), {} by timers and devices ({} in an interrupt that hit a task)",
        summary.wakes, summary.early, summary.alarms, summary.interrupts
    ));
    if summary.periodic > 0 {
        line(format!("periodic: {} tasks keep the period of their timer", summary.periodic));
    }
    if summary.softirqs > 0 {
        line(format!("softirqs: {} wake-ups in one on top of a task", summary.softirqs));
    }
    if summary.work_ns != summary.cpu_ns {
        line(format!("work: {} ms at full capacity", ms(summary.work_ns)));
    }
    if summary.changed_prio > 0 {
        line(format!(
            "priorities: {} tasks changed theirs; the one with which they ran longest counts",
            summary.changed_prio
        ));
    }
    if let Some(text) = left_out(summary) {
        line(text);
    }
    let unknown = if summary.processes_known {
        "affinities, what messages weigh"
    } else {
        "affinities, what messages weigh, which tasks are threads of one process"
    };
    line(format!("not in the events: {unknown}"));
    if let Some(text) = summary.left() {
        line(text);
    }
    for warning in summary.warnings() {
        line(format!("warning: {warning}"));
    }
    // Twice the recorded time, in whole seconds; a machine that is as fast as the recorded one is
    // done by then.
    let seconds = (2 * summary.span_ns).div_ceil(1_000_000_000).max(1);
    line(format!(
        "try: perch compare -m MACHINE -w {NAME}:{} --measure {seconds}s --arm off:cluster=off",
        output.display()
    ));
    text
}
