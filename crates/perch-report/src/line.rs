// SPDX-License-Identifier: GPL-2.0-or-later
//! A published cache line beside the simulated one.

use std::fmt::Write;

use perch_experiment::{Contention, LineFound, LineUser, Ranking};

use crate::contention;
use crate::grid::{Align, Grid};

/// Writes the published rows beside the baseline's, the two rankings, the line's place in each arm,
/// and the lines of the arm that follows. `mark` begins a heading.
pub(crate) fn sections(found: &LineFound, mark: &str, write: fn(&Grid) -> String) -> String {
    let blank = if mark.is_empty() { "" } else { "\n" };
    let mut text = String::new();
    let name = found.line.as_deref().unwrap_or("no such line");
    let _ = writeln!(
        text,
        "\n{mark}{}, {}: the line as perf c2c printed it, and {name}, arm baseline{blank}",
        found.benchmark, found.place
    );
    text.push_str(&write(&rows(found)));
    text.push_str(blank);
    for ranking in &found.rankings {
        text.push_str(blank);
        let _ = writeln!(text, "{}", ranked(ranking));
    }
    text.push_str(blank);
    let _ = writeln!(text, "\n{}", stands(found));
    text.push_str(&contention::sections(&found.arms, mark, write));
    text
}

fn rows(found: &LineFound) -> Grid {
    let mut grid = Grid::new(&[], &["offset"]);
    grid.column("", "symbol", Align::Left);
    for group in ["published", "simulated"] {
        grid.columns(group, &["rmt HITM", "lcl HITM", "store", "cycles", "records"], Align::Right);
    }
    let line = found.arms.first().and_then(|arm| of(found, arm));
    let [remote, local, stores] = found.published_totals;
    let mut totals = vec![String::new(), "total".to_string()];
    totals.extend([remote, local, stores].map(|n| format!("{n:.0}")));
    let records: u64 = found.published.iter().map(|user| user.records).sum();
    totals.extend([String::new(), records.to_string()]);
    match line {
        Some(line) => totals.extend([
            line.remote_hitm.to_string(),
            line.local_hitm.to_string(),
            line.store_hits.to_string(),
            format!("{:.0}", line.load_cycles),
            line.records.to_string(),
        ]),
        None => totals.extend([const { String::new() }; 5]),
    }
    grid.row(totals);
    let simulated = line.map_or(&[][..], |line| line.users.as_slice());
    let same = |a: &LineUser, b: &LineUser| (a.offset, &a.symbol) == (b.offset, &b.symbol);
    for (at, user) in found.published.iter().enumerate() {
        // Where a function was printed twice, its first row has all the simulated figures.
        let again = found.published[..at].iter().any(|other| same(other, user));
        let beside = simulated.iter().find(|other| same(other, user) && !again);
        grid.row(row(user, Some(user), beside));
    }
    for user in simulated {
        let known = found.published.iter().any(|other| same(other, user));
        if !known && user.seen {
            grid.row(row(user, None, Some(user)));
        }
    }
    grid
}

fn row(name: &LineUser, published: Option<&LineUser>, simulated: Option<&LineUser>) -> Vec<String> {
    let mut row = vec![format!("{:#x}", name.offset), name.symbol.clone()];
    for user in [published, simulated] {
        row.extend(match user {
            Some(user) => [
                format!("{:.2}%", user.remote_hitm_pct),
                format!("{:.2}%", user.local_hitm_pct),
                format!("{:.2}%", user.store_hit_pct),
                format!("{:.0}", user.load_cycles),
                user.records.to_string(),
            ],
            None => [const { String::new() }; 5],
        });
    }
    row
}

fn ranked(ranking: &Ranking) -> String {
    let spearman = match ranking.spearman {
        Some(rho) => format!("{rho:.2}"),
        None => "none, for ties".to_string(),
    };
    format!(
        "by {}: Spearman {spearman}\n  published: {}\n  simulated: {}",
        ranking.by,
        ranking.published.join(" > "),
        ranking.simulated.join(" > ")
    )
}

/// Returns the line's place in each arm.
fn stands(found: &LineFound) -> String {
    let Some(name) = &found.line else {
        return "No line of the baseline has these functions.".to_string();
    };
    let arms = found.arms.iter().map(|arm| match found.rank(arm).zip(of(found, arm)) {
        Some((rank, line)) if line.remote_hitm + line.local_hitm > 0 => {
            format!("{}: number {rank} with {:.2} % of all HITM", arm.arm, line.hitm_pct)
        }
        _ => format!("{}: gone, without HITM", arm.arm),
    });
    format!("{name}: {}", arms.collect::<Vec<_>>().join("; "))
}

fn of<'a>(found: &LineFound, arm: &'a Contention) -> Option<&'a perch_experiment::ContendedLine> {
    found.rank(arm).map(|rank| &arm.lines[rank - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use perch_experiment::ContendedLine;

    fn user(symbol: &str, offset: u32, share: f64, seen: bool) -> LineUser {
        let (local_hitm_pct, store_hit_pct) = (share / 2.0, 0.0);
        let user = contention::tests::user(symbol, offset, share);
        LineUser { local_hitm_pct, store_hit_pct, seen, ..user }
    }

    fn arm(arm: &str, remote_hitm: u64) -> Contention {
        let users = vec![
            user("reads", 0x4, 60.0, true),
            user("nobody_knew_of", 0x10, 40.0, true),
            user("met_nobody", 0x20, 0.0, false),
        ];
        let line = contention::tests::line("root_domain+0x0", 99.5, users);
        contention::tests::arm(arm, vec![ContendedLine { remote_hitm, local_hitm: 0, ..line }])
    }

    fn found(line: Option<&str>) -> LineFound {
        let names = |names: [&str; 2]| names.map(str::to_string).to_vec();
        LineFound {
            benchmark: "ffmpeg".to_string(),
            place: "rt480".to_string(),
            published: vec![
                user("reads", 0x4, 22.5, true),
                user("reads", 0x4, 0.5, true),
                user("looks", 0x28, 77.0, true),
            ],
            published_totals: [231.0, 43.0, 48.0],
            line: line.map(str::to_string),
            rankings: vec![Ranking {
                by: "HITM".to_string(),
                published: names(["looks", "reads"]),
                simulated: names(["reads", "looks"]),
                spearman: Some(-1.0),
            }],
            arms: vec![arm("baseline", 231), arm("patched", 0)],
        }
    }

    /// Where a function was printed twice, the simulated figures stand once; a function that met no
    /// other CPU is in no table.
    #[test]
    fn published_functions_come_first_and_then_who_else_was_seen() {
        insta::assert_snapshot!(sections(&found(Some("root_domain+0x0")), "", Grid::text));
    }

    #[test]
    fn a_line_that_nobody_used_is_said_to_be_none() {
        let text = sections(&found(None), "", Grid::text);
        assert!(text.contains("No line of the baseline has these functions."), "{text}");
        assert!(text.contains("and no such line, arm baseline"), "{text}");
    }
}
