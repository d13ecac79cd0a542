// SPDX-License-Identifier: GPL-2.0-or-later
//! The reference for capacity-aware wake-up and for what it replaces
//! (docs/mechanisms/capacity.md), CPU by CPU as the text has it.

use perch_policy::{Era, Mode, Reason};

use crate::model::{Found, Model};

/// How well the wakee fits a CPU: §2's `util_fits_cpu`, with 1, -1 and 0 as there.
pub fn fits(m: &Model, cpu: usize) -> i32 {
    let (wakee, max) = (&m.s.wakee, m.shape.capacity(cpu));
    let (low, high) = wakee.uclamp;
    let fits = room(wakee.util, m.s.state.cpus[cpu].capacity);
    let capped = high <= max && (max, high) != (1024, 1024);
    match fits || capped {
        false => 0,
        true if wakee.util < low.min(high) && low.min(high) > max => -1,
        true => 1,
    }
}

/// A utilisation beside a margin of a fifth.
pub fn room(util: u32, capacity: u32) -> bool {
    u64::from(util) * 1280 < u64::from(capacity) * 1024
}

/// The wakee's utilisation between its clamps.
pub fn clamped(m: &Model) -> u32 {
    let (low, high) = m.s.wakee.uclamp;
    m.s.wakee.util.max(low).min(high)
}

impl Model<'_> {
    /// True if the wakee fits the CPU by the rule of the stock kernel's slow path.
    pub fn stock_fits(&self, cpu: usize) -> bool {
        match self.era {
            Era::V5_5 => room(clamped(self), self.s.state.cpus[cpu].capacity),
            _ => fits(self, cpu) == 1,
        }
    }
}

/// True if this kernel balances wake-ups like forks at all.
pub fn balances(m: &Model) -> bool {
    m.era == Era::V5_5 && m.capacity == Mode::Off && m.shape.asymmetric()
}

/// `wake_cap(p)` of §2.
pub fn wake_cap(m: &Model) -> bool {
    let kind = |cpu| m.shape.capacity(cpu);
    let low = kind(m.prev).min(kind(m.s.wake.this));
    let high = (0..m.shape.nr_cpus()).map(kind).max().expect("CPUs");
    high - low >= high / 8 && !room(clamped(m), low)
}

/// The CPUs among which the mechanism looks, if it is on and has to.
pub fn domain(m: &Model, cpu: usize) -> Option<Vec<usize>> {
    m.shape.asym[cpu].clone().filter(|_| m.capacity != Mode::Off)
}

fn siblings_idle(m: &Model, cpu: usize) -> bool {
    let core = &m.shape.core[cpu];
    core.iter().all(|&c| c == cpu || m.s.state.idle[c])
}

/// True if a candidate of steps 1 to 4 may end the search.
pub fn near(m: &Model, cpu: usize) -> bool {
    domain(m, cpu).is_none() || ((!m.shape.smt || siblings_idle(m, cpu)) && fits(m, cpu) == 1)
}

/// The CPUs of a set that the wakee may use, in ring order from target, which is the first.
fn ring(m: &Model, cpus: &[usize], target: usize) -> Vec<usize> {
    let n = m.shape.nr_cpus();
    let ring = (0..n).map(|i| (target + i) % n);
    ring.filter(|c| cpus.contains(c) && m.s.allowed[*c]).collect()
}

/// "Patched" of §2.
pub fn posted(m: &mut Model, cpus: &[usize], target: usize) -> Found {
    let util = clamped(m);
    let (mut best, mut best_capacity) = (None, 0);
    for cpu in ring(m, cpus, target) {
        m.examined += 1;
        if !m.idle_ok(cpu) {
            continue;
        }
        let capacity = m.s.state.cpus[cpu].capacity;
        if room(util, capacity) {
            return (cpu, Reason::CapacityFit);
        }
        if capacity > best_capacity {
            (best, best_capacity) = (Some(cpu), capacity);
        }
    }
    let best = best.map(|cpu| (cpu, Reason::CapacityBest));
    best.unwrap_or((target, Reason::TargetBusy))
}

/// "Later" of §2: 7.2's ranks and budget; perch has no budget, and a second choice.
pub fn search(m: &mut Model, cpus: &[usize], target: usize) -> Found {
    // The budget and the idle-core flag are those of the LLC where it has every capacity.
    let (scan, cores) = match m.s.state.asym.get(cpus) {
        Some(&asym) => asym,
        None => (m.s.state.scan[cpus[0]], m.s.state.idle_cores[cpus[0]]),
    };
    let hic = m.shape.smt && cores;
    let perch = m.capacity == Mode::Perch;
    let mut best: Option<(i32, u32, usize)> = None;
    let mut left = if perch { u32::MAX } else { scan };
    let mut looked = ring(m, cpus, target);
    if left == 0 {
        looked.clear();
    }
    for cpu in looked {
        if !hic {
            if left == 0 {
                break;
            }
            left -= 1;
        }
        m.examined += 1;
        if !m.idle_ok(cpu) {
            continue;
        }
        let core = !hic || siblings_idle(m, cpu);
        let mut rank = fits(m, cpu);
        let mut capacity = m.s.state.cpus[cpu].capacity;
        if rank == 1 && core {
            return (cpu, Reason::CapacityFit);
        }
        if rank == 1 {
            rank = -2;
        } else if rank == -1 {
            capacity = m.shape.capacity(cpu);
        }
        if core {
            rank -= 3;
        }
        let better = best.is_none_or(|(r, c, _)| rank < r || (rank == r && capacity > c));
        if better {
            best = Some((rank, capacity, cpu));
        }
    }
    let quiet = best.is_some_and(|(rank, ..)| rank <= -3);
    if hic && !quiet && (perch || scan > 0) {
        match m.s.state.asym.get_mut(cpus) {
            Some(asym) => asym.1 = false,
            None => m.s.state.idle_cores[cpus[0]] = false,
        }
    }
    match best {
        Some((-2, _, cpu)) => (cpu, Reason::CapacityFit),
        Some((.., cpu)) => (cpu, Reason::CapacityBest),
        None if perch => most_spare(m, cpus, target),
        None => (target, Reason::TargetBusy),
    }
}

fn most_spare(m: &Model, cpus: &[usize], target: usize) -> Found {
    let spare = |cpu: usize| {
        let state = &m.s.state.cpus[cpu];
        state.capacity.saturating_sub(state.util)
    };
    let mut ring = ring(m, cpus, target);
    // The first of equals: max_by_key would take the last.
    ring.reverse();
    let most = ring.into_iter().max_by_key(|&cpu| spare(cpu));
    // Not for less than an eighth of the largest CPU.
    let clearly = |&cpu: &usize| !m.s.allowed[target] || spare(cpu) > spare(target) + 128;
    match most.map(|cpu| if clearly(&cpu) { cpu } else { target }) {
        Some(cpu) => (cpu, Reason::CapacitySpare),
        None => (target, Reason::TargetBusy),
    }
}
