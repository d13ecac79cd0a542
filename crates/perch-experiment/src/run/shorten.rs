// SPDX-License-Identifier: GPL-2.0-or-later
//! Shortens the simulations of a quick run to what each row may spend. What a row costs is counted in
//! simulated events, so that the times do not depend on the host.

use super::kernel::Simulate;
use super::load::LoadRun;
use crate::error::ExperimentError;
use crate::model::Effort;
use crate::pool;

/// A time of each simulation that tells what a longer one costs.
pub(super) const PROBE_NS: u64 = 10_000_000;
/// Warm-ups and measurements get no shorter than this: a row whose score counts whole requests would
/// have none.
const LEAST_NS: u64 = 20_000_000;

/// Shortens every load to `allowed` events of all its simulations together. Its verdicts have to wait
/// for a longer run where its warm-up is then shorter than an eighth of what the experiment asks for.
pub(super) fn shorten(
    loads: &mut [LoadRun],
    allowed: u64,
    jobs: usize,
    simulator: &impl Simulate,
) -> Result<(), ExperimentError> {
    let mut events = vec![None; loads.len()];
    let probe = |at: usize| simulator.events(loads[at].load, loads[at].arms[0], PROBE_NS);
    let keep = |at: usize, found| {
        events[at] = found;
        Ok(())
    };
    pool::run(loads.len(), jobs, &mut |_, _| {}, probe, keep)?;
    for (load, events) in loads.iter_mut().zip(events) {
        if let Some(events) = events {
            let asked = load.effort;
            load.begin(affordable(asked, events, load.arms.len() as u64, allowed));
            load.is_short = load.effort.warmup_ns < asked.warmup_ns / 8;
        }
    }
    Ok(())
}

/// Returns the longest times whose simulations cost at most `allowed` events where [`PROBE_NS`] cost
/// `events`. Repetitions go last: how tasks come to rest differs from run to run more than within one,
/// and a third of the time gave the light rows of the cluster scan the same changes to half a point.
fn affordable(asked: Effort, events: u64, arms: u64, allowed: u64) -> Effort {
    let shortened = |halvings: u32| {
        let shorter = |ns: u64| (ns >> halvings).max(LEAST_NS).min(ns);
        Effort {
            warmup_ns: shorter(asked.warmup_ns),
            measure_ns: shorter(asked.measure_ns),
            ..asked
        }
    };
    let fits = |effort: &Effort| {
        let all_ns = u128::from(effort.warmup_ns) + u128::from(effort.measure_ns);
        let simulations = u128::from(u64::from(effort.repetitions) * arms);
        simulations * all_ns * u128::from(events) <= u128::from(allowed) * u128::from(PROBE_NS)
    };
    (0..32)
        .map(shortened)
        .find(fits)
        .unwrap_or(Effort { repetitions: asked.repetitions.min(2), ..shortened(32) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASKED: Effort =
        Effort { repetitions: 6, warmup_ns: 300_000_000, measure_ns: 100_000_000 };

    #[test]
    fn times_are_halved_before_repetitions_go() {
        let of = |events| {
            let Effort { repetitions, warmup_ns, measure_ns } =
                affordable(ASKED, events, 2, 10_000_000);
            (repetitions, warmup_ns / 1_000_000, measure_ns / 1_000_000)
        };
        assert_eq!(of(18_000), (6, 300, 100));
        assert_eq!(of(38_000), (6, 150, 50));
        assert_eq!(of(80_000), (6, 75, 25));
        assert_eq!(of(u64::MAX / 1000), (2, 20, 20));
    }

    proptest! {
        /// What costs more gets no more time, and nothing gets more than it asked for.
        #[test]
        fn dearer_rows_get_less(events in 1..10_000_000u64, more in 1..10_000_000u64) {
            let of = |events| affordable(ASKED, events, 2, 10_000_000);
            let (cheap, dear) = (of(events), of(events + more));
            prop_assert!(dear.warmup_ns <= cheap.warmup_ns && cheap.warmup_ns <= ASKED.warmup_ns);
            prop_assert!(dear.measure_ns <= cheap.measure_ns && cheap.repetitions <= 6);
        }
    }
}
