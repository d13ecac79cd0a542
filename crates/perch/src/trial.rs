// SPDX-License-Identifier: GPL-2.0-or-later
//! `perch trial`: turns of the kernel's own scheduler and of perch on this machine, what tasks waited
//! in each, and the way back by itself.

mod child;
mod conduct;
mod meter;
mod report;
mod result;
mod schedule;
mod source;
mod stage;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueHint};
use perch_experiment::Gate;
use perch_report::{figure, json, percent};
use perch_scheduler::stats::processor;
use perch_scheduler::waits::Group;
use perch_scheduler::{Kernel, Purpose, Signals};

use crate::arguments::{Form, quoted};
use crate::exit;
use crate::fresh::Asked;
use crate::output::{Failure, emit, say};
#[cfg(feature = "record")]
pub use child::unblock_signals;
use conduct::{End, conduct};
use meter::Meter;
use report::Circumstances;
pub use report::Report;
use result::{Measure, Row, Turn};
use schedule::Schedule;
use source::{Cgroup, Counter};
use stage::Live;

/// The end of `perch trial --help`.
const HELP: &str = "\
Measures, in the order of the table:
  p50_wait, p99_wait, mean_wait                 from the waker's call until the task runs
  p50_preempted, p99_preempted, mean_preempted  from leaving a CPU until the task goes on
  wakeups, migrations                           a second; migrations are moves to another CPU
  cpu_time                                      CPUs that tasks kept busy, in the mean
  pressure                                      time in which some task waited (PSI; with several
                                                cgroups pressure/web and so on)
  and each --counter

However it ends (all turns over, Ctrl-C, kill -9, a condition, an ejection), the kernel is on its own
scheduler afterwards. A trial that fails reports the turns before.";

/// The arguments of `perch trial`.
#[derive(Args)]
#[command(after_help = format!("{HELP}\n\n{}", exit::HELP))]
pub struct Arguments {
    /// The cgroup, and those below it, for which perch is loaded and whose tasks are measured; may be
    /// repeated [default: the whole machine]
    #[arg(long = "cgroup", value_name = "PATH", value_parser = source::cgroup)]
    cgroups: Vec<Cgroup>,
    /// How long the trial lasts; loading comes on top
    #[arg(long = "for", value_name = "TIME", default_value = "1h", value_parser = schedule::time)]
    total: Duration,
    /// How long a turn lasts
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = schedule::time)]
    every: Duration,
    /// The part at the begin of each turn that is not measured [default: a tenth of the turn]
    #[arg(long, value_name = "TIME", value_parser = schedule::time_or_none)]
    settle: Option<Duration>,
    /// End the trial once the whole 95 % interval of a measure's change, over at least three pairs of
    /// turns, lies beyond a bound; may be repeated
    #[arg(long = "revert-if", value_name = "MEASURE>PERCENT%", value_parser = result::condition)]
    conditions: Vec<Gate>,
    /// Also measure how fast a number grows that this command of a shell prints; may be repeated
    #[arg(long = "counter", value_name = "NAME=COMMAND", value_parser = source::counter)]
    counters: Vec<Counter>,
    /// Modes and settings, as perch run takes them
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A TOML file of settings, as perch run takes it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How to write the report
    #[arg(long, value_enum, default_value_t = Form::Table, value_name = "FORMAT")]
    format: Form,
    /// Where to write the report [default: stdout]
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Say nothing on stderr but errors
    #[arg(long, short)]
    quiet: bool,
    /// Further arguments of perch run
    #[arg(last = true, value_name = "ARGUMENT")]
    further: Vec<String>,
}

impl Arguments {
    /// The arguments of `perch run`.
    fn of_run(&self) -> Result<Vec<String>, Failure> {
        let mut all = Vec::new();
        for group in &self.cgroups {
            all.extend(["--partial".to_string(), format!("cgroup={}", group.path)]);
        }
        if let Some(file) = &self.config {
            let file = file.to_str().ok_or_else(|| {
                Failure::input(format!("--config {}: expected UTF-8", file.display()))
            })?;
            all.extend(["--config".to_string(), file.to_string()]);
        }
        for setting in &self.set {
            all.extend(["--set".to_string(), setting.clone()]);
        }
        all.extend(self.further.iter().cloned());
        Ok(all)
    }
}

