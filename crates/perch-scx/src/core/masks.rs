// SPDX-License-Identifier: GPL-2.0-or-later
//! Masks of CPUs whose addresses the program has.

use std::collections::HashMap;

/// The kernel's masks of CPUs are as long as its CONFIG_NR_CPUS says, and a program may read them
/// whole.
const MASK_WORDS: usize = 8192 / 64;

#[derive(Default)]
pub(crate) struct Masks {
    /// The program's own, by address, with the number of its references.
    own: HashMap<usize, (Box<[u64; MASK_WORDS]>, i32)>,
    /// Those that it only reads, by number.
    lent: HashMap<usize, Box<[u64; MASK_WORDS]>>,
}

impl Masks {
    /// A mask without CPUs that the program owns.
    pub fn create(&mut self) -> usize {
        let mask = Box::new([0; MASK_WORDS]);
        let at = mask.as_ptr() as usize;
        self.own.insert(at, (mask, 1));
        at
    }

    /// Adds to the references of a mask, and frees it without any.
    ///
    /// # Errors
    /// The program owns no mask there.
    pub fn hold(&mut self, at: usize, more: i32) -> Result<(), String> {
        let Some((_, references)) = self.own.get_mut(&at) else {
            return Err(format!("{at:#x} is no mask that the program has created"));
        };
        *references += more;
        if *references <= 0 {
            self.own.remove(&at);
        }
        Ok(())
    }

    /// Writes the mask to lend that has this number; its address stays.
    pub fn lend(&mut self, number: usize, words: &[u64]) -> usize {
        let mask = self.lent.entry(number);
        let mask = mask.or_insert_with(|| Box::new([0; MASK_WORDS]));
        mask[..words.len()].copy_from_slice(words);
        mask.as_ptr() as usize
    }
}
