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
    /// Its sums; of a single CPU, the CPU.
    index: u32,
    /// Number of CPUs.
    pub weight: u32,
    /// Their capacities, summed.
    pub capacity: u64,
    /// Which word of the machine holds all of them and their bits there, if one does.
    word: Option<(u32, u64)>,
}

/// The groups of all domains with their sums.
#[derive(Debug)]
pub(in crate::kernel) struct Groups {
    /// By domain, by group.
    shapes: Vec<Vec<Shape>>,
    sums: Vec<Sums>,
    /// Which sums each CPU is part of: `member_of[starts[cpu]..starts[cpu + 1]]`.
    member_of: Vec<u32>,
    starts: Vec<u32>,
}

impl Groups {
    /// The groups of a machine on which nothing runs.
    pub fn new(topology: &Topology) -> Groups {
        let mut index_of = vec![u32::MAX; topology.nr_sets()];
        let mut members = vec![Vec::new(); topology.nr_cpus()];
        let mut sums = Vec::new();
        let mut shape = |set: SetView<'_>| {
            let index = if set.weight() == 1 {
                set.iter().next().unwrap_or(0) as u32
            } else if index_of[set.number()] != u32::MAX {
                index_of[set.number()]
            } else {
                let index = sums.len() as u32;
                sums.push(Sums::default());
                set.iter().for_each(|cpu| members[cpu].push(index));
                index_of[set.number()] = index;
                index
            };
            Shape {
                index,
                weight: set.weight(),
                capacity: set.iter().map(|c| u64::from(topology.capacity(c))).sum(),
                word: match set.words() {
                    [bits] => Some((set.first_word() as u32, *bits)),
                    _ => None,
                },
            }
        };
        let domains = (0..topology.nr_domains()).map(|d| topology.domain(d));
        let shapes =
            domains.map(|d| (0..d.groups()).map(|g| shape(d.group(g))).collect()).collect();
        let mut starts = vec![0];
        for list in &members {
            starts.push(starts[starts.len() - 1] + list.len() as u32);
        }
        Groups { shapes, sums, member_of: members.concat(), starts }
    }

    /// A CPU's numbers changed.
    #[inline]
    pub fn change(&mut self, cpu: usize, from: &Sums, to: &Sums) {
        let (start, end) = (self.starts[cpu] as usize, self.starts[cpu + 1] as usize);
        for &index in &self.member_of[start..end] {
            self.sums[index as usize].change(from, to);
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
            _ => self.sums[shape.index as usize],
        }
    }
}

impl Shape {
    /// How many of the group's CPUs are set in the machine's words.
    #[inline]
    pub fn count_in(&self, set: SetView<'_>, words: &[u64]) -> u32 {
        match self.word {
            Some((word, bits)) => (words[word as usize] & bits).count_ones(),
            None => {
                let words = words[set.first_word()..].iter();
                set.words().iter().zip(words).map(|(s, w)| (s & w).count_ones()).sum()
            }
        }
    }
}
