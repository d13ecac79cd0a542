// SPDX-License-Identifier: GPL-2.0-or-later
//! Tables of an experiment: the published figures beside the simulated ones.

use std::fmt::Write;

use perch_experiment::{CellReport, Closeness, Fit, Iterations, Report, Verdict};

use crate::circumstances;
use crate::figure::{figure, interval, percent};
use crate::format::Format;
use crate::grid::{Align, Grid};
use crate::line;
use crate::records::{json, write_csv};
use crate::settled;

/// The meaning of the words in tables, and of the figures under them.
const WORDS: &str = "\
agrees: the simulated change lies within the tolerance with its whole 95 % interval; DISAGREES: outside
of it, wholly; undecided: it reaches over the edge, or one run has none: --effort full repeats further
fitted: costs were calibrated on these columns; the row is not scored
points: root mean square of the differences from the published changes; order: Spearman's coefficient";

/// Returns `reports` in the form of `format`. JSON is one object for one report and a list for
/// several.
pub fn experiments(reports: &[Report], format: Format) -> String {
    match format {
        Format::Table => blocks(reports, terminal),
        Format::Markdown => blocks(reports, markdown),
        Format::Csv => csv(reports),
        Format::Json => match reports {
            [report] => json(report),
            several => json(several),
        },
    }
}

fn blocks(reports: &[Report], block: impl Fn(&Report) -> String) -> String {
    reports.iter().map(block).collect::<Vec<_>>().join("\n")
}

fn terminal(report: &Report) -> String {
    let mut text = format!("{}\n{}\n{}\n", report.title, report.source, circumstances(report));
    for table in tables(report) {
        let iterations = iterations(report, &table[0]);
        let _ = writeln!(text, "\n{}", heading(report, &table[0], iterations));
        text.push_str(&grid(table, iterations).text());
    }
    let _ = writeln!(text, "\n{}", summary(report).join("\n"));
    if !report.fits.is_empty() {
        let _ = write!(text, "\n{}", fits(&report.fits).text());
    }
    let _ = writeln!(text, "\n{WORDS}");
    if let Some(found) = &report.c2c {
        text.push_str(&line::sections(found, "", Grid::text));
    }
    text
}

fn markdown(report: &Report) -> String {
    let mut text =
        format!("## {}\n\n{}. {}.\n", report.title, report.source, circumstances(report));
    for table in tables(report) {
        let iterations = iterations(report, &table[0]);
        let _ = writeln!(text, "\n### {}\n", heading(report, &table[0], iterations));
        text.push_str(&grid(table, iterations).markdown());
    }
    text.push('\n');
    for line in summary(report) {
        let _ = writeln!(text, "- {line}");
    }
    if !report.fits.is_empty() {
        let _ = write!(text, "\n{}", fits(&report.fits).markdown());
    }
    if let Some(found) = &report.c2c {
        text.push_str(&line::sections(found, "### ", Grid::markdown));
    }
    text
}

/// Returns the circumstances that bring the report back.
fn circumstances(report: &Report) -> String {
    format!("{}; {}", circumstances::of_report(report), circumstances::modes(&report.arms))
}

/// Returns the iterations behind the table of `cell`, where the table's rows are statistics.
fn iterations<'a>(report: &'a Report, cell: &CellReport) -> Option<&'a Iterations> {
    let here =
        |found: &&Iterations| (&found.benchmark, &found.place) == (&cell.benchmark, &cell.place);
    report.iterations.iter().find(here)
}

fn heading(report: &Report, cell: &CellReport, iterations: Option<&Iterations>) -> String {
    // The heading tells this direction, because readers expect the other one.
    let direction = if cell.higher_is_better { "" } else { ", less is better" };
    let mut text = format!("{}, {} ({}{direction})", cell.benchmark, cell.place, cell.unit);
    if let Some(found) = iterations {
        let count = found.arms.first().map_or(0, |arm| arm.values.len());
        let _ = write!(text, ": {count} iterations of {}", found.workload);
    }
    // Where all tables share a machine, the circumstances name the machine.
    if report.machine != cell.machine {
        let _ = write!(text, " on {}", cell.machine);
    }
    text
}

/// Returns the cells of each table: neighbours of one benchmark, place and unit.
fn tables(report: &Report) -> impl Iterator<Item = &[CellReport]> {
    report.cells.chunk_by(CellReport::shares_table)
}

