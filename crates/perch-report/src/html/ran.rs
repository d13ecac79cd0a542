// SPDX-License-Identifier: GPL-2.0-or-later
//! The parts of a page beside scores: how long wake-ups took, why CPUs were chosen, how far tasks
//! went, and where they ran.

use std::fmt::Write;

use perch_experiment::{ArmCpus, CountRow, LoadFound, Report, WakeLatency};
use perch_machine::Machine;

use super::chart::{self, Axis, Point, Series, Ticks, Words};
use super::machine;
use super::{captioned, escape};
use crate::figure::figure;
use crate::grid::{Align, Grid};
use crate::latency::rounded;

/// A table of CPUs has at most so many rows; more rows are put together.
const MOST_ROWS: usize = 32;

/// Draws all percentiles as curves, and adds a table of those that have a name.
pub fn curves(body: &mut String, title: &str, found: &[WakeLatency]) {
    if found.iter().all(|arm| arm.buckets.is_empty()) {
        return;
    }
    let arms: Vec<(String, Vec<[u64; 2]>)> =
        found.iter().map(|arm| (arm.arm.clone(), arm.buckets.clone())).collect();
    let caption = "Time from wake-up to running that so many of the wake-ups did not exceed. Both \
                   axes are logarithmic; marks at the 50th, 90th, 99th and 99.9th percentile. Lower \
                   is better.";
    let words = Words { name: &format!("{title}: wake-up latency by percentile"), said: caption };
    captioned(body, &chart::tails(&words, &arms), caption);
    let mut grid = Grid::new(&["microseconds"], &["wake-ups", "mean"]);
    for (name, _) in found[0].percentiles() {
        grid.column("", name, Align::Right);
    }
    for arm in found {
        let first = [arm.arm.clone(), arm.wakeups.to_string(), figure(arm.mean_us)];
        let rest = arm.percentiles().into_iter().map(|(_, us)| figure(us));
        grid.row(first.into_iter().chain(rest).collect());
    }
    body.push_str(&grid.html());
}

/// Draws the median and the 99th percentile of each load.
fn by_load(body: &mut String, title: &str, loads: &[&LoadFound]) {
    let names = loads.iter().map(|load| load.row.as_deref().unwrap_or(""));
    let names: Vec<String> = names.map(|row| row.trim_start_matches("n=").to_string()).collect();
    let arms = loads.first().map_or(&[][..], |load| &load.latency);
    let mut series = Vec::new();
    for (look, arm) in arms.iter().enumerate() {
        type Which = fn(&WakeLatency) -> f64;
        let both: [(&str, Which, bool); 2] =
            [("99th", |w| w.p99_us, false), ("median", |w| w.p50_us, true)];
        for (which, us, hollow) in both {
            let point = |(x, load): (usize, &&LoadFound)| {
                let y = us(load.latency.get(look)?);
                let (x, half) = (x as f64, None);
                (y > 0.0).then(|| Point { x, y: y.log10(), half, span: None })
            };
            series.push(Series {
                name: format!("{}, {which}", arm.arm),
                points: loads.iter().enumerate().filter_map(point).collect(),
                look,
                published: hollow,
            });
        }
    }
    let caption = "Time from wake-up to running, on a logarithmic axis: the 99th percentile (solid, \
                   filled marks) and the median (dashed, hollow marks). Lower is better.";
    let words = Words { name: &format!("{title}: wake-up latency by load"), said: caption };
    let x = Axis { name: "load", ticks: Ticks::Names(&names) };
    let y = Axis { name: "us", ticks: Ticks::Powers };
    captioned(body, &chart::lines(&words, &x, &y, &series), caption);
    let mut grid = Grid::new(&["microseconds"], &[]);
    for arm in arms {
        grid.columns(&arm.arm, &["median", "99th", "max"], Align::Right);
    }
    for load in loads {
        let figures = load.latency.iter();
        let figures = figures.flat_map(|arm| [arm.p50_us, arm.p99_us, arm.max_us].map(figure));
        grid.row([load.row.clone().unwrap_or_default()].into_iter().chain(figures).collect());
    }
    body.push_str(&grid.html());
}

/// Returns each row's share of all, in percent: the mean over the loads, which all count the same.
fn shares(loads: &[&LoadFound], of: fn(&LoadFound) -> &[CountRow]) -> Vec<(String, Vec<f64>)> {
    let mut shares: Vec<(String, Vec<f64>)> = Vec::new();
    for load in loads {
        let rows = of(load);
        for (arm, _) in load.latency.iter().enumerate() {
            // An arm that does not count the event has a rate that is none.
            let rate = |row: &CountRow| match row.per_second.get(arm) {
                Some(rate) => rate.unwrap_or(f64::NAN),
                None => 0.0,
            };
            let all: f64 = rows.iter().map(rate).sum();
            for row in rows.iter().filter(|_| all > 0.0 || all.is_nan()) {
                let at = shares.iter().position(|(name, _)| *name == row.name);
                let at = at.unwrap_or_else(|| {
                    shares.push((row.name.clone(), vec![0.0; load.latency.len()]));
                    shares.len() - 1
                });
                if let Some(share) = shares[at].1.get_mut(arm) {
                    *share += 100.0 * rate(row) / all / loads.len() as f64;
                }
            }
        }
    }
    shares
}

