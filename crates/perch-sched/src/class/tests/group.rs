// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups: shares, nesting, and what the policy is told.

use super::*;

in_every_era! {
    group_on_two_cpus_weighs_half_on_each
    policy_hears_of_the_first_and_the_last_task
}

const GROUP: NewGroup = NewGroup { parent: None, shares: 1024 };

fn member(group: usize) -> NewTask {
    NewTask { group: Some(group), ..FAIR }
}

fn group_on_two_cpus_weighs_half_on_each(era: Era) {
    let mut q = Queues::with(era, &[member(0), member(0), FAIR], &[GROUP], false);
    q.fork(0, 0);
    q.fork(1, 1);
    q.fork(0, 2);
    q.schedule(0);
    q.schedule(1);
    q.ticks_on(&[0, 1], 2500);
    // A weight of 512 against one of 1024.
    let (member, other) = (q.ran_ms(0), q.ran_ms(2));
    let share = 100 * member / (member + other);
    assert!((28..=39).contains(&share), "{member} and {other} ms");
    q.check();
}

fn policy_hears_of_the_first_and_the_last_task(era: Era) {
    let mut q = Queues::with(era, &[member(0), member(0)], &[GROUP], false);
    let told = |q: &mut Queues| -> Vec<(usize, bool)> {
        q.rq.take_told().map(|(_, cpu, any)| (cpu, any)).collect()
    };
    q.fork(4, 0);
    assert_eq!(told(&mut q), [(4, true)]);
    q.fork(4, 1);
    assert!(told(&mut q).is_empty());
    q.schedule(4);
    q.end(4);
    assert!(told(&mut q).is_empty());
    q.end(4);
    assert_eq!(told(&mut q), [(4, false)]);
    assert!(!q.rq.any_told());
}
