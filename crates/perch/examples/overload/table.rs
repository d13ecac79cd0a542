// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures as a table.

use std::fmt::Write;

use perch_report::{Align, Grid};

use super::{Figure, Measurements, REPETITIONS};

/// Returns the figures, and below them the notes.
pub fn text(result: &Measurements) -> String {
    format!("{}\n{}", grid(result).text(), notes(result))
}

fn grid(result: &Measurements) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "threads", Align::Right);
    grid.column("", "layout", Align::Left);
    grid.column("", "counters", Align::Right);
    for (group, name) in [
        ("all alike, ns", "update"),
        ("all alike, ns", "read"),
        ("half and half, ns", "update"),
        ("half and half, ns", "read"),
        ("in turn, ns", "switch"),
    ] {
        grid.column(group, name, Align::Right);
    }
    for row in &result.rows {
        let mut cells = vec![
            row.threads.to_string(),
            row.layout.to_string(),
            row.counters.to_string(),
        ];
        let figures = [
            Some(row.update),
            Some(row.read),
            row.update_beside_readers,
            row.read_beside_writers,
            Some(row.switch),
        ];
        cells.extend(figures.map(|figure| figure.map_or("-".to_string(), cell)));
        grid.row(cells);
    }
    grid
}

/// A figure's median and spread.
fn cell(figure: Figure) -> String {
    let Figure { median, min, max } = figure;
    format!("{median:.1} ({min:.1}-{max:.1})")
}

fn notes(result: &Measurements) -> String {
    let count = |number: usize, what: &str| match number {
        1 => format!("1 {what}"),
        _ => format!("{number} {what}s"),
    };
    let mut text = format!(
        "{}: {}, {}, {}\nCPU time of a thread for an operation: the median of \
         {REPETITIONS} (least-most); update: raise and lower; switch: raise, lower, read\n",
        result.machine,
        count(result.cpus, "CPU"),
        count(result.llcs, "last-level cache"),
        count(result.nodes, "node"),
    );
    for note in &result.notes {
        let _ = writeln!(text, "{note}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::*;

    fn result() -> Measurements {
        let figure = |median: f64| Figure {
            median,
            min: median - 0.25,
            max: median + 10.0,
        };
        let row = |threads, both: Option<f64>| Row {
            threads,
            layout: "node-padded",
            counters: 2,
            update: figure(12.0),
            read: figure(3.5),
            update_beside_readers: both.map(figure),
            read_beside_writers: both.map(|ns| figure(ns / 2.0)),
            switch: figure(20.0),
        };
        Measurements {
            machine: "Some CPU".to_string(),
            cpus: 2,
            llcs: 1,
            nodes: 1,
            rows: vec![row(1, None), row(2, Some(40.0))],
            notes: vec!["one node".to_string()],
        }
    }

    #[test]
    fn a_row_is_a_line_and_what_one_thread_cannot_do_a_dash() {
        let text = text(&result());
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split("  ").map(str::trim).collect::<Vec<_>>())
            .map(|cells| cells.into_iter().filter(|cell| !cell.is_empty()).collect())
            .collect();
        let first = [
            "1",
            "node-padded",
            "2",
            "12.0 (11.8-22.0)",
            "3.5 (3.2-13.5)",
        ];
        assert_eq!(lines[2][..5], first);
        assert_eq!(lines[2][5..], ["-", "-", "20.0 (19.8-30.0)"]);
        assert_eq!(lines[3][5..7], ["40.0 (39.8-50.0)", "20.0 (19.8-30.0)"]);
        assert!(text.contains("Some CPU: 2 CPUs, 1 last-level cache, 1 node\n"));
        assert!(text.ends_with("one node\n"), "{text}");
    }
}
