// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch bench replay` measures the number of wake-ups of a recording that a core replays in a
//! second.

use clap::Args;
use perch_policy::{Era, Mode, Modes, Policy, Topology};
use perch_record::format::Reader;
use perch_record::synthetic::{Synthetic, synthetic};
use perch_report::{Align, Format, Grid};
use serde::Serialize;

use super::row::{cpu_ns, machine};
use crate::meter::{Meter, Unit};
use crate::output::{Failure, emit_as};

/// The number of times that each replay is measured. The least CPU time counts, because other work
/// on the machine only adds to it.
const REPETITIONS: usize = 5;

/// The arguments of `perch bench replay`.
#[derive(Args)]
pub struct Arguments {
    /// Sizes to measure, in CPUs
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "8,64,256"
    )]
    cpus: Vec<usize>,
    /// Wake-ups in each recording
    #[arg(long, value_name = "N", default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1000..=10_000_000))]
    wake_ups: u64,
    /// How to write the result: table, markdown, csv or json
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// One size.
#[derive(Debug, Serialize)]
struct Row {
    cpus: usize,
    wake_ups: u64,
    bytes_per_wake_up: f64,
    /// Wake-ups replayed in a second of CPU time by the model alone.
    replay_per_cpu_s: f64,
    /// The same by the model and a policy to compare it with.
    compare_per_cpu_s: f64,
}

/// Carries out `perch bench replay`.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let meter = Meter::new("bench replay", Unit::Each, false);
    let mut rows = Vec::new();
    for &cpus in &arguments.cpus {
        rows.push(measure(cpus, arguments.wake_ups)?);
        meter.advance(rows.len() as u64, arguments.cpus.len() as u64);
    }
    drop(meter);
    let text = match arguments.format {
        Format::Table => grid(&rows).text(),
        Format::Markdown => grid(&rows).markdown(),
        Format::Csv => csv(&rows),
        Format::Json => {
            let text = serde_json::to_string_pretty(&rows);
            text.expect("the rows have only text keys") + "\n"
        }
    };
    emit_as(arguments.format, &text)
}

fn measure(cpus: usize, wake_ups: u64) -> Result<Row, Failure> {
    let machine = machine(cpus)?;
    let topology = Topology::new(&machine);
    let upstream = Modes {
        cluster: Mode::Upstream,
        capacity: Mode::Upstream,
        ..Modes::default()
    };
    let model = Policy::new(Era::V7_2, upstream);
    let other = Policy::new(
        Era::V7_2,
        Modes {
            cluster: Mode::Perch,
            ..upstream
        },
    );
    let what = Synthetic {
        seed: 1,
        wake_ups,
        every_ns: 10_000,
        busy_pct: 70,
        real_time_every: 0,
    };
    let failed = |error: String| Failure::run(format!("{cpus} CPUs: {error}"));
    let mut file = Vec::new();
    synthetic(&mut file, &machine, model, what).map_err(|e| failed(e.to_string()))?;
    let rate = |other: Option<Policy>| -> Result<f64, Failure> {
        let mut least = u64::MAX;
        for _ in 0..REPETITIONS {
            let began = cpu_ns();
            let outcome = Reader::new(&file[..])
                .and_then(|mut reader| {
                    perch_record::replay(&mut reader, &topology, model, other, 1)
                })
                .map_err(|e| failed(e.to_string()))?;
            least = least.min(cpu_ns() - began);
            if outcome.model.same != wake_ups {
                return Err(failed("the model does not repeat itself".to_string()));
            }
        }
        Ok(wake_ups as f64 * 1e9 / least.max(1) as f64)
    };
    Ok(Row {
        cpus,
        wake_ups,
        bytes_per_wake_up: file.len() as f64 / wake_ups as f64,
        replay_per_cpu_s: rate(None)?,
        compare_per_cpu_s: rate(Some(other))?,
    })
}

fn grid(rows: &[Row]) -> Grid {
    let mut grid = Grid::default();
    for name in [
        "CPUs",
        "bytes a wake-up",
        "replayed/CPU s",
        "compared/CPU s",
    ] {
        grid.column("", name, Align::Right);
    }
    for row in rows {
        grid.row(vec![
            row.cpus.to_string(),
            format!("{:.1}", row.bytes_per_wake_up),
            format!("{:.2} M", row.replay_per_cpu_s / 1e6),
            format!("{:.2} M", row.compare_per_cpu_s / 1e6),
        ]);
    }
    grid
}

fn csv(rows: &[Row]) -> String {
    let mut out =
        "cpus,wake_ups,bytes_per_wake_up,replay_per_cpu_s,compare_per_cpu_s\n".to_string();
    for row in rows {
        out += &format!(
            "{},{},{},{},{}\n",
            row.cpus,
            row.wake_ups,
            row.bytes_per_wake_up,
            row.replay_per_cpu_s,
            row.compare_per_cpu_s
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test holds no figure, only that the benchmark replays every wake-up.
    #[test]
    fn every_size_is_replayed() {
        for cpus in [8, 64] {
            let row = measure(cpus, 2_000).unwrap_or_else(|failure| panic!("{}", failure.message));
            assert!(
                row.bytes_per_wake_up > 10.0 && row.replay_per_cpu_s > 0.0,
                "{row:?}"
            );
            assert!(csv(&[row]).lines().count() == 2);
        }
    }
}
