// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts of the accesses to the kernel's contended cache lines, as `perf c2c` reports them.

use std::cmp::Reverse;

use super::Symbol;

/// The accesses of one function to one field.
///
/// `perf` samples, while this counts every access: shares can be compared, counts cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Loads of a line that a CPU of another node had modified, including the loads of atomic
    /// instructions.
    pub remote_hitm: u64,
    /// Loads of a line that another CPU of the same node had modified.
    pub local_hitm: u64,
    /// Stores.
    pub stores: u64,
    /// Stores to a line that the L1 had. All stores of atomic instructions are such, because these
    /// load the line first.
    pub store_hits: u64,
    /// Loads, including those of atomic instructions.
    pub loads: u64,
    /// Loads that took 30 cycles or more; `perf` sees no others.
    pub slow_loads: u64,
    /// The time that those took, in nanoseconds in all.
    pub slow_ns: u64,
    /// The longest of those, in nanoseconds.
    pub longest_ns: u64,
}

impl Row {
    /// Returns the HITM of both kinds.
    pub fn hitm(&self) -> u64 {
        self.remote_hitm + self.local_hitm
    }

    /// Returns the number of accesses that `perf` could have sampled.
    pub fn records(&self) -> u64 {
        self.slow_loads + self.stores
    }

    fn add(&mut self, other: &Row) {
        self.remote_hitm += other.remote_hitm;
        self.local_hitm += other.local_hitm;
        self.stores += other.stores;
        self.store_hits += other.store_hits;
        self.loads += other.loads;
        self.slow_loads += other.slow_loads;
        self.slow_ns += other.slow_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// A function's accesses to a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The kernel function.
    pub symbol: Symbol,
    /// The field's place on the line, in bytes.
    pub offset: u32,
    /// The counts of the accesses.
    pub row: Row,
}

impl User {
    fn is_as(&self, other: &User) -> bool {
        (self.symbol, self.offset) == (other.symbol, other.offset)
    }
}

/// One cache line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The name of the structure that the line is a part of.
    pub name: String,
    /// The functions, by offset, then by HITM, most first.
    pub users: Vec<User>,
    /// The sum of the functions' counts.
    pub total: Row,
}

/// The contended lines of a run, the one with the most HITM first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct C2c {
    /// The number of cycles in a microsecond.
    pub frequency_mhz: u32,
    /// The lines that were accessed.
    pub lines: Vec<Line>,
}

impl C2c {
    pub(crate) fn new(
        frequency_mhz: u32,
        rows: impl Iterator<Item = ((String, u32), Symbol, Row)>,
    ) -> C2c {
        let mut lines: Vec<Line> = Vec::new();
        for ((name, offset), symbol, row) in rows {
            let user = User { symbol, offset, row };
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => match line.users.iter_mut().find(|u| u.is_as(&user)) {
                    Some(known) => known.row.add(&user.row),
                    None => line.users.push(user),
                },
                None => lines.push(Line { name, users: vec![user], total: Row::default() }),
            }
        }
        for line in &mut lines {
            for user in &line.users {
                line.total.add(&user.row);
            }
            line.users.sort_by_key(|u| (u.offset, Reverse(u.row.hitm()), u.symbol));
        }
        // The sort is stable: lines of equal rank stay in the order of their addresses.
        lines.sort_by_key(|line| Reverse(line.total.hitm()));
        C2c { frequency_mhz, lines }
    }

    /// Adds the counts of another run of the same kernel and machine.
    pub fn add(&mut self, other: &C2c) {
        let rows = std::mem::take(&mut self.lines).into_iter();
        let rows = rows.chain(other.lines.iter().cloned()).flat_map(|line| {
            let name = line.name;
            let users = line.users.into_iter();
            users.map(move |u| ((name.clone(), u.offset), u.symbol, u.row))
        });
        *self = C2c::new(self.frequency_mhz, rows);
    }

    /// Returns the mean cycles of a row's loads of 30 cycles or more; 0 if there were none.
    pub fn mean_cycles(&self, row: &Row) -> f64 {
        match row.slow_loads {
            0 => 0.0,
            loads => row.slow_ns as f64 * f64::from(self.frequency_mhz) / 1000.0 / loads as f64,
        }
    }
}
