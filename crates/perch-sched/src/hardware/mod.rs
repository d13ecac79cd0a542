// SPDX-License-Identifier: GPL-2.0-or-later
//! The costs that the hardware charges: for distance, sharing, idle states and cold caches. The
//! values come from [`perch_machine::Hardware`]; none depends on which mechanism is on.

pub(crate) mod c2c;
mod lines;
mod llc;

use perch_machine::{Cpu, Distance, Footprint, Hardware, Machine};
use perch_policy::SetView;

pub use c2c::{C2c, Line, Row, User};
pub use lines::{Access, Field, Layouts, Lines, Symbol};
pub use llc::{Llcs, SharedSet, Use};

/// A machine's costs, in the form in which the kernel model asks for them.
#[derive(Debug)]
pub struct Costs {
    hardware: Hardware,
    cpus: Vec<Cpu>,
    l1_lines: u64,
    l2_lines: u64,
}

impl Costs {
    /// Returns the costs of a machine.
    pub fn new(machine: &Machine) -> Costs {
        let hardware = machine.hardware.clone();
        let line = u64::from(hardware.line_bytes.max(1));
        Costs {
            cpus: machine.cpus.clone(),
            l1_lines: hardware.l1d_bytes / line,
            l2_lines: hardware.l2_bytes / line,
            hardware,
        }
    }

    /// Returns the distance between two CPUs.
    pub fn distance(&self, a: usize, b: usize) -> Distance {
        if a == b { Distance::Cpu } else { self.cpus[a].distance(&self.cpus[b]) }
    }

    /// Returns the time in which `to` fetches `lines` lines that `from` modified last, in
    /// nanoseconds.
    pub fn transfer_ns(&self, lines: u32, from: usize, to: usize) -> u64 {
        u64::from(lines) * self.line_ns(from, to)
    }

    /// Returns the time of a hit in the last-level cache, in nanoseconds.
    pub fn llc_hit_ns(&self) -> u64 {
        self.hardware.llc_hit_ns.into()
    }

    /// Returns the time from the sending of an interrupt to its handler on a CPU that is not idle,
    /// in nanoseconds.
    pub fn ipi_ns(&self, from: usize, to: usize) -> u64 {
        self.hardware.ipi_ns.at(self.distance(from, to)).into()
    }

    /// Returns the time of `instructions` instructions that wait for nothing, in nanoseconds.
    pub fn instructions_ns(&self, instructions: u32) -> u64 {
        let per_ms = u64::from(self.hardware.core.instructions_per_100_cycles)
            * u64::from(self.hardware.frequency_mhz)
            * 10;
        u64::from(instructions) * 1_000_000 / per_ms
    }

    /// Returns the time of a switch between tasks, in nanoseconds.
    pub fn context_switch_ns(&self) -> u64 {
        self.hardware.context_switch_ns.into()
    }

    /// Returns the time from a task's call of the scheduler until its CPU, which has no other,
    /// counts as idle, in nanoseconds.
    #[inline]
    pub fn switch_out_ns(&self) -> u64 {
        self.hardware.switch_out_ns.into()
    }

    /// Returns the time of a switch from the idle task to a wakee, once it is enqueued, in
    /// nanoseconds.
    pub fn switch_in_ns(&self) -> u64 {
        self.hardware.switch_in_ns.unwrap_or(self.hardware.context_switch_ns).into()
    }

    /// Returns the waker's part of the time of a wake-up whose scans examined `examined` CPUs, in
    /// nanoseconds.
    pub fn wake_ns(&self, examined: u32) -> u64 {
        u64::from(self.hardware.wake_ns) + self.examine_ns(examined)
    }

    /// Returns how long the waker's part of a wake-up takes from its look at the CPU that it chooses until
    /// others see that CPU taken, in nanoseconds: longer if the wakee `moves`
    /// (docs/calibration.md#what-a-move-costs).
    pub fn after_look_ns(&self, moves: bool) -> u64 {
        u64::from(self.hardware.wake_ns) * if moves { 3 } else { 1 } / 5
    }

