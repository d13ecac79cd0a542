// SPDX-License-Identifier: GPL-2.0-or-later
//! Measures the time that this machine takes to raise, lower and read the counters of overloaded CPUs
//! (policy/include/perch/overload.h), in each layout, by threads that are pinned as far apart as the
//! machine allows. docs/performance.md has an output and what it shows.

mod measure;
mod memory;
mod places;
mod table;

use std::error::Error;

use clap::Parser;
use perch_policy::{Layout, Memory, OutOfMemory, Overload, Topology};

use measure::{Load, Span, Sums};
use places::Places;

/// The number of times that each load is measured; the loads also run once before that to warm up.
const REPETITIONS: usize = 7;

/// The least share of its CPUs' time that a measurement needs. Below it other programs had the
/// CPUs, and threads that should have met at a line did not.
const UNDISTURBED: f64 = 0.95;

/// The error of a thread or of the whole measurement.
type Failure = Box<dyn Error + Send + Sync>;

/// Measures the cost of the counters of overloaded CPUs on this machine, in each layout.
#[derive(Parser)]
struct Arguments {
    /// Numbers of threads to measure with [default: 1, 2, 4, … and all the CPUs]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    threads: Vec<usize>,
    /// Seconds to spend on a row, about
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    seconds: f64,
    /// Treat the CPUs as this many nodes, whatever the machine says; the memory stays where it is
    #[arg(long, value_name = "N")]
    nodes: Option<usize>,
}

/// One number of threads in one layout.
struct Row {
    threads: usize,
    layout: &'static str,
    /// Counters of the whole machine.
    counters: usize,
    /// Nanoseconds for raising and lowering the CPU's own counter, while all other threads do the
    /// same.
    update: Figure,
    /// Nanoseconds for a reading, while all other threads read too.
    read: Figure,
    /// Nanoseconds for raising and lowering, while half of the threads read; `None` with one
    /// thread.
    update_beside_readers: Option<Figure>,
    /// Nanoseconds for a reading, while half of the threads raise and lower.
    read_beside_writers: Option<Figure>,
    /// Nanoseconds for raising, lowering and reading in turn, as the real-time class does around a
    /// switch, while all other threads do the same.
    switch: Figure,
}

/// Nanoseconds of CPU time for an operation, over the repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Figure {
    median: f64,
    min: f64,
    max: f64,
}

impl Figure {
    /// The figure of these measurements; `None` without any.
    fn of(mut nanoseconds: Vec<f64>) -> Option<Figure> {
        nanoseconds.sort_by(f64::total_cmp);
        let (&min, &max) = (nanoseconds.first()?, nanoseconds.last()?);
        let half = nanoseconds.len() / 2;
        let median = match nanoseconds.len() % 2 {
            1 => nanoseconds[half],
            _ => (nanoseconds[half - 1] + nanoseconds[half]) / 2.0,
        };
        Some(Figure { median, min, max })
    }
}

/// All that was measured.
struct Measurements {
    machine: String,
    cpus: usize,
    llcs: usize,
    nodes: usize,
    rows: Vec<Row>,
    /// Notes that a reader of the figures has to know.
    notes: Vec<String>,
}

fn main() -> Result<(), Failure> {
    let result = measure(&Arguments::parse())?;
    print!("{}", table::text(&result));
    Ok(())
}

fn measure(arguments: &Arguments) -> Result<Measurements, Failure> {
    if !(arguments.seconds > 0.0 && arguments.seconds <= 600.0) {
        return Err("--seconds: expected more than 0 and at most 600".into());
    }
    if arguments.threads.contains(&0) {
        return Err("--threads 0: expected 1 or more".into());
    }
    let places = Places::here(arguments.nodes)?;
    let (ladder, too_many) = places.ladder(&arguments.threads);
    if ladder.is_empty() {
        return Err(format!(
            "--threads: expected 1 to {}, the CPUs that this program may use here: each thread \
             needs one of its own",
            places.cpus.len()
        )
        .into());
    }
    let span = Span::of_row(arguments.seconds, REPETITIONS);
    let (mut rows, mut sums) = (Vec::new(), Sums::default());
    for &threads in &ladder {
        for layout in Layout::ALL {
            rows.push(row(&places, threads, layout, span, &mut sums)?);
        }
    }
    let mut notes = places.notes(&too_many);
    notes.extend(memory_note(&places)?);
    if sums.undisturbed() < UNDISTURBED {
        notes.push(format!(
            "other programs ran too: the threads had {:.0} % of their CPUs' time, and met less \
             often than they would have",
            100.0 * sums.undisturbed()
        ));
    }
    Ok(Measurements {
        machine: places.name.clone(),
        cpus: places.cpus.len(),
        llcs: places.machine.declared_llcs(),
        nodes: places.machine.nodes(),
        rows,
        notes,
    })
}

