// SPDX-License-Identifier: GPL-2.0-or-later
//! Draws the state of `perch top`.

use perch_plan::interface::WaitReason;
use perch_report::share;
use perch_scheduler::stats::Report;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Paragraph, Row, Table};

use super::state::State;
use crate::output::escaped;
use crate::stats::{at_most, times};

/// From this width on the tables stand side by side.
const WIDE: u16 = 96;
/// The width of what stands right of the counts.
const RIGHT: u16 = 52;

/// From this width on the counts say what is a reason and what an event.
const ROOMY: u16 = 56;

/// Draws everything into the frame, and holds what the arrows moved to what there is.
pub fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let header = header(state);
    let lines = u16::try_from(header.len()).unwrap_or(u16::MAX);
    let [top, _, body, keys] = Layout::vertical([
        Constraint::Length(lines),
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(header), top);
    let dim = Style::new().add_modifier(Modifier::DIM);
    frame.render_widget(Paragraph::new("q quit  arrows scroll").style(dim), keys);

    // Beside the counts a table loses the lines for which there is no room. In one column with them the tables
    // have half of it, and one that does not fit is left out. The groups have what the others leave.
    let wide = body.width >= WIDE;
    let mut room = if wide { body.height } else { body.height / 2 };
    let mut tables = Vec::new();
    for (table, rows) in [waits(state), caches(state)].into_iter().flatten() {
        let wanted = rows as u16 + 2;
        let lines = if wide { wanted.min(room) } else { wanted };
        if lines <= room {
            room -= lines;
            tables.push((table, lines));
        }
    }
    if let Some((table, rows)) = groups(state, room.saturating_sub(2)) {
        tables.push((table, rows as u16 + 2));
    }
    let [at, rest] = if wide {
        let halves = [Constraint::Fill(1), Constraint::Length(RIGHT)];
        let [left, right] = Layout::horizontal(halves).spacing(2).areas(body);
        [right, left]
    } else {
        let lines = tables.iter().map(|(_, lines)| lines).sum();
        Layout::vertical([Constraint::Length(lines), Constraint::Fill(1)]).areas(body)
    };
    let heights = tables.iter().map(|(_, lines)| Constraint::Length(*lines));
    let heights = Layout::vertical(heights.collect::<Vec<_>>());
    for ((table, _), at) in tables.iter().zip(heights.split(at).iter()) {
        frame.render_widget(table, *at);
    }
    counts(frame, state, rest);
}

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

/// A time since something, to the second.
fn age(ns: u64) -> String {
    let s = ns / 1_000_000_000;
    let clock = format!("{:02}:{:02}:{:02}", s / 3_600 % 24, s / 60 % 60, s % 60);
    match s / 86_400 {
        0 => clock,
        1 => format!("1 day {clock}"),
        days => format!("{days} days {clock}"),
    }
}

/// A line with words of the scheduler.
fn line(text: &str, style: Style) -> Line<'static> {
    Line::styled(escaped(text).into_owned(), style)
}

/// What is loaded, for how long, and how much it does.
fn header(state: &State) -> Vec<Line<'static>> {
    let Report { about, .. } = &state.report;
    let mut first = format!("perch has been up for {}", age(state.report.uptime_ns));
    if state.report.restarts > 0 {
        first += &format!(", loaded again {}", times(state.report.restarts));
    }
    if state.losses > 0 {
        first += &format!(", gone {} since perch top watches", times(state.losses));
    }
    first += &format!(": {} CPUs of {}, Linux {}", about.cpus, about.machine, about.kernel);
    let change = &state.change;
    let all = change.uptime_ns.saturating_mul(change.about.cpus);
    let mut lines = vec![
        line(&first, bold()),
        line(&about.modes.replace(',', " "), Style::new()),
        Line::raw(format!(
            "{:.0} wake-ups/s, CPUs {} busy",
            state.rate(change.wakeups()),
            share(change.busy_ns, all, 1)
        )),
    ];
    if !about.band.is_empty() {
        let text = format!(
            "real-time band: {}; {} CPUs overloaded",
            about.band, state.report.overloaded_cpus
        );
        lines.push(line(&text, Style::new()));
    }
    if !about.partial.is_empty() {
        let text = format!(
            "only tasks of: {}; {} now, {} refused",
            about.partial, state.report.partial_tasks, state.report.partial_refused
        );
        lines.push(line(&text, Style::new()));
    }
    if let Some(problem) = &state.problem {
        let text =
            format!("{problem}; the figures are the last ones, and perch top goes on asking");
        lines.push(line(&text, bold()));
    }
    lines
}

