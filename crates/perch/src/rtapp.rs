// SPDX-License-Identifier: GPL-2.0-or-later
//! Runs the real rt-app in a guest, on a file that perch simulates, and counts the wake-ups of its
//! tasks.
//!
//! In the guest the kernel's own trace tells which task was woken and when. The window begins where
//! the simulator's does, the warm-up after the creation of the last of the file's tasks.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use clap::Args;
use perch_file::Kind;
use perch_report::{Align, Grid};
use perch_workload::rtapp::runnable;

use crate::agent;
use crate::output::{Failure, emit};

/// The agent's command that runs and counts in a guest.
pub const GUEST: &str = "rt-app";
/// The path of the file in the guest.
pub const FILE: &str = "/rt-app.json";

const TRACEFS: &str = "/sys/kernel/tracing";
/// The folder in which rt-app runs and writes its log.
const FOLDER: &str = "/tmp";
/// Each CPU's part of the trace; a wake-up takes some 60 bytes.
const BUFFER_KIB: &str = "8192";
/// The time that rt-app may take beyond the window; it calibrates itself for some seconds.
const PATIENCE: Duration = Duration::from_secs(300);

/// The arguments of that command.
#[derive(Args)]
pub struct Arguments {
    /// Nanoseconds after the last of the file's tasks was created
    #[arg(long)]
    warmup: u64,
    /// Nanoseconds that are counted
    #[arg(long)]
    measure: u64,
}

/// The seconds that the file's `duration` has to be for this window.
fn seconds(warmup_ns: u64, measure_ns: u64) -> u64 {
    // One second more is for the creation of the tasks, which is part of the duration.
    (warmup_ns + measure_ns).div_ceil(1_000_000_000) + 1
}

/// The file with the `duration` that the guest's rt-app needs.
pub fn file_for_guest(file: &Path, warmup_ns: u64, measure_ns: u64) -> Result<String, Failure> {
    let named = |why: String| Failure::input(format!("{}: {why}", file.display()));
    let text = perch_file::text(file, Kind::RT_APP);
    let text = text.map_err(|error| Failure::input(error.to_string()))?;
    runnable(&text, seconds(warmup_ns, measure_ns)).map_err(|error| named(error.to_string()))
}

/// The command in the guest.
pub fn command(warmup_ns: u64, measure_ns: u64) -> Vec<String> {
    let (warmup, measure) = (warmup_ns.to_string(), measure_ns.to_string());
    let mut words = agent::in_guest(GUEST);
    words.extend(["--warmup", &warmup, "--measure", &measure].map(str::to_string));
    words
}

/// Runs rt-app in the guest in which this process runs, and prints the counts.
pub fn run_in_guest(arguments: &Arguments) -> Result<(), Failure> {
    set("buffer_size_kb", BUFFER_KIB)?;
    set("trace_clock", "mono")?;
    set("options/event-fork", "1")?;
    // The kernel traces this process and all that descend from it; the count below leaves this
    // process itself out.
    set("set_event_pid", &std::process::id().to_string())?;
    for event in ["sched_process_fork", "sched_wakeup", "sched_wakeup_new"] {
        set(&format!("events/sched/{event}/enable"), "1")?;
    }
    let limit = PATIENCE + Duration::from_nanos(arguments.warmup + arguments.measure);
    let (rt_app, status) = run_rt_app(limit)?;
    set("tracing_on", "0")?;
    if !status.success() {
        return Err(Failure::run(format!(
            "rt-app ended with {status}:\n{}",
            said()
        )));
    }
    let mut trace = Trace::default();
    let text = fs::read_to_string(Path::new(TRACEFS).join("trace"))
        .map_err(|error| Failure::run(format!("cannot read the kernel's trace: {error}")))?;
    for line in text.lines() {
        trace.line(line)?;
    }
    let counts = trace
        .counts(rt_app, arguments.warmup, arguments.measure)
        .ok_or_else(|| Failure::run(format!("rt-app made no task; rt-app said:\n{}", said())))?;
    emit(&table(&counts, arguments.measure))
}

