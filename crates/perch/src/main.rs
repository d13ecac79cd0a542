// SPDX-License-Identifier: GPL-2.0-or-later
//! The command. Data goes to stdout and words to stderr; it exits with 0 when what was asked is
//! done, 1 when it failed, 2 when what was asked, or a file that was given, makes no sense, and 3 when
//! it is done and a gate failed, or perch cannot run here; see `exit.rs`.

#[cfg(feature = "record")]
mod advise;
#[cfg(feature = "lab")]
mod agent;
mod arguments;
#[cfg(feature = "live")]
mod cgroup;
mod compare;
#[cfg(feature = "lab")]
mod cost;
mod diff;
#[cfg(feature = "live")]
mod doctor;
mod eras;
mod exit;
mod experiment;
#[cfg(feature = "live")]
mod fresh;
mod gate;
#[cfg(feature = "record")]
mod import;
#[cfg(feature = "lab")]
mod lab;
mod machine;
mod meter;
#[cfg(feature = "lab")]
mod notified;
mod output;
#[cfg(feature = "record")]
mod record;
#[cfg(feature = "record")]
mod recording;
#[cfg(feature = "record")]
mod replay;
#[cfg(feature = "pages")]
mod report;
mod results;
#[cfg(feature = "live")]
mod run;
mod schema;
#[cfg(feature = "live")]
mod scx;
#[cfg(feature = "live")]
mod self_test;
mod shell;
mod simulate;
#[cfg(feature = "live")]
mod stats;
mod store;
mod sweep;
#[cfg(feature = "live")]
mod top;
#[cfg(feature = "live")]
mod trial;
mod workload;

use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Where a waking task should land: five mechanisms, tried on machines you need not own.
#[derive(Parser)]
#[command(name = "perch", version, arg_required_else_help = true)]
// The script `x` looks for the words behind the number.
#[cfg_attr(
    not(all(feature = "lab", feature = "pages")),
    command(version = concat!(env!("CARGO_PKG_VERSION"), " (not all commands)"))
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reproduce published tables and show both side by side
    #[command(subcommand)]
    Experiment(experiment::Command),
    /// Run any arms on any workload and machine
    Compare(compare::Arguments),
    /// Run one simulation of a file, as a sweep does
    Simulate(simulate::Arguments),
    /// Run many simulations, here or on a cluster, into one store
    #[command(subcommand)]
    Sweep(sweep::Command),
    /// Verify, prune or export a store of results
    #[command(subcommand)]
    Store(store::Command),
    /// Compare an old and a new result of the same question
    Diff(diff::Arguments),
    /// Show the machines that perch knows, or describe another one
    #[command(subcommand)]
    Machine(machine::Command),
    /// Show the workloads and their keys
    #[command(subcommand)]
    Workload(workload::Command),
    /// List the changes of Linux between eras, with their commits and the trust in the dates
    Eras,
    /// Tell whether perch can run here, and what would no longer hold; changes nothing
    #[cfg(feature = "live")]
    Doctor(doctor::Arguments),
    /// Schedule this machine by perch, until Ctrl-C (needs root)
    #[cfg(feature = "live")]
    Run(run::Arguments),
    /// Try perch here in turns with the kernel's own scheduler, and go back (needs root)
    #[cfg(feature = "live")]
    Trial(trial::Arguments),
    /// Compile other schedulers of sched_ext for the simulator
    #[cfg(feature = "live")]
    #[command(subcommand)]
    Scx(scx::Command),
    /// Show what a loaded scheduler is doing
    #[cfg(feature = "live")]
    Stats(stats::Arguments),
    /// Watch a loaded scheduler on a screen: rates, waits and caches, second by second
    #[cfg(feature = "live")]
    Top(top::Arguments),
    /// Record every wake-up of this kernel, with all that it could see (needs root)
    #[cfg(feature = "record")]
    Record(record::Arguments),
    /// Ask perch's model, or another policy, about the wake-ups of a recording
    #[cfg(feature = "record")]
    Replay(replay::Arguments),
    /// Sum up what each mechanism would do on a recording's machine, and what is not known
    #[cfg(feature = "record")]
    Advise(advise::Arguments),
    /// Make a workload of what perf sched record or trace-cmd recorded
    #[cfg(feature = "record")]
    Import(import::Arguments),
    /// Run commands in guests that look like any machine
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(lab::Command),
    /// Do what perch itself starts, in a guest or as a process beside its own
    #[cfg(feature = "lab")]
    #[command(name = agent::NAME, hide = true, subcommand)]
    Agent(agent::Command),
    /// Make one file for a browser of results: charts with their tables
    #[cfg(feature = "pages")]
    Report(report::Arguments),
    /// Print the JSON Schema of a kind of file, or name the kinds
    Schema(schema::Arguments),
    /// Print what a shell needs to complete perch's commands and options
    Completions(shell::CompletionsArguments),
    /// Write manual pages, one per command
    Man(shell::ManArguments),
    #[cfg(feature = "live")]
    #[command(name = self_test::NAME, hide = true, subcommand)]
    SelfTest(self_test::Command),
}

