// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the repetitions that undecided cells get.

use perch_sim::Batch;

use super::*;
use crate::cell::CellReport;
use crate::judge::{Tolerance, Verdict};

/// Runs two cells whose changes are 3 points above the published ones: on the tolerance's edge, so
/// that the interval reaches over it as long as the seeds scatter.
fn on_the_edge(thoroughness: Thoroughness, jobs: usize) -> Report {
    let options = RunOptions {
        jobs,
        only: Some("UDP_RR/*/n=3?".to_string()),
        thoroughness,
        ..RunOptions::default()
    };
    let given = experiment();
    let edge = |trial: &Trial| {
        let noise = (trial.seed % 1000) as f64 / 100.0;
        let mut cells = given.cells.iter();
        let cell = cells.find(|cell| cell.path() == trial.load.path());
        let high_pct = Tolerance::of(&cell.unwrap().published).high_pct;
        let baseline = trial.arm.name == "baseline";
        Ok(scored_by(match (baseline, trial.load.place.as_str()) {
            (true, _) => 1000.0,
            // The middle of the tolerance on one of the places.
            (false, "node0") => 1000.0 + 10.0 * (high_pct - 3.0) + noise / 10.0,
            (false, _) => 1000.0 + 10.0 * high_pct + noise - 5.0,
        }))
    };
    quietly(&given, &options, edge).unwrap()
}

#[test]
fn undecided_cells_are_repeated_until_the_effort_is_spent_and_decided_ones_are_not() {
    let given = experiment();
    let own = |cell: &CellReport| {
        let path =
            |c: &&Cell| (&c.place, &c.row) == (&cell.place, &cell.row) && c.benchmark == "UDP_RR";
        let cell = given.cells.iter().find(path).unwrap();
        given.loads[cell.load].effort.repetitions as usize
    };
    for (thoroughness, most) in
        [(Thoroughness::Quick, 1), (Thoroughness::Normal, 4), (Thoroughness::Full, 32)]
    {
        let found = on_the_edge(thoroughness, 1);
        let [sure, edge] = &found.cells[..] else {
            panic!("{:?}", found.cells);
        };
        assert_eq!(sure.verdict, Verdict::Agrees, "{sure:?}");
        assert_eq!(sure.repetitions, own(sure));
        assert_eq!(edge.verdict, Verdict::Undecided, "{edge:?}");
        assert_eq!(edge.repetitions, most * own(edge));
        assert_eq!((found.summary.agrees, found.summary.undecided), (1, 1));
        assert_eq!(on_the_edge(thoroughness, 3), found);
    }
}

/// The number of iterations is part of what statistics say, and a number that the user gave is
/// obeyed.
#[test]
fn statistics_and_a_given_number_of_repetitions_stay_as_they_are() {
    let full =
        |repetitions| RunOptions { thoroughness: Thoroughness::Full, repetitions, ..with(2, "*") };
    let mut found = quietly(&statistics(), &full(None), formula);
    let counts = found.as_mut().unwrap().cells.drain(..6);
    let counts: Vec<usize> = counts.map(|cell| cell.repetitions).collect();
    assert_eq!(counts, [20, 20, 20, 30, 30, 30]);
    let found = quietly(&experiment(), &full(Some(3)), formula);
    assert!(found.unwrap().cells.iter().all(|cell| cell.repetitions == 3));
}

/// A load whose score rises until 2 s of simulated time: the experiment's own times lie within that.
struct Rising;

impl Simulate for Rising {
    fn simulate(&self, trial: &Trial) -> Result<Found, ExperimentError> {
        let Effort { warmup_ns, measure_ns, .. } = trial.effort;
        let mut found = scored_by(1000.0);
        let batch = |batch: u64| {
            let at_ns = warmup_ns + measure_ns * batch / 20;
            let noise = (trial.seed.wrapping_mul(batch + 7) % 100) as f64 / 100.0;
            let score = 1000.0 + noise + at_ns.min(2_000_000_000) as f64 / 1e7;
            Batch { scores: vec![Some(score)], latency_us: None, kernel_pct: None }
        };
        found.1 = (0..20).map(batch).collect();
        Ok(found)
    }

    fn balancing_ns(&self, _load: &Load) -> u64 {
        500_000_000
    }
}

/// Times double until the score is steady or the effort is spent; what is quick or has its repetitions
/// by hand is simulated as the experiment says, and says that it is not settled.
#[test]
fn loads_are_simulated_for_longer_until_they_are_steady() {
    let run = |thoroughness, repetitions| {
        let options = RunOptions {
            jobs: 2,
            only: Some("UDP_RR/node0/n=1".to_string()),
            thoroughness,
            repetitions,
            ..RunOptions::default()
        };
        let report = quietly(&experiment(), &options, Rising).unwrap();
        let cell = &report.cells[0];
        (cell.warmup_ms, cell.measure_ms, cell.transient_ms.is_some())
    };
    let own = run(Thoroughness::Quick, None);
    assert!(own.0 < 500.0 && own.2, "{own:?}");
    assert_eq!(run(Thoroughness::Full, Some(5)), own);
    // The balancer's turn comes first, then doubling: 0.5, 1, 2 s.
    let (_, measure_ms, _) = own;
    assert_eq!(run(Thoroughness::Normal, None), (2000.0, 4.0 * measure_ms, false));
    assert_eq!(run(Thoroughness::Full, None), (2000.0, 4.0 * measure_ms, false));
}

/// A simulator of the formula whose loads cost as many events per 10 ms as the field says.
struct Dear(u64);

impl Simulate for Dear {
    fn simulate(&self, trial: &Trial) -> Result<Found, ExperimentError> {
        formula(trial)
    }

    fn events(&self, _: &Load, _: &Arm, _: u64) -> Result<Option<u64>, ExperimentError> {
        Ok(Some(self.0))
    }
}

#[test]
fn dear_loads_are_shortened_and_stay_undecided_where_a_quick_run_ends_too_early() {
    let run = |events, thoroughness| {
        let options = RunOptions { thoroughness, ..with(2, "UDP_RR/node0/n=16") };
        let report = quietly(&experiment(), &options, Dear(events)).unwrap();
        let cell = &report.cells[0];
        assert!(!cell.is_short || cell.verdict == Verdict::Undecided);
        assert_eq!(report.effort, Some(thoroughness));
        (cell.warmup_ms, cell.measure_ms, cell.is_short)
    };
    assert_eq!(run(1000, Thoroughness::Quick), (300.0, 100.0, false));
    assert_eq!(run(80_000, Thoroughness::Quick), (75.0, 25.0, false));
    assert_eq!(run(1_000_000, Thoroughness::Quick), (20.0, 20.0, true));
    assert_eq!(run(1_000_000, Thoroughness::Normal), (300.0, 100.0, false));
}
