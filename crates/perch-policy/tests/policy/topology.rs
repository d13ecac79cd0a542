// SPDX-License-Identifier: GPL-2.0-or-later
//! Scheduling domains: what Linux would build for machines whose domains are known (worked out by
//! hand from the kernel's rules), and what must hold on any machine.

use std::time::Instant;

use perch_machine::{Machine, library};
use perch_policy::{DomainView, Host, Level, SetView, Topology};
use proptest::prelude::*;

use crate::machines::{self, Shape};

/// A set as the kernel prints it: "0-3,8".
fn list(set: SetView) -> String {
    let cpus: Vec<usize> = set.iter().collect();
    let mut out: Vec<String> = Vec::new();
    let mut from = 0;
    for (i, cpu) in cpus.iter().enumerate() {
        if cpus.get(i + 1) == Some(&(cpu + 1)) {
            continue;
        }
        let first = cpus[from];
        out.push(if first == *cpu { format!("{cpu}") } else { format!("{first}-{cpu}") });
        from = i + 1;
    }
    out.join(",")
}

fn show(domain: DomainView) -> String {
    let groups: Vec<String> = (0..domain.groups()).map(|i| list(domain.group(i))).collect();
    format!("{:?} {}: {}", domain.level(), list(domain.span()), groups.join(" | "))
}

/// The domains of a CPU with their groups, lowest first, one per line.
fn chain(machine: &Machine, cpu: usize) -> Vec<String> {
    Topology::new(machine).domains(cpu).map(show).collect()
}

fn known(name: &str) -> Machine {
    library::load(name).unwrap_or_else(|e| panic!("{e}"))
}

const CLUSTERS_OF_0: &str = "Mc 0-31: 0-3 | 4-7 | 8-11 | 12-15 | 16-19 | 20-23 | 24-27 | 28-31";

/// Distances 10/12/20/22/24: nodes 0 and 2 are the near ones of their sockets, so each node sees
/// the other socket come nearer node by node, and the spans overlap.
#[test]
fn kunpeng920_has_clusters_and_overlapping_numa_levels() {
    let machine = known("kunpeng920");
    assert_eq!(
        chain(&machine, 0),
        [
            "Cls 0-3: 0 | 1 | 2 | 3",
            CLUSTERS_OF_0,
            "Numa 0-63: 0-31 | 32-63",
            "Numa 0-95: 0-63 | 64-95",
            "Numa 0-127: 0-95 | 64-127",
        ]
    );
    // Node 1 is at 22 from node 2 and at 24 from node 3: no level at 20.
    assert_eq!(
        chain(&machine, 32)[2..],
        ["Numa 0-63: 32-63 | 0-31", "Numa 0-95: 0-63 | 64-95", "Numa 0-127: 0-95 | 0-31,64-127",]
    );
    assert_eq!(
        chain(&machine, 64)[2..],
        [
            "Numa 64-127: 64-95 | 96-127",
            "Numa 0-31,64-127: 64-127 | 0-31",
            "Numa 0-127: 0-31,64-127 | 0-63",
        ]
    );
}

/// One LLC a node: an eighth of the node may run before fork spreads, twice that over twice the
/// span of the first NUMA level.
#[test]
fn kunpeng920_tolerates_an_eighth_of_a_node() {
    let topology = Topology::new(&known("kunpeng920"));
    let tolerated: Vec<u32> = topology.domains(0).map(|d| d.imb_numa_nr()).collect();
    assert_eq!(tolerated, [0, 0, 4, 4, 8]);
}

#[test]
fn jacobsville_has_clusters_in_one_llc() {
    let machine = known("jacobsville");
    assert_eq!(
        chain(&machine, 5),
        ["Cls 4-7: 4 | 5 | 6 | 7", "Mc 0-23: 0-3 | 4-7 | 8-11 | 12-15 | 16-19 | 20-23"]
    );
    let topology = Topology::new(&machine);
    assert!(topology.has_clusters() && !topology.has_smt());
}

/// Two LLCs in one node: the package level is the node's, and NUMA adds nothing.
#[test]
fn xeon240_has_two_llcs_in_a_node() {
    let machine = known("xeon240");
    let chain = chain(&machine, 60);
    assert_eq!(chain[0], "Smt 60,180: 60 | 180");
    assert!(chain[1].starts_with("Mc 60-119,180-239: 60,180 | 61,181 | "), "{}", chain[1]);
    assert_eq!(chain[2], "Pkg 0-239: 0-59,120-179 | 60-119,180-239");
    assert_eq!(chain.len(), 3);
}

