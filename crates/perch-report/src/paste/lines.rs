// SPDX-License-Identifier: GPL-2.0-or-later
//! Contended cache lines in the form in which mails show reports of `perf c2c`: the users of a
//! line, and the ways in which they meet others there.

use std::fmt::Write;

use perch_experiment::Contention;

use super::mail::{WIDTH, ascii, cut};

/// A mail leaves out lines with less of all HITM than this, percent.
const LEAST_PCT: f64 = 1.0;

/// The widths of the dashes that set heads and totals off.
const COLUMNS: [usize; 7] = [7, 7, 6, 6, 6, 6, 24];

/// Returns a table for each line, of each arm, that matters.
pub fn lines(arms: &[Contention]) -> String {
    let dashes = COLUMNS.map(|width| "-".repeat(width)).join("  ");
    let mut text = String::new();
    for arm in arms {
        let _ = writeln!(text, "\nContended cache lines (perf c2c), {}:", cut(&arm.arm, 30));
        let shown = || arm.lines.iter().filter(|line| line.hitm_pct >= LEAST_PCT);
        if shown().next().is_none() {
            text.push_str("none\n");
        }
        for line in shown() {
            let _ = writeln!(text, "{dashes}");
            text.push_str(" Rmt      Lcl     Store   Data    Load    Total    Symbol\n");
            text.push_str("Hitm%    Hitm%   L1 Hit%  offset  cycles  records\n");
            let _ = writeln!(text, "{dashes}");
            let total = format!(
                "{:>6}   {:>6}   {:>6}  {} ({:.2}% of HITM)",
                line.remote_hitm, line.local_hitm, line.store_hits, line.line, line.hitm_pct
            );
            let _ = writeln!(text, "{}", cut(&total, WIDTH));
            let _ = writeln!(text, "{dashes}");
            let seen = || line.users.iter().filter(|user| user.seen);
            let digits = seen().map(|user| user.records.to_string().len());
            let records = digits.max().unwrap_or(0).max(5);
            for user in seen() {
                let percent = |share: f64| format!("{share:.2}%");
                let row = format!(
                    "{:<8}{:>7}  {:>7}  {:<6}  {:<6.0}  {:<records$} {}",
                    // A percentage of 100 takes a column more, on the right.
                    format!("{:>6}", percent(user.remote_hitm_pct)),
                    percent(user.local_hitm_pct),
                    percent(user.store_hit_pct),
                    format!("{:#x}", user.offset),
                    user.load_cycles,
                    user.records,
                    user.symbol
                );
                let _ = writeln!(text, "{}", cut(&row, WIDTH));
            }
        }
    }
    ascii(&text)
}