    /// Returns the time in which a scan examines `cpus` CPUs, in nanoseconds.
    pub fn examine_ns(&self, cpus: u32) -> u64 {
        u64::from(cpus) * u64::from(self.hardware.examine_ns)
    }

    /// Returns the time of one pass of the balancer over `cpus` CPUs, in nanoseconds.
    pub fn balance_ns(&self, cpus: u32) -> u64 {
        u64::from(self.hardware.balance_ns) + self.examine_ns(cpus)
    }

    /// Returns the time in which a pass of the balancer on `cpu` fetches the lines of the run queues of
    /// `span`, if all their CPUs are busy, in nanoseconds.
    pub fn balance_lines_ns(&self, cpu: usize, span: SetView<'_>) -> u64 {
        let lines = self.hardware.balance_lines;
        let others = span.iter().filter(|&other| other != cpu);
        others.map(|other| self.transfer_ns(lines, other, cpu)).sum()
    }

    /// Returns the time that a tick takes from the CPU that it interrupts, in nanoseconds; 0 if the
    /// kernel's own work is free.
    pub fn tick_ns(&self) -> u64 {
        self.hardware.tick_ns.into()
    }

    /// Returns the exit latency, in nanoseconds, of the deepest idle state that pays for an idle
    /// period of `expected_ns`: the state that a governor that predicts well would choose.
    pub fn idle_exit_ns(&self, expected_ns: u64) -> u32 {
        let states = &self.hardware.idle_states;
        let worth = states.iter().rev().find(|s| u64::from(s.residency_ns) <= expected_ns);
        worth.or(states.first()).map_or(0, |s| s.exit_ns)
    }

    /// Returns the speed of a CPU of this capacity, in 1024ths, while `busy_siblings` other threads
    /// of its core run too.
    pub fn speed_1024(&self, capacity: u32, busy_siblings: u32) -> u32 {
        let (stall, rest) = (self.hardware.stall_pct, 100 - self.hardware.stall_pct);
        let mut speed = 1024 * 100 * capacity / (stall * capacity + rest * 1024);
        if busy_siblings > 0 {
            speed = speed * self.hardware.smt_throughput_1024 / 1024;
        }
        // A third and a fourth thread share the throughput that two would have.
        if busy_siblings > 1 {
            speed = speed * 2 / (busy_siblings + 1);
        }
        speed.max(1)
    }

    /// Returns the time, in nanoseconds, to bring the `footprint` of a task back into the
    /// private caches of `cpu`. `others` is the number of lines that other tasks used there since
    /// the task left, if it left that CPU. A task that comes from elsewhere fetches its own lines
    /// from `warm`, and finds those that are `common`.
    pub fn refill_ns(
        &self,
        footprint: Footprint,
        warm: Option<usize>,
        cpu: usize,
        others: u64,
    ) -> u64 {
        let Footprint { lines, common } = footprint;
        let alone = match warm {
            None => u64::from(lines) * u64::from(self.hardware.memory_ns.0),
            Some(warm) if warm != cpu => self.transfer_ns(lines - common, warm, cpu),
            Some(_) => self.lost_ns(u64::from(lines), others),
        };
        alone / self.refills_at_once()
    }

    /// Returns the number of lines that a task that comes back fetches at once, because these
    /// fetches do not wait for one another. The lines of a message do not overlap in this way,
    /// because each is the key to the next.
    fn refills_at_once(&self) -> u64 {
        self.hardware.core.misses_at_once.into()
    }

    /// Returns the time, in nanoseconds, to bring back those of `lines` lines that the caches of a
    /// CPU lost while other tasks used `others` lines there, one line after the other.
    fn lost_ns(&self, lines: u64, others: u64) -> u64 {
        let lost = |capacity| lines - survivors(lines, others, capacity);
        let (from_l2, from_llc) = (lost(self.l1_lines), lost(self.l2_lines));
        let l2_ns = u64::from(self.hardware.transfer_ns.at(Distance::Cpu));
        let llc_ns = u64::from(self.hardware.llc_hit_ns);
        from_l2.saturating_sub(from_llc) * l2_ns + from_llc * llc_ns
    }

    /// Returns the time to fetch one line that `from` modified last, in nanoseconds.
    fn line_ns(&self, from: usize, to: usize) -> u64 {
        self.hardware.transfer_ns.at(self.distance(from, to)).into()
    }
}

