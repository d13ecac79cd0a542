// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the repetitions that a run hands out, and of the figures made of them.

use super::*;

/// One repetition that a run handed out, without the names of its experiment and place.
#[derive(Debug, PartialEq)]
struct Raw {
    path: String,
    arm: String,
    seed: u64,
    repetition: u32,
    value: f64,
    divisor: f64,
}

fn raw_of(experiment: &Experiment, jobs: usize) -> (Report, Vec<Raw>) {
    let options = RunOptions { jobs, further: vec!["all".to_string()], ..RunOptions::default() };
    let mut raw = Vec::new();
    let mut note = |r: &crate::Repetition| {
        let parts = [r.benchmark, r.place, r.row];
        raw.push(Raw {
            path: parts.into_iter().flatten().collect::<Vec<_>>().join("/"),
            arm: r.arm.to_string(),
            seed: r.seed,
            repetition: r.repetition,
            value: r.value,
            divisor: r.divisor,
        });
        Ok(())
    };
    let scores = |trial: &Trial| {
        let mut found = formula(trial)?;
        let one = found.scores.remove(0);
        found.scores = vec![one; trial.load.scores.len()];
        for (number, score) in (1..).zip(&mut found.scores) {
            score.value *= f64::from(number);
        }
        Ok(found)
    };
    let report = run_with(experiment, &options, &|_, _| {}, &mut note, scores).unwrap();
    (report, raw)
}

/// The means, statistics and intervals that the test makes from the raw values equal those of the
/// report, to the last bit, for rows that are workloads, statistics, scores, and multiples of an
/// unknown baseline.
#[test]
fn every_figure_comes_out_of_the_raw_repetitions() {
    let given = [(STATISTICS, FIGURES), (crate::testing::SCORES, crate::testing::SCORES_FIGURES)];
    for (text, figures) in given {
        let figures = |_: &str| Ok(figures.to_string());
        let experiment = Experiment::from_toml(text, "e.toml", &figures).unwrap();
        let (report, raw) = raw_of(&experiment, 3);
        assert_eq!(raw_of(&experiment, 1), (report.clone(), raw));
        let (_, raw) = raw_of(&experiment, 1);
        let mut seen = 0;
        for (cell, shown) in experiment.cells.iter().zip(&report.cells) {
            let load = &experiment.loads[cell.load];
            let path = match load.row {
                Some(_) => cell.path(),
                None => load.path(),
            };
            let of = |arm: &str| -> Vec<f64> {
                let mine = raw.iter().filter(|r| r.path == path && r.arm == arm);
                mine.map(|r| r.value / r.divisor).collect()
            };
            let (baseline, patched) = (of("baseline"), of("patched"));
            assert_eq!(baseline.len(), load.effort.repetitions as usize, "{path}");
            let found = shown.simulated;
            assert_eq!(cell.statistic.of(&baseline), found.baseline, "{path}");
            assert_eq!(cell.statistic.of(&patched), found.patched, "{path}");
            if cell.statistic == Statistic::Mean {
                let delta = crate::stats::delta(&baseline, &patched);
                assert_eq!((delta.pct, delta.ci95_pct), (found.delta_pct, found.ci95_pct));
                seen += 1;
            }
            for further in &shown.further {
                assert_eq!(cell.statistic.of(&of(&further.arm)), further.mean, "{path}");
            }
            for (number, baseline) in raw.iter().filter(|r| r.path == path).enumerate() {
                let same = |r: &&Raw| r.path == path && r.repetition == baseline.repetition;
                assert!(raw.iter().filter(same).all(|r| r.seed == baseline.seed));
                assert_eq!(number as u32 % load.effort.repetitions, baseline.repetition);
            }
        }
        assert!(seen > 0);
        let each = raw.iter().map(|r| (&r.path, &r.arm, r.repetition));
        assert_eq!(each.collect::<HashSet<_>>().len(), raw.len(), "nothing twice");
    }
}

#[test]
fn who_cannot_take_a_repetition_ends_the_run() {
    let mut full = |_: &crate::Repetition| Err(ExperimentError::Argument("full".to_string()));
    let options = with(1, "tbench/node0/n=1");
    let error = run_with(&experiment(), &options, &|_, _| {}, &mut full, formula).unwrap_err();
    assert_eq!(error.to_string(), "full");
}
