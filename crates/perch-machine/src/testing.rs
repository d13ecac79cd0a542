// SPDX-License-Identifier: GPL-2.0-or-later
//! Irregular machines for property tests, here and in the crates that build on this one. A failing
//! test prints the seed, which brings the machine back.

use crate::draft::{Draft, Group};
use crate::error::Place;
use crate::hardware::{ByDistance, ContendedLine, IdleState};
use crate::model::{MAX_CPUS, MAX_DISTANCES, Machine};

/// A small generator of its own (SplitMix64, Steele and others 2014): the machine of a seed must
/// never change with a dependency.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number from `low` to `high`, both included.
    fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.range(1, 100) <= percent
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.range(0, last as u64) as usize);
        }
    }
}

/// A core whose CPUs have no numbers yet.
struct Core {
    package: usize,
    node: usize,
    llc: usize,
    cluster: Option<usize>,
    threads: usize,
    capacity: u64,
}

impl Machine {
    /// Returns a machine with 1 to `max_cpus` CPUs that resembles no real one: with clusters
    /// everywhere, nowhere or in places, threads per core that differ, several LLCs, nodes and
    /// packages of uneven sizes, mixed capacities, phantom LLCs, LLCs of unequal bytes, LLCs that nodes cut, one node over
    /// all packages, numbers in any order. The same arguments give the same machine.
    ///
    /// # Panics
    /// Panics when `max_cpus` is 0 or above [`MAX_CPUS`].
    #[doc(hidden)]
    pub fn random(seed: u64, max_cpus: usize) -> Machine {
        assert!((1..=MAX_CPUS).contains(&max_cpus), "1 to {MAX_CPUS} CPUs");
        let mut dice = Dice(seed);
        let cores = cores(&mut dice, max_cpus);
        let cpus: usize = cores.iter().map(|core| core.threads).sum();
        let numbers = numbers(&mut dice, &cores, cpus);

        let mut draft = Draft::new("random machine", &format!("random-{seed}"));
        draft.description = format!("random machine of seed {seed}, at most {max_cpus} CPUs");
        draft.cores = gather(&cores, &numbers, |index, _| Some(index));
        draft.clusters = gather(&cores, &numbers, |_, core| core.cluster);
        draft.packages = gather(&cores, &numbers, |_, core| Some(core.package));
        let node_interleave = dice.chance(10);
        let node = |core: &Core| if node_interleave { 0 } else { core.node };
        draft.nodes = gather(&cores, &numbers, |_, core| Some(node(core)));
        match dice.range(1, 10) {
            1 => {
                // Each package has one LLC, of which the scheduler sees the part in each node.
                draft.llcs = gather(&cores, &numbers, |_, core| Some(core.package));
                draft.declared = gather(&cores, &numbers, |_, core| Some(core.llc));
            }
            2 => {
                // The LLCs are phantoms: every cluster or lone core declares a cache of its own.
                draft.llcs = gather(&cores, &numbers, |_, core| Some(core.llc));
                let alone = cores.len();
                draft.declared = gather(&cores, &numbers, |index, core| {
                    Some(core.cluster.unwrap_or(alone + index))
                });
            }
            _ => draft.llcs = gather(&cores, &numbers, |_, core| Some(core.llc)),
        }
        for (core, numbers) in cores.iter().zip(&numbers) {
            let cpus = numbers.clone();
            let place = Place::key("capacity");
            draft.capacities.push((Group { cpus, place }, core.capacity));
        }
        let nodes = draft.nodes.len();
        draft.distance = Some((distances(&mut dice, nodes), Place::key("distance")));
        costs(&mut dice, &mut draft);
        if dice.chance(30) {
            for llc in &draft.llcs {
                draft.llc_bytes.push((llc.clone(), dice.range(1, 1 << 28)));
            }
        }
        match draft.check() {
            Ok(machine) => machine,
            Err(error) => panic!("seed {seed}, at most {max_cpus} CPUs: {error}"),
        }
    }
}

