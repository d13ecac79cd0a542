// SPDX-License-Identifier: GPL-2.0-or-later
//! A CPU that a waker has chosen looks idle to others until the waker is done.

use std::collections::BTreeMap;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::Era;

use crate::common::{decisions, machine, scenario, traced, workload};

/// For six pairs on eight CPUs, among wake-ups to a CPU that somebody chose less than `wake_ns`
/// before: the number of those by other wakers, and of those by the same.
fn taken_twice(era: Era, wake_ns: u32) -> (usize, usize) {
    let mut machine = Machine::clone(&machine("kunpeng920"));
    machine.hardware.wake_ns = wake_ns;
    let machine = Arc::new(machine);
    let load = workload(&machine, "udp_rr:n=6,where=cpu0-7");
    let (trace, _) = traced(&scenario(&machine, era, load, [5, 60]));
    let idle = |reason: &str| reason != "target busy";
    let mut last = BTreeMap::new();
    let (mut others, mut same) = (0, 0);
    for decision in decisions(&trace).iter().filter(|d| idle(&d.reason)) {
        let waker = (decision.now_ns, decision.waker);
        let before = last.insert(decision.cpu, waker);
        let recent =
            before.filter(|&(at_ns, _)| decision.now_ns - at_ns < u64::from(wake_ns).max(1));
        match recent {
            Some((_, waker)) if waker == decision.waker => same += 1,
            Some(_) => others += 1,
            None => {}
        }
    }
    (others, same)
}

#[test]
fn two_wakers_may_choose_one_cpu_and_one_waker_may_not() {
    for era in [Era::V6_5, Era::V5_5, Era::V7_2] {
        let (others, same) = taken_twice(era, 500);
        assert!(others > 0, "{era}");
        assert_eq!(same, 0, "{era}");
    }
}

#[test]
fn a_waker_that_takes_no_time_is_alone() {
    assert_eq!(taken_twice(Era::V6_5, 0), (0, 0));
}
