// SPDX-License-Identifier: GPL-2.0-or-later
//! Questions laid out for elsewhere: read there, they are what was asked.

use perch_policy::testing::here::Here;
use perch_policy::{Answer, Batch, Host, Mode, Topology};

use crate::dice::Dice;
use crate::differential::{ERAS, policy};
use crate::machines::{self, Shape};
use crate::scenario::Scenario;

#[test]
fn a_batch_is_answered_as_it_was_asked() {
    let mut here = Here::new(4 << 20);
    for seed in 0..40 {
        let machine = machines::random(seed, 150);
        let (shape, topology) = (Shape::new(&machine), Topology::new(&machine));
        let mut host = Host::new(topology.clone());
        let mut dice = Dice::new(seed);
        let mut expected = Vec::new();
        let mut batch = Batch::new(here.base(), &topology, 80);
        for _ in 0..10 {
            let s = Scenario::random(&shape, &mut dice);
            let (wake, allowed) = (s.wake.to_policy(), s.affinity());
            let tasks = (s.waker.to_policy(), s.wakee.to_policy());
            for (era, mode) in ERAS.into_iter().flat_map(|e| Mode::ALL.map(|m| (e, m))) {
                let policy = policy(era, mode);
                s.put(&mut host);
                batch.add(&host, &policy, &wake, (&tasks.0, &tasks.1), &allowed);
                expected.push(Answer::native(&mut host, &policy, &wake, tasks, &allowed));
            }
        }
        let memory = here.answer(&batch);
        for (index, expected) in expected.iter().enumerate() {
            assert_eq!(batch.answer(memory, index).as_ref(), Some(expected), "{seed}, {index}");
        }
        assert_eq!(batch.answer(memory, expected.len()), None);
        assert_eq!(batch.answer(&memory[..64], 1), None);
    }
}
