// SPDX-License-Identifier: GPL-2.0-or-later
//! The policy against the reference, decision by decision.

use perch_machine::Machine;
use perch_policy::{
    CacheStep, CpuMask, Era, Host, Mode, Modes, Policy, Reason, TaskState, Topology, Verdict, Wake,
};
use proptest::prelude::*;

use crate::dice::Dice;
use crate::machines::{self, Shape};
use crate::model::Model;
use crate::scenario::{self, Scenario};

/// Wake-ups a machine; each is decided by every policy.
const WAKEUPS: usize = 60;

pub const ERAS: [Era; 2] = [Era::V6_5, Era::V7_2];

pub fn policy(era: Era, cluster: Mode) -> Policy {
    let modes = Modes { cluster, ..Modes::default() };
    Policy::new(era, modes)
}

fn agree(seed: u64, machine: &Machine) {
    let shape = Shape::new(machine);
    let topology = Topology::new(machine);
    let mut host = Host::new(topology.clone());
    let mut dice = Dice::new(seed ^ 0x7065_7263_6800);
    for index in 0..WAKEUPS {
        let before = Scenario::random(&shape, &mut dice);
        for policy in scenario::policies() {
            let (era, modes) = (policy.era(), policy.modes());
            let (mut ours, mut reference) = (before.clone(), before.clone());
            ours.put(&mut host);
            let verdict = ours.decide(&mut host, &policy);
            let expected = Model::new(&shape, &topology, era, modes, &mut reference).select();
            let at = format!(
                "seed {seed}, {}, wake-up {index}, era {era}, \
                 {modes}: {:?}, {:?} wakes {:?}",
                machine.description, before.wake, before.waker, before.wakee
            );
            assert_eq!(verdict, expected, "another verdict than the reference; {at}");
            assert_eq!(ours, reference, "another state than the reference; {at}");
        }
    }
}

proptest! {
    #![proptest_config(crate::config())]
    #[test]
    fn policy_and_reference_agree(seed: u64, max_cpus in 1..200usize) {
        agree(seed, &machines::random(seed, max_cpus));
    }
}

/// One LLC of 32 words of 64 CPUs.
#[test]
fn policy_and_reference_agree_on_a_wide_llc() {
    agree(1, &Machine::regular("wide", 1, 1, 1, 64, 16, 2).expect("a machine"));
}

/// The widest walk there is: 128 words, and the one it starts in twice.
#[test]
fn a_scan_walks_8192_cpus() {
    let machine = Machine::regular("widest", 1, 1, 1, 0, 8192, 1).expect("a machine");
    let mut host = Host::new(Topology::new(&machine));
    (0..8192).filter(|&cpu| cpu != 3).for_each(|cpu| host.set_idle(cpu, false));
    let wake = Wake { this_cpu: 70, prev_cpu: 5, ..Wake::default() };
    let (mut waker, mut wakee) = (TaskState::new(1), TaskState::new(2));
    host.cpu_mut(70).load = 9999;
    let verdict = host.select(
        &policy(Era::V6_5, Mode::Off),
        &wake,
        &mut waker,
        &mut wakee,
        &CpuMask::full(8192),
    );
    let last_but_two = Verdict {
        cpu: 3,
        reason: Reason::LlcScan,
        examined: 8190,
        target: 5,
        cache: CacheStep::None,
    };
    assert_eq!(verdict, last_but_two);
}
