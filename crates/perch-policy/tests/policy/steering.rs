// SPDX-License-Identifier: GPL-2.0-or-later
//! Properties of steering (docs/testing.md#properties: P2, P3, P12), the herd that posted makes,
//! and the choices on the machine for which it was written.

use perch_machine::{Machine, library};
use perch_policy::{Era, Host, Mode, Modes, Policy, Reason, Topology, Verdict};
use proptest::prelude::*;

use crate::decision::{Decision, decide};
use crate::machines::{self, Shape};
use crate::scenario::Scenario;

const ERAS: [Era; 5] = [Era::V3_4, Era::V5_5, Era::V6_5, Era::V6_15, Era::V7_2];

fn steering(era: Era, steer: Mode) -> Policy {
    let modes = Modes { steer, ..Modes::default() };
    Policy::new(era, modes)
}

fn decisions(seed: u64, max_cpus: usize, check: impl FnMut(&Decision)) {
    let policies = ERAS.into_iter().flat_map(|era| Mode::ALL.map(|mode| steering(era, mode)));
    let policies: Vec<Policy> = policies.collect();
    decide(&machines::random(seed, max_cpus), seed, &policies, check);
}

proptest! {
    #![proptest_config(crate::config())]

    /// P12, and what else must be true of a CPU that was chosen for its empty queue.
    #[test]
    fn p12_the_queue_was_empty(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            let Verdict { cpu, reason, target, .. } = d.verdict;
            if reason != Reason::EmptyQueue {
                return;
            }
            let at = format!("seed {seed}, {max_cpus} CPUs, {}: {:?}", d.policy.modes(), d.verdict);
            let queued = d.before.group.as_ref().expect("no root group is steered");
            assert!(!queued[cpu], "{at}");
            assert!(d.before.allowed[cpu], "{at}");
            assert!(d.shape.share_llc(cpu, target), "{at}");
            if d.policy.modes().steer == Mode::Perch && cpu != target {
                assert!(queued[target] || !d.before.allowed[target], "{at}");
                let near = d.cluster(target);
                let good = |&c: &usize| d.before.allowed[c] && !queued[c];
                if near.iter().any(good) && d.shape.asym[target].is_none() {
                    assert!(near.contains(&cpu), "{at}: past the cluster {near:?}");
                }
            }
        });
    }

    /// P2 and P3: upstream is off, the root group knows nothing of it, and where another step found
    /// an idle CPU nothing changes.
    #[test]
    fn p3_only_groups_whose_search_failed_are_steered(seed: u64, max_cpus in 1..150usize) {
        let mut off = None;
        decisions(seed, max_cpus, |d| {
            let now = (d.verdict, d.after.clone());
            let at = format!("seed {seed}, {max_cpus} CPUs, {}", d.policy.modes());
            match (d.policy.modes().steer, &off) {
                (Mode::Off, _) => off = Some(now),
                (mode, Some(before)) => {
                    let busy = [Reason::TargetBusy, Reason::Fallback];
                    let failed = busy.contains(&before.0.reason);
                    if mode == Mode::Upstream || d.before.group.is_none() || !failed {
                        assert_eq!(&now, before, "{at}");
                    } else {
                        assert_eq!(now.1, before.1, "{at}: more than the CPU changes");
                    }
                }
                (_, None) => unreachable!("off comes first"),
            }
        });
    }

    /// perch: within its budget no empty queue with less load was met and left.
    #[test]
    fn perch_takes_the_least_loaded_of_what_it_compares(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            let Verdict { cpu, reason, target, .. } = d.verdict;
            let perch = d.policy.modes().steer == Mode::Perch;
            if reason != Reason::EmptyQueue || !perch || cpu == target {
                return;
            }
            let queued = d.before.group.as_ref().expect("a group");
            let llc = d.shape.llc[target].as_ref().expect("an LLC");
            let near = d.cluster(target).contains(&cpu);
            let set = if near { d.cluster(target) } else { llc };
            let good = set.iter().filter(|&&c| d.before.allowed[c] && !queued[c]);
            if good.clone().count() > crate::steer::BUDGET || d.shape.asym[target].is_some() {
                return;
            }
            let state = |c: usize| &d.before.state.cpus[c];
            let load = |c: usize| u64::from(state(c).load) * 1024 / u64::from(state(c).capacity);
            let least = good.clone().map(|&c| load(c)).min();
            let idle = good.clone().any(|&c| d.idle_ok(c));
            let at = format!("seed {seed}, {max_cpus} CPUs: {:?}", d.verdict);
            assert!(d.idle_ok(cpu) || (!idle && Some(load(cpu)) == least), "{at}");
        });
    }
}

