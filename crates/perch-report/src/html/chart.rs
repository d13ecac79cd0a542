// SPDX-License-Identifier: GPL-2.0-or-later
//! Charts as SVG. The charts use a handful of fixed colours, to which the page's style gives their
//! look in light, in dark and on paper; a marker or a dash repeats whatever a colour tells.

use std::fmt::Write;

use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

mod tails;

use super::escape;

pub use tails::tails;

/// The colour of texts and axes. style.css identifies the colours by these values.
pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// The colour of the lines behind a chart.
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);
/// The colours of the series, in order.
const SERIES: [RGBColor; 5] = [
    RGBColor(0x55, 0x55, 0x55),
    RGBColor(0x0b, 0x61, 0xa4),
    RGBColor(0xb3, 0x54, 0x1e),
    RGBColor(0x1b, 0x7f, 0x3b),
    RGBColor(0x7b, 0x3f, 0xa0),
];

/// The width of a chart in pixels, before the page scales it.
pub const WIDTH: u32 = 720;

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plane = Cartesian2d<RangedCoordf64, RangedCoordf64>;
type Failed = DrawingAreaErrorKind<std::io::Error>;

/// A point and its intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// Half the width of the interval of `y`.
    pub half: Option<f64>,
    /// The interval of `x`.
    pub span: Option<[f64; 2]>,
}

impl Point {
    /// Returns a point without intervals.
    pub fn at(x: f64, y: f64) -> Point {
        Point { x, y, half: None, span: None }
    }
}

/// A series: points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<Point>,
    /// The number of the series' colour and marker.
    pub look: usize,
    /// True for figures that others measured: their lines are dashed and their markers hollow.
    pub published: bool,
}

/// The text and the range of an axis.
pub struct Axis<'a> {
    pub name: &'a str,
    pub ticks: Ticks<'a>,
}

/// The kind of text at an axis' places.
#[derive(Clone, Copy)]
pub enum Ticks<'a> {
    /// The value itself; an axis of values begins at 0.
    Numbers,
    /// The value itself; the axis begins near the least value.
    Near,
    /// Ten to the value's power: the axis is logarithmic.
    Powers,
    /// The names of the places 0, 1, 2 …
    Names(&'a [String]),
}

/// A description of the chart, for readers who cannot see it.
pub struct Words<'a> {
    /// The chart's name, in a few words.
    pub name: &'a str,
    /// The caption, which says what the chart shows.
    pub said: &'a str,
}

impl Words<'_> {
    /// Returns the element's attributes, with a blank behind them.
    pub fn attributes(&self) -> String {
        format!("role=\"img\" aria-label=\"{}\" ", escape(self.name))
    }

    /// Returns the element's first elements.
    pub fn elements(&self) -> String {
        let [name, said] = [self.name, self.said].map(escape);
        format!("<title>{name}</title><desc>{said}</desc>")
    }
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

/// Draws a chart, and adds a description for readers who cannot see it.
pub(super) fn svg(
    height: u32,
    words: &Words,
    draw: impl FnOnce(&Area) -> Result<(), Failed>,
) -> String {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw(&root).expect("a string takes what is drawn");
        root.present().expect("a string takes what is drawn");
    }
    let svg = svg.replacen("<svg ", &format!("<svg {}", words.attributes()), 1);
    svg.replacen('>', &format!(">{}", words.elements()), 1)
}

/// The room on each side of a range, as a share of its largest number: on a narrower axis the
/// drawing library would look for its ticks among numbers that a float cannot tell apart.
const NARROWEST: f64 = 1e-6;

/// Returns the range from the least to the greatest of `values`, with some room; the range is never
/// empty.
fn range(values: impl Iterator<Item = f64>, with_zero: bool) -> std::ops::Range<f64> {
    let values = values.filter(|value| value.is_finite());
    let (mut low, mut high) =
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
    if with_zero || low > high {
        (low, high) = (low.min(0.0), high.max(0.0));
    }
    let room = match (high - low) * 0.06 {
        room if room > 0.0 => room.max(low.abs().max(high.abs()) * NARROWEST),
        _ => high.abs().max(1.0) * 0.06,
    };
    let low = if with_zero && low == 0.0 { 0.0 } else { low - room };
    low..high + room
}

