// SPDX-License-Identifier: GPL-2.0-or-later
//! The properties of docs/testing.md#properties that one decision can show, over random moments,
//! and the cluster mechanism's decisions on the machine that it was written for.

use perch_machine::{Machine, library};
use perch_policy::{Host, Mode, Reason, Topology, Verdict};
use proptest::prelude::*;

use crate::decision::{MOMENTS, decisions};
use crate::dice::Dice;
use crate::differential::{ERAS, policy};
use crate::machines::{self, Shape};
use crate::scenario::Scenario;

proptest! {
    #![proptest_config(crate::config())]

    /// P1. The live kernel re-checks too; an empty affinity means prev.
    #[test]
    fn p1_the_choice_is_allowed(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            let cpu = d.verdict.cpu;
            if d.before.allowed.contains(&true) {
                assert!(d.before.allowed[cpu], "seed {seed}, {max_cpus} CPUs: {:?}", d.verdict);
            } else {
                let (prev, reason) = (d.before.wake.prev, Reason::Fallback);
                assert_eq!((cpu, d.verdict.reason), (prev, reason), "seed {seed}, {max_cpus} CPUs");
            }
        });
    }

    /// P2: off decides as on a machine that never had clusters. (Domains differ there, so what
    /// walks domains may: fork, exec and the affinity clamp.)
    #[test]
    fn p2_off_knows_no_clusters(seed: u64, max_cpus in 1..150usize) {
        let machine = machines::random(seed, max_cpus);
        let mut bare = machine.clone();
        bare.cpus.iter_mut().for_each(|c| c.cluster = None);
        let shape = Shape::new(&machine);
        let mut hosts = [&machine, &bare].map(|m| Host::new(Topology::new(m)));
        let mut dice = Dice::new(seed);
        for _ in 0..MOMENTS {
            let mut before = Scenario::random(&shape, &mut dice);
            (before.wake.fork, before.wake.exec) = (false, false);
            for era in ERAS {
                let [with, without] = hosts.each_mut().map(|host| {
                    let mut s = before.clone();
                    s.put(host);
                    (s.decide(host, &policy(era, Mode::Off)), s)
                });
                if ![Reason::Fallback, Reason::Affinity].contains(&with.0.reason) {
                    assert_eq!(with, without, "seed {seed}, {max_cpus} CPUs: {:?}", before.wake);
                }
            }
        }
    }

    /// P3: every mode is off where no machine has clusters, and for fork and exec everywhere.
    #[test]
    fn p3_without_clusters_every_mode_is_off(seed: u64, max_cpus in 1..150usize) {
        let mut off = None;
        decisions(seed, max_cpus, |d| {
            let now = (d.verdict, d.after.clone());
            if d.mode == Mode::Off {
                off = Some(now);
            } else if !d.shape.clusters || d.before.wake.fork || d.before.wake.exec {
                assert_eq!(Some(now), off, "seed {seed}, {max_cpus} CPUs, cluster={}", d.mode);
            }
        });
    }

    /// P4: without an idle core to hope for, the budget bounds the search; perch adds the cluster.
    #[test]
    fn p4_examined_stays_within_the_budget(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            let Some((_, budget, false)) = d.llc() else { return };
            if d.verdict.reason == Reason::SlowPath {
                return;
            }
            let own = if d.mode == Mode::Perch { d.cluster(d.verdict.target).len() as u32 } else { 0 };
            let at = format!("seed {seed}, {max_cpus} CPUs, cluster={}: {:?}", d.mode, d.verdict);
            assert!(d.verdict.examined <= budget + own, "{at}, budget {budget}");
        });
    }

    /// P5: an idle CPU of the cluster within the budget is taken before any other.
    #[test]
    fn p5_an_idle_cluster_cpu_within_budget_is_taken(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            let Some((.., false)) = d.llc() else { return };
            let near = d.cluster(d.verdict.target);
            let idle = |c: &usize| near.contains(c) && d.idle_ok(*c);
            if d.mode == Mode::Off || !d.scanned() || !d.within_budget().iter().any(idle) {
                return;
            }
            let at = format!("seed {seed}, {max_cpus} CPUs, cluster={}: {:?}", d.mode, d.verdict);
            if d.verdict.reason != Reason::Fallback {
                assert_eq!(d.verdict.reason, Reason::ClusterScan, "{at}");
            }
        });
    }

    /// P6: a busy target is not an answer while prev or recent is still idle in the LLC. Nothing
    /// changes during a decision here; where it does, posted and perch look again before they
    /// fall back on a candidate, while upstream takes one that may be busy by then.
    #[test]
    fn p6_busy_only_when_prev_and_recent_are_busy(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            if d.verdict.reason != Reason::TargetBusy {
                return;
            }
            let target = d.verdict.target;
            let idle = |c: usize| d.shape.share_llc(c, target) && d.idle_ok(c);
            let at = format!("seed {seed}, {max_cpus} CPUs, cluster={}: {:?}", d.mode, d.verdict);
            assert!(!idle(d.before.wake.prev), "{at}");
            let recent = d.before.wakee.recent.filter(|&r| d.before.allowed[r]);
            assert!(!recent.is_some_and(idle), "{at}");
        });
    }

    /// P18: no scan passes an idle CPU that it looked at. What a mode may look at differs:
    /// posted and upstream nothing where the budget is 0, perch the cluster even then.
    #[test]
    fn p18_no_idle_cpu_is_seen_and_left(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            if d.verdict.reason == Reason::TargetBusy {
                let seen = d.within_budget().into_iter().find(|&c| d.idle_ok(c));
                let at = format!("seed {seed}, {max_cpus} CPUs, cluster={}", d.mode);
                assert_eq!(seen, None, "{at}: {:?}", d.verdict);
            }
        });
    }

    /// A reason says what is true of the CPU.
    #[test]
    fn reasons_tell_the_truth(seed: u64, max_cpus in 1..150usize) {
        decisions(seed, max_cpus, |d| {
            let Verdict { cpu, target, .. } = d.verdict;
            let (wake, recent) = (d.before.wake, d.before.wakee.recent);
            let idle = d.idle_ok(cpu);
            let in_llc = d.shape.share_llc(cpu, target);
            let near = d.cluster(target).contains(&cpu);
            let nr_allowed = d.before.allowed.iter().filter(|&&a| a).count();
            let holds = match d.verdict.reason {
                Reason::Nothing => false,
                Reason::Affinity => nr_allowed == 1,
                Reason::Hint => wake.current && cpu == wake.this,
                Reason::TargetIdle => cpu == target && idle,
                Reason::PrevIdle => cpu == wake.prev && idle && in_llc,
                Reason::Kthread => cpu == wake.this && d.before.waker.percpu_kthread,
                Reason::RecentIdle => Some(cpu) == recent && idle && in_llc,
                Reason::SiblingIdle => d.shape.core[wake.prev].contains(&cpu) && idle,
                Reason::ClusterCore => near && d.core_is_idle(cpu),
                Reason::ClusterScan => near && idle,
                Reason::LlcCore => in_llc && d.core_is_idle(cpu),
                Reason::LlcThread | Reason::LlcScan => in_llc && idle,
                Reason::ClusterPrev => cpu == wake.prev && idle && in_llc && !near,
                Reason::ClusterRecent => Some(cpu) == recent && idle && in_llc && !near,
                Reason::TargetBusy => cpu == target && !idle,
                Reason::NoLlc => cpu == target && !idle && d.shape.llc[cpu].is_none(),
                Reason::SlowPath => wake.fork || wake.exec,
                Reason::Fallback => true,
                Reason::CapacityFit
                | Reason::CapacityBest
                | Reason::CapacitySpare
                | Reason::WakeBalance
                | Reason::IdleGroup
                | Reason::Unsearched
                | Reason::EmptyQueue
                | Reason::SchedIdle
                | Reason::Behind
                | Reason::Spread => false,
            };
            let at = format!("seed {seed}, {max_cpus} CPUs, cluster={}", d.mode);
            assert!(holds, "{at}: {:?} for {wake:?}", d.verdict);
        });
    }
}

