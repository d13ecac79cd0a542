// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch sweep rank`: the arms of a sweep against each other.

use std::sync::Arc;

use clap::Args;
use perch_experiment::{
    ArmGain, ArmRanking, MODEL, RankRow, RankVerdict, Shard, Standing, Store, Sweep, TrustOfMany,
};
use perch_machine::Machine;
use perch_report::{Align, Format, Grid, figure, json, percent, trust_lines_of_many, write_csv};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use super::{RunArguments, all_ran, number, plain, simulate};
use crate::output::{Failure, emit, emit_data, say};

/// The arguments of `perch sweep rank`.
#[derive(Args)]
pub struct RankArguments {
    #[command(flatten)]
    run: RunArguments,
    /// Also print how the arms stand at each value of this axis: machine, or workload
    #[arg(long, value_name = "AXIS")]
    by: Option<String>,
    /// Also print every row: the gain of each arm
    #[arg(long)]
    rows: bool,
    /// Print the rows in which the arm is worse by more than 2 % and the noise
    #[arg(long, value_name = "ARM")]
    losses: Option<String>,
    /// How to write the result: table, markdown, csv (the rows) or json
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    format: Format,
}

/// Carries out `perch sweep rank`.
pub fn run(arguments: &RankArguments) -> Result<(), Failure> {
    let sweep = arguments.run.resolve()?;
    // What makes no sense is said before anything is simulated.
    let asked = sweep.arms()?;
    let by = place_of("--by", "axis", arguments.by.as_ref(), &asked.axes)?;
    let losses = place_of("--losses", "arm", arguments.losses.as_ref(), &asked.arms)?;
    // Some simulations may fail; the others have their ranks all the same.
    let failed = simulate(&sweep, &arguments.run)?;
    let ranking = sweep.rank(&Store::existing(&arguments.run.store)?)?;
    // Other processes may be at the other parts.
    if ranking.missing > 0 && arguments.run.shard != Shard::WHOLE {
        say(format_args!(
            "{} points have no result yet; loads without all arms are left out",
            ranking.missing
        ));
    }
    match arguments.format {
        Format::Json => {
            let ranked = Ranked { model: MODEL, trust: trust(&sweep)?, ranking };
            emit(&json(&ranked))?;
        }
        Format::Csv => emit_data(&sheet(&ranking))?,
        Format::Table | Format::Markdown => {
            let mut tables = vec![standings(&ranking, by)];
            let shown = |row: &RankRow| match losses {
                Some(arm) => row.arms[arm].verdict == RankVerdict::Worse,
                None => true,
            };
            if arguments.rows || losses.is_some() {
                tables.push(rows(&ranking, shown));
            }
            let written = tables.iter().map(|table| match arguments.format {
                Format::Markdown => table.markdown(),
                _ => table.text(),
            });
            let tables = written.collect::<Vec<_>>().join("\n");
            let lines = trust_lines_of_many(&trust(&sweep)?).join("\n");
            emit(&format!("{tables}\n{}\n{lines}\nmodel {MODEL}\n", foot(&ranking)))?;
        }
    }
    all_ran(failed)
}

/// Returns the place of what an option names among what there is.
fn place_of(
    option: &str,
    what: &str,
    asked: Option<&String>,
    known: &[String],
) -> Result<Option<usize>, Failure> {
    let place = |name: &String| {
        let at = known.iter().position(|known| known == name);
        at.ok_or_else(|| {
            let known = known.join(", ");
            Failure::input(format!("{option} {name}: no such {what}: expected one of {known}"))
        })
    };
    asked.map(place).transpose()
}

/// Returns the schema of the result in JSON.
pub fn ranked_schema() -> Schema {
    perch_file::result_schema::<Ranked>("result of perch sweep rank")
}

/// The result in JSON.
#[derive(Serialize, JsonSchema)]
struct Ranked {
    #[serde(flatten)]
    ranking: ArmRanking,
    /// The digest of the model that made the figures.
    model: &'static str,
    /// How far the figures may be trusted.
    trust: TrustOfMany,
}

/// Returns how the machines and loads of a sweep fared against published tables.
fn trust(sweep: &Sweep) -> Result<TrustOfMany, Failure> {
    let mut loads: Vec<(Arc<Machine>, String)> = Vec::new();
    for point in sweep.points() {
        let prepared = point?.prepared;
        let machine = prepared.machine()?;
        // The points of one machine follow each other.
        if let Some((last, workload)) = loads.last()
            && *workload == prepared.asked.workload
            && Arc::ptr_eq(last, &machine)
        {
            continue;
        }
        loads.push((machine, prepared.asked.workload));
    }
    let loads = loads.iter();
    Ok(TrustOfMany::of(loads.map(|(machine, workload)| (&**machine, workload.as_str()))))
}

