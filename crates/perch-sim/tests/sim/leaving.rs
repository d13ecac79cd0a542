// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU that has run out of tasks is not idle until it has switched to its idle task.

use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{Era, Mode, Modes, Policy};
use perch_sim::workload::Op;
use perch_sim::{Dist, Scenario};

use crate::common::{checked, machine, of_tasks, scenario, task, traced, wakee, waker, workload};

const LEAVES_NS: u64 = 2000;

fn leaving(switch_out_ns: u32) -> Arc<Machine> {
    let mut machine = Machine::clone(&machine("kunpeng920"));
    machine.hardware.switch_out_ns = switch_out_ns;
    Arc::new(machine)
}

/// How many wake-ups come while the wakee's CPU still switches away from it, and how many decisions
/// there are, for wakers with pauses that differ by less than the switch takes.
fn wake_ups(era: Era, switch_out_ns: u32) -> (u64, u64) {
    let machine = leaving(switch_out_ns);
    let (mut stayed, mut decided) = (0, 0);
    for pause_ns in (10_000..20_000).step_by(LEAVES_NS as usize / 2) {
        let waker = waker(Op::Run(Dist::Const(pause_ns)));
        let tasks = vec![task(&machine, wakee(12_000), 1..4), task(&machine, waker, 0..1)];
        let load = of_tasks(&machine, "a waker and a sleeper", tasks, 1);
        let (trace, outcome) = traced(&scenario(&machine, era, load, [1, 5]));
        let m = outcome.metrics;
        stayed += m.stayed;
        decided += m.wakeups;
        // The wakee has three CPUs and no rival: it may always stay where it ran.
        assert!(!trace.contains("target busy"), "{era}, {pause_ns} ns: sent to a busy CPU");
    }
    (stayed, decided)
}

#[test]
fn a_task_whose_cpu_still_switches_away_from_it_goes_there_without_a_choice() {
    let (at_once, all) = wake_ups(Era::V6_5, 0);
    assert_eq!(at_once, 0, "a switch that takes no time has no middle");
    assert!(all > 1000, "{all} wake-ups");
    let (stayed, decided) = wake_ups(Era::V6_5, LEAVES_NS as u32);
    assert!(stayed > 50 && decided > 50, "{stayed} of {decided}");
}

/// Earlier kernels wait for the switch, and then choose.
#[test]
fn earlier_wakers_wait_for_the_switch() {
    let (stayed, decided) = wake_ups(Era::V5_5, LEAVES_NS as u32);
    assert_eq!(stayed, 0);
    assert!(decided > 1000, "{decided}");
}

/// The idle bit follows the last task's departure by the time of the switch.
#[test]
fn a_cpu_is_idle_once_it_has_switched() {
    for switch_out_ns in [0, LEAVES_NS] {
        let machine = leaving(switch_out_ns as u32);
        let program =
            vec![Op::Run(Dist::Const(100_000)), Op::Sleep(Dist::Const(500_000)), Op::Jump(0)];
        let load = of_tasks(&machine, "one", vec![task(&machine, program, 0..1)], 0);
        let run = scenario(&machine, Era::V6_5, load, [0, 10]);
        let (mut left_ns, mut waits) = (None, Vec::new());
        checked(&run, 500, |now| {
            let cpu = &now.cpus[0];
            match (cpu.current, cpu.idle) {
                (Some(_), _) => left_ns = Some(now.now_ns),
                (None, true) => waits.extend(left_ns.take().map(|at: u64| now.now_ns - at)),
                (None, false) => {}
            }
        });
        assert!(waits.len() > 10, "{waits:?}");
        let near = switch_out_ns..=switch_out_ns + 500;
        assert!(waits.iter().all(|ns| near.contains(ns)), "{switch_out_ns}: {waits:?}");
    }
}

/// At 1.28 s of this run a busy CPU's pass takes both tasks of a CPU that leaves its idle loop for them.
/// That CPU idles on, and hears of its next wakee.
#[test]
fn a_cpu_whose_wakees_are_taken_hears_of_the_next() {
    let machine = machine("pixel3");
    let load = workload(&machine, "hackbench:loops=200,write_ns=4150,read_ns=3000");
    let run = scenario(&machine, Era::V5_5, load, [0, 20_000]);
    let modes = Modes { capacity: Mode::Posted, ..Modes::default() };
    let policy = Policy::new(Era::V5_5, modes);
    let run = Scenario { policy, hz: 250, seed: 12_166_458_314_051_207_855, ..run };
    assert!(run.run().is_ok());
}