#[test]
fn epyc7543_has_four_llcs_a_node() {
    let machine = known("epyc7543");
    assert_eq!(
        chain(&machine, 0),
        [
            "Smt 0,64: 0 | 64",
            "Mc 0-3,64-67: 0,64 | 1,65 | 2,66 | 3,67",
            "Pkg 0-15,64-79: 0-3,64-67 | 4-7,68-71 | 8-11,72-75 | 12-15,76-79",
            "Numa 0-31,64-95: 0-15,64-79 | 16-31,80-95",
            "Numa 0-127: 0-31,64-95 | 32-63,96-127",
        ]
    );
    // Four LLCs a node: as many tasks before they would share one.
    let topology = Topology::new(&machine);
    let tolerated: Vec<u32> = topology.domains(0).map(|d| d.imb_numa_nr()).collect();
    assert_eq!(tolerated, [0, 0, 0, 4, 8]);
}

#[test]
fn juno_has_an_llc_each_kind() {
    let machine = known("juno");
    assert_eq!(chain(&machine, 0), ["Mc 0,3-5: 0 | 3 | 4 | 5", "Pkg 0-5: 0,3-5 | 1-2"]);
    assert_eq!(chain(&machine, 2), ["Mc 1-2: 1 | 2", "Pkg 0-5: 0,3-5 | 1-2"]);
}

#[test]
fn phantom_domains_cut_the_llc_of_pixel3() {
    let singles = "0 | 1 | 2 | 3 | 4 | 5 | 6 | 7";
    assert_eq!(chain(&known("pixel3"), 6), [format!("Mc 0-7: {singles}")]);
    assert_eq!(chain(&known("pixel3-phantom"), 6), ["Mc 4-7: 4 | 5 | 6 | 7", "Pkg 0-7: 0-3 | 4-7"]);
}

/// The node is the LLC: the package level is dropped, NUMA stands on the LLC.
#[test]
fn x5570_has_threads_and_nodes() {
    let machine = known("x5570");
    assert_eq!(
        chain(&machine, 4),
        [
            "Smt 4,12: 4 | 12",
            "Mc 4-7,12-15: 4,12 | 5,13 | 6,14 | 7,15",
            "Numa 0-15: 4-7,12-15 | 0-3,8-11",
        ]
    );
}

#[test]
fn one_cpu_has_no_domain() {
    let machine = Machine::regular("one", 1, 1, 1, 0, 1, 1).expect("a machine");
    let topology = Topology::new(&machine);
    assert_eq!((topology.nr_domains(), topology.nr_llcs(), topology.llc(0)), (0, 0, None));
    assert!(topology.core_span(0).contains(0) && topology.cluster_span(0).is_none());
    assert!(Host::new(topology).is_idle(0));
}

/// A CPU alone in its LLC: the level that joins no CPUs is dropped, and there is no LLC to scan.
#[test]
fn lone_cores_have_no_llc_domain() {
    let machine = Machine::regular("lone", 1, 1, 6, 0, 1, 1).expect("a machine");
    assert_eq!(chain(&machine, 3), ["Pkg 0-5: 0 | 1 | 2 | 3 | 4 | 5"]);
    assert_eq!(Topology::new(&machine).llc(3), None);
}

/// A cluster of one core is that core, one as wide as the LLC is that LLC.
#[test]
fn clusters_that_add_nothing_are_no_level() {
    let narrow = Machine::regular("narrow", 1, 1, 1, 4, 1, 2).expect("a machine");
    assert_eq!(chain(&narrow, 0), ["Smt 0-1: 0 | 1", "Mc 0-7: 0-1 | 2-3 | 4-5 | 6-7"]);
    let wide = Machine::regular("wide", 1, 1, 2, 1, 4, 1).expect("a machine");
    assert_eq!(chain(&wide, 0), ["Mc 0-3: 0 | 1 | 2 | 3", "Pkg 0-7: 0-3 | 4-7"]);
    for machine in [narrow, wide] {
        let topology = Topology::new(&machine);
        assert!(!topology.has_clusters() && topology.cluster_span(0).is_none());
    }
}

/// The time that it takes is printed: it should stay well below a second.
#[test]
fn the_largest_machine_has_its_domains() {
    let machine = Machine::regular("big", 8, 8, 4, 4, 4, 2).expect("a machine");
    assert_eq!(machine.cpus.len(), 8192);
    let start = Instant::now();
    let topology = Topology::new(&machine);
    println!("8192 CPUs: built in {:?}", start.elapsed());
    let widths: Vec<u32> = topology.domains(8191).map(|d| d.span().weight()).collect();
    assert_eq!(widths, [2, 8, 32, 128, 8192]);
}

/// A row of `nodes`: as many distances but one.
fn row(nodes: usize) -> Machine {
    let mut machine = Machine::regular("row", nodes, 1, 1, 0, 2, 1).expect("a machine");
    for (a, row) in machine.node_distance.iter_mut().enumerate() {
        let cells = row.iter_mut().enumerate();
        cells.for_each(|(b, d)| *d = 10 + a.abs_diff(b) as u32);
    }
    machine
}

#[test]
fn as_many_distances_as_a_machine_may_have_are_a_level_each() {
    sound(&row(9));
    assert_eq!(Topology::new(&row(9)).domains(0).count(), 9);
}

