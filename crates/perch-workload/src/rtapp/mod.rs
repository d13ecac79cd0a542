// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads of rt-app: its JSON files, as doc/tutorial.txt of rt-app 1.0 describes them. perch
//! simulates a part of what they can say. It never skips the rest: a key that perch does not
//! simulate is an error, which names the key and its line.

mod error;
mod event;
mod json;
mod task;
mod value;

use std::path::Path;
use std::sync::Arc;

use perch_engine::Dist;
use perch_file::Kind;

use crate::keys::Keys;
use crate::workload::{Workload, one_process_each};
use crate::{Basis, FutexCall, Measure, Op, SpecError, TaskSpec};
use json::{Member, Value};
use task::{Made, Tasks, moved};
use value::{Costs, Global, members, number, text, wrong};

pub use error::{JsonError, KeyError, RtAppError};

/// Cache lines of its own that a task touches every time it runs: a loop of arithmetic has few.
const FOOTPRINT: u32 = 16;

/// Work of a futex call until the task falls asleep, and until the wake-up, nanoseconds on a core
/// of some 2 GHz, and the spread of both in percent: the values of sysbench's threads test. The cache
/// lines that the other task wrote last are those of schbench.
const WAIT_NS: u64 = 700;
const WAKE_NS: u64 = 400;
const FUTEX_SPREAD: u64 = 50;
const FUTEX_LINES: u32 = 6;
/// Data that one core writes to memory in a second, MB. A guess for a server's core.
const MEM_MBS: u64 = 10_000;
/// Time of a write to /dev/null, nanoseconds: that of a system call, which looks at none of the
/// bytes. A guess.
const WRITE_NS: u64 = 200;

/// Reads `global`, which a file may leave out.
fn global(member: Option<&Member>, keys: &Keys<'_>, costs: Costs) -> Result<Global, RtAppError> {
    let cpus = &keys.machine.cpus;
    let mut global = Global {
        capacity: cpus.first().map_or(1024, |cpu| cpu.capacity),
        policy: "SCHED_OTHER".to_string(),
        buffer: 4 << 20,
        duration_ns: None,
        costs,
    };
    let Some(member) = member else {
        return Ok(global);
    };
    for member in members(member)? {
        match member.key.as_str() {
            "calibration" => {
                global.capacity = match &member.value {
                    // Nanoseconds a loop: we take them to be the fastest CPU's.
                    Value::Number(1..) => 1024,
                    // rt-app calibrates itself on CPU 0.
                    Value::Number(0) => global.capacity,
                    Value::Text(text) => {
                        let cpu = text.strip_prefix("CPU").and_then(|n| n.parse::<usize>().ok());
                        match cpu.and_then(|cpu| cpus.get(cpu)) {
                            Some(cpu) => cpu.capacity,
                            None => {
                                let last = cpus.len() - 1;
                                return wrong(member, KeyError::CalibrationCpu { last });
                            }
                        }
                    }
                    _ => return wrong(member, KeyError::Calibration),
                };
            }
            "default_policy" => global.policy = text(member)?.to_string(),
            "pi_enabled" if member.value == Value::Bool(true) => {
                return wrong(member, KeyError::PriorityInheritance);
            }
            "io_device" if text(member)? != "/dev/null" => {
                return wrong(member, KeyError::Device);
            }
            "mem_buffer_size" => global.buffer = number(member, 1, i64::from(i32::MAX))? as u64,
            "duration" => {
                let seconds = number(member, i64::from(i32::MIN), i64::from(i32::MAX))?;
                global.duration_ns = (seconds > 0).then(|| seconds as u64 * 1_000_000_000);
            }
            // The other keys say where rt-app writes what, or only older versions of rt-app read
            // them.
            "pi_enabled" | "lock_pages" | "logdir" | "log_basename" | "log_size" | "ftrace"
            | "gnuplot" | "io_device" | "cumulative_slack" | "frag" => {}
            _ => return wrong(member, KeyError::UnknownGlobal),
        }
    }
    Ok(global)
}

