// SPDX-License-Identifier: GPL-2.0-or-later
//! The effect of the cluster scan on whole runs. P18 itself is an assertion of the simulator: in a
//! debug build each decision is held against the state in which it was made.

use perch_policy::{Era, Mode, Reason};
use perch_sim::{Outcome, Scenario};
use proptest::prelude::*;

use crate::common::{SCANNING, config, decisions, machine, policy, scenario, traced, workload};
use crate::load::random;

fn run(era: Era, mode: Mode, spec: &str) -> Outcome {
    let kunpeng = machine("kunpeng920");
    let mut scenario = scenario(&kunpeng, era, workload(&kunpeng, spec), [0, 60]);
    scenario.policy = policy(era, mode);
    scenario.run().expect("a scenario that runs")
}

fn count(outcome: &Outcome, reasons: &[Reason]) -> u64 {
    reasons.iter().map(|&r| outcome.metrics.by_reason[r as usize]).sum()
}

const CLUSTER: [Reason; 4] =
    [Reason::ClusterCore, Reason::ClusterScan, Reason::ClusterPrev, Reason::ClusterRecent];

proptest! {
    #![proptest_config(config(60))]

    /// Runs under the assertions of every decision, which a release build leaves out: in perch
    /// mode that no idle CPU of the target's cluster was passed over for a busy target.
    #[test]
    fn perch_never_takes_a_busy_cpu_beside_an_idle_one(seed in any::<u64>().no_shrink()) {
        for era in SCANNING {
            let scenario = Scenario { policy: policy(era, Mode::Perch), ..random(seed, 40) };
            scenario.run().expect("a scenario that runs");
        }
    }

    /// P4: without an idle core at hand a scan looks at no more CPUs than the LLC has, and there
    /// is one scan; two where the cache mechanism redirects wake-ups and may have to return.
    #[test]
    fn no_scan_looks_at_more_than_its_llc(seed in any::<u64>().no_shrink()) {
        let scenario = random(seed, 40);
        let topology = &scenario.topology;
        // The capacity scan's domain may be wider than an LLC.
        let shared = 0..topology.nr_shared();
        let widest = shared.map(|s| u64::from(topology.shared_span(s).weight()));
        let redirects = matches!(scenario.policy.modes().cache, Mode::Posted | Mode::Perch);
        let widest = widest.max().unwrap_or(0) * if redirects { 2 } else { 1 };
        for decision in decisions(&traced(&scenario).0) {
            let balanced = [Reason::SlowPath, Reason::WakeBalance].map(Reason::name);
            if !balanced.contains(&decision.reason.as_str()) {
                prop_assert!(decision.examined <= widest, "{:?} of {}", decision, widest);
            }
        }
    }
}

#[test]
fn only_the_scan_gives_cluster_reasons_and_keeps_pairs_within_a_cluster() {
    for era in SCANNING {
        let off = run(era, Mode::Off, "tcp_rr:n=8,where=node0");
        assert_eq!(count(&off, &CLUSTER), 0);
        for mode in [Mode::Posted, Mode::Upstream, Mode::Perch] {
            let on = run(era, mode, "tcp_rr:n=8,where=node0");
            assert!(count(&on, &CLUSTER) > 0, "{era} {mode}: {:?}", on.metrics.by_reason);
            let near: u64 = on.metrics.wake_distance[..3].iter().sum();
            let share = near as f64 / on.metrics.wakeups as f64;
            assert!(share > 0.95, "{era} {mode}: {:?}", on.metrics.wake_distance);
        }
    }
}
