// SPDX-License-Identifier: GPL-2.0-or-later
//! A published cache line beside the simulated one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contention::{Contention, LineUser};
use crate::stats::spearman;

/// A line that `perf c2c` reported.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedLine {
    /// The benchmark that the line was seen in.
    pub benchmark: String,
    /// The place, within the benchmark, that the line was seen in.
    pub place: String,
    /// Loads that found the line modified by another CPU of another node.
    pub remote_hitm: f64,
    /// Loads that found the line modified by another CPU of the same node.
    pub local_hitm: f64,
    /// Stores that hit the L1.
    pub store_hits: f64,
    /// The functions that used the line, in the order in which the source printed them; the longest
    /// loads are not known.
    pub users: Vec<LineUser>,
}

/// A comparison of the simulated ranking of functions with the published one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// The quantity that ranks the functions.
    pub by: String,
    /// The published order of the functions, most first.
    pub published: Vec<String>,
    /// The simulated order of the same functions.
    pub simulated: Vec<String>,
    /// Spearman's coefficient of rank correlation between the two, -1 to 1; none where one of them
    /// is all ties.
    pub spearman: Option<f64>,
}

/// The published line, and the simulated lines where it was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineFound {
    /// The benchmark.
    pub benchmark: String,
    /// The set of CPUs to which the benchmark was pinned, or the machine it ran on.
    #[serde(rename = "where")]
    pub place: String,
    /// The published functions that use the line.
    pub published: Vec<LineUser>,
    /// The published totals of the line: its loads that met it modified in another node, those that
    /// met it modified in the same, and its stores that hit the L1.
    pub published_totals: [f64; 3],
    /// The name of the baseline's line that has most of the published functions at the same
    /// offsets; none where no line has any.
    pub line: Option<String>,
    /// The rankings of the published functions by HITM, and by records.
    pub rankings: Vec<Ranking>,
    /// The lines of each arm, `baseline` first.
    pub arms: Vec<Contention>,
}

impl LineFound {
    /// Compares the lines that `arms` touched, each over the arm's repetitions, with the published
    /// one; `baseline` comes first.
    pub(crate) fn new(published: &PublishedLine, arms: Vec<Contention>) -> LineFound {
        let has = |users: &[LineUser], user: &LineUser| {
            let mut users = users.iter();
            users.any(|other| (&other.symbol, other.offset) == (&user.symbol, user.offset))
        };
        // Only a line's users can tell which of the simulated lines is the published one.
        let met = |users: &[LineUser]| published.users.iter().filter(|u| has(users, u)).count();
        let seen = arms.first().map_or(&[][..], |arm| arm.lines.as_slice());
        let most = seen.iter().map(|line| met(&line.users)).max().unwrap_or(0);
        let line = seen.iter().find(|line| most > 0 && met(&line.users) == most);
        let totals = [published.remote_hitm, published.local_hitm];
        let rankings = match line {
            Some(line) => {
                let simulated = [line.remote_hitm as f64, line.local_hitm as f64];
                rankings(&published.users, totals, &line.users, simulated)
            }
            None => Vec::new(),
        };
        LineFound {
            benchmark: published.benchmark.clone(),
            place: published.place.clone(),
            published: published.users.clone(),
            published_totals: [totals[0], totals[1], published.store_hits],
            line: line.map(|line| line.line.clone()),
            rankings,
            arms,
        }
    }

    /// Returns the line's place in an arm's table, counted from 1; none where no CPU touched the
    /// line.
    pub fn rank(&self, arm: &Contention) -> Option<usize> {
        let at = arm.lines.iter().position(|line| Some(&line.line) == self.line.as_ref());
        at.map(|at| at + 1)
    }
}

/// Sums the rows of each function: code that was inlined twice has two rows.
fn by_function(users: &[LineUser], of: impl Fn(&LineUser) -> f64) -> Vec<(&str, f64)> {
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for user in users {
        match sums.iter_mut().find(|(symbol, _)| *symbol == user.symbol) {
            Some((_, sum)) => *sum += of(user),
            None => sums.push((&user.symbol, of(user))),
        }
    }
    sums
}

