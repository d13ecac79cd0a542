// SPDX-License-Identifier: GPL-2.0-or-later
//! A report in one file, which a browser opens without a network and a printer prints. Under each
//! chart stands its table.

mod chart;
mod course;
mod machine;
mod overview;
mod ran;

use std::fmt::Write;

use perch_experiment::{CellReport, Comparison, CountRow, Report, Verdict};

use crate::circumstances;
use crate::comparison::count_grid;
use crate::figure::{direction, figure, interval, percent};
use crate::grid::{Align, Grid};
use crate::paste::sheet::{Row, Sheet};
use crate::results::Results;
use crate::settled;
use chart::{Axis, Point, Series, Ticks, Words};
use perch_machine::Machine;

/// Returns `text` with entities for the characters that have a meaning in HTML.
pub(crate) fn escape(text: &str) -> String {
    let marks = [('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")];
    marks.into_iter().fold(text.to_string(), |text, (mark, entity)| text.replace(mark, entity))
}

/// Adds a chart with its caption.
fn captioned(body: &mut String, svg: &str, caption: &str) {
    let caption = escape(caption);
    let _ = writeln!(body, "<figure>\n{svg}\n<figcaption>{caption}</figcaption>\n</figure>");
}

/// Returns the whole page.
pub fn html(results: &[Results], version: &str) -> String {
    let mut body = String::new();
    let mut contents = String::new();
    let mut section = 0;
    for results in results {
        match results {
            Results::Experiments(reports) => {
                for report in reports {
                    section += 1;
                    overview::experiment(&mut contents, section, report);
                    experiment(&mut body, section, report);
                }
            }
            Results::Comparison(found) => {
                section += 1;
                let title = format!("{} on {}", found.workload, found.machine);
                overview::comparison(&mut contents, section, &title, found);
                comparison(&mut body, section, &title, found);
            }
        }
    }
    let from = "Everything here was simulated, except where it says published, or that a kernel ran in \
                guests. Arms differ in nothing but what their names stand for.";
    let style = include_str!("style.css");
    let version = escape(version);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>perch report</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{style}</style>\n<h1>perch report</h1>\n\
         <p class=\"from\">By perch {version}. {from}</p>\n<nav><ul>\n{contents}</ul></nav>\n\
         {body}</html>\n"
    )
}

fn experiment(body: &mut String, section: usize, report: &Report) {
    let _ = writeln!(body, "<h2 id=\"s{section}\">{}</h2>", escape(&report.title));
    let from = format!(
        "Published: {}. Simulated: {}; {}.",
        report.source,
        circumstances::of_report(report),
        circumstances::modes(&report.arms)
    );
    let _ = writeln!(body, "<p class=\"from\">{}</p>", escape(&from));
    agreement(body, report);
    let machines = machines(&report.machines_toml);
    for sheet in Sheet::of_report(report) {
        let cells: Vec<&CellReport> = report
            .cells
            .iter()
            .filter(|cell| (&cell.benchmark, &cell.place) == (&sheet.benchmark, &sheet.place))
            .collect();
        sheet_section(body, section, &sheet, &cells);
        let of_table = [sheet.benchmark.as_str(), &sheet.place];
        ran::of_table(body, &overview::sheet_title(&sheet), report, &machines, of_table);
    }
}

/// Returns those of the machines that can be read: a machine of a later version may not be.
fn machines(toml: &[String]) -> Vec<Machine> {
    let read = |text: &String| Machine::from_toml_str(text, "the result").ok();
    toml.iter().filter_map(read).collect()
}

/// Draws a dot a cell: the published change against the simulated one.
fn agreement(body: &mut String, report: &Report) {
    let kind = |name: &str, look, published, is: &dyn Fn(&CellReport) -> bool| Series {
        name: name.to_string(),
        points: report
            .cells
            .iter()
            .filter(|cell| {
                let both = [cell.published.delta_pct, cell.simulated.delta_pct];
                is(cell) && both.iter().all(|pct| pct.is_finite())
            })
            .map(|cell| Point {
                x: cell.published.delta_pct,
                y: cell.simulated.delta_pct,
                half: cell.simulated.ci95_pct,
                span: cell.tolerance.map(|t| [t.low_pct, t.high_pct]),
            })
            .collect(),
        look,
        published,
    };
    let series = [
        kind("agrees", 3, false, &|cell| !cell.calibration && cell.verdict == Verdict::Agrees),
        kind("disagrees", 2, false, &|cell| {
            !cell.calibration && cell.verdict == Verdict::Disagrees
        }),
        kind("undecided", 1, false, &|cell| {
            !cell.calibration && cell.verdict == Verdict::Undecided
        }),
        kind("fitted, not scored", 0, true, &|cell| cell.calibration),
    ];
    let summary = &report.summary;
    let caption = format!(
        "The change that was published against the simulated one, one mark per cell. Upright: the 95 % \
         interval of the simulated change; across: the changes that count as the published one. On the \
         line they are equal; dotted: 3 percentage points off. With their intervals, {} of {} agree within what the published noise allows, {} disagree and {} are \
         undecided; {} of {} directions agree. A simulated change beyond one and a half times the \
         largest published one stands at the edge.",
        summary.agrees,
        summary.scored,
        summary.disagrees,
        summary.undecided,
        summary.direction_agrees,
        summary.sign_scored
    );
    let ticks = Ticks::Numbers;
    let axis = |name| Axis { name, ticks };
    let words = Words {
        name: &format!("{}: published against simulated changes", report.title),
        said: &caption,
    };
    let svg = chart::agreement(
        &words,
        &axis("published change, %"),
        &axis("simulated change, %"),
        3.0,
        &series,
    );
    captioned(body, &svg, &caption);
}

/// Adds a chart of a table's arms, and the table.
fn sheet_section(body: &mut String, section: usize, sheet: &Sheet, cells: &[&CellReport]) {
    let title = overview::sheet_title(sheet);
    let id = overview::anchor(section, &title);
    let _ = writeln!(body, "<h3 id=\"{id}\">{}</h3>", escape(&title));
    if let Some(found) = &sheet.iterations {
        let arms: Vec<(String, Vec<f64>)> =
            sheet.arms.iter().cloned().zip(found.values.iter().cloned()).collect();
        let unit = &sheet.rows[0].unit;
        let caption = format!(
            "Iterations of {}: each a tick, the box from the first to the third quartile, the bar \
             in it the median.",
            found.workload
        );
        let words = Words { name: &format!("{title}: iterations"), said: &caption };
        let svg = chart::spreads(&words, unit, &arms);
        captioned(body, &svg, &caption);
    } else {
        sweeps(body, sheet, cells, &title);
    }
    rows(body, sheet, cells);
}

fn better(row: &Row) -> &'static str {
    direction(row.higher_is_better)
}

