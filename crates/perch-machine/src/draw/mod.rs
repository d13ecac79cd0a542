// SPDX-License-Identifier: GPL-2.0-or-later
//! A machine as a drawing for a terminal or a mail: boxes as in the cover letters of scheduler
//! patches, plain ASCII, then the scheduler's levels and the costs.
//!
//! Parts that are alike are drawn once or a few times, with a column that counts the rest.

mod facts;
mod grid;
mod parts;

use crate::model::Machine;
use parts::{Limits, Outline, Part};

/// The smallest width in columns at which a drawing is possible.
const MIN_WIDTH: usize = 40;

/// The most separate grids that a drawing of an irregular machine has.
const MAX_GRIDS: usize = 24;

/// Returns a drawing of `machine` at most `width` columns wide (at least 40).
pub fn draw(machine: &Machine, width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let outline = Outline::new(machine);
    let mut grids =
        Grids { outline: &outline, width, drawn: 0, skipped: false, out: String::new() };
    let all: Vec<u32> = (0..machine.cpus.len() as u32).collect();
    grids.draw(&all, 0);

    let title = format!("{}: {}", machine.name, machine.description);
    let mut out = facts::wrap(&title, 4, width) + "\n" + &grids.out;
    if grids.skipped {
        out.push_str("(further parts, unlike these, are not drawn)\n\n");
    }
    let counted = grids.out.contains(" more ");
    let counted = counted.then(|| "N more: parts like those to their left".to_string());
    let legend: Vec<String> = outline.legend().into_iter().chain(counted).collect();
    if !legend.is_empty() {
        out.push_str(&format!("{}\n\n", legend.join("; ")));
    }
    out + &facts::facts(machine, width)
}

/// The grids of a drawing, one after another, at most [`MAX_GRIDS`].
struct Grids<'a> {
    outline: &'a Outline<'a>,
    width: usize,
    drawn: usize,
    /// True where the drawing leaves something out.
    skipped: bool,
    out: String,
}

impl Grids<'_> {
    /// Draws `cpus` from `level` down in one grid if a grid can be narrow enough, else draws their
    /// parts in grids of their own.
    fn draw(&mut self, cpus: &[u32], level: usize) {
        if self.drawn == MAX_GRIDS {
            self.skipped = true;
            return;
        }
        if let Some(parts) = fitting(self.outline, cpus, level, self.width) {
            self.drawn += 1;
            self.out.push_str(&grid::grid(&parts));
            self.out.push('\n');
            return;
        }
        let groups = self.outline.split(cpus, level);
        if groups.len() > 1 {
            groups.iter().for_each(|group| self.draw(group, level));
        } else if level + 1 < self.outline.levels() {
            self.out.push_str(&self.outline.heading(cpus, level));
            self.out.push('\n');
            self.draw(cpus, level + 1);
        }
    }
}

/// Returns the most detailed parts that fit into `width`: parts that are alike are collapsed from
/// the outside in, because readers look for the inside.
fn fitting(outline: &Outline, cpus: &[u32], level: usize, width: usize) -> Option<Vec<Part>> {
    let mut limits: Limits = vec![usize::MAX; outline.levels()];
    let fits = |limits: &Limits| {
        let parts = outline.parts(cpus, level, limits);
        (grid::width(&parts) <= width).then_some(parts)
    };
    if let Some(parts) = fits(&limits) {
        return Some(parts);
    }
    for at in level..limits.len() {
        for limit in [8, 4, 2, 1] {
            limits[at] = limit;
            if let Some(parts) = fits(&limits) {
                return Some(parts);
            }
        }
    }
    None
}
