// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch bench` measures the cost of the simulator, each row in a process of its own, so that the
//! peak memory is the row's alone. With `--lab` it measures the cost of a decision of the live
//! scheduler. `perch bench replay` measures the speed at which recordings are replayed.

mod lab;
mod peer;
mod replay;
mod row;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use perch_report::{Align, Format, Grid, figure};
use serde::Serialize;

use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit};

use peer::{Beside, Peer};

pub use lab::{GUEST, GuestArguments, run_in_guest};
pub use row::{NAME as ROW, RowArguments, run_row};

/// Sizes at which the simulator is measured.
const SIZES: [usize; 6] = [8, 64, 128, 256, 1024, 4096];
/// Two tasks a CPU that run for about 1 ms and sleep for about 1.2 ms.
const RUN_SLEEP: &str = "runsleep:tasks=2/cpu,run_us=1000,sleep_us=1200";
/// Two tasks that wake each other in turn, 64 times.
const PIPES: &str = "pipe:pairs=64";
/// Size at which the benchmark compares the memory of two simulated durations.
const MEMORY_SIZE: usize = 128;
/// The shorter of them, in nanoseconds of simulated time; the other is [`MEMORY_FACTOR`] times it.
const MEMORY_NS: u64 = 500_000_000;
const MEMORY_FACTOR: u64 = 4;

/// The arguments of `perch bench`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Sizes to measure, in CPUs: 1 to 32, multiples of 32 to 128, multiples of 128 beyond
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// CPU seconds to spend on a row, about
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    seconds: f64,
    /// Also run another simulator on run/sleep, in turns, and say how much faster perch is: scxsim of
    /// github.com/sched-ext/scx, branch simulator.v3
    #[arg(long, value_name = "SCXSIM")]
    peer: Option<PathBuf>,
    /// How to write the result: table or json; with --lab also markdown or csv
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
    #[command(flatten)]
    lab: lab::LabArguments,
}

/// The further benchmarks.
#[derive(Subcommand)]
enum What {
    /// Measure how many wake-ups of a synthetic recording a core replays in a second
    Replay(replay::Arguments),
}

/// One line of the result.
#[derive(Debug, Serialize)]
struct Row {
    load: String,
    cpus: usize,
    simulated_s: f64,
    cpu_s: f64,
    events: u64,
    events_per_cpu_s: f64,
    ns_per_event: f64,
    simulated_s_per_cpu_s: f64,
    /// Absent where the system does not say.
    peak_rss_kib: Option<u64>,
    /// The peer, with `--peer`.
    peer: Option<Beside>,
}

/// All that `perch bench` measured.
#[derive(Debug, Serialize)]
struct Measurements {
    rows: Vec<Row>,
    /// The same load for one and for four times the simulated time.
    memory: Vec<Row>,
}

/// Carries out `perch bench`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    if let Some(What::Replay(arguments)) = &arguments.what {
        return replay::run(arguments);
    }
    if arguments.lab.is_asked_for() {
        return lab::run(&arguments.lab, &arguments.cpus, arguments.format);
    }
    let json = match arguments.format {
        Format::Table => false,
        Format::Json => true,
        Format::Markdown | Format::Csv => {
            return Err(Failure::input(
                "--format: of the simulator, expected table or json",
            ));
        }
    };
    if !(arguments.seconds > 0.0 && arguments.seconds <= 600.0) {
        return Err(Failure::input(
            "--seconds: expected more than 0 and at most 600",
        ));
    }
    let sizes = if arguments.cpus.is_empty() {
        SIZES.to_vec()
    } else {
        arguments.cpus
    };
    for &size in &sizes {
        row::machine(size)?;
    }
    let peer = arguments.peer.as_deref().map(Peer::new).transpose()?;
    let budget = row::Length::CpuSeconds(arguments.seconds);
    let meter = Meter::new("bench", Unit::Each, false);
    let total = sizes.len() as u64 + 3;
    let mut rows = Vec::new();
    for &size in &sizes {
        let load = "run/sleep, 2 tasks a CPU";
        rows.push(match &peer {
            None => measure(load, size, RUN_SLEEP, budget)?,
            Some(peer) => beside(peer, load, size, arguments.seconds)?,
        });
        meter.advance(rows.len() as u64, total);
    }
    rows.push(measure("ping-pong, 64 pairs", 64, PIPES, budget)?);
    meter.advance(rows.len() as u64, total);
    let mut memory = Vec::new();
    for factor in [1, MEMORY_FACTOR] {
        let length = row::Length::SimulatedNs(factor * MEMORY_NS);
        memory.push(measure(
            "run/sleep, 2 tasks a CPU",
            MEMORY_SIZE,
            RUN_SLEEP,
            length,
        )?);
        meter.advance((rows.len() + memory.len()) as u64, total);
    }
    drop(meter);
    let result = Measurements { rows, memory };
    if json {
        let text = serde_json::to_string_pretty(&result);
        return emit(&(text.expect("the result has only text keys") + "\n"));
    }
    emit(&table(&result))
}