/// The groups of `perch --help`.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Simulate",
        &["experiment", "compare", "sweep", "machine", "workload", "eras", "diff", "report"],
    ),
    ("Record and replay", &["record", "replay", "advise", "import"]),
    ("Run live", &["doctor", "run", "trial", "stats", "top"]),
    ("Boot guests", &["lab"]),
    ("Tools", &["simulate", "store", "scx", "schema", "completions", "man"]),
];

/// The command with its help in groups, which clap has for options only.
fn command() -> clap::Command {
    let command = Cli::command();
    let mut help = "{about-with-newline}\n{usage-heading} {usage}\n".to_string();
    for (title, names) in GROUPS {
        let there = names.iter().filter_map(|name| command.find_subcommand(name));
        let lines = there.map(|one| {
            let about = one.get_about().map(ToString::to_string).unwrap_or_default();
            format!("  {:<12} {about}\n", one.get_name())
        });
        let lines: String = lines.collect();
        if !lines.is_empty() {
            help += &format!("\n{title}:\n{lines}");
        }
    }
    command.help_template(help + "\nOptions:\n{options}{after-help}")
}

/// Writes what clap has to say of the arguments, which may be help that was asked for.
fn refused(error: &clap::Error) -> ExitCode {
    let words = error.render().to_string();
    let words = output::escaped(&words);
    // A reader that is gone, of `perch --help | head` for example, is not a failure.
    let _ = if error.use_stderr() {
        std::io::stderr().write_all(words.as_bytes())
    } else {
        std::io::stdout().write_all(words.as_bytes())
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// The name by which the tools of sched_ext start its schedulers: `perch run` under another name.
const AS_SCHEDULER: &str = "scx_perch";

/// The arguments, with `run` put before those of [`AS_SCHEDULER`].
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    let version = |word: &OsString| word == "--version" || word == "-V";
    if name == Some(AS_SCHEDULER.as_ref()) && !arguments.get(1).is_some_and(version) {
        arguments.insert(1, "run".into());
    }
    arguments
}

fn main() -> ExitCode {
    let matches = command().try_get_matches_from(arguments());
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return refused(&error),
    };
    let result = match cli.command {
        Command::Experiment(command) => experiment::run(command),
        Command::Compare(arguments) => compare::run(arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Sweep(command) => sweep::run(command),
        Command::Store(command) => store::run(command),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Machine(command) => machine::run(command),
        Command::Workload(command) => workload::run(command),
        Command::Eras => eras::run(),
        #[cfg(feature = "lab")]
        Command::Lab(command) => lab::run(command),
        #[cfg(feature = "lab")]
        Command::Agent(command) => agent::run(command),
        #[cfg(feature = "live")]
        Command::Doctor(arguments) => doctor::run(arguments),
        #[cfg(feature = "live")]
        Command::Run(arguments) => run::run(arguments),
        #[cfg(feature = "live")]
        Command::Trial(arguments) => trial::run(arguments),
        #[cfg(feature = "live")]
        Command::Scx(command) => scx::run(command),
        #[cfg(feature = "live")]
        Command::Stats(arguments) => stats::run(arguments),
        #[cfg(feature = "live")]
        Command::Top(arguments) => top::run(arguments),
        #[cfg(feature = "record")]
        Command::Record(arguments) => record::run(arguments),
        #[cfg(feature = "record")]
        Command::Replay(arguments) => replay::run(arguments),
        #[cfg(feature = "record")]
        Command::Advise(arguments) => advise::run(arguments),
        #[cfg(feature = "record")]
        Command::Import(arguments) => import::run(arguments),
        #[cfg(feature = "pages")]
        Command::Report(arguments) => report::run(&arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Completions(arguments) => shell::completions(Cli::command(), &arguments),
        Command::Man(arguments) => shell::man(Cli::command(), &arguments),
        #[cfg(feature = "live")]
        Command::SelfTest(command) => self_test::run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say(failure.message);
            ExitCode::from(failure.code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_in_one_group_of_the_help() {
        for one in command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let named = GROUPS.iter().flat_map(|(_, names)| names.iter());
            let named = named.filter(|name| **name == one.get_name()).count();
            assert_eq!(named, 1, "{}", one.get_name());
            let about = one.get_about().map_or(0, |about| about.to_string().len());
            assert!(about <= 85, "{}: a line of the help is longer than 100", one.get_name());
        }
    }
}
