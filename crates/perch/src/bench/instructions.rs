// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch bench --instructions` counts what an event takes, in instructions and in misses of a cache
//! of fixed geometry. Other work on the host changes neither, nor does the host's processor.

use std::num::NonZero;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use perch_report::{Align, Format, Grid, figure};
use serde::Serialize;
use tempfile::TempDir;

use super::row::{self, How, Measured, Window};
use super::{Load, PING_PONG, PING_PONG_CPUS, RUN_SLEEP};
use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit};

/// Sizes at which instructions are counted.
const SIZES: [usize; 4] = [8, 64, 1024, 4096];

/// CPUs times nanoseconds of run/sleep's window: about as many events at every size, 26,000 to 35,000.
const CPU_NS: u64 = 1024 * 10_000_000;
/// The least window of run/sleep: a cycle of its tasks and more.
const LEAST_NS: u64 = 3_000_000;
/// The longest one, on a few CPUs, which have fewer events in it.
const MOST_NS: u64 = 400_000_000;
/// CPUs times nanoseconds of run/sleep's warm-up. A simulation under valgrind takes some fifty times as
/// long as without, so 4096 CPUs have two cycles of their tasks, 5 ms, and the others nine.
const WARMUP_CPU_NS: u64 = 4096 * 5_000_000;
const MOST_WARMUP_NS: u64 = 20_000_000;
/// The window of ping-pong, about 22,000 events. Its tasks all begin within the first millisecond.
const PING_PONG_WINDOW: Window = Window {
    warmup_ns: 1_500_000,
    window_ns: 500_000,
};

/// The caches that valgrind simulates: bytes, ways, bytes of a line. The first level is that of most
/// processors of the last ten years; the last one is the second level of a server's core, which is the
/// last that it has to itself.
const CACHES: [&str; 3] = ["--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];

/// The program that counts.
const VALGRIND: &str = "valgrind";

/// What callgrind counted in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Totals {
    instructions: u64,
    /// Instructions that the first level did not have.
    i1_misses: u64,
    /// Data that the first level did not have.
    d1_misses: u64,
    /// Instructions and data that the last level did not have.
    ll_misses: u64,
}

/// One line of the result: the window alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    load: String,
    cpus: usize,
    warmup_ns: u64,
    window_ns: u64,
    events: u64,
    instructions_per_event: f64,
    i1_misses_per_event: f64,
    d1_misses_per_event: f64,
    ll_misses_per_event: f64,
}

/// All that was counted.
#[derive(Debug, Serialize)]
struct Counted {
    /// Whether this is a build with the checks of the tests' profile, which cost instructions.
    debug_assertions: bool,
    caches: [&'static str; 3],
    rows: Vec<Row>,
}

/// A load on a machine.
#[derive(Clone, Copy, Debug)]
struct Cell {
    load: Load,
    cpus: usize,
    window: Window,
}

impl Cell {
    fn run_sleep(cpus: usize) -> Cell {
        let window = Window {
            warmup_ns: (WARMUP_CPU_NS / cpus as u64).min(MOST_WARMUP_NS),
            window_ns: (CPU_NS / cpus as u64).clamp(LEAST_NS, MOST_NS),
        };
        Cell {
            load: RUN_SLEEP,
            cpus,
            window,
        }
    }
}

/// Carries out `perch bench --instructions` for these sizes, or the usual ones if there are none.
pub fn run(sizes: &[usize], format: Format) -> Result<(), Failure> {
    let write = match format {
        Format::Table => table,
        Format::Json => json,
        Format::Markdown | Format::Csv => {
            return Err(Failure::input(
                "--format: of instructions, expected table or json",
            ));
        }
    };
    let sizes = if sizes.is_empty() { &SIZES } else { sizes };
    for &cpus in sizes {
        row::machine(cpus)?;
    }
    let mut cells: Vec<Cell> = sizes.iter().map(|&cpus| Cell::run_sleep(cpus)).collect();
    cells.push(Cell {
        load: PING_PONG,
        cpus: PING_PONG_CPUS,
        window: PING_PONG_WINDOW,
    });
    let rows = count_all(VALGRIND.as_ref(), &cells)?;
    emit(&write(&Counted {
        debug_assertions: cfg!(debug_assertions),
        caches: CACHES,
        rows,
    }))
}

/// Counts all cells, on as many of the host's CPUs as there are: counts are no times.
fn count_all(valgrind: &Path, cells: &[Cell]) -> Result<Vec<Row>, Failure> {
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::run(format!("a folder for callgrind's files: {error}")))?;
    // Two runs for each cell: the warm-up alone, and the warm-up with the window. The largest
    // machines take longest, so they are begun first.
    let runs: Vec<(Cell, u64)> = cells
        .iter()
        .flat_map(|&cell| [row::WARMUP_ALONE_NS, cell.window.window_ns].map(|ns| (cell, ns)))
        .collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by_key(|&run| std::cmp::Reverse(runs[run].0.cpus));
    let results: Vec<Mutex<Option<Result<Count, Failure>>>> =
        runs.iter().map(|_| Mutex::default()).collect();
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let meter = Meter::new("bench --instructions", Unit::Each, false);
    let work = || {
        while let Some(&run) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (cell, window_ns) = runs[run];
            let result = count(valgrind, &folder, run, &cell, window_ns);
            if result.is_err() {
                // One failure is told; what is not begun yet would most likely fail as well.
                next.store(order.len(), Ordering::Relaxed);
            }
            *results[run].lock().expect("no thread panics") = Some(result);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            meter.advance(done as u64, order.len() as u64);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(work);
        }
    });
    let mut counts = Vec::new();
    for result in results {
        if let Some(result) = result.into_inner().expect("no thread panicked") {
            counts.push(result?);
        }
    }
    let pairs = cells.iter().zip(counts.chunks_exact(2));
    Ok(pairs
        .map(|(cell, pair)| difference(cell, &pair[0], &pair[1]))
        .collect())
}

