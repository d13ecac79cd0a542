// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings of a load that never ran, for tests and measurements: tasks in pairs wake each other
//! all over a machine, and a policy decides. It is no simulation: the durations are made up.

use std::io::Write;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{CpuMask, Host, Policy, TaskState, Topology, Wake};

use crate::capacity::GroupCapacity;
use crate::format::{Footer, Header, Writer};
use crate::moment::{Class, Cpu, CpuRow, Group, GroupRow, Row, Task, TaskRow, WakeUp};

/// The load to make up.
#[derive(Clone, Copy, Debug)]
pub struct Synthetic {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The number of wake-ups.
    pub wake_ups: u64,
    /// The mean time from one wake-up to the next, nanoseconds.
    pub every_ns: u64,
    /// The share of the CPUs that are busy on average, in percent; single CPUs become busy and idle
    /// all the time.
    pub busy_pct: u64,
    /// The real-time class decides one in so many wake-ups; 0 for none.
    pub real_time_every: u64,
}

/// SplitMix64 by Steele, Lea and Flood (2014), which is enough for a load that only has to be
/// irregular.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `n`.
    fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
}

struct Life {
    state: TaskState,
    cpu: usize,
}

/// Writes a recording of the load, whose choices are those of `policy`.
///
/// # Errors
/// Returns the errors of the output.
pub fn synthetic(
    out: impl Write,
    machine: &Machine,
    policy: Policy,
    what: Synthetic,
) -> std::io::Result<Footer> {
    let topology = Topology::new(machine);
    let (n, shared) = (topology.nr_cpus(), topology.nr_shared());
    let header = Header {
        perch: env!("CARGO_PKG_VERSION").to_string(),
        machine: machine.to_toml(),
        kernel: "synthetic".to_string(),
        era: policy.era().to_string(),
        hz: 250,
        ..Header::default()
    };
    let mut writer = Writer::new(out, header, n, shared)?;
    let mut chance = Chance(what.seed);
    let mut cpus = vec![Row::<CpuRow>::default(); n];
    for (cpu, row) in cpus.iter_mut().enumerate() {
        row[Cpu::Capacity] = topology.capacity(cpu).into();
        row[Cpu::Idle] = 1;
    }
    let mut tasks: Vec<Life> = (0..4 * n)
        .map(|i| Life {
            state: TaskState::new(1000 + i as u32),
            cpu: chance.below(n as u64) as usize,
        })
        .collect();
    let mut at_ns = 1_000_000_000;
    for i in 0..what.wake_ups {
        at_ns += what.every_ns / 2 + chance.below(what.every_ns + 1);
        for _ in 0..2 {
            let cpu = chance.below(n as u64) as usize;
            let busy = chance.below(100) < what.busy_pct;
            turn(&mut cpus[cpu], busy, at_ns, &mut chance);
        }
        let groups: Vec<_> = (0..shared).map(|g| group(&topology, g, &cpus)).collect();
        let one = chance.below(tasks.len() as u64) as usize;
        let other = match chance.below(8) {
            0 => chance.below(tasks.len() as u64) as usize,
            _ => one ^ 1,
        };
        for task in [one, other] {
            let util = tasks[task].state.util + chance.below(64) as u32;
            tasks[task].state.util = util % 900;
            tasks[task].state.load = 1024;
        }
        let (waker, wakee) = (tasks[one].state, tasks[other].state);
        let wake = Wake {
            now_ns: at_ns,
            this_cpu: tasks[one].cpu,
            prev_cpu: tasks[other].cpu,
            sync: chance.below(4) == 0,
            fork: chance.below(100) == 0,
            in_task: true,
            ..Wake::default()
        };
        let capacities = if wake.fork { old_capacities(&topology) } else { Vec::new() };
        let real_time = what.real_time_every != 0 && i % what.real_time_every == 0;
        let rows = [waker, wakee].map(|task| {
            let mut row = Row::<TaskRow>::of(&task);
            row[Task::Process] = u64::from(task.id) / 8;
            row
        });
        let chosen = if real_time {
            wake.prev_cpu
        } else {
            decide(
                &topology,
                policy,
                &wake,
                (&cpus, &groups, &capacities),
                [waker, wakee],
                &mut |left| {
                    (tasks[one].state, tasks[other].state) = left;
                },
            )
        };
        let wake_up = WakeUp {
            at_ns,
            class: if real_time { Class::RealTime } else { Class::Fair },
            flags: wake.flags(),
            this_cpu: wake.this_cpu as u32,
            prev_cpu: wake.prev_cpu as u32,
            chosen: chosen as u32,
            waker: waker.id,
            wakee: wakee.id,
            capacities,
            ..WakeUp::default()
        };
        writer.add(&wake_up, [&rows[0], &rows[1]], None, &cpus, &groups)?;
        tasks[other].cpu = chosen;
        turn(&mut cpus[chosen], true, at_ns, &mut chance);
    }
    Ok(writer.finish(Footer::default())?.0)
}

