// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch agent`, hidden: what perch itself starts, in a guest or as a process beside its own, and
//! no user types.

use clap::Subcommand;

use crate::output::Failure;
use crate::{cost, lab, notified};

/// The hidden command.
pub const NAME: &str = "agent";

/// The subcommands of `perch agent`.
// Nobody asks for their help, which would only lengthen what shells load to complete words.
#[derive(Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum Command {
    /// Do what the host says; a guest's init script starts it
    Serve(lab::AgentArguments),
    /// Run a command under the scheduler
    #[command(name = lab::SCHEDULED)]
    Scheduled(lab::ScheduledArguments),
    /// Run a command and watch it
    #[command(name = lab::WATCHED)]
    Watched(lab::WatchedArguments),
    /// Run a command as an arm of a comparison
    #[command(name = lab::ARM)]
    Arm(lab::ArmArguments),
    /// Be the other side of `perch lab ping`
    #[command(name = lab::PONG)]
    Pong(lab::PongArguments),
    /// Be one pair of `perch lab pairs`
    #[command(name = lab::PAIR)]
    Pair(lab::PairArguments),
    /// Carry out a round of `perch lab chaos`
    #[command(name = lab::CHAOS)]
    Chaos(lab::RoundArguments),
    /// Run a command and print what it says to a service manager
    #[command(name = notified::NOTIFIED)]
    Notified(notified::Arguments),
    /// Measure a scheduler's BPF programs, for `./x bench --lab`
    #[command(name = cost::NAME)]
    Cost(cost::Arguments),
}

/// The words that start the subcommand `name` in a guest.
pub fn in_guest(name: &str) -> Vec<String> {
    ["/bin/perch", NAME, name].map(str::to_string).to_vec()
}

/// Carries out `perch agent`.
pub fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(arguments) => lab::run_agent(&arguments),
        Command::Scheduled(arguments) => lab::run_scheduled(arguments),
        Command::Watched(arguments) => lab::run_watched(&arguments),
        Command::Arm(arguments) => lab::run_arm(arguments),
        Command::Pong(arguments) => lab::run_pong(&arguments),
        Command::Pair(arguments) => lab::run_pair(&arguments),
        Command::Chaos(arguments) => lab::run_round(&arguments),
        Command::Notified(arguments) => notified::run(&arguments),
        Command::Cost(arguments) => cost::run(arguments),
    }
}
