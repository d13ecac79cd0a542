// SPDX-License-Identifier: GPL-2.0-or-later
//! lscpu's tables, with a row for each CPU: commas (`-p`), columns of words (`-e`), JSON (`-e -J`).

use super::{EXPECTED, at_line};
use crate::error::MachineError;
use serde_json::Value;
use std::collections::BTreeMap;

/// The columns that a machine needs.
const KNOWN: [&str; 15] = [
    "CPU",
    "CORE",
    "CLUSTER",
    "SOCKET",
    "NODE",
    "BOOK",
    "DRAWER",
    "L1D",
    "L2",
    "L3",
    "L4",
    "L5",
    "ONLINE",
    "MAXMHZ",
    "MODELNAME",
];

/// The known columns of a table, and its rows.
pub(super) struct Table {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Row>,
}

/// What a table tells of one CPU.
pub(super) struct Row {
    /// The line, where the text has one for each row.
    pub line: Option<usize>,
    cells: BTreeMap<&'static str, String>,
}

/// What a level numbers a CPU's group by; `None` where it is in none.
pub(super) type Key = Result<Option<Vec<u64>>, MachineError>;

/// A column's names: those of caches have colons between them (`L1d:L1i:L2:L3`), as their cells do.
type Column = Vec<Option<&'static str>>;

fn column(name: &str) -> Column {
    let known = |name: &str| {
        let name = name.trim().to_ascii_uppercase();
        KNOWN.into_iter().find(|known| *known == name)
    };
    name.split(':').map(known).collect()
}

fn row<'a>(line: Option<usize>, cells: impl Iterator<Item = (&'a Column, &'a str)>) -> Row {
    let parts = cells.flat_map(|(column, cell)| column.iter().zip(cell.split(':')));
    let told = parts.filter_map(|(name, cell)| {
        let cell = cell.trim();
        let tells = !matches!(cell, "" | "-");
        tells.then_some(((*name)?, cell.to_string()))
    });
    Row { line, cells: told.collect() }
}

impl Table {
    fn new(columns: &[Column], rows: Vec<Row>) -> Table {
        Table { columns: columns.iter().flatten().copied().flatten().collect(), rows }
    }

    /// Reads what `-p` prints: the last comment has the names of the columns.
    pub fn of_commas(text: &str, origin: &str) -> Result<Option<Table>, MachineError> {
        let is_header = |line: &&str| {
            line.starts_with('#') && line.trim_start_matches(['#', ' ']).starts_with("CPU,")
        };
        let Some(header) = text.lines().rfind(is_header) else {
            return Ok(None);
        };
        let names = header.trim_start_matches('#').split(',');
        Table::of_lines(text, names.map(column).collect(), origin, |line| {
            let row = !line.starts_with('#') && !line.trim().is_empty();
            row.then(|| line.split(',').collect())
        })
        .map(Some)
    }

    /// Reads what `-e` prints.
    pub fn of_columns(text: &str, origin: &str) -> Result<Option<Table>, MachineError> {
        let first = text.lines().next().unwrap_or("");
        let columns: Vec<Column> = first.split_whitespace().map(column).collect();
        // The summary may begin with "CPU op-mode(s):".
        let known = columns.iter().flatten().flatten();
        if !first.trim_start().starts_with("CPU ") || known.count() < 2 {
            return Ok(None);
        }
        let mut header = true;
        Table::of_lines(text, columns, origin, |line| {
            let row = !std::mem::take(&mut header) && !line.trim().is_empty();
            row.then(|| line.split_whitespace().collect())
        })
        .map(Some)
    }

    /// Makes a row of each line of which `cells` makes some.
    fn of_lines<'a>(
        text: &'a str,
        columns: Vec<Column>,
        origin: &str,
        mut cells: impl FnMut(&'a str) -> Option<Vec<&'a str>>,
    ) -> Result<Table, MachineError> {
        let mut rows = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let Some(cells) = cells(line) else {
                continue;
            };
            let row = row(Some(number + 1), columns.iter().zip(cells.iter().copied()));
            if cells.len() != columns.len() {
                let reason = format!("{} cells under {} columns", cells.len(), columns.len());
                return Err(row.problem("CPU", reason, origin));
            }
            rows.push(row);
        }
        Ok(Table::new(&columns, rows))
    }

    /// Reads the list `cpus` of `-e -J`.
    pub fn of_json(cpus: &[Value]) -> Table {
        let mut columns = Vec::new();
        let mut rows = Vec::new();
        for cpu in cpus {
            let cells = cpu.as_object().into_iter().flatten().map(|(name, cell)| {
                // Older versions quote numbers.
                let cell = cell.as_str().map_or_else(|| cell.to_string(), str::to_string);
                (column(name), cell)
            });
            let cells: Vec<(Column, String)> = cells.collect();
            let told = cells.iter().filter(|(_, cell)| cell != "null");
            rows.push(row(None, told.map(|(column, cell)| (column, cell.as_str()))));
            if columns.is_empty() {
                columns = cells.into_iter().map(|(column, _)| column).collect();
            }
        }
        Table::new(&columns, rows)
    }
}

impl Row {
    pub fn text(&self, column: &str) -> Option<&str> {
        self.cells.get(column).map(String::as_str)
    }

    /// Returns the number in a column, which offline CPUs and machines without such a thing lack.
    pub fn number(&self, column: &str, origin: &str) -> Result<Option<u64>, MachineError> {
        let Some(text) = self.text(column) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| {
            let excerpt: String = text.chars().take(40).collect();
            let reason = format!("`{}` is not a number", excerpt.escape_default());
            self.problem(column, reason, origin)
        })
    }

    /// Returns the numbers in these columns, of which a machine may lack all but the last.
    pub fn numbers(&self, columns: &[&str], origin: &str) -> Key {
        let mut numbers = Vec::new();
        let mut last = None;
        for column in columns {
            last = self.number(column, origin)?;
            numbers.extend(last);
        }
        Ok(last.map(|_| numbers))
    }

    /// Returns the numbers of the package: sockets are numbered within a book and a drawer.
    pub fn package(&self, origin: &str) -> Key {
        self.numbers(&["DRAWER", "BOOK", "SOCKET"], origin)
    }

    pub fn problem(&self, column: &str, reason: impl Into<String>, origin: &str) -> MachineError {
        let mut place = at_line(self.line);
        place.key = column.to_string();
        place.problem(origin, reason, EXPECTED)
    }
}
