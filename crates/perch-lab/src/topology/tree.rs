// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as a tree of levels, and the part of it that is kept when not all of it fits.

use perch_machine::Machine;

/// Levels between the machine and a CPU: package, node, LLC, cluster, core, CPU.
pub(super) const LEVELS: usize = 6;
pub(super) const CLUSTER: usize = 3;
pub(super) const CORE: usize = 4;
const THREAD: usize = 5;

/// A group of CPUs with the smaller groups in it, in the order of their lowest CPU (nodes, too).
#[derive(Clone, Debug, Default)]
pub(super) struct Branch {
    /// The group's index in the machine; at the last level the CPU's number.
    pub key: u32,
    /// The CPU's capacity, at the last level.
    capacity: u32,
    pub parts: Vec<Branch>,
}

/// The number of a group's parts that are kept, for each level.
pub(super) type Caps = [usize; LEVELS];

/// The parts of the machine that a choice of [`Caps`] keeps. The fields stand in the order in which
/// choices are compared: the most kinds of CPU; then the most levels, inner ones first, because a
/// guest without clusters shows none while a second package is more of the same; then the most
/// CPUs; then whole inner groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Merit {
    kinds: usize,
    levels: usize,
    inner: [bool; LEVELS],
    cpus: usize,
    sizes: [usize; LEVELS],
}

impl Branch {
    /// The tree of `machine` as its kernel would see it: the LLCs are the declared ones.
    pub fn of(machine: &Machine) -> Branch {
        let mut root = Branch::default();
        let clustered = machine.cpus.iter().any(|cpu| cpu.cluster.is_some());
        for (number, cpu) in machine.cpus.iter().enumerate() {
            // A core outside every cluster shares its L2 with no other core. Where there are no
            // clusters the cores of each kind stay together, so that a cut keeps some of each kind.
            let alone = || if clustered { u32::MAX - cpu.core } else { cpu.capacity };
            let cluster = cpu.cluster.unwrap_or_else(alone);
            let path = [cpu.package, cpu.node, cpu.declared_llc, cluster, cpu.core];
            let mut at = &mut root;
            for key in path {
                at = at.part(key);
            }
            at.part(number as u32).capacity = cpu.capacity;
        }
        root
    }

    /// The part with the index `key`, which is made when missing.
    fn part(&mut self, key: u32) -> &mut Branch {
        // It is nearly always the part that was asked for last.
        let found = self.parts.iter().rposition(|part| part.key == key);
        let index = found.unwrap_or_else(|| {
            self.parts.push(Branch { key, ..Branch::default() });
            self.parts.len() - 1
        });
        &mut self.parts[index]
    }

    /// The most parts that a group has, for each level.
    pub fn widest(&self) -> Caps {
        let mut widest = [1; LEVELS];
        self.widen(0, &mut widest);
        widest
    }

    fn widen(&self, level: usize, widest: &mut Caps) {
        if level < LEVELS {
            widest[level] = widest[level].max(self.parts.len());
            for part in &self.parts {
                part.widen(level + 1, widest);
            }
        }
    }

    /// Drops what is beyond `caps`, the last parts of each group first.
    pub fn cut(&mut self, caps: &[usize]) {
        if let Some((cap, rest)) = caps.split_first() {
            self.parts.truncate(*cap);
            for part in &mut self.parts {
                part.cut(rest);
            }
        }
    }

