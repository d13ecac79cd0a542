// SPDX-License-Identifier: GPL-2.0-or-later
//! The sums over the groups of the scheduling domains, kept up to date.
//!
//! The kernel walks over all CPUs of a domain each time a CPU looks for work. At 4096 CPUs that
//! would be most of the work of a simulation. A CPU is in one group at each level, so adding the
//! change of its few figures to a few sums is cheaper by far, and exact. Nobody reads the sums but
//! passes, so a pass adds up what has changed in its domain since the last one looked there.

use perch_machine::MAX_CPUS;
use perch_policy::{Change, CpuState, SetView, Topology};

use super::words::has;
use crate::era::EraRules;

/// The figures that are summed over a group's CPUs. They increase and decrease, so the sums may
/// wrap around and come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub running: u64,
    pub load: u64,
    pub runnable: u64,
    pub util: u64,
}

/// The figures of one CPU that are summed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    running: u32,
    load: u32,
    runnable: u32,
    util: u32,
}

impl Figures {
    fn of(c: &CpuState) -> Figures {
        Figures { running: c.nr_running, load: c.load, runnable: c.runnable, util: c.util }
    }

    /// Returns the change from `from` to `self`.
    fn since(&self, from: &Figures) -> Sums {
        let change = |to: u32, from: u32| u64::from(to).wrapping_sub(from.into());
        Sums {
            running: change(self.running, from.running),
            load: change(self.load, from.load),
            runnable: change(self.runnable, from.runnable),
            util: change(self.util, from.util),
        }
    }
}

impl Sums {
    /// Returns the figures of one CPU.
    pub fn of(c: &CpuState) -> Sums {
        Figures::of(c).since(&Figures::default())
    }

    fn add(&mut self, change: &Sums) {
        self.running = self.running.wrapping_add(change.running);
        self.load = self.load.wrapping_add(change.load);
        self.runnable = self.runnable.wrapping_add(change.runnable);
        self.util = self.util.wrapping_add(change.util);
    }
}

impl std::iter::Sum for Sums {
    fn sum<I: Iterator<Item = Sums>>(all: I) -> Sums {
        all.fold(Sums::default(), |mut total, one| {
            total.add(&one);
            total
        })
    }
}

/// How busy a group is, the least busy first (`enum group_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupType {
    HasSpare,
    FullyBusy,
    /// A task does not fit its CPU (in domains of unequal CPUs, and never the local group).
    Misfit,
    /// Tasks in the group prefer the balancing CPU's LLC (7.2's cache-aware balancing, and never
    /// the local group).
    LlcBalance,
    Overloaded,
}

impl GroupType {
    /// Returns how busy a group with these sums is, leaving aside misfits and preferences.
    pub fn of(weight: u32, capacity: u64, sums: &Sums, yardstick: Yardstick) -> GroupType {
        let (running, pct) = (sums.running as u32, u64::from(yardstick.pct));
        let strained = capacity * 100 < sums.util * pct;
        let queued = yardstick.counts_waiting && capacity * pct < sums.runnable * 100;
        if running > weight && (strained || queued) {
            GroupType::Overloaded
        } else if running < weight || (!queued && capacity * 100 > sums.util * pct) {
            GroupType::HasSpare
        } else {
            GroupType::FullyBusy
        }
    }
}

/// The terms by which groups are classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Yardstick {
    /// The domain's imbalance_pct.
    pub pct: u32,
    /// True if waiting tasks count too, by runnable averages.
    pub counts_waiting: bool,
}

/// A group's order among those of a domain: the busiest has the highest, and of groups with equal
/// order the first found is taken.
type Order = u64;
/// The order is not computed yet.
const UNKNOWN: Order = 0;
/// The order of a group without a task: it is never the busiest.
const EMPTY: Order = 1;
/// The order of every group that is fully busy. Such a group has no average to compare by, and the
/// last one found is taken (up to 6.4 the first).
const FULLY_BUSY: Order = 1 << 60;