fn measure(load: &str, cpus: usize, workload: &str, length: row::Length) -> Result<Row, Failure> {
    let measured = row::in_child(cpus, workload, length)?;
    let (simulated_s, cpu_s) = (
        measured.simulated_ns as f64 / 1e9,
        measured.cpu_ns as f64 / 1e9,
    );
    Ok(Row {
        load: load.to_string(),
        cpus,
        simulated_s,
        cpu_s,
        events: measured.events,
        events_per_cpu_s: measured.events as f64 / cpu_s,
        ns_per_event: measured.cpu_ns as f64 / measured.events.max(1) as f64,
        simulated_s_per_cpu_s: simulated_s / cpu_s,
        peak_rss_kib: measured.peak_rss_kib,
        peer: None,
    })
}

/// Measures run/sleep in turns with the peer. The row's own figures are of the last turn.
fn beside(peer: &Peer, load: &str, cpus: usize, seconds: f64) -> Result<Row, Failure> {
    let (mut ours, mut theirs) = ([0.0; peer::TURNS], [0.0; peer::TURNS]);
    let mut last = None;
    for turn in 0..peer::TURNS {
        let row = measure(load, cpus, RUN_SLEEP, row::Length::CpuSeconds(seconds))?;
        ours[turn] = row.simulated_s_per_cpu_s;
        theirs[turn] = peer.rate(cpus, seconds)?;
        last = Some(row);
    }
    Ok(Row {
        peer: Some(Beside::of(ours, theirs)),
        ..last.expect("there was a turn")
    })
}

fn table(result: &Measurements) -> String {
    let mebibytes = |row: &Row| {
        row.peak_rss_kib.map_or("?".to_string(), |kib| {
            format!("{:.1} MiB", kib as f64 / 1024.0)
        })
    };
    let mut grid = Grid::default();
    grid.column("", "load", Align::Left);
    for name in [
        "CPUs",
        "events/CPU s",
        "ns/event",
        "simulated s/CPU s",
        "peer",
        "times",
        "peak",
    ] {
        grid.column("", name, Align::Right);
    }
    for row in &result.rows {
        let times = row.peer.map(|peer| {
            let [least, median, most] = peer.times;
            format!("{median:.2} ({least:.2} to {most:.2})")
        });
        grid.row(vec![
            row.load.clone(),
            row.cpus.to_string(),
            format!("{:.2} M", row.events_per_cpu_s / 1e6),
            format!("{:.0}", row.ns_per_event),
            figure(row.simulated_s_per_cpu_s),
            row.peer
                .map_or(String::new(), |peer| figure(peer.simulated_s_per_cpu_s)),
            times.unwrap_or_default(),
            mebibytes(row),
        ]);
    }
    let mut memory = Grid::default();
    memory.column("", "load", Align::Left);
    for name in ["CPUs", "simulated s", "peak"] {
        memory.column("", name, Align::Right);
    }
    for row in &result.memory {
        let cells = [
            row.cpus.to_string(),
            figure(row.simulated_s),
            mebibytes(row),
        ];
        memory.row([row.load.clone()].into_iter().chain(cells).collect());
    }
    format!(
        "{}one thread; without the first {} ms of simulated time, in which the tasks are forked\n\n\
         memory over simulated time\n{}",
        grid.text(),
        row::WARMUP_NS / 1_000_000,
        memory.text()
    )
}
