// SPDX-License-Identifier: GPL-2.0-or-later
//! Sets of CPUs as words of 64, sized for the machine.

/// A set of CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CpuMask {
    words: Box<[u64]>,
    weight: u32,
}

impl CpuMask {
    /// No CPU of a machine with `nr_cpus`.
    pub fn empty(nr_cpus: usize) -> CpuMask {
        CpuMask { words: vec![0; nr_cpus.div_ceil(64)].into_boxed_slice(), weight: 0 }
    }

    /// Every CPU of a machine with `nr_cpus`.
    pub fn full(nr_cpus: usize) -> CpuMask {
        CpuMask::of(nr_cpus, 0..nr_cpus)
    }

    /// These CPUs of a machine with `nr_cpus`.
    ///
    /// # Panics
    /// When a CPU is not below `nr_cpus`.
    pub fn of(nr_cpus: usize, cpus: impl IntoIterator<Item = usize>) -> CpuMask {
        let mut mask = CpuMask::empty(nr_cpus);
        for cpu in cpus {
            assert!(cpu < nr_cpus, "CPU {cpu} of a machine with {nr_cpus}");
            mask.insert(cpu);
        }
        mask
    }

    /// Adds a CPU.
    pub fn insert(&mut self, cpu: usize) {
        let word = &mut self.words[cpu / 64];
        let bit = 1 << (cpu % 64);
        self.weight += u32::from(*word & bit == 0);
        *word |= bit;
    }

    /// True if the CPU is in the set.
    pub fn contains(&self, cpu: usize) -> bool {
        self.words[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// How many CPUs are in the set.
    pub fn weight(&self) -> u32 {
        self.weight
    }

    /// The words, CPU 0 in bit 0 of the first.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        bits(&self.words, 0)
    }

    pub(crate) fn into_words(self) -> Box<[u64]> {
        self.words
    }
}

/// The CPUs set in `words`, whose first word is number `first`.
pub(crate) fn bits(words: &[u64], first: usize) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(move |(i, &word)| {
        let mut left = word;
        std::iter::from_fn(move || {
            (left != 0).then(|| {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                (first + i) * 64 + bit
            })
        })
    })
}
