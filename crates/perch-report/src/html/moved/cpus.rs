// SPDX-License-Identifier: GPL-2.0-or-later
//! The charts and tables by CPU: instructions, modelled time, and lines that were used.

use super::super::chart;
use super::super::chart::{Part, Row, Words};
use super::super::parts::captioned;
use super::{arms_of, each, grid};
use crate::moved::tables::{instructions as table_of_instructions, used as table_of_used};
use crate::moved::time::{Column, columns, cpus, table as table_of_time};
use crate::moved::{Arms, MODES};

/// A chart of CPUs shows at most so many: those with the longest bars. The table has all.
const MOST_CPUS: usize = 16;

/// Returns rows of the CPUs with the longest bars, in the order of the CPUs, and words that say which
/// these are where CPUs are left out.
fn longest(cpus: Vec<(u32, Vec<Vec<f64>>)>, which: &str) -> (Vec<Row>, String) {
    let all = cpus.len();
    let mut cpus = cpus;
    let most = |bars: &[Vec<f64>]| bars.iter().map(|bar| bar.iter().sum()).fold(0.0, f64::max);
    cpus.sort_by(|(_, a), (_, b)| most(b).total_cmp(&most(a)));
    cpus.truncate(MOST_CPUS);
    cpus.sort_by_key(|(cpu, _)| *cpu);
    let which = if all > cpus.len() {
        format!(", of the {MOST_CPUS} CPUs that {which} most")
    } else {
        String::new()
    };
    let rows = cpus.into_iter();
    let rows = rows.map(|(cpu, bars)| (format!("CPU {cpu}"), bars));
    (rows.collect(), which)
}

pub fn instructions(body: &mut String, title: &str, arms: &Arms) {
    body.push_str("<h4>Instructions by CPU</h4>\n");
    let executed = |cpu: usize| -> Vec<Vec<f64>> {
        let of = arms.iter().map(|(_, slot)| {
            let counts = slot.instructions.get(cpu).copied().unwrap_or_default();
            counts.map(|count| slot.per(count)).to_vec()
        });
        of.collect()
    };
    let cpus = arms.iter().map(|(_, slot)| slot.instructions.len()).max();
    let cpus = (0..cpus.unwrap_or(0)).map(|cpu| (cpu as u32, executed(cpu)));
    let ran = |bars: &[Vec<f64>]| bars.iter().flatten().any(|count| *count > 0.0);
    let cpus = cpus.filter(|(_, bars)| ran(bars)).collect();
    let (rows, which) = longest(cpus, "executed");
    let caption = format!(
        "Instructions of users' code and of the kernel's, {}{which}.",
        each(arms)
    );
    let words = Words {
        name: &format!("{title}: instructions by CPU"),
        said: &caption,
    };
    let parts: Vec<Part> = MODES
        .into_iter()
        .enumerate()
        .map(|(look, name)| Part { name, look })
        .collect();
    let drawn = chart::stacks(&words, &arms_of(arms), &parts, &rows);
    captioned(body, &drawn, &caption);
    grid(body, &table_of_instructions(arms));
}

/// Returns the part of a bar that a column is. A distance has the same colour as in other charts.
fn part(column: Column) -> Part {
    let look = match column {
        Column::Lines(distance) => distance as usize,
        Column::Instructions => 7,
        Column::Smt => 8,
        Column::Queue => 9,
        Column::Stores => 10,
        Column::Exit => 11,
    };
    Part {
        name: column.name(),
        look,
    }
}

/// Adds where time went in the arms in which it was modelled, if there are any.
pub fn time(body: &mut String, title: &str, arms: &Arms) {
    let timed = arms.iter().filter(|(_, slot)| slot.is_timed());
    let arms = &timed.cloned().collect::<Vec<_>>()[..];
    let columns = columns(arms);
    if columns.is_empty() {
        return;
    }
    body.push_str("<h4>Where time went, by CPU</h4>\n");
    let bars = |cpu: u32| -> Vec<Vec<f64>> {
        let of = arms.iter().map(|(_, slot)| {
            let of = |column: &Column| slot.time_ns(cpu, |other| other == *column);
            columns.iter().map(of).collect()
        });
        of.collect()
    };
    let bars = cpus(arms).into_iter().map(|cpu| (cpu, bars(cpu))).collect();
    let (rows, which) = longest(bars, "spent");
    let caption = format!(
        "Where the modelled time of CPUs went, in nanoseconds, {}{which}: their instructions and what \
         siblings slowed them down; waiting for lines by distance, and in the queue for lines that \
         others had first; waiting for the store buffer; the way out of idle states. A halted CPU \
         spends none.",
        each(arms)
    );
    let words = Words {
        name: &format!("{title}: where time went by CPU"),
        said: &caption,
    };
    let parts: Vec<Part> = columns.into_iter().map(part).collect();
    let drawn = chart::stacks(&words, &arms_of(arms), &parts, &rows);
    captioned(body, &drawn, &caption);
    grid(body, &table_of_time(arms));
}

/// Adds the lines that were used, if they were counted.
pub fn used(body: &mut String, arms: &Arms) {
    let table = table_of_used(arms);
    if table.rows().is_empty() {
        return;
    }
    body.push_str(
        "<h4>Lines used, by CPU</h4>\n<p class=\"from\">Different lines of data, and of code where \
         it was looked at, that each CPU used between the marks, in all.</p>\n",
    );
    grid(body, &table);
}
