// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the runner, with a formula in place of the simulator.

use super::load::{Found, Trial};
use super::*;
use crate::library;
use crate::statistic::Statistic;
use crate::testing::{FIGURES, STATISTICS, scored_by};
use std::collections::HashSet;
use std::sync::Mutex;

fn experiment() -> Experiment {
    library::resolve("cluster-scan").unwrap()
}

/// Returns 1000, changed a little by the seed, and 10 % more for every arm but the baseline.
fn formula(trial: &Trial) -> Result<Found, ExperimentError> {
    let noise = (trial.seed % 1000) as f64 / 100.0;
    let factor = if trial.arm.name == "baseline" { 1.0 } else { 1.1 };
    Ok(scored_by((1000.0 + noise) * factor))
}

impl<F: Fn(&Trial) -> Result<Found, ExperimentError> + Sync> Simulate for F {
    fn simulate(&self, trial: &Trial) -> Result<Found, ExperimentError> {
        self(trial)
    }
}

fn quietly(
    experiment: &Experiment,
    options: &RunOptions,
    simulate: impl Simulate,
) -> Result<Report, ExperimentError> {
    run_with(experiment, options, &mut |_, _| {}, &simulate)
}

fn run_formula(options: &RunOptions) -> Result<Report, ExperimentError> {
    quietly(&experiment(), options, formula)
}

#[test]
fn repetitions_over_the_budget_are_refused_by_load_and_number() {
    let options = RunOptions {
        repetitions: Some(1_000_000_000),
        only: Some("tbench/node0/n=1".to_string()),
        jobs: 1,
        ..RunOptions::default()
    };
    let error = run_formula(&options).unwrap_err();
    assert!(error.is_input());
    let error = error.to_string();
    let begin = "tbench/node0/n=1: repetitions=1000000000 and arms=2: 2000000000 simulations take";
    assert!(error.starts_with(begin), "{error}");
    assert!(error.ends_with("--budget 477GiB"), "{error}");
}

/// Returns `formula`'s result with more noise, so that some cells are decided at once, some later and
/// some never.
fn noisy(trial: &Trial) -> Result<Found, ExperimentError> {
    let mut found = formula(trial)?;
    let own = crate::seed::seed(trial.seed, &[&trial.arm.name], 0);
    found.0.scores[0].value += (own % 1000) as f64 / 10.0;
    Ok(found)
}

/// The report is the same to the last bit.
#[test]
fn the_result_does_not_depend_on_the_jobs() {
    for thoroughness in [Thoroughness::Quick, Thoroughness::Normal] {
        let result = |jobs| {
            let options = RunOptions {
                jobs,
                thoroughness,
                further: vec!["all".to_string()],
                ..RunOptions::default()
            };
            quietly(&experiment(), &options, noisy).unwrap()
        };
        let alone = result(1);
        assert_eq!(alone.cells.len(), 42);
        let counts: HashSet<usize> = alone.cells.iter().map(|cell| cell.repetitions).collect();
        assert!(counts.len() > 2, "some are repeated: {counts:?}");
        for jobs in [2, 3, 16] {
            assert_eq!(result(jobs), alone);
        }
    }
}

#[test]
fn the_failure_does_not_depend_on_the_jobs() {
    let fails = |trial: &Trial| {
        let path = trial.load.path();
        match path.as_str() {
            "TCP_RR/node0/n=4" | "TCP_RR/node0/n=64" | "UDP_RR/node0/n=1" => {
                Err(ExperimentError::Argument(path))
            }
            _ => noisy(trial),
        }
    };
    for jobs in [1, 2, 16] {
        let options = RunOptions { jobs, ..RunOptions::default() };
        let error = quietly(&experiment(), &options, fails).unwrap_err();
        assert_eq!(error.to_string(), "TCP_RR/node0/n=64", "the dearest first");
    }
}