    /// The shape with at most `limit` CPUs that shows most of the machine; `limit` is at least 1.
    pub fn best_caps(&self, limit: usize) -> Caps {
        let widest = self.widest();
        let mut best = ([1; LEVELS], self.merit(&[1; LEVELS], limit));
        let mut caps = [1; LEVELS];
        'all: loop {
            let merit = self.merit(&caps, limit);
            if merit > best.1 {
                best = (caps, merit);
            }
            // The loop counts up like an odometer, the innermost level first. A shape that is too
            // large stays too large with more inside, so the next level counts at once.
            let mut level = LEVELS - 1;
            if merit.is_none() {
                while caps[level] == 1 && level > 0 {
                    level -= 1;
                }
                caps[level] = widest[level];
            }
            while caps[level] >= widest[level] {
                caps[level] = 1;
                if level == 0 {
                    break 'all;
                }
                level -= 1;
            }
            caps[level] += 1;
        }
        best.0
    }

    /// The merit of the choice `caps`; `None` when it keeps more than `limit` CPUs.
    fn merit(&self, caps: &Caps, limit: usize) -> Option<Merit> {
        let mut sizes = [1; LEVELS];
        let cpus = self.count(0, caps, limit, &mut sizes)?;
        let mut kinds = Vec::new();
        self.kinds(caps, &mut kinds);
        // The innermost level counts most.
        sizes.reverse();
        let inner = sizes.map(|size| size > 1);
        Some(Merit {
            kinds: kinds.len(),
            levels: inner.iter().filter(|kept| **kept).count(),
            inner,
            cpus,
            sizes,
        })
    }

    /// Adds the capacities of the CPUs that `caps` keeps to `found`.
    fn kinds(&self, caps: &[usize], found: &mut Vec<u32>) {
        match caps.split_first() {
            Some((&cap, rest)) => {
                let kept = self.parts.iter().take(cap);
                kept.for_each(|part| part.kinds(rest, found));
            }
            None if !found.contains(&self.capacity) => found.push(self.capacity),
            None => {}
        }
    }

    /// The number of CPUs that `caps` keeps, unless it exceeds `limit`; puts the most parts of each
    /// level into `sizes`.
    fn count(
        &self,
        level: usize,
        caps: &Caps,
        limit: usize,
        sizes: &mut [usize; LEVELS],
    ) -> Option<usize> {
        let kept = self.parts.len().min(caps[level]);
        sizes[level] = sizes[level].max(kept);
        if level == THREAD {
            return (kept <= limit).then_some(kept);
        }
        let mut cpus = 0;
        for part in &self.parts[..kept] {
            cpus += part.count(level + 1, caps, limit - cpus, sizes)?;
        }
        Some(cpus)
    }

    /// The numbers of the CPUs in the tree, depth first.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        self.walk(0, &mut |cpu| numbers.push(cpu));
        numbers
    }

    fn walk(&self, level: usize, visit: &mut impl FnMut(u32)) {
        for part in &self.parts {
            match level {
                THREAD => visit(part.key),
                _ => part.walk(level + 1, visit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_machine::resolve;

    fn caps(name: &str, limit: usize) -> Caps {
        Branch::of(&resolve(name).unwrap()).best_caps(limit)
    }

    #[test]
    fn a_shape_keeps_its_levels_then_its_inner_groups() {
        assert_eq!(caps("kunpeng920", 128), [2, 2, 1, 8, 4, 1]);
        assert_eq!(caps("kunpeng920", 32), [2, 2, 1, 2, 4, 1]);
        assert_eq!(caps("kunpeng920", 16), [2, 2, 1, 2, 2, 1]);
        // A cut keeps two nodes rather than two packages.
        assert_eq!(caps("kunpeng920", 8), [1, 2, 1, 2, 2, 1]);
        assert_eq!(caps("kunpeng920", 1), [1; LEVELS]);
        assert_eq!(caps("jacobsville", 16), [1, 1, 1, 4, 4, 1]);
        assert_eq!(caps("jacobsville", 8), [1, 1, 1, 2, 4, 1]);
        assert_eq!(caps("xeon240", 16), [2, 1, 1, 1, 4, 2]);
    }

    #[test]
    fn the_best_shape_of_any_machine_fits() {
        for seed in 0..300 {
            let machine = Machine::random(seed, 60);
            for limit in [1, 2, 7, 16, 60] {
                let mut tree = Branch::of(&machine);
                let caps = tree.best_caps(limit);
                tree.cut(&caps);
                let mut sizes = [0; LEVELS];
                let all = [usize::MAX; LEVELS];
                let left = tree.count(0, &all, usize::MAX, &mut sizes).unwrap();
                assert!((1..=limit).contains(&left), "seed {seed}: {left}/{limit}");
                if limit >= machine.cpus.len() {
                    assert_eq!(left, machine.cpus.len(), "seed {seed}");
                }
            }
        }
    }
}