fn set(file: &str, value: &str) -> Result<(), Failure> {
    let path = Path::new(TRACEFS).join(file);
    fs::write(&path, value)
        .map_err(|error| Failure::run(format!("cannot write {}: {error}", path.display())))
}

fn log() -> PathBuf {
    Path::new(FOLDER).join("said")
}

fn said() -> String {
    fs::read_to_string(log()).unwrap_or_default()
}

fn run_rt_app(limit: Duration) -> Result<(u32, ExitStatus), Failure> {
    let failed = |error: std::io::Error| Failure::run(format!("rt-app: {error}"));
    let out = File::create(log()).map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    let mut child: Child = Command::new("rt-app")
        .arg(FILE)
        .current_dir(FOLDER)
        .stdout(out)
        .stderr(err)
        .spawn()
        .map_err(failed)?;
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((child.id(), status));
        }
        if began.elapsed() > limit {
            let _ = child.kill();
            let _ = child.wait();
            let seconds = limit.as_secs();
            return Err(Failure::run(format!(
                "rt-app did not end within {seconds} s; it said:\n{}",
                said()
            )));
        }
        // perch looks rarely, because each look takes CPU time from the tasks that it measures.
        sleep(Duration::from_millis(100));
    }
}

/// The forks and wake-ups in the kernel's trace.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    /// Time, parent, child; nanoseconds.
    forks: Vec<(u64, u32, u32)>,
    /// Time, task and its name.
    wakeups: Vec<(u64, u32, String)>,
}

impl Trace {
    /// Takes a line of `trace`. Of the comments it reads only the one that counts events.
    fn line(&mut self, line: &str) -> Result<(), Failure> {
        if let Some(counts) = line.strip_prefix("# entries-in-buffer/entries-written: ") {
            let mut counts = counts
                .split(['/', ' '])
                .filter_map(|n| n.parse::<u64>().ok());
            return match (counts.next(), counts.next()) {
                (Some(kept), Some(written)) if kept == written => Ok(()),
                _ => Err(Failure::run(format!(
                    "the kernel's trace has lost events ({counts:?}): measure for a shorter time"
                ))),
            };
        }
        let events = [
            ": sched_process_fork: ",
            ": sched_wakeup: ",
            ": sched_wakeup_new: ",
        ];
        let Some((event, at)) = events
            .iter()
            .find_map(|event| line.find(event).map(|at| (*event, at)))
        else {
            return Ok(());
        };
        let words = || format!("a line of the kernel's trace that makes no sense: {line}");
        let wrong = || Failure::run(words());
        let (before, after) = (&line[..at], &line[at + event.len()..]);
        let time = before
            .rsplit(' ')
            .next()
            .and_then(microseconds)
            .ok_or_else(wrong)?
            * 1000;
        let field = |name: &str| {
            let value = after.split(name).nth(1)?;
            value.split(' ').next()?.parse::<u32>().ok()
        };
        if event == events[0] {
            let parent = field(" pid=").ok_or_else(wrong)?;
            let child = field(" child_pid=").ok_or_else(wrong)?;
            self.forks.push((time, parent, child));
        } else {
            let task = field(" pid=").ok_or_else(wrong)?;
            let name = after
                .strip_prefix("comm=")
                .and_then(|rest| rest.rsplit_once(" pid="));
            let (name, _) = name.ok_or_else(wrong)?;
            self.wakeups.push((time, task, name.to_string()));
        }
        Ok(())
    }

    /// Wake-ups of rt-app's tasks within the window, by name; rt-app's main thread is not among
    /// them. None where it made no task.
    fn counts(&self, rt_app: u32, warmup: u64, measure: u64) -> Option<BTreeMap<String, u64>> {
        let mut tasks = BTreeMap::new();
        let mut created = None;
        for &(time, parent, child) in &self.forks {
            if parent == rt_app {
                created = Some(time);
            }
            if parent == rt_app || tasks.contains_key(&parent) {
                tasks.insert(child, None);
            }
        }
        let begin = created? + warmup;
        let mut count: BTreeMap<u32, u64> = BTreeMap::new();
        let mut last = 0;
        for (time, task, name) in &self.wakeups {
            last = last.max(*time);
            let Some(known) = tasks.get_mut(task) else {
                continue;
            };
            // A task takes its own name after its first wake-up.
            *known = Some(name);
            if (begin..begin + measure).contains(time) {
                *count.entry(*task).or_default() += 1;
            }
        }
        let mut names = BTreeMap::new();
        for (task, name) in tasks {
            let name = name.cloned().unwrap_or_else(|| task.to_string());
            *names.entry(name).or_default() += count.get(&task).copied().unwrap_or(0);
        }
        Some(names)
    }
}