/// Draws the scores of a load's table by load, a chart each.
fn sweeps(body: &mut String, sheet: &Sheet, cells: &[&CellReport], title: &str) {
    let mut scores: Vec<Option<&str>> = Vec::new();
    for (_, score) in sheet.rows.iter().filter_map(Row::of_load) {
        if !scores.contains(&score) {
            scores.push(score);
        }
    }
    for score in scores {
        let rows: Vec<(usize, &Row)> = sheet
            .rows
            .iter()
            .enumerate()
            .filter(|(_, row)| row.of_load().is_some_and(|(_, of)| of == score))
            .collect();
        let loads: Vec<String> = rows
            .iter()
            .filter_map(|(_, row)| row.of_load().map(|(number, _)| number.to_string()))
            .collect();
        let mut series: Vec<Series> = Vec::new();
        for (index, arm) in sheet.arms.iter().enumerate() {
            let point = |(x, (_, row)): (usize, &(usize, &Row))| {
                let found = &row.figures[index];
                let scale = row.figures[0].value / 100.0;
                Point {
                    x: x as f64,
                    y: found.value,
                    half: found.ci95_pct.map(|half| half * scale),
                    span: None,
                }
            };
            series.push(Series {
                name: arm.clone(),
                points: rows.iter().enumerate().map(point).collect(),
                look: index,
                published: false,
            });
        }
        let figures = |which: &dyn Fn(&CellReport) -> Option<f64>| -> Vec<Point> {
            let found = rows.iter().enumerate().filter_map(|(x, (at, _))| {
                let y = which(cells.get(*at)?)?;
                let (x, half) = (x as f64, None);
                Some(Point { x, y, half, span: None })
            });
            found.collect()
        };
        for (look, name, points) in [
            (0, "published baseline", figures(&|c| Some(c.published.baseline))),
            (1, "published patched", figures(&|c| c.published.patched)),
        ] {
            if !points.is_empty() {
                series.push(Series { name: name.to_string(), points, look, published: true });
            }
        }
        let unit = &rows[0].1.unit;
        let what = score.map_or(String::new(), |score| format!("{score}, "));
        let better = better(rows[0].1);
        let caption = format!(
            "{title}: {what}{unit} by load; {better}. Solid and filled: simulated, with 95 % \
             intervals; dashed and hollow: published."
        );
        let words = Words { name: &format!("{title}: {what}by load"), said: &caption };
        let svg = chart::lines(
            &words,
            &Axis { name: "n", ticks: Ticks::Names(&loads) },
            &Axis { name: &format!("{what}{unit}"), ticks: Ticks::Numbers },
            &series,
        );
        captioned(body, &svg, &caption);
    }
}

