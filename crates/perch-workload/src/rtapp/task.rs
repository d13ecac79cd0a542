// SPDX-License-Identifier: GPL-2.0-or-later
//! rt-app's tasks as programs: their properties, their phases, and the events of these.

use std::collections::BTreeMap;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::CpuMask;

use super::error::{KeyError, MOST_LEVELS, MOST_OPS, MOST_THREADS, RtAppError};
use super::event::{Events, LONGEST_US, Shared};
use super::json::{Member, Value};
use super::value::{Global, members, number, text, wrong};
use crate::{Class, DEFAULT_SHARES, GroupSpec, Op, UNCLAMPED};

/// An operation whose program begins `by` operations later.
pub fn moved(op: Op, by: i32) -> Op {
    let to_new = |to: u32| to.wrapping_add_signed(by);
    match op {
        Op::Repeat { to, times } => Op::Repeat {
            to: to_new(to),
            times,
        },
        Op::Jump(to) => Op::Jump(to_new(to)),
        Op::Gate {
            condition,
            users,
            last,
        } => Op::Gate {
            condition,
            users,
            last: to_new(last),
        },
        op => op,
    }
}

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

/// The maker of tasks, which remembers what the tasks share.
pub struct Tasks<'a> {
    machine: &'a Machine,
    global: &'a Global,
    allowed: &'a Arc<CpuMask>,
    pub groups: Vec<GroupSpec>,
    pub shared: Shared,
    /// Sets of CPUs that phases change to.
    pub masks: Vec<Arc<CpuMask>>,
    threads: usize,
    /// Operations of all threads so far.
    ops: usize,
}

