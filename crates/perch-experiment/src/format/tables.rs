// SPDX-License-Identifier: GPL-2.0-or-later
//! Makes loads and cells from benchmarks, places and rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use perch_file::Spanned;
use perch_machine::{Machine, MachineError};
use perch_policy::Era;
use perch_workload::{Budget, Workload};

use super::calibration::calibrate;
use super::raw::{RawBenchmark, RawFile};
use super::refuse::refuse;
use super::rows::{Rows, check_efforts, check_keys};
use super::scores::{ScoreOf, by_unit, printed, scores};
use crate::error::{ExperimentError, Source};
use crate::model::{Cell, Effort, Load};
use crate::published::{self, Printed};
use crate::statistic::Statistic;

/// A place of a benchmark; the keys that the place leaves out are filled in from the benchmark and
/// the file.
struct Place<'a> {
    name: &'a Spanned<String>,
    machine: Arc<Machine>,
    workload: &'a Spanned<String>,
    /// The key that `workload` stands under.
    workload_key: &'static str,
}

/// The score or the statistic that a cell shows.
struct Shown<'a> {
    load: usize,
    score: usize,
    of: &'a ScoreOf<'a>,
    statistic: Statistic,
}

/// Finds the machine that a file names.
pub(crate) type Resolve<'a> = &'a dyn Fn(&str) -> Result<Machine, MachineError>;

