// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch doctor`: tells an operator, before she loads perch, whether it can run on her machine, what
//! it would do there and what would no longer hold.

#[cfg(test)]
mod tests;
mod words;

use std::path::PathBuf;

use clap::Args;
use perch_plan::Configuration;
use perch_report::json;
use perch_scheduler::doctor::diagnose;
use schemars::JsonSchema;
use serde::Serialize;

use crate::arguments::Form;
use crate::exit;
use crate::output::{Failure, emit};

/// The end of `perch doctor --help`.
const HELP: &str = "\
Each line has a mark, the check's name and what was found:
  ok       nothing to do
  note     perch can run, and something is otherwise than under the kernel's scheduler
  problem  perch cannot run, or not with this configuration
  unknown  this user, or this kernel, does not let perch look

It loads nothing and changes nothing, and needs no rights.

Exit codes:
  0  perch can run here; there may be notes
  1  something could not be looked at, or the result not be written
  2  the arguments or the configuration make no sense
  3  perch cannot run here";

/// The arguments of `perch doctor`.
#[derive(Args)]
#[command(after_help = HELP)]
pub struct Arguments {
    /// The TOML file that perch run would take
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Modes and settings, as perch run takes them, for example groups=0
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Form::Table, value_name = "FORMAT")]
    format: Form,
    /// The directory that holds a copy of the tree's `proc` and `sys`, to look at instead
    #[arg(long, value_name = "DIR", default_value = "/")]
    root: PathBuf,
}

/// What a check came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mark {
    /// Nothing to do.
    Ok,
    /// perch can run, and something is otherwise than under the kernel's scheduler.
    Note,
    /// perch cannot run, or not with this configuration.
    Problem,
    /// It could not be looked at.
    Unknown,
}

impl Mark {
    fn name(self) -> &'static str {
        match self {
            Mark::Ok => "ok",
            Mark::Note => "note",
            Mark::Problem => "problem",
            Mark::Unknown => "unknown",
        }
    }
}

/// A check of `perch doctor`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Check {
    /// Its name, which stays the same in later versions.
    name: &'static str,
    /// What it came to.
    mark: Mark,
    /// What was found, in a line.
    found: String,
    /// What to do about it, in a line; null where there is nothing to do.
    to_do: Option<String>,
}

/// The name of the check whose problems are the user's input.
const CONFIGURATION: &str = "configuration";

/// All checks of a machine.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checks {
    /// The kernel's version.
    kernel: String,
    /// True if perch can run here with this configuration, as far as this user can see.
    can_run: bool,
    /// The modes that perch run would choose here, as `--set` takes them; null where the machine
    /// cannot be told.
    modes: Option<String>,
    /// The checks; those of every version in the same order.
    checks: Vec<Check>,
}

/// Carries out `perch doctor`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let configuration = Configuration {
        file: arguments.config,
        set: arguments.set,
        bands: Vec::new(),
        partial: Vec::new(),
    };
    let settings = configuration.read()?;
    let checks = Checks::of(&diagnose(&arguments.root, &settings));
    emit(&match arguments.format {
        Form::Table => checks.text(),
        Form::Json => json(&checks),
    })?;
    checks.outcome()
}

impl Checks {
    fn text(&self) -> String {
        let width = self.checks.iter().map(|check| check.name.len()).max();
        let width = width.unwrap_or(0);
        let mut out = String::new();
        for check in &self.checks {
            let (mark, name) = (check.mark.name(), check.name);
            out += &format!("{mark:<7}  {name:<width$}  {}\n", check.found);
            if let Some(to_do) = &check.to_do {
                out += &format!("{:<7}  {:<width$}  to do: {to_do}\n", "", "");
            }
        }
        out
    }

    /// The names of the checks with a mark.
    fn marked(&self, mark: Mark) -> Vec<&'static str> {
        let marked = self.checks.iter().filter(|check| check.mark == mark);
        marked.map(|check| check.name).collect()
    }

    /// The exit code and the last words.
    fn outcome(&self) -> Result<(), Failure> {
        let wrong = |check: &&Check| check.name == CONFIGURATION && check.mark == Mark::Problem;
        if let Some(check) = self.checks.iter().find(wrong) {
            return Err(Failure::input(check.found.clone()));
        }
        let problems = self.marked(Mark::Problem);
        if !problems.is_empty() {
            return Err(Failure {
                code: exit::UNABLE,
                message: format!("cannot run here: {}", problems.join(", ")),
            });
        }
        let unknown = self.marked(Mark::Unknown);
        if unknown.is_empty() {
            Ok(())
        } else {
            Err(Failure::run(format!("could not look at everything: {}", unknown.join(", "))))
        }
    }
}
