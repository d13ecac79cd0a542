// SPDX-License-Identifier: GPL-2.0-only
//! An rt-app task: its properties, its phases, and their events, as a program.

use std::collections::BTreeMap;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::CpuMask;

use super::json::{Member, Value};
use super::{Global, members, number, text, wrong};
use crate::engine::Dist;
use crate::workload::{Class, DEFAULT_SHARES, GroupSpec, Op, UNCLAMPED};

/// Longest time of an event, an hour; microseconds.
const LONGEST_US: i64 = 3_600_000_000;
/// Operations of a program: loops in loops are written out.
const MOST_OPS: usize = 1 << 20;

/// A thread as rt-app would create it.
#[derive(Clone)]
pub struct Made {
    pub program: Arc<[Op]>,
    pub allowed: Arc<CpuMask>,
    pub nice: i8,
    pub class: Class,
    pub uclamp: (u32, u32),
    pub group: Option<usize>,
    pub delay_ns: u64,
}

/// Makes tasks, and remembers what they share.
pub struct Tasks<'a> {
    machine: &'a Machine,
    global: &'a Global,
    allowed: &'a Arc<CpuMask>,
    pub groups: Vec<GroupSpec>,
    /// Timers by name; one of a thread's own has its number before the name.
    timers: BTreeMap<(Option<usize>, String), u32>,
    threads: usize,
}

/// A key's event: rt-app lets anything but a letter follow, so that keys can be made unique.
fn event_of(key: &str) -> &str {
    key.trim_end_matches(|c: char| !c.is_ascii_alphabetic())
}

