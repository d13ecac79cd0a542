// SPDX-License-Identifier: GPL-2.0-or-later
//! Functions that make a scenario in a line, and helpers of property tests.

use std::sync::Arc;

use perch_machine::{Machine, library};
use perch_policy::{CpuMask, Era, Mode, Modes, Policy};
use perch_sim::workload::{Op, TaskSpec, Workload};
use perch_sim::{Dist, Glimpse, Metrics, Outcome, Scenario};

pub const MS: u64 = 1_000_000;
/// Eras whose wake-ups know of clusters, capacities and last-level caches.
pub const SCANNING: [Era; 4] = [Era::V6_5, Era::V7_2, Era::V5_5, Era::V6_15];
pub const ERAS: [Era; 5] = [Era::V6_5, Era::V7_2, Era::V5_5, Era::V6_15, Era::V3_4];

/// A machine of the library.
pub fn machine(name: &str) -> Arc<Machine> {
    Arc::new(library::load(name).expect("a machine of the library"))
}

pub fn workload(machine: &Machine, spec: &str) -> Workload {
    Workload::parse(spec, machine).expect("a workload that exists")
}

/// A run of `measure_ms` after `warmup_ms`, with nothing else said: cluster off, 250 Hz, seed 1.
pub fn scenario(machine: &Arc<Machine>, era: Era, workload: Workload, ms: [u64; 2]) -> Scenario {
    Scenario {
        policy: policy(era, Mode::Off),
        warmup_ns: ms[0] * MS,
        ..Scenario::plain(machine.clone(), workload, ms[1] * MS)
    }
}

/// A run of a workload of the library.
pub fn run(machine: &Arc<Machine>, era: Era, spec: &str, ms: [u64; 2]) -> Outcome {
    let scenario = scenario(machine, era, workload(machine, spec), ms);
    scenario.run().expect("a scenario that runs")
}

/// The value of a score.
pub fn score(outcome: &Outcome, name: &str) -> f64 {
    let found = outcome.scores.iter().find(|score| score.name == name);
    found.unwrap_or_else(|| panic!("no score {name}")).value
}

/// The cluster scan in this mode; steer in 3.4, which has nothing else.
pub fn policy(era: Era, mode: Mode) -> Policy {
    let [cluster, steer] = match era {
        Era::V3_4 => [Mode::Off, mode],
        _ => [mode, Mode::Off],
    };
    let modes = Modes { cluster, steer, ..Modes::default() };
    Policy::new(era, modes)
}

/// The whole trace, and what came of the run.
pub fn traced(scenario: &Scenario) -> (String, Outcome) {
    let mut trace = Vec::new();
    let outcome = scenario.run_traced(&mut trace).expect("a scenario that runs");
    (String::from_utf8(trace).expect("text"), outcome)
}

/// The lines of a trace that are `shown`, a digest of all of them, and some figures of the run.
pub fn summary(trace: &str, outcome: &Outcome, shown: impl Fn(u64, &str) -> bool) -> String {
    let now_ns = |line: &str| line.split(' ').next().and_then(|n| n.parse().ok()).expect("a time");
    let shown = trace.lines().filter(|line| shown(now_ns(line), line));
    let lines: String = shown.map(|line| format!("{line}\n")).collect();
    let m = &outcome.metrics;
    format!(
        "{lines}{:016x}: {} decisions, counted {}, switches {}, preemptions {}, events {}, \
         busy {} ns, latency {} ns\n",
        digest(trace),
        m.wakeups,
        m.counted,
        m.context_switches,
        m.preemptions,
        m.events,
        m.busy_ns,
        m.latency_ns
    )
}

/// FNV-1a, which no release of a library changes.
pub fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Runs with the books checked every `every_ns`; a failure names the moment.
pub fn checked(scenario: &Scenario, every_ns: u64, mut look: impl FnMut(&Glimpse)) -> Metrics {
    match scenario.run_checked(every_ns, &mut look) {
        Ok(metrics) => metrics,
        Err(why) => panic!(
            "machine {}, workload {}, {} {}, seed {}: {why}",
            scenario.machine.name,
            scenario.workload.spec,
            scenario.policy.era(),
            scenario.policy.modes(),
            scenario.seed
        ),
    }
}

/// The first and the last glimpse of a run of which `every_ns` is checked: of the measured part
/// when there is a warm-up.
pub fn ends(scenario: &Scenario, every_ns: u64) -> (Glimpse, Glimpse) {
    let (mut first, mut last) = (None, None);
    checked(scenario, every_ns, |now| {
        if now.now_ns <= scenario.warmup_ns {
            first = Some(now.clone());
        }
        last = Some(now.clone());
    });
    (first.expect("a glimpse"), last.expect("a glimpse"))
}

