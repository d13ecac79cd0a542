// SPDX-License-Identifier: GPL-2.0-or-later
//! The tables of settings for people: in `perch run --help` and in the documentation.

use super::table::{BAND, MODES, Most, Need, Other, PARTIAL, SETTINGS, Setting, Tuning};
use crate::rule::{Draft, Key};
use crate::value::Slot;
use crate::{band, partial};

/// Columns of a terminal that the help takes.
const WIDTH: usize = 100;
/// Where in a line of the help the range begins, and the sentence.
const COLUMNS: [usize; 2] = [28, 47];

/// The text for the end of `perch run --help`: every key of a configuration file. Each line that
/// is not indented further shows a key with its default, up to three spaces, as a file has it.
pub fn help() -> String {
    let mut out = String::from(
        "Settings, for --set (without modes and tables) and for the TOML file of --config, all \
         optional,\nwith their defaults:\n",
    );
    help_line(&mut out, &other_example(&MODES), "", MODES.help);
    for setting in SETTINGS {
        let mut words = setting.help.to_string();
        if let Some((_, depends)) = setting.unasked {
            words.push_str(&format!(" [default: {depends}]"));
        }
        if setting.needs != Need::Nothing {
            words.push_str(&format!("; needs {}", setting.needs.words().replace('`', "")));
        }
        let range = format!("{} {}", setting.range_words(plain, ""), setting.unit);
        let pair = format!("{} = {}", setting.name, setting.default(plain));
        help_line(&mut out, &pair, range.trim_end(), &words);
    }
    out.push_str(
        "\nThe real-time band: tasks that go before all others. The first [[band]] that fits a \
         task counts:\n  [[band]]\n",
    );
    help_keys(&mut out, band::Draft::KEYS);
    out.push_str(
        "\nOnly some tasks: those that fit a [[partial]] are perch's, all others the kernel's:\n  \
         [[partial]]\n",
    );
    help_keys(&mut out, partial::Draft::KEYS);
    out.truncate(out.trim_end().len());
    out
}

/// The keys of a rule.
fn help_keys<D: Draft>(out: &mut String, keys: &[Key<D>]) {
    for key in keys {
        let pair = format!("{} = {}", key.name, key.example);
        let range = if key.range.len() < COLUMNS[1] - COLUMNS[0] - 2 { key.range } else { "" };
        help_line(out, &pair, range, key.help);
    }
}

fn other_example(other: &Other) -> String {
    format!("{} = {}", other.name, other.example)
}

/// A key, its range and a sentence, which goes on in the same column of the next lines.
fn help_line(out: &mut String, pair: &str, range: &str, words: &str) {
    let mut line = format!("  {pair:0$}{range:1$}", COLUMNS[0] - 2, COLUMNS[1] - COLUMNS[0]);
    for word in words.split(' ') {
        if line.chars().count() + word.chars().count() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(COLUMNS[1]);
        }
        line.push_str(word);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

/// The tables for the documentation, in Markdown: the settings and the keys of rules.
pub fn markdown() -> String {
    let mut out = String::from(
        "| key | unit | range | default | needs | what it does |\n|---|---|---|---|---|---|\n",
    );
    let mut row = |cells: [&str; 6]| {
        out.push_str(&format!("| `{}` |", cells[0]));
        for cell in &cells[1..] {
            let space = if cell.is_empty() { "" } else { " " };
            out.push_str(&format!("{space}{cell} |"));
        }
        out.push('\n');
    };
    let other = |o: &'static Other| [o.name, "", o.range, o.default, "", o.help];
    row(other(&MODES));
    for setting in SETTINGS {
        let default = match setting.unasked {
            Some((_, depends)) => format!("{}, {depends}", setting.default(grouped)),
            None => setting.default(grouped),
        };
        let range = setting.range_words(grouped, "`");
        let needs = setting.needs.words();
        row([setting.name, setting.unit, &range, &default, needs, setting.help]);
    }
    row(other(&BAND));
    row(other(&PARTIAL));
    markdown_keys(&mut out, BAND.name, band::Draft::KEYS);
    markdown_keys(&mut out, PARTIAL.name, partial::Draft::KEYS);
    out
}

/// The table of a rule's keys.
fn markdown_keys<D: Draft>(out: &mut String, of: &str, keys: &[Key<D>]) {
    out.push_str(&format!(
        "\nThe keys of a `[[{of}]]`:\n\n| key | range | default | what it means |\n|---|---|---|---|\n"
    ));
    for key in keys {
        let cells = [key.range, key.default, key.help].map(|cell| cell.replace('*', "\\*"));
        out.push_str(&format!("| `{}` | {} |\n", key.name, cells.join(" | ")));
    }
}

/// A number as TOML has it.
fn plain(number: u64) -> String {
    number.to_string()
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    match number / 1_000 {
        0 => number.to_string(),
        thousands => format!("{},{:03}", grouped(thousands), number % 1_000),
    }
}

impl Setting {
    /// The numbers that the setting may have; `quote` stands around another setting's name.
    fn range_words(&self, number: fn(u64) -> String, quote: &str) -> String {
        if self.is_switch() {
            return "true, false".to_string();
        }
        let most = match self.range.most {
            Most::Is(most) => number(most),
            Most::Setting(name, _) => format!("{quote}{name}{quote}"),
        };
        format!("{} to {most}", number(self.range.least))
    }

    /// The default, or the most that it is.
    pub(super) fn default(&self, number: fn(u64) -> String) -> String {
        match (self.slot)(&mut Tuning::default()) {
            Slot::Number(value) => number(*value),
            Slot::Maybe(value) => number(value.or(self.unasked.map(|u| u.0)).unwrap_or(0)),
            Slot::Switch(value) => value.to_string(),
        }
    }
}
