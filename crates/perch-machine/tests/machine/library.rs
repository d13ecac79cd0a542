// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests that every library machine has the facts of its sources
//! (docs/mechanisms/), and that the library is complete.

use perch_machine::{Distance, Machine, library, resolve};

fn load(name: &str) -> Machine {
    library::load(name).unwrap()
}

/// Returns the numbers of CPUs, packages, nodes, LLCs, clusters and cores.
fn counts(machine: &Machine) -> [usize; 6] {
    [
        machine.cpus.len(),
        machine.packages(),
        machine.nodes(),
        machine.llcs(),
        machine.clusters(),
        machine.cores(),
    ]
}

#[test]
fn the_parts_of_each_machine_are_counted_right() {
    assert_eq!(counts(&load("kunpeng920")), [128, 2, 4, 4, 32, 128]);
    assert_eq!(counts(&load("jacobsville")), [24, 1, 1, 1, 6, 24]);
    assert_eq!(counts(&load("juno")), [6, 1, 1, 2, 0, 6]);
    assert_eq!(counts(&load("pixel3")), [8, 1, 1, 1, 0, 8]);
    assert_eq!(counts(&load("pixel3-phantom")), [8, 1, 1, 1, 0, 8]);
    assert_eq!(counts(&load("pixel4")), [8, 1, 1, 1, 0, 8]);
    assert_eq!(counts(&load("xeon240")), [240, 2, 1, 2, 0, 120]);
    assert_eq!(counts(&load("epyc7543")), [128, 2, 4, 16, 0, 64]);
    assert_eq!(counts(&load("x5570")), [16, 2, 2, 2, 0, 8]);
    assert_eq!(counts(&load("rt480")), [480, 2, 2, 2, 0, 240]);
}

#[test]
fn kunpeng920_is_far_in_five_steps() {
    let machine = load("kunpeng920");
    let from_0 = |cpu| machine.distance(0, cpu);
    assert_eq!(from_0(0), Distance::Cpu);
    assert_eq!(from_0(3), Distance::Cluster);
    assert_eq!(from_0(4), Distance::Llc);
    assert_eq!(from_0(32), Distance::Package);
    assert_eq!(from_0(64), Distance::Machine);
    assert_eq!(machine.node_distance[1], [12, 10, 22, 24]);
}

#[test]
fn juno_numbers_its_bigs_one_and_two() {
    let machine = load("juno");
    let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities, [446, 1024, 1024, 446, 446, 446]);
    assert_eq!(machine.distance(0, 3), Distance::Llc);
    assert_eq!(machine.distance(0, 1), Distance::Node);
}

/// The kernel computes capacities in this way: DMIPS/MHz of the device tree by the highest
/// frequency, over the largest product.
#[test]
fn pixel4_has_three_kinds() {
    let machine = load("pixel4");
    let product = |dmips: u64, khz: u64| dmips * khz;
    let largest = product(1024, 2_841_600);
    let capacity = |dmips, khz| (product(dmips, khz) * 1024 / largest) as u32;
    let (little, big) = (capacity(488, 1_785_600), capacity(1024, 2_419_200));
    let capacities: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.capacity).collect();
    assert_eq!(capacities[..4], [little; 4]);
    assert_eq!(capacities[4..], [big, big, big, 1024]);
}

#[test]
fn pixel3_phantom_differs_from_pixel3_in_its_declaration_only() {
    let (real, phantom) = (load("pixel3"), load("pixel3-phantom"));
    assert!(phantom.has_phantom_llcs() && !real.has_phantom_llcs());
    assert_eq!((real.declared_llcs(), phantom.declared_llcs()), (1, 2));
    assert_eq!(real.hardware, phantom.hardware);
    for (a, b) in real.cpus.iter().zip(&phantom.cpus) {
        let declared_llc = a.declared_llc;
        assert_eq!(*a, perch_machine::Cpu { declared_llc, ..b.clone() });
    }
    assert_eq!(phantom.distance(0, 7), Distance::Llc);
}

