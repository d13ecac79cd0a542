// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests that machine files that contradict themselves are refused with file, line, key, reason and
//! what was expected.

use perch_machine::Machine;

/// Files, whose lines ` ; ` divides, and words of the error; the first line gives the name. `FOUR` is a
/// topology of four CPUs, `COSTS` the same with a table of costs, `TWO` two nodes with a table of
/// distances, `SNC` two nodes in one package and LLC, `CLUSTERS` an LLC of two clusters.
const REFUSED: &str = r#"
[[llc]] ; cpus = "0-1" ; [[llc]] ; cpus = "2-3" ; [[cluster]] ; cpus = "1-2" | bad.toml:7: `cluster[0].cpus` | this cluster spans two LLCs: CPU 1 and CPU 2 | expected a cluster to lie inside one LLC
[[cluster]] ; cpus = "0-1" ; [[cluster]] ; cpus = "2-3" ; [[core]] ; cpus = "1-2" | `core[0].cpus` | this core spans two clusters
[[package]] ; cpus = "0-3" ; [[cluster]] ; cpus = "0-1" ; [[core]] ; cpus = "1-2" | `core[0].cpus` | this core spans two clusters
SNC | `llc[0].cpus` | this LLC spans two nodes | sub-NUMA clustering | `[declared] llc`
SNC ; [declared] ; llc = ["0", "1-2", "3"] | `declared.llc[1]` | this declared LLC spans two nodes
[[package]] ; cpus = "0-1" ; [[package]] ; cpus = "2-3" ; [[node]] ; cpus = "0-3" ; [[llc]] ; cpus = "0-3" | `llc[0].cpus` | this LLC spans two packages
[[package]] ; cpus = "0-2" ; [[package]] ; cpus = "3" ; [[node]] ; cpus = "0-1" ; [[node]] ; cpus = "2-3" ; [[llc]] ; cpus = "0-1" ; [[llc]] ; cpus = "2" ; [[llc]] ; cpus = "3" | `package[0].cpus` | this package spans two nodes | one of those nodes spans two
CLUSTERS ; [declared] ; llc = ["0-2", "3"] | this cluster spans two declared LLCs
CLUSTERS ; [declared] ; llc = ["0-1"] | `declared.llc[0]` | CPU 2 is in no declared LLC
FOUR ; [[capacity]] ; cpus = "0" ; value = 0 | bad.toml:6: `capacity[0]` | capacity 0 is out of range | expected 1 to 1024
FOUR ; [[capacity]] ; cpus = "0" ; value = -1 | bad.toml:6: `capacity[0]` | capacity -1 is out of range | expected 1 to 1024
FOUR ; [[capacity]] ; cpus = "0" ; value = 1025 | bad.toml:6: `capacity[0]` | capacity 1025 is out of range | expected 1 to 1024
FOUR ; [[capacity]] ; cpus = "0-3" ; value = 512 | `capacity[0]` | no CPU has capacity 1024: the highest is 512 | scaled so that
FOUR ; [[capacity]] ; cpus = "0,4" ; value = 512 | `capacity[0]` | CPU 4, which does not exist | expected a CPU from 0 to 3
FOUR ; [[capacity]] ; cpus = "0" ; value = 512 ; [[capacity]] ; cpus = "0" ; value = 512 | `capacity[1]` | CPU 0 has two capacities
FOUR ; [[ranking]] ; cpus = "1" ; value = 0 | `ranking[0]` | ranking 0 is out of range | expected 1 to 255
FOUR ; [[ranking]] ; cpus = "1" ; value = 256 | `ranking[0]` | ranking 256 is out of range | expected 1 to 255
FOUR ; [[ranking]] ; cpus = "1" ; value = -1 | `ranking[0]` | ranking -1 is out of range | expected 1 to 255
FOUR ; [[ranking]] ; cpus = "0" ; value = 200 ; [[ranking]] ; cpus = "0" ; value = 200 | `ranking[1]` | CPU 0 has two rankings
[[core]] ; cpus = "0-2,4" | a hole in the numbering | no table names CPU 3, yet there is CPU 4
[[core]] ; cpus = "0-8192" | bad.toml:3: `core[0].cpus` | CPU 8192 is beyond
 | the machine has no CPUs | expected `[topology]`
