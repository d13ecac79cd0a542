// SPDX-License-Identifier: GPL-2.0-or-later
//! Contended cache lines in the form of `perf c2c`: the lines, and the users of each.

use std::fmt::Write;

use perch_experiment::{ContendedLine, Contention};

use crate::grid::{Align, Grid};

/// The report names lines with less of all HITM than this but does not open them, percent.
const LEAST_PCT: f64 = 1.0;

/// Returns, for each arm, the lines and then the users of those that matter. `mark` begins a
/// heading.
pub(crate) fn sections(arms: &[Contention], mark: &str, write: fn(&Grid) -> String) -> String {
    let blank = if mark.is_empty() { "" } else { "\n" };
    let mut text = String::new();
    for arm in arms {
        let _ = writeln!(text, "\n{mark}contended lines, arm {}{blank}", arm.arm);
        text.push_str(&write(&lines(arm)));
        for line in arm.lines.iter().filter(|l| l.hitm_pct >= LEAST_PCT) {
            let _ = writeln!(text, "\n{mark}{}, arm {}{blank}", line.line, arm.arm);
            text.push_str(&write(&users(line)));
        }
    }
    text
}

fn lines(arm: &Contention) -> Grid {
    let mut grid = Grid::default();
    for (group, name) in [
        ("", "HITM%"),
        ("Rmt", "HITM"),
        ("Lcl", "HITM"),
        ("Store", "L1 Hit"),
        ("Load", "cycles"),
        ("Total", "records"),
    ] {
        grid.column(group, name, Align::Right);
    }
    grid.column("", "line", Align::Left);
    // CPUs only read most of the root domain's lines, and meet nobody there.
    let met = |line: &&ContendedLine| line.remote_hitm + line.local_hitm > 0;
    for line in arm.lines.iter().filter(met) {
        grid.row(vec![
            format!("{:.2}%", line.hitm_pct),
            line.remote_hitm.to_string(),
            line.local_hitm.to_string(),
            line.store_hits.to_string(),
            format!("{:.0}", line.load_cycles),
            line.records.to_string(),
            line.line.clone(),
        ]);
    }
    grid
}

fn users(line: &ContendedLine) -> Grid {
    let mut grid = Grid::default();
    for (group, name) in [
        ("Rmt", "Hitm%"),
        ("Lcl", "Hitm%"),
        ("Store", "L1 Hit%"),
        ("Data", "offset"),
        ("Load", "cycles"),
        ("Total", "records"),
    ] {
        grid.column(group, name, Align::Right);
    }
    grid.column("", "Symbol", Align::Left);
    for user in line.users.iter().filter(|user| user.seen) {
        grid.row(vec![
            format!("{:.2}%", user.remote_hitm_pct),
            format!("{:.2}%", user.local_hitm_pct),
            format!("{:.2}%", user.store_hit_pct),
            format!("{:#x}", user.offset),
            format!("{:.0}", user.load_cycles),
            user.records.to_string(),
            user.symbol.clone(),
        ]);
    }
    grid
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use perch_experiment::LineUser;

    pub(crate) fn user(symbol: &str, offset: u32, share: f64) -> LineUser {
        LineUser {
            remote_hitm_pct: share,
            local_hitm_pct: 100.0 - share,
            store_hit_pct: 50.0,
            offset,
            load_cycles: 5041.4,
            longest_cycles: 20_000.0,
            records: 247,
            symbol: symbol.to_string(),
            seen: share > 0.0,
        }
    }

    pub(crate) fn line(name: &str, hitm_pct: f64, users: Vec<LineUser>) -> ContendedLine {
        ContendedLine {
            line: name.to_string(),
            hitm_pct,
            remote_hitm: 231,
            local_hitm: 43,
            store_hits: 48,
            load_cycles: 6000.0,
            records: 494,
            users,
        }
    }

    pub(crate) fn arm(arm: &str, lines: Vec<ContendedLine>) -> Contention {
        Contention { arm: arm.to_string(), kernel_pct: 20.0, lines }
    }

    #[test]
    fn lines_first_then_who_uses_those_that_matter() {
        let users = vec![
            user("pull_rt_task", 0x4, 22.51),
            user("enqueue_task_rt", 0x28, 77.49),
            user("reads_what_nobody_wrote", 0x4, 0.0),
        ];
        let lines =
            vec![line("root_domain+0x0", 99.5, users.clone()), line("rto_mask", 0.5, users)];
        insta::assert_snapshot!(sections(&[arm("baseline", lines)], "", Grid::text));
    }

    #[test]
    fn nothing_is_said_where_nothing_is_modelled() {
        assert_eq!(sections(&[], "", Grid::text), "");
    }
}
