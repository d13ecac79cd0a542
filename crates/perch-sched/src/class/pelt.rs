// SPDX-License-Identifier: GPL-2.0-or-later
//! Per-entity load tracking: averages in which a period of 1024 µs counts half as much 32 periods
//! later (docs/mechanisms/stock.md#pelt), by a clock that counts work and not time.

/// The largest sum: a contribution of 1024 in every period of an endless past.
const SUM_MAX: u64 = 47742;

/// y^n as a fraction of 2^32, for n below 32, where y^32 = 1/2. The numbers are written down,
/// because checking at each use whether they have been computed took longer than using them.
const DECAY: [u64; 32] = [
    0x1_0000_0000,
    0x0_fa83_b2db,
    0x0_f525_7d15,
    0x0_efe4_b99b,
    0x0_eac0_c6e7,
    0x0_e5b9_06e7,
    0x0_e0cc_deec,
    0x0_dbfb_b797,
    0x0_d744_fcca,
    0x0_d2a8_1d91,
    0x0_ce24_8c15,
    0x0_c9b9_bd86,
    0x0_c567_2a11,
    0x0_c12c_4cca,
    0x0_bd08_a39f,
    0x0_b8fb_af47,
    0x0_b504_f333,
    0x0_b123_f581,
    0x0_ad58_3eea,
    0x0_a9a1_5ab4,
    0x0_a5fe_d6a9,
    0x0_a270_4303,
    0x0_9ef5_3260,
    0x0_9b8d_39b9,
    0x0_9837_f051,
    0x0_94f4_efa8,
    0x0_91c3_d373,
    0x0_8ea4_398b,
    0x0_8b95_c1e3,
    0x0_8898_0e80,
    0x0_85aa_c367,
    0x0_82cd_8698,
];

/// The factor by which a number of periods decays a sum: a half for every 32 of them, and y for
/// each of the rest.
#[derive(Clone, Copy)]
struct Fade {
    halvings: u32,
    rest: u64,
}

impl Fade {
    fn over(periods: u64) -> Fade {
        match periods {
            0..=2016 => {
                Fade { halvings: (periods / 32) as u32, rest: DECAY[periods as usize % 32] }
            }
            _ => Fade { halvings: 0, rest: 0 },
        }
    }

    fn of(self, value: u64) -> u64 {
        ((u128::from(value >> self.halvings) * u128::from(self.rest)) >> 32) as u64
    }
}

/// The averages of an entity or of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average {
    /// The time up to which the averages are updated, by the clock of the CPU, in steps of 1024 ns.
    pub updated_ns: u64,
    load_sum: u64,
    runnable_sum: u64,
    util_sum: u64,
    /// The part of the current period that is already counted, in microseconds (of 1024 ns).
    period_part: u32,
    /// The load average: the weight times the share of time in which the entity is runnable.
    pub load: u32,
    /// The runnable average: 1024 for one task that always is runnable.
    pub runnable: u32,
    /// The utilisation: 1024 for a task that always runs. On the most capable CPU it is the share
    /// of time in which the task runs.
    pub util: u32,
}

/// The activity of an entity since its averages were last updated.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// The weight while the entity is runnable, in units of which nice 0 has 1024; 0 if it is not
    /// runnable. For a queue it is the weight of all its entities.
    pub weight: u32,
    /// The number of runnable tasks: 0 or 1 for a task.
    pub runnable: u32,
    /// True if the entity ran.
    pub running: bool,
}

impl Activity {
    /// The activity of an entity that is not runnable.
    pub const NONE: Activity = Activity { weight: 0, runnable: 0, running: false };
}

/// The clock by which a CPU's averages are kept (`rq_clock_pelt`, since 5.1; read in 5.6, 6.1 and
/// 7.2). While a CPU of less than full capacity is busy, its clock goes slower by its capacity, so
/// that a second there counts as the work that was done. When the CPU goes idle, the clock catches
/// up, and the averages get the idle time that a CPU of full capacity would have had. A CPU whose
/// utilisation is full has no such idle time, and loses the difference for good. So a task that
/// sleeps enough has the same utilisation on every CPU. The utilisation of a task that always runs
/// grows to 1024 everywhere: it exceeds the CPU's capacity, which is how a task shows that it needs
/// more. SMT has no influence.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// The capacity of the CPU, in 1024ths.
    capacity: u32,
    idle: bool,
    /// The time at which the CPU last became idle or busy, in nanoseconds.
    since_ns: u64,
    /// The clock's reading at that time, before the lost time is taken off, in nanoseconds.
    then_ns: u64,
    lost_ns: u64,
}

