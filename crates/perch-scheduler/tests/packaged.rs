// SPDX-License-Identifier: GPL-2.0-or-later
//! What the package brings for collectors asks only for metrics that perch has.

use std::collections::BTreeSet;

use perch_scheduler::stats::{Decisions, GroupWaits, Report, Waits, prometheus};

/// The names of metrics in a text: words that begin as perch's do.
fn named(text: &str) -> BTreeSet<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c: char| !is_part(c));
    words.filter(|word| word.starts_with("perch_")).collect()
}

#[test]
fn alerts_and_dashboard_name_metrics_that_there_are() {
    let mut report = Report::default();
    report.reasons.insert("target idle".to_string(), Decisions { wakeups: 1 });
    let waits = Waits { buckets: vec![0, 0], ..Waits::default() };
    let group = GroupWaits { waits: waits.clone(), ..GroupWaits::default() };
    report.waits.insert("queued".to_string(), waits);
    report.group_waits.insert("/web".to_string(), group);
    let exposition = prometheus(Some(&report));
    let samples = exposition.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
    for (file, text) in [
        ("alerts", include_str!("../../../packaging/perch-alerts.yml")),
        ("dashboard", include_str!("../../../packaging/perch-dashboard.json")),
    ] {
        let asked = named(text);
        assert!(asked.len() > 5, "{file}: {asked:?}");
        let unknown: Vec<_> = asked.difference(&known).collect();
        assert!(unknown.is_empty(), "{file}: {unknown:?}");
    }
    let dashboard = include_str!("../../../packaging/perch-dashboard.json");
    let dashboard: serde_json::Value = serde_json::from_str(dashboard).unwrap();
    assert!(dashboard["panels"].as_array().unwrap().len() >= 10);
}