/// Carries out `perch trial`.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let schedule = Schedule::new(arguments.total, arguments.every, arguments.settle);
    let schedule = schedule.map_err(Failure::input)?;
    let of_run = arguments.of_run()?;
    meter::distinct(&arguments.cgroups, &arguments.counters).map_err(Failure::input)?;
    let groups = arguments.cgroups.iter().map(Cgroup::find);
    let groups: Vec<Group> = groups.collect::<Result<_, _>>().map_err(Failure::input)?;
    let kernel = Kernel::new(Path::new("/"));
    able(&kernel)?;
    let notes = child::check(&of_run)?;
    let signals = Signals::block();
    let counters = arguments.counters.clone();
    let (meter, unmeasured) = Meter::new((&arguments.cgroups, &groups), counters, &signals)?;
    let measures = meter.measures().to_vec();
    result::check(&arguments.conditions, &measures).map_err(Failure::input)?;
    let machine = perch_machine::detect(Path::new("/"))?;
    let file = Asked::begin(arguments.output.as_deref())?;
    if !arguments.quiet {
        notes.into_iter().chain(unmeasured).for_each(say);
        say(format_args!(
            "{} turns of {:?}, of which the first {:?} are not measured; Ctrl-C goes back to the \
             kernel's scheduler",
            schedule.turns(),
            schedule.turn,
            schedule.settle
        ));
    }
    let again = again(&of_run);
    let mut live = Live::new(schedule, of_run, meter, signals);
    let mut tell = |number: usize, turn: &Turn, rows: Option<&[Row]>| {
        if !arguments.quiet {
            say(turn_in_words(&measures, number, schedule.turns(), turn));
            rows.into_iter().for_each(|rows| say(pairs_in_words(&measures, rows)));
        }
    };
    let judged = (&measures[..], &arguments.conditions[..]);
    let (turns, end) = conduct(&schedule, judged, &mut |side| live.play(side), &mut tell);
    let end = match (end, live.revert()) {
        // What went wrong first is told.
        (end @ End::Failed(_), _) | (end, Ok(())) => end,
        (_, Err(failure)) => End::Failed(failure),
    };
    let circumstances = Circumstances {
        perch: env!("CARGO_PKG_VERSION"),
        machine: processor(&machine).to_string(),
        cpus: machine.cpus.len(),
        kernel: kernel.version(),
        scheduling: live.scheduling.clone(),
        cgroups: arguments.cgroups.iter().map(|group| group.path.clone()).collect(),
        turn_s: schedule.turn.as_secs_f64(),
        settle_s: schedule.settle.as_secs_f64(),
        planned: schedule.turns(),
    };
    let report = Report::new(circumstances, &measures, turns, &end);
    let text = match arguments.format {
        Form::Table => report.text(&again),
        Form::Json => json(&report),
    };
    if !file.finish(&text)? {
        emit(&text)?;
    }
    match end {
        End::Finished | End::Stopped => Ok(()),
        End::Held(held) => Err(Failure {
            code: exit::REVERTED,
            message: format!("--revert-if '{}': {}", held.condition, held.because),
        }),
        End::Failed(failure) => Err(failure),
    }
}

/// Refuses a kernel, or a user, that cannot have perch loaded now.
fn able(kernel: &Kernel) -> Result<(), Failure> {
    kernel.check_sched_ext()?;
    kernel.check_btf(Purpose::Trying)?;
    kernel.check_rights(Purpose::Trying)?;
    Ok(kernel.check_free()?)
}

/// The command that loads perch as the trial did.
fn again(of_run: &[String]) -> String {
    let words = of_run.iter().map(|word| quoted(word));
    let all = ["sudo perch run".to_string()].into_iter().chain(words);
    all.collect::<Vec<_>>().join(" ")
}

/// What a turn came to, in a line: the measures that the user is told of meanwhile.
fn turn_in_words(measures: &[Measure], number: usize, of: usize, turn: &Turn) -> String {
    let values = measures.iter().zip(&turn.values);
    let values = values.filter_map(|(measure, value)| {
        let value = (*value).filter(|_| measure.told)?;
        Some(format!("{} {} {}", measure.name, figure(value), measure.unit))
    });
    let values: Vec<String> = values.collect();
    let side = turn.side.name();
    format!("turn {number} of {of}, {side}: {}", values.join(", "))
}

/// The changes so far, in a line.
fn pairs_in_words(measures: &[Measure], rows: &[Row]) -> String {
    let rows = measures.iter().zip(rows).filter(|(measure, _)| measure.told);
    let rows = rows.filter_map(|(_, row)| {
        let change = percent(row.change_pct?);
        let half = row.ci95_pct.map_or(String::new(), |half| format!(" ±{half:.2}"));
        Some(format!("{} {change}{half}", row.measure))
    });
    format!("changes so far: {}", rows.collect::<Vec<_>>().join(", "))
}