impl Clock {
    /// Returns the clock of an idle CPU of the given capacity, at time 0.
    pub fn new(capacity: u32) -> Clock {
        Clock { capacity, idle: true, since_ns: 0, then_ns: 0, lost_ns: 0 }
    }

    /// Returns the clock's reading at `now_ns`, in nanoseconds.
    #[inline]
    pub fn read(&self, now_ns: u64) -> u64 {
        match self.capacity {
            1024 => now_ns,
            _ => self.raw(now_ns) - self.lost_ns,
        }
    }

    fn raw(&self, now_ns: u64) -> u64 {
        if self.idle {
            now_ns
        } else {
            self.then_ns + (now_ns - self.since_ns) * u64::from(self.capacity) / 1024
        }
    }

    /// Notes that the CPU becomes busy.
    pub fn start(&mut self, now_ns: u64) {
        (self.then_ns, self.since_ns) = (self.raw(now_ns), now_ns);
        self.idle = false;
    }

    /// Notes that the CPU becomes idle. `full` says that its utilisation is full, so that it loses
    /// the time by which the clock is behind.
    pub fn stop(&mut self, now_ns: u64, full: bool) {
        if full {
            self.lost_ns += now_ns - self.raw(now_ns);
        }
        self.idle = true;
    }
}

impl Average {
    /// Returns the averages of a task that starts with this load and utilisation.
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