fn cores(dice: &mut Dice, max_cpus: usize) -> Vec<Core> {
    let smt_percent = [0, 0, 100, 60][dice.range(0, 3) as usize];
    let cluster_percent = [0, 100, 100, 60][dice.range(0, 3) as usize];
    let asymmetric = dice.chance(35);
    let (mut nodes, mut llcs, mut clusters) = (0, 0, 0);
    let mut cores: Vec<Core> = Vec::new();
    let mut left = max_cpus;
    for package in 0..dice.range(1, 3) as usize {
        for _ in 0..dice.range(1, 2) {
            for _ in 0..dice.range(1, 3) {
                for _ in 0..dice.range(1, 4) {
                    let cluster = dice.chance(cluster_percent).then_some(clusters);
                    let capacity = if asymmetric { dice.range(1, 1024) } else { 1024 };
                    for _ in 0..dice.range(1, 5) {
                        let wide = [2, 2, 2, 4][dice.range(0, 3) as usize];
                        let threads = if dice.chance(smt_percent) { wide } else { 1 };
                        if threads > left {
                            continue;
                        }
                        left -= threads;
                        cores.push(Core {
                            package,
                            node: nodes,
                            llc: llcs,
                            cluster,
                            threads,
                            capacity,
                        });
                    }
                    clusters += 1;
                }
                llcs += 1;
            }
            nodes += 1;
        }
    }
    if cores.is_empty() {
        cores.push(Core { package: 0, node: 0, llc: 0, cluster: None, threads: 1, capacity: 1024 });
    }
    let best = dice.range(0, cores.len() as u64 - 1) as usize;
    cores[best].capacity = 1024;
    cores
}

fn numbers(dice: &mut Dice, cores: &[Core], cpus: usize) -> Vec<Vec<u32>> {
    let mut order: Vec<(usize, usize)> = (0..cores.len())
        .flat_map(|core| (0..cores[core].threads).map(move |thread| (core, thread)))
        .collect();
    debug_assert_eq!(order.len(), cpus);
    match dice.range(0, 2) {
        0 => {}
        1 => order.sort_by_key(|&(core, thread)| (thread, core)),
        _ => dice.shuffle(&mut order),
    }
    let mut numbers = vec![Vec::new(); cores.len()];
    for (number, (core, _)) in order.into_iter().enumerate() {
        numbers[core].push(number as u32);
    }
    numbers
}

/// Returns the CPUs of every group that `group` puts cores into, groups in ascending order.
fn gather(
    cores: &[Core],
    numbers: &[Vec<u32>],
    group: impl Fn(usize, &Core) -> Option<usize>,
) -> Vec<Group> {
    let mut groups = std::collections::BTreeMap::<usize, Vec<u32>>::new();
    for (index, core) in cores.iter().enumerate() {
        if let Some(group) = group(index, core) {
            groups.entry(group).or_default().extend(&numbers[index]);
        }
    }
    let group = |mut cpus: Vec<u32>| {
        cpus.sort_unstable();
        let place = Place::key("random");
        Group { cpus, place }
    };
    groups.into_values().map(group).collect()
}

fn distances(dice: &mut Dice, nodes: usize) -> Vec<Vec<u32>> {
    let kinds: Vec<u32> = (0..MAX_DISTANCES).map(|_| dice.range(11, 60) as u32).collect();
    let mut table = vec![vec![10; nodes]; nodes];
    for (a, b) in (0..nodes).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let far = kinds[dice.range(0, MAX_DISTANCES as u64 - 1) as usize];
        (table[a][b], table[b][a]) = (far, far);
    }
    table
}

fn costs(dice: &mut Dice, draft: &mut Draft) {
    let hardware = &mut draft.hardware;
    hardware.frequency_mhz = dice.range(800, 5000) as u32;
    hardware.l2_bytes = dice.range(0, 4096) << 10;
    hardware.l2_per_cluster = !draft.clusters.is_empty() && dice.chance(50);
    hardware.llc_bytes = dice.range(1, 1 << 28);
    let mut transfer_ns = [4; 7];
    for level in 1..7 {
        transfer_ns[level] = transfer_ns[level - 1] + dice.range(1, 60) as u32;
    }
    hardware.transfer_ns = ByDistance(transfer_ns);
    hardware.smt_throughput_1024 = dice.range(512, 1024) as u32;
    hardware.stall_pct = 10 * (hardware.smt_throughput_1024 % 4);
    hardware.tick_ns = [0, 0, 4000, 50_000][hardware.smt_throughput_1024 as usize / 4 % 4];
    hardware.contended_line = match hardware.smt_throughput_1024 / 16 % 3 {
        0 => Some(ContendedLine {
            hold_ns: hardware.smt_throughput_1024 % 64,
            ..ContendedLine::default()
        }),
        _ => None,
    };
    hardware.core.misses_at_once = 1 + hardware.smt_throughput_1024 % 5;
    let mut exit_ns = 0;
    hardware.idle_states = (0..dice.range(1, 4))
        .map(|depth| {
            exit_ns += dice.range(1, 200_000) as u32;
            IdleState { name: format!("C{depth}"), exit_ns, residency_ns: 2 * exit_ns }
        })
        .collect();
}