impl<'a> Tasks<'a> {
    pub fn new(machine: &'a Machine, global: &'a Global, allowed: &'a Arc<CpuMask>) -> Tasks<'a> {
        Tasks {
            machine,
            global,
            allowed,
            groups: Vec::new(),
            timers: BTreeMap::new(),
            threads: 0,
        }
    }

    /// The threads of one of the file's tasks.
    pub fn task(&mut self, task: &Member) -> Result<Vec<Made>, String> {
        let mut made = Made {
            program: Vec::new().into(),
            allowed: self.allowed.clone(),
            nice: 0,
            class: Class::Fair,
            uclamp: UNCLAMPED,
            group: None,
            delay_ns: 0,
        };
        let (mut instances, mut loops, mut phases) = (1, -1, None);
        let (mut policy, mut priority) = (None, None);
        let mut events = Vec::new();
        for member in members(task)? {
            match member.key.as_str() {
                "instance" => instances = number(member, 0, 1 << 20)?,
                "loop" => loops = number(member, -1, i64::from(u32::MAX))?,
                "delay" => made.delay_ns = number(member, 0, LONGEST_US)? as u64 * 1000,
                "phases" => {
                    if phases.replace(member).is_some() {
                        return wrong(member, "expected once");
                    }
                }
                "policy" => policy = Some(member),
                "priority" => priority = Some(member),
                "cpus" => made.allowed = self.cpus(member)?,
                "taskgroup" => made.group = self.group(member)?,
                "util_min" => made.uclamp.0 = number(member, 0, 1024)? as u32,
                "util_max" => made.uclamp.1 = number(member, 0, 1024)? as u32,
                _ => events.push(member),
            }
        }
        if made.uclamp.0 > made.uclamp.1 {
            return wrong(task, "its util_min is beyond its util_max");
        }
        (made.class, made.nice) = self.class(task, policy, priority)?;
        if let (Some(_), Class::Fifo(_) | Class::Rr(_)) = (made.group, made.class) {
            return wrong(
                task,
                "a real-time task in a taskgroup: rt-app has only SCHED_OTHER there",
            );
        }
        if let (Some(_), Some(event)) = (phases, events.first()) {
            return wrong(
                event,
                "an event beside \"phases\": expected it in one of them",
            );
        }
        let mut threads = Vec::new();
        for _ in 0..instances {
            made.program = self.program(task, loops, phases, &events)?.into();
            self.threads += 1;
            threads.push(made.clone());
        }
        Ok(threads)
    }

    fn cpus(&self, member: &Member) -> Result<Arc<CpuMask>, String> {
        let count = self.machine.cpus.len();
        let Value::Array(values) = &member.value else {
            return wrong(member, "expected an array of CPUs");
        };
        let mut cpus = Vec::new();
        for value in values {
            match value {
                Value::Number(cpu) if (0..count as i64).contains(cpu) => cpus.push(*cpu as usize),
                _ => {
                    return wrong(
                        member,
                        &format!(
                            "expected CPUs from 0 to {} of {}",
                            count - 1,
                            self.machine.name
                        ),
                    );
                }
            }
        }
        match cpus.is_empty() {
            true => wrong(member, "expected at least one CPU"),
            false => Ok(Arc::new(CpuMask::of(count, cpus))),
        }
    }

    /// The group of a path, made with those above it where they are not there yet.
    fn group(&mut self, member: &Member) -> Result<Option<usize>, String> {
        let mut parent = None;
        let mut name = String::new();
        for part in text(member)?.split('/').filter(|part| !part.is_empty()) {
            name.push('/');
            name.push_str(part);
            let known = self.groups.iter().position(|group| group.name == name);
            parent = Some(known.unwrap_or_else(|| {
                self.groups.push(GroupSpec {
                    name: name.clone(),
                    parent,
                    shares: DEFAULT_SHARES,
                });
                self.groups.len() - 1
            }));
        }
        Ok(parent)
    }

    fn class(
        &self,
        task: &Member,
        policy: Option<&Member>,
        priority: Option<&Member>,
    ) -> Result<(Class, i8), String> {
        let name = match policy {
            Some(member) => text(member)?,
            None => &self.global.policy,
        };
        let at = policy.unwrap_or(task);
        match name {
            "SCHED_OTHER" => Ok((
                Class::Fair,
                priority.map_or(Ok(0), |member| number(member, -20, 19))? as i8,
            )),
            "SCHED_FIFO" | "SCHED_RR" => {
                let priority = priority.map_or(Ok(10), |member| number(member, 1, 99))? as u8;
                Ok((
                    if name == "SCHED_FIFO" {
                        Class::Fifo(priority)
                    } else {
                        Class::Rr(priority)
                    },
                    0,
                ))
            }
            _ => wrong(
                at,
                &format!(
                    "policy {name} is not simulated: expected SCHED_OTHER, SCHED_FIFO or SCHED_RR"
                ),
            ),
        }
    }

    fn program(
        &mut self,
        task: &Member,
        loops: i64,
        phases: Option<&Member>,
        events: &[&Member],
    ) -> Result<Vec<Op>, String> {
        let mut round = Vec::new();
        let (mut takes_time, mut ends) = (false, true);
        match phases {
            None => takes_time = self.events(events, &mut round)?,
            Some(phases) => {
                for phase in members(phases)? {
                    let mut times = 1;
                    let mut events = Vec::new();
                    for member in members(phase)? {
                        match member.key.as_str() {
                            "loop" => times = number(member, -1, i64::from(u32::MAX))?,
                            "cpus" | "policy" | "priority" | "taskgroup" | "util_min"
                            | "util_max" => {
                                return wrong(
                                    member,
                                    "changing this from phase to phase is not simulated: expected it in the task",
                                );
                            }
                            _ => events.push(member),
                        }
                    }
                    if times == 0 {
                        continue;
                    }
                    let to = round.len() as u32;
                    let busy = self.events(&events, &mut round)?;
                    if times != 1 && !busy {
                        return wrong(
                            phase,
                            "a loop that takes no time: expected a run, runtime, sleep or timer in it",
                        );
                    }
                    takes_time |= busy;
                    match times {
                        -1 => {
                            round.extend([Op::Count, Op::Jump(to)]);
                            ends = false;
                            break;
                        }
                        1 => {}
                        times => round.push(Op::Repeat {
                            to,
                            times: times as u64,
                        }),
                    }
                }
            }
        }
        if !ends {
            return Ok(round);
        }
        if loops != 1 && !takes_time {
            return wrong(
                task,
                "a loop that takes no time: expected a run, runtime, sleep or timer in it",
            );
        }
        round.push(Op::Count);
        let nested = round.iter().any(|op| matches!(op, Op::Repeat { .. }));
        let mut program = match loops {
            -1 => {
                round.push(Op::Jump(0));
                return Ok(round);
            }
            loops if nested => {
                let times = loops as usize;
                if times.saturating_mul(round.len()) > MOST_OPS {
                    return wrong(
                        task,
                        &format!(
                            "{times} loops around phases that loop: expected loop = -1, or {MOST_OPS} events in all"
                        ),
                    );
                }
                let mut all = Vec::with_capacity(times * round.len());
                for _ in 0..times {
                    let by = all.len() as u32;
                    all.extend(round.iter().map(|op| match *op {
                        Op::Repeat { to, times } => Op::Repeat { to: to + by, times },
                        op => op,
                    }));
                }
                all
            }
            0 => Vec::new(),
            loops => {
                round.push(Op::Repeat {
                    to: 0,
                    times: loops as u64,
                });
                round
            }
        };
        program.push(Op::Exit);
        Ok(program)
    }

    /// Appends events. Returns whether they take time.
    fn events(&mut self, events: &[&Member], round: &mut Vec<Op>) -> Result<bool, String> {
        let mut takes_time = false;
        for member in events {
            let us = |member: &Member| number(member, 0, LONGEST_US).map(|us| us as u64 * 1000);
            let (op, ns) = match event_of(&member.key) {
                "run" => {
                    let ns = us(member)? * u64::from(self.global.capacity) / 1024;
                    (Op::Run(Dist::Const(ns)), ns)
                }
                "runtime" => {
                    let ns = us(member)?;
                    (Op::Spin(Dist::Const(ns)), ns)
                }
                "sleep" => {
                    let ns = us(member)?;
                    (Op::Sleep(Dist::Const(ns)), ns)
                }
                "timer" => self.timer(member)?,
                "yield" => (Op::Yield, 0),
                "lock" | "unlock" | "wait" | "signal" | "broad" | "sync" | "barrier"
                | "suspend" | "resume" | "fork" | "mem" | "iorun" | "membind_nodes"
                | "nodes_membind" => {
                    return wrong(
                        member,
                        "this event of rt-app is not simulated yet: expected run, runtime, sleep, timer or yield",
                    );
                }
                "dl-runtime" | "dl-period" | "dl-deadline" | "period" | "deadline" => {
                    return wrong(member, "the deadline class is not simulated");
                }
                _ => return wrong(member, "rt-app 1.0 has no such key here"),
            };
            takes_time |= ns > 0;
            round.push(op);
        }
        Ok(takes_time)
    }

    fn timer(&mut self, member: &Member) -> Result<(Op, u64), String> {
        let (mut name, mut period, mut absolute) = (None, None, false);
        for key in members(member)? {
            match key.key.as_str() {
                "ref" => name = Some(text(key)?.to_string()),
                "period" => period = Some(number(key, 0, LONGEST_US)? as u64 * 1000),
                "mode" => {
                    absolute = match text(key)? {
                        "absolute" => true,
                        "relative" => false,
                        _ => return wrong(key, "expected relative or absolute"),
                    }
                }
                _ => return wrong(key, "expected ref, period or mode"),
            }
        }
        let (Some(name), Some(period)) = (name, period) else {
            return wrong(member, "expected a ref and a period");
        };
        let of = name.starts_with("unique").then_some(self.threads);
        let next = self.timers.len() as u32;
        let timer = *self.timers.entry((of, name)).or_insert(next);
        Ok((
            Op::Timer {
                timer,
                period,
                absolute,
            },
            period,
        ))
    }
}
