// SPDX-License-Identifier: GPL-2.0-or-later
//! Another simulator of schedulers beside perch: `scxsim` of github.com/sched-ext/scx, branch
//! simulator.v3, which the user has built (docs/performance.md tells how).

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde::Serialize;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::Load;
use super::row::{Window, least};
use crate::output::Failure;

/// The number of turns that perch and the peer take.
pub const TURNS: usize = 3;
/// The largest machine on which the peer is run. It keeps every event in memory, and their number
/// grows faster than the machine: 20 ms of run/sleep took 32 MB on 256 CPUs and 1 GB on 1024, where
/// the window would take 28 GB.
pub const MOST_CPUS: usize = 256;

/// The window of simulated time from whose start to whose end the peer's round trips are counted. Its
/// list of events is long, and it is the same at any time: 28,570 wake-ups in the first millisecond,
/// 28,500 in each of the next nineteen.
const COUNTED: Window = Window {
    warmup_ns: 1_000_000,
    window_ns: 1_000_000,
};

/// The peer's program.
pub struct Peer {
    program: PathBuf,
    /// Of the workloads that it is given.
    folder: TempDir,
}

/// The peer beside perch on one load.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Beside {
    /// The peer's work per CPU second in the load's unit, the median of its turns.
    pub work_per_cpu_s: f64,
    /// The times by which perch is faster, by turn: the least, the median and the most.
    pub times: [f64; TURNS],
}

impl Beside {
    /// From the work per CPU second of both in each turn.
    pub fn of(perch: [f64; TURNS], mut peer: [f64; TURNS]) -> Beside {
        let mut times = std::array::from_fn(|turn| perch[turn] / peer[turn]);
        times.sort_by(f64::total_cmp);
        peer.sort_by(f64::total_cmp);
        Beside {
            work_per_cpu_s: peer[TURNS / 2],
            times,
        }
    }
}

impl Peer {
    pub fn new(program: &Path) -> Result<Peer, Failure> {
        let wrong = |reason: String| Failure::input(format!("--peer: {reason}"));
        if !program.is_file() {
            let path = program.display();
            return Err(wrong(format!(
                "{path} is no file; build scxsim first (docs/performance.md)"
            )));
        }
        let program = program.canonicalize();
        Ok(Peer {
            program: program.map_err(|error| wrong(error.to_string()))?,
            folder: tempfile::tempdir().map_err(|error| wrong(error.to_string()))?,
        })
    }

    /// The peer's own version of a load.
    pub fn workload(&self, load: &Load, cpus: usize) -> Result<Workload<'_>, Failure> {
        let tasks = match load.pairs {
            None => run_sleep(2 * cpus),
            Some(pairs) => ping_pong(pairs),
        };
        let workload = json!({
            "global": {"duration": 1, "default_policy": "SCHED_OTHER"},
            "tasks": tasks,
        });
        let path = self
            .folder
            .path()
            .join(format!("{}-{cpus}.json", tasks.len()));
        std::fs::write(&path, workload.to_string())
            .map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
        let mut workload = Workload {
            peer: self,
            cpus,
            path,
            work_per_ns: 1e-9,
        };
        if load.pairs.is_some() {
            let from = workload.wakeups_until(COUNTED.warmup_ns)?;
            let to = workload.wakeups_until(COUNTED.warmup_ns + COUNTED.window_ns)?;
            let wakeups = to.saturating_sub(from);
            if wakeups == 0 {
                return Err(workload.failed("its tasks wake nobody; is it branch simulator.v3?"));
            }
            // In a round trip each of the two tasks is woken once.
            workload.work_per_ns = wakeups as f64 / 2.0 / COUNTED.window_ns as f64;
        }
        Ok(workload)
    }
}

/// Tasks that run for 1 ms and sleep for 1.2 ms, by name.
fn run_sleep(tasks: usize) -> Map<String, Value> {
    let program = json!({"priority": 0, "loop": -1, "run": 1000, "sleep": 1200});
    (0..tasks)
        .map(|task| (format!("t{task}"), program.clone()))
        .collect()
}

/// Pairs of tasks that wake each other in turn, by name. perch's run for 0.7 µs before they wake the
/// other one and for 0.5 µs after it; the peer knows whole microseconds only, and a task of its that
/// runs on after it woke another one leaves its CPU in between, which would be another switch. So its
/// tasks run before they wake the other one, and sleep after it. The peer starts all tasks at time
/// 0, whatever they begin with. With equal times the two would run beside each other for ever and
/// wake each other at once; as one runs for longer, its first wake-up finds it awake and is lost.
fn ping_pong(pairs: usize) -> Map<String, Value> {
    let pair = |pair: usize| {
        let (first, second) = (format!("a{pair}"), format!("b{pair}"));
        let there = json!({"1": {"run": 1}, "2": {"resume": second}, "3": {"suspend": first}});
        let back = json!({"1": {"suspend": second}, "2": {"run": 2}, "3": {"resume": first}});
        [(first, there), (second, back)]
    };
    let task = |(name, phases)| (name, json!({"priority": 0, "loop": -1, "phases": phases}));
    (0..pairs).flat_map(pair).map(task).collect()
}

