// SPDX-License-Identifier: GPL-2.0-or-later
//! rt-app's tasks as programs: their properties, their phases, and the events of these.

use std::collections::BTreeMap;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::CpuMask;

use super::error::{KeyError, MOST_LEVELS, MOST_OPS, MOST_THREADS, RtAppError};
use super::event::{Events, Forks, LONGEST_US, Shared};
use super::json::{Member, Value};
use super::value::{Global, members, number, text, wrong};
use crate::{Class, DEFAULT_SHARES, GroupSpec, Op, UNCLAMPED};

/// An operation whose program begins `by` operations later.
pub fn moved(op: Op, by: i32) -> Op {
    let to_new = |to: u32| to.wrapping_add_signed(by);
    match op {
        Op::Repeat { to, times } => Op::Repeat { to: to_new(to), times },
        Op::Jump(to) => Op::Jump(to_new(to)),
        Op::Gate { condition, users, last } => Op::Gate { condition, users, last: to_new(last) },
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
    /// The time at which rt-app starts the thread; `None` if another thread forks it.
    pub delay_ns: Option<u64>,
}

/// The maker of tasks, which remembers what the tasks share.
pub struct Tasks<'a> {
    machine: &'a Machine,
    global: &'a Global,
    pub groups: Vec<GroupSpec>,
    pub shared: Shared,
    /// Sets of CPUs that phases change to.
    pub masks: Vec<Arc<CpuMask>>,
    /// Threads of the deadline class, and threads that ask for a slice of their own.
    pub deadlines: usize,
    pub slices: usize,
    forks: Forks<'a>,
    threads: usize,
    /// Operations of all threads so far.
    ops: usize,
}

