// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests that machine files that contradict themselves are refused with file, line, key, reason and
//! what was expected; reading a file never panics, whatever stands in it.

use crate::common::edited;
use perch_machine::{Machine, library};
use proptest::prelude::*;

fn refusal(text: &str) -> String {
    let text = format!("name = \"bad\"\n{text}");
    Machine::from_toml_str(&text, "bad.toml").expect_err("the file is wrong").to_string()
}

/// Asserts that the refusal of `text` (which starts at line 2) holds all of `words`.
#[track_caller]
fn refused(text: &str, words: &[&str]) {
    let message = refusal(text);
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
}

const FOUR_CPUS: &str = "[topology]\ncores_per_llc = 4\n";

#[test]
fn a_cpu_in_two_groups_of_one_level() {
    for (level, word) in [
        ("core", "core"),
        ("cluster", "cluster"),
        ("llc", "LLC"),
        ("node", "node"),
        ("package", "package"),
    ] {
        let text = format!("[[{level}]]\ncpus = \"0-2\"\n[[{level}]]\ncpus = \"2-3\"\n");
        let (key, first) = (format!("`{level}[1].cpus`"), format!("`{level}[0].cpus`, line 3"));
        let reason = format!("CPU 2 is in two {word}s");
        let expected = format!("expected each CPU in one {word}");
        refused(&text, &["bad.toml:5: ", &key, &reason, &first, &expected]);
    }
}

#[test]
fn a_cluster_that_spans_two_llcs() {
    refused(
        "[[llc]]\ncpus = \"0-1\"\n[[llc]]\ncpus = \"2-3\"\n[[cluster]]\ncpus = \"1-2\"\n",
        &[
            "bad.toml:7: `cluster[0].cpus`",
            "this cluster spans two LLCs: CPU 1 and CPU 2",
            "expected a cluster to lie inside one LLC",
        ],
    );
}

#[test]
fn a_core_that_spans_two_clusters_or_is_half_in_one() {
    let core = "[[core]]\ncpus = \"1-2\"\n";
    let two = "[[cluster]]\ncpus = \"0-1\"\n[[cluster]]\ncpus = \"2-3\"\n";
    refused(&format!("{two}{core}"), &["`core[0].cpus`", "this core spans two clusters"]);
    let half = "[[package]]\ncpus = \"0-3\"\n[[cluster]]\ncpus = \"0-1\"\n";
    refused(&format!("{half}{core}"), &["`core[0].cpus`", "this core spans two clusters"]);
}

#[test]
fn an_llc_that_spans_two_nodes_must_be_declared_in_parts() {
    let nodes = "[[node]]\ncpus = \"0-1\"\n[[node]]\ncpus = \"2-3\"\n";
    let llc = "[[package]]\ncpus = \"0-3\"\n[[llc]]\ncpus = \"0-3\"\n";
    refused(
        &format!("{nodes}{llc}"),
        &["`llc[0].cpus`", "this LLC spans two nodes", "sub-NUMA clustering", "`[declared] llc`"],
    );
    let parts = format!("name = \"snc\"\n{nodes}{llc}[declared]\nllc = [\"0-1\", \"2-3\"]\n");
    let machine = Machine::from_toml_str(&parts, "snc.toml").unwrap();
    assert_eq!((machine.llcs(), machine.declared_llcs()), (1, 2));
    refused(
        &format!("{nodes}{llc}[declared]\nllc = [\"0\", \"1-2\", \"3\"]\n"),
        &["`declared.llc[1]`", "this declared LLC spans two nodes"],
    );
}

#[test]
fn an_llc_that_spans_two_packages() {
    refused(
        "[[package]]\ncpus = \"0-1\"\n[[package]]\ncpus = \"2-3\"\n\
         [[node]]\ncpus = \"0-3\"\n[[llc]]\ncpus = \"0-3\"\n",
        &["`llc[0].cpus`", "this LLC spans two packages"],
    );
}

#[test]
fn nodes_and_packages_that_cut_each_other() {
    refused(
        "[[package]]\ncpus = \"0-2\"\n[[package]]\ncpus = \"3\"\n\
         [[node]]\ncpus = \"0-1\"\n[[node]]\ncpus = \"2-3\"\n\
         [[llc]]\ncpus = \"0-1\"\n[[llc]]\ncpus = \"2\"\n[[llc]]\ncpus = \"3\"\n",
        &["`package[0].cpus`", "this package spans two nodes", "one of those nodes spans two"],
    );
}

#[test]
fn a_declared_llc_that_cuts_a_cluster_or_forgets_a_cpu() {
    let clusters = "[topology]\nclusters_per_llc = 2\ncores_per_cluster = 2\n[declared]\n";
    refused(
        &format!("{clusters}llc = [\"0-2\", \"3\"]\n"),
        &["this cluster spans two declared LLCs"],
    );
    refused(
        &format!("{clusters}llc = [\"0-1\"]\n"),
        &["`declared.llc[0]`", "CPU 2 is in no declared LLC"],
    );
}

