// SPDX-License-Identifier: GPL-2.0-or-later
//! The priorities at which CPUs run (`cpupri` of 6.12), among which a real-time task looks for a
//! CPU. There is a set of CPUs for each level, and a set of the levels that have CPUs: finding the
//! lowest level takes a few words, however many CPUs there are.

use perch_policy::CpuMask;

/// The number of levels: 0 for CPUs without real-time tasks, then the priorities 1 to 99. (The
/// kernel's level 100 is for deadline tasks.)
const LEVELS: usize = 100;

/// The highest priority on each CPU's queue, by CPU and by level.
#[derive(Debug)]
pub struct CpuPri {
    of_cpu: Vec<u8>,
    /// The CPUs of each level, in words of 64, level after level.
    cpus: Vec<u64>,
    /// The number of CPUs of each level.
    counts: [u32; LEVELS],
    levels: u128,
    words: usize,
}

impl CpuPri {
    /// Returns the state in which no CPU has a real-time task.
    pub fn new(nr_cpus: usize) -> CpuPri {
        let words = nr_cpus.div_ceil(64);
        let mut cpus = vec![0; LEVELS * words];
        cpus[..words].copy_from_slice(CpuMask::full(nr_cpus).words());
        let mut counts = [0; LEVELS];
        counts[0] = nr_cpus as u32;
        CpuPri { of_cpu: vec![0; nr_cpus], cpus, counts, levels: 1, words }
    }

    pub fn level(&self, cpu: usize) -> u8 {
        self.of_cpu[cpu]
    }

    /// Returns the number of CPUs at `level`.
    #[cfg(test)]
    fn count(&self, level: u8) -> u32 {
        self.counts[usize::from(level)]
    }

    /// Sets the highest priority on `cpu`. Returns the CPU's old level if it is another.
    pub fn set(&mut self, cpu: usize, level: u8) -> Option<u8> {
        let old = std::mem::replace(&mut self.of_cpu[cpu], level);
        if old == level {
            return None;
        }
        let bit = 1 << (cpu % 64);
        for (level, joins) in [(level, true), (old, false)] {
            let at = usize::from(level);
            self.cpus[at * self.words + cpu / 64] ^= bit;
            if joins {
                self.counts[at] += 1;
            } else {
                self.counts[at] -= 1;
            }
            match self.counts[at] {
                0 => self.levels &= !(1 << level),
                _ => self.levels |= 1 << level,
            }
        }
        Some(old)
    }

    /// Returns the levels below `priority` that have CPUs, the lowest first.
    pub fn below(&self, priority: u8) -> impl Iterator<Item = u8> + use<> {
        let mut left = self.levels & ((1 << priority) - 1);
        std::iter::from_fn(move || {
            let level = left.trailing_zeros() as u8;
            left &= left.wrapping_sub(1);
            (level < 128).then_some(level)
        })
    }

    /// Returns the CPUs of `level` that are in `allowed`, by words.
    fn among<'a>(&'a self, level: u8, allowed: &'a CpuMask) -> impl Iterator<Item = u64> + 'a {
        let at = usize::from(level) * self.words;
        let cpus = &self.cpus[at..at + self.words];
        cpus.iter().zip(allowed.words()).map(|(c, a)| c & a)
    }

    /// Returns whether an allowed CPU is at a level below `priority`.
    pub fn any_below(&self, priority: u8, allowed: &CpuMask) -> bool {
        let mut levels = self.below(priority);
        levels.any(|level| self.among(level, allowed).any(|word| word != 0))
    }

    /// Finds the lowest level below `priority` that has CPUs in `allowed` for which `fits` holds,
    /// and writes these CPUs into `lowest`. Returns the level; `None` if there is none.
    pub fn lowest(
        &self,
        priority: u8,
        allowed: &CpuMask,
        fits: Option<&dyn Fn(usize) -> bool>,
        lowest: &mut Vec<u64>,
    ) -> Option<u8> {
        for level in self.below(priority) {
            lowest.clear();
            lowest.extend(self.among(level, allowed));
            if let Some(fits) = fits {
                for (number, word) in lowest.iter_mut().enumerate() {
                    let mut left = *word;
                    while left != 0 {
                        let bit = left & left.wrapping_neg();
                        left ^= bit;
                        if !fits(number * 64 + bit.trailing_zeros() as usize) {
                            *word ^= bit;
                        }
                    }
                }
            }
            if lowest.iter().any(|&word| word != 0) {
                return Some(level);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_engine::Random;

    /// Returns what a walk over all CPUs finds.
    fn walked(
        levels: &[u8],
        priority: u8,
        allowed: &CpuMask,
        fits: &dyn Fn(usize) -> bool,
    ) -> Option<(u8, Vec<usize>)> {
        let may = |&cpu: &usize| allowed.contains(cpu) && fits(cpu);
        let cpus = || (0..levels.len()).filter(may);
        let lowest = cpus().map(|cpu| levels[cpu]).min()?;
        let at = cpus().filter(|&cpu| levels[cpu] == lowest).collect();
        (lowest < priority).then_some((lowest, at))
    }

    #[test]
    fn the_lowest_cpus_are_those_that_a_walk_finds() {
        let mut random = Random::new(1, 0);
        for n in [1, 3, 64, 65, 200] {
            let (mut cpupri, mut levels) = (CpuPri::new(n), vec![0u8; n]);
            for step in 0..3000 {
                let cpu = random.below(n as u64) as usize;
                let level = random.below(100) as u8;
                let old = std::mem::replace(&mut levels[cpu], level);
                assert_eq!(cpupri.set(cpu, level), (old != level).then_some(old));
                let some = (0..n).filter(|_| random.below(3) == 0);
                let allowed = CpuMask::of(n, some.collect::<Vec<_>>());
                let priority = 1 + random.below(99) as u8;
                let by = random.below(5) as usize + 1;
                let fits = |cpu: usize| cpu % by == 0;
                let mut words = Vec::new();
                let found = cpupri.lowest(priority, &allowed, Some(&fits), &mut words);
                let found = found.map(|level| {
                    let is = |&cpu: &usize| words[cpu / 64] >> (cpu % 64) & 1 != 0;
                    (level, (0..n).filter(is).collect::<Vec<_>>())
                });
                assert_eq!(found, walked(&levels, priority, &allowed, &fits), "step {step}");
                let any = walked(&levels, priority, &allowed, &|_| true).is_some();
                assert_eq!(cpupri.any_below(priority, &allowed), any, "step {step}");
            }
            for level in 0..100 {
                let at = levels.iter().filter(|&&l| l == level).count() as u32;
                assert_eq!(cpupri.count(level), at);
            }
        }
    }
}