impl<'a> Tasks<'a> {
    pub fn new(machine: &'a Machine, global: &'a Global) -> Tasks<'a> {
        Tasks {
            machine,
            global,
            groups: Vec::new(),
            shared: Shared::default(),
            masks: Vec::new(),
            deadlines: 0,
            slices: 0,
            forks: Forks::default(),
            threads: 0,
            ops: 0,
        }
    }

    /// The threads of the file's tasks: first those that rt-app starts, then those that are forked,
    /// in the order in which operations name them. `allowed` are the CPUs of a task that names
    /// none.
    pub fn all(
        &mut self,
        tasks: &'a [Member],
        allowed: &Arc<CpuMask>,
    ) -> Result<Vec<Made>, RtAppError> {
        self.shared.count_users(tasks)?;
        self.forks.tasks = tasks;
        for task in tasks {
            self.forks.started += instances(task)? as usize;
            if self.forks.started > MOST_THREADS {
                return wrong(task, KeyError::TooManyTasks);
            }
        }
        let begin = Made {
            program: Vec::new().into(),
            allowed: allowed.clone(),
            nice: 0,
            class: Class::Fair,
            uclamp: UNCLAMPED,
            group: None,
            delay_ns: Some(0),
        };
        let mut threads = Vec::new();
        for task in tasks {
            for _ in 0..instances(task)? {
                threads.push(self.thread(task, begin.clone())?);
            }
        }
        let mut next = 0;
        while let Some((task, forker)) = self.forks.forked.get(next).cloned() {
            threads.push(self.thread(task, forker)?);
            next += 1;
        }
        Ok(threads)
    }

    /// A thread of a task. It begins as `made` says.
    fn thread(&mut self, task: &'a Member, mut made: Made) -> Result<Made, RtAppError> {
        let (mut loops, mut phases, mut delay) = (-1, None, None);
        let mut own = BTreeMap::new();
        let mut events = Vec::new();
        for member in members(task)? {
            match member.key.as_str() {
                "instance" => {}
                "loop" => loops = number(member, i64::from(i32::MIN), i64::from(u32::MAX))?,
                "delay" => delay = Some(member),
                "phases" => {
                    if phases.replace(member).is_some() {
                        return wrong(member, KeyError::Twice);
                    }
                }
                key if PROPERTIES.contains(&key) => {
                    own.insert(key, member);
                }
                _ => events.push(member),
            }
        }
        if let (Some(_), Some(event)) = (phases, events.first()) {
            return wrong(event, KeyError::BesidePhases);
        }
        let phases = phases.map_or(Ok(&[][..]), members)?;
        if let Some(member) = delay {
            let ns = number(member, 0, LONGEST_US)? as u64 * 1000;
            match &mut made.delay_ns {
                Some(delay_ns) => *delay_ns = ns,
                None => return wrong(member, KeyError::DelayedFork),
            }
        }
        if let Some(member) = own.get("cpus") {
            made.allowed = self.cpus(member)?;
        }
        for member in of_all("taskgroup", &own, &phases[..phases.len().min(1)]) {
            made.group = self.group(member)?.unwrap_or(made.group);
        }
        let clamp = |member: &Member| number(member, 0, 1024).map(|clamp| clamp as u32);
        if let Some(member) = settled("util_min", &own, phases)? {
            made.uclamp.0 = clamp(member)?;
        }
        if let Some(member) = settled("util_max", &own, phases)? {
            made.uclamp.1 = clamp(member)?;
        }
        if made.uclamp.0 > made.uclamp.1 {
            return wrong(task, KeyError::Clamps);
        }
        let policy = settled("policy", &own, phases)?;
        let priority = settled("priority", &own, phases)?;
        let name = policy.map_or(Ok(self.global.policy.as_str()), text)?;
        (made.class, made.nice) = class(name, policy.unwrap_or(task), priority)?;
        let mut times = [None; 3];
        for (time, key) in times.iter_mut().zip(DEADLINE) {
            let of = settled(key, &own, phases)?;
            *time = of.map(|of| number(of, 0, LONGEST_US)).transpose()?;
        }
        match times {
            _ if name == DEADLINE_CLASS => self.deadlines += 1,
            [Some(1..), ..] => self.slices += 1,
            _ => {}
        }
        let changes = self.changes(phases, &made)?;
        for member in of_all("nodes_membind", &own, phases) {
            let binds = changes.iter().filter_map(|change| change.mask);
            let masks = binds.map(|mask| &self.masks[mask as usize]);
            for allowed in std::iter::once(&made.allowed).chain(masks) {
                self.nodes(member, allowed)?;
            }
        }
        if let Class::Fifo(_) | Class::Rr(_) = made.class {
            if made.group.is_some() || changes.iter().any(|change| change.group.is_some()) {
                return wrong(task, KeyError::RealTimeInGroup);
            }
        }
        made.program = self.program(task, &made, loops, phases, &changes, &events)?.into();
        self.threads += 1;
        // Each thread has its program, so a few lines can ask for more than any memory holds.
        self.ops += made.program.len();
        if self.ops > MOST_OPS {
            return wrong(task, KeyError::TooManyOps);
        }
        Ok(made)
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
        let outside =
            allowed.iter().find(|&cpu| !bound.contains(&(self.machine.cpus[cpu].node as usize)));
        match outside {
            Some(cpu) => {
                let node = self.machine.cpus[cpu].node;
                wrong(member, KeyError::RemoteMemory { cpu, node })
            }
            None => Ok(()),
        }
    }

    /// Number of the group of a path, `None` for the root group, or nothing for an empty path. This
    /// function makes the group, and the groups above it, if they are not there yet.
    fn group(&mut self, member: &Member) -> Result<Option<Option<usize>>, RtAppError> {
        let path = text(member)?;
        if path.is_empty() {
            return Ok(None);
        }
        let mut parent = None;
        let mut name = String::new();
        let parts = || path.split('/').filter(|part| !part.is_empty());
        if parts().count() > MOST_LEVELS {
            return wrong(member, KeyError::TooDeep);
        }
        for part in parts() {
            name.push('/');
            name.push_str(part);
            let known = self.groups.iter().position(|group| group.name == name);
            parent = Some(known.unwrap_or_else(|| {
                self.groups.push(GroupSpec { name: name.clone(), parent, shares: DEFAULT_SHARES });
                self.groups.len() - 1
            }));
        }
        Ok(Some(parent))
    }

    /// What each phase changes when it begins: the CPUs, its own or else the task's, if any phase
    /// has its own; and the group, if it names one and not all of them name the task's.
    fn changes(&mut self, phases: &[Member], made: &Made) -> Result<Vec<Change>, RtAppError> {
        let own = |phase, key: &str| {
            members(phase).map(|all: &[Member]| all.iter().find(|member| member.key == key))
        };
        let (mut binds, mut joins) = (false, false);
        let mut changes = Vec::with_capacity(phases.len());
        for phase in phases {
            let mut mask = made.allowed.clone();
            if let Some(cpus) = own(phase, "cpus")? {
                if let Class::Fifo(_) | Class::Rr(_) = made.class {
                    return wrong(cpus, KeyError::RealTimeBinds);
                }
                mask = self.cpus(cpus)?;
                binds = true;
            }
            let mut group = None;
            if let Some(member) = own(phase, "taskgroup")? {
                group = self.group(member)?.map(|group| group.map(|group| group as u32));
                joins |= group.is_some_and(|group| group != made.group.map(|group| group as u32));
            }
            changes.push((mask, group));
        }
        let number = |(mask, group): (Arc<CpuMask>, Option<Option<u32>>)| Change {
            mask: binds.then(|| {
                let known = |known: &Arc<CpuMask>| known.iter().eq(mask.iter());
                let known = self.masks.iter().position(known);
                known.unwrap_or_else(|| {
                    self.masks.push(mask);
                    self.masks.len() - 1
                }) as u32
            }),
            group: group.filter(|_| joins),
        };
        Ok(changes.into_iter().map(number).collect())
    }

    fn program(
        &mut self,
        task: &'a Member,
        made: &Made,
        loops: i64,
        phases: &'a [Member],
        changes: &[Change],
        events: &[&'a Member],
    ) -> Result<Vec<Op>, RtAppError> {
        // Without phases the loop is that of the only phase, which only a number above 0 ends.
        let loops = match loops {
            0 if !phases.is_empty() => return Ok(vec![Op::Exit]),
            ..=0 => -1,
            loops => loops,
        };
        let mut making = Events {
            global: self.global,
            shared: &mut self.shared,
            forks: &mut self.forks,
            thread: self.threads,
            task: &task.key,
            held: BTreeMap::new(),
            now: made.clone(),
        };
        let mut round = Round::default();
        let mut rounds = 0;
        // A round that forks is written out each time, as each time it forks another thread.
        loop {
            if phases.is_empty() {
                round.takes_time |= making.append(events, &mut round.ops)?;
            }
            for (phase, change) in phases.iter().zip(changes) {
                if let Some(mask) = change.mask {
                    making.now.allowed = self.masks[mask as usize].clone();
                }
                if let Some(group) = change.group {
                    making.now.group = group.map(|group| group as usize);
                }
                round.phase(phase, *change, &mut making)?;
                if round.is_endless {
                    return Ok(round.ops);
                }
            }
            round.ops.push(Op::Count);
            rounds += 1;
            let forks = round.ops.iter().any(|op| matches!(op, Op::Fork(_)));
            if forks && loops == -1 {
                return wrong(task, KeyError::ForksForEver);
            }
            if !forks || rounds == loops {
                break;
            }
        }
        if let Some(by) = making.held.into_values().next() {
            return wrong(task, KeyError::KeepsLock { by });
        }
        if loops != 1 && !round.takes_time {
            return wrong(task, KeyError::NoTime);
        }
        repeated(task, round.ops, loops / rounds)
    }
}

