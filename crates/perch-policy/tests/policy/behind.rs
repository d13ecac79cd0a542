// SPDX-License-Identifier: GPL-2.0-or-later
//! Properties of the mechanism behind (docs/testing.md#properties: P2, P3).

use perch_policy::{Era, Modes, Reason};
use proptest::prelude::*;

use crate::decision::without_and_with;

proptest! {
    #![proptest_config(crate::config())]

    /// The wakee goes behind a waker that is alone on its CPU and sleeps at once, and nowhere else;
    /// otherwise nothing changes.
    #[test]
    fn p3_only_wakers_that_sleep_soon_have_wakees_behind_them(seed: u64, max_cpus in 1..150usize) {
        let modes = |behind| Modes { behind, ..Modes::default() };
        let eras = [Era::V5_5, Era::V6_15, Era::V7_2];
        without_and_with((seed, max_cpus), eras, modes, |stock, d, at| {
            if d.verdict.reason != Reason::Behind {
                assert_eq!((&d.verdict, &d.after), (&stock.0, &stock.1), "{at}");
                return;
            }
            let (wake, state) = (d.before.wake, &d.before.state);
            let here = &state.cpus[wake.this];
            assert!(d.verdict.cpu == wake.this && wake.sync, "{at}");
            assert!(here.nr_running - here.nr_delayed == 1, "{at}");
            assert!(d.before.allowed[wake.this] && d.before.waker.turn_ns < 1_000_000, "{at}");
            let away = Some(wake.prev).filter(|prev| *prev != wake.this);
            assert_eq!(d.after.wakee.recent, away.or(d.before.wakee.recent), "{at}");
        });
    }
}

/// A turn longer than expected counts at once, a shorter one by an eighth.
#[test]
fn turns_are_believed_slowly() {
    let mut task = perch_policy::TaskState::new(1);
    assert_eq!(task.turn_ns(), 1_000_000);
    let turns = (1..).find(|_| {
        task.turned(2_000);
        task.turn_ns() < 5_000
    });
    assert_eq!(turns, Some(44));
    task.turned(u64::MAX);
    assert_eq!(task.turn_ns(), 1_000_000);
}