#[test]
fn x86_servers_number_siblings_last() {
    for (name, first_sibling) in [("xeon240", 120), ("epyc7543", 64), ("x5570", 8), ("rt480", 240)]
    {
        let machine = load(name);
        assert_eq!(machine.distance(0, first_sibling), Distance::Core, "{name}");
        assert_eq!(machine.distance(0, 1), Distance::Llc, "{name}");
    }
}

#[test]
fn llcs_are_as_wide_as_the_sources_say() {
    for (name, width) in [("kunpeng920", 32), ("xeon240", 120), ("epyc7543", 8), ("x5570", 8)] {
        let machine = load(name);
        let of_0 = machine.cpus.iter().filter(|cpu| cpu.llc == machine.cpus[0].llc);
        assert_eq!(of_0.count(), width, "{name}");
    }
}

#[test]
fn xeon240_has_both_sockets_in_one_node() {
    let machine = load("xeon240");
    assert_eq!(machine.distance(0, 60), Distance::Node);
    assert_ne!(machine.cpus[0].package, machine.cpus[60].package);
}

#[test]
fn farther_costs_no_less_at_the_distances_a_machine_has() {
    for name in library::names() {
        let machine = load(name);
        let seen = (0..machine.cpus.len()).map(|cpu| machine.distance(0, cpu));
        let seen: std::collections::BTreeSet<Distance> = seen.collect();
        for costs in [machine.hardware.transfer_ns, machine.hardware.ipi_ns] {
            let costs: Vec<u32> = seen.iter().map(|&distance| costs.at(distance)).collect();
            assert!(costs.is_sorted(), "{name}: {costs:?}");
        }
    }
}

#[test]
fn every_file_of_the_library_is_in_it() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/library");
    let files = std::fs::read_dir(directory).unwrap();
    let mut stems: Vec<String> = files
        .map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    stems.sort();
    assert_eq!(stems, library::names().collect::<Vec<_>>());
}

#[test]
fn a_path_is_resolved_where_no_name_matches() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/library/juno.toml");
    assert_eq!(resolve(path).unwrap(), load("juno"));
    assert_eq!(resolve("juno").unwrap(), load("juno"));
}

#[test]
fn numbering_can_alternate_between_packages() {
    let text = "name = \"i\"\n[topology]\npackages = 2\ncores_per_llc = 2\nthreads_per_core = 2\n\
                numbering = \"packages-interleaved\"\n";
    let machine = Machine::from_toml_str(text, "i").unwrap();
    let packages: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.package).collect();
    assert_eq!(packages, [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(machine.distance(0, 4), Distance::Core);
}

#[test]
fn every_example_in_the_documentation_is_a_machine() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/machines.md");
    let page = std::fs::read_to_string(page).unwrap();
    let examples: Vec<&str> =
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        Machine::from_toml_str(example, "docs/machines.md").unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn the_documented_drawing_is_the_drawing() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/machines.md");
    let page = std::fs::read_to_string(page).unwrap();
    let drawing = perch_machine::draw::draw(&load("x5570"), 80);
    let (grid, _) = drawing.split_once("\n\nCPUs").unwrap();
    assert!(page.contains(grid), "{grid}");
}

#[test]
fn every_library_machine_loads_under_its_own_name() {
    for name in library::names() {
        let machine = library::load(name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(machine.name, name);
        assert!(!machine.description.is_empty(), "{name} lacks a description");
        assert!(!machine.sources.is_empty(), "{name} lacks sources");
    }
}

#[test]
fn a_mistyped_name_meets_its_neighbours() {
    let message = |name| resolve(name).unwrap_err().to_string();
    assert!(message("kunpeng902").contains("did you mean kunpeng920?"));
    assert!(message("pixel").contains("pixel3, pixel4, pixel3-phantom"));
    assert!(message("./juno.tml").contains("did you mean juno?"));
    assert!(message("q").contains("epyc7543, jacobsville"));
}