/// A load that the peer was given.
pub struct Workload<'a> {
    peer: &'a Peer,
    cpus: usize,
    path: PathBuf,
    /// Work of a simulated nanosecond: simulated seconds of run/sleep, round trips of ping-pong.
    work_per_ns: f64,
}

impl Workload<'_> {
    /// The work per CPU second in a window, measured until about so many CPU seconds are spent.
    pub fn rate(&self, window: Window, cpu_seconds: f64) -> Result<f64, Failure> {
        let simulate = |ns: u64| {
            let before_ns = children_ns();
            let mut command = self.command(window.warmup_ns + ns);
            let status = command.stderr(Stdio::null()).status();
            self.check(status.map_err(|error| self.failed(&error.to_string()))?)?;
            Ok((children_ns() - before_ns).max(1))
        };
        let cost = least(cpu_seconds, window.window_ns, simulate)?;
        Ok(self.work_per_ns * window.window_ns as f64 * 1e9 / cost.cpu_ns as f64)
    }

    /// The wake-ups in the first nanoseconds, from the list of events that the peer writes.
    fn wakeups_until(&self, end_ns: u64) -> Result<u64, Failure> {
        let mut command = self.command(end_ns);
        command.arg("--dump-trace").stderr(Stdio::piped());
        let failed = |error: std::io::Error| self.failed(&error.to_string());
        let mut child = command.spawn().map_err(failed)?;
        let events = BufReader::new(child.stderr.take().expect("stderr is a pipe"));
        let mut wakeups = 0;
        for line in events.lines() {
            wakeups += u64::from(line.map_err(failed)?.contains(" WAKE "));
        }
        self.check(child.wait().map_err(failed)?)?;
        Ok(wakeups)
    }

    /// A simulation of so many nanoseconds.
    fn command(&self, end_ns: u64) -> Command {
        let mut command = Command::new(&self.peer.program);
        command
            .args(["-s", "simple", "-c", &self.cpus.to_string()])
            .args(["--end-time", &format!("{end_ns}ns")])
            .arg(&self.path)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    fn check(&self, status: ExitStatus) -> Result<(), Failure> {
        if status.success() {
            return Ok(());
        }
        Err(self.failed(&format!(
            "it ended with {status}; run it by hand to see why"
        )))
    }

    fn failed(&self, reason: &str) -> Failure {
        let (program, cpus) = (self.peer.program.display(), self.cpus);
        Failure::run(format!("the peer {program} on {cpus} CPUs: {reason}"))
    }
}

/// User and system time of all children that have ended, in nanoseconds.
fn children_ns() -> u64 {
    // SAFETY: the structure is plain numbers, and the call fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::super::{PING_PONG, RUN_SLEEP};
    use super::*;

    #[test]
    fn a_turn_is_compared_with_its_own() {
        let beside = Beside::of([20.0, 10.0, 30.0], [10.0, 2.0, 10.0]);
        assert_eq!(beside.times, [2.0, 3.0, 5.0]);
        assert_eq!(beside.work_per_cpu_s, 10.0);
    }

    /// An executable script, as another program writes one: a file that a thread of this process
    /// still has open for writing cannot be run.
    fn script(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("scxsim");
        let text = format!("#!/bin/sh\n{text}\n");
        let status = Command::new("sh")
            .args([
                "-c",
                "printf %s \"$1\" >\"$2\" && chmod +x \"$2\"",
                "sh",
                &text,
            ])
            .arg(&path)
            .status();
        assert!(status.unwrap().success());
        path
    }

    #[test]
    fn a_peer_that_fails_has_no_rate() {
        let peer = Peer::new(Path::new("/bin/false")).unwrap();
        let workload = peer.workload(&RUN_SLEEP, 8).unwrap();
        let failure = workload.rate(RUN_SLEEP.window, 0.1).unwrap_err();
        assert!(failure.message.contains("8 CPUs"), "{}", failure.message);
        assert!(Peer::new(Path::new("/nowhere")).is_err());
    }

    /// The script lists one wake-up a microsecond of its `--end-time`, and other events.
    #[test]
    fn round_trips_are_half_the_wakeups_listed() {
        let folder = tempfile::tempdir().unwrap();
        let text = "seq ${6%000ns} | sed 's/.*/[1] cpu=0 WAKE     pid=&\\n[2] cpu=0 IDLE/' >&2";
        let peer = Peer::new(&script(folder.path(), text)).unwrap();
        let workload = peer.workload(&PING_PONG, 64).unwrap();
        assert_eq!(workload.work_per_ns, 0.0005);
    }

    #[test]
    fn a_peer_whose_tasks_wake_nobody_is_refused() {
        let peer = Peer::new(Path::new("/bin/true")).unwrap();
        let failure = peer.workload(&PING_PONG, 64).map(|_| ()).unwrap_err();
        assert!(
            failure.message.contains("wake nobody"),
            "{}",
            failure.message
        );
    }

    /// The peer's steps are sorted by their names, whatever order its JSON has.
    #[test]
    fn each_task_of_a_pair_wakes_the_other() {
        let tasks = ping_pong(2);
        assert_eq!(tasks.len(), 4);
        assert_eq!(tasks["a1"]["phases"]["2"]["resume"], "b1");
        assert_eq!(tasks["b1"]["phases"]["3"]["resume"], "a1");
        assert_eq!(tasks["b1"]["phases"]["1"]["suspend"], "b1");
    }
}