fn share_bars(body: &mut String, words: &Words, arms: &[String], rows: &[(String, Vec<f64>)]) {
    if rows.is_empty() {
        return;
    }
    captioned(body, &chart::bars(words, arms, rows), words.said);
    let mut grid = Grid::new(&["percent"], &[]);
    grid.columns("", arms, Align::Right);
    for (name, values) in rows {
        let values = values.iter().map(|value| rounded(*value, 2));
        grid.row([name.clone()].into_iter().chain(values).collect());
    }
    body.push_str(&grid.html());
}

/// Draws the machine with each CPU's busy time, by arm.
pub fn where_ran(body: &mut String, title: &str, found: &Machine, cpus: &[ArmCpus], which: &str) {
    // A result is a file that somebody may have changed.
    let fits = |arm: &&ArmCpus| arm.busy_pct.len() == found.cpus.len();
    let arms: Vec<(&str, &[f64])> =
        cpus.iter().filter(fits).map(|arm| (arm.arm.as_str(), arm.busy_pct.as_slice())).collect();
    if arms.is_empty() {
        return;
    }
    let caption = format!(
        "The share of time that each CPU of {} was busy{which}: the height of its bar, and below it \
         in percent. CPUs are in the order of their numbers within their boxes{}.",
        found.name,
        match (found.clusters() > 0, found.has_smt()) {
            (true, true) => "; the smaller ones are clusters and cores",
            (true, false) => "; the smaller ones are clusters",
            (false, true) => "; the smallest are cores with their threads",
            (false, false) => "",
        }
    );
    let words = Words { name: &format!("{title}: where tasks ran"), said: &caption };
    captioned(body, &machine::draw(found, &words, &arms), &caption);
    let mut grid = Grid::new(&["busy"], &[]);
    arms.iter().for_each(|(arm, _)| grid.column("", arm, Align::Right));
    machine::rows(found, MOST_ROWS, &arms).into_iter().for_each(|row| grid.row(row));
    body.push_str(&grid.html());
}

/// Returns how differently the arms used the CPUs: the largest difference of any arm from the
/// first, summed over the CPUs.
fn difference(load: &LoadFound) -> f64 {
    let Some((first, others)) = load.cpus.split_first() else {
        return 0.0;
    };
    let from_first = |arm: &ArmCpus| {
        let pairs = arm.busy_pct.iter().zip(&first.busy_pct);
        pairs.map(|(a, b)| (a - b).abs()).sum::<f64>()
    };
    others.iter().map(from_first).fold(0.0, f64::max)
}

/// Adds everything about one table of an experiment.
pub fn of_table(
    body: &mut String,
    title: &str,
    report: &Report,
    machines: &[Machine],
    table: [&str; 2],
) {
    let here = |load: &&LoadFound| [load.benchmark.as_str(), &load.place] == table;
    let loads: Vec<&LoadFound> = report.loads.iter().filter(here).collect();
    let Some(first) = loads.first() else {
        return;
    };
    let arms: Vec<String> = first.latency.iter().map(|found| found.arm.clone()).collect();
    let head = |body: &mut String, text: &str| {
        let _ = writeln!(body, "<h4>{}: {text}</h4>", escape(title));
    };
    head(body, "wake-up latency");
    match loads[..] {
        [load] if !load.latency.iter().all(|arm| arm.buckets.is_empty()) => {
            curves(body, title, &load.latency);
        }
        _ => by_load(body, title, &loads),
    }
    let mean = match loads.len() {
        1 => "",
        _ => ": the mean of the table's loads, which count the same",
    };
    type Of = fn(&LoadFound) -> &[CountRow];
    let counted: [(&str, &str, Of); 2] = [
        ("decisions by reason", "Why CPUs were chosen, in percent of the decisions", |load| {
            &load.decisions
        }),
        (
            "migrations by distance",
            "How far from its previous CPU a woken task went, in percent of the wake-ups",
            |load| &load.migrations,
        ),
    ];
    for (name, said, of) in counted {
        let rows = shares(&loads, of);
        if !rows.is_empty() {
            head(body, name);
            let words =
                Words { name: &format!("{title}: {name}"), said: &format!("{said}{mean}.") };
            share_bars(body, &words, &arms, &rows);
        }
    }
    let most = loads
        .iter()
        .copied()
        .reduce(|most, load| if difference(load) > difference(most) { load } else { most });
    let found = most.and_then(|load| machines.iter().find(|machine| machine.name == load.machine));
    if let (Some(load), Some(found)) = (most, found) {
        head(body, "where tasks ran");
        let which = match (&load.row, loads.len()) {
            (Some(row), 2..) => format!(", at {row}, where the arms differ most"),
            _ => String::new(),
        };
        where_ran(body, title, found, &load.cpus, &which);
    }
}