/// Returns the capacities of groups of which real-time tasks had a quarter when they were added up:
/// every other group of several CPUs.
fn old_capacities(topology: &Topology) -> Vec<GroupCapacity> {
    let sets = (0..topology.nr_sets()).map(|set| topology.set_numbered(set));
    let several = sets.filter(|set| set.weight() > 1).step_by(2);
    several
        .map(|set| {
            let mut group = GroupCapacity::of(set, |cpu| topology.capacity(cpu));
            group.sum -= group.sum / 4;
            group
        })
        .collect()
}

/// Returns the policy's answer to a moment, and leaves the changes that the policy makes in the
/// tasks.
fn decide(
    topology: &Arc<Topology>,
    policy: Policy,
    wake: &Wake,
    (cpus, groups, capacities): (&[Row<CpuRow>], &[Row<GroupRow>], &[GroupCapacity]),
    [mut waker, mut wakee]: [TaskState; 2],
    left: &mut dyn FnMut((TaskState, TaskState)),
) -> usize {
    let mut host = Host::new(topology.clone());
    cpus.iter().enumerate().for_each(|(cpu, row)| row.put(&mut host, cpu));
    groups.iter().enumerate().for_each(|(g, row)| row.put(&mut host, g));
    capacities.iter().for_each(|group| group.put(&mut host));
    let all = CpuMask::full(cpus.len());
    let verdict = host.select(&policy, wake, &mut waker, &mut wakee, &all);
    left((waker, wakee));
    verdict.cpu
}

/// Makes a CPU busy or idle.
fn turn(row: &mut Row<CpuRow>, busy: bool, at_ns: u64, chance: &mut Chance) {
    if busy {
        row[Cpu::NrRunning] = (row[Cpu::NrRunning] + 1).min(3);
        row[Cpu::CurrLoad] = 1024;
        row[Cpu::IdleExitNs] = 0;
    } else {
        row[Cpu::NrRunning] = 0;
        row[Cpu::CurrLoad] = 0;
        row[Cpu::IdleExitNs] = 1000 * (1 + chance.below(200));
        row[Cpu::IdleSinceNs] = at_ns;
    }
    row[Cpu::Idle] = u64::from(!busy);
    let toward = if busy { 1024 } else { 0 };
    for column in [Cpu::Load, Cpu::Runnable, Cpu::Util] {
        row[column] = (3 * row[column] + toward) / 4;
    }
}

/// Returns the row of a shared domain, with the budget and the idle-core hint that the kernel would
/// set.
fn group(topology: &Topology, group: usize, cpus: &[Row<CpuRow>]) -> Row<GroupRow> {
    let span = topology.shared_span(group);
    let idle = |cpu: usize| cpus[cpu][Cpu::Idle] != 0;
    let mut row = Row::default();
    row[Group::NrIdleScan] = u64::from(span.weight()) / 2;
    let core = |cpu: usize| topology.core_span(cpu).iter().all(idle);
    row[Group::IdleCores] = u64::from(topology.has_smt() && span.iter().any(core));
    row
}
