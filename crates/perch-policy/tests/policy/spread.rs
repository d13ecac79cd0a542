// SPDX-License-Identifier: GPL-2.0-or-later
//! Properties of the mechanism spread (docs/testing.md#properties: P2, P3).

use perch_machine::library;
use perch_policy::{Era, Host, Modes, Reason, Topology};
use proptest::prelude::*;

use crate::decision::without_and_with;

proptest! {
    #![proptest_config(crate::config())]

    /// A wakee that leaves had a busy CPU in an LLC that wakees may leave, with its waker in the same,
    /// and finds a whole core idle in an LLC that was no busier; otherwise nothing changes.
    #[test]
    fn p3_only_busy_llcs_are_left(seed: u64, max_cpus in 1..150usize) {
        let modes = |spread| Modes { spread, ..Modes::default() };
        let eras = [Era::V6_5, Era::V6_15, Era::V7_2];
        without_and_with((seed, max_cpus), eras, modes, |(stock, after), d, at| {
            if d.verdict.reason != Reason::Spread {
                // It may have looked in vain.
                assert_eq!((d.verdict.cpu, d.verdict.reason), (stock.cpu, stock.reason), "{at}");
                assert_eq!(&d.after, after, "{at}");
                return;
            }
            let (wake, state) = (d.before.wake, &d.before.state);
            let llc = |cpu: usize| d.shape.llc[cpu].as_ref().expect("an LLC")[0];
            assert!(!state.idle[wake.prev] && llc(wake.prev) == llc(wake.this), "{at}");
            assert!(d.core_is_idle(d.verdict.cpu) && d.before.allowed[d.verdict.cpu], "{at}");
            assert!(state.spread[llc(d.verdict.cpu)].0 <= state.spread[llc(wake.prev)].0, "{at}");
            let left = d.after.state.spread[llc(wake.prev)].1;
            assert_eq!(left + 1, state.spread[llc(wake.prev)].1, "{at}");
        });
    }
}

/// As many wakees may leave as would level the LLCs by a quarter, rounded up, and none while the LLC
/// is less than half busy.
#[test]
fn a_quarter_of_the_difference_may_leave() {
    let mut host = Host::new(Topology::new(&library::load("epyc7543").expect("a library machine")));
    let weight = host.topology().llc_span(0).weight();
    for (busy, leaving) in [(511, 0), (512, weight / 2 / 2), (1024, weight / 2)] {
        host.level(0, busy);
        assert_eq!(host.spread(0), (busy, leaving.div_ceil(4)), "{busy}");
    }
    host.level(1, 400);
    host.level(0, 1024);
    assert_eq!(host.spread(0).1, (weight / 2).div_ceil(4), "the least busy counts");
}
