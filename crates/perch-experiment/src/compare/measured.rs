// SPDX-License-Identifier: GPL-2.0-or-later
//! A comparison whose scores are measured somewhere else than in the simulator.

use std::fmt::Display;

use perch_machine::Machine;

use super::kernels::{ArmKernel, common_hz, releases};
use super::scoring::arm_scores;
use super::{Comparison, ScoreRow};
use crate::MODEL;
use crate::error::ExperimentError;
use crate::pool::{self, Progress};
use crate::report::ArmModes;
use crate::seed::seed;
use crate::statistic::{DESCRIBE, Statistic};

/// The request for a comparison of measurements.
#[derive(Clone, Debug)]
pub struct MeasuredSpec {
    /// The machine on which the arms run.
    pub machine: Machine,
    /// What the machine is, in words that go on after "on MACHINE, ": `a guest of 8 CPUs`.
    pub place: String,
    /// The load, in words.
    pub workload: String,
    /// The arms, at least one; changes are from the first.
    pub arms: Vec<ArmModes>,
    /// The kernel of each arm, in the order of the arms.
    pub kernels: Vec<ArmKernel>,
    /// Measurements of each arm, at least 1.
    pub repetitions: u32,
    /// True where every score is also described by its statistics over the repetitions.
    pub statistics: bool,
    /// The seed from which the repetitions' seeds are derived.
    pub seed: u64,
    /// The number of measurements at a time, at least 1.
    pub jobs: usize,
}

/// One measurement's value of one score.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredScore {
    /// The quantity that the score measures.
    pub name: String,
    /// The score's unit.
    pub unit: String,
    /// True where more is better.
    pub higher_is_better: bool,
    /// The value, in the score's unit.
    pub value: f64,
}

/// One measurement to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurement {
    /// The index of the arm.
    pub arm: usize,
    /// The repetition's number, from 0.
    pub repetition: u32,
    /// The repetition's seed, which is the same for all arms.
    pub seed: u64,
}

/// Makes all measurements by calls of `measure`, and compares the arms.
///
/// # Errors
/// [`ExperimentError::Argument`] when there is no arm, two have the same name or a number makes no
/// sense; [`ExperimentError::Run`] with the words of `measure` when a measurement fails, and when
/// a measurement has other scores than the first one.
pub fn compare_measured<E: Display>(
    spec: &MeasuredSpec,
    progress: Progress,
    measure: impl Fn(Measurement) -> Result<Vec<MeasuredScore>, E> + Sync,
) -> Result<Comparison, ExperimentError> {
    check(spec)?;
    let repetitions = spec.repetitions as usize;
    let parts = ["measured", &spec.machine.name, &spec.workload];
    let what = |index: usize| Measurement {
        arm: index / repetitions,
        repetition: (index % repetitions) as u32,
        seed: seed(spec.seed, &parts, (index % repetitions) as u32),
    };
    let mut described: Vec<MeasuredScore> = Vec::new();
    // The values by score, then by arm.
    let mut values: Vec<Vec<Vec<f64>>> = Vec::new();
    let run = |index: usize| {
        let found = measure(what(index));
        found.map_err(|error| failure(spec, what(index), error.to_string()))
    };
    let keep = |index: usize, found: Vec<MeasuredScore>| {
        if index == 0 {
            values = found.iter().map(|_| vec![Vec::new(); spec.arms.len()]).collect();
            described = found.clone();
        }
        if !same(&described, &found) {
            let reason = format!(
                "its scores are {}, and those of the first arm's first repetition are {}",
                names(&found),
                names(&described)
            );
            return Err(failure(spec, what(index), reason));
        }
        let scores = values.iter_mut().zip(&found);
        scores.for_each(|(arms, score)| arms[index / repetitions].push(score.value));
        Ok(())
    };
    pool::run(spec.arms.len() * repetitions, spec.jobs, progress, run, keep)?;
    let draws = seed(spec.seed, &[&parts[..], &["bootstrap"]].concat(), 0);
    let rows = described.iter().zip(values).map(|(described, values)| {
        let arms = spec.arms.iter().map(|arm| arm.name.as_str());
        ScoreRow {
            name: described.name.clone(),
            unit: described.unit.clone(),
            higher_is_better: described.higher_is_better,
            arms: arm_scores(arms, values, spec.statistics, draws),
        }
    });
    let scores = rows.collect();
    let mut found = Comparison {
        machine: spec.machine.name.clone(),
        place: Some(spec.place.clone()),
        workload: spec.workload.clone(),
        era: releases(&spec.kernels),
        hz: common_hz(&spec.kernels),
        root_domain: None,
        model: MODEL.to_string(),
        seed: spec.seed,
        trust: None,
        repetitions: spec.repetitions,
        window: None,
        arms: spec.arms.clone(),
        kernels: spec.kernels.clone(),
        scores,
        latency: Vec::new(),
        cpus: Vec::new(),
        machine_toml: spec.machine.to_toml(),
        decisions: Vec::new(),
        chosen: Vec::new(),
        cache: Vec::new(),
        wake_distance: Vec::new(),
        migrations: Vec::new(),
        balanced: Vec::new(),
        guests: Vec::new(),
        totals: Vec::new(),
        contention: Vec::new(),
    };
    if !spec.statistics {
        found.forget_iterations();
    }
    Ok(found)
}

