// SPDX-License-Identifier: GPL-2.0-only
//! The experiment format: TOML in, a checked [`Experiment`] out. docs/experiments.md describes
//! it; what is refused here names the file, the line, the key and what was expected.

use std::path::Path;
use std::sync::Arc;

use perch_machine::Machine;
use perch_sim::workload::Workload;
use serde::Deserialize;
use toml::Spanned;

use crate::error::{ExperimentError, Source};
use crate::model::{Arm, BASELINE, Calibration, Cell, Effort, Experiment, PATCHED};
use crate::published;

/// Ticks per second that Linux can be configured with lie in this range.
const HZ: std::ops::RangeInclusive<u32> = 100..=1000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    name: Spanned<String>,
    title: String,
    source: String,
    machine: Spanned<String>,
    era: Spanned<String>,
    hz: Spanned<u32>,
    #[serde(default = "default_seed")]
    seed: u64,
    published: Spanned<String>,
    repetitions: Spanned<u32>,
    warmup_ms: u32,
    measure_ms: Spanned<u32>,
    arm: Vec<RawArm>,
    benchmark: Vec<RawBenchmark>,
    #[serde(default)]
    calibration: Vec<RawCalibration>,
}

fn default_seed() -> u64 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawArm {
    name: Spanned<String>,
    modes: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBenchmark {
    name: Spanned<String>,
    workload: Spanned<String>,
    score: Option<String>,
    unit: Spanned<String>,
    places: Vec<Spanned<String>>,
    rows: Vec<Spanned<String>>,
    #[serde(default)]
    effort: Vec<RawEffort>,
}

/// Rows that need to be simulated for longer or shorter, more or less often.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEffort {
    rows: Vec<Spanned<String>>,
    /// In these places only; everywhere when left out.
    places: Option<Vec<Spanned<String>>>,
    repetitions: Option<Spanned<u32>>,
    warmup_ms: Option<u32>,
    measure_ms: Option<Spanned<u32>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCalibration {
    benchmarks: Vec<Spanned<String>>,
    #[serde(rename = "where")]
    place: Spanned<String>,
    row: Spanned<String>,
    columns: Vec<Spanned<String>>,
    why: String,
}

impl Experiment {
    /// Reads the experiment in the file at `path`; its figures are beside it.
    ///
    /// # Errors
    /// What cannot be read, and what makes no sense: the file, the line, the key, what was
    /// expected.
    pub fn from_file(path: &Path) -> Result<Experiment, ExperimentError> {
        let read = |path: &Path| {
            std::fs::read_to_string(path).map_err(|source| ExperimentError::Read {
                path: path.display().to_string(),
                source,
            })
        };
        let beside = |name: &str| read(&path.parent().unwrap_or(Path::new(".")).join(name));
        Experiment::from_toml(&read(path)?, &path.display().to_string(), &beside)
    }

    /// Reads the experiment in `text`, which errors call `origin`; `beside` returns the text of
    /// the file with the figures.
    ///
    /// # Errors
    /// As [`Experiment::from_file`].
    pub fn from_toml(
        text: &str,
        origin: &str,
        beside: &dyn Fn(&str) -> Result<String, ExperimentError>,
    ) -> Result<Experiment, ExperimentError> {
        let source = Source { origin, text };
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            source.problem(at, "", error.message(), "")
        })?;
        let machine = perch_machine::resolve(raw.machine.get_ref())
            .map(Arc::new)
            .map_err(|error| refuse(&source, &raw.machine, "machine", &error.to_string(), ""))?;
        let hz = *raw.hz.get_ref();
        if !HZ.contains(&hz) {
            let reason = format!("{hz} ticks a second");
            return Err(refuse(
                &source,
                &raw.hz,
                "hz",
                &reason,
                "expected 100 to 1000",
            ));
        }
        let era = raw
            .era
            .get_ref()
            .parse()
            .map_err(|error| refuse(&source, &raw.era, "era", &format!("{error}"), ""))?;
        if raw.name.get_ref().is_empty() {
            return Err(refuse(
                &source,
                &raw.name,
                "name",
                "it is empty",
                "expected a short name",
            ));
        }
        let arms = arms(&source, &raw.arm)?;
        let figures = raw.published.get_ref();
        let lines = published::read(&beside(figures)?, figures)?;
        let cells = cells(&source, &raw, &machine, &lines)?;
        Ok(Experiment {
            name: raw.name.into_inner(),
            title: raw.title,
            source: raw.source,
            machine,
            era,
            hz,
            seed: raw.seed,
            arms,
            cells,
        })
    }
}

