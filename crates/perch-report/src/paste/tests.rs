// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of both layouts on sheets made by hand, and of their promises on random ones.

use perch_experiment::{ContendedLine, LineUser};
use proptest::prelude::*;

use super::sheet::{Figure, Row};
use super::*;
use crate::contention::tests;

pub(super) fn row(label: &str, higher_is_better: bool, values: &[f64], published_pct: f64) -> Row {
    let figure = |value: &f64| Figure {
        value: *value,
        delta_pct: 100.0 * (value / values[0] - 1.0),
        ci95_pct: Some(1.5),
    };
    Row {
        label: label.to_string(),
        unit: "us".to_string(),
        higher_is_better,
        figures: values.iter().map(figure).collect(),
        published_pct: Some(published_pct),
        fitted: label == "n=1",
        unsettled: false,
    }
}

pub(super) fn sheet(benchmark: &str, arms: &[&str], rows: Vec<Row>) -> Sheet {
    Sheet {
        benchmark: benchmark.to_string(),
        place: "node0".to_string(),
        arms: arms.iter().map(|arm| arm.to_string()).collect(),
        rows,
        iterations: None,
    }
}

fn origin() -> Origin {
    Origin {
        version: "0.1.0".to_string(),
        command: "perch experiment run cluster-scan --only 'tbench/node0/*' --repetitions 3 \
                  --arms upstream,perch --format lkml"
            .to_string(),
    }
}

#[test]
fn what_brings_figures_back_stands_above_them() {
    let origin = origin();
    let heading = mail::Heading {
        origin: &origin,
        circumstances: "Machine kunpeng920, Linux 6.5, 250 Hz, seed 1".to_string(),
        arms: vec![("baseline", "cluster=off"), ("patched", "cluster=posted")],
        source: Some("[PATCH v9 2/2] sched/fair: Scan cluster before scanning LLC in wake-up path"),
        in_guests: false,
    };
    insta::assert_snapshot!(mail::heading(&heading));
    let heading = mail::Heading { source: None, in_guests: true, ..heading };
    let words = mail::heading(&heading);
    assert!(words.starts_with("Run by perch") && words.contains(" in guests, not on"), "{words}");
}

#[test]
fn each_further_arm_has_a_table_without_published_gains() {
    let mut rows = vec![
        row("n=1", true, &[325.97, 378.91, 381.0], 16.24),
        row("n=128", true, &[6528.6, 6400.0, 6530.25], 0.5),
        row("n=128:wake_p99.9", false, &[35.0, 21.0, 36.0], -40.0),
    ];
    rows[1].unsettled = true;
    let sheet = sheet("tbench", &["baseline", "patched", "perch"], rows);
    insta::assert_snapshot!(mail::tables(&sheet));
}

#[test]
fn mmtests_means_are_marked_where_they_are_more_than_chance() {
    let rows = vec![
        row("n=1", true, &[325.97, 378.91, 381.0], 16.24),
        row("n=128", true, &[6528.6, 6540.0, 6000.0], 0.5),
    ];
    let sheet = sheet("tbench", &["vanilla", "6.5-cluster-v9", "perch"], rows);
    insta::assert_snapshot!(mmtests::table(&sheet));
}