/// perch-machine refuses such a file; a machine made by hand must not lose levels in silence.
#[test]
#[should_panic(expected = "on a machine that was not checked")]
fn more_distances_than_a_machine_may_have_are_no_topology() {
    Topology::new(&row(16));
}

/// Asserts the properties that the domains of every CPU of any machine must have.
fn sound(machine: &Machine) {
    let shape = Shape::new(machine);
    let topology = Topology::new(machine);
    assert_eq!((topology.has_smt(), topology.has_clusters()), (shape.smt, shape.clusters));
    let cpus = |set: SetView| set.iter().collect::<Vec<_>>();
    for cpu in 0..shape.nr_cpus() {
        assert_eq!(cpus(topology.core_span(cpu)), shape.core[cpu], "core of CPU {cpu}");
        let cluster = topology.cluster_span(cpu).map(cpus);
        assert_eq!(cluster, shape.cluster[cpu], "cluster of CPU {cpu}");
        let llc = topology.llc(cpu).map(|llc| cpus(topology.llc_span(llc)));
        assert_eq!(llc, shape.llc[cpu], "LLC of CPU {cpu}");

        let mut below = vec![cpu];
        for domain in topology.domains(cpu) {
            let span = cpus(domain.span());
            let at = format!("CPU {cpu}: {}", show(domain));
            assert!(span.len() > below.len(), "adds nothing to the level below; {at}");
            assert!(below.iter().all(|c| span.contains(c)), "leaves out the level below; {at}");
            assert_eq!(domain.span().weight() as usize, span.len(), "{at}");
            assert!(domain.groups() > 1, "one group is not a choice; {at}");
            let numa = domain.level() == Level::Numa;
            let groups: Vec<Vec<usize>> =
                (0..domain.groups()).map(|i| cpus(domain.group(i))).collect();
            assert!(groups.contains(&below), "the level below is not a group; {at}");
            if numa {
                assert_eq!(groups[0], below, "not the first group; {at}");
            }
            for c in &span {
                let holds = groups.iter().filter(|g| g.contains(c)).count();
                assert!(holds == 1 || (numa && holds > 1), "CPU {c} in {holds} groups; {at}");
            }
            let outside = groups.iter().flatten().find(|c| !span.contains(c));
            assert_eq!(outside, None, "a group leaves the domain; {at}");
            below = span;
        }
        assert_eq!(below.len(), shape.nr_cpus(), "CPU {cpu} does not reach every other");
    }
}

#[test]
fn domains_of_library_machines_are_sound() {
    for name in library::names() {
        sound(&known(name));
    }
}

proptest! {
    #![proptest_config(crate::config())]
    #[test]
    fn domains_of_random_machines_are_sound(seed: u64, max_cpus in 1..160usize) {
        sound(&machines::random(seed, max_cpus));
    }
}

/// The kernel drops a CPU that is offline or isolated from every domain; so the domains of the others are
/// those of a machine without it.
#[test]
fn numbers_in_between_are_of_cpus_apart() {
    for seed in 0..40 {
        let machine = Machine::random(seed, 150);
        // Every third number, and the last ones, are of nobody.
        let numbers: Vec<u32> =
            (0u32..).filter(|number| number % 3 != 1).take(machine.cpus.len()).collect();
        let nr_cpus = *numbers.last().unwrap() as usize + 3;
        let (dense, sparse) =
            (Topology::new(&machine), Topology::numbered(&machine, &numbers, nr_cpus));
        assert_eq!(sparse.nr_cpus(), nr_cpus);
        let renamed =
            |set: SetView| -> Vec<usize> { set.iter().map(|cpu| numbers[cpu] as usize).collect() };
        let plain = |set: SetView| -> Vec<usize> { set.iter().collect() };
        for (cpu, &number) in numbers.iter().enumerate() {
            let number = number as usize;
            assert!(!sparse.is_apart(number));
            assert_eq!(sparse.llc(number), dense.llc(cpu));
            assert_eq!(sparse.node(number), dense.node(cpu));
            assert_eq!(sparse.capacity(number), dense.capacity(cpu));
            assert_eq!(plain(sparse.core_span(number)), renamed(dense.core_span(cpu)));
            let pairs = sparse.domains(number).zip(dense.domains(cpu));
            assert_eq!(sparse.domains(number).count(), dense.domains(cpu).count());
            for (one, other) in pairs {
                assert_eq!(one.level(), other.level());
                assert_eq!(plain(one.span()), renamed(other.span()));
                assert_eq!(one.span().weight(), other.span().weight());
                assert!(one.span().contains(number));
                for group in 0..other.groups() {
                    assert_eq!(plain(one.group(group)), renamed(other.group(group)));
                }
            }
        }
        for number in (0..nr_cpus).filter(|&number| !numbers.contains(&(number as u32))) {
            assert!(sparse.is_apart(number));
            assert_eq!(sparse.domains(number).count(), 0);
            assert_eq!((sparse.llc(number), sparse.asym(number)), (None, None));
            assert_eq!(plain(sparse.core_span(number)), [number]);
        }
    }
}