impl<'a> Tasks<'a> {
    pub fn new(machine: &'a Machine, global: &'a Global, allowed: &'a Arc<CpuMask>) -> Tasks<'a> {
        Tasks {
            machine,
            global,
            allowed,
            groups: Vec::new(),
            shared: Shared::default(),
            masks: Vec::new(),
            threads: 0,
            ops: 0,
        }
    }

    /// The threads of one of the file's tasks.
    pub fn task(&mut self, task: &Member) -> Result<Vec<Made>, RtAppError> {
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
        let (mut policy, mut priority, mut nodes) = (None, None, None);
        let mut events = Vec::new();
        for member in members(task)? {
            match member.key.as_str() {
                "instance" => {
                    instances = number(member, 0, 1 << 20)?;
                    if self.threads + instances as usize > MOST_THREADS {
                        return wrong(member, KeyError::TooManyTasks);
                    }
                }
                "loop" => loops = number(member, -1, i64::from(u32::MAX))?,
                "delay" => made.delay_ns = number(member, 0, LONGEST_US)? as u64 * 1000,
                "phases" => {
                    if phases.replace(member).is_some() {
                        return wrong(member, KeyError::Twice);
                    }
                }
                "policy" => policy = Some(member),
                "priority" => priority = Some(member),
                "cpus" => made.allowed = self.cpus(member)?,
                "nodes_membind" => nodes = Some(member),
                "taskgroup" => made.group = self.group(member)?,
                "util_min" => made.uclamp.0 = number(member, 0, 1024)? as u32,
                "util_max" => made.uclamp.1 = number(member, 0, 1024)? as u32,
                _ => events.push(member),
            }
        }
        if let Some(member) = nodes {
            self.nodes(member, &made.allowed)?;
        }
        if made.uclamp.0 > made.uclamp.1 {
            return wrong(task, KeyError::Clamps);
        }
        (made.class, made.nice) = self.class(task, policy, priority)?;
        if let (Some(_), Class::Fifo(_) | Class::Rr(_)) = (made.group, made.class) {
            return wrong(task, KeyError::RealTimeInGroup);
        }
        if let (Some(_), Some(event)) = (phases, events.first()) {
            return wrong(event, KeyError::BesidePhases);
        }
        let mut threads = Vec::new();
        for _ in 0..instances {
            made.program = self.program(task, &made, loops, phases, &events)?.into();
            self.threads += 1;
            // Each thread has its program, so a few lines can ask for more than any memory holds.
            self.ops += made.program.len();
            if self.ops > MOST_OPS {
                return wrong(task, KeyError::TooManyOps);
            }
            threads.push(made.clone());
        }
        Ok(threads)
    }

    fn cpus(&self, member: &Member) -> Result<Arc<CpuMask>, RtAppError> {
        let count = self.machine.cpus.len();
        let Value::Array(values) = &member.value else {
            return wrong(member, KeyError::NoCpuArray);
        };
        let mut cpus = Vec::new();
        for value in values {
            match value {
                Value::Number(cpu) if (0..count as i64).contains(cpu) => cpus.push(*cpu as usize),
                _ => {
                    let (last, machine) = (count - 1, self.machine.name.clone());
                    return wrong(member, KeyError::Cpus { last, machine });
                }
            }
        }
        if cpus.is_empty() {
            wrong(member, KeyError::NoCpus)
        } else {
            Ok(Arc::new(CpuMask::of(count, cpus)))
        }
    }

    /// Refuses a `nodes_membind` that would make a difference, because perch does not simulate
    /// where memory lies. If a task's memory may be on every node that the task may run on, the memory is
    /// where it would be without `nodes_membind`: near the CPU that first touches it.
    fn nodes(&self, member: &Member, allowed: &CpuMask) -> Result<(), RtAppError> {
        let Value::Array(values) = &member.value else {
            return wrong(member, KeyError::NoNodeArray);
        };
        let nodes = self.machine.nodes();
        let numbers = values.iter().map(|value| match value {
            Value::Number(node) if (0..nodes as i64).contains(node) => Ok(*node as usize),
            _ => {
                let (last, machine) = (nodes - 1, self.machine.name.clone());
                wrong(member, KeyError::Nodes { last, machine })
            }
        });
        let bound = numbers.collect::<Result<Vec<usize>, RtAppError>>()?;
        let outside = allowed
            .iter()
            .find(|&cpu| !bound.contains(&(self.machine.cpus[cpu].node as usize)));
        match outside {
            Some(cpu) => {
                let node = self.machine.cpus[cpu].node;
                wrong(member, KeyError::RemoteMemory { cpu, node })
            }
            None => Ok(()),
        }
    }

    /// Number of the group of a path. This function makes the group, and the groups above it, if
    /// they are not there yet.
    fn group(&mut self, member: &Member) -> Result<Option<usize>, RtAppError> {
        let mut parent = None;
        let mut name = String::new();
        let parts = || text(member).map(|path| path.split('/').filter(|part| !part.is_empty()));
        if parts()?.count() > MOST_LEVELS {
            return wrong(member, KeyError::TooDeep);
        }
        for part in parts()? {
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
    ) -> Result<(Class, i8), RtAppError> {
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
            _ => {
                let policy = name.to_string();
                wrong(at, KeyError::Policy { policy })
            }
        }
    }

    /// The CPUs that each phase binds the task to: the phase's own `cpus`, or else the task's.
    /// There are none if no phase has `cpus`.
    fn binds(&mut self, phases: Option<&Member>, made: &Made) -> Result<Vec<u32>, RtAppError> {
        let phases = phases.map_or(Ok(&[][..]), members)?;
        let mut any = None;
        let mut masks = Vec::new();
        for phase in phases {
            let cpus = members(phase)?.iter().find(|member| member.key == "cpus");
            any = any.or(cpus);
            masks.push(cpus.map_or(Ok(made.allowed.clone()), |cpus| self.cpus(cpus))?);
        }
        match (any, made.class) {
            (None, _) => return Ok(Vec::new()),
            (Some(member), Class::Fifo(_) | Class::Rr(_)) => {
                return wrong(member, KeyError::RealTimeBinds);
            }
            _ => {}
        }
        let number = |mask: Arc<CpuMask>| {
            let known = self
                .masks
                .iter()
                .position(|known| known.iter().eq(mask.iter()));
            known.unwrap_or_else(|| {
                self.masks.push(mask);
                self.masks.len() - 1
            }) as u32
        };
        Ok(masks.into_iter().map(number).collect())
    }

    fn program(
        &mut self,
        task: &Member,
        made: &Made,
        loops: i64,
        phases: Option<&Member>,
        events: &[&Member],
    ) -> Result<Vec<Op>, RtAppError> {
        let binds = self.binds(phases, made)?;
        let mut making = Events {
            global: self.global,
            shared: &mut self.shared,
            thread: self.threads,
            task: &task.key,
            held: BTreeMap::new(),
        };
        let mut round = Round::default();
        match phases {
            None => round.takes_time = making.append(events, &mut round.ops)?,
            Some(phases) => {
                for (nth, phase) in members(phases)?.iter().enumerate() {
                    round.phase(phase, binds.get(nth).copied(), &mut making)?;
                    if round.is_endless {
                        return Ok(round.ops);
                    }
                }
            }
        }
        if let Some(by) = making.held.into_values().next() {
            return wrong(task, KeyError::KeepsLock { by });
        }
        if loops != 1 && !round.takes_time {
            return wrong(task, KeyError::NoTime);
        }
        round.ops.push(Op::Count);
        repeated(task, round.ops, loops)
    }
}

/// The operations of a task in one round of its loop.
#[derive(Default)]
struct Round {
    ops: Vec<Op>,
    /// A round takes time, so that it may be repeated.
    takes_time: bool,
    /// The last phase loops for ever, so the round has no end.
    is_endless: bool,
}

impl Round {
    /// Appends a phase, on the CPUs of the set with the number `bind`.
    fn phase(
        &mut self,
        phase: &Member,
        bind: Option<u32>,
        making: &mut Events<'_>,
    ) -> Result<(), RtAppError> {
        let mut times = 1;
        let mut events = Vec::new();
        for member in members(phase)? {
            match member.key.as_str() {
                "loop" => times = number(member, -1, i64::from(u32::MAX))?,
                "cpus" => {}
                "nodes_membind" | "policy" | "priority" | "taskgroup" | "util_min" | "util_max" => {
                    return wrong(member, KeyError::ChangesByPhase);
                }
                _ => events.push(member),
            }
        }
        if times == 0 {
            return Ok(());
        }
        self.ops.extend(bind.map(|mask| Op::Bind { mask }));
        let to = self.ops.len() as u32;
        let before = making.held.clone();
        let busy = making.append(&events, &mut self.ops)?;
        if times != 1 && !busy {
            return wrong(phase, KeyError::NoTime);
        }
        if times != 1 && !making.held.keys().eq(before.keys()) {
            return wrong(phase, KeyError::LoopLocks);
        }
        self.takes_time |= busy;
        match times {
            -1 => {
                self.ops.extend([Op::Count, Op::Jump(to)]);
                self.is_endless = true;
            }
            1 => {}
            times => self.ops.push(Op::Repeat {
                to,
                times: times as u64,
            }),
        }
        Ok(())
    }
}

/// The program of a task that does a round `loops` times, or for ever if that is -1.
fn repeated(task: &Member, mut round: Vec<Op>, loops: i64) -> Result<Vec<Op>, RtAppError> {
    let nested = round.iter().any(|op| matches!(op, Op::Repeat { .. }));
    let mut program = match loops {
        -1 => {
            round.push(Op::Jump(0));
            return Ok(round);
        }
        loops if nested => {
            let times = loops as usize;
            if times.saturating_mul(round.len()) > MOST_OPS {
                return wrong(task, KeyError::TooLong { times });
            }
            let mut all = Vec::with_capacity(times * round.len());
            for _ in 0..times {
                let by = all.len() as i32;
                all.extend(round.iter().map(|op| moved(*op, by)));
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
