// SPDX-License-Identifier: GPL-2.0-only
//! Sums over the groups of the scheduling domains, kept current.
//!
//! The kernel walks all CPUs of a domain each time a CPU looks for work: at 4096 CPUs that is
//! most of what a simulation would do. A CPU is in one group a level, so adding the change of its
//! few numbers to a few sums is cheaper by far, and exact.

use perch_policy::{CpuState, SetView, Topology};

/// What is summed of a group's CPUs. Sums of numbers that come and go: they wrap and come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::kernel) struct Sums {
    pub running: u64,
    pub load: u64,
    pub runnable: u64,
    pub util: u64,
}

impl Sums {
    /// One CPU's part.
    pub fn of(c: &CpuState) -> Sums {
        Sums {
            running: c.nr_running.into(),
            load: c.load.into(),
            runnable: c.runnable.into(),
            util: c.util.into(),
        }
    }

    fn change(&mut self, from: &Sums, to: &Sums) {
        let moved = |sum: &mut u64, from: u64, to: u64| *sum = sum.wrapping_add(to.wrapping_sub(from));
        moved(&mut self.running, from.running, to.running);
        moved(&mut self.load, from.load, to.load);
        moved(&mut self.runnable, from.runnable, to.runnable);
        moved(&mut self.util, from.util, to.util);
    }
}

/// What never changes of a group of a domain.
#[derive(Debug)]
pub(in crate::kernel) struct Shape {
    /// Its tally; of a single CPU, the CPU.
    index: u32,
    /// Number of CPUs.
    pub weight: u32,
    /// Their capacities, summed.
    pub capacity: u64,
}

/// What is kept of a group of several CPUs.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sums: Sums,
    /// Idle CPUs, as of the last [`Groups::see_idle`].
    idle: u32,
}

/// The groups of all domains with their sums.
#[derive(Debug)]
pub(in crate::kernel) struct Groups {
    /// By domain, by group.
    shapes: Vec<Vec<Shape>>,
    tallies: Vec<Tally>,
    /// Which tallies each CPU is part of: `member_of[starts[cpu]..starts[cpu + 1]]`.
    member_of: Vec<u32>,
    starts: Vec<u32>,
    /// The idle CPUs that the tallies know of, by words of 64.
    idle: Vec<u64>,
}

impl Groups {
    /// The groups of a machine on which nothing runs.
    pub fn new(topology: &Topology) -> Groups {
        let mut index_of = vec![u32::MAX; topology.nr_sets()];
        let mut members = vec![Vec::new(); topology.nr_cpus()];
        let mut tallies = Vec::new();
        let mut shape = |set: SetView<'_>| {
            let index = if set.weight() == 1 {
                set.iter().next().unwrap_or(0) as u32
            } else if index_of[set.number()] != u32::MAX {
                index_of[set.number()]
            } else {
                let index = tallies.len() as u32;
                tallies.push(Tally::default());
                set.iter().for_each(|cpu| members[cpu].push(index));
                index_of[set.number()] = index;
                index
            };
            Shape {
                index,
                weight: set.weight(),
                capacity: set.iter().map(|c| u64::from(topology.capacity(c))).sum(),
            }
        };
        let domains = (0..topology.nr_domains()).map(|d| topology.domain(d));
        let shapes =
            domains.map(|d| (0..d.groups()).map(|g| shape(d.group(g))).collect()).collect();
        let mut starts = vec![0];
        for list in &members {
            starts.push(starts[starts.len() - 1] + list.len() as u32);
        }
        let idle = vec![0; topology.nr_cpus().div_ceil(64)];
        Groups { shapes, tallies, member_of: members.concat(), starts, idle }
    }

    /// A CPU's numbers changed.
    #[inline]
    pub fn change(&mut self, cpu: usize, from: &Sums, to: &Sums) {
        let (start, end) = (self.starts[cpu] as usize, self.starts[cpu + 1] as usize);
        for &index in &self.member_of[start..end] {
            self.tallies[index as usize].sums.change(from, to);
        }
    }

    /// Brings the numbers of idle CPUs up to date for groups within these words of the machine.
    /// Few CPUs changed since somebody looked last; counting the bits of every group in each pass
    /// was a sixth of a run at 4096 CPUs.
    pub fn see_idle(&mut self, words: std::ops::Range<usize>, now: &[u64]) {
        let pairs = self.idle[words.clone()].iter_mut().zip(&now[words.clone()]);
        for (i, (seen, &now)) in words.zip(pairs) {
            let mut changed = *seen ^ now;
            *seen = now;
            while changed != 0 {
                let bit = changed.trailing_zeros() as usize;
                changed &= changed - 1;
                let (cpu, more) = (i * 64 + bit, (now >> bit & 1) as u32);
                let (start, end) = (self.starts[cpu] as usize, self.starts[cpu + 1] as usize);
                for &index in &self.member_of[start..end] {
                    let idle = &mut self.tallies[index as usize].idle;
                    *idle = idle.wrapping_add(more.wrapping_mul(2).wrapping_sub(1));
                }
            }
        }
    }

    /// The groups of a domain.
    pub fn of_domain(&self, domain: usize) -> &[Shape] {
        &self.shapes[domain]
    }

    /// A group's sums now.
    #[inline]
    pub fn sums(&self, shape: &Shape, cpus: &[CpuState]) -> Sums {
        match shape.weight {
            1 => Sums::of(&cpus[shape.index as usize]),
            _ => self.tallies[shape.index as usize].sums,
        }
    }

    /// How many of a group's CPUs are idle; its words must have been seen.
    #[inline]
    pub fn idle(&self, shape: &Shape) -> u32 {
        let index = shape.index as usize;
        match shape.weight {
            1 => (self.idle[index / 64] >> (index % 64) & 1) as u32,
            _ => self.tallies[index].idle,
        }
    }

    /// A group's runnable tasks now.
    #[inline]
    pub fn running(&self, shape: &Shape, cpus: &[CpuState]) -> u32 {
        match shape.weight {
            1 => cpus[shape.index as usize].nr_running,
            _ => self.tallies[shape.index as usize].sums.running as u32,
        }
    }
}