    /// Returns whether [`Average::update`] would do anything. This question is cheaper than the
    /// description of an entity's activity, and most updates follow another of the same
    /// microsecond.
    #[inline]
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.updated_ns) >= 1024
    }

    /// Updates the averages to `now_ns`. Sums advance every 1024 ns, averages when a period ends,
    /// as the kernel's do. Returns whether the averages moved.
    #[inline]
    pub fn update(&mut self, now_ns: u64, did: Activity) -> bool {
        let delta = now_ns.saturating_sub(self.updated_ns) >> 10;
        if delta == 0 {
            return false;
        }
        self.updated_ns += delta << 10;
        let passed = delta + u64::from(self.period_part);
        if passed < 1024 {
            self.period_part = passed as u32;
            self.contribute(delta, did);
            return false;
        }
        self.advance(passed, did);
        true
    }

    /// Updates sums and averages when the end of a period has come. `passed` is the number of
    /// microseconds since the current period began, which is one period at least.
    fn advance(&mut self, passed: u64, did: Activity) {
        let (periods, left) = (passed / 1024, passed % 1024);
        let fade = Fade::over(periods);
        self.load_sum = fade.of(self.load_sum);
        self.runnable_sum = fade.of(self.runnable_sum);
        self.util_sum = fade.of(self.util_sum);
        let contribution = if did.weight > 0 || did.runnable > 0 {
            // The contribution is that of the rest of the first period, of the whole periods
            // between, and of the last one, which has begun.
            let first = fade.of(1024 - u64::from(self.period_part));
            first + SUM_MAX.saturating_sub(fade.of(SUM_MAX) + 1024) + left
        } else {
            passed - u64::from(self.period_part)
        };
        self.period_part = left as u32;
        self.contribute(contribution, did);
        let divider = SUM_MAX - 1024 + left;
        [self.load, self.runnable, self.util] =
            quotients([self.load_sum, self.runnable_sum, self.util_sum], divider);
    }

    #[inline]
    fn contribute(&mut self, contribution: u64, did: Activity) {
        self.load_sum += u64::from(did.weight) * contribution;
        self.runnable_sum += (u64::from(did.runnable) * contribution) << 10;
        if did.running {
            self.util_sum += contribution << 10;
        }
    }

    /// Returns whether a CPU has no idle time left that slow work could have used up, `self` and
    /// `other` being the averages of the two classes' queues.
    pub fn is_full_with(&self, other: &Average) -> bool {
        self.util_sum + other.util_sum >= (SUM_MAX - 1024) * 1024 - SUM_MAX
    }

    /// Updates a sleeper's averages to the time of its queue's last update.
    pub fn reach(&mut self, queue: &Average) {
        self.update(queue.updated_ns, Activity::NONE);
    }

    /// Adds a task's averages to those of its new queue; both are updated to the same time.
    pub fn attach(&mut self, task: &Average) {
        self.load_sum += task.load_sum;
        self.runnable_sum += task.runnable_sum;
        self.util_sum += task.util_sum;
        self.load += task.load;
        self.runnable += task.runnable;
        self.util += task.util;
    }

    /// Takes a task's averages out of those of its old queue.
    pub fn detach(&mut self, task: &Average) {
        self.load_sum = self.load_sum.saturating_sub(task.load_sum);
        self.runnable_sum = self.runnable_sum.saturating_sub(task.runnable_sum);
        self.util_sum = self.util_sum.saturating_sub(task.util_sum);
        self.load = self.load.saturating_sub(task.load);
        self.runnable = self.runnable.saturating_sub(task.runnable);
        self.util = self.util.saturating_sub(task.util);
    }

    /// Returns load, runnable and utilisation.
    pub fn averages(&self) -> [u32; 3] {
        [self.load, self.runnable, self.util]
    }

    /// Takes the load, runnable and utilisation of tasks that have left out of those of their queue. What
    /// these tasks did since their averages last moved stays in the queue's sums.
    pub fn remove(&mut self, [load, runnable, util]: [u32; 3]) {
        let divider = self.divider();
        self.load_sum = self.load_sum.saturating_sub(u64::from(load) * divider);
        self.runnable_sum = self.runnable_sum.saturating_sub(u64::from(runnable) * divider);
        self.util_sum = self.util_sum.saturating_sub(u64::from(util) * divider);
        self.load = self.load.saturating_sub(load);
        self.runnable = self.runnable.saturating_sub(runnable);
        self.util = self.util.saturating_sub(util);
    }

    /// Returns whether any sum is more than 0.
    pub fn is_any(&self) -> bool {
        self.load_sum + self.runnable_sum + self.util_sum > 0
    }

    fn divider(&self) -> u64 {
        SUM_MAX - 1024 + u64::from(self.period_part)
    }

    /// Returns the decayed time, in microseconds (of 1024 ns), for which a task of this weight was
    /// runnable, if the sum of loads is its own.
    pub fn runnable_periods(&self, weight: u32) -> i64 {
        (self.load_sum / u64::from(weight.max(1))) as i64
    }

    /// Changes the weight of a group's entity: its load keeps the share of time, and gets the new
    /// weight.
    pub fn reweigh(&mut self, from: u32, to: u32) {
        self.load_sum = self.load_sum / u64::from(from.max(1)) * u64::from(to);
        self.load = (self.load_sum / self.divider()) as u32;
    }

    /// Lets the averages of a group's entity follow those of its queue, which a task has joined, or
    /// left (`periods` is negative). `periods` is the decayed time for which the task was runnable,
    /// see [`Average::runnable_periods`]. The entity ran and waited for as long as its tasks did.
    /// The time for which any of its tasks was runnable is an estimate (`update_tg_cfs_load`).
    pub fn follow(&mut self, queue: &Average, queued: u64, weight: u32, periods: i64) {
        (self.util, self.util_sum) = (queue.util, queue.util_sum);
        (self.runnable, self.runnable_sum) = (queue.runnable, queue.runnable_sum);
        let own = self.load_sum / u64::from(weight.max(1));
        let runnable = match u64::try_from(periods) {
            Ok(more) => (own + more).min(self.divider()),
            Err(_) => own.min(queue.load_sum.checked_div(queued).unwrap_or(0)),
        };
        self.load_sum = runnable.max(self.util_sum >> 10) * u64::from(weight);
        self.load = (self.load_sum / self.divider()) as u32;
    }

    /// Returns the decayed sums behind load, runnable and utilisation, in 1024ths of what the
    /// averages count. The walk over the books compares them.
    pub fn sums(&self) -> [u64; 3] {
        [self.load_sum, self.runnable_sum, self.util_sum].map(|sum| sum * 1024 / SUM_MAX)
    }

    /// Aligns a task's period with that of its new queue before it is attached there: its averages
    /// stay, and its sums follow.
    pub fn align(&mut self, queue: &Average) {
        self.updated_ns = queue.updated_ns;
        self.period_part = queue.period_part;
        let divider = SUM_MAX - 1024 + u64::from(self.period_part);
        self.load_sum = u64::from(self.load) * divider;
        self.runnable_sum = u64::from(self.runnable) * divider;
        self.util_sum = u64::from(self.util) * divider;
    }
}

