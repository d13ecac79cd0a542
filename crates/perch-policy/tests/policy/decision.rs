// SPDX-License-Identifier: GPL-2.0-or-later
//! One decision under test, with what led to it and what it left.

use std::collections::BTreeMap;

use perch_machine::Machine;
use perch_policy::{Era, Host, Mode, Modes, Policy, Reason, Topology, Verdict};

use crate::dice::Dice;
use crate::differential::{ERAS, policy};
use crate::machines::{self, Shape};
use crate::scenario::{self, Scenario};

/// Moments a machine.
pub const MOMENTS: usize = 20;

/// One decision, with what led to it and what it left.
pub struct Decision<'a> {
    pub shape: &'a Shape,
    pub topology: &'a Topology,
    pub before: &'a Scenario,
    pub after: Scenario,
    pub policy: Policy,
    /// Mode of `cluster`.
    pub mode: Mode,
    blind: bool,
    pub verdict: Verdict,
}

impl Decision<'_> {
    pub fn idle_ok(&self, cpu: usize) -> bool {
        let state = &self.before.state;
        state.idle[cpu] || (state.sched_idle[cpu] && !self.blind)
    }

    pub fn cluster(&self, cpu: usize) -> &[usize] {
        self.shape.cluster[cpu].as_deref().unwrap_or_default()
    }

    pub fn core_is_idle(&self, cpu: usize) -> bool {
        self.shape.core[cpu].iter().all(|&c| self.before.state.idle[c])
    }

    /// Whether step 8 was reached: nothing before it ended the search.
    pub fn scanned(&self) -> bool {
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
    pub fn llc(&self) -> Option<(&[usize], u32, bool)> {
        let llc = self.shape.llc[self.verdict.target].as_deref()?;
        let state = &self.before.state;
        Some((llc, state.scan[llc[0]], self.shape.smt && state.idle_cores[llc[0]]))
    }

    /// The CPUs that step 8 may look at in this mode, in its order.
    pub fn within_budget(&self) -> Vec<usize> {
        let Some((llc, budget, hic)) = self.llc() else {
            return Vec::new();
        };
        let (n, target) = (self.shape.nr_cpus(), self.verdict.target);
        let near = if self.mode == Mode::Off { &[] } else { self.cluster(target) };
        let ring = (1..=n).map(|i| (target + i) % n).filter(|c| llc.contains(c));
        let ring: Vec<usize> = ring.filter(|&c| self.before.allowed[c]).collect();
        let (first, rest): (Vec<usize>, Vec<usize>) = ring.iter().partition(|c| near.contains(c));
        let own = if self.mode == Mode::Perch { first.len() } else { 0 };
        let length = match (budget, hic) {
            (0, _) => own,
            (_, true) => n,
            (_, false) => own + budget as usize,
        };
        first.into_iter().chain(rest).take(length).collect()
    }
}

/// Decides random moments of a machine by each policy, and shows `check` each.
pub fn decide(machine: &Machine, seed: u64, policies: &[Policy], mut check: impl FnMut(&Decision)) {
    let shape = Shape::new(machine);
    let topology = Topology::new(machine);
    let mut host = Host::new(topology.clone());
    let mut dice = Dice::new(seed ^ 0x0070_726f_7073);
    for _ in 0..MOMENTS {
        let before = Scenario::random(&shape, &mut dice);
        for &policy in policies {
            let mut after = before.clone();
            after.put(&mut host);
            let verdict = after.decide(&mut host, &policy);
            let blind = policy.era().rules().idle_sees_policy && before.wakee.sched_idle;
            check(&Decision {
                shape: &shape,
                topology: &topology,
                before: &before,
                after,
                policy,
                mode: policy.modes().cluster,
                blind,
                verdict,
            });
        }
    }
}

/// [`decide`] on a random machine, by cluster in every mode and era without capacity.
pub fn decisions(seed: u64, max_cpus: usize, check: impl FnMut(&Decision)) {
    let modes = ERAS.into_iter().flat_map(|e| Mode::ALL.map(|m| policy(e, m)));
    let policies: Vec<Policy> = modes.collect();
    decide(&machines::random(seed, max_cpus), seed, &policies, check);
}

/// [`decide`] on a random machine by a mechanism of perch's own, and shows `check` each decision without
/// it, then with it: the verdict, what it left, and the decision with it.
pub fn without_and_with(
    (seed, max_cpus): (u64, usize),
    eras: [Era; 3],
    modes: impl Fn(Mode) -> Modes,
    mut check: impl FnMut(&(Verdict, Scenario), &Decision, &str),
) {
    for era in eras {
        let policies = [Mode::Off, Mode::Perch].map(|mode| Policy::new(era, modes(mode)));
        let mut without = None;
        decide(&machines::random(seed, max_cpus), seed, &policies, |d| match without.take() {
            None => without = Some((d.verdict, d.after.clone())),
            Some(stock) => {
                let at =
                    format!("seed {seed}, {max_cpus} CPUs, {era}: {:?}, {:?}", stock.0, d.verdict);
                check(&stock, d, &at);
            }
        });
    }
}

/// The random moments are worth something only if they reach every reason.
#[test]
fn random_moments_reach_every_reason() {
    let mut seen = BTreeMap::new();
    for seed in 0..300 {
        decide(&machines::random(seed, 100), seed, &scenario::policies(), |d| {
            *seen.entry(d.verdict.reason).or_insert(0) += 1;
        });
    }
    for &reason in Reason::ALL.iter().filter(|&&r| r != Reason::Nothing) {
        let times = seen.get(&reason).copied().unwrap_or(0);
        assert!(times >= 50, "\"{}\" only {times} times in {seen:?}", reason.name());
    }
}
