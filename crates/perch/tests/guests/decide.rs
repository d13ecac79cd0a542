// SPDX-License-Identifier: GPL-2.0-or-later
//! Property P17 in a guest: the policy decides as BPF, in a real kernel, as it does natively.

use std::collections::BTreeMap;
use std::time::Instant;

use perch_lab::guest::Output;
use perch_policy::{CacheStep, Reason};

use crate::guest::Lab;

fn decide(lab: &Lab, arguments: &str) -> Output {
    lab.run(&format!("perch self-test decide {arguments}"))
}

/// The numbers at the ends of the lines.
fn numbers(output: &Output) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (what, number) = line.rsplit_once(": ")?;
        Some((what.to_string(), number.parse().ok()?))
    };
    output.text().lines().filter_map(pair).collect()
}

#[test]
fn the_policy_decides_in_bpf_as_it_does_natively() {
    decides_as_natively(&Lab::boot("7.2", 8), 12_000);
}

/// Decides so many wake-ups of machines that the self-test makes up, and returns what it printed.
fn decides_as_natively(lab: &Lab, count: u64) -> BTreeMap<String, u64> {
    let began = Instant::now();
    let output = decide(lab, &format!("--seed 5 --count {count}"));
    assert!(output.success(), "{}\n{}", output.text(), output.error_text());
    let numbers = numbers(&output);
    println!(
        "{} wake-ups on {} machines in {:.1} s",
        numbers["wake-ups"],
        numbers["machines, all"],
        began.elapsed().as_secs_f64()
    );
    assert!(numbers["wake-ups"] >= count, "{numbers:?}");
    assert_eq!(numbers["mismatches"], 0);
    numbers
}

#[test]
#[ignore = "fewer wake-ups are decided anyway, for --long"]
fn wake_ups_of_every_kind_are_decided_the_same() {
    let numbers = decides_as_natively(&Lab::boot("7.2", 8), 80_000);
    for (kind, least) in [
        ("all", 60),
        ("threads", 20),
        ("clusters", 20),
        ("several LLCs", 20),
        ("several nodes", 20),
        ("several capacities", 20),
        ("more than 64 CPUs", 20),
    ] {
        let count = numbers[&format!("machines, {kind}")];
        assert!(count >= least, "{kind}: {count}");
    }
    for &reason in Reason::ALL.iter().filter(|&&r| r != Reason::Nothing) {
        let count = numbers[&format!("reason, {}", reason.name())];
        assert!(count >= 50, "{}: {count}", reason.name());
    }
    for step in CacheStep::ALL {
        let count = numbers[&format!("cache, {}", step.name())];
        assert!(count >= 50, "{}: {count}", step.name());
    }
}

/// The comparison finds a single bit that differs, and finds it again by its seed.
#[test]
fn one_bit_that_differs_is_found() {
    let lab = Lab::boot("7.2", 8);
    let falsified = decide(&lab, "--seed 7 --count 1 --falsify");
    assert!(!falsified.success());
    let told = falsified.error_text();
    assert!(told.contains("1 of 816 wake-ups are decided differently"), "{told}");
    assert!(told.contains("seed 7, machine 0 ("), "{told}");
    assert!(told.contains("verdict: Verdict"), "{told}");
    assert!(told.contains("--seed 7 --count 1 --falsify"), "{told}");
    assert_eq!(decide(&lab, "--seed 7 --count 1 --falsify").error_text(), told);
    lab.is_well();
}
