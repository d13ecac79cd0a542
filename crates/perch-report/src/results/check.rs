// SPDX-License-Identifier: GPL-2.0-or-later
//! The rules that results keep beyond their types. Each refusal begins with the place in the file.

use perch_experiment::{ArmCpus, Comparison, CountRow, LoadFound, Report, ScoreRow, WakeLatency};
use serde_json::Value;

use super::Defect;

/// The largest size of a figure. No machine counts so far, and sums of such figures stay finite.
const LARGEST: f64 = 1e18;
/// The most arms, cells, and rows of a table of counts. A page of more would be unreadable, and the
/// pixels of larger charts would overflow.
const MOST_ARMS: usize = 256;
const MOST_CELLS: usize = 4096;
const MOST_ROWS: usize = 16384;

type Checked = Result<(), Defect>;

/// Checks an experiment that stands at `at`.
pub fn experiment(at: &str, value: &Value, report: &Report) -> Checked {
    let at = |key: &str| place(at, key);
    figures(&at(""), value)?;
    few(&at("arms"), report.arms.len(), MOST_ARMS)?;
    few(&at("cells"), report.cells.len(), MOST_CELLS)?;
    few(&at("loads"), report.loads.len(), MOST_CELLS)?;
    few(&at("iterations"), report.iterations.len(), MOST_CELLS)?;
    let mut cells = report.cells.iter().enumerate();
    let names = |cell: &perch_experiment::CellReport| -> Vec<String> {
        cell.further.iter().map(|arm| arm.arm.clone()).collect()
    };
    let first = report.cells.first().map(names).unwrap_or_default();
    few(&at("cells[0].further"), first.len(), MOST_ARMS)?;
    if let Some((number, _)) = cells.find(|(_, cell)| names(cell) != first) {
        let of_first = if first.is_empty() { "none".to_string() } else { first.join(", ") };
        return Err(format!(
            "{}: other arms than in cells[0], expected {of_first}",
            at(&format!("cells[{number}].further"))
        )
        .into());
    }
    for (number, cell) in report.cells.iter().enumerate() {
        let here = |key: &str| at(&format!("cells[{number}].{key}"));
        half(&here("simulated.ci95_pct"), cell.simulated.ci95_pct)?;
        for (arm, found) in cell.further.iter().enumerate() {
            half(&here(&format!("further[{arm}].ci95_pct")), found.ci95_pct)?;
        }
    }
    for (number, found) in report.iterations.iter().enumerate() {
        let here = at(&format!("iterations[{number}].arms"));
        number_of(&here, found.arms.len(), 2 + first.len(), "one per arm")?;
    }
    let arms = report.loads.first().map(|load| load.latency.len());
    for (number, found) in report.loads.iter().enumerate() {
        load(&at(&format!("loads[{number}]")), found, arms.unwrap_or(0))?;
    }
    Ok(())
}

fn load(at: &str, load: &LoadFound, arms: usize) -> Checked {
    let here = |key: &str| place(at, key);
    let as_first = "as in loads[0]";
    few(&here("latency"), load.latency.len(), MOST_ARMS)?;
    number_of(&here("latency"), load.latency.len(), arms, as_first)?;
    latency(&here("latency"), &load.latency)?;
    counts(&here("decisions"), &load.decisions, arms)?;
    counts(&here("migrations"), &load.migrations, arms)?;
    busy(&here("cpus"), &load.cpus)
}

/// Checks a comparison.
pub fn comparison(value: &Value, found: &Comparison) -> Checked {
    figures("", value)?;
    let arms = found.arms.len();
    few("arms", arms, MOST_ARMS)?;
    if arms == 0 {
        return Err("arms: found none, expected at least one".into());
    }
    if !found.kernels.is_empty() {
        number_of("kernels", found.kernels.len(), arms, "one per arm")?;
    }
    for (number, (kernel, arm)) in found.kernels.iter().zip(&found.arms).enumerate() {
        if kernel.arm != arm.name {
            return Err(format!(
                "kernels[{number}].arm: found `{}`, expected `{}`, the name in arms[{number}]",
                kernel.arm, arm.name
            )
            .into());
        }
    }
    few("scores", found.scores.len(), MOST_ROWS)?;
    for (number, row) in found.scores.iter().enumerate() {
        score(&format!("scores[{number}]"), row, found)?;
    }
    few("latency", found.latency.len(), MOST_ARMS)?;
    latency("latency", &found.latency)?;
    busy("cpus", &found.cpus)?;
    for (key, rows) in found.counted() {
        counts(key, rows, arms)?;
    }
    Ok(())
}

