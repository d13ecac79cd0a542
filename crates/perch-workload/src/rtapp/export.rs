// SPDX-License-Identifier: GPL-2.0-or-later
//! Workloads of any kind as rt-app files, as far as rt-app has words for them. Where rt-app has no
//! word there is an error: the file leaves nothing out.

use std::collections::BTreeMap;

use perch_engine::Dist;
use perch_machine::Machine;

use super::error::{ExportError, NoWord};
use super::json::{Member, Value};
use super::real::write;
use super::task::moved;
use crate::{Class, DEFAULT_SHARES, Op, Site, Space, TaskSpec, UNCLAMPED, Workload};

/// Writes a workload as an rt-app file. With `approximate`, random times may become their mean,
/// times may be rounded to microseconds, and processes may become threads of one process.
///
/// # Errors
/// The error has the task, and what rt-app has no word for.
pub fn export(
    workload: &Workload,
    machine: &Machine,
    approximate: bool,
) -> Result<String, ExportError> {
    if !workload.guests.is_empty() || workload.network.is_some() {
        return Err(ExportError::OtherComputers);
    }
    if workload.spaces.iter().any(|s| *s != Space::default()) {
        return Err(ExportError::SharedSets);
    }
    let first = workload.tasks.first().and_then(|task| task.space);
    if !approximate && workload.tasks.iter().any(|task| task.space != first) {
        return Err(ExportError::Processes);
    }
    let mut users = BTreeMap::new();
    for task in &workload.tasks {
        let timers = task.program.iter().filter_map(|op| match op {
            Op::Timer { timer, .. } => Some(*timer),
            _ => None,
        });
        let mut own: Vec<u32> = timers.collect();
        own.sort_unstable();
        own.dedup();
        for timer in own {
            *users.entry(timer).or_insert(0usize) += 1;
        }
    }
    let mut export = Export {
        workload,
        machine,
        approximate,
        users,
        own: Vec::new(),
        barriers: BTreeMap::new(),
    };
    let mut tasks: Vec<(Value, i64)> = Vec::new();
    for (task, spec) in workload.tasks.iter().enumerate() {
        let made = export.task(spec);
        let made = made.map_err(|why| ExportError::Task { task, why })?;
        match tasks.last_mut() {
            Some((last, instances)) if *last == made => *instances += 1,
            _ => tasks.push((made, 1)),
        }
    }
    for &(named, users) in export.barriers.values() {
        if named != users {
            return Err(ExportError::Barrier { users, named });
        }
    }
    let fastest = machine.cpus.iter().position(|cpu| cpu.capacity == 1024);
    let calibration = format!("CPU{}", fastest.unwrap_or(0));
    let tasks = tasks
        .into_iter()
        .enumerate()
        .map(|(n, (value, instances))| {
            let Value::Object(mut members) = value else {
                unreachable!("a task is an object");
            };
            members.insert(0, Member::of("instance", Value::Number(instances)));
            Member::of(&format!("task{n}"), Value::Object(members))
        });
    let file = Value::Object(vec![
        Member::of("tasks", Value::Object(tasks.collect())),
        Member::of(
            "global",
            Value::Object(vec![
                Member::of("duration", Value::Number(10)),
                Member::of("calibration", Value::Text(calibration)),
                Member::of("default_policy", Value::Text("SCHED_OTHER".to_string())),
            ]),
        ),
    ]);
    let mut text = String::new();
    write(&file, 0, &mut text);
    text.push('\n');
    Ok(text)
}

struct Export<'a> {
    workload: &'a Workload,
    machine: &'a Machine,
    approximate: bool,
    /// Number of tasks that use each timer.
    users: BTreeMap<u32, usize>,
    /// Timers that only the present task uses.
    own: Vec<u32>,
    /// Number of times that tasks name each barrier, and number of tasks that it waits for.
    barriers: BTreeMap<u32, (u32, u32)>,
}

/// A phase: events that repeat `times` times, each with the operation at which it begins.
struct Phase {
    begin: u32,
    events: Vec<(u32, Member)>,
    times: i64,
}

impl Phase {
    fn at(begin: u32) -> Phase {
        Phase {
            begin,
            events: Vec::new(),
            times: 1,
        }
    }