/// Draws lines by load.
pub fn lines(words: &Words, x: &Axis, y: &Axis, series: &[Series]) -> String {
    let points = || series.iter().flat_map(|s| &s.points);
    let xs = range(points().map(|p| p.x), false);
    let ends = points().flat_map(|p| [p.y - p.half.unwrap_or(0.0), p.y + p.half.unwrap_or(0.0)]);
    let ys = range(ends, matches!(y.ticks, Ticks::Numbers));
    svg(340, words, |root| {
        let area = plane(root, [(x, xs), (y, ys)], series)?;
        for s in series {
            let color = SERIES[s.look % SERIES.len()];
            let path: Vec<(f64, f64)> = s.points.iter().map(|p| (p.x, p.y)).collect();
            if s.published {
                let dashed = DashedPathElement::new(path, 4, 4, color.stroke_width(1));
                area.draw(&dashed)?;
            } else {
                area.draw(&PathElement::new(path, color.stroke_width(2)))?;
            }
            marks(&area, s)?;
        }
        Ok(())
    })
}

/// Marks that are off by more than this multiple of the largest published value are drawn at this
/// distance.
const OFF: f64 = 1.5;

/// Moves a mark no further from 0 than this; a mark that had to be moved loses its interval.
fn within(p: &Point, most: f64) -> Point {
    let span = p.span.map(|span| span.map(|x| x.clamp(-most, most)));
    let half = p.half.map(|half| half.min(most));
    if p.y.abs() <= most {
        Point { half, span, ..*p }
    } else {
        Point { y: p.y.clamp(-most, most), half: None, span, ..*p }
    }
}

/// Draws dots, with the intervals of both values, against a diagonal with a band around it.
pub fn agreement(words: &Words, x: &Axis, y: &Axis, band: f64, series: &[Series]) -> String {
    // The published values determine the range: one mark far off would otherwise hide all others.
    let published = series.iter().flat_map(|s| &s.points).map(|p| p.x);
    let most = published.map(f64::abs).fold(2.0 * band, f64::max);
    let series: Vec<Series> = series
        .iter()
        .map(|s| Series {
            points: s.points.iter().map(|p| within(p, OFF * most)).collect(),
            ..s.clone()
        })
        .collect();
    let series = series.as_slice();
    let points = || series.iter().flat_map(|s| &s.points);
    let spans = points().filter_map(|p| p.span).flatten();
    let both = range(points().flat_map(|p| [p.x, p.y]).chain(spans), true);
    svg(420, words, |root| {
        let axes = [(x, both.clone()), (y, both.clone())];
        let area = plane(root, axes, series)?;
        // A line that leaves the plane would be bent, not cut.
        let diagonal = |by: f64| {
            let (from, to) = (both.start.max(both.start - by), both.end.min(both.end - by));
            vec![(from, from + by), (to, to + by)]
        };
        area.draw(&PathElement::new(diagonal(0.0), INK.stroke_width(1)))?;
        for by in [-band, band] {
            area.draw(&DashedPathElement::new(diagonal(by), 2, 4, INK.stroke_width(1)))?;
        }
        for s in series {
            marks(&area, s)?;
        }
        Ok(())
    })
}

/// Draws the legend, and below it the axes; returns the area between them, for the marks.
fn plane<'a>(
    root: &Area<'a>,
    [(x, xs), (y, ys)]: [(&Axis, std::ops::Range<f64>); 2],
    series: &[Series],
) -> Result<DrawingArea<SVGBackend<'a>, Plane>, Failed> {
    let (legend, below) = root.split_vertically(44);
    legends(&legend, series)?;
    let mut chart = ChartBuilder::on(&below)
        .margin(8)
        .margin_right(30)
        .x_label_area_size(42)
        .y_label_area_size(74)
        .build_cartesian_2d(xs, ys)?;
    mesh(&mut chart, x, y)?;
    Ok(chart.plotting_area().clone())
}

/// Draws a series' markers, with their intervals.
fn marks(area: &DrawingArea<SVGBackend, Plane>, series: &Series) -> Result<(), Failed> {
    let style = SERIES[series.look % SERIES.len()].stroke_width(1);
    for p in &series.points {
        if let Some(half) = p.half {
            let bar = vec![(p.x, p.y - half), (p.x, p.y + half)];
            area.draw(&PathElement::new(bar, style))?;
        }
        if let Some([low, high]) = p.span {
            area.draw(&PathElement::new(vec![(low, p.y), (high, p.y)], style))?;
        }
        mark(area, p, series.look, series.published)?;
    }
    Ok(())
}