fn check(spec: &MeasuredSpec) -> Result<(), ExperimentError> {
    let refuse = |reason: String| Err(ExperimentError::Argument(reason));
    let names: Vec<&str> = spec.arms.iter().map(|arm| arm.name.as_str()).collect();
    if names.is_empty() {
        return refuse("no arm: expected --arm at least once".to_string());
    }
    let of_kernels = spec.kernels.iter().map(|kernel| kernel.arm.as_str());
    if !of_kernels.eq(names.iter().copied()) {
        return refuse("the list of kernels must have one kernel per arm".to_string());
    }
    let again = (1..names.len()).find(|&index| names[..index].contains(&names[index]));
    if let Some(index) = again {
        return refuse(format!("there are two arms `{}`: give each its own name", names[index]));
    }
    if spec.jobs == 0 || spec.repetitions == 0 {
        return refuse("jobs and repetitions must be at least 1".to_string());
    }
    let least = DESCRIBE.map(Statistic::least).into_iter().max();
    if spec.statistics && Some(spec.repetitions) < least {
        return refuse(format!(
            "{} repetition has no standard deviation: expected at least 2 for statistics",
            spec.repetitions
        ));
    }
    Ok(())
}

fn failure(spec: &MeasuredSpec, at: Measurement, reason: String) -> ExperimentError {
    let arm = &spec.arms[at.arm].name;
    ExperimentError::run(&spec.workload, arm, at.repetition as usize, reason)
}

/// Returns whether scores have the names, units and order of the first measurement's.
fn same(first: &[MeasuredScore], scores: &[MeasuredScore]) -> bool {
    let described = |scores: &[MeasuredScore]| -> Vec<(String, String, bool)> {
        let one = |score: &MeasuredScore| {
            let MeasuredScore { name, unit, .. } = score;
            (name.clone(), unit.clone(), score.higher_is_better)
        };
        scores.iter().map(one).collect()
    };
    described(first) == described(scores)
}