    /// Splits off the events that begin at this operation or later, as a phase of their own.
    fn cut(&mut self, begin: u32, times: i64) -> Phase {
        let split = self.events.partition_point(|(at, _)| *at < begin);
        Phase {
            begin,
            events: self.events.split_off(split),
            times,
        }
    }
}

fn object(members: Vec<(&str, Value)>) -> Value {
    Value::Object(members.into_iter().map(|(k, v)| Member::of(k, v)).collect())
}

fn named(kind: &str, number: u32) -> Value {
    Value::Text(format!("{kind}{number}"))
}

impl Export<'_> {
    fn us(&self, does: &'static str, time: Dist) -> Result<i64, NoWord> {
        let ns = match time {
            Dist::Const(ns) => ns,
            _ if self.approximate => time.mean(),
            _ => return Err(NoWord::RandomTime { does }),
        };
        match ns % 1000 {
            0 => Ok((ns / 1000) as i64),
            _ if self.approximate => Ok(((ns + 500) / 1000) as i64),
            _ => Err(NoWord::Nanoseconds { does, ns }),
        }
    }

    fn task(&mut self, task: &TaskSpec) -> Result<Value, NoWord> {
        if task.site != Site::Host {
            return Err(NoWord::OtherComputer);
        }
        let mut members = Vec::new();
        let Some(start) = task.start else {
            return Err(NoWord::Forked);
        };
        match self.us("waits at first", start)? {
            0 => {}
            us => members.push(Member::of("delay", Value::Number(us))),
        }
        let (policy, priority) = match task.class {
            Class::Fair => ("SCHED_OTHER", i64::from(task.nice)),
            Class::Fifo(priority) => ("SCHED_FIFO", i64::from(priority)),
            Class::Rr(priority) => ("SCHED_RR", i64::from(priority)),
        };
        if (task.class, priority) != (Class::Fair, 0) {
            members.push(Member::of("policy", Value::Text(policy.to_string())));
            members.push(Member::of("priority", Value::Number(priority)));
        }
        let all = self.machine.cpus.len();
        let cpus: Vec<Value> = task
            .allowed
            .iter()
            .map(|c| Value::Number(c as i64))
            .collect();
        if cpus.len() != all {
            members.push(Member::of("cpus", Value::Array(cpus)));
        }
        let clamps = [
            ("util_min", task.uclamp.0, UNCLAMPED.0),
            ("util_max", task.uclamp.1, UNCLAMPED.1),
        ];
        for (key, value, default) in clamps {
            if value != default {
                members.push(Member::of(key, Value::Number(value.into())));
            }
        }
        if let Some(group) = task.group {
            members.push(Member::of("taskgroup", Value::Text(self.group(group)?)));
        }
        let (loops, mut phases) = match &task.program[..] {
            // The stopwatch of a load that ends is not rt-app's.
            [Op::StartClock, own @ .., Op::StopClockAfter(_), Op::Exit] => {
                let own = own.iter().map(|op| moved(*op, -1));
                let own: Vec<Op> = own.chain([Op::Exit]).collect();
                self.program(&own)?
            }
            program => self.program(program)?,
        };
        phases.retain(|phase| !phase.events.is_empty());
        if phases.is_empty() {
            return Err(NoWord::Nothing);
        }
        members.push(Member::of("loop", Value::Number(loops)));
        let phases = phases.into_iter().enumerate().map(|(n, phase)| {
            let mut members = vec![Member::of("loop", Value::Number(phase.times))];
            members.extend(phase.events.into_iter().map(|(_, event)| event));
            Member::of(&format!("phase{n}"), Value::Object(members))
        });
        members.push(Member::of("phases", Value::Object(phases.collect())));
        Ok(Value::Object(members))
    }

    fn group(&self, group: usize) -> Result<String, NoWord> {
        let group = &self.workload.groups[group];
        if group.shares != DEFAULT_SHARES {
            return Err(NoWord::Shares {
                group: group.name.clone(),
                shares: group.shares,
            });
        }
        let own = group.name.rsplit('/').next().unwrap_or(&group.name);
        let above = group
            .parent
            .map_or(Ok(String::new()), |parent| self.group(parent))?;
        Ok(format!("{above}/{own}"))
    }

    /// Number of times that the task does all of its phases, and the phases.
    fn program(&mut self, program: &[Op]) -> Result<(i64, Vec<Phase>), NoWord> {
        let mut done: Vec<Phase> = Vec::new();
        let mut phase = Phase::at(0);
        let (mut at, mut counted) = (0, None);
        self.own.clear();
        while let Some(op) = program.get(at) {
            let pc = at as u32;
            match *op {
                Op::Exit => {
                    done.push(phase);
                    return Ok((1, done));
                }
                Op::Jump(0) => {
                    done.push(phase);
                    return Ok((-1, done));
                }
                Op::Repeat { to: 0, times } if program.get(at + 1) == Some(&Op::Exit) => {
                    done.push(phase);
                    return Ok((times as i64, done));
                }
                Op::Jump(to) if to >= phase.begin && to <= pc => {
                    let round = phase.cut(to, -1);
                    done.extend([phase, round]);
                    return Ok((1, done));
                }
                Op::Repeat { to, times } if to >= phase.begin => {
                    if counted.is_some_and(|counted| counted >= to) {
                        return Err(NoWord::CountsInside);
                    }
                    let round = phase.cut(to, times as i64);
                    done.extend([phase, round]);
                    phase = Phase::at(pc + 1);
                    at += 1;
                }
                Op::Jump(_) | Op::Repeat { .. } => return Err(NoWord::Jumps),
                Op::Count => {
                    if counted.replace(pc).is_some() {
                        return Err(NoWord::CountsOften);
                    }
                    at += 1;
                }
                _ => {
                    let (event, length) = self.event(&program[at..])?;
                    phase.events.push((pc, event));
                    at += length;
                }
            }
        }
        Err(NoWord::NoEnd)
    }

    /// The event that begins at an operation, and the number of its operations.
    fn event(&mut self, program: &[Op]) -> Result<(Member, usize), NoWord> {
        match *program {
            [
                Op::Lock { .. },
                Op::Gate {
                    condition, users, ..
                },
                ..,
            ] if program.len() > 11 => {
                let seen = self.barriers.entry(condition).or_insert((0, users));
                seen.0 += 1;
                return Ok((Member::of("barrier", named("barrier", condition)), 11));
            }
            [
                Op::Enlist { condition },
                Op::Unlock { first, .. },
                Op::Await { .. },
                Op::Lock { .. },
                ..,
            ] => {
                let value = object(vec![
                    ("ref", named("condition", condition)),
                    ("mutex", named("mutex", first)),
                ]);
                return Ok((Member::of("wait", value), 4));
            }
            _ => {}
        }
        let number = |us| Value::Number(us);
        let (key, value) = match program[0] {
            Op::Run(time) => ("run", number(self.us("runs", time)?)),
            Op::Spin(time) => ("runtime", number(self.us("spins", time)?)),
            Op::Sleep(time) => ("sleep", number(self.us("sleeps", time)?)),
            Op::Yield => ("yield", Value::Text(String::new())),
            Op::Next(period) => {
                let period = self.us("keeps a period", Dist::Const(period))?;
                ("timer", timer("unique".to_string(), period, true))
            }
            Op::Timer {
                timer: of,
                period,
                absolute,
            } => {
                let period = self.us("keeps a period", Dist::Const(period))?;
                let name = match self.users.get(&of) {
                    // Every task has the same name for a timer of its own.
                    Some(1) => {
                        let known = self.own.iter().position(|own| *own == of);
                        let known = known.unwrap_or_else(|| {
                            self.own.push(of);
                            self.own.len() - 1
                        });
                        format!("unique{known}")
                    }
                    _ => format!("timer{of}"),
                };
                ("timer", timer(name, period, absolute))
            }
            Op::Lock { first, .. } => ("lock", named("mutex", first)),
            Op::Unlock { first, .. } => ("unlock", named("mutex", first)),
            Op::Signal { condition, .. } => ("signal", named("condition", condition)),
            Op::Broadcast { condition, .. } => ("broad", named("condition", condition)),
            op => {
                let words = format!("{op:?}");
                let operation = words.split([' ', '(']).next().unwrap_or_default();
                return Err(NoWord::NoEvent {
                    operation: operation.to_string(),
                });
            }
        };
        Ok((Member::of(key, value), 1))
    }
}

fn timer(name: String, period: i64, absolute: bool) -> Value {
    let mode = if absolute { "absolute" } else { "relative" };
    object(vec![
        ("ref", Value::Text(name)),
        ("period", Value::Number(period)),
        ("mode", Value::Text(mode.to_string())),
    ])
}
