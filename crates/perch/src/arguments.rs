// SPDX-License-Identifier: GPL-2.0-or-later
//! Arguments that several commands take, and functions that read their values.

use clap::{Args, ValueEnum};
use perch_experiment::{Limits, Thoroughness};
use perch_report::{Origin, ResultFormat};
use perch_workload::Budget;

/// The reason why a value was refused, in words that follow the argument's name and the value.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadValue(String);

impl<T: Into<String>> From<T> for BadValue {
    fn from(words: T) -> BadValue {
        BadValue(words.into())
    }
}

/// The options of commands that simulate and show results.
#[derive(Args, Clone, Debug)]
pub struct Common {
    /// How to write the result: table, markdown, csv or json; lkml, for a mail to a kernel list;
    /// mmtests, as its compare-mmtests.pl prints comparisons
    #[arg(long, default_value = "table", value_name = "FORMAT")]
    pub format: ResultFormat,
    /// The seed that all others are derived from
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Threads to simulate on; the result does not depend on them [default: one per CPU]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub jobs: Option<u32>,
    /// Memory that the tasks of the workloads and the scores of all repetitions may take, as perch
    /// foresees it; what asks for more is refused, and fewer threads simulate where all of them would
    /// take more
    #[arg(long, default_value_t = Budget::DEFAULT, value_name = "MEMORY")]
    pub budget: Budget,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// The option of commands that read simulations from files.
#[derive(Args, Clone, Copy, Debug)]
pub struct AllowScx {
    /// Compile and run the schedulers that modes = "scx:FILE" names: foreign code, with your rights
    #[arg(long)]
    allow_scx: bool,
}

impl AllowScx {
    /// The limits of a simulation that a file asks for.
    pub fn limits(self) -> Limits {
        Limits { allow_scx: self.allow_scx, ..Limits::default() }
    }
}

impl Common {
    /// Threads to simulate on.
    pub fn jobs(&self) -> usize {
        threads(self.jobs)
    }
}

/// The version and the command line of this perch, with which a reader gets the same result again.
pub fn origin() -> Origin {
    let arguments = std::env::args_os().skip(1).map(|argument| quoted(&argument.to_string_lossy()));
    let words: Vec<String> = ["perch".to_string()].into_iter().chain(arguments).collect();
    Origin { version: env!("CARGO_PKG_VERSION").to_string(), command: words.join(" ") }
}

/// A word quoted so that a shell reads it back.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+:,./@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// The number of threads asked for, else one per CPU.
pub fn threads(jobs: Option<u32>) -> usize {
    let here = || std::thread::available_parallelism().map_or(1, usize::from);
    jobs.map_or_else(here, |jobs| jobs as usize)
}

/// Reads a count that must not be 0.
pub fn at_least_one(text: &str) -> Result<u32, BadValue> {
    match text.parse() {
        Ok(0) => Err("expected at least 1".into()),
        Ok(count) => Ok(count),
        Err(_) => Err("expected a whole number, at least 1".into()),
    }
}

/// How a result for a person is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// For a person
    Table,
    /// JSON
    Json,
}

/// The words of `--effort`.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum Effort {
    Quick,
    #[default]
    Normal,
    Full,
}

impl From<Effort> for Thoroughness {
    fn from(effort: Effort) -> Thoroughness {
        match effort {
            Effort::Quick => Thoroughness::Quick,
            Effort::Normal => Thoroughness::Normal,
            Effort::Full => Thoroughness::Full,
        }
    }
}

/// Reads a duration such as `250ms` or `2s` and returns nanoseconds; refuses more than an hour,
/// which is probably a wrong unit.
pub fn duration_ns(text: &str) -> Result<u64, BadValue> {
    let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
    match with_unit(text, &units, "250ms or 2s")? {
        Some(ns) if ns <= perch_experiment::Effort::LONGEST_NS => Ok(ns),
        _ => Err("more than an hour of simulated time".into()),
    }
}

/// Reads a whole number followed by one of `units`, each given with its size, and returns their
/// product; `None` where that does not fit in 64 bits.
pub fn with_unit(
    text: &str,
    units: &[(&str, u64)],
    examples: &str,
) -> Result<Option<u64>, BadValue> {
    let expected = || format!("expected a whole number and a unit, for example {examples}");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(expected)?;
    let (count, unit) = text.split_at(at);
    let known = units.iter().find(|(name, _)| *name == unit);
    let (_, size) = known.ok_or_else(expected)?;
    let count: u64 = count.parse().map_err(|_| expected())?;
    Ok(count.checked_mul(*size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_quoted_words_as_they_were() {
        let words = ["-w", "tbench:n=4,where=node0", "tbench/*", "it's", ""];
        assert_eq!(
            words.map(quoted).join(" "),
            r"-w tbench:n=4,where=node0 'tbench/*' 'it'\''s' ''"
        );
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(duration_ns("250ms"), Ok(250_000_000));
        assert_eq!(duration_ns("2s"), Ok(2_000_000_000));
        for bad in ["", "250", "ms", "-1s", "1.5s", "9000000000000s", "3601s"] {
            assert!(duration_ns(bad).is_err(), "{bad}");
        }
    }
}