/// Builds the workload that a file of rt-app describes.
pub(crate) fn file(keys: &mut Keys<'_>) -> Result<Workload, SpecError> {
    let path = std::mem::take(&mut keys.file);
    let footprint = keys.number("footprint", FOOTPRINT, 0, 1_000_000)?;
    let allowed = keys.cpus()?;
    let futex = |ns, lines| FutexCall { work: Dist::around(ns, FUTEX_SPREAD), lines };
    let lines = keys.number("lines", FUTEX_LINES, 0, 1_000_000)?;
    let costs = Costs {
        wait: futex(keys.number("wait_ns", WAIT_NS, 1, 1_000_000_000)?, lines),
        wake: futex(keys.number("wake_ns", WAKE_NS, 1, 1_000_000_000)?, lines),
        mem_rate: keys.number("mem_mbs", MEM_MBS, 1, 1_000_000)?,
        write_ns: keys.number("write_ns", WRITE_NS, 1, 1_000_000_000)?,
    };
    if path.is_empty() {
        return Err(SpecError::NoRtAppFile);
    }
    let text = perch_file::text(Path::new(&path), Kind::RT_APP)?;
    let workload = build(&text, keys, footprint, costs, &allowed);
    workload.map_err(|why| SpecError::RtAppFile { path, why: Box::new(why) })
}

/// Lets the clock run from the first of the tasks until the last one has ended, if all of them end:
/// of a load that is over there is no rate. Returns whether they do.
fn made_to_end(tasks: &mut [TaskSpec]) -> bool {
    if tasks.iter().any(|task| task.program.last() != Some(&Op::Exit)) {
        return false;
    }
    let all = tasks.len() as u32;
    for task in tasks {
        let own = task.program.split_last().map_or(&[][..], |(_, own)| own);
        let begin = std::iter::once(Op::StartClock);
        let end = [Op::StopClockAfter(all), Op::Exit];
        let own = own.iter().map(|op| moved(*op, 1));
        task.program = begin.chain(own).chain(end).collect();
    }
    true
}

fn build(
    text: &str,
    keys: &Keys<'_>,
    footprint: u32,
    costs: Costs,
    allowed: &Arc<perch_policy::CpuMask>,
) -> Result<Workload, RtAppError> {
    let Value::Object(top) = json::parse(text)? else {
        return Err(RtAppError::NoObject);
    };
    let only = |key: &str| {
        let mut found = top.iter().filter(|member| member.key == key);
        let first = found.next();
        match found.next() {
            Some(second) => wrong(second, KeyError::Twice),
            None => Ok(first),
        }
    };
    // "resources" is left from older rt-apps and has no meaning.
    if let Some(member) =
        top.iter().find(|m| !["tasks", "global", "resources"].contains(&m.key.as_str()))
    {
        return wrong(member, KeyError::UnknownPart);
    }
    let global = global(only("global")?, keys, costs)?;
    let Some(member) = only("tasks")? else {
        return Err(RtAppError::NoTasks);
    };
    let mut made = Tasks::new(keys.machine, &global);
    let threads = made.all(members(member)?, allowed)?;
    let task = |thread: Made| TaskSpec {
        nice: thread.nice,
        class: thread.class,
        uclamp: thread.uclamp,
        group: thread.group,
        ..TaskSpec::new(
            thread.program,
            &thread.allowed,
            footprint,
            thread.delay_ns.map(Dist::Const),
        )
    };
    let mut tasks: Vec<TaskSpec> = threads.into_iter().map(task).collect();
    if tasks.is_empty() {
        return wrong(member, KeyError::NoTasks);
    }
    let killed_ns = global.duration_ns;
    let measure = if made_to_end(&mut tasks) {
        Measure { basis: Basis::Time { killed_ns }, ..Measure::time() }
    } else {
        Measure::rate("loops", "loops/s", 1.0, 1.0)
    };
    let mut spaces = one_process_each(&mut tasks);
    // All of them are threads of one process.
    tasks.iter_mut().for_each(|task| task.space = Some(0));
    spaces.truncate(1);
    let notes = [
        (
            "threads of SCHED_DEADLINE, which run as SCHED_FIFO 99, without budgets and deadlines",
            made.deadlines,
        ),
        ("threads with slices of their own (dl-runtime), which get the era's", made.slices),
    ];
    let notes = notes.into_iter().filter(|(_, count)| *count > 0);
    Ok(Workload {
        notes: notes.map(|(what, count)| format!("{what}: {count}")).collect(),
        channels: made.shared.channels(),
        mutexes: made.shared.mutexes(),
        groups: made.groups,
        masks: made.masks,
        ..Workload::of(tasks, spaces, measure)
    })
}