/// Returns the sums divided by `divider`, which has 16 bits, rounded down: one division and three
/// multiplications. The inverse 2^64 / divider is rounded up, and for a sum below 2^48 that error
/// never reaches the next whole number.
fn quotients(sums: [u64; 3], divider: u64) -> [u32; 3] {
    debug_assert!(divider < 1 << 16);
    if sums.iter().any(|&sum| sum >= 1 << 48) {
        return sums.map(|sum| (sum / divider) as u32);
    }
    let inverse = u128::from(u64::MAX / divider + 1);
    sums.map(|sum| ((u128::from(sum) * inverse) >> 64) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::{RngCore, SeedableRng};

    #[test]
    fn decay_is_the_32nd_root_of_a_half() {
        for (n, &y) in DECAY.iter().enumerate() {
            assert_eq!(y, (libm::exp2(-(n as f64) / 32.0) * 4_294_967_296.0) as u64, "y^{n}");
        }
    }

    #[test]
    fn quotients_are_rounded_down() {
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
        for _ in 0..100_000 {
            let divider = SUM_MAX - 1024 + rng.next_u64() % 1024;
            let sum = rng.next_u64() >> (rng.next_u64() % 40);
            let whole = sum - sum % divider;
            for sums in [[sum, whole, whole.saturating_sub(1)], [whole, 0, divider - 1]] {
                let expected = sums.map(|sum| (sum / divider) as u32);
                assert_eq!(quotients(sums, divider), expected, "{sums:?} / {divider}");
            }
        }
    }

    const BUSY: Activity = Activity { weight: 1024, runnable: 1, running: true };

    #[test]
    fn always_running_reaches_1024_and_halves_in_32_periods() {
        let mut average = Average::default();
        average.update(1 << 30, BUSY);
        assert!((1020..=1024).contains(&average.util), "{average:?}");
        assert!((1020..=1024).contains(&average.load), "{average:?}");
        let before = average.util;
        average.update((1 << 30) + 32 * 1024 * 1024, Activity::NONE);
        assert!(average.util.abs_diff(before / 2) <= 2, "{average:?}");
    }

    #[test]
    fn one_long_step_is_many_short_ones() {
        let (mut long, mut short) = (Average::default(), Average::default());
        // These are 20 whole periods, because averages move when a period ends.
        for i in 1..=4096 {
            short.update(i * 5 * 1024, BUSY);
        }
        long.update(4096 * 5 * 1024, BUSY);
        assert!(long.util.abs_diff(short.util) <= 4, "{long:?} {short:?}");
    }

    /// Returns the averages of a CPU that has `work` nanoseconds of work (at full capacity) to do
    /// in every `period`, up to the time `until`.
    fn utilised(capacity: u32, work: u64, period: u64, until: u64) -> Average {
        let mut clock = Clock::new(capacity);
        let mut average = Average::default();
        let busy_ns = (work * 1024 / u64::from(capacity)).min(period);
        for start in (0..until).step_by(period as usize) {
            average.update(clock.read(start), Activity::NONE);
            clock.start(start);
            for at in [start + busy_ns / 2, start + busy_ns] {
                average.update(clock.read(at), BUSY);
            }
            if busy_ns < period {
                clock.stop(start + busy_ns, average.is_full_with(&Average::default()));
            }
        }
        average
    }

    #[test]
    fn what_sleeps_enough_has_the_same_utilisation_everywhere() {
        const MS: u64 = 1_000_000;
        for work in [2 * MS, 3 * MS, 4 * MS] {
            // Both averages are read at the start of a sleep, so that their oscillation is at the
            // same point.
            let full = utilised(1024, work, 10 * MS, 3000 * MS);
            for capacity in [446, 512, 800] {
                let slow = utilised(capacity, work, 10 * MS, 3000 * MS);
                assert!(full.util.abs_diff(slow.util) <= 6, "{capacity}: {slow:?}, not {full:?}");
            }
        }
    }

    #[test]
    fn who_always_runs_grows_to_1024_at_the_pace_of_its_capacity() {
        const MS: u64 = 1024 * 1024;
        let slow = utilised(512, u64::MAX >> 20, 8 * MS, 64 * MS);
        let full = utilised(1024, u64::MAX >> 20, 8 * MS, 32 * MS);
        assert!(full.util.abs_diff(512) <= 12, "{full:?}");
        assert!(slow.util.abs_diff(full.util) <= 12, "{slow:?}, not {full:?}");
        let long = utilised(446, u64::MAX >> 20, 8 * MS, 4000 * MS);
        assert!(long.util >= 1020 && long.load >= 1020, "{long:?}");
    }

    #[test]
    fn a_clock_goes_slowly_catches_up_and_loses() {
        let mut clock = Clock::new(512);
        clock.start(1000);
        assert_eq!([1000, 2000].map(|at| clock.read(at)), [1000, 1500]);
        clock.stop(2000, false);
        assert_eq!(clock.read(2000), 2000);
        clock.start(3000);
        assert_eq!(clock.read(4000), 3500);
        clock.stop(4000, true);
        assert_eq!([4000, 5000].map(|at| clock.read(at)), [3500, 4500]);
        clock.start(5000);
        assert_eq!(clock.read(6000), 5000);
    }
}