fn names(scores: &[MeasuredScore]) -> String {
    let names = scores.iter().map(|score| score.name.as_str());
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Measured = Result<Vec<MeasuredScore>, &'static str>;

    fn spec(arms: &[&str], repetitions: u32) -> MeasuredSpec {
        MeasuredSpec {
            machine: perch_machine::resolve("x5570").unwrap(),
            place: "a guest of 4 CPUs".to_string(),
            workload: "hackbench".to_string(),
            arms: arms
                .iter()
                .map(|name| ArmModes { name: name.to_string(), modes: String::new() })
                .collect(),
            kernels: arms
                .iter()
                .map(|arm| ArmKernel { arm: arm.to_string(), release: "7.2".to_string(), hz: 250 })
                .collect(),
            repetitions,
            statistics: false,
            seed: 1,
            jobs: 1,
        }
    }

    fn score(name: &str, value: f64) -> Measured {
        Ok(vec![MeasuredScore {
            name: name.to_string(),
            unit: "s".to_string(),
            higher_is_better: false,
            value,
        }])
    }

    #[test]
    fn arms_of_a_repetition_share_a_seed_and_are_compared_with_the_first() {
        let mut spec = spec(&["a", "b"], 3);
        // The value depends on the seed and on the arm, in which b is twice a.
        let measure = |at: Measurement| {
            let by_seed = 10.0 + (at.seed % 8) as f64 + f64::from(at.repetition);
            score("time", by_seed * (1 + at.arm) as f64)
        };
        spec.statistics = true;
        let in_full = compare_measured(&spec, &mut |_, _| {}, measure).unwrap();
        let [a, b] = [0, 1].map(|arm| &in_full.scores[0].arms[arm].iterations);
        assert_eq!((a.len(), b.len()), (3, 3));
        assert!(a.iter().zip(b).all(|(a, b)| 2.0 * a == *b), "{a:?}, {b:?}");
        spec.statistics = false;
        let found = compare_measured(&spec, &mut |_, _| {}, measure).unwrap();
        let [a, b] = &found.scores[0].arms[..] else {
            panic!("two arms");
        };
        assert!((b.delta_pct - 100.0).abs() < 1e-9 && a.delta_pct == 0.0);
        assert!(a.ci95.unwrap() > 0.0 && a.iterations.is_empty());
        spec.jobs = 4;
        let parallel = compare_measured(&spec, &mut |_, _| {}, measure).unwrap();
        assert_eq!(found, parallel);
    }

    #[test]
    fn every_arm_has_its_own_kernel_and_the_seeds_of_the_others() {
        let mut spec = spec(&["old", "new", "perch"], 2);
        spec.kernels[0].release = "6.18".to_string();
        spec.kernels[0].hz = 100;
        let measure = |at: Measurement| score("time", (at.seed % 1000) as f64 + 1.0);
        let found = compare_measured(&spec, &mut |_, _| {}, measure).unwrap();
        assert_eq!((found.era.as_str(), found.hz), ("6.18 and 7.2", 0));
        assert_eq!(found.kernels, spec.kernels);
        for arm in &found.scores[0].arms[1..] {
            assert_eq!((arm.delta_pct, arm.delta_ci95_pct), (0.0, Some(0.0)));
        }
        spec.kernels.pop();
        let refused = compare_measured(&spec, &mut |_, _| {}, measure);
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("one kernel per arm"), "{words}");
    }

    #[test]
    fn a_failure_and_another_score_name_the_arm() {
        let spec = spec(&["stock", "perch"], 2);
        let run = |measure: &(dyn Fn(Measurement) -> Measured + Sync)| {
            let found = compare_measured(&spec, &mut |_, _| {}, measure);
            found.unwrap_err().to_string()
        };
        let words = run(&|at| match (at.arm, at.repetition) {
            (1, 0) => Err("it stalled"),
            _ => score("time", 1.0),
        });
        assert!(
            words.contains("arm perch, repetition 0") && words.contains("it stalled"),
            "{words}"
        );
        let words = run(&|at| score(if at.arm == 1 { "n=4" } else { "n=2" }, 1.0));
        assert!(words.contains("its scores are n=4, and those of the first arm's"), "{words}");
    }

    #[test]
    fn arms_and_numbers_are_refused() {
        let refused = |spec: &MeasuredSpec| {
            let measure = |_| score("time", 1.0);
            let found = compare_measured(spec, &mut |_, _| {}, measure);
            found.unwrap_err().to_string()
        };
        assert!(refused(&spec(&[], 1)).contains("no arm"));
        assert!(refused(&spec(&["a", "b", "a"], 1)).contains("two arms `a`"));
        assert!(refused(&spec(&["a"], 0)).contains("at least 1"));
        let mut one = spec(&["a"], 1);
        one.statistics = true;
        assert!(refused(&one).contains("at least 2 for statistics"));
    }
}
