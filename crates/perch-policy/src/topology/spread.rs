// SPDX-License-Identifier: GPL-2.0-or-later
//! A topology under the kernel's numbers, between which CPUs may be apart.

use std::sync::Arc;

use perch_machine::Machine;

use super::Topology;
use super::build::Builder;
use crate::ffi;

impl Topology {
    /// Builds the kernel's view of a checked machine whose CPUs have these numbers, ascending, in a
    /// kernel of `nr_cpus`. A number below that which none of them has is that of a CPU apart (offline
    /// or isolated): as in the kernel, it has no domain, and is in no set but that of its core, where
    /// it is alone.
    ///
    /// # Panics
    /// Panics when there are not as many numbers as CPUs, or when one is not below `nr_cpus`.
    pub fn numbered(machine: &Machine, numbers: &[u32], nr_cpus: usize) -> Arc<Topology> {
        assert_eq!(numbers.len(), machine.cpus.len(), "a number for each CPU");
        assert!(numbers.iter().all(|&cpu| (cpu as usize) < nr_cpus));
        let dense = Builder::new(machine).build();
        Arc::new(dense.spread(numbers, nr_cpus))
    }

    /// Returns the same topology with each CPU under its number, and a place without domains for each
    /// number below `nr_cpus` that no CPU has.
    fn spread(self, numbers: &[u32], nr_cpus: usize) -> Topology {
        if nr_cpus == numbers.len() {
            return self;
        }
        let mut pool = Vec::new();
        let mut sets: Vec<ffi::Set> = Vec::with_capacity(self.sets.len());
        for number in 0..self.sets.len() {
            let cpus: Vec<u32> = self.set(number as u32).iter().map(|cpu| numbers[cpu]).collect();
            let span = push(&mut pool, &cpus);
            sets.push(ffi::Set {
                first: span.first,
                words: span.words,
                offset: span.offset,
                ..self.sets[number]
            });
        }
        // The place of a CPU apart: a core of its own, and nothing around it. It stands nowhere among
        // the nodes and caches; the first ones' number is as good as another, as it never counts there.
        let mut places = Vec::with_capacity(nr_cpus);
        let mut homes = vec![[0; 2]; nr_cpus];
        let mut llc_of_set = self.llc_of_set.clone();
        let mut apart = Vec::new();
        let capacity = self.places.iter().map(|place| place.capacity).max();
        let mut numbered = numbers.iter().zip(self.places.iter().zip(&self.homes));
        let mut next = numbered.next();
        for (number, home) in (0u32..).zip(&mut homes) {
            match next {
                Some((&own, (place, of))) if own == number => {
                    places.push(*place);
                    *home = *of;
                    next = numbered.next();
                }
                _ => {
                    let capacity = capacity.unwrap_or(0);
                    let span = push(&mut pool, &[number]);
                    sets.push(ffi::Set { capacity, max_capacity: capacity, ..span });
                    llc_of_set.push(ffi::NONE);
                    apart.push(number);
                    places.push(ffi::Place {
                        core_set: sets.len() as u32 - 1,
                        cluster_set: ffi::NONE,
                        llc_set: ffi::NONE,
                        llc: ffi::NONE,
                        asym_set: ffi::NONE,
                        capacity,
                        domains: [ffi::NONE; ffi::MAX_LEVELS + 1],
                    });
                }
            }
        }
        let mut rankings = vec![0; nr_cpus];
        for (&number, &ranking) in numbers.iter().zip(&self.rankings) {
            rankings[number as usize] = ranking;
        }
        Topology { pool, sets, places, homes, rankings, llc_of_set, apart, ..self }
    }
}

/// Adds the mask of `cpus` (ascending, at least one) to the pool; a set with its place there.
fn push(pool: &mut Vec<u64>, cpus: &[u32]) -> ffi::Set {
    let first = cpus[0] / 64;
    let words = cpus[cpus.len() - 1] / 64 - first + 1;
    let offset = pool.len();
    pool.resize(offset + words as usize, 0);
    for &cpu in cpus {
        pool[offset + (cpu / 64 - first) as usize] |= 1 << (cpu % 64);
    }
    ffi::Set {
        first,
        words,
        offset: offset as u32,
        weight: cpus.len() as u32,
        capacity: 0,
        max_capacity: 0,
    }
}