fn score(at: &str, row: &ScoreRow, found: &Comparison) -> Checked {
    let here = format!("{at}.arms");
    number_of(&here, row.arms.len(), found.arms.len(), "one per arm")?;
    let names = |arm: usize| -> Vec<&str> {
        let statistics = row.arms[arm].statistics.iter();
        statistics.map(|one| one.statistic.as_str()).collect()
    };
    for (number, (arm, named)) in row.arms.iter().zip(&found.arms).enumerate() {
        let here = format!("{here}[{number}]");
        if arm.arm != named.name {
            return Err(format!(
                "{here}.arm: found `{}`, expected `{}`, the name in arms[{number}]",
                arm.arm, named.name
            )
            .into());
        }
        if names(number) != names(0) {
            return Err(format!(
                "{here}.statistics: other statistics than those of arms[0], expected the same"
            )
            .into());
        }
        few(&format!("{here}.course"), arm.course.len(), MOST_ROWS)?;
        half(&format!("{here}.ci95"), arm.ci95)?;
        half(&format!("{here}.delta_ci95_pct"), arm.delta_ci95_pct)?;
        for (of, one) in arm.statistics.iter().enumerate() {
            let here = format!("{here}.statistics[{of}].delta_ci95_pct");
            half(&here, one.delta_ci95_pct)?;
        }
    }
    Ok(())
}

/// Checks histograms: each bucket has wake-ups, the shortest is first, and they add up.
fn latency(at: &str, found: &[WakeLatency]) -> Checked {
    for (arm, latency) in found.iter().enumerate() {
        let (mut shortest, mut sum) = (None, 0u64);
        for (number, &[ns, count]) in latency.buckets.iter().enumerate() {
            let here = || format!("{at}[{arm}].buckets[{number}]");
            if shortest.is_some_and(|before| ns <= before) {
                return Err(format!(
                    "{}: {ns} ns does not follow the bucket before it, expected the shortest first",
                    here()
                )
                .into());
            }
            sum = sum.saturating_add(count);
            if count == 0 || sum as f64 > LARGEST {
                return Err(format!(
                    "{}: {count} wake-ups, expected 1 at least and {LARGEST:e} at most in all",
                    here()
                )
                .into());
            }
            shortest = Some(ns);
        }
    }
    Ok(())
}

/// Checks rates by arm.
fn counts(at: &str, rows: &[CountRow], arms: usize) -> Checked {
    few(at, rows.len(), MOST_ROWS)?;
    for (number, row) in rows.iter().enumerate() {
        let here = format!("{at}[{number}].per_second");
        number_of(&here, row.per_second.len(), arms, "one per arm")?;
    }
    Ok(())
}

/// Checks the CPUs of each arm. A page leaves out those that are not the machine's.
fn busy(at: &str, cpus: &[ArmCpus]) -> Checked {
    few(at, cpus.len(), MOST_ARMS)?;
    for (arm, found) in cpus.iter().enumerate() {
        few(&format!("{at}[{arm}].busy_pct"), found.busy_pct.len(), MOST_ROWS)?;
    }
    Ok(())
}

/// Checks half the width of an interval.
fn half(at: &str, half: Option<f64>) -> Checked {
    match half {
        Some(half) if half < 0.0 => Err(format!("{at}: found {half}, expected 0 or more").into()),
        _ => Ok(()),
    }
}

fn few(at: &str, found: usize, most: usize) -> Checked {
    if found > most {
        Err(format!("{at}: found {found} of them, expected {most} at most").into())
    } else {
        Ok(())
    }
}

fn number_of(at: &str, found: usize, expected: usize, why: &str) -> Checked {
    if found == expected {
        Ok(())
    } else {
        Err(format!("{at}: found {found} of them, expected {expected}, {why}").into())
    }
}

/// Returns the place of a key, or of an entry, in the value at `at`.
fn place(at: &str, key: &str) -> String {
    match (at, key) {
        ("", key) => key.to_string(),
        (at, "") => at.to_string(),
        (at, key) => format!("{at}.{key}"),
    }
}

/// Refuses a number beyond [`LARGEST`] anywhere in a value, but for seeds, which may be any.
fn figures(at: &str, value: &Value) -> Checked {
    match value {
        Value::Number(number) if is_figure(number) => Ok(()),
        Value::Number(number) => {
            Err(format!("{at}: found {number}, expected a number of at most {LARGEST:e}").into())
        }
        Value::Array(all) => {
            let mut all = all.iter().enumerate();
            all.try_for_each(|(number, one)| match one {
                // Most numbers stand in long lists, so their places are made on demand.
                Value::Number(found) if is_figure(found) => Ok(()),
                one => figures(&format!("{at}[{number}]"), one),
            })
        }
        Value::Object(map) => {
            let mut all = map.iter().filter(|(key, _)| *key != "seed");
            all.try_for_each(|(key, one)| figures(&place(at, key), one))
        }
        _ => Ok(()),
    }
}

fn is_figure(number: &serde_json::Number) -> bool {
    number.as_f64().is_some_and(|found| found.abs() <= LARGEST)
}
