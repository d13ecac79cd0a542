// SPDX-License-Identifier: GPL-2.0-or-later
//! How far a result may be trusted: how simulations of its machine and of its kind of load fared against
//! published tables.
//!
//! The program carries the simulated changes of every experiment, as `scripts/accuracy` wrote them, beside
//! the published ones. A result that was never held against a table says so.

use std::sync::LazyLock;

use perch_machine::Machine;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ExperimentError;
use crate::fit::Closeness;
use crate::judge::{Tolerance, Verdict, direction};
use crate::library;
use crate::model::{Cell, Experiment};
use crate::stats::Delta;

// `HELD`: text, published and simulated figures of each experiment that was simulated. `MACHINES`: the
// path and the text of each machine of a prediction.
include!(concat!(env!("OUT_DIR"), "/held.rs"));

/// How simulated changes fared against published ones. Cells on which costs were fitted do not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Record {
    /// The experiments that have the cells.
    pub experiments: Vec<String>,
    /// The cells.
    pub cells: usize,
    /// Those of them whose change agrees with the published one, interval and all.
    pub agrees: usize,
    /// Those of them whose change disagrees; the rest is undecided.
    pub disagrees: usize,
    /// The cells whose published change is large enough to have a direction.
    pub directions: usize,
    /// Those of them whose simulated change has it, interval and all.
    pub directions_agree: usize,
    /// The root of the mean square of simulated less published change, in percentage points; null
    /// without a cell.
    pub error_pp: Option<f64>,
    /// The same of a model that says "no change" of each cell.
    pub no_change_error_pp: Option<f64>,
}

/// How far a result may be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// The kind of the load: the first word of the workload.
    pub load: String,
    /// The record of this machine under this kind of load.
    pub held: Record,
    /// The record of this machine under all other kinds of load.
    pub other_loads: Record,
    /// Experiments of this machine whose simulated changes the program does not carry.
    pub not_carried: Vec<String>,
    /// True where the machine's costs are those of a file that gives none: they belong to no machine.
    pub default_costs: bool,
}

impl Trust {
    /// Returns how far a simulation of `workload` on `machine` may be trusted.
    pub fn of(machine: &Machine, workload: &str) -> Trust {
        let load = kind(workload);
        let (same, other): (Vec<&Held>, Vec<&Held>) = (ALL.iter())
            .filter(|held| held.machine == *machine)
            .partition(|held| held.load == load);
        Trust {
            load: load.to_string(),
            held: Record::of(&same),
            other_loads: Record::of(&other),
            not_carried: not_carried(&[machine]),
            default_costs: machine.hardware.has_default_costs(),
        }
    }
}

/// How far a result of many loads may be trusted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrustOfMany {
    /// The kinds of load on machines that the result has.
    pub loads: usize,
    /// Those of them that were held against a published table.
    pub held_loads: usize,
    /// Their records together.
    pub held: Record,
    /// Experiments of these machines whose simulated changes the program does not carry.
    pub not_carried: Vec<String>,
    /// The machines whose costs are defaults, by name.
    pub default_costs: Vec<String>,
}

impl TrustOfMany {
    /// Returns how far simulations of these machines and workloads may be trusted together.
    pub fn of<'a>(loads: impl IntoIterator<Item = (&'a Machine, &'a str)>) -> TrustOfMany {
        let mut seen: Vec<(&Machine, &str)> = Vec::new();
        for (machine, workload) in loads {
            let load = (machine, kind(workload));
            if !seen.contains(&load) {
                seen.push(load);
            }
        }
        let is_of = |held: &Held, (machine, load): &(&Machine, &str)| {
            held.machine == **machine && held.load == *load
        };
        let held = ALL.iter().filter(|held| seen.iter().any(|of| is_of(held, of)));
        let held: Vec<&Held> = held.collect();
        let has_record = |of: &&(&Machine, &str)| held.iter().any(|held| is_of(held, of));
        let mut default_costs: Vec<String> = Vec::new();
        for (machine, _) in &seen {
            if machine.hardware.has_default_costs() && !default_costs.contains(&machine.name) {
                default_costs.push(machine.name.clone());
            }
        }
        TrustOfMany {
            loads: seen.len(),
            held_loads: seen.iter().filter(has_record).count(),
            held: Record::of(&held),
            not_carried: not_carried(&seen.iter().map(|(machine, _)| *machine).collect::<Vec<_>>()),
            default_costs,
        }
    }
}

/// The experiments of any of these machines whose simulated changes the program does not carry.
fn not_carried(of: &[&Machine]) -> Vec<String> {
    let has = |machines: &[Machine]| of.iter().any(|machine| machines.contains(machine));
    let others = NOT_CARRIED.iter().filter(|(_, machines)| has(machines));
    others.map(|(name, _)| name.clone()).collect()
}