/// Properties of a task or a phase.
const PROPERTIES: [&str; 12] = [
    "policy",
    "priority",
    "cpus",
    "nodes_membind",
    "taskgroup",
    "util_min",
    "util_max",
    DEADLINE[0],
    DEADLINE[1],
    DEADLINE[2],
    // Older names of the last two.
    "period",
    "deadline",
];
const DEADLINE_CLASS: &str = "SCHED_DEADLINE";
/// Those of the deadline class, of which the first is also a fair task's slice.
const DEADLINE: [&str; 3] = ["dl-runtime", "dl-period", "dl-deadline"];

pub fn instances(task: &Member) -> Result<i64, RtAppError> {
    let instances = members(task)?.iter().find(|m| m.key == "instance");
    instances.map_or(Ok(1), |member| number(member, 0, 1 << 20))
}

/// The class and the nice level of a policy's name, which `at` sets.
fn class(name: &str, at: &Member, priority: Option<&Member>) -> Result<(Class, i8), RtAppError> {
    let real_time = || priority.map_or(Ok(10), |member| number(member, 1, 99));
    Ok(match name {
        "SCHED_OTHER" => {
            let nice = priority.map_or(Ok(0), |member| number(member, -20, 19))?;
            (Class::Fair, nice as i8)
        }
        "SCHED_FIFO" => (Class::Fifo(real_time()? as u8), 0),
        "SCHED_RR" => (Class::Rr(real_time()? as u8), 0),
        // The next best: above all tasks of other classes.
        DEADLINE_CLASS => (Class::Fifo(99), 0),
        _ => {
            let policy = name.to_string();
            return wrong(at, KeyError::Policy { policy });
        }
    })
}