/// The loads, cells and machines that are gathered while the benchmarks are read.
struct Tables<'a> {
    source: &'a Source<'a>,
    raw: &'a RawFile,
    era: Era,
    /// The published lines by their keys.
    lines: BTreeMap<(&'a str, &'a str, &'a str), &'a published::Line>,
    /// The memory that a workload may take.
    budget: Budget,
    resolve: Resolve<'a>,
    /// Every machine that was named, so that places on the same one share it.
    machines: Vec<(&'a str, Arc<Machine>)>,
    loads: Vec<Load>,
    cells: Vec<Cell>,
    /// The numbers of the cells by their paths.
    paths: BTreeMap<String, usize>,
}

/// Makes every load and every cell of every table; refuses rows without figures and figures without
/// a row, so that no published cell can be left out in silence.
pub(super) fn tables(
    source: &Source,
    raw: &RawFile,
    era: Era,
    lines: &[published::Line],
    budget: Budget,
    resolve: Resolve,
) -> Result<(Vec<Load>, Vec<Cell>), ExperimentError> {
    let mut tables = Tables {
        resolve,
        source,
        raw,
        era,
        lines: lines.iter().map(|line| (line.key(), line)).collect(),
        budget,
        machines: Vec::new(),
        loads: Vec::new(),
        cells: Vec::new(),
        paths: BTreeMap::new(),
    };
    // The reader reports a mistake in the file's head before mistakes of the places that rely on
    // the head.
    if let Some(named) = &raw.machine {
        tables.machine(named, "machine")?;
    }
    for benchmark in &raw.benchmark {
        tables.benchmark(benchmark)?;
    }
    let Tables { loads, mut cells, paths, .. } = tables;
    let missing = |line: &&published::Line| {
        let (benchmark, place, row) = line.key();
        let cell = paths.get(&format!("{benchmark}/{place}/{row}"));
        let of = |cell: &Cell| (&*cell.benchmark, &*cell.place, &*cell.row) == line.key();
        !cell.is_some_and(|&cell| of(&cells[cell]))
    };
    if let Some(line) = lines.iter().find(missing) {
        let reason = format!(
            "no benchmark here covers {}/{}/{} of {}:{}",
            line.benchmark,
            line.place,
            line.row,
            raw.published.get_ref(),
            line.line
        );
        let expected = "every published row must be simulated";
        return Err(source.problem(0, "benchmark", reason, expected));
    }
    for calibration in &raw.calibration {
        calibrate(source, calibration, &mut cells)?;
    }
    Ok((loads, cells))
}

impl<'a> Tables<'a> {
    fn benchmark(&mut self, benchmark: &'a RawBenchmark) -> Result<(), ExperimentError> {
        let places = self.places(benchmark)?;
        let rows = Rows::of(self.source, benchmark)?;
        let names: Vec<_> = places.iter().map(|place| place.name).collect();
        check_efforts(self.source, benchmark, &names, &rows)?;
        check_keys(self.source, benchmark, &rows)?;
        let scores = scores(self.source, benchmark)?;
        for place in &places {
            match &rows {
                Rows::Workloads(rows) => {
                    let mut loads = Vec::new();
                    for row in *rows {
                        loads.push((row, self.load(benchmark, place, Some(row), &scores)?));
                    }
                    for table in by_unit(&scores) {
                        for (row, load) in &loads {
                            for &score in &table {
                                let shown = Shown {
                                    load: *load,
                                    score,
                                    of: &scores[score],
                                    statistic: Statistic::Mean,
                                };
                                self.cell(benchmark, place, row, shown)?;
                            }
                        }
                    }
                }
                Rows::Statistics(statistics) => {
                    let load = self.load(benchmark, place, None, &scores)?;
                    for (row, statistic) in statistics {
                        self.enough(benchmark, place, *statistic, load)?;
                        let shown = Shown { load, score: 0, of: &scores[0], statistic: *statistic };
                        self.cell(benchmark, place, row, shown)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads the places from the one of the two forms that the benchmark uses.
    fn places(&mut self, benchmark: &'a RawBenchmark) -> Result<Vec<Place<'a>>, ExperimentError> {
        let source = self.source;
        let one_form = "expected either places = [...] or a [[benchmark.place]] for each";
        let listed = match &benchmark.places {
            Some(listed) if benchmark.place.is_empty() => listed.as_slice(),
            None if !benchmark.place.is_empty() => &[],
            given => {
                let reason = match given {
                    Some(_) => "it has its places in both forms",
                    None => "it has no places",
                };
                let key = "benchmark.places";
                return Err(refuse(source, &benchmark.name, key, reason, one_form));
            }
        };
        let listed = listed.iter().map(|name| (name, None, None));
        let described = benchmark
            .place
            .iter()
            .map(|place| (&place.name, place.machine.as_ref(), place.workload.as_ref()));
        let mut places = Vec::new();
        for (name, machine, workload) in listed.chain(described) {
            let own = machine.map(|named| (named, "benchmark.place.machine"));
            let file = self.raw.machine.as_ref().map(|named| (named, "machine"));
            let Some((named, key)) = own.or(file) else {
                let reason = format!("`{}` has no machine", name.get_ref());
                let expected = "expected `machine` in its [[benchmark.place]], or in the file's \
                                head for all places";
                let key = "benchmark.place.machine";
                return Err(refuse(source, name, key, &reason, expected));
            };
            let machine = self.machine(named, key)?;
            let own = workload.map(|workload| (workload, "benchmark.place.workload"));
            let all = benchmark.workload.as_ref();
            let Some((workload, workload_key)) =
                own.or(all.map(|workload| (workload, "benchmark.workload")))
            else {
                let reason = format!("`{}` has no workload", name.get_ref());
                let expected = "expected `workload` in its [[benchmark.place]], or in the \
                                [[benchmark]] for all of its places";
                let key = "benchmark.workload";
                return Err(refuse(source, name, key, &reason, expected));
            };
            places.push(Place { name, machine, workload, workload_key });
        }
        Ok(places)
    }

    fn machine(
        &mut self,
        named: &'a Spanned<String>,
        key: &str,
    ) -> Result<Arc<Machine>, ExperimentError> {
        let name = named.get_ref().as_str();
        if let Some((_, machine)) = self.machines.iter().find(|(known, _)| *known == name) {
            return Ok(Arc::clone(machine));
        }
        let machine = (self.resolve)(name)
            .map(Arc::new)
            .map_err(|error| refuse(self.source, named, key, &error.to_string(), ""))?;
        self.machines.push((name, Arc::clone(&machine)));
        Ok(machine)
    }

    /// Adds the simulation in `place`, for `row` where each row is a workload; returns the load's
    /// index.
    fn load(
        &mut self,
        benchmark: &RawBenchmark,
        place: &Place,
        row: Option<&Spanned<String>>,
        scores: &[ScoreOf],
    ) -> Result<usize, ExperimentError> {
        let refuse_workload = |reason: &str, expected: &str| {
            let key = place.workload_key;
            Err(refuse(self.source, place.workload, key, reason, expected))
        };
        let mut workload = place.workload.get_ref().replace("{where}", place.name.get_ref());
        match row {
            Some(row) => {
                let keys = benchmark.keys.get(row.get_ref()).unwrap_or(row);
                workload = workload.replace("{row}", keys.get_ref());
            }
            None if workload.contains("{row}") => {
                return refuse_workload(
                    "`{row}` in a workload whose rows are statistics",
                    "expected one workload for all of them",
                );
            }
            None => {}
        }
        match Workload::parse_within(&workload, &place.machine, self.budget) {
            Err(error) => return refuse_workload(&error.to_string(), ""),
            Ok(parsed) => {
                if let Err(why) = parsed.check(self.era) {
                    return refuse_workload(&why.to_string(), "");
                }
            }
        }
        self.loads.push(Load {
            benchmark: benchmark.name.get_ref().clone(),
            place: place.name.get_ref().clone(),
            row: row.map(|row| row.get_ref().clone()),
            machine: Arc::clone(&place.machine),
            workload,
            scores: scores.iter().map(|score| score.wanted.clone()).collect(),
            effort: self.effort(benchmark, place, row)?,
        });
        Ok(self.loads.len() - 1)
    }

    fn cell(
        &mut self,
        benchmark: &RawBenchmark,
        place: &Place,
        row: &Spanned<String>,
        shown: Shown,
    ) -> Result<(), ExperimentError> {
        let key = match benchmark.statistics {
            Some(_) => "benchmark.statistics",
            None => "benchmark.rows",
        };
        let (name, unit) = (benchmark.name.get_ref(), shown.of.unit.get_ref());
        let (place, row_name) = (place.name.get_ref(), &shown.of.cell_of(row.get_ref()));
        let Some(line) = self.lines.get(&(&**name, &**place, &**row_name)) else {
            let reason = format!("{name}/{place}/{row_name} has no figures");
            let expected = format!("expected a line in {}", self.raw.published.get_ref());
            return Err(refuse(self.source, row, key, &reason, &expected));
        };
        if line.unit != *unit {
            let reason =
                format!("`{unit}`, but {name}/{place}/{row_name} was published in `{}`", line.unit);
            let key = shown.of.unit_key;
            return Err(refuse(self.source, shown.of.unit, key, &reason, ""));
        }
        let published = line.figures(printed(benchmark)).map_err(|meant| {
            let reason = format!(
                "{name}/{place}/{row_name} of {}:{} changes the other way than it is printed",
                self.raw.published.get_ref(),
                line.line
            );
            let expected = match meant {
                Printed::Rise => "expected printed = \"rise\": a positive sign means more",
                Printed::Fall => "expected printed = \"fall\": a positive sign means less",
            };
            refuse(self.source, &benchmark.name, "benchmark.printed", &reason, expected)
        })?;
        let cell = Cell {
            benchmark: name.clone(),
            place: place.clone(),
            row: row_name.clone(),
            load: shown.load,
            score: shown.score,
            statistic: shown.statistic,
            published,
            judging: shown.of.judging,
            calibration: None,
        };
        let at = self.cells.len();
        if self.paths.insert(cell.path(), at).is_some() {
            let reason = format!("{} is there twice", cell.path());
            return Err(refuse(self.source, row, key, &reason, ""));
        }
        self.cells.push(cell);
        Ok(())
    }

    /// Refuses a statistic that says nothing about so few repetitions.
    fn enough(
        &self,
        benchmark: &RawBenchmark,
        place: &Place,
        statistic: Statistic,
        load: usize,
    ) -> Result<(), ExperimentError> {
        let given = self.loads[load].effort.repetitions;
        if given >= statistic.least() {
            return Ok(());
        }
        let blamed = self.chosen(benchmark, place, None).repetitions;
        let reason = format!("{given} iteration has no {statistic}");
        let expected = format!("expected at least {}", statistic.least());
        Err(refuse(self.source, blamed, "repetitions", &reason, &expected))
    }

    fn effort(
        &self,
        benchmark: &RawBenchmark,
        place: &Place,
        row: Option<&Spanned<String>>,
    ) -> Result<Effort, ExperimentError> {
        let chosen = self.chosen(benchmark, place, row);
        for (key, value) in [("repetitions", chosen.repetitions), ("measure_ms", chosen.measure_ms)]
        {
            if *value.get_ref() == 0 {
                let expected = "expected at least 1";
                return Err(refuse(self.source, value, key, "it is 0", expected));
            }
        }
        let ns = |ms: u32| u64::from(ms) * 1_000_000;
        let (warmup_ms, measure_ms) = (chosen.warmup_ms, *chosen.measure_ms.get_ref());
        if ns(warmup_ms.max(measure_ms)) > Effort::LONGEST_NS {
            let reason = format!("warmup_ms is {warmup_ms} and measure_ms {measure_ms}");
            let expected = "expected at most an hour each";
            return Err(refuse(self.source, chosen.measure_ms, "measure_ms", &reason, expected));
        }
        Ok(Effort {
            repetitions: *chosen.repetitions.get_ref(),
            warmup_ns: ns(chosen.warmup_ms),
            measure_ns: ns(*chosen.measure_ms.get_ref()),
        })
    }

    /// Returns the file's choices for a load, unless the benchmark chooses otherwise for this row
    /// in this place; the last word holds.
    fn chosen(
        &self,
        benchmark: &'a RawBenchmark,
        place: &Place,
        row: Option<&Spanned<String>>,
    ) -> Chosen<'a> {
        let mut chosen = Chosen {
            repetitions: &self.raw.repetitions,
            warmup_ms: self.raw.warmup_ms,
            measure_ms: &self.raw.measure_ms,
        };
        let named = |list: &[Spanned<String>], name: &Spanned<String>| {
            list.iter().any(|other| other.get_ref() == name.get_ref())
        };
        for effort in &benchmark.effort {
            let places = effort.places.as_deref();
            let here = places.is_none_or(|list| named(list, place.name));
            let of_this = match (row, &effort.rows) {
                (Some(row), Some(rows)) => named(rows, row),
                _ => true,
            };
            if here && of_this {
                chosen.repetitions = effort.repetitions.as_ref().unwrap_or(chosen.repetitions);
                chosen.warmup_ms = effort.warmup_ms.unwrap_or(chosen.warmup_ms);
                chosen.measure_ms = effort.measure_ms.as_ref().unwrap_or(chosen.measure_ms);
            }
        }
        chosen
    }
}

/// The choices that hold for a load, with their places in the file.
struct Chosen<'a> {
    repetitions: &'a Spanned<u32>,
    warmup_ms: u32,
    measure_ms: &'a Spanned<u32>,
}
