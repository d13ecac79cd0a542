// SPDX-License-Identifier: GPL-2.0-or-later
//! The figures of `perch bench --lab`, for people and for programs.

use std::fmt::Write;

use perch_report::{Align, Format, Grid};

use super::figures::{COLUMNS, Result, Row, Sums, Total, median};

/// The figures in the format asked for.
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
         task, which\nare in the last column. The median of three turns, their range, and the same \
         by the kernel's means,\nwhich waiting for others is in. Left out: runs beyond ten medians, \
         for the same reason.\n",
    );
    text
}

fn grid(rows: &[&Row]) -> Grid {
    let mut grid = Grid::default();
    grid.column("", "scheduler", Align::Left);
    for name in COLUMNS {
        grid.column("", name, Align::Right);
    }
    for name in ["rest", "sum", "range", "by means", "left out", "not in sum"] {
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
        let part = |of: &dyn Fn(&Sums) -> Total| {
            let each = middle(&|sums| of(sums).each());
            let runs = middle(&|sums| of(sums).runs as f64 / sums.wakeups.max(1) as f64);
            cell(each, runs)
        };
        for at in 0..COLUMNS.len() {
            cells.push(part(&|sums| sums.columns[at]));
        }
        cells.push(part(&|sums| sums.rest));
        cells.push(format!("{:.0}", middle(&Sums::per_wakeup)));
        let sums = pairs.iter().map(|(sums, _)| sums.per_wakeup());
        let (least, most) = sums.fold((f64::MAX, 0.0_f64), |(least, most), sum| {
            (least.min(sum), most.max(sum))
        });
        cells.push(format!("{least:.0}-{most:.0}"));
        let means = median(pairs.iter().map(|(_, means)| means.per_wakeup()));
        cells.push(format!("{means:.0}"));
        cells.push(format!("{:.2}%", 100.0 * middle(&Sums::dropped)));
        cells.push(part(&|sums| sums.elsewhere));
        grid.row(cells);
    }
    grid
}

/// The figures as CSV, a line for each program and turn.
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

#[cfg(test)]
mod tests {
    use perch_scheduler::cost::{Cost, Costs};

    use super::super::collect::Found;
    use super::*;

    fn result() -> Result {
        let cost = |callback: &str, runs, mean_ns| Cost {
            program: format!("some_{callback}"),
            callback: Some(callback.to_string()),
            runs,
            mean_ns,
            quantiles_ns: Some([mean_ns - 5.0, mean_ns, mean_ns + 9.0]),
            dropped: 0,
        };
        let costs = |select_cpu| Costs {
            wakeups: 1000,
            programs: vec![cost("select_cpu", 990, select_cpu), cost("tick", 10, 80.0)],
        };
        let row = |(turn, select_cpu)| Row {
            scheduler: "some".to_string(),
            cpus: 8,
            kernel: "7.2.13".to_string(),
            found: Found {
                workload: "pipe".to_string(),
                turn,
                costs: costs(select_cpu),
                means: costs(select_cpu + 100.0),
            },
        };
        Result {
            rows: [800.0, 900.0, 820.0]
                .into_iter()
                .enumerate()
                .map(row)
                .collect(),
            failures: Vec::new(),
        }
    }

    #[test]
    fn a_scheduler_is_a_line() {
        let text = write(&result(), Format::Table);
        let cells: Vec<&str> = text.lines().nth(2).unwrap().split("  ").collect();
        let cells: Vec<&str> = cells.into_iter().filter(|cell| !cell.is_empty()).collect();
        let cells: Vec<&str> = cells.iter().map(|cell| cell.trim()).collect();
        assert_eq!(
            cells,
            [
                "some",
                "820 x0.99",
                "-",
                "-",
                "-",
                "-",
                "80 x0.01",
                "813",
                "793-892",
                "912",
                "0.00%",
                "-"
            ]
        );
    }

    #[test]
    fn csv_has_a_line_a_program_and_turn() {
        let text = write(&result(), Format::Csv);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 3 * 2);
        let columns = lines[0].split(',').count();
        assert!(
            lines.iter().all(|line| line.split(',').count() == columns),
            "{text}"
        );
        assert_eq!(
            lines[1],
            "some,8,7.2.13,pipe,0,1000,some_select_cpu,select_cpu,990,800,795,800,809,0,990,900"
        );
    }
}