fn grid(table: &[CellReport], iterations: Option<&Iterations>) -> Grid {
    // The name of a further arm's figure: where rows are statistics, the row itself names the
    // figure.
    let figure = if iterations.is_some() { "figure" } else { "mean" };
    let mut grid = Grid::new(&["row"], &[]);
    for (group, names) in [
        ("published", &["baseline", "patched", "delta", "tolerance"][..]),
        ("simulated", &["baseline", "patched", "delta", "±95%", "runs"][..]),
    ] {
        grid.columns(group, names, Align::Right);
    }
    grid.column("", "base ratio", Align::Right);
    grid.column("", "change", Align::Left);
    grid.column("", "direction", Align::Left);
    for further in &table[0].further {
        grid.columns(&further.arm, &[figure, "delta", "±95%"], Align::Right);
    }
    let marked = table.iter().any(|cell| cell.transient_ms.is_some());
    if marked {
        grid.column("", "", Align::Left);
    }
    for cell in table {
        let mut row = row(cell);
        if marked {
            let mark = cell.transient_ms.map_or("", |_| settled::MARK);
            row.push(mark.to_string());
        }
        grid.row(row);
    }
    grid
}

fn row(cell: &CellReport) -> Vec<String> {
    let (published, simulated) = (&cell.published, &cell.simulated);
    // A reader must not overlook what disagrees.
    let said = |verdict: Verdict| match verdict {
        Verdict::Disagrees => "DISAGREES".to_string(),
        other => other.name().to_string(),
    };
    let (change, direction) = if cell.calibration {
        ("fitted".to_string(), cell.fitted.join("+"))
    } else {
        (said(cell.verdict), cell.direction.map_or("-".to_string(), said))
    };
    let tolerance = cell.tolerance.map_or("-".to_string(), |tolerance| {
        let [low, high] = [tolerance.low_pct, tolerance.high_pct].map(percent);
        format!("{low} to {high}")
    });
    let mut row = vec![
        cell.row.clone(),
        figure(published.baseline),
        published.patched.map_or(String::new(), figure),
        percent(published.delta_pct),
        tolerance,
        figure(simulated.baseline),
        figure(simulated.patched),
        percent(simulated.delta_pct),
        interval(simulated.ci95_pct),
        cell.repetitions.to_string(),
        cell.baseline_ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}")),
        change,
        direction,
    ];
    for further in &cell.further {
        let delta = percent(further.delta_pct);
        row.extend([figure(further.mean), delta, interval(further.ci95_pct)]);
    }
    row
}

/// Returns the summary, in words.
fn summary(report: &Report) -> Vec<String> {
    let summary = &report.summary;
    let share = |part: usize, whole: usize| {
        let percent = 100.0 * part as f64 / whole.max(1) as f64;
        format!("{part} of {whole} ({percent:.0} %)")
    };
    let verdicts = |agree: usize, disagree: usize, undecided: usize| {
        let whole = agree + disagree + undecided;
        format!("{} agree, {disagree} disagree, {undecided} undecided", share(agree, whole))
    };
    let unsettled = settled::of_report(report);
    [
        format!("changes: {}", verdicts(summary.agrees, summary.disagrees, summary.undecided)),
        format!(
            "directions: {}",
            verdicts(
                summary.direction_agrees,
                summary.direction_disagrees,
                summary.direction_undecided
            )
        ),
        format!(
            "baselines at 0.8 to 1.25 of the published: {}",
            share(summary.baseline_close, summary.baseline_rows)
        ),
    ]
    .into_iter()
    .chain(unsettled)
    .chain(settled::cut_short(report))
    .collect()
}

/// Returns a row a table: how far its changes lie from the published ones, in the simulation and in
/// other postings.
fn fits(fits: &[Fit]) -> Grid {
    let mut postings: Vec<&str> = Vec::new();
    for posting in fits.iter().flat_map(|fit| &fit.postings) {
        if !postings.contains(&posting.posting.as_str()) {
            postings.push(&posting.posting);
        }
    }
    let mut grid = Grid::new(&["off by"], &[]);
    let figures = ["rows", "points", "order"];
    grid.columns("perch", &figures, Align::Right);
    for posting in &postings {
        grid.columns(posting, &figures, Align::Right);
        grid.columns(&format!("perch, {posting}'s rows"), &figures[1..], Align::Right);
    }
    for fit in fits {
        let mut row = vec![match (&fit.benchmark, &fit.place, &fit.unit) {
            (Some(benchmark), Some(place), Some(unit)) => format!("{benchmark}, {place} ({unit})"),
            _ => "all tables".to_string(),
        }];
        row.extend(closeness(&fit.simulated));
        for name in &postings {
            match fit.postings.iter().find(|other| other.posting == *name) {
                Some(posting) => {
                    row.extend(closeness(&posting.posted));
                    row.extend_from_slice(&closeness(&posting.simulated)[1..]);
                }
                None => row.extend(["-"; 5].map(str::to_string)),
            }
        }
        grid.row(row);
    }
    grid
}

