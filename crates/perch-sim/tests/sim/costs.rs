// SPDX-License-Identifier: GPL-2.0-or-later
//! The costs of distance, idle states, cold caches and shared cores: their size and their order.

use std::sync::Arc;

use perch_machine::{IdleState, Machine};
use perch_sim::workload::{Op, TaskSpec};
use perch_sim::{Dist, Scenario};

use crate::common::{ERAS, MS, hog, machine, of_tasks, scenario, task};

fn counted(scenario: &Scenario) -> u64 {
    scenario.run().expect("a scenario that runs").metrics.counted
}

/// Round trips a second between two pinned tasks.
fn ping_pong(machine: &Arc<Machine>, a: usize, b: usize) -> u64 {
    let send = |channel| Op::Send { channel, lines: 20, sync: true };
    let work = Op::Run(Dist::Const(1000));
    let first = vec![work, send(0), Op::Receive { channel: 1 }, Op::Count, Op::Jump(0)];
    let second = vec![Op::Receive { channel: 0 }, work, send(1), Op::Jump(0)];
    let tasks = vec![task(machine, second, b..b + 1), task(machine, first, a..a + 1)];
    let load = of_tasks(machine, "ping-pong", tasks, 2);
    counted(&scenario(machine, ERAS[0], load, [10, 50]))
}

#[test]
fn farther_apart_is_slower() {
    let kunpeng = machine("kunpeng920");
    // One cluster, one node, one package, another package.
    let rates = [1, 5, 40, 70].map(|other| ping_pong(&kunpeng, 0, other));
    assert!(rates.is_sorted_by(|a, b| a > b), "{rates:?}");
    let smt = machine("x5570");
    let sibling = (1..16).find(|&c| smt.cpus[c].core == smt.cpus[0].core).expect("a sibling");
    let near = (1..16).find(|&c| smt.cpus[c].node == smt.cpus[0].node && c != sibling);
    let (sibling, near) = (ping_pong(&smt, 0, sibling), ping_pong(&smt, 0, near.expect("a core")));
    assert!(sibling > near, "a sibling {sibling}, another core {near}");
}

#[test]
fn cpus_of_one_distance_are_alike() {
    let kunpeng = machine("kunpeng920");
    for pairs in
        [[(0, 1), (2, 3), (64, 67)], [(0, 4), (9, 30), (70, 90)], [(0, 64), (3, 127), (40, 100)]]
    {
        let rates = pairs.map(|(a, b)| ping_pong(&kunpeng, a, b));
        assert!(rates.iter().all(|&r| r == rates[0]), "{pairs:?}: {rates:?}");
    }
}

fn with_hardware(machine: &Machine, change: impl Fn(&mut perch_machine::Hardware)) -> Arc<Machine> {
    let mut machine = machine.clone();
    change(&mut machine.hardware);
    Arc::new(machine)
}

#[test]
fn leaving_an_idle_state_takes_its_time() {
    let kunpeng = machine("kunpeng920");
    let with_exit = |exit_ns| {
        with_hardware(&kunpeng, |h| {
            let name = "C1".to_string();
            h.idle_states = vec![IdleState { name, exit_ns, residency_ns: 1 }];
        })
    };
    let [none, some] =
        [0, 5000].map(|exit| 1e9 / (ping_pong(&with_exit(exit), 0, 1) as f64 * 20.0));
    // Both sides find the other idle: twice the exit latency a round trip.
    assert!((some - none - 10_000.0).abs() < 400.0, "{none:.0} ns and {some:.0} ns");
}

#[test]
fn deep_states_are_for_long_idleness() {
    let kunpeng = machine("kunpeng920");
    let deep = with_hardware(&kunpeng, |h| {
        let state =
            |exit_ns, residency_ns| IdleState { name: "C".to_string(), exit_ns, residency_ns };
        h.idle_states = vec![state(100, 1), state(200_000, 600_000)];
    });
    let shallow = with_hardware(&kunpeng, |h| {
        h.idle_states = vec![IdleState { name: "C".to_string(), exit_ns: 100, residency_ns: 1 }];
    });
    let (fast, same) = (ping_pong(&shallow, 0, 1), ping_pong(&deep, 0, 1));
    assert!(same as f64 > 0.98 * fast as f64, "{fast} and {same}");
    let sleeper = |machine: &Arc<Machine>| {
        let program =
            vec![Op::Run(Dist::Const(10_000)), Op::Sleep(Dist::Const(5 * MS)), Op::Jump(0)];
        let load = of_tasks(machine, "a sleeper", vec![task(machine, program, 0..1)], 0);
        let metrics = scenario(machine, ERAS[0], load, [100, 400]).run().expect("runs").metrics;
        metrics.latency_ns / metrics.latencies
    };
    let (shallow, deep) = (sleeper(&shallow), sleeper(&deep));
    assert!((deep - shallow).abs_diff(199_900) < 2000, "{shallow} and {deep}");
}

