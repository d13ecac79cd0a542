// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch bench` measures the cost of the simulator, each row in a process of its own, so that the
//! peak memory is the row's alone; with `--instructions`, in instructions and not in time. With `--lab` it measures the cost of a decision of the live
//! scheduler. `perch bench replay` measures the speed at which recordings are replayed.

mod instructions;
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
use row::{How, Window};

pub use lab::{GUEST, GuestArguments, run_in_guest};
pub use row::{NAME as ROW, RowArguments, run_row};

/// Sizes at which the simulator is measured.
const SIZES: [usize; 6] = [8, 64, 128, 256, 1024, 4096];
/// Size at which the benchmark compares the memory of two simulated durations.
const MEMORY_SIZE: usize = 128;
/// The shorter of them, in nanoseconds of simulated time; the other is [`MEMORY_FACTOR`] times it.
const MEMORY_NS: u64 = 500_000_000;
const MEMORY_FACTOR: u64 = 4;

/// A load that is measured.
#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    workload: &'static str,
    window: Window,
    /// The pairs of tasks that wake each other in turn. Their work is round trips, as each simulator has its
    /// own time for a switch, so that a simulated second of one holds more of them than one of the
    /// other. The work of a load without pairs is simulated seconds.
    pairs: Option<usize>,
}

/// Two tasks a CPU that run for about 1 ms and sleep for about 1.2 ms.
const RUN_SLEEP: Load = Load {
    name: "run/sleep, 2 tasks a CPU",
    workload: "runsleep:tasks=2/cpu,run_us=1000,sleep_us=1200",
    window: row::RUN_SLEEP_WINDOW,
    pairs: None,
};

/// Two tasks that wake each other in turn, 64 times. It has about 300 times as many events in a
/// simulated second as run/sleep on as many CPUs, and the peer keeps each of its events in memory,
/// so the window is short.
const PING_PONG: Load = Load {
    name: "ping-pong, 64 pairs",
    workload: "pipe:pairs=64",
    window: Window {
        warmup_ns: 20_000_000,
        window_ns: 20_000_000,
    },
    pairs: Some(64),
};
/// CPUs of the machine that ping-pong runs on.
const PING_PONG_CPUS: usize = 64;

/// The arguments of `perch bench`.
#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    what: Option<What>,
    /// Sizes to measure, in CPUs: 1 to 32, multiples of 32 to 128, multiples of 128 beyond
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<usize>,
    /// CPU seconds to spend on a row, about; but every window is measured twice or more
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    seconds: f64,
    /// Also run another simulator on run/sleep of up to 256 CPUs and on ping-pong, in turns, and say
    /// how much faster perch is: scxsim of github.com/sched-ext/scx, branch simulator.v3
    #[arg(long, value_name = "SCXSIM")]
    peer: Option<PathBuf>,
    /// Count instructions and cache misses an event instead of time, with valgrind's callgrind, which
    /// must be installed
    #[arg(long, conflicts_with_all = ["lab", "peer", "seconds"])]
    instructions: bool,
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
    /// Length of the window.
    simulated_s: f64,
    /// The least CPU time of the window.
    cpu_s: f64,
    /// The number of times that the window was measured.
    repetitions: u32,
    events: u64,
    events_per_cpu_s: f64,
    ns_per_event: f64,
    simulated_s_per_cpu_s: f64,
    /// Of ping-pong.
    round_trips_per_cpu_s: Option<f64>,
    /// Absent where the system does not say.
    peak_rss_kib: Option<u64>,
    /// The peer, with `--peer`.
    peer: Option<Beside>,
}

