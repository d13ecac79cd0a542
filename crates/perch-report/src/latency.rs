// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables and CSV of the time that woken tasks waited and of the CPUs' busy time.

use std::fmt::Write;

use perch_experiment::{Comparison, WakeLatency};

use crate::experiment::finite;
use crate::figure::figure;
use crate::grid::{Align, Grid};

/// Writes the percentiles by arm; an empty text where no latencies were kept.
pub(crate) fn section(comparison: &Comparison, mark: &str, write: fn(&Grid) -> String) -> String {
    let Some(grid) = grid(&comparison.latency) else {
        return String::new();
    };
    let blank = if mark.is_empty() { "" } else { "\n" };
    let mut text = String::new();
    let title = "wake-up latency by percentile (us, less is better)";
    let _ = writeln!(text, "\n{mark}{title}{blank}");
    text.push_str(&write(&grid));
    if let Some(words) = alike(&comparison.latency) {
        let _ = writeln!(text, "{blank}{words}");
    }
    text
}

/// Names the arms whose percentiles the model cannot tell apart; none where it can.
fn alike(found: &[WakeLatency]) -> Option<String> {
    let is_alike =
        |arm: &&WakeLatency| arm.p50_us.is_finite() && figure(arm.p50_us) == figure(arm.p99_9_us);
    let arms: Vec<&str> = (found.iter().filter(is_alike)).map(|arm| arm.arm.as_str()).collect();
    (!arms.is_empty()).then(|| {
        format!(
            "50th = 99.9th of {}: the model has no noise there, and cannot tell these percentiles apart",
            arms.join(", ")
        )
    })
}

fn grid(found: &[WakeLatency]) -> Option<Grid> {
    let mut grid = Grid::new(&[""], &[]);
    for arm in found {
        grid.column("", &arm.arm, Align::Right);
    }
    let first = found.first()?.percentiles();
    for (index, (name, _)) in first.iter().enumerate() {
        let values = found.iter().map(|arm| figure(arm.percentiles()[index].1));
        grid.row([name.to_string()].into_iter().chain(values).collect());
    }
    Some(grid)
}

/// Returns a value with so many decimals; a dash where there is none.
pub(crate) fn rounded(value: f64, decimals: usize) -> String {
    if value.is_finite() { format!("{value:.decimals$}") } else { "-".to_string() }
}

/// Returns a rate per second, whole; one that would round to 0 keeps its first digit, so that what is rare
/// does not look like what never happens. A dash where there is none.
pub(crate) fn rate(value: f64) -> String {
    let is_rare = value > 0.0 && value < 0.5;
    let decimals = if is_rare { -value.log10().floor() } else { 0.0 };
    rounded(value, decimals as usize)
}

/// Returns the lines of the CSV: percentiles, the histogram, and busy time by CPU.
pub(crate) fn records(comparison: &Comparison) -> Vec<Vec<String>> {
    let record = |kind: &str, name: String, unit: &str, arm: &str, value: String| {
        vec![kind.to_string(), name, unit.to_string(), arm.to_string(), value]
    };
    let mut records = Vec::new();
    for found in &comparison.latency {
        let arm = found.arm.as_str();
        for (name, us) in found.percentiles() {
            let value = finite(us);
            records.push(record("wake-up latency", name.to_string(), "us", arm, value));
        }
        for [ns, count] in &found.buckets {
            let (name, value) = (ns.to_string(), count.to_string());
            records.push(record("wake-ups by latency up to, ns", name, "", arm, value));
        }
    }
    for found in &comparison.cpus {
        for (cpu, pct) in found.busy_pct.iter().enumerate() {
            let value = pct.to_string();
            records.push(record("busy", format!("cpu {cpu}"), "%", &found.arm, value));
        }
    }
    records
}