/// The kind of a workload.
fn kind(workload: &str) -> &str {
    workload.split(':').next().unwrap_or(workload)
}

/// A cell with its simulated change.
struct Held {
    experiment: String,
    machine: Machine,
    load: String,
    published_pct: f64,
    simulated_pct: f64,
    verdict: Verdict,
    direction: Option<Verdict>,
}

/// All cells that are scored.
static ALL: LazyLock<Vec<Held>> = LazyLock::new(|| {
    let all = HELD.iter().flat_map(|files| {
        read(files).unwrap_or_else(|error| panic!("the program's own experiments: {error}"))
    });
    all.collect()
});

/// The experiments without simulated changes, with their machines.
static NOT_CARRIED: LazyLock<Vec<(String, Vec<Machine>)>> = LazyLock::new(|| {
    let is_carried = |name: &&str| ALL.iter().any(|held| held.experiment == *name);
    let others = library::names().filter(|name| !is_carried(name));
    let machines = |name: &str| {
        let experiment = library::resolve(name).expect("the program's own experiment");
        let machines = experiment.loads.iter();
        machines.map(|load| Machine::clone(&load.machine)).collect()
    };
    others.map(|name| (name.to_string(), machines(name))).collect()
});

/// Reads an experiment's cells that are scored and have a simulated change.
fn read((text, published, simulated): &(&str, &str, &str)) -> Result<Vec<Held>, ExperimentError> {
    let machine = |name: &str| match MACHINES.iter().find(|(path, _)| *path == name) {
        Some((path, text)) => Machine::from_toml_str(text, path),
        None => perch_machine::resolve(name),
    };
    let figures = |_: &str| Ok(published.to_string());
    let experiment = Experiment::from_toml_on(text, "an experiment", &figures, &machine)?;
    let simulated = changes(simulated)?;
    let scored = experiment.cells.iter().filter(|cell| cell.calibration.is_none());
    let held = scored.filter_map(|cell| {
        let found = simulated.iter().find(|found| found.is_of(cell))?;
        let load = &experiment.loads[cell.load];
        let published = &cell.published;
        let judged = || Tolerance::of(published).judge(found.change);
        Some(Held {
            experiment: experiment.name.clone(),
            machine: Machine::clone(&load.machine),
            load: kind(&load.workload).to_string(),
            published_pct: published.delta_pct,
            simulated_pct: found.change.pct,
            verdict: found.verdict.unwrap_or_else(judged),
            direction: direction(published.delta_pct, found.change),
        })
    });
    Ok(held.collect())
}

/// A simulated change of a NAME.simulated.csv.
struct Simulated {
    /// Benchmark, place and row.
    cell: [String; 3],
    change: Delta,
    /// The verdict, where figures decided it that the file does not have.
    verdict: Option<Verdict>,
}

impl Simulated {
    fn is_of(&self, cell: &Cell) -> bool {
        let [benchmark, place, row] = &self.cell;
        (benchmark, place, row) == (&cell.benchmark, &cell.place, &cell.row)
    }
}

/// Reads the simulated changes.
fn changes(text: &str) -> Result<Vec<Simulated>, ExperimentError> {
    let wrong = |error: String| ExperimentError::Argument(format!("simulated changes: {error}"));
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| wrong(error.to_string()))?.clone();
    let lines = reader.records().map(|line| {
        let line = line.map_err(|error| wrong(error.to_string()))?;
        let field = |name: &str| {
            let at = names.iter().position(|other| other == name)?;
            line.get(at).filter(|field| !field.is_empty())
        };
        let word = |name: &str| field(name).unwrap_or_default().to_string();
        let number = |name: &str| field(name).and_then(|field| field.parse().ok());
        let verdicts = [Verdict::Agrees, Verdict::Disagrees, Verdict::Undecided];
        Ok(Simulated {
            cell: [word("benchmark"), word("where"), word("row")],
            change: Delta {
                pct: number("simulated_delta_pct").unwrap_or(f64::NAN),
                ci95_pct: number("simulated_ci95_pct"),
            },
            verdict: verdicts.into_iter().find(|verdict| field("verdict") == Some(verdict.name())),
        })
    });
    lines.collect()
}