/// `12.345678` in microseconds.
fn microseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.')?;
    let fraction = (fraction.len() == 6).then(|| fraction.parse::<u64>().ok())??;
    Some(seconds.parse::<u64>().ok()? * 1_000_000 + fraction)
}

fn table(counts: &BTreeMap<String, u64>, measure: u64) -> String {
    let rate = |count: u64| format!("{:.1}", count as f64 * 1e9 / measure as f64);
    let mut grid = Grid::default();
    grid.column("", "task", Align::Left);
    grid.column("", "wake-ups", Align::Right);
    grid.column("", "per second", Align::Right);
    for (name, &count) in counts {
        grid.row(vec![name.clone(), count.to_string(), rate(count)]);
    }
    let all: u64 = counts.values().sum();
    grid.row(vec!["all".to_string(), all.to_string(), rate(all)]);
    grid.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "# tracer: nop\n#\n# entries-in-buffer/entries-written: 9/9   #P:4\n#\n\
          perch-90      [000] .....     1.000000: sched_process_fork: comm=perch pid=90 child_comm=perch child_pid=91\n\
         rt-app-91      [000] .....     1.100000: sched_process_fork: comm=rt-app pid=91 child_comm=rt-app child_pid=92\n\
         rt-app-91      [000] d....     1.100001: sched_wakeup_new: comm=rt-app pid=92 prio=120 target_cpu=001\n\
         rt-app-91      [000] .....     1.200000: sched_process_fork: comm=rt-app pid=91 child_comm=rt-app child_pid=93\n\
         <idle>-0       [001] d.h2.     1.299999: sched_wakeup: comm=a thread pid=92 prio=120 target_cpu=001\n\
         <idle>-0       [001] d.h2.     1.300000: sched_wakeup: comm=a thread pid=92 prio=120 target_cpu=001\n\
         <idle>-0       [001] d.h2.     1.350000: sched_wakeup: comm=rt-app pid=91 prio=120 target_cpu=001\n\
         <idle>-0       [001] d.h2.     1.799999: sched_wakeup: comm=a thread pid=92 prio=120 target_cpu=001\n\
         <idle>-0       [001] d.h2.     1.800000: sched_wakeup: comm=b-1 pid=93 prio=120 target_cpu=001\n";

    #[test]
    fn wake_ups_of_its_tasks_are_counted_within_the_window() {
        let mut trace = Trace::default();
        for line in TRACE.lines() {
            trace.line(line).unwrap();
        }
        let counts = trace.counts(91, 100_000_000, 500_000_000).unwrap();
        let found: Vec<(&str, u64)> = counts.iter().map(|(n, c)| (n.as_str(), *c)).collect();
        assert_eq!(found, [("a thread", 2), ("b-1", 0)]);
        assert!(table(&counts, 500_000_000).contains("4.0"));
        assert!(trace.counts(500, 0, 1).is_none());
        assert_eq!(seconds(100_000_000, 900_000_001), 3);
    }

    #[test]
    fn a_trace_that_lost_something_counts_nothing() {
        let mut trace = Trace::default();
        let why = trace
            .line("# entries-in-buffer/entries-written: 9/12   #P:4")
            .unwrap_err();
        assert!(why.message.contains("lost"), "{why:?}");
        let why = trace
            .line("x-1 [000] ..... now: sched_wakeup: comm=a pid=1")
            .unwrap_err();
        assert!(why.message.contains("no sense"), "{why:?}");
    }
}