/// The first table's last simulation ends when one of the second has begun.
#[test]
fn no_worker_waits_at_the_end_of_a_table() {
    let second_began = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    let wait = |trial: &Trial| {
        let is_patched = trial.arm.name == "patched" && trial.repetition == 1;
        let last = trial.load.path() == "tbench/node0/n=1" && is_patched;
        while last && !second_began.load(order) {
            std::thread::yield_now();
        }
        second_began.fetch_or(trial.load.place == "node0-1", order);
        formula(trial)
    };
    let options = RunOptions { repetitions: Some(2), ..with(2, "tbench/*") };
    let report = quietly(&experiment(), &options, wait);
    assert_eq!(report.unwrap().cells.len(), 14);
}

#[test]
fn arms_of_one_repetition_share_a_seed_and_no_other_simulation_does() {
    let seen = Mutex::new(Vec::new());
    let options = RunOptions { jobs: 1, further: vec!["all".to_string()], ..RunOptions::default() };
    let note = |trial: &Trial| {
        let key = (trial.load.path(), trial.repetition);
        seen.lock().unwrap().push((key, trial.seed));
        formula(trial)
    };
    let report = quietly(&experiment(), &options, note).unwrap();
    let seen = seen.into_inner().unwrap();
    let distinct: HashSet<_> = seen.iter().cloned().collect();
    let seeds: HashSet<u64> = seen.iter().map(|(_, seed)| *seed).collect();
    assert_eq!(seen.len(), distinct.len() * report.arms.len());
    assert_eq!(distinct.len(), seeds.len());
}

#[test]
fn cells_keep_the_order_of_the_tables_and_figures_find_their_cells() {
    let options = RunOptions { jobs: 2, ..RunOptions::default() };
    let given = experiment();
    let by_cell = |trial: &Trial| {
        let mut cells = given.cells.iter();
        let cell = cells.find(|cell| cell.path() == trial.load.path());
        Ok(scored_by(cell.unwrap().published.baseline))
    };
    let report = quietly(&given, &options, by_cell).unwrap();
    for (found, given) in report.cells.iter().zip(&given.cells) {
        assert_eq!((&found.benchmark, &found.row), (&given.benchmark, &given.row));
        assert!(found.baseline_ratio.is_some_and(|ratio| (ratio - 1.0).abs() < 1e-9));
        assert!(found.simulated.delta_pct.abs() < 1e-9);
    }
    assert_eq!(report.summary.baseline_close, report.summary.baseline_rows);
}

#[test]
fn only_narrows_the_cells_and_never_the_seeds() {
    let options =
        |only: &str| RunOptions { jobs: 1, only: Some(only.to_string()), ..RunOptions::default() };
    let all = run_formula(&options("*")).unwrap();
    let some = run_formula(&options("UDP_RR/*/n=3?")).unwrap();
    assert_eq!(some.cells.len(), 2);
    assert!(some.cells.iter().all(|cell| all.cells.contains(cell)));
    let message = run_formula(&options("udp")).unwrap_err().to_string();
    assert!(message.contains("no cell of cluster-scan matches `udp`"), "{message}");
}

#[test]
fn senseless_options_are_refused() {
    let refused = |options: RunOptions| {
        let error = run_formula(&options).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    };
    let jobs = |jobs| RunOptions { jobs, ..RunOptions::default() };
    assert!(refused(jobs(0)).contains("0 jobs"));
    assert!(refused(RunOptions { repetitions: Some(0), ..jobs(1) }).contains("0 repetitions"));
    let further = vec!["magic".to_string()];
    assert!(refused(RunOptions { further, ..jobs(1) }).contains("has no arm `magic`"));
}

/// The small experiment whose rows are statistics.
fn statistics() -> Experiment {
    let figures = |_: &str| Ok(FIGURES.to_string());
    Experiment::from_toml(STATISTICS, "e.toml", &figures).unwrap()
}

fn with(jobs: usize, only: &str) -> RunOptions {
    RunOptions { jobs, only: Some(only.to_string()), ..RunOptions::default() }
}