/// The X5570, every CPU busy with one hog of another group.
fn saturated() -> (Host, Shape) {
    let machine: Machine = library::load("x5570").expect("a library machine");
    (Host::new(Topology::new(&machine)), Shape::new(&machine))
}

/// How often each CPU is chosen by wakees whose group has one task queued on each of `queued`,
/// one wake-up after another from every CPU on every other.
fn histogram(mode: Mode, queued: &[usize]) -> Vec<u32> {
    let (mut host, shape) = saturated();
    let n = shape.nr_cpus();
    let mut chosen = vec![0; n];
    for this in 0..n {
        for prev in 0..n {
            let mut s = Scenario::idle(&shape, this, prev);
            (0..n).for_each(|cpu| s.busy(cpu, 1));
            s.group = Some((0..n).map(|cpu| queued.contains(&cpu)).collect());
            s.put(&mut host);
            let verdict = s.decide(&mut host, &steering(Era::V3_4, mode));
            assert!(!queued.contains(&verdict.cpu) || mode == Mode::Off, "{verdict:?}");
            chosen[verdict.cpu] += 1;
        }
    }
    chosen
}

/// posted sends every wakee of a node to the lowest CPU with an empty queue; perch leaves it where
/// it is when that has one, and goes on from there otherwise.
#[test]
fn posted_herds_and_perch_does_not() {
    let (_, shape) = saturated();
    for queued in [&[] as &[usize], &[0, 1], &[5, 12]] {
        let empty = (0..shape.nr_cpus()).filter(|c| !queued.contains(c));
        let empty: Vec<usize> = empty.collect();
        let posted = histogram(Mode::Posted, queued);
        let lowest = |llc: &Vec<usize>| llc.iter().copied().find(|c| empty.contains(c));
        let lowest: Vec<usize> = shape.llc.iter().flatten().filter_map(lowest).collect();
        for cpu in 0..shape.nr_cpus() {
            assert_eq!(posted[cpu] > 0, lowest.contains(&cpu), "{queued:?}: {posted:?}");
        }
        // Each of 16 x 16 wake-ups: an even share of 16 would be 16 a CPU.
        let perch = histogram(Mode::Perch, queued);
        for &cpu in &empty {
            assert!((10..=48).contains(&perch[cpu]), "{queued:?}: {perch:?}");
        }
    }
}

/// perch on the X5570: the target when its queue is empty, else where least waits.
#[test]
fn perch_asks_the_target_first_and_then_for_the_least_load() {
    let (mut host, shape) = saturated();
    let n = shape.nr_cpus();
    let mut s = Scenario::idle(&shape, 2, 2);
    (0..n).for_each(|cpu| s.busy(cpu, 2));
    let llc = shape.llc[2].clone().expect("an LLC");
    let light = *llc.iter().rev().find(|&&c| c != 2).expect("another CPU");
    s.busy(light, 1);
    let policy = steering(Era::V3_4, Mode::Perch);
    for (queued, expected) in [(vec![], 2), (vec![2], light)] {
        let mut s = s.clone();
        s.group = Some((0..n).map(|cpu| queued.contains(&cpu)).collect());
        s.put(&mut host);
        let verdict = s.decide(&mut host, &policy);
        assert_eq!((verdict.cpu, verdict.reason), (expected, Reason::EmptyQueue));
    }
    // All queues taken: the target, as without the mechanism.
    s.group = Some(vec![true; n]);
    s.put(&mut host);
    let verdict = s.decide(&mut host, &policy);
    assert_eq!((verdict.cpu, verdict.reason), (2, Reason::TargetBusy));
}