fn rankings(
    published: &[LineUser],
    published_totals: [f64; 2],
    simulated: &[LineUser],
    simulated_totals: [f64; 2],
) -> Vec<Ranking> {
    let hitm = |[remote, local]: [f64; 2]| {
        move |user: &LineUser| (user.remote_hitm_pct * remote + user.local_hitm_pct * local) / 100.0
    };
    let records = |user: &LineUser| user.records as f64;
    vec![
        ranking(
            "HITM",
            by_function(published, hitm(published_totals)),
            &by_function(simulated, hitm(simulated_totals)),
        ),
        ranking("records", by_function(published, records), &by_function(simulated, records)),
    ]
}

fn ranking(by: &str, published: Vec<(&str, f64)>, simulated: &[(&str, f64)]) -> Ranking {
    let of = |symbol: &str| {
        let found = simulated.iter().find(|(other, _)| *other == symbol);
        found.map_or(0.0, |(_, value)| *value)
    };
    let simulated: Vec<(&str, f64)> = published.iter().map(|(s, _)| (*s, of(s))).collect();
    let values = |of: &[(&str, f64)]| of.iter().map(|(_, value)| *value).collect::<Vec<_>>();
    Ranking {
        by: by.to_string(),
        spearman: spearman(&values(&published), &values(&simulated)),
        published: ordered(published),
        simulated: ordered(simulated),
    }
}

fn ordered(mut values: Vec<(&str, f64)>) -> Vec<String> {
    values.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let names = values.into_iter().map(|(symbol, _)| symbol.to_string());
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contention::ContendedLine;

    fn user(symbol: &str, offset: u32, remote: f64, records: u64) -> LineUser {
        LineUser {
            remote_hitm_pct: remote,
            local_hitm_pct: 0.0,
            store_hit_pct: 0.0,
            offset,
            load_cycles: 5000.0,
            longest_cycles: 0.0,
            records,
            symbol: symbol.to_string(),
            seen: true,
        }
    }

    fn line(name: &str, users: Vec<LineUser>) -> ContendedLine {
        ContendedLine {
            line: name.to_string(),
            hitm_pct: 50.0,
            remote_hitm: 1000,
            local_hitm: 10,
            store_hits: 1,
            load_cycles: 1.0,
            records: 1,
            users,
        }
    }

    /// The functions and offsets identify the line; the rows of one function are added up, and a
    /// function that met no other CPU comes last.
    #[test]
    fn the_published_line_is_found_by_who_uses_it_and_ranked() {
        let published = PublishedLine {
            benchmark: "b".to_string(),
            place: "w".to_string(),
            remote_hitm: 100.0,
            local_hitm: 10.0,
            store_hits: 5.0,
            users: vec![
                user("reads", 4, 20.0, 30),
                user("writes", 4, 11.0, 20),
                user("writes", 4, 10.0, 1),
                user("looks", 40, 50.0, 10),
                user("stops", 40, 1.0, 5),
            ],
        };
        let other = line("other", vec![user("reads", 8, 100.0, 1)]);
        let own = vec![
            user("reads", 4, 30.0, 300),
            user("writes", 4, 25.0, 400),
            user("looks", 40, 40.0, 200),
        ];
        let arm = |arm: &str, lines| Contention { arm: arm.to_string(), kernel_pct: 20.0, lines };
        let baseline = arm("baseline", vec![other.clone(), line("this", own)]);
        let found = LineFound::new(&published, vec![baseline, arm("patched", vec![other])]);
        assert_eq!(found.line.as_deref(), Some("this"));
        let ranks: Vec<_> = found.arms.iter().map(|arm| found.rank(arm)).collect();
        assert_eq!(ranks, [Some(2), None]);
        let [hitm, records] = &found.rankings[..] else {
            panic!("{:?}", found.rankings);
        };
        assert_eq!(hitm.published, ["looks", "writes", "reads", "stops"]);
        assert_eq!(hitm.simulated, ["looks", "reads", "writes", "stops"]);
        assert_eq!(hitm.spearman, Some(0.8));
        assert_eq!(records.published, ["reads", "writes", "looks", "stops"]);
        assert_eq!(records.simulated, ["writes", "reads", "looks", "stops"]);
    }

    #[test]
    fn a_line_that_nobody_touched_has_no_ranking() {
        let published = PublishedLine {
            benchmark: "b".to_string(),
            place: "w".to_string(),
            remote_hitm: 1.0,
            local_hitm: 1.0,
            store_hits: 1.0,
            users: vec![user("reads", 4, 100.0, 1)],
        };
        let found = LineFound::new(&published, Vec::new());
        assert_eq!((found.line, found.rankings.len()), (None, 0));
    }
}