/// e^(-i/16) in 65536ths, for i from 0 to 127. The values are written down, because every switch
/// between tasks looks one up twice.
const SURVIVAL: [u32; 128] = [
    65536, 61565, 57835, 54331, 51039, 47947, 45042, 42313, 39749, 37341, 35078, 32953, 30957,
    29081, 27319, 25664, 24109, 22648, 21276, 19987, 18776, 17638, 16570, 15566, 14623, 13737,
    12904, 12122, 11388, 10698, 10050, 9441, 8869, 8331, 7827, 7352, 6907, 6488, 6095, 5726, 5379,
    5053, 4747, 4459, 4189, 3935, 3697, 3473, 3262, 3065, 2879, 2704, 2541, 2387, 2242, 2106, 1979,
    1859, 1746, 1640, 1541, 1447, 1360, 1277, 1200, 1127, 1059, 995, 934, 878, 824, 774, 728, 683,
    642, 603, 566, 532, 500, 470, 441, 414, 389, 366, 343, 323, 303, 285, 267, 251, 236, 222, 208,
    195, 184, 172, 162, 152, 143, 134, 126, 118, 111, 104, 98, 92, 86, 81, 76, 72, 67, 63, 59, 56,
    52, 49, 46, 43, 41, 38, 36, 34, 31, 30, 28, 26, 24, 23,
];

/// Returns how many of `lines` are still in a cache of `capacity` lines after others used `others`
/// lines.
///
/// Each line that another task uses takes the place of one that it could not choose: survivors fall
/// off exponentially, as the footprint models of Thiebaut and Stone ("Footprints in the Cache",
/// 1987) have it for a set-associative cache. Without a cache no line survives.
fn survivors(lines: u64, others: u64, capacity: u64) -> u64 {
    if capacity == 0 {
        return 0;
    }
    // These are sixteenths of the capacity, and 256ths of each sixteenth for the line between two
    // entries.
    let x = others.saturating_mul(16 * 256) / capacity;
    let (i, part) = ((x >> 8) as usize, x & 255);
    if i + 1 >= SURVIVAL.len() {
        return 0;
    }
    let (high, low) = (u64::from(SURVIVAL[i]), u64::from(SURVIVAL[i + 1]));
    (lines * (high * (256 - part) + low * part)) >> 24
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn survival_is_exponential() {
        for (i, &survives) in SURVIVAL.iter().enumerate() {
            let exact = libm::exp(-(i as f64) / 16.0) * 65536.0;
            assert_eq!(survives, exact as u32, "{i}");
        }
    }

    #[test]
    fn lines_survive_until_others_have_filled_the_cache() {
        assert_eq!(survivors(1000, 0, 1024), 1000);
        assert_eq!(survivors(1000, 1 << 40, 1024), 0);
        assert_eq!(survivors(1000, 0, 0), 0);
        // Other lines that would fill the cache once leave 1/e.
        assert!((365..=369).contains(&survivors(1000, 1024, 1024)));
        let counts: Vec<u64> = (0..100).map(|d| survivors(1000, d * 100, 1024)).collect();
        assert!(counts.is_sorted_by(|a, b| a >= b), "{counts:?}");
    }

    #[test]
    fn a_task_brings_its_own_lines_and_finds_the_common_ones() {
        let machine = perch_machine::library::load("kunpeng920").expect("a machine of the library");
        let costs = Costs::new(&machine);
        let refill = |footprint, warm, others| costs.refill_ns(footprint, warm, 0, others);
        let netperf = Footprint { lines: 770, common: 624 };
        // From another CPU, near or far, come only its own.
        for from in [1, 5, 40, 100].map(Some) {
            assert_eq!(refill(netperf, from, 0), refill(146.into(), from, 0));
        }
        // Where other tasks have run since, all have to come back, and so they do at the first run.
        for (warm, others) in [(Some(0), 0), (Some(0), 5000), (Some(0), 1 << 40), (None, 0)] {
            assert_eq!(refill(netperf, warm, others), refill(770.into(), warm, others));
        }
    }
}
