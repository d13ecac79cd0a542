// SPDX-License-Identifier: GPL-2.0-or-later
//! Nested boxes on a canvas of characters. Siblings share their borders; the outermost boxes
//! stand apart.

use super::parts::Part;

/// The gap between two outermost boxes.
const GAP: usize = 2;

/// Returns the number of columns that the boxes take.
pub(super) fn width(parts: &[Part]) -> usize {
    let boxes: usize = parts.iter().map(|part| inner(part) + 2).sum();
    boxes + GAP * parts.len().saturating_sub(1)
}

/// Returns the number of columns between the borders of a box.
fn inner(part: &Part) -> usize {
    let text = part.lines.iter().map(|line| line.len() + 2).max().unwrap_or(2);
    text.max(row(&part.children))
}

/// Returns the number of columns of siblings, with the borders between them.
fn row(children: &[Part]) -> usize {
    let columns: usize = children.iter().map(inner).sum();
    columns + children.len().saturating_sub(1)
}

/// Finds the number of lines of text at each depth; a part that counts others may have fewer lines
/// than its siblings.
fn heights(parts: &[Part], depth: usize, found: &mut Vec<usize>) {
    if !parts.is_empty() && found.len() <= depth {
        found.push(0);
    }
    for part in parts {
        found[depth] = found[depth].max(part.lines.len());
        heights(&part.children, depth + 1, found);
    }
}

struct Canvas {
    rows: Vec<Vec<u8>>,
    heights: Vec<usize>,
}

/// Returns the drawing, with a line feed after each line.
pub(super) fn grid(parts: &[Part]) -> String {
    let mut depths = Vec::new();
    heights(parts, 0, &mut depths);
    let rows = depths.iter().map(|height| height + 1).sum::<usize>() + 1;
    let mut canvas = Canvas { rows: vec![vec![b' '; width(parts)]; rows], heights: depths };
    let mut x = 0;
    for part in parts {
        let columns = inner(part);
        canvas.part(part, x, columns, 0, 0);
        x += columns + 2 + GAP;
    }
    let mut out = String::new();
    for row in canvas.rows {
        out.push_str(String::from_utf8_lossy(&row).trim_end());
        out.push('\n');
    }
    out
}

impl Canvas {
    /// Draws a part whose left border is at `x` and whose top border is at `y`; every box
    /// reaches down to the bottom.
    fn part(&mut self, part: &Part, x: usize, columns: usize, y: usize, depth: usize) {
        let bottom = self.rows.len() - 1;
        let right = x + columns + 1;
        for edge in [y, bottom] {
            (x..=right).for_each(|at| self.line(edge, at, b'-'));
            [x, right].into_iter().for_each(|at| self.rows[edge][at] = b'+');
        }
        for row in y + 1..bottom {
            [x, right].into_iter().for_each(|at| self.line(row, at, b'|'));
        }
        for (index, line) in part.lines.iter().enumerate() {
            // The text of a leaf is centred, as numbers in narrow columns are; labels start at the
            // left.
            let indent = if part.centred { (columns - line.len()).div_ceil(2) } else { 1 };
            let start = x + 1 + indent;
            self.rows[y + 1 + index][start..start + line.len()].copy_from_slice(line.as_bytes());
        }
        let below = y + 1 + self.heights[depth];
        let mut spare = columns - row(&part.children).min(columns);
        let mut left = x;
        for (index, child) in part.children.iter().enumerate() {
            // The columns that a wide label leaves over are spread over the children.
            let extra = spare / (part.children.len() - index);
            spare -= extra;
            let columns = inner(child) + extra;
            self.part(child, left, columns, below, depth + 1);
            left += columns + 1;
        }
    }

    /// Draws one character of a border; crossing borders meet in a `+`.
    fn line(&mut self, row: usize, column: usize, line: u8) {
        let cell = &mut self.rows[row][column];
        *cell = match *cell {
            b' ' => line,
            old if old == line => line,
            _ => b'+',
        };
    }
}