#[test]
fn an_iteration_is_simulated_once_and_serves_every_row() {
    let seen = Mutex::new(Vec::new());
    let note = |trial: &Trial| {
        let arm = trial.arm.name.clone();
        seen.lock().unwrap().push((trial.load.path(), arm, trial.repetition));
        formula(trial)
    };
    let report = quietly(&statistics(), &with(2, "pairs/*"), note).unwrap();
    let seen = seen.into_inner().unwrap();
    let distinct: HashSet<_> = seen.iter().collect();
    assert_eq!((seen.len(), distinct.len()), (100, 100), "2 arms of 20 and of 30");
    assert_eq!(report.cells.len(), 6);
    assert_eq!(report.machine, "juno, pixel3");
}

#[test]
fn rows_are_the_statistics_of_the_iterations_that_the_report_holds() {
    let report = quietly(&statistics(), &with(1, "*"), formula).unwrap();
    let places: Vec<_> = report.iterations.iter().map(|found| found.place.as_str()).collect();
    assert_eq!(places, ["juno", "phone"], "`plain` has none: its rows are workloads");
    let phone = &report.iterations[1];
    assert_eq!((phone.machine.as_str(), phone.workload.as_str()), ("pixel3", "tbench:n=3"));
    let values: Vec<&[f64]> = phone.arms.iter().map(|arm| arm.values.as_slice()).collect();
    assert_eq!((values[0].len(), values[1].len()), (30, 30));
    for (b, p) in values[0].iter().zip(values[1]) {
        assert!((p / b - 1.1).abs() < 1e-9, "the same seed in both arms");
    }
    for cell in report.cells.iter().filter(|cell| cell.place == "phone") {
        let statistic: Statistic = cell.row.parse().unwrap();
        assert_eq!(cell.simulated.baseline, statistic.of(values[0]), "{}", cell.row);
        assert_eq!(cell.simulated.patched, statistic.of(values[1]), "{}", cell.row);
        assert!((cell.simulated.delta_pct - 10.0).abs() < 1e-9);
        assert!(cell.simulated.ci95_pct.unwrap() < 1e-9);
        assert_eq!(cell.machine, "pixel3");
    }
}

#[test]
fn a_row_alone_shows_what_it_shows_among_the_others() {
    let all = quietly(&statistics(), &with(3, "*"), formula).unwrap();
    for only in ["pairs/juno/99th", "*/phone/std", "*/mean"] {
        let some = quietly(&statistics(), &with(1, only), formula).unwrap();
        assert!(some.cells.iter().all(|cell| all.cells.contains(cell)), "{only}");
        assert!(some.iterations.iter().all(|found| all.iterations.contains(found)));
    }
}

#[test]
fn only_the_baseline_mean_is_fitted_and_a_fitted_row_counts_nowhere() {
    let report = quietly(&statistics(), &with(1, "pairs/juno/*"), formula).unwrap();
    let fitted: Vec<bool> = report.cells.iter().map(|cell| cell.calibration).collect();
    assert_eq!(fitted, [true, false, false]);
    assert_eq!((report.summary.scored, report.summary.sign_scored), (2, 2));
}

#[test]
fn one_repetition_has_no_deviation() {
    let once = |only: &str| RunOptions { repetitions: Some(1), ..with(1, only) };
    let error = quietly(&statistics(), &once("*"), formula).unwrap_err();
    assert!(error.is_input());
    let message = error.to_string();
    for words in ["1 repetition", "pairs/juno/std", "expected at least 2"] {
        assert!(message.contains(words), "{message}");
    }
    let report = quietly(&statistics(), &once("*/mean"), formula).unwrap();
    assert_eq!(report.cells[0].simulated.ci95_pct, None);
}