impl Row {
    /// Work per CPU second, in the load's unit.
    fn work_per_cpu_s(&self) -> f64 {
        self.round_trips_per_cpu_s
            .unwrap_or(self.simulated_s_per_cpu_s)
    }
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
    if arguments.instructions {
        return instructions::run(&arguments.cpus, arguments.format);
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
    let meter = Meter::new("bench", Unit::Each, false);
    let total = sizes.len() as u64 + 3;
    let mut rows = Vec::new();
    let sized = sizes.iter().map(|&size| (RUN_SLEEP, size));
    for (load, size) in sized.chain([(PING_PONG, PING_PONG_CPUS)]) {
        rows.push(match &peer {
            Some(peer) if size <= peer::MOST_CPUS => beside(peer, &load, size, arguments.seconds)?,
            _ => measure(&load, size, load.window, How::Least(arguments.seconds))?,
        });
        meter.advance(rows.len() as u64, total);
    }
    let mut memory = Vec::new();
    for factor in [1, MEMORY_FACTOR] {
        let window = Window {
            window_ns: factor * MEMORY_NS,
            ..RUN_SLEEP.window
        };
        memory.push(measure(&RUN_SLEEP, MEMORY_SIZE, window, How::Once)?);
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

fn measure(load: &Load, cpus: usize, window: Window, how: How) -> Result<Row, Failure> {
    let measured = row::in_child(cpus, load.workload, window, how)?;
    let (simulated_s, cpu_s) = (
        measured.simulated_ns as f64 / 1e9,
        measured.cpu_ns as f64 / 1e9,
    );
    Ok(Row {
        load: load.name.to_string(),
        cpus,
        simulated_s,
        cpu_s,
        repetitions: measured.repetitions,
        events: measured.events,
        events_per_cpu_s: measured.events as f64 / cpu_s,
        ns_per_event: measured.cpu_ns as f64 / measured.events.max(1) as f64,
        simulated_s_per_cpu_s: simulated_s / cpu_s,
        round_trips_per_cpu_s: load.pairs.map(|_| measured.counted as f64 / cpu_s),
        peak_rss_kib: measured.peak_rss_kib,
        peer: None,
    })
}

/// Measures a load in turns with the peer. The row's own figures are those of perch's median turn, as
/// the peer's are.
fn beside(peer: &Peer, load: &Load, cpus: usize, seconds: f64) -> Result<Row, Failure> {
    let workload = peer.workload(load, cpus)?;
    let (mut rows, mut theirs) = (Vec::new(), [0.0; peer::TURNS]);
    for rate in &mut theirs {
        rows.push(measure(load, cpus, load.window, How::Least(seconds))?);
        *rate = workload.rate(load.window, seconds)?;
    }
    Ok(median(rows, theirs))
}

/// The turn of perch's that is the median, beside the peer.
fn median(mut rows: Vec<Row>, theirs: [f64; peer::TURNS]) -> Row {
    let ours = std::array::from_fn(|turn| rows[turn].work_per_cpu_s());
    rows.sort_by(|a, b| a.work_per_cpu_s().total_cmp(&b.work_per_cpu_s()));
    Row {
        peer: Some(Beside::of(ours, theirs)),
        ..rows.swap_remove(peer::TURNS / 2)
    }
}

fn table(result: &Measurements) -> String {
    let mebibytes = |row: &Row| {
        row.peak_rss_kib.map_or("?".to_string(), |kib| {
            format!("{:.1} MiB", kib as f64 / 1024.0)
        })
    };
    // Without a peer there is nothing to compare with, and no column for it.
    let has_peer = result.rows.iter().any(|row| row.peer.is_some());
    let mut grid = Grid::default();
    grid.column("", "load", Align::Left);
    for name in [
        "CPUs",
        "events/CPU s",
        "ns/event",
        "simulated s/CPU s",
        "round trips/CPU s",
    ] {
        grid.column("", name, Align::Right);
    }
    if has_peer {
        grid.column("", "the peer's", Align::Right);
        grid.column("", "times", Align::Right);
    }
    grid.column("", "peak", Align::Right);
    let millions = |count: f64| format!("{:.3} M", count / 1e6);
    for row in &result.rows {
        let mut cells = vec![
            row.load.clone(),
            row.cpus.to_string(),
            format!("{:.2} M", row.events_per_cpu_s / 1e6),
            format!("{:.0}", row.ns_per_event),
            figure(row.simulated_s_per_cpu_s),
            row.round_trips_per_cpu_s.map_or(String::new(), millions),
        ];
        if has_peer {
            let theirs = row.peer.map(|peer| match row.round_trips_per_cpu_s {
                Some(_) => millions(peer.work_per_cpu_s),
                None => figure(peer.work_per_cpu_s),
            });
            let times = row.peer.map(|peer| {
                let [least, median, most] = peer.times;
                format!("{median:.2} ({least:.2} to {most:.2})")
            });
            cells.extend([theirs.unwrap_or_default(), times.unwrap_or_default()]);
        }
        cells.push(mebibytes(row));
        grid.row(cells);
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
    let ms = |ns: u64| ns / 1_000_000;
    let span = |window: Window| {
        let end_ns = window.warmup_ns + window.window_ns;
        format!("{} to {} ms", ms(window.warmup_ns), ms(end_ns))
    };
    let compared = match has_peer {
        true => {
            "the peer's, and times: simulated seconds of run/sleep and round trips of ping-pong, for \
             a CPU second;\nthe median turn of both, and of three turns the median ratio, the least \
             and the most\n"
        }
        false => "",
    };
    format!(
        "{}one thread; the least CPU time of {} of simulated time, of ping-pong {}\n{compared}\n\
         memory over simulated time\n{}",
        grid.text(),
        span(RUN_SLEEP.window),
        span(PING_PONG.window),
        memory.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(load: &Load, cpus: usize, work_per_cpu_s: f64) -> Row {
        let round_trips_per_cpu_s = load.pairs.map(|_| work_per_cpu_s);
        Row {
            load: load.name.to_string(),
            cpus,
            simulated_s: 0.5,
            cpu_s: 0.25,
            repetitions: 2,
            events: 1_000_000,
            events_per_cpu_s: 4e6,
            ns_per_event: 250.0,
            simulated_s_per_cpu_s: match round_trips_per_cpu_s {
                Some(_) => 0.1,
                None => work_per_cpu_s,
            },
            round_trips_per_cpu_s,
            peak_rss_kib: Some(8192),
            peer: None,
        }
    }

    fn text(rows: Vec<Row>) -> String {
        let memory = vec![row(&RUN_SLEEP, MEMORY_SIZE, 2.0)];
        table(&Measurements { rows, memory })
    }

    #[test]
    fn median_turn_stands_beside_median_peer() {
        let turns = [30.0, 10.0, 20.0].map(|work| row(&RUN_SLEEP, 8, work));
        let row = median(turns.into(), [10.0, 5.0, 4.0]);
        assert_eq!(row.simulated_s_per_cpu_s, 20.0);
        let beside = row.peer.unwrap();
        assert_eq!(beside.work_per_cpu_s, 5.0);
        assert_eq!(beside.times, [2.0, 3.0, 5.0]);
    }

    #[test]
    fn peer_columns_need_a_peer() {
        let rows = || vec![row(&RUN_SLEEP, 1024, 2.0), row(&PING_PONG, 64, 1_234_567.0)];
        let alone = text(rows());
        assert!(!alone.contains("times"), "{alone}");
        let mut rows = rows();
        rows[1] = median(
            [3e6, 1e6, 2e6].map(|work| row(&PING_PONG, 64, work)).into(),
            [1e6; peer::TURNS],
        );
        let beside = text(rows);
        let lines: Vec<&str> = beside.lines().collect();
        assert!(
            lines[0].contains("round trips/CPU s  the peer's"),
            "{beside}"
        );
        // The peer has no figure for a size that it doesn't run.
        let words: Vec<&str> = lines[1].split_whitespace().collect();
        assert!(words.ends_with(&["250", "2.000", "8.0", "MiB"]), "{beside}");
        assert!(
            lines[2].contains("2.000 M     1.000 M  2.00 (1.00 to 3.00)  8.0 MiB"),
            "{beside}"
        );
        assert!(
            beside.contains("50 to 550 ms") && beside.contains("20 to 40 ms"),
            "{beside}"
        );
    }
}