/// One process: what callgrind counted, and the events in the process's window.
#[derive(Clone, Copy, Debug)]
struct Count {
    totals: Totals,
    events: u64,
}

/// Runs one simulation under callgrind. `run` names its file in `folder`.
fn count(
    valgrind: &Path,
    folder: &TempDir,
    run: usize,
    cell: &Cell,
    window_ns: u64,
) -> Result<Count, Failure> {
    let failed = |reason: String| {
        let (workload, cpus) = (cell.load.workload, cell.cpus);
        Failure::run(format!(
            "counting instructions of {workload} on {cpus} CPUs: {reason}"
        ))
    };
    let file = folder.path().join(format!("{run}"));
    let window = Window {
        window_ns,
        ..cell.window
    };
    let output = Command::new(valgrind)
        .args(["--tool=callgrind", "--cache-sim=yes"])
        .args(CACHES)
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(row::this()?)
        .args(row::arguments(
            cell.cpus,
            cell.load.workload,
            window,
            How::Once,
        ))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Failure::run(format!(
                "{}: no such program. perch counts instructions with valgrind's tool callgrind: \
                 install valgrind (apt-get install valgrind), then run this again",
                valgrind.display()
            )),
            _ => failed(format!("{}: {error}", valgrind.display())),
        })?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = words
            .lines()
            .filter(|line| !line.trim().is_empty())
            .collect();
        let last = lines[lines.len().saturating_sub(5)..].join("\n");
        return Err(failed(format!(
            "valgrind ended with {}; its last words:\n{last}",
            output.status
        )));
    }
    let measured: Measured = serde_json::from_slice(&output.stdout)
        .map_err(|error| failed(format!("the measurement's answer: {error}")))?;
    let text = std::fs::read_to_string(&file)
        .map_err(|error| failed(format!("callgrind's file {}: {error}", file.display())))?;
    let totals = Totals::parse(&text)
        .map_err(|reason| failed(format!("callgrind's file {}: {reason}", file.display())))?;
    Ok(Count {
        totals,
        events: measured.events,
    })
}

impl Totals {
    /// From callgrind's file: the names of what it counted after `events:`, and the sums of the
    /// whole program in that order after `totals:`. The file leaves out zeros at the end.
    fn parse(text: &str) -> Result<Totals, String> {
        let after = |key: &str| {
            let found = text.lines().find_map(|line| line.strip_prefix(key));
            found.ok_or(format!("it has no line `{key} ...`"))
        };
        let names: Vec<&str> = after("events:")?.split_whitespace().collect();
        let sums = after("totals:")?.split_whitespace().map(|word| {
            word.parse::<u64>()
                .map_err(|_| format!("`totals:` has `{word}`, expected a number"))
        });
        let sums: Vec<u64> = sums.collect::<Result<_, _>>()?;
        let sum = |wanted: &[&str]| {
            let mut sum = 0;
            for name in wanted {
                let place = names.iter().position(|known| known == name);
                let place = place.ok_or(format!("`events:` has no {name}"))?;
                sum += sums.get(place).copied().unwrap_or(0);
            }
            Ok::<u64, String>(sum)
        };
        Ok(Totals {
            instructions: sum(&["Ir"])?,
            i1_misses: sum(&["I1mr"])?,
            d1_misses: sum(&["D1mr", "D1mw"])?,
            ll_misses: sum(&["ILmr", "DLmr", "DLmw"])?,
        })
    }
}