/// A moment on node 0 of kunpeng920: all of the node busy but `idle`, CPU 0 wakes what ran on
/// `prev`, and the LLC has this budget.
fn on_kunpeng920(mode: Mode, prev: usize, idle: &[usize], budget: u32) -> Verdict {
    let machine: Machine = library::load("kunpeng920").expect("a library machine");
    let shape = Shape::new(&machine);
    let mut s = Scenario::idle(&shape, 0, prev);
    for cpu in (0..32).filter(|c| !idle.contains(c)) {
        s.busy(cpu, 1);
    }
    s.state.scan[0] = budget;
    s.wake.sync = true;
    let mut host = Host::new(Topology::new(&machine));
    s.put(&mut host);
    s.decide(&mut host, &policy(ERAS[0], mode))
}

const ON: [Mode; 3] = [Mode::Posted, Mode::Upstream, Mode::Perch];

#[test]
fn an_idle_cpu_of_the_cluster_beats_an_idle_prev_elsewhere() {
    let stock = on_kunpeng920(Mode::Off, 9, &[2, 9], 20);
    assert_eq!((stock.cpu, stock.reason, stock.target), (9, Reason::PrevIdle, 0));
    for mode in ON {
        let verdict = on_kunpeng920(mode, 9, &[2, 9], 20);
        assert_eq!((verdict.cpu, verdict.reason), (2, Reason::ClusterScan), "{mode}");
        assert_eq!(verdict.examined, 2, "{mode}: CPUs 1 and 2");
    }
}

