// SPDX-License-Identifier: GPL-2.0-only
//! The properties of mechanisms.md §7 that one decision can show, over random moments, and the
//! cluster mechanism's decisions on the machine that it was written for.

use std::collections::BTreeMap;

use perch_machine::{Machine, library};
use perch_policy::{Host, Mode, Reason, Topology, Verdict};
use proptest::prelude::*;

use crate::dice::Dice;
use crate::differential::{ERAS, policy};
use crate::machines::{self, Shape};
use crate::scenario::Scenario;

/// Moments a machine.
const MOMENTS: usize = 20;

/// One decision, with what led to it and what it left.
struct Decision<'a> {
    shape: &'a Shape,
    before: &'a Scenario,
    after: Scenario,
    mode: Mode,
    blind: bool,
    verdict: Verdict,
}

impl Decision<'_> {
    fn idle_ok(&self, cpu: usize) -> bool {
        let state = &self.before.state;
        state.idle[cpu] || (state.sched_idle[cpu] && !self.blind)
    }

    fn cluster(&self, cpu: usize) -> &[usize] {
        self.shape.cluster[cpu].as_deref().unwrap_or_default()
    }

    fn core_is_idle(&self, cpu: usize) -> bool {
        self.shape.core[cpu]
            .iter()
            .all(|&c| self.before.state.idle[c])
    }

    /// Whether step 8 was reached: nothing before it ended the search.
    fn scanned(&self) -> bool {
        use Reason::*;
        let late = [
            ClusterCore,
            ClusterScan,
            LlcCore,
            LlcThread,
            LlcScan,
            ClusterPrev,
            ClusterRecent,
            TargetBusy,
        ];
        late.contains(&self.verdict.reason)
    }

    /// The LLC of the target, its budget, and whether it is thought to have an idle core.
    fn llc(&self) -> Option<(&[usize], u32, bool)> {
        let llc = self.shape.llc[self.verdict.target].as_deref()?;
        let state = &self.before.state;
        Some((
            llc,
            state.scan[llc[0]],
            self.shape.smt && state.idle_cores[llc[0]],
        ))
    }

    /// The CPUs that step 8 may look at in this mode, in its order.
    fn within_budget(&self) -> Vec<usize> {
        let Some((llc, budget, hic)) = self.llc() else {
            return Vec::new();
        };
        let (n, target) = (self.shape.nr_cpus(), self.verdict.target);
        let near = if self.mode == Mode::Off {
            &[]
        } else {
            self.cluster(target)
        };
        let ring = (1..=n)
            .map(|i| (target + i) % n)
            .filter(|c| llc.contains(c));
        let ring: Vec<usize> = ring.filter(|&c| self.before.allowed[c]).collect();
        let (first, rest): (Vec<usize>, Vec<usize>) = ring.iter().partition(|c| near.contains(c));
        let own = if self.mode == Mode::Perch {
            first.len()
        } else {
            0
        };
        let length = match (budget, hic) {
            (0, _) => own,
            (_, true) => n,
            (_, false) => own + budget as usize,
        };
        first.into_iter().chain(rest).take(length).collect()
    }
}

/// Decides random moments of a random machine in every mode and era, and shows `check` each.
fn decisions(seed: u64, max_cpus: usize, mut check: impl FnMut(&Decision)) {
    let machine = machines::random(seed, max_cpus);
    let shape = Shape::new(&machine);
    let mut host = Host::new(Topology::new(&machine));
    let mut dice = Dice::new(seed ^ 0x0070_726f_7073);
    for _ in 0..MOMENTS {
        let before = Scenario::random(&shape, &mut dice);
        for (era, mode) in ERAS.into_iter().flat_map(|e| Mode::ALL.map(|m| (e, m))) {
            let mut after = before.clone();
            after.put(&mut host);
            let verdict = after.decide(&mut host, &policy(era, mode));
            let blind = era.rules().idle_sees_policy && before.wakee.sched_idle;
            check(&Decision {
                shape: &shape,
                before: &before,
                after,
                mode,
                blind,
                verdict,
            });
        }
    }
}

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

    /// P6: a busy target is no answer while prev or recent is still idle in the LLC. Nothing
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
                | Reason::WakeBalance => false,
            };
            let at = format!("seed {seed}, {max_cpus} CPUs, cluster={}", d.mode);
            assert!(holds, "{at}: {:?} for {wake:?}", d.verdict);
        });
    }
}