/// The members that set a property: of a task, and of its phases.
fn of_all<'m>(
    key: &str,
    own: &BTreeMap<&str, &'m Member>,
    phases: &'m [Member],
) -> impl Iterator<Item = &'m Member> {
    let of_phases = phases.iter().filter_map(move |phase| match &phase.value {
        Value::Object(all) => all.iter().find(|member| member.key == key),
        _ => None,
    });
    own.get(key).copied().into_iter().chain(of_phases)
}

/// The member that sets a property which the simulator keeps for the whole task: the first phase's
/// or else the task's. A later phase may only repeat it.
fn settled<'m>(
    key: &str,
    own: &BTreeMap<&str, &'m Member>,
    phases: &'m [Member],
) -> Result<Option<&'m Member>, RtAppError> {
    let mut of = own.get(key).copied();
    for (nth, phase) in phases.iter().enumerate() {
        match members(phase)?.iter().find(|member| member.key == key) {
            Some(member) if nth == 0 => of = Some(member),
            Some(member) if of.is_none_or(|of| of.value != member.value) => {
                return wrong(member, KeyError::ChangesByPhase);
            }
            _ => {}
        }
    }
    Ok(of)
}

/// What a phase changes when it begins.
#[derive(Clone, Copy)]
struct Change {
    /// Number of the set of CPUs that the task is bound to.
    mask: Option<u32>,
    /// The group that the task moves to.
    group: Option<Option<u32>>,
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
    /// Appends a phase.
    fn phase<'a>(
        &mut self,
        phase: &'a Member,
        change: Change,
        making: &mut Events<'_, 'a>,
    ) -> Result<(), RtAppError> {
        let mut times = 1;
        let mut events = Vec::new();
        for member in members(phase)? {
            match member.key.as_str() {
                "loop" => times = number(member, i64::from(i32::MIN), i64::from(u32::MAX))?,
                key if PROPERTIES.contains(&key) => {}
                _ => events.push(member),
            }
        }
        self.ops.extend(change.mask.map(|mask| Op::Bind { mask }));
        self.ops.extend(change.group.map(|group| Op::Join { group }));
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
        let forks = self.ops[to as usize..].iter().any(|op| matches!(op, Op::Fork(_)));
        match times {
            ..=0 if forks => return wrong(phase, KeyError::ForksForEver),
            // rt-app compares the number with that of the rounds only after a round.
            ..=0 => {
                self.ops.extend([Op::Count, Op::Jump(to)]);
                self.is_endless = true;
            }
            1 => {}
            times if forks => {
                for _ in 1..times {
                    making.append(&events, &mut self.ops)?;
                }
            }
            times => self.ops.push(Op::Repeat { to, times: times as u64 }),
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
        // What forks is written out already.
        1 => round,
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
        loops => {
            round.push(Op::Repeat { to: 0, times: loops as u64 });
            round
        }
    };
    program.push(Op::Exit);
    Ok(program)
}