fn order(weight: u32, capacity: u64, sums: &Sums, idle: u32, yardstick: Yardstick) -> Order {
    let running = sums.running as u32;
    if running == 0 {
        return EMPTY;
    }
    match GroupType::of(weight, capacity, sums, yardstick) {
        // A group with fewer idle CPUs has the higher order, then one with more tasks.
        GroupType::HasSpare => u64::from(MAX_CPUS as u32 + 1 - idle) << 32 | u64::from(running),
        GroupType::FullyBusy | GroupType::Misfit | GroupType::LlcBalance => FULLY_BUSY,
        GroupType::Overloaded => FULLY_BUSY * 2 + sums.load * 1024 / capacity.max(1),
    }
}

/// The capacity of a group, as of the last pass that updated it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Capacity {
    /// The sum of the CPUs' capacities.
    pub sum: u64,
    /// The smallest of them.
    pub least: u32,
    /// The largest of them.
    pub most: u32,
}

impl Default for Capacity {
    fn default() -> Capacity {
        Capacity { sum: 0, least: u32::MAX, most: 0 }
    }
}

impl Capacity {
    /// Returns the capacity of a group of one CPU.
    #[inline]
    pub fn of(capacity: u32) -> Capacity {
        Capacity { sum: capacity.into(), least: capacity, most: capacity }
    }
}

impl std::iter::Sum for Capacity {
    /// Returns the capacity of the CPUs of all these groups together.
    fn sum<I: Iterator<Item = Capacity>>(groups: I) -> Capacity {
        groups.fold(Capacity::default(), |all, one| Capacity {
            sum: all.sum + one.sum,
            least: all.least.min(one.least),
            most: all.most.max(one.most),
        })
    }
}

/// The part of a domain's group that never changes.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    /// The index of the group's tally; for a single CPU, the CPU.
    index: u32,
    /// The number of CPUs.
    pub weight: u32,
}

/// The changing part of a group of several CPUs, as of the last [`Groups::catch_up`].
#[derive(Debug)]
struct Tally {
    sums: Sums,
    /// The number of idle CPUs.
    idle: u32,
    weight: u32,
    capacity: Capacity,
    yardstick: Yardstick,
    /// The number of the group's set.
    set: usize,
}

/// The groups of a domain.
#[derive(Debug)]
struct Ring {
    shapes: Vec<Shape>,
    yardstick: Yardstick,
    /// The index of the first group's tally, if each further group has the next one.
    first: Option<usize>,
}

/// The groups of all domains with their sums.
#[derive(Debug)]
pub(crate) struct Groups {
    /// The groups of each domain.
    rings: Vec<Ring>,
    tallies: Vec<Tally>,
    /// The order of each tally's group, `UNKNOWN` after something in the group has changed.
    orders: Vec<Order>,
    /// The tallies that each CPU is part of: `member_of[starts[cpu]..starts[cpu + 1]]`.
    member_of: Vec<u32>,
    starts: Vec<u32>,
    fully_busy_first: bool,
    /// The idle CPUs that the tallies have counted, in words of 64 bits.
    idle: Vec<u64>,
    /// The figures of each CPU that the tallies have counted.
    counted: Vec<Figures>,
    /// The CPUs whose figures may have changed since, in words of 64 bits.
    stale: Vec<u64>,
    /// The working memory of a search: the orders of a domain's groups.
    found: Vec<Order>,
}

