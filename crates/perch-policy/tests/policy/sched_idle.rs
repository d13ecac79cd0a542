// SPDX-License-Identifier: GPL-2.0-or-later
//! Properties of the mechanism sched_idle (docs/testing.md#properties: P2, P3).

use perch_policy::{Era, Modes, Reason};
use proptest::prelude::*;

use crate::decision::without_and_with;

proptest! {
    #![proptest_config(crate::config())]

    /// It acts where the search has failed for a task that is not SCHED_IDLE itself, and only there;
    /// then no CPU of the cache that it may take is nearer to the target by number.
    #[test]
    fn p3_only_a_failed_search_preempts(seed: u64, max_cpus in 1..150usize) {
        let modes = |sched_idle| Modes { sched_idle, ..Modes::default() };
        let eras = [Era::V5_5, Era::V6_15, Era::V7_2];
        without_and_with((seed, max_cpus), eras, modes, |(stock, after), d, at| {
            assert_eq!(after, &d.after, "{at}");
            // The target of a failed search that was not allowed.
            if stock.reason == Reason::Fallback {
                return;
            }
            let n = d.shape.nr_cpus();
            let good = |&c: &usize| {
                let (state, before) = (&d.before.state, &d.before);
                d.shape.share_llc(c, stock.target) && before.allowed[c] && state.sched_idle[c]
            };
            let near = (stock.cpu..stock.cpu + n).map(|c| c % n).find(good);
            let failed = stock.reason == Reason::TargetBusy && !d.before.wakee.sched_idle;
            match near.filter(|_| failed && d.shape.llc[stock.cpu].is_some()) {
                Some(cpu) => assert_eq!((d.verdict.cpu, d.verdict.reason), (cpu, Reason::SchedIdle), "{at}"),
                None => assert_eq!(d.verdict, *stock, "{at}"),
            }
        });
    }
}
