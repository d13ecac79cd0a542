// SPDX-License-Identifier: GPL-2.0-only
//! The policy against the reference, decision by decision.

use perch_policy::{Era, Host, Mode, Modes, Policy, Topology};
use proptest::prelude::*;

use crate::dice::Dice;
use crate::machines::{self, Shape};
use crate::model::Model;
use crate::scenario::Scenario;

/// Wake-ups a machine; each is decided in every mode of both eras.
const WAKEUPS: usize = 60;

pub const ERAS: [Era; 2] = [Era::V6_5, Era::V7_2];

pub fn policy(era: Era, cluster: Mode) -> Policy {
    Policy::new(era, Modes { cluster })
}

fn agree(seed: u64, max_cpus: usize) {
    let machine = machines::random(seed, max_cpus);
    let shape = Shape::new(&machine);
    let topology = Topology::new(&machine);
    let mut host = Host::new(topology.clone());
    let mut dice = Dice::new(seed ^ 0x7065_7263_6800);
    for index in 0..WAKEUPS {
        let before = Scenario::random(&shape, &mut dice);
        for (era, mode) in ERAS.into_iter().flat_map(|e| Mode::ALL.map(|m| (e, m))) {
            let (mut ours, mut reference) = (before.clone(), before.clone());
            ours.put(&mut host);
            let verdict = ours.decide(&mut host, &policy(era, mode));
            let expected = Model::new(&shape, &topology, era, mode, &mut reference).select();
            let at = format!(
                "seed {seed}, at most {max_cpus} CPUs, wake-up {index}, era {era}, \
                 cluster={mode}: {:?}, {:?} wakes {:?}",
                before.wake, before.waker, before.wakee
            );
            assert_eq!(
                verdict, expected,
                "another verdict than the reference; {at}"
            );
            assert_eq!(ours, reference, "another state than the reference; {at}");
        }
    }
}

proptest! {
    #![proptest_config(crate::config())]
    #[test]
    fn policy_and_reference_agree(seed: u64, max_cpus in 1..200usize) {
        agree(seed, max_cpus);
    }
}