fn refuse<T>(
    source: &Source,
    blamed: &Spanned<T>,
    key: &str,
    reason: &str,
    expected: &str,
) -> ExperimentError {
    source.problem(blamed.span().start, key, reason, expected)
}

fn arms(source: &Source, raw: &[RawArm]) -> Result<Vec<Arm>, ExperimentError> {
    let mut arms: Vec<Arm> = Vec::new();
    for arm in raw {
        let name = arm.name.get_ref();
        let wanted = [BASELINE, PATCHED].get(arms.len());
        if wanted.is_some_and(|wanted| wanted != name) {
            let expected = "expected `baseline`, then `patched`, then any others";
            return Err(refuse(
                source,
                &arm.name,
                "arm.name",
                &format!("`{name}`"),
                expected,
            ));
        }
        if arms.iter().any(|other| other.name == *name) {
            let reason = format!("there are two arms `{name}`");
            return Err(refuse(source, &arm.name, "arm.name", &reason, ""));
        }
        let modes =
            arm.modes.get_ref().parse().map_err(|error| {
                refuse(source, &arm.modes, "arm.modes", &format!("{error}"), "")
            })?;
        arms.push(Arm {
            name: name.clone(),
            modes,
        });
    }
    if arms.len() < 2 {
        let reason = "the arms `baseline` and `patched` are not both there";
        return Err(source.problem(0, "arm", reason, "expected an [[arm]] for each"));
    }
    Ok(arms)
}

/// Every cell of every table; refuses rows without figures and figures without a row, so that no
/// published cell can be left out in silence.
fn cells(
    source: &Source,
    raw: &RawFile,
    machine: &Machine,
    lines: &[published::Line],
) -> Result<Vec<Cell>, ExperimentError> {
    let mut cells: Vec<Cell> = Vec::new();
    for benchmark in &raw.benchmark {
        for place in &benchmark.places {
            for row in &benchmark.rows {
                let cell = cell(source, raw, machine, lines, benchmark, place, row)?;
                if cells.iter().any(|other| other.path() == cell.path()) {
                    let reason = format!("{} is there twice", cell.path());
                    return Err(refuse(source, row, "benchmark.rows", &reason, ""));
                }
                cells.push(cell);
            }
        }
        for effort in &benchmark.effort {
            for row in &effort.rows {
                known(source, row, "benchmark.effort.rows", &benchmark.rows)?;
            }
            for place in effort.places.iter().flatten() {
                known(source, place, "benchmark.effort.places", &benchmark.places)?;
            }
        }
    }
    let missing = lines.iter().find(|line| {
        !cells.iter().any(|cell| {
            (&cell.benchmark, &cell.place, &cell.row) == (&line.benchmark, &line.place, &line.row)
        })
    });
    if let Some(line) = missing {
        let reason = format!(
            "no benchmark here covers {}/{}/{} of {}:{}",
            line.benchmark,
            line.place,
            line.row,
            raw.published.get_ref(),
            line.line
        );
        return Err(source.problem(
            0,
            "benchmark",
            reason,
            "every published row must be simulated",
        ));
    }
    for calibration in &raw.calibration {
        calibrate(source, calibration, &mut cells)?;
    }
    Ok(cells)
}

