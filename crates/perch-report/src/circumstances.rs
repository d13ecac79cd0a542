// SPDX-License-Identifier: GPL-2.0-or-later
//! The circumstances that bring results back, in the words that every format uses.

use perch_experiment::{ArmModes, Comparison, Report};

/// Returns the circumstances of an experiment: machine, kernel, ticks and seed.
pub(crate) fn of_report(report: &Report) -> String {
    let domain = report.root_domain.as_deref();
    said(&report.machine, &report.era, domain, report.hz, report.seed)
}

/// Returns the circumstances of a comparison: machine, kernel, ticks and seed.
pub(crate) fn of_comparison(found: &Comparison) -> String {
    let domain = found.root_domain.as_deref();
    let machine = match &found.place {
        None => found.machine.clone(),
        Some(place) => format!("{} as {place}", found.machine),
    };
    said(&machine, &found.era, domain, found.hz, found.seed)
}

fn said(machine: &str, era: &str, domain: Option<&str>, hz: u32, seed: u64) -> String {
    // The text names the root domain only where it is not the stock one.
    let domain = domain.map_or(String::new(), |name| {
        format!(" with its root domain {name}")
    });
    let hz = match hz {
        0 => String::new(),
        hz => format!(", {hz} Hz"),
    };
    format!("{machine}, Linux {era}{domain}{hz}, seed {seed}")
}

/// Returns the arms with their modes, in one line.
pub(crate) fn modes(arms: &[ArmModes]) -> String {
    let arms = arms.iter().map(|arm| format!("{} {}", arm.name, arm.modes));
    arms.collect::<Vec<_>>().join("; ")
}