fn mesh(chart: &mut ChartContext<SVGBackend, Plane>, x: &Axis, y: &Axis) -> Result<(), Failed> {
    let place = |axis: &Axis, at: f64| match axis.ticks {
        Ticks::Numbers => number(at),
        Ticks::Near => near(at),
        // Two digits are enough for a number at a line of the grid.
        Ticks::Powers => {
            let (value, last) = (10f64.powf(at), 10f64.powf(at.floor() - 1.0));
            match -at.floor() {
                below if below > 0.0 => format!("{value:.0$}", below as usize),
                _ => number((value / last).round() * last),
            }
        }
        Ticks::Names(names) => {
            let is_place = (at - at.round()).abs() < 1e-6 && at >= 0.0;
            let name = is_place.then(|| names.get(at.round() as usize)).flatten();
            name.cloned().unwrap_or_default()
        }
    };
    let places = match x.ticks {
        Ticks::Names(names) => names.len().max(2),
        Ticks::Numbers | Ticks::Near | Ticks::Powers => 9,
    };
    chart
        .configure_mesh()
        .x_desc(x.name)
        .y_desc(y.name)
        .axis_style(INK)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .label_style(text(13))
        .axis_desc_style(text(14))
        .x_labels(places)
        .y_labels(8)
        .x_label_formatter(&|at| place(x, *at))
        .y_label_formatter(&|at| place(y, *at))
        .draw()
}