#[test]
fn capacities_out_of_range_or_not_normalised() {
    for (value, reason) in [
        ("0", "capacity 0 is out of range"),
        ("-1", "capacity -1 is out of range"),
        ("1025", "capacity 1025 is out of range"),
    ] {
        let text = format!("{FOUR_CPUS}[[capacity]]\ncpus = \"0\"\nvalue = {value}\n");
        refused(&text, &["bad.toml:6: `capacity[0]`", reason, "expected 1 to 1024"]);
    }
    refused(
        &format!("{FOUR_CPUS}[[capacity]]\ncpus = \"0-3\"\nvalue = 512\n"),
        &["`capacity[0]`", "no CPU has capacity 1024: the highest is 512", "scaled so that"],
    );
    refused(
        &format!("{FOUR_CPUS}[[capacity]]\ncpus = \"0,4\"\nvalue = 512\n"),
        &["`capacity[0]`", "CPU 4, which does not exist", "expected a CPU from 0 to 3"],
    );
    let half = "[[capacity]]\ncpus = \"0\"\nvalue = 512\n";
    refused(&format!("{FOUR_CPUS}{half}{half}"), &["`capacity[1]`", "CPU 0 has two capacities"]);
    for value in [0, 256, -1] {
        let what = format!("ranking {value} is out of range");
        refused(
            &format!("{FOUR_CPUS}[[ranking]]\ncpus = \"1\"\nvalue = {value}\n"),
            &["`ranking[0]`", &what, "expected 1 to 255"],
        );
    }
    let first = "[[ranking]]\ncpus = \"0\"\nvalue = 200\n";
    refused(&format!("{FOUR_CPUS}{first}{first}"), &["`ranking[1]`", "CPU 0 has two rankings"]);
}

#[test]
fn holes_too_many_cpus_and_none() {
    refused(
        "[[core]]\ncpus = \"0-2,4\"\n",
        &["a hole in the numbering", "no table names CPU 3, yet there is CPU 4"],
    );
    refused("[[core]]\ncpus = \"0-8192\"\n", &["bad.toml:3: `core[0].cpus`", "CPU 8192 is beyond"]);
    refused("", &["the machine has no CPUs", "expected `[topology]`"]);
    refused("[[core]]\ncpus = \"\"\n", &["no CPUs"]);
    refused(
        "[topology]\npackages = 3\ncores_per_llc = 4096\n",
        &["bad.toml:2: `topology`", "12288 CPUs", "a machine may have 8192"],
    );
    refused(
        "[topology]\npackages = 9000\ncores_per_llc = 1\n",
        &["`topology.packages`", "9000 is out of range", "expected 1 to 8192"],
    );
    refused("[topology]\ncores_per_llc = 0\n", &["`topology.cores_per_llc`", "0 is out of range"]);
}

#[test]
fn a_level_that_forgets_a_cpu() {
    refused(
        "[[package]]\ncpus = \"0-3\"\n[[llc]]\ncpus = \"0-2\"\n",
        &["`llc[0].cpus`", "CPU 3 is in no LLC", "expected every CPU in one LLC"],
    );
}

#[test]
fn distance_tables_of_the_wrong_size_or_scale() {
    let two = "[topology]\npackages = 2\ncores_per_llc = 2\n[numa]\n";
    for (table, reason) in [
        ("[[10, 20]]", "1 rows for 2 nodes; expected 2 rows of 2 numbers"),
        ("[[10, 20], [20]]", "row 1 has 1 numbers for 2 nodes"),
        ("[[10, 20], [20, 11]]", "node 1 is 11 from itself; expected 10 on the diagonal"),
        ("[[10, 9], [20, 10]]", "node 0 is 9 from node 1; expected 10 (local) to 254"),
        ("[[10, 255], [20, 10]]", "255 means unreachable"),
    ] {
        let text = format!("{two}distance = {table}\n");
        refused(&text, &["bad.toml:6: `numa.distance`", reason]);
    }
}

#[test]
fn more_distances_than_scheduling_domains_can_tell_apart() {
    let row = |a: u32| -> Vec<u32> { (0..10).map(|b| 10 + a.abs_diff(b)).collect() };
    let table: Vec<Vec<u32>> = (0..10).map(row).collect();
    refused(
        &format!("[topology]\npackages = 10\ncores_per_llc = 2\n[numa]\ndistance = {table:?}\n"),
        &["bad.toml:6: `numa.distance`", "9 different distances between nodes; expected at most 8"],
    );
}

