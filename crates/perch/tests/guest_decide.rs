// SPDX-License-Identifier: GPL-2.0-only
//! Property P17 in a guest: the policy decides as BPF, in a real kernel, as it does natively.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use perch_lab::guest::{Command, Guest, Output, Setup, contents};
use perch_lab::kernel::Kernel;
use perch_lab::qemu::{Need, Qemu};
use perch_lab::{Arch, Cpus, Error, Store, Topology};
use perch_policy::{CacheStep, Reason};

const PERCH: &str = env!("CARGO_BIN_EXE_perch");

/// 8 CPUs of a kunpeng920 under Linux 7.2; the machines that are compared have nothing to do
/// with it.
fn boot() -> Guest {
    let made = || {
        let machine = perch_machine::resolve("kunpeng920").expect("a machine of the library");
        let topology = Topology::new(&machine, Cpus::AtMost(8))?;
        let store = Store::open()?;
        let arch = Arch::X86_64;
        let kernel = Kernel::find(&store, "7.2", arch)?;
        let l2_clusters = topology.has_clusters();
        let qemu = Qemu::find(&store, Need { arch, l2_clusters })?;
        let files = contents(&store, &kernel, PERCH.as_ref(), [""; 0])?;
        Guest::boot(&Setup::new(kernel, qemu, topology, files))
    };
    made().unwrap_or_else(|error: Error| panic!("{error}"))
}

fn decide(guest: &Guest, arguments: &str) -> Output {
    let command = Command::shell(format!("perch self-test decide {arguments}"));
    let output = guest.run(&command.timeout(Duration::from_secs(900)));
    output.unwrap_or_else(|error| panic!("{error}"))
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
    let guest = boot();

    let began = Instant::now();
    let output = decide(&guest, "--seed 5 --count 64000");
    assert!(
        output.success(),
        "{}\n{}",
        output.text(),
        output.error_text()
    );
    let numbers = numbers(&output);
    println!(
        "{} wake-ups on {} machines in {:.1} s",
        numbers["wake-ups"],
        numbers["machines, all"],
        began.elapsed().as_secs_f64()
    );
    assert!(numbers["wake-ups"] >= 64_000, "{numbers:?}");
    assert_eq!(numbers["mismatches"], 0);
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

    // The comparison is worth something: one bit that differs is found, and again by its seed.
    let falsified = decide(&guest, "--seed 7 --count 1 --falsify");
    assert!(!falsified.success());
    let told = falsified.error_text();
    assert!(
        told.contains("1 of 672 wake-ups are decided differently"),
        "{told}"
    );
    assert!(told.contains("seed 7, machine 0 ("), "{told}");
    assert!(told.contains("verdict: Verdict"), "{told}");
    assert!(told.contains("--seed 7 --count 1 --falsify"), "{told}");
    assert_eq!(
        decide(&guest, "--seed 7 --count 1 --falsify").error_text(),
        told
    );

    let trouble = guest.trouble().unwrap_or_else(|error| panic!("{error}"));
    assert!(trouble.is_empty(), "{trouble:#?}");
}