/// The last glimpse of a run of which `every_ns` is checked, and the run's metrics.
pub fn last(scenario: &Scenario, every_ns: u64) -> (Glimpse, Metrics) {
    let mut last = None;
    let metrics = checked(scenario, every_ns, |now| last = Some(now.clone()));
    (last.expect("a glimpse"), metrics)
}

/// `n` hogs that may run on `all` and start badly: forked by a parent that may run on `at` only,
/// at a moment when every other CPU is busy with a task that soon ends.
pub fn piled_up(machine: &Machine, n: usize, at: usize, all: &[usize]) -> Vec<TaskSpec> {
    let child = |_| TaskSpec { start: None, ..task(machine, hog(), all.iter().copied()) };
    let mut tasks: Vec<TaskSpec> = (0..n).map(child).collect();
    let mut parent = vec![Op::Run(Dist::Const(5 * MS))];
    parent.extend((0..n as u32).map(Op::Fork));
    parent.push(Op::Exit);
    tasks.push(task(machine, parent, at..at + 1));
    let short = vec![Op::Run(Dist::Const(12 * MS)), Op::Exit];
    tasks.extend(all.iter().map(|&cpu| task(machine, short.clone(), cpu..cpu + 1)));
    tasks
}

/// Each task's share of the run time of all tasks between two glimpses.
pub fn shares(first: &Glimpse, last: &Glimpse) -> Vec<f64> {
    let pairs = first.tasks.iter().zip(&last.tasks);
    let ran: Vec<f64> = pairs.map(|(a, b)| (b.ran_ns - a.ran_ns) as f64).collect();
    let all: f64 = ran.iter().sum();
    ran.iter().map(|r| r / all).collect()
}

/// A task of this program, at nice 0, there from the start.
pub fn task(
    machine: &Machine,
    program: Vec<Op>,
    cpus: impl IntoIterator<Item = usize>,
) -> TaskSpec {
    // Whatever else a task may be one day, it is here as the run/sleep workload has it.
    let template = workload(machine, "runsleep:tasks=1").tasks.remove(0);
    TaskSpec {
        program: program.into(),
        allowed: Arc::new(CpuMask::of(machine.cpus.len(), cpus)),
        start: Some(Dist::Const(0)),
        ..template
    }
}

/// A workload of these tasks.
pub fn of_tasks(machine: &Machine, spec: &str, tasks: Vec<TaskSpec>, channels: usize) -> Workload {
    let template = workload(machine, "runsleep:tasks=1");
    Workload { spec: spec.to_string(), tasks, channels, ..template }
}

/// A loop that computes for ever.
pub fn hog() -> Vec<Op> {
    vec![Op::Run(Dist::Const(100_000)), Op::Count, Op::Jump(0)]
}

/// A loop that does `pause` and then wakes the task that [`wakee`] describes.
pub fn waker(pause: Op) -> Vec<Op> {
    let send = Op::Send { channel: 0, lines: 0, sync: false };
    vec![pause, send, Op::Jump(0)]
}

/// A loop that is woken by channel 0, and runs for this long.
pub fn wakee(run_ns: u64) -> Vec<Op> {
    let run = Op::Run(Dist::Const(run_ns));
    vec![Op::Receive { channel: 0 }, run, Op::Jump(0)]
}

/// A proptest configuration of `cases` cases, more when `PROPTEST_CASES` asks for more than its
/// usual 256; seeds are not shrunk, a smaller seed is no simpler.
pub fn config(cases: u32) -> proptest::test_runner::Config {
    use proptest::test_runner::{Config, FileFailurePersistence};
    let usual = Config::default();
    Config {
        cases: (cases * usual.cases).div_ceil(256).max(1),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..usual
    }
}

/// A decision of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub now_ns: u64,
    pub task: usize,
    pub waker: usize,
    pub prev: usize,
    pub cpu: usize,
    pub reason: String,
    pub examined: u64,
}

pub fn decisions(trace: &str) -> Vec<Decision> {
    let number = |line: &str, key: &str| -> u64 {
        let at = line.find(key).unwrap_or_else(|| panic!("no {key} in {line}")) + key.len();
        let end = line[at..].find(' ').map_or(line.len(), |n| at + n);
        line[at..end].parse().unwrap_or_else(|_| panic!("{key} in {line}"))
    };
    let decision = |line: &str| Decision {
        now_ns: number(line, ""),
        task: number(line, " task=") as usize,
        waker: number(line, " waker=") as usize,
        prev: number(line, " prev=") as usize,
        cpu: number(line, " cpu=") as usize,
        reason: line
            .split("reason=")
            .nth(1)
            .and_then(|r| r.split(" examined=").next())
            .unwrap_or_else(|| panic!("no reason in {line}"))
            .to_string(),
        examined: number(line, " examined="),
    };
    trace.lines().map(decision).collect()
}