/// The counters of a layout, in memory laid out as by the kernel's allocator.
fn counters(places: &Places, layout: Layout, topology: &Topology) -> Result<Overload, Failure> {
    let memory: Box<dyn Memory> = Box::new(match layout {
        Layout::Shared => places.slabs().table_apart(),
        _ => places.slabs(),
    });
    // Only mode perch has checked reads, and only mode perch has layouts with padding.
    Overload::new_in(layout, layout.padded(), topology, memory)
        .map_err(|error: OutOfMemory| error.to_string().into())
}

fn row(
    places: &Places,
    threads: usize,
    layout: Layout,
    span: Span,
    sums: &mut Sums,
) -> Result<Row, Failure> {
    let topology = Topology::new(&places.machine);
    let overload = counters(places, layout, &topology)?;
    let cpus = &places.cpus[..threads];
    let mut measure = |load| -> Result<[Option<Figure>; 2], Failure> {
        let mut found = [Vec::new(), Vec::new()];
        for repetition in 0..=REPETITIONS {
            let ran = measure::once(&overload, cpus, load, span)?;
            // The first repetition warms up and does not count.
            for (kind, costs) in found.iter_mut().enumerate().filter(|_| repetition > 0) {
                costs.extend(ran.ns_per_operation(kind));
            }
            sums.add(&ran);
        }
        Ok(found.map(Figure::of))
    };
    let all = |found: Option<Figure>| found.expect("a load that every thread does");
    let [update, _] = measure(Load::Update)?;
    let [read, _] = measure(Load::Read)?;
    let [switch, _] = measure(Load::Switch)?;
    let [update_beside_readers, read_beside_writers] = match threads {
        1 => [None, None],
        _ => measure(Load::Both)?,
    };
    Ok(Row {
        threads,
        layout: layout.name(),
        counters: overload.counters(),
        update: all(update),
        read: all(read),
        update_beside_readers,
        read_beside_writers,
        switch: all(switch),
    })
}

/// The note that tells on which nodes the counters lie.
fn memory_note(places: &Places) -> Result<Option<String>, Failure> {
    if places.real_nodes < 2 || places.split {
        return Ok(None);
    }
    let strays = (places.strays())
        .map_err(|OutOfMemory| "no memory to look where counters of a node would lie")?;
    let what = "a node's counters lie in memory that a thread on that node touched first";
    Ok(Some(match strays.as_slice() {
        [] => format!("{what}; the kernel says that it is there"),
        nodes => {
            let names: Vec<String> = nodes.iter().map(usize::to_string).collect();
            format!(
                "{what}, but the kernel says that it is elsewhere for node {}",
                names.join(", ")
            )
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_the_median_and_the_spread() {
        assert_eq!(Figure::of(Vec::new()), None);
        let odd = Figure::of(vec![3.0, 9.0, 1.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max), (3.0, 1.0, 9.0));
        let even = Figure::of(vec![4.0, 1.0, 2.0, 9.0]).unwrap();
        assert_eq!((even.median, even.min, even.max), (3.0, 1.0, 9.0));
    }

    #[test]
    fn every_layout_is_measured_with_every_number_of_threads() {
        let arguments = Arguments::parse_from(["overload", "--seconds", "0.02"]);
        let result = measure(&arguments).unwrap();
        let ladder = Places::here(None).unwrap().ladder(&[]).0;
        let expected: Vec<(usize, &str)> = (ladder.iter())
            .flat_map(|&threads| Layout::ALL.map(|layout| (threads, layout.name())))
            .collect();
        let found = result.rows.iter().map(|row| (row.threads, row.layout));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        for row in &result.rows {
            let both = [row.update_beside_readers, row.read_beside_writers];
            assert!(both.iter().all(|load| load.is_some() == (row.threads > 1)));
            let alone = [row.update, row.read, row.switch];
            for Figure { median, min, max } in alone.into_iter().chain(both.into_iter().flatten()) {
                assert!(0.0 < min && min <= median && median <= max);
            }
            let counters = match row.layout {
                "shared" => 1,
                "llc-padded" => result.llcs,
                _ => result.nodes,
            };
            assert_eq!(row.counters, counters, "{}", row.layout);
        }
    }

    #[test]
    fn measurements_that_make_no_sense_are_refused() {
        for (option, words) in [
            ("--seconds=0", "more than 0 and at most 600"),
            ("--seconds=NaN", "more than 0 and at most 600"),
            ("--seconds=601", "more than 0 and at most 600"),
            ("--threads=2,0", "--threads 0"),
            ("--threads=9000", "expected 1 to"),
            ("--nodes=0", "the cores of this machine"),
            ("--nodes=9000", "the cores of this machine"),
        ] {
            let error = measure(&Arguments::parse_from(["overload", option])).err();
            let error = error.expect(option).to_string();
            assert!(error.contains(words), "{option}: {error}");
        }
    }
}
