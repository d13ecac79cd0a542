// SPDX-License-Identifier: GPL-2.0-or-later
//! Charts of all percentiles of a distribution, in which the rare ones are as wide as the frequent
//! ones.

use super::*;

/// Draws the latency that each share of the wake-ups did not exceed. Each arm has buckets: the
/// longest latency of each, nanoseconds, and its number of wake-ups.
pub fn tails(words: &Words, arms: &[(String, Vec<[u64; 2]>)]) -> String {
    const MARKED: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
    // On this scale 0, 90, 99, 99.9 % and so on are equally far from each other.
    let nines = |share: f64| -(1.0 - share).log10();
    let mut lines = Vec::new();
    let mut marked = Vec::new();
    for (look, (name, buckets)) in arms.iter().enumerate() {
        let all: u64 = buckets.iter().map(|[_, count]| count).sum();
        // A logarithmic axis has no place for 0, which stands at its bucket's finest step.
        let point =
            |x, ns: u64| Point { x, y: (ns.max(1) as f64 / 1e3).log10(), half: None, span: None };
        let (mut line, mut marks) = (Vec::new(), Vec::new());
        let mut seen = 0;
        for [ns, count] in buckets {
            let before = seen as f64 / all as f64;
            seen += count;
            let after = seen as f64 / all as f64;
            // The last step has no end, so the chart draws it up to the share of one wake-up in
            // all.
            let end = nines(after).min((all as f64).log10());
            line.extend([point(nines(before), *ns), point(end, *ns)]);
            let reached = MARKED.into_iter().filter(|at| before < *at && *at <= after);
            marks.extend(reached.map(|at| point(nines(at), *ns)));
        }
        lines.push(line);
        marked.push(Series { name: name.clone(), points: marks, look, published: false });
    }
    let points = || lines.iter().flatten();
    let most = points().map(|p| p.x).fold(1.0, f64::max).ceil();
    let names: Vec<String> = (0..=most as usize)
        .map(|nines| match nines {
            0 => "0 %".to_string(),
            1 => "90 %".to_string(),
            2 => "99 %".to_string(),
            _ => format!("99.{} %", "9".repeat(nines - 2)),
        })
        .collect();
    let (x, y) = (
        Axis { name: "of the wake-ups took no longer than", ticks: Ticks::Names(&names) },
        Axis { name: "us", ticks: Ticks::Powers },
    );
    // The axis spans a factor of three at least, since a small difference would look large on a
    // narrower one.
    let ys = range(points().map(|p| p.y), false);
    let room = ((0.5 - (ys.end - ys.start)) / 2.0).max(0.0);
    let ys = ys.start - room..ys.end + room;
    let tall = ys.end - ys.start;
    svg(340, words, |root| {
        let area = plane(root, [(&x, 0.0..most), (&y, ys)], &marked)?;
        for (line, series) in lines.iter().zip(&marked) {
            let color = SERIES[series.look % SERIES.len()];
            // The chart leaves out steps that nobody can see: they would be most of the page.
            let (wide, high) = (most / 700.0, tall / 300.0);
            let mut path: Vec<(f64, f64)> = Vec::new();
            for (at, p) in line.iter().enumerate() {
                let seen =
                    |&(x, y): &(f64, f64)| (p.x - x).abs() >= wide || (p.y - y).abs() >= high;
                if path.last().is_none_or(seen) || at + 1 == line.len() {
                    path.push((p.x, p.y));
                }
            }
            area.draw(&PathElement::new(path, color.stroke_width(2)))?;
            marks(&area, series)?;
        }
        Ok(())
    })
}
