// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of machines from lscpu's text: its tables, its summaries, and what neither tells.

use crate::common::surveyed;
use perch_machine::lscpu::from_str;
use perch_machine::{Cpu, Machine, library};
use proptest::prelude::*;
use std::fmt::Write;

fn refusal(text: &str) -> String {
    let found = from_str(text, "lscpu.txt");
    found.expect_err("the text is wrong").to_string()
}

/// The columns of `lscpu -p`, with the cluster or the core for the L2.
fn cells(machine: &Machine) -> Vec<[u32; 8]> {
    let cells = |(number, cpu): (usize, &Cpu)| {
        let l2 = cpu.cluster.unwrap_or(1000 + cpu.core);
        let number = number as u32;
        [number, cpu.core, cpu.package, cpu.node, cpu.core, cpu.core, l2, cpu.llc]
    };
    machine.cpus.iter().enumerate().map(cells).collect()
}

/// What `lscpu -p`, `lscpu -e` and `lscpu -e -J` print on `machine`.
fn tables(machine: &Machine) -> [String; 3] {
    let mut commas =
        "# The following is the parsable format.\n# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n"
            .to_string();
    let mut words = "CPU NODE SOCKET CORE L1d:L1i:L2:L3 ONLINE\n".to_string();
    let mut json = Vec::new();
    for [cpu, core, socket, node, l1d, l1i, l2, l3] in cells(machine) {
        let _ = writeln!(commas, "{cpu},{core},{socket},{node},,{l1d},{l1i},{l2},{l3}");
        let caches = format!("{l1d}:{l1i}:{l2}:{l3}");
        let _ = writeln!(words, "{cpu:>3} {node:>4} {socket:>6} {core:>4} {caches} yes");
        json.push(format!(
            "{{\"cpu\":{cpu},\"node\":\"{node}\",\"socket\":{socket},\"core\":{core},\
             \"l1d:l1i:l2:l3\":\"{caches}\",\"online\":true,\"maxmhz\":null}}"
        ));
    }
    [commas, words, format!("{{\"cpus\":[{}]}}", json.join(","))]
}

/// Returns the machine's CPUs with what lscpu can know of them.
fn known(machine: &Machine) -> Vec<Cpu> {
    let mut cpus = surveyed(machine).cpus;
    for cpu in &mut cpus {
        (cpu.capacity, cpu.ranking) = (1024, 0);
    }
    cpus
}

