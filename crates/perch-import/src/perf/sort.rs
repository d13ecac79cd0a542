// SPDX-License-Identifier: GPL-2.0-or-later
//! A sorter for perf's records. perf writes the contents of one CPU's buffer after the other, and
//! marks the end of each round over the buffers. No later record is older than the newest record of
//! the round before the marked one.

use std::collections::BTreeMap;

/// Puts values that arrive in that order into the order of time; values of the same time stay in
/// the order of arrival.
#[derive(Debug)]
pub struct Sorter<T> {
    waiting: BTreeMap<(u64, u64), T>,
    arrived: u64,
    /// The newest time of this round, and that of the round before.
    newest: u64,
    before: u64,
    /// The sorter has given out every value up to this time.
    given: u64,
}

impl<T> Default for Sorter<T> {
    fn default() -> Sorter<T> {
        Sorter { waiting: BTreeMap::new(), arrived: 0, newest: 0, before: 0, given: 0 }
    }
}

impl<T> Sorter<T> {
    /// Takes a value. Returns whether it is too late, because a newer one was given out.
    pub fn push(&mut self, at_ns: u64, value: T) -> bool {
        self.newest = self.newest.max(at_ns);
        self.waiting.insert((at_ns, self.arrived), value);
        self.arrived += 1;
        at_ns < self.given
    }

    /// Ends a round: gives out the values that no later value can precede.
    pub fn round(&mut self, mut give: impl FnMut(T)) {
        let later = self.waiting.split_off(&(self.before.saturating_add(1), 0));
        for (_, value) in std::mem::replace(&mut self.waiting, later) {
            give(value);
        }
        self.given = self.before;
        self.before = self.newest;
    }

    /// Gives out the remaining values.
    pub fn finish(&mut self, mut give: impl FnMut(T)) {
        for (_, value) in std::mem::take(&mut self.waiting) {
            give(value);
        }
        self.given = self.newest;
    }

    /// Returns the number of values that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_come_out_in_order() {
        let mut sorter = Sorter::default();
        let mut out = Vec::new();
        for round in [&[1, 3, 2, 2, 4][..], &[3, 5, 4, 7], &[6, 8]] {
            for &at in round {
                assert!(!sorter.push(at, at));
            }
            sorter.round(|value| out.push(value));
        }
        assert_eq!(out, [1, 2, 2, 3, 3, 4, 4, 5, 6, 7]);
        assert_eq!(sorter.len(), 1);
        assert!(sorter.push(1, 1), "older than what was given out");
        sorter.finish(|value| out.push(value));
        assert_eq!(out[10..], [1, 8]);
    }
}