/// The window alone: the whole run less the warm-up, whose run has one nanosecond more.
fn difference(cell: &Cell, warmup: &Count, whole: &Count) -> Row {
    let events = whole.events.saturating_sub(warmup.events);
    let per_event = |part: fn(&Totals) -> u64| {
        // More of a cache may be full after a longer run, so a difference of misses may be negative.
        let difference = part(&whole.totals) as f64 - part(&warmup.totals) as f64;
        difference / events.max(1) as f64
    };
    Row {
        load: cell.load.name.to_string(),
        cpus: cell.cpus,
        warmup_ns: cell.window.warmup_ns,
        window_ns: cell.window.window_ns,
        events,
        instructions_per_event: per_event(|totals| totals.instructions),
        i1_misses_per_event: per_event(|totals| totals.i1_misses),
        d1_misses_per_event: per_event(|totals| totals.d1_misses),
        ll_misses_per_event: per_event(|totals| totals.ll_misses),
    }
}

fn json(counted: &Counted) -> String {
    let text = serde_json::to_string_pretty(counted);
    text.expect("the result has only text keys") + "\n"
}

fn table(counted: &Counted) -> String {
    let mut grid = Grid::default();
    grid.column("", "load", Align::Left);
    for name in ["CPUs", "simulated ms", "events"] {
        grid.column("", name, Align::Right);
    }
    for name in ["instructions", "I1 misses", "D1 misses", "LL misses"] {
        grid.column("an event", name, Align::Right);
    }
    // Added to the zero that a small negative difference is rounded to, it takes away the sign.
    let misses = |count: f64| format!("{:.2}", (count * 100.0).round() / 100.0 + 0.0);
    for row in &counted.rows {
        grid.row(vec![
            row.load.clone(),
            row.cpus.to_string(),
            figure(row.window_ns as f64 / 1e6),
            row.events.to_string(),
            format!("{:.0}", row.instructions_per_event),
            misses(row.i1_misses_per_event),
            misses(row.d1_misses_per_event),
            misses(row.ll_misses_per_event),
        ]);
    }
    let build = match counted.debug_assertions {
        true => "the tests' build, with its checks and hardly optimised",
        false => "a release build",
    };
    format!(
        "instructions and cache misses an event, by callgrind, of {build}\n\n{}caches: {}; the warm-up \
         is subtracted\n",
        grid.text(),
        counted.caches.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# callgrind format\nversion: 1\npid: 7\ncmd:  perch bench-row\npart: 1\n\n\
                        desc: I1 cache: 32768 B, 64 B, 8-way associative\n\
                        positions: line\nevents: Ir Dr Dw I1mr D1mr D1mw ILmr DLmr DLmw\n\
                        summary: 1 2 3\n\nfn=(1) main\n16 400\n\n";

    #[test]
    fn totals_are_read_by_the_names_of_events() {
        let text = format!("{FILE}totals: 1000 300 200 40 30 20 4 3 2\n");
        let expected = Totals {
            instructions: 1000,
            i1_misses: 40,
            d1_misses: 50,
            ll_misses: 9,
        };
        assert_eq!(Totals::parse(&text), Ok(expected));
        // Zeros at the end are not written.
        let text = format!("{FILE}totals: 1000 300 200 40\n");
        let expected = Totals {
            d1_misses: 0,
            ll_misses: 0,
            ..expected
        };
        assert_eq!(Totals::parse(&text), Ok(expected));
    }

    #[test]
    fn file_without_totals_names_what_is_missing() {
        for (text, words) in [
            (FILE.to_string(), "no line `totals:"),
            (String::new(), "no line `events:"),
            (format!("{FILE}totals: 10 many\n"), "`many`"),
            ("events: Ir\ntotals: 10\n".to_string(), "no I1mr"),
        ] {
            let error = Totals::parse(&text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn warm_up_is_subtracted() {
        let totals = |instructions, i1_misses, d1_misses, ll_misses| Totals {
            instructions,
            i1_misses,
            d1_misses,
            ll_misses,
        };
        let warmup = Count {
            totals: totals(50_000, 300, 500, 90),
            events: 0,
        };
        let whole = Count {
            totals: totals(250_000, 500, 1_500, 80),
            events: 100,
        };
        let row = difference(&Cell::run_sleep(64), &warmup, &whole);
        let figures = [
            row.instructions_per_event,
            row.i1_misses_per_event,
            row.d1_misses_per_event,
            row.ll_misses_per_event,
        ];
        assert_eq!(figures, [2000.0, 2.0, 10.0, -0.1]);
        let text = table(&Counted {
            debug_assertions: true,
            caches: CACHES,
            rows: vec![row],
        });
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("the tests' build"), "{text}");
        let words = ["100", "2000", "2.00", "10.00", "-0.10"].join(" ");
        let row = lines[4].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(row.ends_with(&words), "{text}");
    }

    #[test]
    fn every_size_has_a_window_of_a_cycle_or_more() {
        for cpus in SIZES {
            let window = Cell::run_sleep(cpus).window;
            assert!((LEAST_NS..=MOST_NS).contains(&window.window_ns), "{cpus}");
        }
    }
}
