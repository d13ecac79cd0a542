// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of machines that are made of another one.

use perch_machine::{Machine, library};

/// The lists of CPUs in each LLC, and in each cluster.
fn shape(machine: &Machine) -> (Vec<Vec<usize>>, Vec<Vec<usize>>) {
    let mut llcs = vec![Vec::new(); machine.llcs()];
    let mut clusters = vec![Vec::new(); machine.clusters()];
    for (number, cpu) in machine.cpus.iter().enumerate() {
        assert_eq!(cpu.llc, cpu.declared_llc);
        llcs[cpu.llc as usize].push(number);
        if let Some(cluster) = cpu.cluster {
            clusters[cluster as usize].push(number);
        }
    }
    (llcs, clusters)
}

#[test]
fn a_cache_is_split_by_whole_cores() {
    // The siblings of CPUs 0 to 5 are 6 to 11.
    let text = "name = \"m\"\n[topology]\ncores_per_llc = 6\nthreads_per_core = 2\n\
                numbering = \"threads-last\"\n";
    let whole = Machine::from_toml_str(text, "m").unwrap();
    let split = whole.split_llcs(3).unwrap();
    let (llcs, _) = shape(&split);
    assert_eq!(llcs, [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]]);
    assert_eq!(split.hardware.llc_bytes, whole.hardware.llc_bytes / 3);
    assert_eq!((split.nodes(), split.cores()), (1, 6));
    let again = Machine::from_toml_str(&split.to_toml(), "again").unwrap();
    assert_eq!(again, split);
    // Six cores into four: parts differ by one core.
    let (llcs, _) = shape(&whole.split_llcs(4).unwrap());
    let sizes: Vec<usize> = llcs.iter().map(Vec::len).collect();
    assert_eq!(sizes, [4, 2, 4, 2]);
    assert_eq!(whole.split_llcs(1).unwrap(), whole);
}

#[test]
fn clusters_stay_whole_where_they_divide() {
    // An LLC of four clusters of two cores.
    let whole = Machine::regular("c", 1, 1, 1, 4, 2, 1).unwrap();
    let (llcs, clusters) = shape(&whole.split_llcs(2).unwrap());
    assert_eq!(llcs, [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(clusters.len(), 4);
    // Each cluster becomes a cache, of which it is no part any more.
    let (llcs, clusters) = shape(&whole.split_llcs(4).unwrap());
    assert_eq!((llcs.len(), clusters.len()), (4, 0));
    // Four clusters do not make three parts, so one of them is cut, and what is left of it is one core.
    let split = whole.split_llcs(3).unwrap();
    let (llcs, clusters) = shape(&split);
    assert_eq!(llcs, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]);
    assert_eq!(clusters, [[0, 1], [4, 5]]);
    Machine::from_toml_str(&split.to_toml(), "again").unwrap();
}

#[test]
fn a_split_that_does_not_fit_says_what_fits() {
    let whole = Machine::regular("m", 1, 1, 2, 0, 4, 2).unwrap();
    for parts in [0, 5] {
        let why = whole.split_llcs(parts).unwrap_err().to_string();
        assert!(
            why.starts_with(&format!("cannot split each last-level cache into {parts}:")),
            "{why}"
        );
        assert!(why.ends_with("expected 1 to 4"), "{why}");
    }
}

#[test]
fn every_machine_splits_and_can_be_written() {
    for seed in 0..64 {
        let whole = Machine::random(seed, 24);
        for parts in 1..4 {
            let Ok(split) = whole.split_llcs(parts) else {
                continue;
            };
            assert_eq!(split.declared_llcs(), parts * whole.declared_llcs());
            for (a, b) in split.cpus.iter().zip(&whole.cpus) {
                assert_eq!((a.core, a.node, a.package), (b.core, b.node, b.package));
            }
            Machine::from_toml_str(&split.to_toml(), "again")
                .unwrap_or_else(|error| panic!("seed {seed}, {parts} parts: {error}"));
        }
    }
}

#[test]
fn a_part_of_a_machine_has_its_nodes_and_distances() {
    let whole = library::load("kunpeng920").unwrap();
    let nodes = whole.nodes();
    let keep: Vec<u32> = (0u32..)
        .zip(&whole.cpus)
        .filter(|(_, cpu)| cpu.node as usize == nodes - 1 || cpu.node == 0)
        .map(|(number, _)| number)
        .collect();
    let part = whole.part(&keep);
    assert_eq!(part.nodes(), 2);
    assert_eq!(part.node_distance[0][1], whole.node_distance[0][nodes - 1]);
    assert_eq!(part.cpus.len(), keep.len());
    let all: Vec<u32> = (0..whole.cpus.len() as u32).collect();
    assert_eq!(whole.part(&all), whole);
}