[[core]] ; cpus = "" | no CPUs
[topology] ; packages = 3 ; cores_per_llc = 4096 | bad.toml:2: `topology` | 12288 CPUs | a machine may have 8192
[topology] ; packages = 9000 ; cores_per_llc = 1 | `topology.packages` | 9000 is out of range | expected 1 to 8192
[topology] ; cores_per_llc = 0 | `topology.cores_per_llc` | 0 is out of range
[[package]] ; cpus = "0-3" ; [[llc]] ; cpus = "0-2" | `llc[0].cpus` | CPU 3 is in no LLC | expected every CPU in one LLC
TWO ; distance = [[10, 20]] | bad.toml:6: `numa.distance` | 1 rows for 2 nodes; expected 2 rows of 2 numbers
TWO ; distance = [[10, 20], [20]] | bad.toml:6: `numa.distance` | row 1 has 1 numbers for 2 nodes
TWO ; distance = [[10, 20], [20, 11]] | bad.toml:6: `numa.distance` | node 1 is 11 from itself; expected 10 on the diagonal
TWO ; distance = [[10, 9], [20, 10]] | bad.toml:6: `numa.distance` | node 0 is 9 from node 1; expected 10 (local) to 254
TWO ; distance = [[10, 255], [20, 10]] | bad.toml:6: `numa.distance` | 255 means unreachable
FOUR ; [[node]] ; cpus = "0-3" | `topology` | the topology is said twice: here, and in `node[0].cpus`
[topology] ; packages = 2 | the number of cores is missing | `cores_per_llc`
[topology] ; clusters_per_llc = 2 | not said in one way
[topology] ; cores_per_llc = 2 ; node_interleave = true ; nodes_per_package = 1 | `node_interleave` makes one node | expected one of the two
[topology] ; cores_per_llc = 2 ; numbering = "sideways" | bad.toml:4: `numbering` | sideways | threads-last
[topology] ; cores_per_lcl = 4 | bad.toml:3: `cores_per_lcl` | unknown field | `cores_per_llc`
[hardware] ; l3_bytes = 4 | bad.toml:3: `l3_bytes` | unknown field
[hardware] ; l2_bytes = "4 parsecs" | bad.toml:3: `l2_bytes` | such as "512K"
[hardware] ; line_bytes = -64 | bad.toml:3: `line_bytes` | expected u32
[[core]] ; cpus = [0, 1] | bad.toml:3: `cpus` | expected a string
[[core] | bad.toml:2: `core`
[[core]] ; cpus = "0-" | bad.toml:3: `core[0].cpus` | "0,3-5"
COSTS ; line_bytes = 65 | bad.toml:5: `hardware.line_bytes` | expected a power of two
COSTS ; frequency_mhz = 0 | bad.toml:5: `hardware.frequency_mhz` | expected 1 to 100000
COSTS ; smt_throughput_1024 = 1025 | bad.toml:5: `hardware.smt_throughput_1024` | expected 1 to 1024
COSTS ; stall_pct = 91 | bad.toml:5: `hardware.stall_pct` | expected 0 to 90
COSTS ; transfer_ns = { llc = 2000000000 } | bad.toml:5: `hardware.transfer_ns` | at most a second
COSTS ; contended_line = { hold_ns = 2000000000 } | bad.toml:5: `hardware.contended_line` | at most a second
COSTS ; core = { misses_at_once = 0 } | bad.toml:5: `hardware.core.misses_at_once` | expected 1 to 64
COSTS ; memory_ns = { local = 2000000000 } | bad.toml:5: `hardware.memory_ns` | at most a second
COSTS ; [[hardware.idle_state]] ; name = "C6" ; exit_ns = 90 ; residency_ns = 1 ; [[hardware.idle_state]] ; name = "C1" ; exit_ns = 2 ; residency_ns = 1 | hardware.idle_state[1] | `C1` wakes up sooner (2 ns) | shallowest to the deepest
"#;

fn spelt_out(row: &str) -> String {
    let text = [
        ("FOUR", "[topology] ; cores_per_llc = 4"),
        ("COSTS", "[topology] ; cores_per_llc = 4 ; [hardware]"),
        ("TWO", "[topology] ; packages = 2 ; cores_per_llc = 2 ; [numa]"),
        (
            "SNC",
            "[[node]] ; cpus = \"0-1\" ; [[node]] ; cpus = \"2-3\" ; [[package]] ; cpus = \"0-3\" ; [[llc]] ; cpus = \"0-3\"",
        ),
        ("CLUSTERS", "[topology] ; clusters_per_llc = 2 ; cores_per_cluster = 2"),
    ];
    let text = text.iter().fold(row.to_string(), |row, (word, text)| row.replace(word, text));
    format!("name = \"bad\"\n{}\n", text.replace(" ; ", "\n"))
}

/// Asserts that the refusal of `row` (which starts at line 2) holds all of `words`.
#[track_caller]
fn refused(row: &str, words: &[&str]) {
    let message = Machine::from_toml_str(&spelt_out(row), "bad.toml").expect_err(row).to_string();
    for word in words {
        assert!(message.contains(word), "{row}: `{word}` is not in: {message}");
    }
}

#[test]
fn what_contradicts_itself_is_refused_by_line_and_key() {
    for row in REFUSED.lines().skip(1) {
        let (text, words) = row.split_once(" | ").expect(row);
        refused(text, &words.split(" | ").collect::<Vec<_>>());
    }
    let table: Vec<Vec<u32>> =
        (0..10).map(|a: u32| (0..10).map(|b| 10 + a.abs_diff(b)).collect()).collect();
    refused(
        &format!("[topology] ; packages = 10 ; cores_per_llc = 2 ; [numa] ; distance = {table:?}"),
        &["bad.toml:6: `numa.distance`", "9 different distances between nodes; expected at most 8"],
    );
    for (level, word) in ["core", "cluster", "llc", "node", "package"].map(|level| match level {
        "llc" => (level, "LLC"),
        _ => (level, level),
    }) {
        let (key, first) = (format!("`{level}[1].cpus`"), format!("`{level}[0].cpus`, line 3"));
        refused(
            &format!("[[{level}]] ; cpus = \"0-2\" ; [[{level}]] ; cpus = \"2-3\""),
            &[
                "bad.toml:5: ",
                &key,
                &format!("CPU 2 is in two {word}s"),
                &first,
                &format!("expected each CPU in one {word}"),
            ],
        );
    }
}

#[test]
fn an_llc_of_two_nodes_may_be_declared_in_parts() {
    let parts = spelt_out("SNC ; [declared] ; llc = [\"0-1\", \"2-3\"]");
    let machine = Machine::from_toml_str(&parts, "snc.toml").unwrap();
    assert_eq!((machine.llcs(), machine.declared_llcs()), (1, 2));
}

#[test]
fn names_and_files_that_are_none_are_refused() {
    for (text, words) in [
        ("", "missing field `name`"),
        ("name = \"a b\"\n", "`a b` cannot name a machine; expected letters"),
    ] {
        let text = format!("{text}[topology]\ncores_per_llc = 1\n");
        let message = Machine::from_toml_str(&text, "n.toml").unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
    let error = Machine::from_file(std::path::Path::new("/nowhere/m.toml")).unwrap_err();
    assert!(error.to_string().contains("cannot read /nowhere/m.toml"), "{error}");
}
