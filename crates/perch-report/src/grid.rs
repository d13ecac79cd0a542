// SPDX-License-Identifier: GPL-2.0-or-later
//! A small table: columns under headings, some of them grouped under one heading.

use std::fmt::Write;

#[cfg(feature = "pages")]
use crate::html;

/// The side of its column on which a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// The side for words.
    Left,
    /// The side for figures.
    Right,
}

#[derive(Clone, Debug)]
struct Column {
    group: String,
    name: String,
    align: Align,
}

/// Columns and rows of text.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// Returns a table without rows: columns of words, then columns of figures.
    pub fn new(words: &[&str], figures: &[&str]) -> Grid {
        let mut grid = Grid::default();
        grid.columns("", words, Align::Left);
        grid.columns("", figures, Align::Right);
        grid
    }

    /// Adds columns under one heading, which may be empty.
    pub fn columns<N: AsRef<str>>(&mut self, group: &str, names: &[N], align: Align) {
        names.iter().for_each(|name| self.column(group, name.as_ref(), align));
    }

    /// Adds a column. Neighbours with the same `group`, which may be empty, stand under one
    /// heading.
    pub fn column(&mut self, group: &str, name: &str, align: Align) {
        self.columns.push(Column { group: group.to_string(), name: name.to_string(), align });
    }

    /// Adds a row.
    ///
    /// # Panics
    /// Panics when the row has not one text a column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "one text a column");
        self.rows.push(cells);
    }

    /// Returns the table as text: aligned columns, two spaces apart, without trailing blanks.
    pub fn text(&self) -> String {
        let mut widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(index, column)| {
                let cells = self.rows.iter().map(|row| row[index].chars().count());
                cells.chain([column.name.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let groups = self.groups();
        for (first, last, name) in &groups {
            let under: usize = widths[*first..=*last].iter().sum::<usize>() + 2 * (last - first);
            widths[*last] += name.chars().count().saturating_sub(under);
        }
        let mut text = String::new();
        if groups.iter().any(|(_, _, name)| !name.is_empty()) {
            let alone = groups.iter().all(|(first, last, _)| first == last);
            let headings = groups.iter().map(|(first, last, name)| {
                let width = widths[*first..=*last].iter().sum::<usize>() + 2 * (last - first);
                let left = if name.is_empty() { "" } else { "-" };
                let dashes = width.saturating_sub(name.chars().count() + 2);
                match left {
                    "" => " ".repeat(width),
                    // In headings of two lines, each of the upper headings stands over one column.
                    _ if alone => match self.columns[*last].align {
                        Align::Left => format!("{name:<width$}"),
                        Align::Right => format!("{name:>width$}"),
                    },
                    _ if dashes < 2 => format!("{name:^width$}"),
                    dash => format!(
                        "{} {name} {}",
                        dash.repeat(dashes / 2),
                        dash.repeat(dashes - dashes / 2)
                    ),
                }
            });
            push_line(&mut text, headings);
        }
        let pad = |cell: &str, index: usize| match self.columns[index].align {
            Align::Left => format!("{cell:<width$}", width = widths[index]),
            Align::Right => format!("{cell:>width$}", width = widths[index]),
        };
        let names = self.columns.iter().map(|column| column.name.as_str());
        push_line(&mut text, names.enumerate().map(|(index, name)| pad(name, index)));
        for row in &self.rows {
            push_line(&mut text, row.iter().enumerate().map(|(index, cell)| pad(cell, index)));
        }
        text
    }

    /// Returns the columns' headings in one line: a grouped column's has the group before its name.
    fn head(&self) -> Vec<String> {
        let names = self.columns.iter();
        let names = names.map(|column| format!("{} {}", column.group, column.name));
        names.map(|name| name.trim().to_string()).collect()
    }

    /// Returns the table in Markdown; a grouped column's heading has the group before its name.
    pub fn markdown(&self) -> String {
        let mut text = String::from("|");
        for name in self.head() {
            let _ = write!(text, " {} |", escape(&name));
        }
        text.push_str("\n|");
        for column in &self.columns {
            text.push_str(if column.align == Align::Left { "---|" } else { "--:|" });
        }
        for row in &self.rows {
            text.push_str("\n|");
            for cell in row {
                let _ = write!(text, " {} |", escape(cell));
            }
        }
        text.push('\n');
        text
    }

    /// Returns the table in HTML, headings as in Markdown.
    #[cfg(feature = "pages")]
    pub(crate) fn html(&self) -> String {
        let line = |tag: &str, cells: &[String]| {
            let cells = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", html::escape(cell)));
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let rows: String = self.rows.iter().map(|row| line("td", row)).collect();
        let head = line("th", &self.head());
        format!("<div class=\"wide\"><table>\n{head}{rows}</table></div>\n")
    }

    /// Returns the first and the last column of each run of columns under one heading.
    fn groups(&self) -> Vec<(usize, usize, &str)> {
        let mut groups: Vec<(usize, usize, &str)> = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            match groups.last_mut() {
                Some((_, last, name)) if *name == column.group => *last = index,
                _ => groups.push((index, index, &column.group)),
            }
        }
        groups
    }
}

fn push_line(text: &mut String, cells: impl Iterator<Item = String>) {
    let line = cells.collect::<Vec<_>>().join("  ");
    text.push_str(line.trim_end());
    text.push('\n');
}

/// A `|` in the text would end the cell.
fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&["row"], &[]);
        grid.columns("published", &["base", "delta"], Align::Right);
        grid.row(["n=1", "325.97", "+16.24%"].map(str::to_string).to_vec());
        grid.row(["n=128", "6528.6", ""].map(str::to_string).to_vec());
        grid
    }

    #[test]
    fn columns_line_up_under_their_headings() {
        insta::assert_snapshot!(grid().text(), @r"
               -- published --
        row      base    delta
        n=1    325.97  +16.24%
        n=128  6528.6
        ");
    }

    #[test]
    fn markdown_names_the_group_in_each_heading() {
        insta::assert_snapshot!(grid().markdown(), @r"
        | row | published base | published delta |
        |---|--:|--:|
        | n=1 | 325.97 | +16.24% |
        | n=128 | 6528.6 |  |
        ");
    }
}