#[test]
fn a_topology_said_twice_or_by_halves() {
    refused(
        &format!("{FOUR_CPUS}[[node]]\ncpus = \"0-3\"\n"),
        &["`topology`", "the topology is said twice: here, and in `node[0].cpus`"],
    );
    refused("[topology]\npackages = 2\n", &["the number of cores is missing", "`cores_per_llc`"]);
    refused("[topology]\nclusters_per_llc = 2\n", &["not said in one way"]);
    refused(
        "[topology]\ncores_per_llc = 2\nnode_interleave = true\nnodes_per_package = 1\n",
        &["`node_interleave` makes one node", "expected one of the two"],
    );
    refused(
        "[topology]\ncores_per_llc = 2\nnumbering = \"sideways\"\n",
        &["bad.toml:4: `numbering`", "sideways", "threads-last"],
    );
}

#[test]
fn keys_that_do_not_exist_or_have_the_wrong_type() {
    refused(
        "[topology]\ncores_per_lcl = 4\n",
        &["bad.toml:3: `cores_per_lcl`", "unknown field", "`cores_per_llc`"],
    );
    refused("[hardware]\nl3_bytes = 4\n", &["bad.toml:3: `l3_bytes`", "unknown field"]);
    refused(
        "[hardware]\nl2_bytes = \"4 parsecs\"\n",
        &["bad.toml:3: `l2_bytes`", "such as \"512K\""],
    );
    refused("[hardware]\nline_bytes = -64\n", &["bad.toml:3: `line_bytes`", "expected u32"]);
    refused("[[core]]\ncpus = [0, 1]\n", &["bad.toml:3: `cpus`", "expected a string"]);
    refused("[[core]\n", &["bad.toml:2: `core`"]);
    refused("[[core]]\ncpus = \"0-\"\n", &["bad.toml:3: `core[0].cpus`", "\"0,3-5\""]);
    let message = Machine::from_toml_str("[topology]\ncores_per_llc = 1\n", "n.toml").unwrap_err();
    assert!(message.to_string().contains("missing field `name`"), "{message}");
    let named = "name = \"a b\"\n[topology]\ncores_per_llc = 1\n";
    let message = Machine::from_toml_str(named, "n.toml").unwrap_err().to_string();
    assert!(message.contains("`a b` cannot name a machine; expected letters"), "{message}");
}

#[test]
fn costs_out_of_range() {
    let costs = |text: &str| format!("{FOUR_CPUS}[hardware]\n{text}\n");
    for (text, key, reason) in [
        ("line_bytes = 65", "hardware.line_bytes", "expected a power of two"),
        ("frequency_mhz = 0", "hardware.frequency_mhz", "expected 1 to 100000"),
        ("smt_throughput_1024 = 1025", "hardware.smt_throughput_1024", "expected 1 to 1024"),
        ("stall_pct = 91", "hardware.stall_pct", "expected 0 to 90"),
        ("transfer_ns = { llc = 2000000000 }", "hardware.transfer_ns", "at most a second"),
        (
            "contended_line = { hold_ns = 2000000000 }",
            "hardware.contended_line",
            "at most a second",
        ),
        ("core = { misses_at_once = 0 }", "hardware.core.misses_at_once", "expected 1 to 64"),
        ("memory_ns = { local = 2000000000 }", "hardware.memory_ns", "at most a second"),
    ] {
        refused(&costs(text), &[&format!("bad.toml:5: `{key}`"), reason]);
    }
    let state = |name, exit| {
        format!("[[hardware.idle_state]]\nname = \"{name}\"\nexit_ns = {exit}\nresidency_ns = 1")
    };
    refused(
        &costs(&format!("{}\n{}", state("C6", 90), state("C1", 2))),
        &["hardware.idle_state[1]", "`C1` wakes up sooner (2 ns)", "shallowest to the deepest"],
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = Machine::from_file(std::path::Path::new("/nowhere/m.toml")).unwrap_err();
    assert!(error.to_string().contains("cannot read /nowhere/m.toml"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    /// The reader returns a machine or an error, whatever changes a machine file has.
    #[test]
    fn damaged_toml_never_panics(
        machine in any::<prop::sample::Index>(),
        explicit: bool,
        edits in prop::collection::vec(
            (any::<prop::sample::Index>(), 0..30usize, "[0-9a-z\\[\\]\"=,.\\- \n]{0,8}|\\PC{0,3}"),
            1..5,
        ),
    ) {
        let names: Vec<&str> = library::names().collect();
        let machine = library::load(names[machine.index(names.len())]).unwrap();
        let regular = "name = \"r\"\n[topology]\npackages = 2\nclusters_per_llc = 2\n\
                       cores_per_cluster = 4\nthreads_per_core = 2\nnumbering = \"threads-last\"\n\
                       [numa]\ndistance = [[10, 20], [20, 10]]\n";
        let text = if explicit { machine.to_toml() } else { regular.to_string() };
        let text = edited(&text, edits);
        if let Ok(found) = Machine::from_toml_str(&text, "damaged") {
            let again = Machine::from_toml_str(&found.to_toml(), "again").unwrap();
            prop_assert_eq!(found, again);
        }
    }
}