#[test]
fn library_machines_are_read_from_tables() {
    for name in ["kunpeng920", "jacobsville", "xeon240", "epyc7543", "x5570"] {
        let machine = library::load(name).unwrap();
        for text in tables(&machine) {
            let found = from_str(&text, name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(found.cpus, known(&machine), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn random_machines_are_read_from_tables(seed: u64, max_cpus in 1..40usize, form in 0..3usize) {
        let machine = Machine::random(seed, max_cpus);
        let found = from_str(&tables(&machine)[form], "table")
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(found.cpus, known(&machine));
    }
}

#[test]
fn tables_tell_offline_cpus_books_and_frequencies() {
    let text = "CPU NODE BOOK SOCKET CORE L1d:L2d ONLINE MAXMHZ MODELNAME\n\
                0 0 0 0 0 0:0 yes 5200.0000 z16\n1 - - - - - no - z16\n\
                2 0 0 0 1 1:1 yes 5200.0000 z16\n3 0 1 0 2 2:2 yes 5000.0000 z16\n";
    let machine = from_str(text, "lscpu.txt").unwrap();
    assert_eq!((machine.cpus.len(), machine.packages()), (3, 2));
    // A core's own L2 is no last-level cache: s390 shows no other.
    assert_eq!((machine.llcs(), machine.hardware.frequency_mhz), (2, 5200));
    let said = &machine.description;
    assert!(said.starts_with("z16, 3 CPUs, imported from lscpu; CPUs 1 were offline"), "{said}");
    assert_eq!(machine.sources[1], "CPUs 0-2 are the kernel's 0,2-3, in this order");
    assert!(machine.sources.iter().any(|source| source.contains("sizes of caches")));
}

#[test]
fn cores_without_the_l3_of_the_others_have_their_l2() {
    let text = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,1,0\n1,1,0,0,,1,1,2,0\n\
                2,2,0,0,,2,2,0,\n3,3,0,0,,3,3,0,\n";
    let machine = from_str(text, "lscpu.txt").unwrap();
    let llcs: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.llc).collect();
    assert_eq!((llcs, machine.clusters()), (vec![0, 0, 1, 1], 0));
}

/// Two nodes on two sockets, as `lscpu -B` prints it.
const SUMMARY: &str = "Architecture: aarch64\nCPU op-mode(s): 64-bit\nCPU(s): 6\n\
    On-line CPU(s) list: 0-3\nOff-line CPU(s) list: 4,5\nModel name: Kunpeng-920\n\
    Thread(s) per core: 1\nCore(s) per socket: 2\nSocket(s): 2\nCPU max MHz: 2600.0000\n\
    L1d cache: 262144 (4 instances)\nL2 cache: 2097152 (4 instances)\nL3 cache: 67108864 (2 instances)\n\
    NUMA node(s): 3\nNUMA node0 CPU(s): 0,2\nNUMA node10 CPU(s):\nNUMA node2 CPU(s): 1,3\n";

/// The same as `lscpu -J`, with caches inside another field as newer versions have them.
fn json(summary: &str) -> String {
    let (inside, outside): (Vec<&str>, Vec<&str>) =
        summary.lines().partition(|line| line.starts_with('L'));
    let field = |line: &str| {
        let (name, data) = line.split_once(':').unwrap();
        let name = name.replace(" cache", "");
        format!("{{\"field\":\"{name}:\",\"data\":\"{}\"}}", data.trim())
    };
    let fields =
        |lines: &[&str]| lines.iter().map(|line| field(line)).collect::<Vec<_>>().join(",");
    let caches = format!(
        "{{\"field\":\"Caches (sum of all):\",\"data\":null,\"children\":[{}]}}",
        fields(&inside)
    );
    format!("{{\"lscpu\":[{},{caches}]}}", fields(&outside))
}

#[test]
fn summaries_are_read_where_counts_leave_no_choice() {
    let rounded = SUMMARY.replace("2097152 (", "2 MiB (").replace("262144 (", "256 KiB (");
    for text in [SUMMARY.to_string(), rounded, json(SUMMARY)] {
        let machine = from_str(&text, "lscpu.txt").unwrap();
        let place =
            |cpu: usize| (machine.cpus[cpu].package, machine.cpus[cpu].node, machine.cpus[cpu].llc);
        assert_eq!(
            [place(0), place(1), place(2), place(3)],
            [(0, 0, 0), (1, 1, 1), (0, 0, 0), (1, 1, 1)]
        );
        assert_eq!(machine.cores(), 4);
        assert!(machine.description.contains("Kunpeng-920, 4 CPUs"));
        assert!(machine.description.contains("CPUs 4-5 were offline"));
        let hardware = &machine.hardware;
        assert_eq!((hardware.l1d_bytes, hardware.l2_bytes), (64 << 10, 512 << 10));
        assert_eq!((hardware.llc_bytes, hardware.frequency_mhz), (32 << 20, 2600));
        assert!(machine.sources.iter().any(|source| source.contains("no distances")));
    }
}

#[test]
fn what_lscpu_leaves_open_is_refused_with_what_to_do() {
    let header = "# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\n";
    let changed = |from: &str, to: &str| SUMMARY.replace(from, to);
    for (text, words) in [
        (String::new(), "neither hwloc's XML nor lscpu's text"),
        ("0,0,0,0,,0,0,0,0\n".to_string(), "neither hwloc's XML nor lscpu's text"),
        ("{\"caches\": []}".to_string(), "neither `cpus` nor `lscpu` is a list"),
        ("{\n\"cpus\": [".to_string(), "lscpu.txt:2: this is not JSON"),
        ("{\"cpus\": [3]}".to_string(), "`CPU`: lscpu was not asked for this column"),
        (format!("{header}0,0,0\n"), "lscpu.txt:2: `CPU`: 3 cells under 9 columns"),
        (format!("{header}0,x,0,0,,0,0,0,0\n"), "lscpu.txt:2: `CORE`: `x` is not a number"),
        (format!("{header}9999,0,0,0,,0,0,0,0\n"), "a row without a CPU below 8192"),
        (format!("{header}0,0,0,0,,0,0,0,0\n0,0,0,0,,0,0,0,0\n"), "two rows of CPU 0"),
        (header.to_string(), "no CPU is online"),
        ("# CPU,Node\n0,0\n".to_string(), "`CORE`: lscpu was not asked for this column"),
        // A phone's cores of three kinds are numbered anew for each.
        (
            format!("{header}0,0,0,,,0,0,0,0\n1,0,0,,,1,1,1,0\n"),
            "CPUs 0-1 are one core and have several L1s",
        ),
        (format!("{header}0,0,0,0,,0,0,0,0\n1,1,1,0,,1,1,1,0\n"), "serves several sockets"),
        (changed("Thread(s) per core: 1", "Thread(s) per core: 2"), "threads of one core"),
        (changed("CPU(s): 6", "Thread(s) per core: 1"), "several kinds of cores"),
        (changed("Socket(s): 2", "Socket(s): 3"), "which CPUs are in which socket"),
        (changed("Socket(s): 2", "Socket(s): many"), "`Socket(s)`: this is not a number"),
        (
            changed("67108864 (2 instances)", "67108864"),
            "`L3 cache`: the summary does not tell which",
        ),
        (changed("2097152 (4 ", "2097152 (3 "), "`L2 cache`: the summary does not tell which"),
        (changed("67108864 (2 ", "huge (2 "), "`L3 cache`: this is not a size"),
        (changed("On-line CPU(s) list: 0-3\n", ""), "lscpu's summary lacks it"),
        (changed("list: 0-3", "list: 3-0"), "the range `3-0` runs backwards"),
    ] {
        let message = refusal(&text);
        assert!(message.contains(words), "{text}: {message}");
        assert!(message.contains("; ") && !message.contains('\n'), "{message}");
    }
}