/// Bursts of one task whose two allowed CPUs alternate with a hog that chases it about.
#[test]
fn a_task_that_moves_fetches_its_lines() {
    let kunpeng = machine("kunpeng920");
    let bursts = |footprint: u32| {
        // Three hogs on two CPUs move for ever.
        let spec = |_| TaskSpec { footprint: footprint.into(), ..task(&kunpeng, hog(), [0, 40]) };
        let load = of_tasks(&kunpeng, "3 hogs on 2 CPUs", (0..3).map(spec).collect(), 0);
        let outcome = scenario(&kunpeng, ERAS[0], load, [100, 900]).run().expect("runs");
        let moves: u64 = outcome.metrics.balanced.iter().sum();
        (outcome.metrics.counted, moves, outcome.metrics.context_switches)
    };
    let ((light, ..), (heavy, moves, switches)) = (bursts(0), bursts(8000));
    assert!(moves + switches > 0 && heavy < light, "{light} and {heavy}, {moves} moves");
}

#[test]
fn without_moves_and_company_a_footprint_costs_nothing() {
    let kunpeng = machine("kunpeng920");
    let bursts = |footprint: u32| {
        let spec = TaskSpec { footprint: footprint.into(), ..task(&kunpeng, hog(), 0..1) };
        let load = of_tasks(&kunpeng, "one hog", vec![spec], 0);
        counted(&scenario(&kunpeng, ERAS[0], load, [100, 400]))
    };
    assert!(bursts(0) - bursts(8000) <= 1);
}

#[test]
fn siblings_slow_each_other_down() {
    let smt = machine("x5570");
    let core = smt.cpus[0].core;
    let sibling = (1..16).find(|&c| smt.cpus[c].core == core).expect("a sibling");
    let other = (1..16).find(|&c| smt.cpus[c].core != core).expect("another core");
    let bursts = |cpus: &[usize]| {
        let tasks = cpus.iter().map(|&c| task(&smt, hog(), c..c + 1)).collect();
        counted(&scenario(&smt, ERAS[0], of_tasks(&smt, "pinned hogs", tasks, 0), [50, 500])) as f64
    };
    let (alone, apart, together) = (bursts(&[0]), bursts(&[0, other]), bursts(&[0, sibling]));
    assert!((apart / alone - 2.0).abs() < 0.01, "{alone} {apart}");
    let due = 2.0 * f64::from(smt.hardware.smt_throughput_1024) / 1024.0;
    assert!((together / alone - due).abs() < 0.02, "{alone} {together}, due {due}");
}

/// Work that waits takes as long on any CPU; the rest takes longer by the capacity.
#[test]
fn a_small_cpu_is_slower_by_its_capacity_but_for_stalls() {
    for stall_pct in [0, 25, 90] {
        let mut juno = (*machine("juno")).clone();
        juno.hardware.stall_pct = stall_pct;
        slower_by_its_capacity(&Arc::new(juno));
    }
}

fn slower_by_its_capacity(juno: &Arc<Machine>) {
    let bursts = |cpu: usize| {
        let tasks = vec![task(juno, hog(), cpu..cpu + 1)];
        counted(&scenario(juno, ERAS[0], of_tasks(juno, "a hog", tasks, 0), [50, 500])) as f64
    };
    let little = (0..6).find(|&c| juno.cpus[c].capacity < 1024).expect("a small CPU");
    let big = (0..6).find(|&c| juno.cpus[c].capacity == 1024).expect("a big CPU");
    let stall = f64::from(juno.hardware.stall_pct) / 100.0;
    let due = 1.0 / (stall + (1.0 - stall) * 1024.0 / f64::from(juno.cpus[little].capacity));
    let is = bursts(little) / bursts(big);
    assert!((is - due).abs() < 0.01, "{is}, due {due}");
}