fn closeness(closeness: &Closeness) -> [String; 3] {
    [
        closeness.rows.to_string(),
        format!("{:.1}", closeness.rms_pp),
        closeness.spearman.map_or("-".to_string(), |order| format!("{order:.2}")),
    ]
}

/// The columns of a cell's line of CSV, behind that of the experiment: their names and values.
type Column = (&'static str, fn(&CellReport) -> String);
const COLUMNS: [Column; 22] = [
    ("benchmark", |cell| cell.benchmark.clone()),
    ("where", |cell| cell.place.clone()),
    ("row", |cell| cell.row.clone()),
    ("unit", |cell| cell.unit.clone()),
    ("published_baseline", |cell| cell.published.baseline.to_string()),
    ("published_patched", |cell| optional(cell.published.patched)),
    ("published_delta_pct", |cell| cell.published.delta_pct.to_string()),
    ("simulated_baseline", |cell| cell.simulated.baseline.to_string()),
    ("simulated_patched", |cell| cell.simulated.patched.to_string()),
    ("simulated_delta_pct", |cell| finite(cell.simulated.delta_pct)),
    ("simulated_ci95_pct", |cell| optional(cell.simulated.ci95_pct)),
    ("baseline_ratio", |cell| cell.baseline_ratio.map_or(String::new(), |ratio| ratio.to_string())),
    ("calibration", |cell| cell.calibration.to_string()),
    ("within", |cell| cell.within.to_string()),
    ("sign_agrees", |cell| cell.sign_agrees.to_string()),
    ("higher_is_better", |cell| cell.higher_is_better.to_string()),
    ("machine", |cell| cell.machine.clone()),
    ("tolerance_low_pct", |cell| optional(cell.tolerance.map(|tolerance| tolerance.low_pct))),
    ("tolerance_high_pct", |cell| optional(cell.tolerance.map(|tolerance| tolerance.high_pct))),
    ("repetitions", |cell| cell.repetitions.to_string()),
    ("verdict", |cell| cell.verdict.name().to_string()),
    ("direction", |cell| {
        cell.direction.map_or(String::new(), |verdict| verdict.name().to_string())
    }),
];

fn csv(reports: &[Report]) -> String {
    let mut arms: Vec<&str> = Vec::new();
    for further in reports.iter().flat_map(|report| &report.cells).flat_map(|cell| &cell.further) {
        if !arms.contains(&further.arm.as_str()) {
            arms.push(&further.arm);
        }
    }
    let names = ["experiment"].into_iter().chain(COLUMNS.map(|(name, _)| name));
    let mut header: Vec<String> = names.map(str::to_string).collect();
    for arm in &arms {
        header.extend(["mean", "delta_pct", "ci95_pct"].map(|name| format!("{arm}_{name}")));
    }
    let mut records = vec![header];
    for report in reports {
        for cell in &report.cells {
            let mut record = vec![report.experiment.clone()];
            record.extend(COLUMNS.map(|(_, value)| value(cell)));
            for arm in &arms {
                let further = cell.further.iter().find(|further| further.arm == *arm);
                record.extend(further.map_or([const { String::new() }; 3], |further| {
                    let delta = finite(further.delta_pct);
                    [further.mean.to_string(), delta, optional(further.ci95_pct)]
                }));
            }
            records.push(record);
        }
    }
    write_csv(&records)
}

/// Returns an empty text where there is no value, as for a value that JSON cannot write.
pub(crate) fn optional(value: Option<f64>) -> String {
    value.map_or(String::new(), finite)
}

/// Writes the value; an empty text where it is not a finite number, such as a change from 0. JSON
/// has null there.
pub(crate) fn finite(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

#[cfg(test)]
mod tests;
