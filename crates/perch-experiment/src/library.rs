// SPDX-License-Identifier: GPL-2.0-or-later
//! The experiments that perch knows by name: the program carries the files of experiments/.

use std::path::Path;

use perch_sim::workload::Budget;

use crate::error::ExperimentError;
use crate::model::Experiment;

// `EXPERIMENTS`: the name, text and figures of each experiment, sorted by name. The build script
// makes it from a list of the folder.
include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// The library's names, sorted.
pub fn names() -> impl Iterator<Item = &'static str> {
    EXPERIMENTS.iter().map(|(name, _, _)| *name)
}

/// Returns the library experiment of that name, else the one in the file at that path.
///
/// # Errors
/// Returns [`ExperimentError::Unknown`] when the argument is neither a name nor a file, else the
/// errors of [`Experiment::from_file`].
pub fn resolve(name_or_path: &str) -> Result<Experiment, ExperimentError> {
    resolve_within(name_or_path, Budget::DEFAULT)
}

/// Returns an experiment as [`resolve`] does; each workload of a file must be within `budget`.
///
/// # Errors
/// Returns the errors of [`resolve`].
pub fn resolve_within(name_or_path: &str, budget: Budget) -> Result<Experiment, ExperimentError> {
    if let Some((name, text, figures)) = EXPERIMENTS.iter().find(|(n, _, _)| *n == name_or_path) {
        let origin = format!("experiments/{name}.toml");
        return Experiment::from_toml(text, &origin, &|_| Ok(figures.to_string()));
    }
    let path = Path::new(name_or_path);
    if path.exists() {
        return Experiment::from_file(path, budget);
    }
    Err(ExperimentError::Unknown {
        what: "experiment",
        name: name_or_path.to_string(),
        known: names().collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use perch_sim::Scenario;
    use perch_workload::Workload;

    use super::*;

    #[test]
    fn every_library_experiment_loads_under_its_own_name() {
        for name in names() {
            let experiment = resolve(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(experiment.name, name);
        }
    }

    /// This test would show a mistyped digit: sources print three digits of a change or two.
    #[test]
    fn the_printed_changes_follow_from_their_columns() {
        for (name, cells, without_patched, rounding) in [
            ("cluster-scan", 42, 0, 0.006),
            ("capacity-wakeup", 35, 0, 0.000_6),
            ("cache-inhibit", 51, 6, 0.006),
            ("rt-overload", 2, 0, 0.000_001),
            ("queue-steer", 9, 0, 0.000_001),
        ] {
            let experiment = resolve(name).unwrap();
            assert_eq!(experiment.cells.len(), cells);
            let given = |cell: &&crate::Cell| cell.published.patched.is_some();
            assert_eq!(experiment.cells.iter().filter(given).count(), cells - without_patched);
            for cell in experiment.cells.iter().filter(given) {
                let patched = cell.published.patched.unwrap();
                let change = 100.0 * (patched / cell.published.baseline - 1.0);
                let printed = cell.published.delta_pct;
                assert!((change - printed).abs() < rounding, "{}: {change}", cell.path());
            }
        }
    }

    /// Of each experiment the cells whose baselines may be fitted, and nothing else.
    #[test]
    fn no_other_baselines_are_fitted_than_the_sources_allow() {
        let may = |name: &str, cell: &crate::Cell| match name {
            // The phantom machine has pixel3's hardware, whose costs were fitted on pixel3's own
            // cells.
            "capacity-wakeup" => cell.row == "mean" && cell.place != "pixel3-phantom",
            // Issue 5: "calibrate on the baseline column's n=1 and n=239 rows only", of the Xeon's
            // table.
            "cache-inhibit" => ["n=1:", "n=239:"].iter().any(|n| cell.row.starts_with(n)),
            // All figures are multiples of baselines that nobody knows.
            _ => false,
        };
        for name in ["capacity-wakeup", "cache-inhibit", "queue-steer"] {
            for cell in &resolve(name).unwrap().cells {
                let fitted = cell.calibration.as_ref().map(|c| c.columns.join(","));
                let expected = may(name, cell).then(|| "baseline".to_string());
                assert_eq!(fitted, expected, "{name}: {}", cell.path());
                assert!(name != "queue-steer" || cell.judging.relative, "{}", cell.path());
            }
        }
        let loads = resolve("capacity-wakeup").unwrap().loads;
        assert_eq!(loads.iter().map(|load| load.effort.repetitions).collect::<Vec<_>>(), [100; 5]);
    }

    /// The file has one simulation for each row of the machine's load, whatever number of cells the
    /// row fills; latencies may be off by the rounding of whole microseconds, requests and ratios
    /// may not.
    #[test]
    fn the_inhibitions_rows_share_their_simulations_and_state_their_rules() {
        let experiment = resolve("cache-inhibit").unwrap();
        assert_eq!(experiment.loads.len(), 9 + 6);
        for cell in &experiment.cells {
            let load = &experiment.loads[cell.load];
            let unit = load.scores[cell.score].unit.as_str();
            let rounded = (unit == "us").then_some(1.0);
            assert_eq!(cell.judging.within_rounded, rounded, "{}", cell.path());
            let relative = cell.place == "epyc7543";
            assert_eq!(cell.judging.relative, relative, "{}", cell.path());
        }
        // More requests a second are a rise, which the source prints as a negative "gain".
        let cells = experiment.cells.iter();
        let change = |row: &str| {
            let cell = cells.clone().find(|cell| cell.row == row).unwrap();
            cell.published.delta_pct
        };
        assert_eq!((change("n=2:rps20"), change("n=32:rps20")), (-4.88, 0.38));
        assert_eq!((change("n=1:wake_p99.0"), change("4m-4w")), (-55.17, 4.32));
    }

    /// Frames were published as a change alone: nobody measured the 100, and it is not a baseline to
    /// be close to.
    #[test]
    fn of_the_overload_counters_the_kernels_share_is_fitted_and_frames_are_relative() {
        let experiment = resolve("rt-overload").unwrap();
        let [fps, kernel] = &experiment.cells[..] else {
            panic!("{:?}", experiment.cells);
        };
        assert!(fps.judging.relative && fps.calibration.is_none());
        assert!((fps.published.delta_pct - 4.0).abs() < 1e-9);
        assert!(!kernel.judging.relative);
        let fitted = kernel.calibration.as_ref().map(|c| c.columns.as_slice());
        assert_eq!(fitted, Some(&["baseline".to_string()][..]));
        // Every published share of the line is there: the shares add up to the whole, to rounding.
        let line = experiment.c2c.as_ref().expect("a published line");
        let sum = |of: fn(&crate::LineUser) -> f64| line.users.iter().map(of).sum::<f64>();
        assert!((sum(|u| u.remote_hitm_pct) - 100.0).abs() < 0.05);
        assert!((sum(|u| u.local_hitm_pct) - 100.0).abs() < 0.05);
        assert_eq!(sum(|u| u.store_hit_pct), 100.0);
        assert_eq!(line.users.iter().map(|u| u.records).sum::<u64>(), 1502);
    }

    /// On bare metal every task is in the root group, which steering leaves alone: every decision
    /// of every arm is the same, from the first to the last.
    #[test]
    fn steering_changes_no_decision_on_bare_metal() {
        let experiment = resolve("queue-steer").unwrap();
        let bare = experiment.loads.iter().filter(|l| l.place == "BM root");
        for load in bare.clone() {
            let traces = experiment.arms.iter().map(|arm| {
                let mut trace = Vec::new();
                let workload = Workload::parse(&load.workload, &load.machine).unwrap();
                let scenario = Scenario {
                    policy: perch_policy::Policy::new(experiment.era, arm.modes),
                    hz: experiment.hz,
                    root_domain: experiment.root_domain,
                    seed: 7,
                    ..Scenario::plain(load.machine.clone(), workload, 100_000_000)
                };
                scenario.run_traced(&mut trace).unwrap();
                trace
            });
            let traces: Vec<_> = traces.collect();
            assert!(traces[0].len() > 1000, "{}", load.path());
            assert!(traces.iter().all(|t| *t == traces[0]), "{}", load.path());
        }
        assert_eq!((bare.count(), experiment.arms.len()), (4, 3));
    }

    #[test]
    fn no_more_than_the_rules_allow_is_fitted() {
        let experiment = resolve("cluster-scan").unwrap();
        let fitted = experiment.cells.iter().filter_map(|cell| {
            let calibration = cell.calibration.as_ref()?;
            Some((cell, calibration.columns.len()))
        });
        let (mut alone, mut further) = (0, 0);
        for (cell, columns) in fitted {
            if (cell.place.as_str(), cell.row.as_str()) == ("node0", "n=1") {
                alone += 1;
            } else {
                assert_eq!(columns, 1, "{}: the baseline column only", cell.path());
                further += 1;
            }
        }
        assert_eq!((alone, further), (3, 3), "n=1 of node 0 and one further row a benchmark");
    }
}
