// SPDX-License-Identifier: GPL-2.0-only
//! The figures of `perch bench --lab`, for people and for programs.

use std::fmt::Write;

use perch_report::{Align, Format, Grid};

use super::figures::{COLUMNS, Result, Row, Sums, median};

/// In this format.
pub fn write(result: &Result, format: Format) -> String {
    match format {
        Format::Json => {
            let text = serde_json::to_string_pretty(result);
            text.expect("the result has only text keys") + "\n"
        }
        Format::Csv => csv(result),
        Format::Table => tables(result, Grid::text, ""),
        Format::Markdown => tables(result, Grid::markdown, "\n"),
    }
}

/// Rows of equal size and workload, in the order of appearance.
fn groups(result: &Result) -> Vec<Vec<&Row>> {
    let mut groups: Vec<Vec<&Row>> = Vec::new();
    for row in &result.rows {
        let same =
            |other: &Row| (other.cpus, &other.found.workload) == (row.cpus, &row.found.workload);
        match groups.iter_mut().find(|group| same(group[0])) {
            Some(group) => group.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

fn tables(result: &Result, show: fn(&Grid) -> String, gap: &str) -> String {
    let mut text = String::new();
    for group in groups(result) {
        let first = group[0];
        let _ = writeln!(
            text,
            "{} on {} CPUs, Linux {}: instructions a run, and runs a wake-up\n{gap}{}",
            first.found.workload,
            first.cpus,
            first.kernel,
            show(&grid(&group))
        );
    }
    text.push_str(
        "sum: instructions a wake-up of all callbacks but those for forks, exits and changes of a \
         task; the\nmedian of three turns, their range, and the same by the kernel's means, which \
         waiting for locks is in\n",
    );
    text
}

fn grid(rows: &[&Row]) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "scheduler", Align::Left);
    for name in COLUMNS {
        grid.column("", name, Align::Right);
    }
    for name in ["rest", "sum", "range", "by means", "left out"] {
        grid.column("", name, Align::Right);
    }
    let mut names: Vec<&str> = rows.iter().map(|row| row.scheduler.as_str()).collect();
    names.dedup();
    for name in names {
        let rows = rows.iter().filter(|row| row.scheduler == name);
        let found = rows.map(|row| &row.found);
        let pairs: Vec<(Sums, Sums)> = found
            .map(|found| {
                let costs = Sums::of(&found.costs, &found.means);
                (costs, Sums::of(&found.means, &found.means))
            })
            .collect();
        let middle = |of: &dyn Fn(&Sums) -> f64| median(pairs.iter().map(|(sums, _)| of(sums)));
        let cell = |each: f64, runs: f64| {
            if runs > 0.0 {
                format!("{each:.0} x{runs:.2}")
            } else {
                "-".to_string()
            }
        };
        let mut cells = vec![name.to_string()];
        for at in 0..COLUMNS.len() {
            let each = middle(&|sums| sums.columns[at].each());
            let runs = middle(&|sums| sums.columns[at].runs as f64 / sums.wakeups.max(1) as f64);
            cells.push(cell(each, runs));
        }
        let each = middle(&|sums| sums.rest.each());
        let runs = middle(&|sums| sums.rest.runs as f64 / sums.wakeups.max(1) as f64);
        cells.push(cell(each, runs));
        cells.push(format!("{:.0}", middle(&Sums::per_wakeup)));
        let sums = pairs.iter().map(|(sums, _)| sums.per_wakeup());
        let (least, most) = sums.fold((f64::MAX, 0.0_f64), |(least, most), sum| {
            (least.min(sum), most.max(sum))
        });
        cells.push(format!("{least:.0}-{most:.0}"));
        let means = median(pairs.iter().map(|(_, means)| means.per_wakeup()));
        cells.push(format!("{means:.0}"));
        cells.push(format!("{:.2}%", 100.0 * middle(&Sums::dropped)));
        grid.row(cells);
    }
    grid
}

/// A line a program and turn.
fn csv(result: &Result) -> String {
    let mut text = String::from(
        "scheduler,cpus,kernel,workload,turn,wakeups,program,callback,runs,mean_ns,tenth_ns,\
         median_ns,ninetieth_ns,dropped,kernel_runs,kernel_mean_ns\n",
    );
    for row in &result.rows {
        let (costs, means) = (&row.found.costs, &row.found.means);
        for kernel in &means.programs {
            let same = costs
                .programs
                .iter()
                .find(|one| one.program == kernel.program);
            let own = same.map_or(",,,,,".to_string(), |cost| {
                let [tenth, median, ninetieth] = cost.quantiles_ns.unwrap_or_default();
                let (runs, mean, dropped) = (cost.runs, cost.mean_ns, cost.dropped);
                format!("{runs},{mean},{tenth},{median},{ninetieth},{dropped}")
            });
            let _ = writeln!(
                text,
                "{},{},{},{},{},{},{},{},{own},{},{}",
                row.scheduler,
                row.cpus,
                row.kernel,
                row.found.workload,
                row.found.turn,
                costs.wakeups,
                kernel.program,
                kernel.callback.as_deref().unwrap_or_default(),
                kernel.runs,
                kernel.mean_ns
            );
        }
    }
    text
}