/// This test uses the simulator itself: other threads give the same report, another seed gives
/// another one.
#[test]
fn simulated_statistics_do_not_depend_on_the_jobs_and_the_seed_brings_them_back() {
    let experiment = statistics();
    let report = |jobs, seed| {
        let options =
            RunOptions { repetitions: Some(12), seed: Some(seed), ..with(jobs, "pairs/*") };
        run(&experiment, &options, &mut |_, _| {}).unwrap()
    };
    let alone = report(1, 5);
    assert_eq!(alone, report(3, 5));
    assert_ne!(alone.iterations, report(1, 6).iterations);
    assert!(alone.cells.iter().all(|cell| cell.higher_is_better));
    // Neither machine has clusters, so the arms are the same, whatever the seed does to both.
    for cell in &alone.cells {
        let changed = (cell.simulated.delta_pct, cell.simulated.ci95_pct);
        assert_eq!(changed, (0.0, Some(0.0)), "{}/{}", cell.place, cell.row);
        assert!(cell.simulated.baseline > 0.0);
    }
}

/// Every cell shows its own score of the one simulation, paired by seed; relative figures are
/// multiples of the baseline's mean.
#[test]
fn several_scores_of_a_simulation_fill_their_own_cells() {
    let figures = |_: &str| Ok(crate::testing::SCORES_FIGURES.to_string());
    let given = Experiment::from_toml(crate::testing::SCORES, "e.toml", &figures).unwrap();
    let count = Mutex::new(0);
    let scores = |trial: &Trial| {
        *count.lock().unwrap() += 1;
        let factor = if trial.arm.name == "baseline" { 1.0 } else { 1.2 };
        let of = |score| (100.0 * f64::from(score) + f64::from(trial.repetition)) * factor;
        let scores = 1..=trial.load.scores.len() as u32;
        let mut found = scored_by(0.0);
        found.0.scores = scores.map(|score| scored_by(of(score)).0.scores.remove(0)).collect();
        Ok(found)
    };
    let options = RunOptions { jobs: 2, ..RunOptions::default() };
    let report = quietly(&given, &options, scores).unwrap();
    assert_eq!(count.into_inner().unwrap(), 3 * 2 * 4);
    let baselines = report.cells.iter().map(|cell| cell.simulated.baseline);
    let baselines: Vec<f64> = baselines.collect();
    assert_eq!(baselines, [101.5, 301.5, 101.5, 301.5, 201.5, 201.5, 1.0]);
    for cell in &report.cells {
        assert!((cell.simulated.delta_pct - 20.0).abs() < 1e-9, "{}", cell.row);
        assert!(cell.simulated.ci95_pct.unwrap() < 1e-9, "{}", cell.row);
    }
    assert_eq!((report.summary.scored, report.summary.baseline_rows), (4, 3));
}

/// This test uses the simulator from end to end: it reads the scores of schbench under the names
/// that the file asks for.
#[test]
fn scores_are_found_by_name_and_refused_in_another_unit() {
    let figures = |_: &str| Ok(crate::testing::SCORES_FIGURES.to_string());
    let read = |text: &str| Experiment::from_toml(text, "e.toml", &figures).unwrap();
    let options = RunOptions { jobs: 1, repetitions: Some(1), ..RunOptions::default() };
    let report = run(&read(crate::testing::SCORES), &options, &mut |_, _| {}).unwrap();
    let of = |row: &str| {
        let found = report.cells.iter().find(|cell| cell.row == row);
        found.unwrap_or_else(|| panic!("no {row}"))
    };
    assert!(of("two:wake_p50.0").simulated.baseline <= of("two:wake_p99.0").simulated.baseline);
    assert!(of("two:rps20").higher_is_better && !of("two:wake_p50.0").higher_is_better);
    let rps = of("n=3:rps20").simulated.baseline / of("two:rps20").simulated.baseline;
    // The second rate is half as large again, give or take the handful of requests that a short
    // window holds.
    assert!((1.05..1.95).contains(&rps), "{rps}");
    let other = crate::testing::SCORES.replace("relative = true", "relative = false");
    let error = run(&read(&other), &options, &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains("scores in us, the experiment in times"), "{error}");
}

mod repeated;