/// Returns a number with the digits that tell it from its neighbours on an axis that does not begin at 0.
fn near(value: f64) -> String {
    match value.abs() {
        size if size >= 1_000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Returns a number with few digits, since it stands at an axis.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 10_000.0 => format!("{:.0}k", value / 1e3),
        size if size >= 10.0 || size == 0.0 => format!("{value:.0}"),
        size if size >= 1.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Draws a point's marker: each series has a shape of its own.
fn mark(
    area: &DrawingArea<SVGBackend, Plane>,
    point: &Point,
    look: usize,
    hollow: bool,
) -> Result<(), Failed> {
    let at = || EmptyElement::at((point.x, point.y));
    let color = SERIES[look % SERIES.len()];
    let style = if hollow { color.stroke_width(1) } else { color.filled() };
    match look % SERIES.len() {
        0 => area.draw(&(at() + Circle::new((0, 0), 4, style))),
        // The drawing library always fills a triangle.
        1 if hollow => {
            let corners = vec![(0, -5), (5, 4), (-5, 4), (0, -5)];
            area.draw(&(at() + PathElement::new(corners, style)))
        }
        1 => area.draw(&(at() + TriangleMarker::new((0, 0), 5, style))),
        2 if hollow => {
            let [across, down] = [[(-5, 0), (5, 0)], [(0, -5), (0, 5)]];
            let line = |ends: [(i32, i32); 2]| PathElement::new(ends.to_vec(), style);
            area.draw(&(at() + line(across) + line(down)))
        }
        2 => area.draw(&(at() + Cross::new((0, 0), 4, color.stroke_width(2)))),
        3 => area.draw(&(at() + Rectangle::new([(-4, -4), (4, 4)], style))),
        _ => area.draw(&(at() + Polygon::new(vec![(0, -6), (5, 0), (0, 6), (-5, 0)], style))),
    }
}

/// Draws the meanings of the markers, four in a line.
fn legends(area: &Area, series: &[Series]) -> Result<(), Failed> {
    const SLOT: i32 = 176;
    let (width, _) = area.dim_in_pixel();
    let plane = area.apply_coord_spec(Cartesian2d::<RangedCoordf64, RangedCoordf64>::new(
        0.0..f64::from(width),
        0.0..44.0,
        (0..width as i32, 0..44),
    ));
    for (index, s) in series.iter().enumerate().take(8) {
        let x = 14 + index as i32 % 4 * SLOT;
        let y = 12 + index as i32 / 4 * 20;
        let point = Point::at(f64::from(x), f64::from(y));
        mark(&plane, &point, s.look, s.published)?;
        area.draw(&Text::new(s.name.clone(), (x + 10, y - 7), text(13)))?;
    }
    Ok(())
}

/// Draws bars to the right, for each row one bar an arm, with the arm's name and its figure behind
/// the bar.
pub fn bars(words: &Words, arms: &[String], rows: &[(String, Vec<f64>)]) -> String {
    const BAR: i32 = 15;
    const NAMES: i32 = 190;
    const FIGURES: i32 = 170;
    let row_height = BAR * arms.len() as i32 + 10;
    let height = (row_height * rows.len() as i32 + 12).max(40) as u32;
    let most = rows.iter().flat_map(|(_, values)| values.iter().copied());
    let most = most.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let room = f64::from(WIDTH as i32 - NAMES - FIGURES);
    svg(height, words, |root| {
        for (row, (name, values)) in rows.iter().enumerate() {
            let top = 6 + row_height * row as i32;
            let right = text(13).pos(Pos::new(HPos::Right, VPos::Center));
            let middle = top + BAR * arms.len() as i32 / 2;
            root.draw(&Text::new(name.clone(), (NAMES - 8, middle), right))?;
            for (arm, (value, named)) in values.iter().zip(arms).enumerate() {
                let y = top + BAR * arm as i32;
                let share = if most > 0.0 { (value / most).max(0.0) } else { 0.0 };
                let end = NAMES + (share * room).round() as i32;
                let color = SERIES[arm % SERIES.len()];
                root.draw(&Rectangle::new(
                    [(NAMES, y + 2), (end.max(NAMES + 1), y + BAR - 2)],
                    color.filled(),
                ))?;
                let left = text(12).pos(Pos::new(HPos::Left, VPos::Center));
                let said = format!("{named} {}", crate::figure::figure(*value));
                root.draw(&Text::new(said, (end + 6, y + BAR / 2), left))?;
            }
        }
        Ok(())
    })
}

/// Draws the spread of iterations: each iteration is a tick, and a box over the ticks reaches from
/// the first to the third quartile, with the median in it.
pub fn spreads(words: &Words, unit: &str, arms: &[(String, Vec<f64>)]) -> String {
    const ROW: i32 = 42;
    const NAMES: i32 = 110;
    let all = || arms.iter().flat_map(|(_, values)| values.iter().copied());
    let scale = range(all(), false);
    let height = (ROW * arms.len() as i32 + 40) as u32;
    let room = f64::from(WIDTH as i32 - NAMES - 30);
    let place = |value: f64| {
        NAMES + ((value - scale.start) / (scale.end - scale.start) * room).round() as i32
    };
    let mut paths = String::new();
    let drawn = svg(height, words, |root| {
        for (row, (name, values)) in arms.iter().enumerate() {
            let middle = ROW * row as i32 + ROW / 2;
            let color = SERIES[row % SERIES.len()];
            let right = text(13).pos(Pos::new(HPos::Right, VPos::Center));
            root.draw(&Text::new(name.clone(), (NAMES - 8, middle), right))?;
            let mut sorted = values.clone();
            sorted.retain(|value| value.is_finite());
            sorted.sort_by(f64::total_cmp);
            // One path holds all ticks: an element for each tick would be most of the page.
            let at = sorted.iter().map(|value| place(*value));
            let mut at: Vec<i32> = at.collect();
            at.dedup();
            let ticks = at.iter().map(|x| format!("M{x} {}v8", middle - 4));
            let (d, RGBColor(r, g, b)) = (ticks.collect::<String>(), color);
            let _ = writeln!(paths, "<path d=\"{d}\" stroke=\"#{r:02X}{g:02X}{b:02X}\"/>");
            if sorted.is_empty() {
                continue;
            }
            let at =
                |share: f64| place(sorted[(share * (sorted.len() - 1) as f64).round() as usize]);
            let corners = [(at(0.25), middle - 12), (at(0.75), middle + 12)];
            root.draw(&Rectangle::new(corners, INK.stroke_width(1)))?;
            let median = vec![(at(0.5), middle - 15), (at(0.5), middle + 15)];
            root.draw(&PathElement::new(median, INK.stroke_width(3)))?;
        }
        let y = ROW * arms.len() as i32 + 8;
        root.draw(&PathElement::new(
            vec![(NAMES, y), (WIDTH as i32 - 30, y)],
            INK.stroke_width(1),
        ))?;
        for step in 0..=4 {
            let value = scale.start + (scale.end - scale.start) * f64::from(step) / 4.0;
            let x = place(value);
            root.draw(&PathElement::new(vec![(x, y), (x, y + 4)], INK.stroke_width(1)))?;
            let below = text(12).pos(Pos::new(HPos::Center, VPos::Top));
            let unit = if step == 4 { format!(" {unit}") } else { String::new() };
            root.draw(&Text::new(
                format!("{}{unit}", crate::figure::figure(value)),
                (x, y + 8),
                below,
            ))?;
        }
        Ok(())
    });
    drawn.replacen("</svg>", &format!("{paths}</svg>"), 1)
}
