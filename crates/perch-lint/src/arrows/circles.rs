// SPDX-License-Identifier: GPL-2.0-or-later
//! Files that need each other, directly or by way of others. Two may; more are a knot that has to
//! be read as a whole, and are refused unless `house.txt` lets them stand for now.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::arrow::{Arrow, graph};
use crate::house::{HOUSE_FILE, House, line_of};
use crate::tree::within;
use crate::{Complaint, Tree};

type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Find the circles of more than two files.
pub fn check(tree: &Tree, house: &House, arrows: &[Arrow]) -> Vec<Complaint> {
    let graph = graph(arrows);
    let mut complaints = Vec::new();
    let mut standing = BTreeSet::new();
    for circle in circles(&graph)
        .into_iter()
        .filter(|circle| circle.len() > 2)
    {
        let excuse = house
            .circles
            .iter()
            .position(|entry| circle.iter().all(|file| within(file, &entry.within)));
        match excuse {
            Some(index) if circle.len() <= house.circles[index].files => {
                standing.insert(index);
            }
            Some(index) => {
                standing.insert(index);
                let allowed = house.circles[index].files;
                complaints.push(complaint(&graph, arrows, &circle, Some(allowed)));
            }
            None => complaints.push(complaint(&graph, arrows, &circle, None)),
        }
    }
    for (index, entry) in house.circles.iter().enumerate() {
        if !standing.contains(&index) {
            let line = line_of(tree, &entry.within);
            let what = format!("no circle is left in {}: remove this entry", entry.within);
            complaints.push(Complaint::new(HOUSE_FILE, line, what));
        }
    }
    complaints
}

fn complaint(
    graph: &Graph<'_>,
    arrows: &[Arrow],
    circle: &BTreeSet<&str>,
    allowed: Option<usize>,
) -> Complaint {
    let round = round(graph, circle);
    let arrow = |from: &str, to: &str| arrows.iter().find(|a| a.from == from && a.to == to);
    let mut steps = Vec::new();
    for (from, to) in round.iter().zip(round.iter().cycle().skip(1)) {
        if let Some(arrow) = arrow(from, to) {
            steps.push(format!(
                "{}:{} uses '{}' of {}",
                arrow.from, arrow.line, arrow.name, arrow.to
            ));
        }
    }
    let first = round.first().copied().unwrap_or("");
    let line = round
        .get(1)
        .and_then(|next| arrow(first, next))
        .map_or(1, |arrow| arrow.line);
    let limit = allowed.map_or(String::new(), |files| format!(" ({files} may, for now)"));
    let what = format!(
        "{} files need each other in a circle{limit}; one way round: {}; all: {}",
        circle.len(),
        steps.join(", "),
        circle.iter().copied().collect::<Vec<_>>().join(" ")
    );
    Complaint::new(first, line, what)
}

/// A short walk through the circle that comes back to where it began and sees three files at
/// least, if there is one; two files with arrows both ways otherwise.
fn round<'a>(graph: &Graph<'a>, circle: &BTreeSet<&'a str>) -> Vec<&'a str> {
    let mut best: Vec<&str> = Vec::new();
    for from in circle {
        for to in graph[from].intersection(circle) {
            // The way back must not be the same pair of files.
            let Some(mut way) = way(graph, circle, to, from, (to, from)) else {
                continue;
            };
            way.insert(0, from);
            way.pop();
            if best.is_empty() || way.len() < best.len() {
                best = way;
            }
        }
    }
    if best.is_empty() {
        // Only pairs, chained: show one file with its two partners.
        best = circle.iter().copied().take(2).collect();
        for from in circle {
            if let Some(to) = graph[from].intersection(circle).next() {
                best = vec![from, to];
                break;
            }
        }
    }
    best
}

/// The shortest way from one file to another within the circle, without the arrow `but`.
fn way<'a>(
    graph: &Graph<'a>,
    circle: &BTreeSet<&'a str>,
    from: &'a str,
    to: &'a str,
    but: (&str, &str),
) -> Option<Vec<&'a str>> {
    let mut came: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([from]);
    while let Some(at) = next.pop_front() {
        for &step in graph[at].intersection(circle) {
            if (at, step) == but || step == from || came.contains_key(step) {
                continue;
            }
            came.insert(step, at);
            if step == to {
                let mut way = vec![to];
                while let Some(before) = way.last().and_then(|last| came.get(last)) {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            next.push_back(step);
        }
    }
    None
}

/// The sets of files that reach each other: Tarjan's strongly connected components.
fn circles<'a>(graph: &Graph<'a>) -> Vec<BTreeSet<&'a str>> {
    let mut search = Search {
        graph,
        number: BTreeMap::new(),
        low: BTreeMap::new(),
        stack: vec![],
        found: vec![],
    };
    for file in graph.keys() {
        if !search.number.contains_key(file) {
            search.visit(file);
        }
    }
    search.found
}

struct Search<'g, 'a> {
    graph: &'g Graph<'a>,
    number: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<BTreeSet<&'a str>>,
}

impl<'a> Search<'_, 'a> {
    /// Recursion is as deep as the longest chain of files, some hundreds at most.
    fn visit(&mut self, file: &'a str) {
        let number = self.number.len();
        self.number.insert(file, number);
        let mut low = number;
        self.stack.push(file);
        for &next in &self.graph[file] {
            if !self.number.contains_key(next) {
                self.visit(next);
                low = low.min(self.low[next]);
            } else if self.stack.contains(&next) {
                low = low.min(self.number[next]);
            }
        }
        self.low.insert(file, low);
        if low == number {
            let start = self
                .stack
                .iter()
                .position(|other| *other == file)
                .unwrap_or(0);
            self.found.push(self.stack.drain(start..).collect());
        }
    }
}
