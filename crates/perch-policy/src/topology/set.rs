// SPDX-License-Identifier: GPL-2.0-or-later
//! The sets of CPUs that share something.

use super::Topology;
use crate::ffi;
use crate::mask::bits;

/// One group of CPUs of a domain.
#[derive(Clone, Copy, Debug)]
pub struct SetView<'a> {
    topology: &'a Topology,
    raw: &'a ffi::Set,
    number: u32,
}

impl<'a> SetView<'a> {
    /// Its number: the same CPUs have the same one, wherever they form a group. Below
    /// [`Topology::nr_sets`].
    pub fn number(&self) -> usize {
        self.number as usize
    }

    /// Number of CPUs.
    pub fn weight(&self) -> u32 {
        self.raw.weight
    }

    /// True if the CPU belongs to the domain.
    pub fn contains(&self, cpu: usize) -> bool {
        let word = (cpu / 64).wrapping_sub(self.raw.first as usize);
        word < self.raw.words as usize && self.words()[word] >> (cpu % 64) & 1 != 0
    }

    /// Number of the first word of [`SetView::words`] on the machine.
    pub fn first_word(&self) -> usize {
        self.raw.first as usize
    }

    /// The words that hold its CPUs.
    pub fn words(&self) -> &'a [u64] {
        let from = self.raw.offset as usize;
        &self.topology.pool[from..from + self.raw.words as usize]
    }

    /// The CPUs, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + 'a {
        bits(self.words(), self.first_word())
    }
}

impl Topology {
    /// Number of different sets of CPUs.
    pub fn nr_sets(&self) -> usize {
        self.sets.len()
    }

    /// The set of CPUs with this number.
    pub fn set_numbered(&self, number: usize) -> SetView<'_> {
        self.set(number as u32)
    }

    pub(super) fn set(&self, number: u32) -> SetView<'_> {
        SetView { topology: self, raw: &self.sets[number as usize], number }
    }
}