#[test]
fn an_idle_prev_of_the_cluster_needs_no_scan() {
    for mode in Mode::ALL {
        let verdict = on_kunpeng920(mode, 3, &[1, 3], 20);
        assert_eq!((verdict.cpu, verdict.reason), (3, Reason::PrevIdle), "{mode}");
        assert_eq!(verdict.examined, 0, "{mode}");
    }
}

/// The regression of v8: the cluster is busy, the budget ends there, prev is idle all the time.
#[test]
fn an_idle_prev_elsewhere_beats_stacking_on_the_target() {
    for mode in [Mode::Posted, Mode::Upstream] {
        let verdict = on_kunpeng920(mode, 9, &[9], 4);
        assert_eq!((verdict.cpu, verdict.reason), (9, Reason::ClusterPrev), "{mode}");
        assert_eq!(verdict.examined, 4, "{mode}: the cluster's four, then the budget is spent");
    }
    let verdict = on_kunpeng920(Mode::Perch, 9, &[9], 4);
    assert_eq!((verdict.reason, verdict.examined), (Reason::ClusterPrev, 8));
}

/// One more CPU of budget than the cluster has reaches one CPU of the rest.
#[test]
fn the_cluster_spends_the_budget_of_the_llc_unless_perch() {
    for mode in [Mode::Posted, Mode::Upstream] {
        let verdict = on_kunpeng920(mode, 0, &[4, 5], 5);
        assert_eq!((verdict.cpu, verdict.reason), (4, Reason::LlcScan), "{mode}");
        assert_eq!(on_kunpeng920(mode, 0, &[5], 5).reason, Reason::TargetBusy, "{mode}");
    }
    let verdict = on_kunpeng920(Mode::Perch, 0, &[5], 5);
    assert_eq!((verdict.cpu, verdict.reason), (5, Reason::LlcScan));
}

/// An LLC too busy to be scanned hides an idle neighbour from posted and upstream.
#[test]
fn only_perch_sees_the_cluster_of_a_busy_llc() {
    for mode in [Mode::Off, Mode::Posted, Mode::Upstream] {
        let verdict = on_kunpeng920(mode, 0, &[3], 0);
        assert_eq!((verdict.cpu, verdict.reason), (0, Reason::TargetBusy), "{mode}");
    }
    let verdict = on_kunpeng920(Mode::Perch, 0, &[3], 0);
    assert_eq!((verdict.cpu, verdict.reason), (3, Reason::ClusterScan));
}

/// A walk from the machine's last CPU starts over at the set's first.
#[test]
fn a_scan_wraps_behind_the_last_cpu() {
    let machine = library::load("kunpeng920").expect("a library machine");
    let shape = Shape::new(&machine);
    let mut host = Host::new(Topology::new(&machine));
    for (mode, idle, reason) in [
        (Mode::Off, 96, Reason::LlcScan),
        (Mode::Perch, 96, Reason::LlcScan),
        (Mode::Off, 124, Reason::LlcScan),
        (Mode::Perch, 124, Reason::ClusterScan),
    ] {
        let mut s = Scenario::idle(&shape, 127, 127);
        (96..128).filter(|&c| c != idle).for_each(|c| s.busy(c, 1));
        s.put(&mut host);
        let verdict = s.decide(&mut host, &policy(ERAS[0], mode));
        assert_eq!((verdict.cpu, verdict.reason), (idle, reason), "cluster={mode}");
    }
}
