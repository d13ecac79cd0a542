// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler at the start of a run.

use perch_engine::{Event, EventQueue, Random};
use perch_policy::{GroupId, Host, Mode, TaskState};

use super::contended::Contended;
use super::cpu::new_cpu;
use super::later::Later;
use super::watch::Watch;
use super::{Sched, kind};
use crate::balance::BalanceState;
use crate::cache;
use crate::class::{New, RunQueues, Task};
use crate::era::EraRules;
use crate::hardware::{Costs, Layouts, Lines, Llcs};
use crate::id::{IdVec, TaskId};
use crate::observe::Counts;
use crate::setup::Setup;

impl<'a> Sched<'a> {
    /// Returns a scheduler on which nothing has run yet, and whose tasks are still to be forked.
    /// The first tick is pending.
    pub fn new(setup: &Setup<'_>) -> Sched<'a> {
        let Setup { machine, topology, policy, tasks: specs, .. } = *setup;
        let n = machine.cpus.len();
        let rules = EraRules::new(policy.era(), n);
        let costs = Costs::new(machine);
        let random = Random::new(setup.seed, 0);
        let mut host = Host::new(topology.clone());
        // CPUs are brought up one after another, so a group's last one went idle last: where
        // nothing has run since, a fork takes that one.
        for cpu in 0..n {
            host.cpu_mut(cpu).idle_since_ns = cpu as u64;
        }
        let processes = cache::processes(&mut host, &policy, setup);
        let groups: Vec<GroupId> = setup.groups.iter().map(|_| host.add_group()).collect();
        let tasks: IdVec<TaskId, Task> = (0..)
            .map(TaskId)
            .zip(specs)
            .map(|(id, spec)| {
                let mut task = Task::new(id, spec);
                let process = spec.space.and_then(|s| processes.get(s as usize));
                task.state.set_process(process.copied());
                task.state.set_group(spec.group.map(|g| groups[g]));
                task
            })
            .collect();
        let layouts =
            Layouts { counters: policy.modes().overload_layout(), rearranged: setup.rearranged };
        let lines = Lines::new(machine, layouts);
        let rq = RunQueues::new(
            &New { setup, rules, groups: &groups, has_lines: lines.is_some() },
            tasks,
        );
        let mut events = EventQueue::with_capacity(n * 2 + specs.len());
        events.push(Event { at_ns: rq.tick_ns(), kind: kind::TICK, key: 0, tag: 0 });
        let balance = BalanceState::new(topology, &rules, &costs, random);
        Sched {
            rq,
            rules,
            events,
            host,
            notes_turns: policy.modes().behind != Mode::Off,
            policy,
            lines: Contended::new(lines),
            acting: 0,
            cpus: (0..n).map(|cpu| new_cpu(topology, &costs, cpu)).collect(),
            later: Later::default(),
            caches: cache::CacheBooks::new(&policy, topology, &costs),
            costs,
            idle_tasks: (0..n).map(|cpu| TaskState::new(u32::MAX - cpu as u32)).collect(),
            handled: (0, 0),
            llcs: Llcs::new(machine, setup.spaces, specs.iter().map(|t| t.space)),
            counts: Counts::new(),
            balance,
            watch: Watch::default(),
        }
    }
}
