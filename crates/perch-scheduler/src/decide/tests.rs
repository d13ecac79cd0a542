// SPDX-License-Identifier: GPL-2.0-or-later
//! The comparison itself, with the native policy on the other side too; `InKernel` is tried in a
//! guest (crates/perch/tests/guests/decide.rs).

use perch_policy::testing::here::Here;

use super::*;

struct Native(Here);

impl Answerer for Native {
    fn base(&self) -> u64 {
        self.0.base()
    }

    fn answer(&mut self, batch: &Batch) -> Result<&[u8], SchedulerError> {
        Ok(self.0.answer(batch))
    }
}

fn native(plan: Plan) -> Comparison {
    compare(&plan, &mut Native(Here::new(kernel::ARENA_BYTES))).unwrap()
}

#[test]
fn the_native_policy_agrees_with_itself() {
    let count = 70 * MOMENTS * scenario::policies().len();
    let comparison = native(Plan { seed: 1, count, falsify: false });
    assert_eq!(comparison.mismatches, 0, "{:#?}", comparison.told);
    assert_eq!(comparison.questions, count);
    assert_eq!(comparison.machines["all"], 70);
    for (kind, &count) in &comparison.machines {
        assert!(count >= 5, "{kind}: {count}");
    }
    for reason in &Reason::ALL[1..] {
        let count = comparison.reasons.get(reason).copied().unwrap_or(0);
        assert!(count >= 1, "{reason:?}: {count}");
    }
    for step in CacheStep::ALL {
        let count = comparison.steps.get(&step).copied().unwrap_or(0);
        assert!(count >= 1, "{step:?}: {count}");
    }
}

#[test]
fn one_bit_that_differs_is_found() {
    let plan = Plan { seed: 1, count: 1, falsify: true };
    let comparison = native(plan);
    assert_eq!(comparison.mismatches, 1);
    let told = &comparison.told[0];
    assert!(told.starts_with("seed 1, machine 0 ("), "{told}");
    let again = native(plan);
    assert_eq!(again.told, comparison.told);
}