impl Groups {
    /// Returns the groups of a machine on which nothing runs.
    pub fn new(topology: &Topology, rules: &EraRules) -> Groups {
        // Domains share the tally of a group, if they classify groups by the same terms.
        let mut known = std::collections::BTreeMap::new();
        let mut members = vec![Vec::new(); topology.nr_cpus()];
        let mut tallies = Vec::new();
        let mut shape = |set: SetView<'_>, yardstick: Yardstick| {
            let mut shape =
                Shape { index: set.iter().next().unwrap_or(0) as u32, weight: set.weight() };
            if shape.weight == 1 {
                return shape;
            }
            shape.index = *known.entry((set.number(), yardstick)).or_insert_with(|| {
                shape.index = tallies.len() as u32;
                let capacities = set.iter().map(|c| Capacity::of(topology.capacity(c)));
                tallies.push(Tally {
                    sums: Sums::default(),
                    idle: 0,
                    weight: shape.weight,
                    capacity: capacities.sum(),
                    yardstick,
                    set: set.number(),
                });
                set.iter().for_each(|cpu| members[cpu].push(shape.index));
                shape.index
            });
            shape
        };
        let rings = (0..topology.nr_domains()).map(|number| {
            let domain = topology.domain(number);
            let yardstick = Yardstick {
                pct: rules.imbalance_pct(&domain),
                counts_waiting: rules.has(Change::CountsWaiting),
            };
            let shapes = (0..domain.groups()).map(|g| shape(domain.group(g), yardstick));
            let shapes: Vec<Shape> = shapes.collect();
            let first = shapes.first().map(|shape| shape.index as usize);
            let in_order = |(at, shape): (usize, &Shape)| {
                shape.weight > 1 && first.map(|first| first + at) == Some(shape.index as usize)
            };
            Ring {
                first: first.filter(|_| shapes.iter().enumerate().all(in_order)),
                shapes,
                yardstick,
            }
        });
        let rings = rings.collect();
        let mut starts = vec![0];
        for list in &members {
            starts.push(starts[starts.len() - 1] + list.len() as u32);
        }
        Groups {
            rings,
            orders: vec![UNKNOWN; tallies.len()],
            tallies,
            member_of: members.concat(),
            starts,
            fully_busy_first: !rules.has(Change::LastFullyBusy),
            idle: vec![0; topology.nr_cpus().div_ceil(64)],
            counted: vec![Figures::default(); topology.nr_cpus()],
            stale: vec![0; topology.nr_cpus().div_ceil(64)],
            found: Vec::new(),
        }
    }

    /// Notes that the figures of `cpu` may have changed.
    #[inline]
    pub fn change(&mut self, cpu: usize) {
        self.stale[cpu / 64] |= 1 << (cpu % 64);
    }

    /// Returns the figures of `cpu` that the tallies have counted.
    pub fn counted(&self, cpu: usize) -> Sums {
        self.counted[cpu].since(&Figures::default())
    }

    /// Returns whether the figures of `cpu` may have changed since they were counted.
    pub fn is_stale(&self, cpu: usize) -> bool {
        has(&self.stale, cpu)
    }

    /// Updates the tallies of groups within these words of the machine's CPUs, whose figures are `cpus`;
    /// `idle` has all idle ones. Few CPUs change between two passes; counting the bits of every group
    /// in each pass was a sixth of a run at 4096 CPUs, and adding up the figures whenever a queue changed
    /// 4 % of the instructions of 64 pairs of tcp_rr.
    pub fn catch_up(&mut self, words: std::ops::Range<usize>, idle: &[u64], cpus: &[CpuState]) {
        for i in words {
            let stale = std::mem::take(&mut self.stale[i]);
            let changed = std::mem::replace(&mut self.idle[i], idle[i]) ^ idle[i];
            let mut left = stale | changed;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                self.count(i * 64 + bit, changed >> bit & 1 != 0, cpus);
            }
        }
    }

    /// Adds up the change of the figures of `cpu`, which has become idle or busy if it `turned`.
    #[inline(always)]
    fn count(&mut self, cpu: usize, turned: bool, cpus: &[CpuState]) {
        let now = Figures::of(&cpus[cpu]);
        let before = std::mem::replace(&mut self.counted[cpu], now);
        if now == before && !turned {
            return;
        }
        let change = now.since(&before);
        let more = match (turned, has(&self.idle, cpu)) {
            (false, _) => 0,
            (true, true) => 1,
            (true, false) => u32::MAX,
        };
        let (start, end) = (self.starts[cpu] as usize, self.starts[cpu + 1] as usize);
        for &index in &self.member_of[start..end] {
            let tally = &mut self.tallies[index as usize];
            tally.sums.add(&change);
            tally.idle = tally.idle.wrapping_add(more);
            self.orders[index as usize] = UNKNOWN;
        }
    }

    pub fn of_domain(&self, domain: usize) -> &[Shape] {
        &self.rings[domain].shapes
    }

    /// Returns the terms by which a domain's groups are classified.
    pub fn yardstick(&self, domain: usize) -> Yardstick {
        self.rings[domain].yardstick
    }

    pub fn total_capacity(&self, domain: usize, cpus: &[CpuState]) -> u64 {
        let shapes = self.rings[domain].shapes.iter();
        shapes.map(|shape| self.capacity(shape, cpus).sum).sum()
    }

    /// Returns a group's capacity, as of the last pass that updated it.
    #[inline]
    pub fn capacity(&self, shape: &Shape, cpus: &[CpuState]) -> Capacity {
        match shape.weight {
            1 => Capacity::of(cpus[shape.index as usize].capacity),
            _ => self.tallies[shape.index as usize].capacity,
        }
    }

    /// Sets the capacity of the group of several CPUs, of which `cpu` is one, whose set has this
    /// number.
    pub fn set_capacity(&mut self, cpu: usize, set: usize, capacity: Capacity) {
        let (start, end) = (self.starts[cpu] as usize, self.starts[cpu + 1] as usize);
        for &index in &self.member_of[start..end] {
            let tally = &mut self.tallies[index as usize];
            if tally.set == set && tally.capacity != capacity {
                tally.capacity = capacity;
                self.orders[index as usize] = UNKNOWN;
            }
        }
    }

    pub fn total(&self, domain: usize, cpus: &[CpuState]) -> Sums {
        let shapes = self.rings[domain].shapes.iter();
        shapes.map(|shape| self.sums(shape, cpus)).sum()
    }

    /// Returns the busiest group of a domain but the local one, if any has a task. The search goes
    /// round the ring from the local one, so that ties fall on different groups from different
    /// places. The caller has called [`Groups::catch_up`].
    ///
    /// There are more such searches than wake-ups, and at the top of a machine of 4096 CPUs each is
    /// over 64 groups of which few have changed since the last search: comparing all their figures
    /// took a third of a run.
    pub fn busiest(&mut self, domain: usize, local: usize, cpus: &[CpuState]) -> Option<usize> {
        let Ring { shapes, yardstick, .. } = &self.rings[domain];
        let known = |index: usize, orders: &mut [Order]| {
            if orders[index] == UNKNOWN {
                let t = &self.tallies[index];
                orders[index] = order(t.weight, t.capacity.sum, &t.sums, t.idle, t.yardstick);
            }
            orders[index]
        };
        if let Some(first) = self.rings[domain].first {
            let tallies = first..first + shapes.len();
            tallies.clone().for_each(|index| {
                known(index, &mut self.orders);
            });
            return first_of_most(&self.orders[tallies], local, self.fully_busy_first);
        }
        self.found.clear();
        self.found.extend(shapes.iter().map(|shape| {
            let index = shape.index as usize;
            if shape.weight > 1 {
                return known(index, &mut self.orders);
            }
            let idle = has(&self.idle, index).into();
            let (sums, capacity) = (Sums::of(&cpus[index]), cpus[index].capacity.into());
            order(1, capacity, &sums, idle, *yardstick)
        }));
        first_of_most(&self.found, local, self.fully_busy_first)
    }

    /// Returns a group's sums, as of the last [`Groups::catch_up`].
    #[inline]
    pub fn sums(&self, shape: &Shape, cpus: &[CpuState]) -> Sums {
        match shape.weight {
            1 => Sums::of(&cpus[shape.index as usize]),
            _ => self.tallies[shape.index as usize].sums,
        }
    }

    /// Returns the number of a group's CPUs that are idle, as of the last [`Groups::catch_up`].
    #[inline]
    pub fn idle(&self, shape: &Shape) -> u32 {
        let index = shape.index as usize;
        match shape.weight {
            1 => has(&self.idle, index).into(),
            _ => self.tallies[index].idle,
        }
    }
}

