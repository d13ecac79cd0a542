// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests that a machine written as TOML reads back as the same machine.

use perch_machine::{MAX_CPUS, Machine, library};
use proptest::prelude::*;

fn reads_back(machine: &Machine) {
    let text = machine.to_toml();
    let again = Machine::from_toml_str(&text, "round trip")
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(machine, &again);
}

#[test]
fn every_library_machine_reads_back() {
    library::names().for_each(|name| reads_back(&library::load(name).unwrap()));
}

#[test]
fn words_with_quotes_and_newlines_read_back() {
    let mut machine = library::load("juno").unwrap();
    machine.description = "a \"quoted\" \\ back\\slash,\n\ttabs and ünïcode \u{7f}".into();
    machine.sources = vec![String::new(), "'''".into(), "\"\"\"".into()];
    reads_back(&machine);
}

proptest! {
    #[test]
    fn random_machines_read_back(seed: u64, max_cpus in 1..300usize) {
        reads_back(&Machine::random(seed, max_cpus));
    }

    #[test]
    fn regular_machines_have_what_was_asked_for(
        packages in 1..4usize,
        nodes in 1..4usize,
        llcs in 1..4usize,
        clusters in 0..4usize,
        cores in 1..5usize,
        threads in 1..3usize,
    ) {
        let machine =
            Machine::regular("r", packages, nodes, llcs, clusters, cores, threads).unwrap();
        let total_llcs = packages * nodes * llcs;
        prop_assert_eq!(machine.packages(), packages);
        prop_assert_eq!(machine.nodes(), packages * nodes);
        prop_assert_eq!(machine.llcs(), total_llcs);
        prop_assert_eq!(machine.clusters(), total_llcs * clusters);
        prop_assert_eq!(machine.cores(), total_llcs * clusters.max(1) * cores);
        prop_assert_eq!(machine.cpus.len(), machine.cores() * threads);
        reads_back(&machine);
    }
}

#[test]
fn the_largest_machine_is_built_and_read_back() {
    let machine = Machine::regular("large", 8, 4, 4, 8, 4, 2).unwrap();
    assert_eq!(machine.cpus.len(), MAX_CPUS);
    reads_back(&machine);
}

#[test]
fn one_cpu_too_many_is_refused() {
    let error = Machine::regular("large", 8193, 1, 1, 0, 1, 1).unwrap_err();
    assert!(error.to_string().contains("a machine may have 8192"), "{error}");
    let error = Machine::regular("large", usize::MAX, 2, 1, 0, 1, 1).unwrap_err();
    assert!(error.to_string().contains("more CPUs than can be counted"), "{error}");
    let error = Machine::regular("none", 1, 0, 1, 0, 1, 1).unwrap_err();
    assert!(error.to_string().contains("no CPUs"), "{error}");
}
