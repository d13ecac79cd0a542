// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch self-test`, hidden: checks that need a running kernel, for tests in guests.

use clap::{Args, Subcommand};
use perch_scheduler::decide::{Comparison, InKernel, Plan, compare};

use crate::output::{Failure, emit};

/// The hidden command.
pub const NAME: &str = "self-test";

/// The subcommands of `perch self-test`.
#[derive(Subcommand)]
pub enum Command {
    /// Compare what the policy decides as BPF, in this kernel, with what it decides natively
    /// (needs root; schedules nothing)
    Decide(DecideArguments),
}

/// The arguments of `perch self-test decide`.
#[derive(Args)]
pub struct DecideArguments {
    /// Machines and wake-ups follow from it
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many wake-ups at least
    #[arg(long, value_name = "N", default_value_t = 50_000,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    count: u32,
    /// Falsify one question on the BPF side only, which must be found
    #[arg(long)]
    falsify: bool,
}

/// Carries out `perch self-test`.
pub fn run(command: Command) -> Result<(), Failure> {
    let Command::Decide(arguments) = command;
    let plan =
        Plan { seed: arguments.seed, count: arguments.count as usize, falsify: arguments.falsify };
    let comparison = compare(&plan, &mut InKernel::load()?)?;
    emit(&comparison.to_string())?;
    match comparison.mismatches {
        0 => Ok(()),
        _ => Err(Failure::run(verdict(&plan, &comparison))),
    }
}

/// The differences, and the command that shows them again.
fn verdict(plan: &Plan, comparison: &Comparison) -> String {
    let told = comparison.told.join("\n");
    let falsify = if plan.falsify { " --falsify" } else { "" };
    format!(
        "{} of {} wake-ups are decided differently in BPF; the first:\n{told}\n\
         again: perch {NAME} decide --seed {} --count {}{falsify}",
        comparison.mismatches, comparison.questions, plan.seed, plan.count
    )
}