impl Record {
    fn of(cells: &[&Held]) -> Record {
        let mut experiments: Vec<String> = Vec::new();
        for held in cells {
            if !experiments.contains(&held.experiment) {
                experiments.push(held.experiment.clone());
            }
        }
        let verdicts = |is| cells.iter().filter(|held| held.verdict == is).count();
        let directions = || cells.iter().filter_map(|held| held.direction);
        let finite = cells.iter().filter(|held| held.simulated_pct.is_finite());
        let pairs: Vec<(f64, f64)> =
            finite.map(|held| (held.published_pct, held.simulated_pct)).collect();
        let none: Vec<(f64, f64)> = pairs.iter().map(|&(published, _)| (published, 0.0)).collect();
        let error = |pairs: &[(f64, f64)]| Closeness::of(pairs).map(|found| found.rms_pp);
        Record {
            experiments,
            cells: cells.len(),
            agrees: verdicts(Verdict::Agrees),
            disagrees: verdicts(Verdict::Disagrees),
            directions: directions().count(),
            directions_agree: directions().filter(|is| *is == Verdict::Agrees).count(),
            error_pp: error(&pairs),
            no_change_error_pp: error(&none),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(machine: &str, workload: &str) -> Trust {
        Trust::of(&perch_machine::resolve(machine).unwrap(), workload)
    }

    #[test]
    fn every_simulated_change_is_of_a_published_cell() {
        for (text, published, simulated) in HELD {
            let machine = |name: &str| match MACHINES.iter().find(|(path, _)| *path == name) {
                Some((path, text)) => Machine::from_toml_str(text, path),
                None => perch_machine::resolve(name),
            };
            let figures = |_: &str| Ok(published.to_string());
            let experiment = Experiment::from_toml_on(text, "e.toml", &figures, &machine).unwrap();
            let simulated = changes(simulated).unwrap();
            let name = &experiment.name;
            assert_eq!(simulated.len(), experiment.cells.len(), "{name}");
            for cell in &experiment.cells {
                let found: Vec<_> = simulated.iter().filter(|s| s.is_of(cell)).collect();
                assert_eq!(found.len(), 1, "{name}: {}", cell.path());
            }
        }
    }

    /// docs/accuracy.md has the same counts of the first prediction.
    #[test]
    fn a_machine_and_a_load_have_the_record_of_their_cells() {
        let found = of("jacobsville", "tcp_rr:n=3");
        assert_eq!(found.load, "tcp_rr");
        let both = ["jacobsville-v11", "jacobsville-v7"];
        assert_eq!(found.held.experiments, both);
        assert!(found.held.cells > 0 && found.other_loads.cells > found.held.cells);
        let all = found.held.agrees + found.other_loads.agrees;
        assert_eq!((found.held.cells + found.other_loads.cells, all), (62, 48));
        assert!(found.held.error_pp.is_some() && !found.default_costs);
        let new = of("jacobsville", "stress:n=3");
        assert_eq!((new.held.clone(), new.other_loads.cells), (Record::default(), 62));
    }

    #[test]
    fn an_experiment_whose_result_is_not_carried_is_named() {
        assert_eq!(of("juno", "hackbench").not_carried, ["capacity-wakeup"]);
        assert!(of("kunpeng920", "tbench:n=1").not_carried.is_empty());
        assert!(of("kunpeng920", "tbench:n=1").held.cells > 0);
    }

    #[test]
    fn many_loads_are_counted_once_each() {
        let [one, other] =
            ["jacobsville", "rt480"].map(|name| perch_machine::resolve(name).unwrap());
        let found = TrustOfMany::of([
            (&one, "tcp_rr:n=3"),
            (&one, "tcp_rr:n=4"),
            (&one, "stress"),
            (&other, "tcp_rr:n=3"),
        ]);
        assert_eq!((found.loads, found.held_loads), (3, 1));
        assert_eq!(found.held, Trust::of(&one, "tcp_rr").held);
        assert!(found.default_costs.is_empty());
        assert_eq!(found.not_carried, ["rt-overload"]);
    }

    #[test]
    fn a_machine_of_the_same_name_and_other_costs_has_no_record() {
        let mut machine = perch_machine::resolve("jacobsville").unwrap();
        machine.hardware.wake_ns += 1;
        let found = Trust::of(&machine, "tcp_rr:n=3");
        assert_eq!(found.other_loads.cells + found.held.cells, 0);
        assert!(!found.default_costs);
        machine.hardware = perch_machine::Hardware::default();
        // What `perch machine detect` finds is no cost.
        machine.hardware.llc_bytes *= 2;
        assert!(Trust::of(&machine, "pipe").default_costs);
    }

    #[test]
    fn no_change_has_the_error_of_the_published_changes() {
        let held = |published_pct, simulated_pct| Held {
            experiment: "e".to_string(),
            machine: perch_machine::resolve("juno").unwrap(),
            load: "pipe".to_string(),
            published_pct,
            simulated_pct,
            verdict: Verdict::Undecided,
            direction: None,
        };
        let (one, other) = (held(3.0, 3.0), held(-4.0, f64::NAN));
        let found = Record::of(&[&one, &other]);
        assert_eq!((found.error_pp, found.no_change_error_pp), (Some(0.0), Some(3.0)));
        assert_eq!((found.cells, found.directions), (2, 0));
    }
}
