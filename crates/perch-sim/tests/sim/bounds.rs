// SPDX-License-Identifier: GPL-2.0-or-later
//! Bounds that no simulation may exceed, and sums that must agree.

use proptest::prelude::*;

use crate::common::{ERAS, config, decisions, machine, run, traced};
use crate::load::random;

proptest! {
    #![proptest_config(config(80))]

    #[test]
    fn metrics_add_up(seed in any::<u64>().no_shrink()) {
        let mut scenario = random(seed, 40);
        scenario.measure_ns += scenario.warmup_ns;
        scenario.warmup_ns = 0;
        let (trace, outcome) = traced(&scenario);
        let m = outcome.metrics;
        // The decisions of time 0 still belong to the warm-up.
        let mut decisions = decisions(&trace);
        decisions.retain(|d| d.now_ns > 0);
        prop_assert_eq!(m.wakeups, decisions.len() as u64);
        prop_assert_eq!(m.by_reason.iter().sum::<u64>(), m.wakeups);
        prop_assert_eq!(m.by_cache_step.iter().sum::<u64>(), m.wakeups);
        prop_assert!(m.bounces <= m.llc_changes);
        prop_assert_eq!(m.wake_distance.iter().sum::<u64>(), m.wakeups);
        prop_assert_eq!(m.migrations.iter().sum::<u64>(), m.wakeups);
        prop_assert_eq!(m.examined, decisions.iter().map(|d| d.examined).sum::<u64>());
        let apart = |d: &&crate::common::Decision| d.prev != d.cpu;
        prop_assert_eq!(m.migrations[0], m.wakeups - decisions.iter().filter(apart).count() as u64);
        prop_assert!(m.chosen_busy <= m.wakeups);
        prop_assert_eq!(m.simulated_ns, scenario.measure_ns);
        let cpus = scenario.machine.cpus.len() as u64;
        prop_assert!(m.busy_ns <= cpus * m.simulated_ns, "{} ns busy", m.busy_ns);
        prop_assert_eq!(m.busy_by_cpu.iter().sum::<u64>(), m.busy_ns);
        prop_assert_eq!(m.busy_by_cpu.len() as u64, cpus);
        // An idle CPU's wait for contended lines is spent, and counted, when the CPU starts to run.
        let lines = scenario.machine.hardware.contended_line.is_some();
        prop_assert!(lines || m.busy_by_cpu.iter().all(|busy| *busy <= m.simulated_ns), "{m:?}");
        prop_assert_eq!(m.wake_latency.total(), m.latencies);
        let longest = m.wake_latency.quantile_ns(1.0);
        prop_assert!(m.latencies == 0 || (m.max_latency_ns..=m.max_latency_ns * 33 / 32 + 1).contains(&longest));
        let least: u64 = m.wake_latency.buckets().map(|(ns, count)| (ns - ns / 32 - 1) * count).sum();
        prop_assert!(least <= m.latency_ns, "{m:?}");
        prop_assert!(m.latencies <= m.wakeups + m.stayed, "{:?}", m);
        prop_assert!(m.max_latency_ns <= m.latency_ns && m.max_latency_ns <= m.simulated_ns);
        prop_assert!(decisions.is_sorted_by_key(|d| d.now_ns));
    }
}

/// A pair's work is done one after the other: it can't be faster than the work alone.
#[test]
fn throughput_never_exceeds_pure_work() {
    let kunpeng = machine("kunpeng920");
    for era in ERAS {
        for n in [1, 4, 40] {
            for (name, unit) in [("tcp_rr", 1.0), ("udp_rr", 1.0), ("tbench", 0.005_428_4)] {
                let spec = format!("{name}:n={n},before_ns=3000,after_ns=500,lines=20,where=node0");
                let outcome = run(&kunpeng, era, &spec, [20, 60]);
                let transactions = outcome.metrics.counted as f64 / 0.06;
                // Both sides' "before", and that no more than 32 CPUs do them.
                let alone = 1e9 / 6000.0 * 1.06;
                let bound = (f64::from(n) * alone).min(32.0 * 1e9 / 7000.0 * 1.06);
                assert!(transactions < bound, "{era} {spec}: {transactions} a second");
                assert!(transactions > bound / 20.0, "{era} {spec}: {transactions} a second");
                let score =
                    outcome.scores[0].value * if name == "tbench" { 1.0 } else { f64::from(n) };
                assert!((score - transactions * unit).abs() < 1e-6 * score, "{spec}: {score}");
            }
        }
    }
}

/// The side that waits is woken once for a batch, and the other one sets the pace.
#[test]
fn a_stream_goes_at_the_pace_of_its_slower_side() {
    let kunpeng = machine("kunpeng920");
    let size = 8000;
    for era in ERAS {
        for (slow, wakes_at_least, wakes_at_most) in [("read", 0.0, 0.1), ("write", 0.9, 1.1)] {
            let fast = if slow == "read" { "write" } else { "read" };
            let spec = format!("tcp_stream:size={size},{slow}_ns=19000,{fast}_ns=1000,lines=0");
            let outcome = run(&kunpeng, era, &spec, [100, 200]);
            let (m, score) = (&outcome.metrics, &outcome.scores[0]);
            // 8000 bytes take a microsecond to copy.
            let share = m.counted as f64 * 20_000.0 / 2e8;
            assert!((0.7..1.06).contains(&share), "{era} {spec}: {share}");
            let mbit = m.counted as f64 * f64::from(size) * 8.0 / 1e6 / 0.2;
            assert!((score.value - mbit).abs() < 1e-6 * mbit && score.unit == "Mbit/s");
            let wakes = m.wakeups as f64 / m.counted as f64;
            assert!((wakes_at_least..wakes_at_most).contains(&wakes), "{era} {spec}: {wakes}");
        }
    }
}

#[test]
fn busy_time_is_what_hogs_use() {
    let machine = machine("jacobsville");
    for era in ERAS {
        let outcome = run(&machine, era, "runsleep:tasks=5,sleep_us=0,where=cpu0-7", [500, 500]);
        let cpus = outcome.metrics.busy_ns as f64 / outcome.metrics.simulated_ns as f64;
        assert!((cpus - 5.0).abs() < 0.01, "{era}: {cpus}");
        // A burst is a millisecond on average, and little is lost to overheads.
        assert!((2350..=2520).contains(&outcome.metrics.counted), "{}", outcome.metrics.counted);
    }
}