fn rows(body: &mut String, sheet: &Sheet, cells: &[&CellReport]) {
    let mut grid = Grid::new(&["row", "unit"], &[]);
    for (index, arm) in sheet.arms.iter().enumerate() {
        let names = &[arm.as_str(), "change", "±95 %"][..if index == 0 { 1 } else { 3 }];
        grid.columns("", names, Align::Right);
    }
    if !cells.is_empty() {
        grid.columns("", &["published", "patched", "change", "verdict"], Align::Right);
    }
    for (at, row) in sheet.rows.iter().enumerate() {
        let mut line = vec![row.label.clone(), row.unit.clone()];
        for (index, found) in row.figures.iter().enumerate() {
            line.push(figure(found.value));
            if index > 0 {
                line.extend([percent(found.delta_pct), interval(found.ci95_pct)]);
            }
        }
        if let Some(cell) = cells.get(at) {
            let verdict = if cell.calibration { "fitted" } else { cell.verdict.name() };
            line.extend([
                figure(cell.published.baseline),
                cell.published.patched.map_or(String::new(), figure),
                percent(cell.published.delta_pct),
                verdict.to_string(),
            ]);
        }
        grid.row(line);
    }
    body.push_str(&grid.html());
}

fn comparison(body: &mut String, section: usize, title: &str, found: &Comparison) {
    let _ = writeln!(body, "<h2 id=\"s{section}\">{}</h2>", escape(title));
    let how = match found.place {
        None => "Simulated",
        Some(_) => "In guests",
    };
    let from = format!(
        "{how}: {}; {}. {}.",
        circumstances::of_comparison(found),
        circumstances::modes(&found.arms),
        settled::times(found)
    );
    for line in [from].into_iter().chain(settled::doubts(found)) {
        let _ = writeln!(body, "<p class=\"from\">{}</p>", escape(&line));
    }
    let names: Vec<String> = found.arms.iter().map(|arm| arm.name.clone()).collect();
    for sheet in Sheet::of_comparison(found) {
        if sheet.iterations.is_some() {
            sheet_section(body, section, &sheet, &[]);
            continue;
        }
        body.push_str("<h3>Scores</h3>\n");
        for row in &sheet.rows {
            let values = row.figures.iter().map(|found| found.value).collect();
            let label = format!("{}, {}", row.label, row.unit);
            let caption = format!("{label}, mean of the repetitions; {}.", better(row));
            let words = Words { name: &format!("{title}: {label}"), said: &caption };
            let svg = chart::bars(&words, &names, &[(row.label.clone(), values)]);
            captioned(body, &svg, &caption);
        }
        rows(body, &sheet, &[]);
    }
    course::courses(body, title, found);
    if !found.latency.is_empty() {
        body.push_str("<h3>Wake-up latency</h3>\n");
        ran::curves(body, title, &found.latency);
    }
    for machine in machines(std::slice::from_ref(&found.machine_toml)) {
        body.push_str("<h3>Where tasks ran</h3>\n");
        ran::where_ran(body, title, &machine, &found.cpus, "");
    }
    for (what, counted) in crate::comparison::counted(found) {
        // The drawing shows these decisions and more: it shows the CPUs on which tasks ran.
        let is_drawn = what == "decisions by chosen CPU" && !found.cpus.is_empty();
        if counted.iter().any(CountRow::occurred) && !is_drawn {
            let said = match found.place {
                None => "Per simulated second, mean of the repetitions.",
                Some(_) => "Per second of the guest that recorded them.",
            };
            counts(body, found, [title, what, said], counted);
        }
    }
}

/// Shows what was counted, under its title, by what it is, and with what is said about it.
fn counts(body: &mut String, found: &Comparison, words: [&str; 3], counted: &[CountRow]) {
    let [title, what, said] = words;
    let mut heading = what.to_string();
    heading[..1].make_ascii_uppercase();
    let _ = writeln!(body, "<h3>{}</h3>", escape(&heading));
    let rates = |row: &CountRow| {
        let rates = row.per_second.iter();
        rates.map(|rate| rate.unwrap_or(f64::NAN)).collect()
    };
    let rows: Vec<&CountRow> = counted.iter().filter(|row| row.occurred()).collect();
    let bars: Vec<(String, Vec<f64>)> =
        rows.iter().map(|row| (row.name.clone(), rates(row))).collect();
    let arms: Vec<String> = found.arms.iter().map(|arm| arm.name.clone()).collect();
    let words = Words { name: &format!("{title}: {what}"), said };
    captioned(body, &chart::bars(&words, &arms, &bars), words.said);
    body.push_str(&count_grid(found, &rows).html());
}

#[cfg(test)]
pub(crate) mod tests;
