// SPDX-License-Identifier: GPL-2.0-or-later
//! Who met whom at the kernel's contended cache lines, as `perf c2c` reports it.

use std::cmp::Reverse;

use super::Symbol;

/// The accesses of one function to one field.
///
/// `perf` samples, here every access is counted: shares can be compared, counts cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Loads of a line that a CPU of another node had modified; those of atomic instructions too.
    pub remote_hitm: u64,
    /// Of a line that another CPU of the same node had modified.
    pub local_hitm: u64,
    /// Stores.
    pub stores: u64,
    /// Of those, to a line that the L1 had: all of atomic instructions, which load it first.
    pub store_hits: u64,
    /// Loads, and atomic instructions.
    pub loads: u64,
    /// Of those, that took 30 cycles or more: `perf` sees no others.
    pub slow_loads: u64,
    /// How long these took, nanoseconds in all.
    pub slow_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

impl Row {
    /// HITM, of both kinds.
    pub fn hitm(&self) -> u64 {
        self.remote_hitm + self.local_hitm
    }

    /// What `perf` could have sampled.
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
    /// Where on the line, bytes.
    pub offset: u32,
    /// What they met.
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
    /// What it is a part of.
    pub name: String,
    /// By offset, then by HITM, most first.
    pub users: Vec<User>,
    /// Their sum.
    pub total: Row,
}

/// The contended lines of a run, the one with the most HITM first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct C2c {
    /// Cycles in a microsecond.
    pub frequency_mhz: u32,
    /// Those that were touched.
    pub lines: Vec<Line>,
}

impl C2c {
    pub(crate) fn new(
        frequency_mhz: u32,
        rows: impl Iterator<Item = ((String, u32), Symbol, Row)>,
    ) -> C2c {
        let mut lines: Vec<Line> = Vec::new();
        for ((name, offset), symbol, row) in rows {
            let user = User {
                symbol,
                offset,
                row,
            };
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => match line.users.iter_mut().find(|u| u.is_as(&user)) {
                    Some(known) => known.row.add(&user.row),
                    None => line.users.push(user),
                },
                None => lines.push(Line {
                    name,
                    users: vec![user],
                    total: Row::default(),
                }),
            }
        }
        for line in &mut lines {
            for user in &line.users {
                line.total.add(&user.row);
            }
            line.users
                .sort_by_key(|u| (u.offset, Reverse(u.row.hitm()), u.symbol));
        }
        // Stable: lines of equal rank stay in the order of their addresses.
        lines.sort_by_key(|line| Reverse(line.total.hitm()));
        C2c {
            frequency_mhz,
            lines,
        }
    }

    /// Adds what another run of the same kernel and machine counted.
    pub fn add(&mut self, other: &C2c) {
        let rows = std::mem::take(&mut self.lines).into_iter();
        let rows = rows.chain(other.lines.iter().cloned()).flat_map(|line| {
            let name = line.name;
            let users = line.users.into_iter();
            users.map(move |u| ((name.clone(), u.offset), u.symbol, u.row))
        });
        *self = C2c::new(self.frequency_mhz, rows);
    }

    /// Mean cycles of a row's loads of 30 cycles or more; 0 if there were none.
    pub fn mean_cycles(&self, row: &Row) -> f64 {
        match row.slow_loads {
            0 => 0.0,
            loads => row.slow_ns as f64 * f64::from(self.frequency_mhz) / 1000.0 / loads as f64,
        }
    }
}
