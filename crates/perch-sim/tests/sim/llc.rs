// SPDX-License-Identifier: GPL-2.0-or-later
//! The lines that a process's threads share, in whole runs: threads near each other find them, threads
//! apart fetch them, and too many do not fit.

use std::sync::Arc;

use perch_machine::Machine;
use perch_sim::workload::{Op, Space, TaskSpec, Workload};
use perch_sim::{Dist, Metrics};

use crate::common::{ERAS, machine, of_tasks, scenario, task};

/// Bursts of 50 µs, 50 µs apart, of one thread on each of these CPUs; `processes` share evenly
/// what they share.
fn bursts(
    machine: &Arc<Machine>,
    cpus: &[usize],
    processes: usize,
    space: Space,
    footprint: u32,
) -> Metrics {
    let program = [Dist::Const(50_000), Dist::Const(50_000)];
    let program = vec![Op::Run(program[0]), Op::Count, Op::Sleep(program[1]), Op::Jump(0)];
    let tasks = cpus.iter().enumerate().map(|(i, &cpu)| TaskSpec {
        space: Some((i % processes) as u32),
        footprint: footprint.into(),
        ..task(machine, program.clone(), cpu..cpu + 1)
    });
    let load = Workload {
        spaces: vec![space; processes],
        ..of_tasks(machine, "bursts", tasks.collect(), 0)
    };
    scenario(machine, ERAS[0], load, [20, 100]).run().expect("a scenario that runs").metrics
}

fn space(shared_kib: u32, written_pct: u8) -> Space {
    Space { shared_kib, written_pct }
}

#[test]
fn threads_of_one_process_are_faster_near_each_other() {
    let epyc = machine("epyc7543");
    let other = (0..128).find(|&c| epyc.cpus[c].llc != epyc.cpus[0].llc);
    let (near, far) = ([0, 1], [0, other.expect("another LLC")]);
    assert_eq!(epyc.cpus[0].llc, epyc.cpus[1].llc);
    let counted =
        |cpus: &[usize], written_pct| bursts(&epyc, cpus, 1, space(64, written_pct), 0).counted;
    // Both caches have the lines that nobody writes, wherever the threads are.
    // The first fetch differs, and a round may end on either side of the end of the measured time.
    let (both, each) = (counted(&near, 0), counted(&far, 0));
    assert!(both.abs_diff(each) <= 2, "together {both}, apart {each}");
    let (near, far) = (counted(&near, 50), counted(&far, 50));
    // 512 lines at 100 ns, three at a time: 17 µs more on top of 100 in every round.
    assert!(far * 105 < near * 100, "apart {far}, together {near}");
    // Two processes share nothing with each other.
    let strangers = bursts(&epyc, &[0, other.expect("another LLC")], 2, space(64, 50), 0);
    let strangers = strangers.counted;
    assert!(strangers.abs_diff(near) <= 2, "strangers {strangers}, together {near}");
}

#[test]
fn an_llc_that_is_too_small_for_all_is_slow() {
    let epyc = machine("epyc7543");
    let together: Vec<usize> = (0..128).filter(|&c| epyc.cpus[c].llc == 0).collect();
    let apart: Vec<usize> = (0..together.len())
        .filter_map(|llc| (0..128).find(|&c| epyc.cpus[c].llc as usize == llc))
        .collect();
    let counted = |cpus: &[usize], kib| bursts(&epyc, cpus, cpus.len(), space(kib, 0), 0).counted;
    // Eight times 2 MiB fit into 32 MiB, eight times 8 do not. Siblings share a core, so each
    // placement is held against itself.
    let lost = |cpus: &[usize]| 1.0 - counted(cpus, 8192) as f64 / counted(cpus, 2048) as f64;
    let (together, apart) = (lost(&together), lost(&apart));
    assert!(apart.abs() < 0.01, "alone in its LLC each loses {apart:.2}");
    assert!(together > 0.1, "together they lose {together:.2}");
}

#[test]
fn own_lines_count_too() {
    let epyc = machine("epyc7543");
    let cpus: Vec<usize> = (0..128).filter(|&c| epyc.cpus[c].llc == 0).collect();
    let counted = |footprint| bursts(&epyc, &cpus, 1, space(4, 0), footprint).counted;
    // 8 times 2 MiB, and 8 times 8.
    let (fits, does_not) = (counted(32_768), counted(131_072));
    assert!(does_not * 10 < fits * 9, "{fits} and {does_not}");
}