/// Returns the words below the tables: what counts, and what does not.
fn foot(ranking: &ArmRanking) -> String {
    let rows = ranking.rows.len();
    let is_unsettled = |row: &&RankRow| row.arms.iter().any(|arm| !arm.settled);
    let unsettled = ranking.rows.iter().filter(is_unsettled).count();
    format!(
        "better, worse: by more than 2 % and the 95 % interval over paired seeds; level: neither, by \
         the same; undecided: the\ninterval leaves that open; not settled: time alone may \
         still change the score. The last two count for\nnobody: they are in no median \
         and are no worst row, and what is not settled is in no share of \"best\". {unsettled} of {rows} rows have an arm that is not settled.\n"
    )
}

/// The arms over all rows, and at each value of the axis `by`.
fn standings(ranking: &ArmRanking, by: Option<usize>) -> Grid {
    let mut grid = Grid::new(&["rows of"], &["rows"]);
    grid.column("", "arm", Align::Left);
    let counts = ["better", "worse", "level", "undecided", "not settled", "median"];
    grid.columns("against the baseline", &counts, Align::Right);
    grid.column("of settled arms", "best", Align::Right);
    grid.columns("worst row", &["gain", "±95%"], Align::Right);
    grid.column("worst row", "load", Align::Left);
    let mut add = |what: &str, take: &dyn Fn(&RankRow) -> bool| {
        let rows = ranking.rows.iter().filter(|row| take(row)).count();
        for (at, standing) in ranking.standings(take).into_iter().enumerate() {
            let least = standing.least.map(|row| &ranking.rows[row]);
            let own = least.map(|row| row.arms[at]);
            let Standing {
                arm,
                better,
                worse,
                level,
                undecided,
                not_settled,
                best,
                settled,
                median_pct,
                ..
            } = standing;
            let counts = [better, worse, level, undecided, not_settled];
            let mut cells = vec![what.to_string(), rows.to_string(), arm];
            cells.extend(counts.map(|count| count.to_string()));
            cells.extend([
                median_pct.map_or_else(String::new, percent),
                match settled {
                    0 => String::new(),
                    _ => format!("{} %", (100 * best + settled / 2) / settled),
                },
                own.map_or_else(String::new, |arm| percent(arm.gain_pct)),
                own.map_or_else(String::new, half),
                least.map_or_else(String::new, of),
            ]);
            grid.row(cells);
        }
    };
    add("all", &|_| true);
    if let Some(by) = by {
        let mut values: Vec<String> = Vec::new();
        for row in &ranking.rows {
            let value = plain(&row.point[by]);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        for value in values {
            add(&value, &|row| plain(&row.point[by]) == value);
        }
    }
    grid
}

/// Half the width of a gain's interval; "?" where nobody knows it.
fn half(arm: ArmGain) -> String {
    arm.ci95_pct.map_or_else(|| "?".to_string(), |half| format!("{half:.1}"))
}

/// A row in words: where, and what.
fn of(row: &RankRow) -> String {
    let point: Vec<String> = row.point.iter().map(plain).collect();
    format!("{}, {}", point.join(" "), row.score)
}

fn rows(ranking: &ArmRanking, shown: impl Fn(&RankRow) -> bool) -> Grid {
    let mut grid = Grid::default();
    grid.columns("", &ranking.axes, Align::Left);
    grid.columns("", &["score", "unit"], Align::Left);
    grid.column("", "baseline", Align::Right);
    for arm in &ranking.arms {
        grid.columns(arm, &["gain", "±95%"], Align::Right);
        grid.column(arm, "", Align::Left);
    }
    for row in ranking.rows.iter().filter(|row| shown(row)) {
        let mut cells: Vec<String> = row.point.iter().map(plain).collect();
        cells.extend([
            row.score.clone(),
            row.unit.clone(),
            figure(row.arms[ranking.baseline].mean),
        ]);
        for arm in &row.arms {
            let verdict = match arm.verdict {
                RankVerdict::Level => "",
                verdict => verdict.name(),
            };
            cells.extend([percent(arm.gain_pct), half(*arm), verdict.to_string()]);
        }
        grid.row(cells);
    }
    grid
}

/// The rows in CSV, a line for each arm, with figures in full precision.
fn sheet(ranking: &ArmRanking) -> String {
    let columns = [
        "arm",
        "score",
        "unit",
        "higher_is_better",
        "mean",
        "gain_pct",
        "ci95_pct",
        "settled",
        "verdict",
        "best",
    ];
    let head = ranking.axes.iter().map(String::as_str).chain(columns);
    let mut records: Vec<Vec<String>> = vec![head.map(str::to_string).collect()];
    for row in &ranking.rows {
        records.extend(ranking.arms.iter().zip(&row.arms).map(|(name, arm)| {
            let cells = [
                name.clone(),
                row.score.clone(),
                row.unit.clone(),
                row.higher_is_better.to_string(),
                arm.mean.to_string(),
                arm.gain_pct.to_string(),
                number(arm.ci95_pct),
                arm.settled.to_string(),
                arm.verdict.name().to_string(),
                arm.is_best.to_string(),
            ];
            row.point.iter().map(plain).chain(cells).collect()
        }));
    }
    write_csv(&records)
}
