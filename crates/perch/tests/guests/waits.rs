// SPDX-License-Identifier: GPL-2.0-or-later
//! How long tasks wait in a guest and how far they move, under the kernel's scheduler and perch. The
//! tests ask for counts only: a guest's times are its own.

use perch_lab::Cpus;
use perch_lab::guest::Command;
use serde_json::Value;

use crate::guest::{Place, bare_deterministic, boot, resolve};

/// Two pairs for 100 ms of the guest's clock, which all CPUs' instructions advance: starting takes a
/// while.
const PAIRS: &str = "perch lab pairs --pairs 2 --by pipe --warmup 400ms --measure 100ms";
/// The load's command, its pairs, and the other side of each.
const TASKS: u64 = 5;

/// The distances of eight CPUs of kunpeng920.
const DISTANCES: [&str; 4] = ["same CPU", "cluster", "LLC", "package"];

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value}"))
}

/// The sum of a cause's moves, each of which has a distance that the machine has.
fn sum(moves: &Value) -> u64 {
    let moves = moves.as_object().expect("by distance");
    let unknown: Vec<_> = moves
        .keys()
        .filter(|name| !DISTANCES.contains(&name.as_str()))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    moves.values().map(number).sum()
}

/// Demands of what the load and the agent printed that every wake-up was counted once and classified.
fn counts_add_up(lines: &[&str]) {
    let [load, waits] = lines else {
        panic!("{lines:?}");
    };
    println!("{load}\n{waits}");
    let rate = load
        .rsplit(": ")
        .next()
        .and_then(|text| text.split_once(' '));
    let rate: f64 = rate.expect(load).0.parse().expect(load);
    let waits: Value = serde_json::from_str(waits).expect("perch writes JSON");
    let count = |wait: &str| number(&waits[wait]["count"]);
    assert!(
        rate > 0.0 && count("wakeup") as f64 >= rate / 10.0,
        "{waits}"
    );
    assert_eq!(count("wakeup"), count("waking"), "{waits}");
    let [woken, preempted, forked] =
        ["moves_woken", "moves_preempted", "moves_forked"].map(|cause| sum(&waits[cause]));
    assert_eq!(woken, count("wakeup"), "{waits}");
    assert_eq!(preempted, count("preempted"), "{waits}");
    assert_eq!(forked, TASKS, "{waits}");
    assert_eq!(
        woken + preempted + forked,
        number(&waits["switches"]),
        "{waits}"
    );
}

#[test]
fn wake_ups_are_counted_and_moves_have_distances() {
    let _place = Place::take();
    let mut setup = bare_deterministic(&resolve("kunpeng920"), Cpus::AtMost(8));
    let waits = format!("/bin/perch agent waits -- {PAIRS}");
    let script = format!("{waits} && exec /bin/perch agent scheduled -- {waits}");
    setup.job = Some(Command::new(["sh", "-c", &script]));
    let guest = boot(&setup);
    let output = guest.job().unwrap().wait().unwrap();
    assert!(output.success(), "{}", output.error_text());
    let text = output.text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    lines.chunks(2).for_each(counts_add_up);
}
