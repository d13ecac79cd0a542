// SPDX-License-Identifier: GPL-2.0-or-later
//! The balancer of 3.4, which knows nothing of utilisation: it compares groups by the weight that
//! is queued, now and on average (docs/mechanisms/stock.md#34; read in 3.4).
//!
//! The model is approximate: power saving and asymmetric packing are left out; a CPU that was idle
//! brings its averages up to date when another CPU reads them, not when it is balanced for.

use perch_policy::Level;

use super::imbalance::{Idle, Imbalance, LbEnv, Migrate};
use crate::core::Sched;

/// The scale of power, and of load per power: 1024 is the power of a core of its own.
const SCALE: u64 = 1024;

/// The power of two threads of a core together (`smt_gain`).
const SMT_GAIN: u64 = 1178;

/// A group of a domain.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// The sum of its CPUs' loads, taken low for other groups and high for the local one.
    load: u64,
    /// The load per power.
    per_power: u64,
    power: u64,
    running: u64,
    weight_now: u64,
    capacity: u64,
    has_room: bool,
    idle: u32,
    cpus: u32,
    /// True if one of its CPUs has much more load than another.
    uneven: bool,
}

impl Group {
    /// Returns the mean weight of the group's tasks.
    fn each(&self) -> u64 {
        self.weight_now.checked_div(self.running).unwrap_or(0)
    }
}

impl Sched<'_> {
    /// Updates 3.4's averages of a busy CPU at a tick.
    pub(crate) fn tick_weights(&mut self, cpu: usize) {
        let tick = self.rq.now() / self.rq.tick_ns();
        let weight = self.rq.queued_weight(cpu);
        self.balance.cpus[cpu].weights.advance(tick, weight);
    }

    /// Returns the power of `cpu`, 1024 for a core of its own.
    fn power(&self, cpu: usize) -> u64 {
        let topology = self.host.topology();
        let threads = u64::from(topology.core_span(cpu).weight());
        let of_core = if threads > 1 { SMT_GAIN / threads } else { SCALE };
        (of_core * u64::from(self.host.cpu(cpu).capacity) / SCALE).max(1)
    }

    /// Returns the index of the average by which a pass compares groups.
    fn weight_index(&self, number: usize, idle: Idle) -> usize {
        match (self.host.topology().domain(number).level(), idle) {
            (Level::Smt, _) | (_, Idle::Newly) => 0,
            (Level::Numa, Idle::Busy) => 3,
            (Level::Numa, Idle::Due) => 2,
            (_, Idle::Busy) => 2,
            (_, Idle::Due) => 0,
        }
    }

    fn weigh(&mut self, number: usize, g: usize, local: bool, index: usize) -> Group {
        let topology = self.host.topology().clone();
        let set = topology.domain(number).group(g);
        let mut group = Group { cpus: set.weight(), ..Group::default() };
        let (mut most, mut least, mut most_running) = (0, u64::MAX, 0);
        for cpu in set.iter() {
            let now = self.rq.queued_weight(cpu);
            let mut load = now;
            if index > 0 {
                let tick = self.rq.now() / self.rq.tick_ns();
                let weights = &mut self.balance.cpus[cpu].weights;
                if self.rq.current(cpu).is_none() {
                    weights.advance(tick, now);
                }
                let average = weights.averages[index - 1];
                load = if local { now.max(average) } else { now.min(average) };
            }
            let running = u64::from(self.rq.nr(cpu));
            if load > most {
                (most, most_running) = (load, running);
            }
            least = least.min(load);
            group.load += load;
            group.running += running;
            group.weight_now += now;
            group.power += self.power(cpu);
            group.idle += u32::from(self.host.is_idle(cpu));
        }
        group.per_power = group.load * SCALE / group.power;
        group.uneven = !local && most - least >= group.each() && most_running > 1;
        group.capacity = ((group.power + SCALE / 2) / SCALE).max(1);
        group.has_room = group.capacity > group.running;
        group
    }

    /// Examines every group of a domain, the local one first, and returns from which one to take
    /// how much (`find_busiest_group`).
    pub(super) fn find_by_weight(&mut self, env: &LbEnv) -> Option<Imbalance> {
        let &LbEnv { cpu, level, domain: number, idle, .. } = env;
        let state = &self.balance.cpus[cpu].domains[level];
        let (local, prefer) = (state.local_group, state.prefer_sibling);
        let below = level.checked_sub(1).map(|b| self.balance.cpus[cpu].domains[b].domain);
        let topology = self.host.topology().clone();
        let level = |number: usize| topology.domain(number).level();
        // 3.4 does not ask for tasks to be spread over cores (the level below is SMT), only over
        // dies.
        let prefer = prefer && below.is_some_and(|b| level(b) != Level::Smt);
        let index = self.weight_index(number, idle);
        let here = self.weigh(number, local, true, index);
        let (mut load, mut power) = (here.load, here.power);
        let mut busiest: Option<(usize, Group)> = None;
        let groups = topology.domain(number).groups();
        for g in (local + 1..groups).chain(0..local) {
            let mut group = self.weigh(number, g, false, index);
            load += group.load;
            power += group.power;
            if prefer && here.has_room {
                group.capacity = group.capacity.min(1);
            }
            let more = group.per_power > busiest.map_or(0, |(_, b)| b.per_power);
            if more && (group.running > group.capacity || group.uneven) {
                busiest = Some((g, group));
            }
        }
        let (group, there) = busiest.filter(|(_, b)| b.running > 0)?;
        let mean = load * SCALE / power;
        let pct = u64::from(self.rules().imbalance_pct(&topology.domain(number)));
        let forced = there.uneven || idle == Idle::Newly && here.has_room && !there.has_room;
        if !forced {
            let enough = match idle {
                Idle::Due => here.idle > there.idle + 1 || there.running > there.cpus.into(),
                _ => 100 * there.per_power > pct * here.per_power,
            };
            if here.per_power >= there.per_power || here.per_power >= mean || !enough {
                return None;
            }
        }
        let amount = calculate(&here, &there, mean);
        (amount > 0).then_some(Imbalance { group, migrate: Migrate::Load, amount: amount as i64 })
    }
}

