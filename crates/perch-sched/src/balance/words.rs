// SPDX-License-Identifier: GPL-2.0-or-later
//! Sets of CPUs, in words of 64 bits.

/// Returns whether `cpu` is among the CPUs of these words.
#[inline(always)]
pub(super) fn has(words: &[u64], cpu: usize) -> bool {
    words[cpu / 64] >> (cpu % 64) & 1 != 0
}

/// Sets whether `cpu` is among the CPUs of these words.
#[inline(always)]
pub(super) fn put(words: &mut [u64], cpu: usize, is: bool) {
    let (word, bit) = (&mut words[cpu / 64], 1 << (cpu % 64));
    if is {
        *word |= bit;
    } else {
        *word &= !bit;
    }
}