fn right(text: impl Into<Text<'static>>) -> Cell<'static> {
    Cell::new(text.into().alignment(Alignment::Right))
}

fn heading<const N: usize>(first: &str, others: [&'static str; N]) -> Row<'static> {
    let first = Cell::new(first.to_string());
    Row::new(std::iter::once(first).chain(others.map(right))).style(bold())
}

/// Reasons and events with their rates.
fn counts(frame: &mut Frame<'_>, state: &mut State, at: Rect) {
    let counts = state.counts();
    let room = usize::from(at.height.saturating_sub(1));
    state.above = state.above.min(counts.len().saturating_sub(room));
    let kinds = at.width >= ROOMY;
    let rows = counts.iter().skip(state.above).take(room).map(|count| {
        let kind = match (kinds, count.is_reason) {
            (false, _) => "",
            (true, true) => "reason",
            (true, false) => "event",
        };
        Row::new([
            Cell::new(escaped(&count.name)),
            Cell::new(kind),
            right(format!("{:.1}", count.rate)),
            right(count.total.to_string()),
        ])
    });
    let heading = Row::new([Cell::new("by rate"), Cell::new(""), right("/s"), right("total")]);
    let widths = [
        Constraint::Max(28),
        Constraint::Length(if kinds { 6 } else { 0 }),
        Constraint::Length(10),
        Constraint::Length(12),
    ];
    let table = Table::new(rows, widths).header(heading.style(bold()));
    frame.render_widget(table, at);
}

/// The widths of the tables of waits and of caches: the same, as one stands below the other.
const WIDTHS: [Constraint; 5] = {
    let number = Constraint::Length(9);
    [Constraint::Length(10), number, number, number, number]
};

/// The waits that ended in the last interval, where the scheduler counts waits, and how many rows.
fn waits(state: &State) -> Option<(Table<'static>, usize)> {
    if state.change.waits.is_empty() {
        return None;
    }
    let mut rows = Vec::new();
    for &reason in WaitReason::ALL {
        let ever = state.report.waits.get(reason.name());
        let (Some(now), Some(_)) =
            (state.change.waits.get(reason.name()), ever.filter(|waits| waits.count > 0))
        else {
            continue;
        };
        let mut cells =
            vec![Cell::new(reason.name()), right(format!("{:.1}", state.rate(now.count)))];
        cells.extend([0.5, 0.99, 1.0].map(|part| right(at_most(now, part))));
        rows.push(Row::new(cells));
    }
    let count = rows.len();
    let heading = heading("waits, µs", ["/s", "median", "p99", "max"]);
    Some((Table::new(rows, WIDTHS).header(heading), count))
}

/// The last-level caches, and how many.
fn caches(state: &State) -> Option<(Table<'static>, usize)> {
    let mut caches: Vec<_> = state.report.llcs.iter().collect();
    if caches.is_empty() {
        return None;
    }
    caches.sort_by_key(|(number, _)| number.parse::<u64>().unwrap_or(u64::MAX));
    let rows = caches.iter().map(|(number, cache)| {
        let busy_ns = state.change.llcs.get(*number).map_or(0, |llc| llc.busy_ns);
        let busy = state.rate(busy_ns) / 1e9;
        Row::new([
            Cell::new(escaped(number).into_owned()),
            right(cache.node.to_string()),
            right(cache.cpus.to_string()),
            right(format!("{busy:.2}")),
            right(cache.runnable.to_string()),
        ])
    });
    let heading = heading("LLC", ["node", "CPUs", "busy", "runnable"]);
    Some((Table::new(rows, WIDTHS).header(heading), caches.len()))
}

/// The busiest cgroups, `room` of them at most, and how many.
fn groups(state: &State, room: u16) -> Option<(Table<'static>, usize)> {
    let room = usize::from(room).min(state.groups.len());
    if room == 0 {
        return None;
    }
    let none = || "-".to_string();
    // Where the scheduler counts waits by group, they take the place of the weights, which stay as they are.
    let counted = !state.report.group_waits.is_empty();
    let rows = state.groups.iter().take(room).map(|group| {
        let third = if counted {
            let below = state.change.waits_below(&format!("/{}", group.path));
            at_most(&below.waits, 0.99)
        } else {
            group.weight.map_or_else(none, |weight| weight.to_string())
        };
        let waited = group.waited.map(|part| format!("{:.1} %", 100.0 * part));
        Row::new([
            Cell::new(end_of(&escaped(&group.path), NAME)),
            right(format!("{:.2}", group.cpus)),
            right(waited.unwrap_or_else(none)),
            right(third),
            right(group.limit.map_or_else(none, |cpus| format!("{cpus:.2}"))),
        ])
    });
    let third = if counted { "p99, µs" } else { "weight" };
    let heading = heading("group", ["CPUs", "waits", third, "limit"]);
    let number = Constraint::Length(7);
    let widths = [Constraint::Length(NAME as u16), Constraint::Length(6), number, number, number];
    Some((Table::new(rows, widths).header(heading), room))
}

/// The width of a group's path.
const NAME: usize = 19;

/// The end of a text, which tells more of a path than its beginning does.
fn end_of(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_string();
    }
    let end = text.chars().skip(length - (width - 1));
    std::iter::once('…').chain(end).collect()
}

#[cfg(test)]
mod tests;
