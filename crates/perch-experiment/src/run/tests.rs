// SPDX-License-Identifier: GPL-2.0-only
//! The runner on a simulator that is a formula.

use super::*;
use crate::library;
use std::collections::HashSet;
use std::sync::Mutex;

fn experiment() -> Experiment {
    library::resolve("cluster-scan").unwrap()
}

/// 1000 give or take what the seed says, and 10 % more for every arm but the baseline.
fn formula(trial: &Trial) -> Result<Scored, ExperimentError> {
    let noise = (trial.seed % 1000) as f64 / 100.0;
    let factor = if trial.arm.name == "baseline" {
        1.0
    } else {
        1.1
    };
    Ok(scored((1000.0 + noise) * factor))
}

fn scored(value: f64) -> Scored {
    Scored {
        value,
        higher_is_better: true,
    }
}

fn run_formula(options: &RunOptions) -> Result<Report, ExperimentError> {
    run_with(&experiment(), options, &|_, _| {}, formula)
}

#[test]
fn the_report_does_not_depend_on_the_jobs() {
    let report = |jobs| {
        run_formula(&RunOptions {
            jobs,
            ..RunOptions::default()
        })
        .unwrap()
    };
    let alone = report(1);
    assert_eq!(alone.cells.len(), 42);
    for jobs in [2, 3, 16] {
        assert_eq!(report(jobs), alone);
    }
}

#[test]
fn arms_of_one_repetition_share_a_seed_and_no_other_simulation_does() {
    let seen = Mutex::new(Vec::new());
    let options = RunOptions {
        jobs: 1,
        further: vec!["all".to_string()],
        ..RunOptions::default()
    };
    let note = |trial: &Trial| {
        let key = (trial.load.path(), trial.repetition);
        seen.lock().unwrap().push((key, trial.seed));
        formula(trial)
    };
    let report = run_with(&experiment(), &options, &|_, _| {}, note).unwrap();
    let seen = seen.into_inner().unwrap();
    let distinct: HashSet<_> = seen.iter().cloned().collect();
    let seeds: HashSet<u64> = seen.iter().map(|(_, seed)| *seed).collect();
    assert_eq!(seen.len(), distinct.len() * report.arms.len());
    assert_eq!(distinct.len(), seeds.len());
}

#[test]
fn cells_keep_the_order_of_the_tables_and_figures_find_their_cells() {
    let options = RunOptions {
        jobs: 2,
        ..RunOptions::default()
    };
    let given = experiment();
    let by_cell = |trial: &Trial| {
        let mut cells = given.cells.iter();
        let cell = cells.find(|cell| cell.path() == trial.load.path());
        Ok(scored(cell.unwrap().published.baseline))
    };
    let report = run_with(&given, &options, &|_, _| {}, by_cell).unwrap();
    for (found, given) in report.cells.iter().zip(&given.cells) {
        assert_eq!(
            (&found.benchmark, &found.row),
            (&given.benchmark, &given.row)
        );
        assert!((found.baseline_ratio - 1.0).abs() < 1e-9);
        assert!(found.simulated.delta_pct.abs() < 1e-9);
    }
    assert_eq!(report.summary.baseline_close, report.summary.baseline_rows);
}

#[test]
fn only_narrows_the_cells_and_never_the_seeds() {
    let options = |only: &str| RunOptions {
        jobs: 1,
        only: Some(only.to_string()),
        ..RunOptions::default()
    };
    let all = run_formula(&options("*")).unwrap();
    let some = run_formula(&options("UDP_RR/*/n=3?")).unwrap();
    assert_eq!(some.cells.len(), 2);
    assert!(some.cells.iter().all(|cell| all.cells.contains(cell)));
    let message = run_formula(&options("udp")).unwrap_err().to_string();
    assert!(
        message.contains("no cell of cluster-scan matches `udp`"),
        "{message}"
    );
}

#[test]
fn senseless_options_are_refused() {
    let refused = |options: RunOptions| {
        let error = run_formula(&options).unwrap_err();
        assert!(error.is_input());
        error.to_string()
    };
    let jobs = |jobs| RunOptions {
        jobs,
        ..RunOptions::default()
    };
    assert!(refused(jobs(0)).contains("0 jobs"));
    assert!(
        refused(RunOptions {
            repetitions: Some(0),
            ..jobs(1)
        })
        .contains("0 repetitions")
    );
    let further = vec!["magic".to_string()];
    assert!(refused(RunOptions { further, ..jobs(1) }).contains("has no arm `magic`"));
}
