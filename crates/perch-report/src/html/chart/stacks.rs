// SPDX-License-Identifier: GPL-2.0-or-later
//! Bars made of parts that stand one behind the other.

use plotters::element::Rectangle;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, Failed, SERIES, WIDTH, Words, svg, text};

/// The colour of texts on a part: that of the paper, because parts are dark on light paper and light
/// on dark.
const PAPER: RGBColor = RGBColor(0xff, 0xff, 0xff);

/// The colours of the parts beyond those of the series.
const FURTHER: [RGBColor; 7] = [
    RGBColor(0xb0, 0x1e, 0x5a),
    RGBColor(0x7a, 0x5f, 0x00),
    RGBColor(0x00, 0x69, 0x6d),
    RGBColor(0x4a, 0x4a, 0xc0),
    RGBColor(0x8e, 0x2a, 0x2a),
    RGBColor(0x4d, 0x6b, 0x00),
    RGBColor(0x6b, 0x4a, 0x3a),
];

/// The width of an average letter of a size, in pixels. No browser's font is known here, so this is
/// wide for most.
fn letters(count: usize, size: i32) -> i32 {
    count as i32 * size * 6 / 10
}

/// A part of each bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    pub name: &'static str,
    /// The number of the part's colour, 0 to 11.
    pub look: usize,
}

/// A row: its name, and for each arm the value of each part.
pub type Row = (String, Vec<Vec<f64>>);

fn color(look: usize) -> RGBColor {
    let all = SERIES.len() + FURTHER.len();
    match look % all {
        at if at < SERIES.len() => SERIES[at],
        at => FURTHER[at - SERIES.len()],
    }
}

/// Shortens a name that is too long for its place; the table below the chart has the whole name.
fn short(name: &str, most: usize) -> String {
    if name.chars().count() > most {
        format!("{}…", name.chars().take(most - 1).collect::<String>())
    } else {
        name.to_string()
    }
}

/// Draws bars to the right, for each row one bar an arm, with the arm's name and the bar's sum behind
/// it. A part that has room for it shows its name, so that nobody needs the colours.
pub fn stacks(words: &Words, arms: &[String], parts: &[Part], rows: &[Row]) -> String {
    const BAR: i32 = 17;
    const NAMES: i32 = 216;
    let row_height = BAR * arms.len() as i32 + 8;
    let (legend, below) = places(parts);
    let height = (below + row_height * rows.len() as i32 + 8).max(60) as u32;
    let sums = rows.iter().flat_map(|(_, bars)| bars);
    let most = sums.map(|parts| parts.iter().sum()).fold(0.0, f64::max);
    let arms: Vec<String> = arms.iter().map(|arm| short(arm, 20)).collect();
    let longest = arms.iter().map(|arm| arm.chars().count() + 1).max();
    let figures = letters(longest.unwrap_or(0) + 7, 12);
    let scale = if most > 0.0 {
        f64::from(WIDTH as i32 - NAMES - figures) / most
    } else {
        0.0
    };
    svg(height, words, |root| {
        draw_legend(root, parts, &legend)?;
        for (row, (name, bars)) in rows.iter().enumerate() {
            let top = below + row_height * row as i32;
            let middle = top + BAR * bars.len() as i32 / 2;
            let right = text(12).pos(Pos::new(HPos::Right, VPos::Center));
            root.draw(&Text::new(short(name, 30), (NAMES - 8, middle), right))?;
            for (arm, (values, named)) in bars.iter().zip(&arms).enumerate() {
                let top = top + BAR * arm as i32;
                let end = bar(root, parts, values, (NAMES, top, BAR), scale)?;
                let left = text(12).pos(Pos::new(HPos::Left, VPos::Center));
                let sum = crate::figure::figure(values.iter().sum());
                let said = match named.as_str() {
                    "" => sum,
                    named => format!("{named} {sum}"),
                };
                root.draw(&Text::new(said, (end + 6, top + BAR / 2), left))?;
            }
        }
        Ok(())
    })
}

/// Draws a bar from the left and top of its place, and returns its end.
fn bar(
    root: &Area,
    parts: &[Part],
    values: &[f64],
    (left, top, height): (i32, i32, i32),
    scale: f64,
) -> Result<i32, Failed> {
    let (mut sum, mut begin) = (0.0, left);
    for (part, value) in parts.iter().zip(values) {
        // The places of the ends are rounded and not the widths, so that a bar is as long as its sum.
        sum += value;
        let end = left + (sum * scale).round() as i32;
        if end > begin {
            let corners = [(begin, top + 2), (end, top + height - 2)];
            root.draw(&Rectangle::new(corners, color(part.look).filled()))?;
            if end - begin > letters(part.name.len(), 11) + 6 {
                let style = ("sans-serif", 11).into_font().color(&PAPER);
                let style = style.pos(Pos::new(HPos::Center, VPos::Center));
                let middle = ((begin + end) / 2, top + height / 2);
                root.draw(&Text::new(part.name, middle, style))?;
            }
            begin = end;
        }
    }
    Ok(begin)
}

/// Returns the places of the parts' names, in the order in which they stand in a bar, from the left
/// and from line to line; and where the bars begin below them.
fn places(parts: &[Part]) -> (Vec<(i32, i32)>, i32) {
    const LEFT: i32 = 14;
    const LINE: i32 = 20;
    let (mut x, mut y) = (LEFT, 12);
    let mut places = Vec::new();
    for part in parts {
        let width = 34 + letters(part.name.len(), 13);
        if x > LEFT && x + width > WIDTH as i32 {
            (x, y) = (LEFT, y + LINE);
        }
        places.push((x, y));
        x += width;
    }
    (places, y + 16)
}

/// Draws the parts' names at their places.
fn draw_legend(root: &Area, parts: &[Part], places: &[(i32, i32)]) -> Result<(), Failed> {
    for (part, (x, y)) in parts.iter().zip(places) {
        let corners = [(*x, y - 6), (x + 12, y + 6)];
        root.draw(&Rectangle::new(corners, color(part.look).filled()))?;
        let left = text(13).pos(Pos::new(HPos::Left, VPos::Center));
        root.draw(&Text::new(part.name, (x + 18, *y), left))?;
    }
    Ok(())
}
