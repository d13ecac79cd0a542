// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of machines from hwloc's XML: hand-written files, and every topology that can be put into
//! one.

use crate::common::surveyed;
use perch_machine::hwloc::from_xml_str;
use perch_machine::{Cpu, Distance, Machine, import, library};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

fn data(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn refusal(text: &str) -> String {
    from_xml_str(text, "file.xml").expect_err("the file is wrong").to_string()
}

#[test]
fn groups_inside_an_l3_are_clusters() {
    let machine = import(&data("clusters.xml")).unwrap();
    assert_eq!((machine.cpus.len(), machine.clusters(), machine.llcs()), (8, 4, 2));
    assert_eq!((machine.packages(), machine.nodes()), (1, 2));
    assert_eq!(machine.distance(0, 1), Distance::Cluster);
    assert_eq!(machine.distance(0, 2), Distance::Llc);
    assert_eq!(machine.distance(0, 4), Distance::Package);
    assert_eq!(machine.node_distance, [[10, 12], [12, 10]]);
    let hardware = &machine.hardware;
    assert_eq!((hardware.l1d_bytes, hardware.l2_bytes), (64 << 10, 512 << 10));
    assert_eq!((hardware.llc_bytes, hardware.l2_per_cluster), (32 << 20, false));
    assert!(machine.description.starts_with("Small & clustered, 8 CPUs"));
}

#[test]
fn an_l2_of_several_cores_is_a_cluster_and_kinds_have_capacities() {
    let machine = import(&data("hybrid.xml")).unwrap();
    assert_eq!((machine.clusters(), machine.cores()), (1, 6));
    assert_eq!(machine.distance(0, 1), Distance::Core);
    assert_eq!(machine.distance(0, 2), Distance::Llc);
    assert_eq!(machine.distance(4, 7), Distance::Cluster);
    assert_eq!((machine.cpus[0].capacity, machine.cpus[4].capacity), (1024, 607));
    // The cache size is that of the most capable CPU.
    assert_eq!(machine.hardware.l2_bytes, 1_310_720);
}

#[test]
fn nodes_inside_an_l3_are_no_clusters() {
    let machine = import(&data("sub-numa.xml")).unwrap();
    assert_eq!((machine.llcs(), machine.declared_llcs(), machine.nodes()), (1, 2, 2));
    assert_eq!(machine.clusters(), 0);
    // Two of the four nodes have only memory.
    assert_eq!(machine.node_distance, [[10, 12], [12, 10]]);
}

#[test]
fn files_of_hwloc_1_are_refused_with_advice() {
    let message = import(&data("hwloc1.xml")).unwrap_err().to_string();
    assert!(message.contains("hwloc1.xml:2: `topology`: format version 1 is too old"), "{message}");
    assert!(message.contains("hwloc 2 or later"), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let message = import(Path::new("/nowhere/at-all.xml")).unwrap_err().to_string();
    assert!(message.contains("cannot read /nowhere/at-all.xml"), "{message}");
}

#[test]
fn what_is_not_a_topology_is_refused_with_its_line() {
    let pu = |attributes: &str| {
        format!("<topology version=\"2.0\">\n<object type=\"PU\" {attributes}/>\n</topology>")
    };
    for (text, words) in [
        (String::new(), "file.xml:1: no <topology>"),
        ("<html></html>".to_string(), "file.xml:1: the file begins with <html>"),
        ("<topology version=\"2.0\">".to_string(), "the file ends inside <topology>"),
        ("<topology version=\"2.0\">\n</objekt>".to_string(), "file.xml:2: this is not XML"),
        ("<topology version=\"2.0\"/>".to_string(), "the machine has no PU"),
        (pu(""), "file.xml:2: `PU`: a PU without a usable `os_index`"),
        (pu("os_index=\"8192\""), "expected a number below 8192"),
    ] {
        let message = refusal(&text);
        assert!(message.contains(words), "{text}: {message}");
    }
    let twice = pu("os_index=\"0\"").replace("</topology>", "")
        + "<object type=\"PU\" os_index=\"0\"/></topology>";
    assert!(refusal(&twice).contains("two PUs with os_index 0"));
}

/// Returns `machine` in the form that `lstopo` would write. Nodes are Groups with memory where they
/// do not coincide with the machine; no machine here has LLCs that nodes cut.
fn to_xml(machine: &Machine) -> String {
    let mut out = String::from("<topology version=\"2.1\">\n<object type=\"Machine\">\n");
    let all: Vec<usize> = (0..machine.cpus.len()).collect();
    let whole = machine.nodes() == 1;
    if whole {
        out.push_str("<object type=\"NUMANode\" os_index=\"0\"/>\n");
    }
    level(machine, &all, if whole { &["Package", "L3Cache"] } else { &LEVELS }, &mut out);
    out.push_str("</object>\n");
    let nodes = machine.nodes();
    let numbers = |list: Vec<u32>| list.iter().map(|n| format!("{n} ")).collect::<String>();
    let _ = write!(
        out,
        "<distances2 type=\"NUMANode\" nbobjs=\"{nodes}\" name=\"NUMALatency\">\
         <indexes>{}</indexes><u64values>{}</u64values></distances2>",
        numbers((0..nodes as u32).collect()),
        numbers(machine.node_distance.concat()),
    );
    for (number, cpu) in machine.cpus.iter().enumerate() {
        let words = vec!["0x0"; number / 32];
        let set = format!("{:#x}", 1u32 << (number % 32));
        let set = std::iter::once(set.as_str()).chain(words).collect::<Vec<_>>().join(",");
        let _ = write!(
            out,
            "<cpukind cpuset=\"{set}\"><info name=\"LinuxCapacity\" value=\"{}\"/></cpukind>",
            cpu.capacity
        );
    }
    out + "</topology>\n"
}

const LEVELS: [&str; 3] = ["Package", "Node", "L3Cache"];

fn level(machine: &Machine, cpus: &[usize], levels: &[&str], out: &mut String) {
    let Some((kind, below)) = levels.split_first() else {
        return clusters(machine, cpus, out);
    };
    let id = |&cpu: &usize| match *kind {
        "Package" => machine.cpus[cpu].package,
        "Node" => machine.cpus[cpu].node,
        _ => machine.cpus[cpu].llc,
    };
    for wanted in cpus.iter().map(id).collect::<BTreeSet<u32>>() {
        let members: Vec<usize> = cpus.iter().copied().filter(|cpu| id(cpu) == wanted).collect();
        let _ = match *kind {
            "Node" => writeln!(
                out,
                "<object type=\"Group\"><object type=\"NUMANode\" os_index=\"{wanted}\"/>"
            ),
            _ => writeln!(out, "<object type=\"{kind}\" os_index=\"{wanted}\">"),
        };
        level(machine, &members, below, out);
        out.push_str("</object>\n");
    }
}

fn clusters(machine: &Machine, cpus: &[usize], out: &mut String) {
    for wanted in cpus.iter().map(|&cpu| machine.cpus[cpu].cluster).collect::<BTreeSet<_>>() {
        if wanted.is_some() {
            out.push_str("<object type=\"Group\">\n");
        }
        let mut cores = BTreeSet::new();
        for &cpu in cpus.iter().filter(|&&cpu| machine.cpus[cpu].cluster == wanted) {
            cores.insert(machine.cpus[cpu].core);
        }
        for core in cores {
            let _ = writeln!(out, "<object type=\"Core\" os_index=\"{core}\">");
            for &cpu in cpus.iter().filter(|&&cpu| machine.cpus[cpu].core == core) {
                let _ = writeln!(out, "<object type=\"PU\" os_index=\"{cpu}\"/>");
            }
            out.push_str("</object>\n");
        }
        if wanted.is_some() {
            out.push_str("</object>\n");
        }
    }
}

/// Returns true where no node cuts an LLC, a cut that `to_xml` cannot express.
fn is_nested(machine: &Machine) -> bool {
    let same_node = |a: &Cpu, b: &Cpu| a.llc != b.llc || a.node == b.node;
    let cpus = &machine.cpus;
    cpus.iter().all(|a| cpus.iter().all(|b| same_node(a, b)))
}

#[test]
fn library_machines_survive_the_journey() {
    for name in ["kunpeng920", "jacobsville", "juno", "xeon240", "epyc7543", "x5570"] {
        let machine = library::load(name).unwrap();
        let found = from_xml_str(&to_xml(&machine), name).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(found.cpus, machine.cpus, "{name}");
        assert_eq!(found.node_distance, machine.node_distance, "{name}");
    }
}

proptest! {
    #[test]
    fn random_machines_survive_the_journey(seed: u64, max_cpus in 1..100usize) {
        let machine = Machine::random(seed, max_cpus);
        prop_assume!(is_nested(&machine));
        let found = from_xml_str(&to_xml(&machine), "xml")
            .map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(found.cpus, surveyed(&machine).cpus);
        prop_assert_eq!(found.node_distance, machine.node_distance);
    }
}
