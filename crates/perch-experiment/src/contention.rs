// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's contended cache lines, by arm, in the terms of `perf c2c`.

use perch_sim::{C2c, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Accesses of one kernel function to one field. Percentages are shares of the line's accesses of
/// that kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineUser {
    /// Loads that met the line modified in another node, percent.
    pub remote_hitm_pct: f64,
    /// Loads that met it modified by another CPU of the same node, percent.
    pub local_hitm_pct: f64,
    /// Stores that hit L1, percent.
    pub store_hit_pct: f64,
    /// The offset of the field on the line, bytes.
    pub offset: u32,
    /// Mean cycles of those of the function's loads that took 30 cycles or more.
    pub load_cycles: f64,
    /// Cycles of the longest load.
    pub longest_cycles: f64,
    /// The number of loads of 30 cycles or more and of stores; where `perf` has samples, all of the
    /// samples.
    pub records: u64,
    /// The function's name.
    pub symbol: String,
    /// True where the function met another CPU or wrote; `perf c2c` prints no other functions.
    #[serde(skip)]
    pub seen: bool,
}

/// One cache line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContendedLine {
    /// The structure that the line is a part of.
    pub line: String,
    /// The line's share of the HITM of all lines, percent.
    pub hitm_pct: f64,
    /// Loads that met the line modified in another node.
    pub remote_hitm: u64,
    /// Loads that met the line modified by another CPU of the same node.
    pub local_hitm: u64,
    /// Stores that hit L1.
    pub store_hits: u64,
    /// Mean cycles of loads of 30 cycles or more.
    pub load_cycles: f64,
    /// Loads of 30 cycles or more, and stores.
    pub records: u64,
    /// The functions that use the line: by offset, then by HITM, most first.
    pub users: Vec<LineUser>,
}

/// An arm's contended lines, the one with the most HITM first; sums over its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contention {
    /// The arm's name.
    pub arm: String,
    /// The mean share of busy time that the kernel used, percent.
    pub kernel_pct: f64,
    /// The lines that a CPU touched.
    pub lines: Vec<ContendedLine>,
}

/// The sums over an arm's repetitions that its [`Contention`] is made of.
#[derive(Default)]
pub(crate) struct LineSums {
    lines: Option<C2c>,
    kernel_pct: f64,
    repetitions: usize,
}

impl LineSums {
    /// Adds a repetition: its contended lines, if the machine has figures for them, and the
    /// kernel's share of its busy time.
    pub fn add(&mut self, lines: Option<&C2c>, kernel_pct: f64) {
        match (&mut self.lines, lines) {
            (Some(sum), Some(more)) => sum.add(more),
            (None, Some(first)) => self.lines = Some(first.clone()),
            (_, None) => {}
        }
        self.kernel_pct += kernel_pct;
        self.repetitions += 1;
    }

    /// Returns the lines that the arm's repetitions touched; `None` on a machine without figures
    /// for contended lines.
    pub fn found(&self, arm: &str) -> Option<Contention> {
        let sum = self.lines.as_ref()?;
        let hitm: u64 = sum.lines.iter().map(|line| line.total.hitm()).sum();
        Some(Contention {
            arm: arm.to_string(),
            kernel_pct: self.kernel_pct / self.repetitions as f64,
            lines: sum.lines.iter().map(|l| line(sum, l, hitm)).collect(),
        })
    }
}

fn line(c2c: &C2c, line: &perch_sim::Line, hitm: u64) -> ContendedLine {
    let total = &line.total;
    let user = |row: &Row, symbol: &str, offset| LineUser {
        remote_hitm_pct: share(row.remote_hitm, total.remote_hitm),
        local_hitm_pct: share(row.local_hitm, total.local_hitm),
        store_hit_pct: share(row.store_hits, total.store_hits),
        offset,
        load_cycles: c2c.mean_cycles(row),
        longest_cycles: row.longest_ns as f64 * f64::from(c2c.frequency_mhz) / 1000.0,
        records: row.records(),
        symbol: symbol.to_string(),
        seen: row.hitm() + row.stores > 0,
    };
    let users = line.users.iter();
    ContendedLine {
        line: line.name.clone(),
        hitm_pct: share(total.hitm(), hitm),
        remote_hitm: total.remote_hitm,
        local_hitm: total.local_hitm,
        store_hits: total.store_hits,
        load_cycles: c2c.mean_cycles(total),
        records: total.records(),
        users: users.map(|u| user(&u.row, u.symbol.name(), u.offset)).collect(),
    }
}

/// Returns `part` in percent of `whole`; 0 where `whole` is 0.
fn share(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => 100.0 * part as f64 / whole as f64,
    }
}
