// SPDX-License-Identifier: GPL-2.0-or-later
//! The contents of the caches, and the charge for what they don't hold, over random sequences of
//! runs.

use perch_machine::Machine;
use proptest::prelude::*;

use super::*;
use crate::id::TaskId;

/// Returns a machine of two nodes with two LLCs each, and caches of the given sizes.
fn machine(llc_kib: u64, l2_kib: u64) -> Machine {
    let mut machine = perch_machine::library::load("epyc7543").expect("in the library");
    machine.hardware.llc_bytes = llc_kib << 10;
    machine.hardware.l2_bytes = l2_kib << 10;
    machine
}

/// Returns one CPU in each of the first `llcs` LLCs.
fn one_each(machine: &Machine, llcs: u32) -> Vec<usize> {
    let cpu_in = |llc| machine.cpus.iter().position(|c| c.llc == llc);
    (0..llcs).map(|llc| cpu_in(llc).expect("a CPU")).collect()
}

struct World {
    costs: Costs,
    llcs: Llcs,
    warm: Vec<Option<usize>>,
    footprint: u32,
}

impl World {
    /// Returns a world of `processes` processes with `threads` threads each.
    fn new(
        machine: &Machine,
        space: SharedSet,
        processes: u32,
        threads: u32,
        footprint: u32,
    ) -> World {
        let spaces = vec![space; processes as usize];
        let tasks = (0..processes * threads).map(|task| Some(task / threads));
        World {
            costs: Costs::new(machine),
            llcs: Llcs::new(machine, &spaces, tasks).expect("something is shared"),
            warm: vec![None; (processes * threads) as usize],
            footprint,
        }
    }

    /// Runs a task on a CPU on which no other task used a line meanwhile.
    fn run(&mut self, task: u32, cpu: usize) -> u64 {
        let by = Use {
            task: TaskId(task),
            cpu,
            footprint: self.footprint,
            warm: self.warm[task as usize].replace(cpu),
            others: 0,
        };
        self.llcs.touch(&self.costs, &by).ns
    }

    fn lines_in(&self, llc: usize) -> u64 {
        let sets = (0..self.llcs.sets.len()).map(|set| self.llcs.holds(llc, set));
        let own = self.llcs.tasks.iter().filter(|t| t.llc == llc as u32);
        sets.sum::<u64>() + own.map(|t| self.llcs.survive(llc, t.held)).sum::<u64>()
    }
}

fn space(kib: u32, written_pct: u8) -> SharedSet {
    SharedSet { kib, written_pct }
}

