// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of the utilisation that the BPF program tracks: bpf/follow/pelt.h, compiled natively.

/// `PERCH_PELT_SHIFT`.
const SHIFT: u32 = 16;
/// Units of time in a half-life.
const HALF_LIFE: u64 = 32 * 1024;

unsafe extern "C" {
    fn perch_pelt_native(mean: u32, to: u32, units: u64) -> u32;
    fn perch_util_est_native(est: u32, util: u32) -> u32;
}

fn pelt(mean: u32, to: u32, units: u64) -> u32 {
    // SAFETY: a function of its arguments.
    unsafe { perch_pelt_native(mean, to, units) }
}

fn est(est: u32, util: u32) -> u32 {
    // SAFETY: a function of its arguments.
    unsafe { perch_util_est_native(est, util) }
}

fn util(value: u32) -> u32 {
    value << SHIFT
}

/// The mean that the kernel's PELT computes, period by period.
fn by_periods(mean: f64, to: f64, periods: u64) -> f64 {
    let left = 0.5f64.powf(1.0 / 32.0);
    (0..periods).fold(mean, |mean, _| mean * left + to * (1.0 - left))
}

#[test]
fn it_halves_the_way_in_32_periods() {
    assert_eq!(pelt(util(1024), 0, HALF_LIFE), util(512));
    assert_eq!(pelt(util(1024), 0, 3 * HALF_LIFE), util(128));
    assert_eq!(pelt(0, util(446), HALF_LIFE), util(223));
    assert_eq!(pelt(util(100), util(100), 12345), util(100));
    assert_eq!(pelt(util(100), util(900), 0), util(100));
}

#[test]
fn it_is_the_kernel_s_for_whole_periods_and_between_them_for_parts() {
    for (mean, to) in [(0, 1024), (1024, 0), (300, 446), (1024, 250)] {
        let mut last = util(mean);
        for units in 0..40 * 1024 {
            let now = pelt(util(mean), util(to), units);
            // It goes one way, and never beyond.
            let (low, high) = (last.min(util(to)), last.max(util(to)));
            assert!(
                (low.saturating_sub(1)..=high).contains(&now),
                "{mean} to {to}: {now} after {last} at {units}"
            );
            last = now;
            if units % 1024 == 0 {
                let expected = by_periods(mean.into(), to.into(), units / 1024);
                let error = f64::from(now) / f64::from(1 << SHIFT) - expected;
                assert!(error.abs() < 0.01, "{mean} to {to}: {error} at {units}");
            }
        }
    }
}

#[test]
fn nothing_is_left_in_the_end_and_nothing_overflows() {
    for units in [1 << 20, (1 << 20) + 1, u64::MAX >> 10, u64::MAX] {
        assert_eq!(pelt(util(1024), 0, units), 0);
        assert_eq!(pelt(0, util(1024), units), util(1024));
        assert_eq!(pelt(util(1024), util(1024), units), util(1024));
    }
}

#[test]
fn a_periodic_task_settles_at_its_share_of_the_capacity() {
    // A quarter of the time on a CPU of capacity 446, in pieces of 16 us.
    let mut mean = 0;
    let (mut least, mut most) = (u32::MAX, 0);
    for cycle in 0..4000 {
        mean = pelt(mean, util(446), 250);
        most = if cycle > 3000 { most.max(mean) } else { 0 };
        mean = pelt(mean, 0, 750);
        least = if cycle > 3000 { least.min(mean) } else { u32::MAX };
    }
    let expected = 446.0 / 4.0;
    for bound in [least, most] {
        let value = f64::from(bound) / f64::from(1 << SHIFT);
        assert!((value / expected - 1.0).abs() < 0.03, "{value}");
    }
}

#[test]
fn the_estimate_follows_up_at_once_and_down_by_a_quarter() {
    assert_eq!(est(0, 300), 300);
    assert_eq!(est(300, 301), 301);
    assert_eq!(est(400, 200), 350);
    // Less than one per cent of 1024 is let go.
    assert_eq!(est(400, 391), 400);
    let down = (0..100).fold(1024, |mean, _| est(mean, 100));
    assert!((100..=110).contains(&down), "{down}");
}