/// Returns the weight that should move (`calculate_imbalance`).
fn calculate(here: &Group, there: &Group, mean: u64) -> u64 {
    let mut each = there.each();
    if there.uneven {
        each = each.min(mean);
    }
    if there.per_power < mean {
        return small(here, there, each, 0);
    }
    let beyond = if there.uneven {
        u64::MAX
    } else {
        (there.running - there.capacity.min(there.running)) * SCALE * SCALE / there.power
    };
    let pull = (there.per_power - mean).min(beyond);
    // If the local group exceeds the mean, this wraps around in the kernel, and the other term
    // counts.
    let room = mean.checked_sub(here.per_power).map_or(u64::MAX, |r| r * here.power);
    let amount = (pull * there.power).min(room) / SCALE;
    if amount < each { small(here, there, each, amount) } else { amount }
}

/// Returns the amount to move, raised to a single task's weight if one task should move although
/// less than that is out of balance (`fix_small_imbalance`).
fn small(here: &Group, there: &Group, each: u64, amount: u64) -> u64 {
    let here_each = here.each();
    let factor = if here.running > 0 && each > here_each { 1 } else { 2 };
    let scaled = each * SCALE / there.power;
    let gap = there.per_power as i64 - here.per_power as i64 + scaled as i64;
    if gap >= (scaled * factor) as i64 {
        return each;
    }
    let now = there.power * each.min(there.per_power) + here.power * here_each.min(here.per_power);
    let left = there.per_power.saturating_sub(scaled);
    let brought = if there.per_power * there.power < each * SCALE {
        there.per_power * there.power / here.power
    } else {
        each * SCALE / here.power
    };
    let then = there.power * each.min(left) + here.power * here_each.min(here.per_power + brought);
    if then / SCALE > now / SCALE { each } else { amount }
}