fn cell(
    source: &Source,
    raw: &RawFile,
    machine: &Machine,
    lines: &[published::Line],
    benchmark: &RawBenchmark,
    place: &Spanned<String>,
    row: &Spanned<String>,
) -> Result<Cell, ExperimentError> {
    let (name, unit) = (benchmark.name.get_ref(), benchmark.unit.get_ref());
    let (place, row_name) = (place.get_ref(), row.get_ref());
    let line = lines
        .iter()
        .find(|line| (&line.benchmark, &line.place, &line.row) == (name, place, row_name));
    let Some(line) = line else {
        let reason = format!("{name}/{place}/{row_name} has no figures");
        let expected = format!("expected a line in {}", raw.published.get_ref());
        return Err(refuse(source, row, "benchmark.rows", &reason, &expected));
    };
    if line.unit != *unit {
        let reason = format!("`{unit}`, but {name} was published in `{}`", line.unit);
        return Err(refuse(
            source,
            &benchmark.unit,
            "benchmark.unit",
            &reason,
            "",
        ));
    }
    let workload = benchmark
        .workload
        .get_ref()
        .replace("{row}", row_name)
        .replace("{where}", place);
    if let Err(error) = Workload::parse(&workload, machine) {
        let reason = error.to_string();
        return Err(refuse(
            source,
            &benchmark.workload,
            "benchmark.workload",
            &reason,
            "",
        ));
    }
    Ok(Cell {
        benchmark: name.clone(),
        place: place.clone(),
        row: row_name.clone(),
        unit: unit.clone(),
        workload,
        score: benchmark.score.clone(),
        effort: effort(source, raw, benchmark, place, row_name)?,
        published: line.figures,
        calibration: None,
    })
}

/// What the file says, unless the benchmark says otherwise for this row in this place; the last word holds.
fn effort(
    source: &Source,
    raw: &RawFile,
    benchmark: &RawBenchmark,
    place: &str,
    row: &str,
) -> Result<Effort, ExperimentError> {
    let (mut repetitions, mut warmup_ms, mut measure_ms) =
        (&raw.repetitions, raw.warmup_ms, &raw.measure_ms);
    for effort in &benchmark.effort {
        let named = |list: &[Spanned<String>], name| list.iter().any(|n| n.get_ref() == name);
        let here = effort
            .places
            .as_deref()
            .is_none_or(|list| named(list, place));
        if here && named(&effort.rows, row) {
            repetitions = effort.repetitions.as_ref().unwrap_or(repetitions);
            warmup_ms = effort.warmup_ms.unwrap_or(warmup_ms);
            measure_ms = effort.measure_ms.as_ref().unwrap_or(measure_ms);
        }
    }
    for (key, value) in [("repetitions", repetitions), ("measure_ms", measure_ms)] {
        if *value.get_ref() == 0 {
            return Err(refuse(source, value, key, "it is 0", "expected at least 1"));
        }
    }
    let ns = |ms: u32| u64::from(ms) * 1_000_000;
    Ok(Effort {
        repetitions: *repetitions.get_ref(),
        warmup_ns: ns(warmup_ms),
        measure_ns: ns(*measure_ms.get_ref()),
    })
}

fn calibrate(
    source: &Source,
    raw: &RawCalibration,
    cells: &mut [Cell],
) -> Result<(), ExperimentError> {
    for column in &raw.columns {
        if ![BASELINE, PATCHED].contains(&column.get_ref().as_str()) {
            let reason = format!("`{}`", column.get_ref());
            let expected = "expected `baseline` or `patched`";
            return Err(refuse(
                source,
                column,
                "calibration.columns",
                &reason,
                expected,
            ));
        }
    }
    for benchmark in &raw.benchmarks {
        let path = format!(
            "{}/{}/{}",
            benchmark.get_ref(),
            raw.place.get_ref(),
            raw.row.get_ref()
        );
        let Some(cell) = cells.iter_mut().find(|cell| cell.path() == path) else {
            let reason = format!("there is no cell {path}");
            let expected = "expected a benchmark, a place and a row from above";
            return Err(refuse(source, benchmark, "calibration", &reason, expected));
        };
        if cell.calibration.is_some() {
            let reason = format!("{path} was named already");
            return Err(refuse(source, benchmark, "calibration", &reason, ""));
        }
        cell.calibration = Some(Calibration {
            columns: raw
                .columns
                .iter()
                .map(|column| column.get_ref().clone())
                .collect(),
            why: raw.why.clone(),
        });
    }
    Ok(())
}

fn known(
    source: &Source,
    wanted: &Spanned<String>,
    key: &str,
    names: &[Spanned<String>],
) -> Result<(), ExperimentError> {
    if names.iter().any(|name| name.get_ref() == wanted.get_ref()) {
        return Ok(());
    }
    let names: Vec<&str> = names.iter().map(|name| name.get_ref().as_str()).collect();
    let expected = format!("expected one of {}", names.join(", "));
    Err(refuse(
        source,
        wanted,
        key,
        &format!("there is no row `{}`", wanted.get_ref()),
        &expected,
    ))
}
