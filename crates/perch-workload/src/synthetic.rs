// SPDX-License-Identifier: GPL-2.0-or-later
//! Small loads for tests and benchmarks: ping-pong through pipes, and tasks that run and sleep.

use std::sync::Arc;

use perch_engine::Dist;
use perch_policy::CpuMask;

use crate::keys::{Keys, share_of};
use crate::workload::{MAX_TASKS, Workload, one_process_each};
use crate::{Demand, Measure, Op, SpecError, TaskSpec};

/// Cache lines that a byte through a pipe makes its reader fetch from the writer's CPU, and lines of
/// its own that a side uses each time. Both were counted in Linux 7.2 (docs/calibration.md).
const PIPE_LINES: u32 = 17;
const PIPE_FOOTPRINT: u32 = 77;

/// Builds pairs of tasks that pass a byte to and fro through pipes.
pub(crate) fn pipe(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let pairs = keys.count("pairs", 1, 1, MAX_TASKS / 2)?;
    let write_ns = keys.number("write_ns", 700, 1, 1_000_000_000)?;
    let read_ns = keys.number("read_ns", 500, 1, 1_000_000_000)?;
    let allowed = keys.cpus()?;
    let counts = Demand {
        tasks: 2 * pairs,
        operations: 11 * pairs,
        channels: 2 * pairs,
        ..Demand::default()
    };
    keys.afford(&[("pairs", &pairs)], counts)?;
    let mut tasks = Vec::new();
    for pair in 0..pairs as u32 {
        let (there, back) = (2 * pair, 2 * pair + 1);
        let send = |channel| Op::Send { channel, lines: PIPE_LINES, sync: true };
        // The task's work in write(2), and then on its way into read(2).
        let [write, read] = [write_ns, read_ns].map(|ns| Op::Run(Dist::around(ns, 5)));
        let first =
            vec![write, send(there), read, Op::Receive { channel: back }, Op::Count, Op::Jump(0)];
        let second = vec![Op::Receive { channel: there }, write, send(back), read, Op::Jump(0)];
        for program in [second, first] {
            tasks.push(TaskSpec::new(
                program,
                &allowed,
                PIPE_FOOTPRINT,
                Some(Dist::Uniform(0, 1_000_000)),
            ));
        }
    }
    let spaces = one_process_each(&mut tasks);
    Ok(Workload {
        channels: 2 * pairs as usize,
        ..Workload::of(tasks, spaces, Measure::rate("round trips", "ops/s", 1.0, 1.0))
    })
}

/// Builds the tasks that any workload may have beside it: they run for ever, on these CPUs.
pub(crate) fn hogs(keys: &mut Keys<'_>, place: &Arc<CpuMask>) -> Result<Vec<TaskSpec>, SpecError> {
    let hogs = match keys.share("hogs") {
        Some(text) => share_of(place, "hogs", text, MAX_TASKS)?,
        None => keys.number("hogs", 0, 0, MAX_TASKS)?,
    };
    let nice = keys.number("hogs_nice", 0i8, -20, 19)?;
    let counts = Demand { tasks: hogs, ..Demand::default() };
    keys.afford(&[("hogs", &hogs)], counts)?;
    let program = vec![Op::Run(Dist::around(10_000_000, 5)), Op::Jump(0)].into();
    let hog = alone(program, place, nice, 1_000_000);
    Ok(vec![hog; hogs as usize])
}

/// A task that talks to no other, and starts within `start_ns`.
fn alone(program: Arc<[Op]>, allowed: &Arc<CpuMask>, nice: i8, start_ns: u64) -> TaskSpec {
    TaskSpec { nice, ..TaskSpec::new(program, allowed, 64, Some(Dist::Uniform(0, start_ns))) }
}

/// Builds tasks that run, sleep, and start again.
pub(crate) fn run_sleep(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let cpus = keys.machine.cpus.len() as u64;
    let asked = keys.text("tasks");
    let allowed = keys.cpus()?;
    let tasks = match &asked {
        None => 2 * cpus,
        Some(text) if text.ends_with('%') => share_of(&allowed, "tasks", text.clone(), MAX_TASKS)?,
        Some(text) => {
            let (number, times) = match text.strip_suffix("/cpu") {
                Some(number) => (number, cpus),
                None => (text.as_str(), 1),
            };
            let number = number.parse::<u64>().ok().and_then(|n| n.checked_mul(times));
            number
                .filter(|n| (1..=MAX_TASKS).contains(n))
                .ok_or_else(|| SpecError::Tasks { value: text.clone() })?
        }
    };
    let counts = Demand { tasks, ..Demand::default() };
    keys.afford(&[("tasks", &asked.unwrap_or("2/cpu".to_string()))], counts)?;
    let run = keys.number("run_us", 1000, 1, 1_000_000)? * 1000;
    let sleep = keys.number("sleep_us", 1200, 0, 1_000_000)? * 1000;
    let nice = keys.number("nice", 0i8, -20, 19)?;
    let work = Op::Run(Dist::around(run, 20));
    let rest = Op::Sleep(Dist::around(sleep, 20));
    let program: Arc<[Op]> = match sleep {
        0 => vec![work, Op::Count, Op::Jump(0)].into(),
        _ => vec![work, Op::Count, rest, Op::Jump(0)].into(),
    };
    let task = alone(program, &allowed, nice, run + sleep);
    let mut tasks = vec![task; tasks as usize];
    let spaces = one_process_each(&mut tasks);
    Ok(Workload::of(tasks, spaces, Measure::rate("bursts", "bursts/s", 1.0, 1.0)))
}
