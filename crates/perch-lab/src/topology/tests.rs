// SPDX-License-Identifier: GPL-2.0-or-later
//! Machines as x86-64 guests, without booting any.

use super::x86::Seat;
use super::*;
use perch_machine::resolve;

fn guest(name: &str, cpus: Cpus) -> Topology {
    Topology::new(&resolve(name).unwrap(), cpus).unwrap()
}

fn refusal(name: &str, cpus: Cpus) -> String {
    let refused = Topology::new(&resolve(name).unwrap(), cpus);
    refused.unwrap_err().to_string()
}

fn words(topology: &Topology) -> String {
    topology.arguments(&Memory::own(1024), &[]).join(" ")
}

#[test]
fn kunpeng920_shrinks_in_its_own_shape() {
    let topology = guest("kunpeng920", Cpus::AtMost(DEFAULT_CPUS));
    let machine = topology.machine();
    assert_eq!((machine.cpus.len(), machine.packages()), (16, 2));
    assert_eq!((machine.nodes(), machine.llcs()), (4, 4));
    assert_eq!(machine.clusters(), 8);
    assert_eq!(machine.node_distance[1], [12, 10, 22, 24]);
    assert_eq!(
        topology.left_out(),
        ["112 of kunpeng920's 128 CPUs: the guest has 16 (2 of 8 clusters in an LLC, \
          2 of 4 cores in a cluster)"]
    );
    let words = words(&topology);
    assert!(words.contains("-smp 16,sockets=2,dies=2,modules=2,cores=2,threads=1"));
    assert!(words.contains("-numa cpu,node-id=3,socket-id=1,die-id=1"));
    assert!(words.contains("-numa dist,src=1,dst=3,val=24"));
    assert!(words.contains("smp-cache.0.cache=l2,smp-cache.0.topology=module"));
    assert!(!words.contains("-device"));
}

#[test]
fn the_whole_machine_leaves_nothing_out() {
    let asked = resolve("kunpeng920").unwrap();
    let topology = Topology::new(&asked, Cpus::All).unwrap();
    assert!(topology.left_out().is_empty());
    assert_eq!(topology.machine().cpus, asked.cpus);
    assert_eq!(topology.machine().node_distance, asked.node_distance);
}

#[test]
fn interleaved_packages_share_their_node() {
    let topology = guest("xeon240", Cpus::All);
    assert_eq!((topology.cpus(), topology.machine().nodes()), (240, 1));
    assert!(topology.left_out()[0].contains("numbered core by core"));
    let words = words(&topology);
    assert!(words.contains("-smp 240,sockets=2,dies=1,cores=60,threads=2"));
    assert!(!words.contains("-numa"));
}

#[test]
fn machines_that_no_guest_can_be_are_refused() {
    let juno = Topology::of(Arch::X86_64, &resolve("juno").unwrap(), Cpus::All);
    assert!(juno.unwrap_err().to_string().contains("differ in capacity"));
    let refused = refusal("rt480", Cpus::All);
    assert!(refused.contains("APIC ID"), "{refused}");
}

#[test]
fn an_irregular_machine_has_empty_seats() {
    let text = "name = \"odd\"\n[[llc]]\ncpus = \"0-4\"\n[[llc]]\ncpus = \"5-6\"\n\
                [[cluster]]\ncpus = \"0-2\"\n[[cluster]]\ncpus = \"3-4\"\n";
    let asked = Machine::from_toml_str(text, "test").unwrap();
    let topology = Topology::new(&asked, Cpus::All).unwrap();
    assert_eq!(topology.machine().cpus, asked.cpus);
    let words = words(&topology);
    assert!(words.contains("-smp 1,maxcpus=12,sockets=1,dies=2,modules=2,cores=3"));
    assert_eq!(words.matches("-device max-x86_64-cpu").count(), 6);
    // A core outside the clusters shares its L2 with no other core.
    assert!(words.contains("socket-id=0,die-id=1,module-id=1,core-id=0,thread-id=0"));
}

/// Random machines of CPUs that are alike: the guest is the machine itself, renumbered.
#[test]
fn any_machine_without_capacities_keeps_its_distances() {
    let (mut same, mut refused) = (0, 0);
    for seed in 0..400 {
        let mut asked = Machine::random(seed, 40);
        for cpu in &mut asked.cpus {
            cpu.capacity = 1024;
            cpu.llc = cpu.declared_llc;
        }
        let Ok(topology) = Topology::new(&asked, Cpus::All) else {
            refused += 1;
            continue;
        };
        let numbers = Branch::of(&asked).numbers();
        let machine = topology.machine();
        assert_eq!(machine.cpus.len(), asked.cpus.len(), "seed {seed}");
        let Way::X86(grid) = &topology.way else {
            panic!("seed {seed}: CPUs that are alike are x86-64's");
        };
        let mut unique: Vec<Seat> = grid.seats.clone();
        unique.sort_by_key(|seat| (seat.socket, seat.die, seat.module, seat.core, seat.thread));
        assert_eq!(unique, grid.seats, "seed {seed}: numbered as QEMU does");
        unique.dedup();
        assert_eq!(unique.len(), machine.cpus.len(), "seed {seed}");
        for (a, &old_a) in numbers.iter().enumerate() {
            for (b, &old_b) in numbers.iter().enumerate() {
                let is = machine.cpus[a].distance(&machine.cpus[b]);
                let was = asked.cpus[old_a as usize].distance(&asked.cpus[old_b as usize]);
                let cluster_gone =
                    was == perch_machine::Distance::Cluster && is == perch_machine::Distance::Llc;
                assert!(is == was || cluster_gone, "seed {seed}: {was:?} {is:?}");
            }
        }
        same += 1;
    }
    assert!(same > 300, "{same} of 400, {refused} refused");
}

#[test]
fn memory_in_files_is_named_once_for_each_node() {
    let told = |name: &str, files: &[&str], shared| {
        let memory =
            Memory { mib: 512, files: files.iter().map(|file| file.to_string()).collect(), shared };
        guest(name, Cpus::AtMost(8)).arguments(&memory, &[]).join(" ")
    };
    let two = told("kunpeng920", &["/a", "/b"], true);
    for (node, path) in [(0, "/a"), (1, "/b")] {
        let object = format!(
            "memory-backend-file,id=ram{node},size=256M,mem-path={path},share=on -numa \
             node,nodeid={node},memdev=ram{node}"
        );
        assert!(two.contains(&object), "{two}");
    }
    let one = told("xeon240", &["/a"], false);
    let object = "id=ram0,size=512M,mem-path=/a,share=off -machine memory-backend=ram0";
    assert!(one.contains(object), "{one}");
    assert!(!words(&guest("xeon240", Cpus::AtMost(8))).contains("memory-backend"));
}

#[test]
fn hidden_clusters_stay_in_the_hardware() {
    let with = guest("kunpeng920", Cpus::AtMost(8));
    let without = with.clone().without_clusters().unwrap();
    let (told, hidden) = (words(&with), words(&without));
    assert!(told.contains("smp-cache.0.cache=l2") && !hidden.contains("smp-cache"));
    // Nothing else differs: CPUs keep their places, and the costs of transfers their distances.
    let cpus = |words: &str| words.split_once("-cpu").unwrap().1.to_string();
    assert_eq!(cpus(&told), cpus(&hidden));
    assert_eq!(with.machine(), without.machine());
    let error = guest("epyc7543", Cpus::AtMost(8)).without_clusters();
    let words = error.unwrap_err().to_string();
    assert!(words.contains("no clusters"), "{words}");
}
