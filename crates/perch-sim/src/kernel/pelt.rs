// SPDX-License-Identifier: GPL-2.0-only
//! Per-entity load tracking: averages in which a 1024 µs period counts half as much 32 periods
//! later (mechanisms.md §8, "PELT").

use std::sync::LazyLock;

/// The largest sum: a contribution of 1024 in every period there ever was.
const SUM_MAX: u64 = 47742;

/// y^n as a fraction of 2^32, for n below 32, where y^32 = 1/2.
static DECAY: LazyLock<[u32; 32]> = LazyLock::new(|| {
    let mut table = [u32::MAX; 32];
    for (n, entry) in table.iter_mut().enumerate().skip(1) {
        *entry = (libm::exp2(-(n as f64) / 32.0) * 4_294_967_296.0) as u32;
    }
    table
});

/// `value` after `periods` more periods.
fn decay(value: u64, periods: u64) -> u64 {
    if periods > 63 * 32 {
        return 0;
    }
    let halved = value >> (periods / 32);
    let rest = (periods % 32) as usize;
    if rest == 0 {
        return halved;
    }
    ((u128::from(halved) * u128::from(DECAY[rest])) >> 32) as u64
}

/// The averages of a task or of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average {
    /// When they were last brought up to date, nanoseconds, in steps of 1024.
    pub updated_ns: u64,
    load_sum: u64,
    runnable_sum: u64,
    util_sum: u64,
    /// Part of the running period that is already counted, microseconds (of 1024 ns).
    period_part: u32,
    /// Load average: weight times the share of time spent runnable.
    pub load: u32,
    /// Runnable average: 1024 for one task that always is runnable.
    pub runnable: u32,
    /// Utilisation: 1024 for one that always runs on the most capable CPU.
    pub util: u32,
}

/// What an entity did since its averages were brought up to date.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// Weight while runnable, in nice-0 units of 1024; 0 when not runnable. For a queue the
    /// weight of all its tasks.
    pub weight: u32,
    /// Runnable tasks: 0 or 1 for a task.
    pub runnable: u32,
    /// Whether it ran.
    pub running: bool,
    /// Speed at which it ran, 1024 at most: capacity (and SMT is not counted, as in the kernel).
    pub speed_1024: u32,
}

impl Average {
    /// Averages of a task that starts with these.
    pub fn starting(now_ns: u64, load: u32, util: u32) -> Average {
        Average {
            updated_ns: now_ns & !1023,
            load_sum: u64::from(load) * (SUM_MAX - 1024),
            runnable_sum: u64::from(util) * (SUM_MAX - 1024),
            util_sum: u64::from(util) * (SUM_MAX - 1024),
            period_part: 0,
            load,
            runnable: util,
            util,
        }
    }

    /// Brings the averages up to `now_ns`. Sums advance every 1024 ns, averages when a period
    /// ends, as the kernel's do. Returns whether the averages moved.
    #[inline]
    pub fn update(&mut self, now_ns: u64, did: Activity) -> bool {
        let delta = now_ns.saturating_sub(self.updated_ns) >> 10;
        if delta == 0 {
            return false;
        }
        self.updated_ns += delta << 10;
        self.advance(delta, did)
    }

    fn advance(&mut self, delta: u64, did: Activity) -> bool {
        let part = u64::from(self.period_part);
        let periods = (delta + part) / 1024;
        let mut contribution = delta;
        if periods > 0 {
            self.load_sum = decay(self.load_sum, periods);
            self.runnable_sum = decay(self.runnable_sum, periods);
            self.util_sum = decay(self.util_sum, periods);
            let left = (delta + part) % 1024;
            if did.weight > 0 || did.runnable > 0 {
                // The rest of the first period, the whole ones between, the begun last one.
                let between = SUM_MAX.saturating_sub(decay(SUM_MAX, periods) + 1024);
                let first = decay(1024 - part, periods);
                contribution = first + between + left;
            }
            self.period_part = left as u32;
        } else {
            self.period_part += delta as u32;
        }
        if did.weight > 0 {
            self.load_sum += u64::from(did.weight) * contribution;
        }
        if did.runnable > 0 {
            self.runnable_sum += (u64::from(did.runnable) * contribution) << 10;
        }
        if did.running {
            self.util_sum += contribution * u64::from(did.speed_1024);
        }
        if periods > 0 {
            let divider = SUM_MAX - 1024 + u64::from(self.period_part);
            self.load = (self.load_sum / divider) as u32;
            self.runnable = (self.runnable_sum / divider) as u32;
            self.util = (self.util_sum / divider) as u32;
        }
        periods > 0
    }

    /// Adds a task's averages to its new queue's, both brought up to the same time.
    pub fn attach(&mut self, task: &Average) {
        self.load_sum += task.load_sum;
        self.runnable_sum += task.runnable_sum;
        self.util_sum += task.util_sum;
        self.load += task.load;
        self.runnable += task.runnable;
        self.util += task.util;
    }

    /// Takes a task's averages out of its old queue's.
    pub fn detach(&mut self, task: &Average) {
        self.load_sum = self.load_sum.saturating_sub(task.load_sum);
        self.runnable_sum = self.runnable_sum.saturating_sub(task.runnable_sum);
        self.util_sum = self.util_sum.saturating_sub(task.util_sum);
        self.load = self.load.saturating_sub(task.load);
        self.runnable = self.runnable.saturating_sub(task.runnable);
        self.util = self.util.saturating_sub(task.util);
    }

    /// The decayed sums behind load, runnable and utilisation, in 1024ths of what the averages
    /// count; for the walk over the books.
    pub fn sums(&self) -> [u64; 3] {
        [self.load_sum, self.runnable_sum, self.util_sum].map(|sum| sum * 1024 / SUM_MAX)
    }

    /// Lines a task's period up with its new queue's before it is attached there: its averages
    /// stay, its sums follow.
    pub fn align(&mut self, queue: &Average) {
        self.updated_ns = queue.updated_ns;
        self.period_part = queue.period_part;
        let divider = SUM_MAX - 1024 + u64::from(self.period_part);
        self.load_sum = u64::from(self.load) * divider;
        self.runnable_sum = u64::from(self.runnable) * divider;
        self.util_sum = u64::from(self.util) * divider;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUSY: Activity = Activity { weight: 1024, runnable: 1, running: true, speed_1024: 1024 };
    const GONE: Activity = Activity { weight: 0, runnable: 0, running: false, speed_1024: 1024 };

    #[test]
    fn always_running_reaches_1024_and_halves_in_32_periods() {
        let mut average = Average::default();
        average.update(1 << 30, BUSY);
        assert!((1020..=1024).contains(&average.util), "{average:?}");
        assert!((1020..=1024).contains(&average.load), "{average:?}");
        let before = average.util;
        average.update((1 << 30) + 32 * 1024 * 1024, GONE);
        assert!(average.util.abs_diff(before / 2) <= 2, "{average:?}");
    }

    #[test]
    fn one_long_step_is_many_short_ones() {
        let (mut long, mut short) = (Average::default(), Average::default());
        for i in 1..=4000 {
            short.update(i * 5 * 1024, BUSY);
        }
        long.update(4000 * 5 * 1024, BUSY);
        assert!(long.util.abs_diff(short.util) <= 4, "{long:?} {short:?}");
    }

    #[test]
    fn half_the_capacity_is_half_the_utilisation_but_full_load() {
        let mut average = Average::default();
        average.update(1 << 30, Activity { speed_1024: 512, ..BUSY });
        assert!(average.util.abs_diff(512) <= 4 && average.load >= 1020, "{average:?}");
    }
}