/// The random moments are worth something only if they reach every reason.
#[test]
fn random_moments_reach_every_reason() {
    let mut seen = BTreeMap::new();
    for seed in 0..300 {
        decisions(seed, 100, |d| {
            *seen.entry(d.verdict.reason).or_insert(0) += 1
        });
    }
    for &reason in Reason::ALL.iter().filter(|&&r| r != Reason::Nothing) {
        let times = seen.get(&reason).copied().unwrap_or(0);
        assert!(
            times >= 50,
            "\"{}\" only {times} times in {seen:?}",
            reason.name()
        );
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
    assert_eq!(
        (stock.cpu, stock.reason, stock.target),
        (9, Reason::PrevIdle, 0)
    );
    for mode in ON {
        let verdict = on_kunpeng920(mode, 9, &[2, 9], 20);
        assert_eq!(
            (verdict.cpu, verdict.reason),
            (2, Reason::ClusterScan),
            "{mode}"
        );
        assert_eq!(verdict.examined, 2, "{mode}: CPUs 1 and 2");
    }
}

#[test]
fn an_idle_prev_of_the_cluster_needs_no_scan() {
    for mode in Mode::ALL {
        let verdict = on_kunpeng920(mode, 3, &[1, 3], 20);
        assert_eq!(
            (verdict.cpu, verdict.reason),
            (3, Reason::PrevIdle),
            "{mode}"
        );
        assert_eq!(verdict.examined, 0, "{mode}");
    }
}

/// The regression of v8: the cluster is busy, the budget ends there, prev is idle all the time.
#[test]
fn an_idle_prev_elsewhere_beats_stacking_on_the_target() {
    for mode in [Mode::Posted, Mode::Upstream] {
        let verdict = on_kunpeng920(mode, 9, &[9], 4);
        assert_eq!(
            (verdict.cpu, verdict.reason),
            (9, Reason::ClusterPrev),
            "{mode}"
        );
        assert_eq!(
            verdict.examined, 4,
            "{mode}: the cluster's four, then the budget is spent"
        );
    }
    let verdict = on_kunpeng920(Mode::Perch, 9, &[9], 4);
    assert_eq!((verdict.reason, verdict.examined), (Reason::ClusterPrev, 8));
}

/// One more CPU of budget than the cluster has reaches one CPU of the rest.
#[test]
fn the_cluster_spends_the_budget_of_the_llc_unless_perch() {
    for mode in [Mode::Posted, Mode::Upstream] {
        let verdict = on_kunpeng920(mode, 0, &[4, 5], 5);
        assert_eq!(
            (verdict.cpu, verdict.reason),
            (4, Reason::LlcScan),
            "{mode}"
        );
        assert_eq!(
            on_kunpeng920(mode, 0, &[5], 5).reason,
            Reason::TargetBusy,
            "{mode}"
        );
    }
    let verdict = on_kunpeng920(Mode::Perch, 0, &[5], 5);
    assert_eq!((verdict.cpu, verdict.reason), (5, Reason::LlcScan));
}

/// An LLC too busy to be scanned hides an idle neighbour from posted and upstream.
#[test]
fn only_perch_sees_the_cluster_of_a_busy_llc() {
    for mode in [Mode::Off, Mode::Posted, Mode::Upstream] {
        let verdict = on_kunpeng920(mode, 0, &[3], 0);
        assert_eq!(
            (verdict.cpu, verdict.reason),
            (0, Reason::TargetBusy),
            "{mode}"
        );
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
        assert_eq!(
            (verdict.cpu, verdict.reason),
            (idle, reason),
            "cluster={mode}"
        );
    }
}
