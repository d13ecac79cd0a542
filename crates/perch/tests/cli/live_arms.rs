// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch compare` with a scheduler of sched_ext in one of its arms.

use crate::support::printed;

fn compared(format: &str) -> String {
    printed(&format!(
        "compare -q -m juno -w pipe:pairs=2 --arm stock:off --arm live: --measure 20ms \
         --repetitions 1 --format {format}"
    ))
}

/// perch's BPF program tells the simulated kernel which CPU it chose, and not why.
#[test]
fn what_a_live_arm_does_not_count_is_no_zero() {
    let found: serde_json::Value = serde_json::from_str(&compared("json")).unwrap();
    let rates = |list: &str, name: &str| {
        let rows = found[list].as_array().unwrap();
        let row = rows.iter().find(|row| row["name"] == name).unwrap();
        [0, 1].map(|arm| row["per_second"][arm].as_f64())
    };
    assert!(rates("totals", "wake-ups").into_iter().all(|rate| rate > Some(0.0)));
    let [stock, live] = rates("totals", "CPUs examined");
    assert!(stock.is_some() && live.is_none(), "{stock:?} {live:?}");
    assert_eq!(rates("totals", "preemptions")[1], None);
    let decisions = found["decisions"].as_array().unwrap();
    assert!(!decisions.is_empty());
    for row in decisions {
        assert!(row["per_second"][0].is_f64() && row["per_second"][1].is_null(), "{row}");
    }

    let table = compared("table");
    let reasons = table.split("decisions by reason, per simulated second\n").nth(1);
    let row = reasons.unwrap().lines().nth(1).unwrap();
    assert_eq!(row.split_whitespace().last(), Some("-"), "{table}");

    let csv = compared("csv");
    let live = csv.lines().find(|line| line.starts_with("in all,CPUs examined,1/s,live,"));
    assert_eq!(live, Some("in all,CPUs examined,1/s,live,,,,,"), "{csv}");
}
