// SPDX-License-Identifier: GPL-2.0-or-later
//! An input as the changes of a seed that make it.

use proptest::prelude::*;

use crate::Mutation;
use crate::mutation::place;

/// A seed, and its changes in their order. It shrinks to fewer changes.
#[derive(Clone, Debug)]
pub struct Recipe {
    seed: u32,
    changes: Vec<Mutation>,
}

impl Recipe {
    /// Returns the recipes of a format of text, or of a binary one: most have few changes, as the
    /// first that breaks the form hides all others.
    pub fn any(binary: bool) -> impl Strategy<Value = Recipe> {
        let some = |most| prop::collection::vec(Mutation::any(binary), 0..=most);
        let changes = prop_oneof![3 => some(2), 2 => some(5), 1 => some(16)];
        (any::<u32>(), changes).prop_map(|(seed, changes)| Recipe { seed, changes })
    }

    /// Makes the input.
    pub fn input(&self, seeds: &[Vec<u8>], dictionary: &[&str]) -> Vec<u8> {
        let mut input = seeds[place(self.seed, seeds.len())].clone();
        for change in &self.changes {
            change.apply(&mut input, seeds, dictionary);
        }
        input
    }
}