proptest! {
    #[test]
    fn no_llc_holds_more_than_fits(
        kib in 1u32..3000,
        written_pct in 0u8..=100,
        footprint in 0u32..4000,
        llc_kib in 0u64..4000,
        runs in prop::collection::vec((0u32..12, 0u32..4), 1..200),
    ) {
        let mut machine = machine(llc_kib, 256);
        // Every other cache is a third as large.
        machine.llc_bytes = (0..machine.llcs() as u64).map(|llc| (llc_kib << 10) / (1 + llc % 2 * 2)).collect();
        let cpus = one_each(&machine, 4);
        let mut world = World::new(&machine, space(kib, written_pct), 4, 3, footprint);
        let capacity = |llc: u32| (llc_kib << 10) / (1 + u64::from(llc) % 2 * 2) / 64;
        for (task, llc) in runs {
            world.run(task, cpus[llc as usize]);
            let set = world.llcs.sets[world.llcs.tasks[TaskId(task)].set as usize];
            let held = world.llcs.holds(llc as usize, (task / 3) as usize);
            prop_assert!(held <= set.lines.min(capacity(llc)));
            // The survivors are read off a table: the result of two steps differs from that of one
            // by less than a thousandth.
            for llc in 0..4 {
                let (lines, capacity) = (world.lines_in(llc as usize), capacity(llc));
                prop_assert!(lines <= capacity + capacity / 1000 + 1, "{lines} of {capacity}");
            }
        }
    }

    #[test]
    fn alone_in_an_llc_a_process_pays_once(
        kib in 1u32..8000,
        written_pct in 0u8..=100,
        footprint in 0u32..4000,
        threads in 1u32..4,
    ) {
        let machine = machine(16_384, 256);
        let cpu = one_each(&machine, 1)[0];
        let mut world = World::new(&machine, space(kib, written_pct), 1, threads, footprint);
        prop_assert!(world.run(0, cpu) > 0);
        for task in 1..threads {
            prop_assert_eq!(world.run(task, cpu), 0, "its set is there, its own lines are charged elsewhere");
        }
        for task in (0..threads).cycle().take(20) {
            prop_assert_eq!(world.run(task, cpu), 0);
        }
    }

    #[test]
    fn apart_threads_pay_for_what_is_written(
        kib in 1u32..8000,
        less in 0u8..=100,
        more in 0u8..=100,
    ) {
        let (less, more) = (less.min(more), less.max(more));
        let machine = machine(16_384, 256);
        let cpus = one_each(&machine, 2);
        let round = |written_pct: u8, cpus: [usize; 2]| {
            let mut world = World::new(&machine, space(kib, written_pct), 1, 2, 0);
            let mut round = || (0..2).map(|t| world.run(t, cpus[t as usize])).sum::<u64>();
            round();
            let first = round();
            prop_assert_eq!(round(), first, "every round costs the same");
            Ok(first)
        };
        let together = [cpus[0], cpus[0]];
        prop_assert_eq!(round(more, together)?, 0);
        prop_assert_eq!(round(0, [cpus[0], cpus[1]])?, 0, "what is only read stays in both");
        let (cheap, dear) = (round(less, [cpus[0], cpus[1]])?, round(more, [cpus[0], cpus[1]])?);
        prop_assert!(cheap <= dear);
        let line_ns = u64::from(machine.hardware.transfer_ns.at(machine.distance(cpus[0], cpus[1])));
        let lines = u64::from(kib) * 16 * u64::from(more) / 100;
        prop_assert_eq!(dear, 2 * (lines * line_ns / u64::from(machine.hardware.core.misses_at_once)));
    }

    #[test]
    fn more_processes_in_one_llc_cost_each_more(
        kib in 64u32..4000,
        footprint in 0u32..20_000,
    ) {
        let machine = machine(16_384, 256);
        let cpu = one_each(&machine, 1)[0];
        // This is the average cost of a run when `processes` processes take turns, with warm
        // caches.
        let cost = |processes: u32| {
            let mut world = World::new(&machine, space(kib, 0), processes, 1, footprint);
            let mut turns = || (0..processes).map(|t| world.run(t, cpu)).sum::<u64>();
            (0..4).for_each(|_| { turns(); });
            let rounds: u64 = (0..4).map(|_| turns()).sum();
            rounds / u64::from(4 * processes)
        };
        let costs: Vec<u64> = [1, 2, 4, 8, 16, 32].map(cost).to_vec();
        let lines = u64::from(kib) * 16 + u64::from(footprint);
        let full = lines * 32 > 2 * (16_384 << 4);
        prop_assert!(costs.iter().zip(&costs[1..]).all(|(a, b)| *a <= b + b / 50 + 50), "{costs:?}");
        if full {
            prop_assert!(costs[5] > costs[0], "{costs:?}");
        }
    }
}

#[test]
fn a_set_comes_from_the_nearest_llc_that_holds_it() {
    let machine = machine(32_768, 512);
    let cpus = one_each(&machine, 16);
    let distances = [1, 4, 8].map(|llc: usize| {
        let mut world = World::new(&machine, space(256, 0), 1, 2, 0);
        world.run(0, cpus[0]);
        world.run(1, cpus[llc])
    });
    let memory = {
        let mut world = World::new(&machine, space(256, 0), 1, 2, 0);
        world.run(0, cpus[0])
    };
    assert!(distances.iter().all(|&ns| ns <= memory), "{distances:?}, memory {memory}");
    assert!(distances.is_sorted(), "{distances:?}");
}

#[test]
fn workloads_that_share_nothing_have_no_caches() {
    let machine = machine(1024, 256);
    let none = [SharedSet::default(); 3];
    assert!(Llcs::new(&machine, &none, [None, Some(1)].into_iter()).is_none());
}