/// mmtests' compare-kernels.sh finds the loads of a comparison in this way: of the lines that begin
/// with a statistic, it takes the part of the second field after the last dash, as a number.
#[test]
fn mmtests_own_scripts_find_the_loads_of_a_table() {
    let loads = |text: &str, statistic: &str| -> Vec<u32> {
        let lines = text.lines().filter(|line| line.starts_with(statistic));
        let fields = lines.map(|line| line.split_whitespace().nth(1).unwrap());
        let numbers = fields.map(|field| field.rsplit('-').next().unwrap().parse().unwrap());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let origin = origin();
    let heading = mail::Heading {
        origin: &origin,
        circumstances: "Amean of nothing-7".to_string(),
        arms: vec![("Amean-9", "cluster=off")],
        source: None,
        in_guests: false,
    };
    let arms = ["baseline", "patched"];
    let rows = vec![row("n=16", true, &[1.0, 2.0], 0.0), row("n=1", true, &[3.0, 4.0], 0.0)];
    let tbench = sheet("tbench", &arms, rows);
    assert_eq!(loads(&text(&heading, &[tbench], Paste::Mmtests), "Amean"), [1, 16]);
    let rows = vec![
        row("n=2:wake_p99.0", false, &[1.0, 2.0], 0.0),
        row("n=32:wake_p50.0", false, &[3.0, 4.0], 0.0),
    ];
    let schbench = sheet("schbench", &arms, rows);
    assert_eq!(loads(&text(&heading, &[schbench], Paste::Mmtests), "Lat"), [2, 32]);
}

fn contention(scale: u64) -> Vec<Contention> {
    let user = |symbol: &str, offset, share: f64, store_hit_pct, cycles: u64, records| LineUser {
        store_hit_pct,
        load_cycles: (cycles * scale) as f64,
        records: records * scale,
        seen: symbol != "nobody_met",
        ..tests::user(symbol, offset, share)
    };
    let users = vec![
        user("pull_rt_task", 0x4, 22.51, 0.0, 5041, 247),
        user("dequeue_pushable_task", 0x4, 5.63, 45.83, 6995, 315),
        user("enqueue_task_rt", 0x28, 100.0, 100.0, 6393, 285),
        user("nobody_met", 0x28, 0.0, 0.0, 30, 1),
    ];
    let line = |name: &str, hitm_pct| ContendedLine {
        remote_hitm: 231 * scale,
        local_hitm: 43 * scale,
        store_hits: 48 * scale,
        records: 494 * scale,
        ..tests::line(name, hitm_pct, users.clone())
    };
    let lines = vec![line("root_domain+0x0", 98.2), line("rto_mask", 0.9)];
    vec![tests::arm("baseline", lines), tests::arm("patched", vec![line("rto_mask", 0.0)])]
}

/// The table equals the source's, to the column.
#[test]
fn contended_lines_stand_in_a_mail_as_perf_c2c_reports_them() {
    let text = contended(&contention(1), Paste::Lkml);
    let published = "22.51%   77.49%    0.00%  0x4     5041    247   pull_rt_task";
    assert!(text.lines().any(|line| line == published), "{text}");
    insta::assert_snapshot!(text);
    for scale in [1_000, 1_000_000, 1_000_000_000_000] {
        let text = contended(&contention(scale), Paste::Lkml);
        assert!(text.lines().all(|line| line.len() <= mail::WIDTH), "{text}");
    }
    let text = contended(&contention(1), Paste::Mmtests);
    assert!(text.trim().lines().all(|line| line.starts_with('#')), "{text}");
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..100_000u32).prop_map(|n| format!("n={n}")),
        (0..100_000u32).prop_map(|n| format!("n={n}:wake_p99.9")),
        Just("mean".to_string()),
        Just("std".to_string()),
        Just("99th".to_string()),
        "\\PC{1,60}",
    ]
}

prop_compose! {
    pub(super) fn any_sheet()(arms in 1usize..5, count in 1usize..5)(
        benchmark in "\\PC{1,90}",
        arms in prop::collection::vec("\\PC{1,40}", arms),
        rows in prop::collection::vec(
            (label(), any::<bool>(), prop::collection::vec(0.0..1e12f64, arms), -99.0..9999.0f64),
            count,
        ),
    ) -> Sheet {
        let made = rows.iter().map(|(label, more, values, pct)| row(label, *more, values, *pct));
        let names: Vec<&str> = arms.iter().map(String::as_str).collect();
        sheet(&benchmark, &names, made.collect())
    }
}

proptest! {
    /// No mail program wraps a pasted text on its way, whatever the text contains.
    #[test]
    fn lines_of_a_mail_are_short_and_ascii(sheet in any_sheet()) {
        for line in mail::tables(&sheet).lines() {
            // The layout does not cut a word that is longer than a line, because a reader needs a
            // whole name.
            let longest = line.split(' ').map(str::len).max().unwrap_or(0);
            prop_assert!(line.len() <= mail::WIDTH || longest > 40, "{line}");
            prop_assert!(line.is_ascii(), "{line}");
        }
    }

    /// Every row of a comparison can be read back: a name, and a figure and a gain an arm.
    #[test]
    fn rows_of_mmtests_read_back(sheet in any_sheet()) {
        let table = mmtests::table(&sheet);
        let lines: Vec<&str> = table.lines().collect();
        prop_assert_eq!(lines.len(), 2 + sheet.rows.len());
        for (line, row) in lines[2..].iter().zip(&sheet.rows) {
            let fields: Vec<&str> = line.split(['(', ')', '*']).collect();
            let last = fields.iter().rev().find(|field| !field.trim().is_empty()).unwrap();
            let gain = row.gain_pct(row.figures.len() - 1);
            let shown: f64 = last.trim().trim_end_matches('%').parse().unwrap();
            prop_assert!((shown - gain).abs() <= 0.005 + gain.abs() * 1e-12 || gain.is_nan() || !gain.is_finite());
        }
    }
}