/// Returns the place of the highest order but the one at `local`, the first round the ring from there,
/// unless no group has a task. Of fully busy groups it is the last, unless `fully_busy_first`.
fn first_of_most(orders: &[Order], local: usize, fully_busy_first: bool) -> Option<usize> {
    // The first loop finds the highest order, and the second its place: both are plain loops,
    // whose branches can be predicted.
    let (before, after) = (&orders[..local], &orders[local + 1..]);
    let most = before.iter().chain(after).fold(EMPTY, |most, &order| most.max(order));
    let is = |&order: &Order| order == most;
    let in_after = |at: usize| at + local + 1;
    match most {
        EMPTY => None,
        FULLY_BUSY if !fully_busy_first => {
            let first = before.iter().rposition(is);
            first.or_else(|| after.iter().rposition(is).map(in_after))
        }
        _ => {
            let first = after.iter().position(is).map(in_after);
            first.or_else(|| before.iter().position(is))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::era::EraRules;
    use rand_core::{RngCore, SeedableRng};

    /// Returns the busiest group by the kernel's comparison, group by group, from scratch.
    fn walked(groups: &Groups, domain: usize, local: usize, cpus: &[CpuState]) -> Option<usize> {
        let ring = &groups.rings[domain];
        let mut best: Option<(usize, GroupType, u64, u64)> = None;
        for g in (local + 1..ring.shapes.len()).chain(0..local) {
            let shape = &ring.shapes[g];
            let sums = groups.sums(shape, cpus);
            let capacity = groups.capacity(shape, cpus).sum;
            let group_type = GroupType::of(shape.weight, capacity, &sums, ring.yardstick);
            let (more, then) = match group_type {
                GroupType::HasSpare => ((shape.weight - groups.idle(shape)).into(), sums.running),
                GroupType::FullyBusy | GroupType::Misfit | GroupType::LlcBalance => (0, 0),
                GroupType::Overloaded => (sums.load * 1024 / capacity, 0),
            };
            let last = group_type == GroupType::FullyBusy && !groups.fully_busy_first;
            let busier = best.is_none_or(|(_, b, m, t)| {
                group_type > b || group_type == b && (last || (more, then) > (m, t))
            });
            if sums.running > 0 && busier {
                best = Some((g, group_type, more, then));
            }
        }
        best.map(|(g, ..)| g)
    }

    #[test]
    fn the_busiest_group_is_the_one_that_a_walk_finds() {
        for (_, era) in perch_policy::ERAS {
            busiest_as_walked(&EraRules::new(era, 64));
        }
    }

    fn busiest_as_walked(rules: &EraRules) {
        let machine = perch_machine::Machine::regular("test", 2, 1, 2, 4, 4, 1);
        let machine = std::sync::Arc::new(machine.expect("a machine of 64 CPUs"));
        let topology = Topology::new(&machine);
        let mut rng = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(1);
        let mut groups = Groups::new(&topology, rules);
        let mut cpus = vec![CpuState { capacity: 1024, ..CpuState::default() }; 64];
        for step in 0..20_000 {
            let cpu = (rng.next_u64() % 64) as usize;
            let nr_running = (rng.next_u64() % 4) as u32;
            cpus[cpu].nr_running = nr_running;
            cpus[cpu].load = 512 * nr_running + (rng.next_u64() % 2) as u32;
            cpus[cpu].runnable = 640 * nr_running;
            cpus[cpu].util = 1024.min(520 * nr_running);
            groups.change(cpu);
            let idle = (0..64).map(|c| u64::from(cpus[c].nr_running == 0) << c).sum();
            groups.catch_up(0..1, &[idle], &cpus);
            let number = (rng.next_u64() % topology.nr_domains() as u64) as usize;
            let local = (rng.next_u64() % groups.of_domain(number).len() as u64) as usize;
            for shape in groups.of_domain(number) {
                assert!(groups.idle(shape) <= shape.weight, "step {step}: {shape:?}");
            }
            let expected = walked(&groups, number, local, &cpus);
            assert_eq!(groups.busiest(number, local, &cpus), expected, "step {step}");
        }
    }
}
