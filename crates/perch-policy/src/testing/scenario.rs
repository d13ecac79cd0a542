// SPDX-License-Identifier: GPL-2.0-or-later
//! A random moment on a machine: which CPUs are idle, how loaded the others are, which task wakes
//! which, and where the wakee may run.

use std::collections::BTreeMap;

use super::machines::Shape;
use crate::{
    CpuMask, CpuState, Era, Host, Mechanism, Mode, Modes, Policy, TaskState, Verdict, Wake,
};

/// The second, the time after which wakee flips are halved.
pub const SECOND: u64 = 1_000_000_000;

/// The eras in which every mechanism may be.
const LATER: [Era; 4] = [Era::V5_5, Era::V6_5, Era::V6_15, Era::V7_2];

/// In each era every mechanism in each of its modes, alone and beside others: all in the same
/// mode, each beside other modes of the others, and the cache and steer mechanisms alone, which
/// most decisions of the others would hide; any mechanism besides these four that chooses CPUs in
/// each of its modes, alone. In 3.4 steer, which is all there is.
pub fn policies() -> Vec<Policy> {
    let mode = |i: usize| Mode::ALL[i % Mode::ALL.len()];
    let every = 0..Mode::ALL.len();
    let together = every.clone().map(|i| [i, i, i, i]);
    let mixed = every.clone().map(|i| [i, i + 1, i + 2, i + 3]);
    let gathered = every.skip(1).map(|i| [0, 0, i, 0]);
    let steered = [Mode::Posted, Mode::Perch].map(|m| [0, 0, 0, m as usize]);
    let named = [Mechanism::Cluster, Mechanism::Capacity, Mechanism::Cache, Mechanism::Steer];
    let others = (Mechanism::ALL.into_iter())
        .filter(|m| !named.contains(m) && *m != Mechanism::Overload)
        .flat_map(|m| m.modes().iter().map(move |&mode| (m, mode)))
        .filter(|(_, mode)| *mode != Mode::Off)
        .map(|(mechanism, mode)| {
            let mut modes = Modes::default();
            modes[mechanism] = mode;
            modes
        });
    let modes: Vec<Modes> = together
        .chain(mixed)
        .chain(gathered)
        .chain(steered)
        .map(|[cluster, capacity, cache, steer]| Modes {
            cluster: mode(cluster),
            capacity: mode(capacity),
            cache: mode(cache),
            steer: mode(steer),
            ..Modes::default()
        })
        .chain(others)
        .collect();
    let early = Mode::ALL.map(|steer| Modes { steer, ..Modes::default() });
    LATER
        .into_iter()
        .flat_map(|era| modes.iter().map(move |&modes| Policy::new(era, modes)))
        .chain(early.map(|modes| Policy::new(Era::V3_4, modes)))
        .collect()
}

/// The state that a host knows, CPU by CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub idle: Vec<bool>,
    pub sched_idle: Vec<bool>,
    pub cpus: Vec<Load>,
    /// `nr_idle_scan` and the idle-cores flag of an LLC, at the LLC's first CPU.
    pub scan: Vec<u32>,
    pub idle_cores: Vec<bool>,
    /// The same of the asymmetric domains that are no LLC, by their CPUs.
    pub asym: BTreeMap<Vec<usize>, (u32, bool)>,
    /// How full an LLC is, at its first CPU: utilisation and tasks, 0 until a balance has looked.
    pub full: Vec<(u32, u32)>,
    /// How busy an LLC was, and how many wakees may leave it, at its first CPU.
    pub spread: Vec<(u32, u32)>,
}

/// The wakee's process, as the cache mechanism knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Home {
    pub threads: u32,
    /// The preferred CPU, if there is one.
    pub pref: Option<usize>,
    /// First CPUs of the LLCs that it prefers in mode perch; the preferred CPU's is among them.
    pub llcs: Vec<usize>,
}

/// One CPU's load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    pub nr_running: u32,
    pub nr_delayed: u32,
    pub load: u32,
    pub runnable: u32,
    pub util: u32,
    pub capacity: u32,
    /// The CPU's capacity when its groups were added up last.
    pub capacity_in_groups: u32,
    pub curr_load: u32,
    pub idle_exit_ns: u32,
    pub idle_since_ns: u64,
}

/// A task as the policy knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    pub id: u32,
    pub last_wakee: u32,
    pub flips: u32,
    pub decay_at_ns: u64,
    pub recent: Option<usize>,
    pub percpu_kthread: bool,
    pub sched_idle: bool,
    pub load: u32,
    pub util: u32,
    pub uclamp: (u32, u32),
    pub load_shift: i32,
    pub turn_ns: u32,
}

impl Task {
    pub fn new(id: u32) -> Task {
        Task {
            id,
            last_wakee: 0,
            flips: 0,
            decay_at_ns: 0,
            recent: None,
            percpu_kthread: false,
            sched_idle: false,
            load: 1024,
            util: 512,
            uclamp: (0, 1024),
            load_shift: 0,
            turn_ns: 1_000_000,
        }
    }

    /// As the policy has it.
    pub fn to_policy(&self) -> TaskState {
        let mut task = TaskState::new(self.id);
        task.last_wakee = self.last_wakee;
        task.wakee_flips = self.flips;
        task.flip_decay_at_ns = self.decay_at_ns;
        task.set_recent_cpu(self.recent);
        task.set_percpu_kthread(self.percpu_kthread);
        task.set_sched_idle(self.sched_idle);
        task.load = self.load;
        task.util = self.util;
        task.set_uclamp(self.uclamp.0, self.uclamp.1);
        task.load_shift = self.load_shift;
        task.set_turn_ns(self.turn_ns);
        task
    }

    /// This task after the policy has seen it.
    fn after(&self, task: &TaskState) -> Task {
        Task {
            last_wakee: task.last_wakee,
            flips: task.wakee_flips,
            decay_at_ns: task.flip_decay_at_ns,
            recent: task.recent_cpu(),
            load: task.load,
            util: task.util,
            uclamp: task.uclamp(),
            load_shift: task.load_shift,
            turn_ns: task.turn_ns(),
            ..self.clone()
        }
    }
}

/// One wake-up about to be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    pub state: State,
    pub wake: Wakeup,
    pub waker: Task,
    pub wakee: Task,
    /// `None` for a kernel thread.
    pub home: Option<Home>,
    /// Where the wakee's task group has something queued; `None` for the root group.
    pub group: Option<Vec<bool>>,
    pub allowed: Vec<bool>,
}

/// [`Wake`], comparable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wakeup {
    pub now_ns: u64,
    pub this: usize,
    pub prev: usize,
    pub sync: bool,
    pub in_task: bool,
    pub current: bool,
    pub fork: bool,
    pub exec: bool,
}

impl Wakeup {
    /// As the policy has it.
    pub fn to_policy(&self) -> Wake {
        Wake {
            now_ns: self.now_ns,
            this_cpu: self.this,
            prev_cpu: self.prev,
            sync: self.sync,
            fork: self.fork,
            exec: self.exec,
            current: self.current,
            in_task: self.in_task,
        }
    }
}

impl Scenario {
    /// Every CPU idle and allowed; task 1 on `this` wakes task 2, which ran last on `prev`.
    pub fn idle(shape: &Shape, this: usize, prev: usize) -> Scenario {
        let n = shape.nr_cpus();
        let cpus = (0..n)
            .map(|c| Load {
                capacity: shape.machine.cpus[c].capacity,
                capacity_in_groups: shape.machine.cpus[c].capacity,
                ..Load::default()
            })
            .collect();
        let width = |c: usize| shape.llc[c].as_ref().map_or(1, Vec::len) as u32;
        Scenario {
            state: State {
                idle: vec![true; n],
                sched_idle: vec![false; n],
                cpus,
                scan: (0..n).map(width).collect(),
                idle_cores: vec![true; n],
                asym: asym_sets(shape).map(|set| (set.clone(), (set.len() as u32, true))).collect(),
                full: vec![(0, 0); n],
                spread: vec![(0, 0); n],
            },
            wake: Wakeup {
                now_ns: 5 * SECOND,
                this,
                prev,
                sync: false,
                in_task: true,
                current: false,
                fork: false,
                exec: false,
            },
            waker: Task::new(1),
            wakee: Task::new(2),
            home: None,
            group: None,
            allowed: vec![true; n],
        }
    }

    /// Marks a CPU busy with `tasks` nice-0 tasks.
    pub fn busy(&mut self, cpu: usize, tasks: u32) {
        self.state.idle[cpu] = false;
        let load = &mut self.state.cpus[cpu];
        load.nr_running = tasks;
        load.load = 1024 * tasks;
        load.runnable = 1024 * tasks;
        load.util = 1024.min(1024 * tasks);
        load.curr_load = 1024.min(load.load);
    }

    /// Puts the moment into a host of the same machine.
    pub fn put(&self, host: &mut Host) {
        for (cpu, load) in self.state.cpus.iter().enumerate() {
            host.set_idle(cpu, self.state.idle[cpu]);
            host.set_sched_idle(cpu, self.state.sched_idle[cpu]);
            *host.cpu_mut(cpu) = CpuState {
                idle_since_ns: load.idle_since_ns,
                nr_running: load.nr_running,
                nr_delayed: load.nr_delayed,
                load: load.load,
                runnable: load.runnable,
                util: load.util,
                capacity: load.capacity,
                curr_load: load.curr_load,
                idle_exit_ns: load.idle_exit_ns,
            };
        }
        let topology = host.topology().clone();
        for set in 0..topology.nr_sets() {
            let (mut capacity, mut most) = (0, 0);
            for cpu in topology.set_numbered(set).iter() {
                let then = self.state.cpus[cpu].capacity_in_groups;
                (capacity, most) = (capacity + then, most.max(then));
            }
            host.set_group_capacity(set, capacity, most);
        }
        for shared in 0..topology.nr_shared() {
            let cpus: Vec<usize> = topology.shared_span(shared).iter().collect();
            let (scan, idle_cores) = match self.state.asym.get(&cpus) {
                Some(&asym) => asym,
                None => (self.state.scan[cpus[0]], self.state.idle_cores[cpus[0]]),
            };
            host.set_nr_idle_scan(shared, scan);
            host.set_idle_cores(shared, idle_cores);
        }
        let first = |llc: usize| topology.llc_span(llc).iter().next().unwrap_or(0);
        for llc in 0..topology.nr_llcs() {
            host.set_llc_load(llc, self.state.full[first(llc)]);
            host.set_spread(llc, self.state.spread[first(llc)]);
        }
        if let Some(queued) = &self.group {
            let group = host.only_group();
            for (cpu, &is) in queued.iter().enumerate() {
                host.set_queued(group, cpu, is);
            }
        }
        let Some(home) = &self.home else {
            return;
        };
        let process = host.only_process();
        *host.threads(process).0 = home.threads;
        let llcs = (0..topology.nr_llcs()).filter(|&llc| home.llcs.contains(&first(llc)));
        let llcs: Vec<usize> = llcs.collect();
        host.prefer(process, home.pref, &llcs);
    }

    /// The wakee as the policy has it, once the moment is in the host.
    pub fn wakee_of(&self, host: &mut Host) -> TaskState {
        let mut wakee = self.wakee.to_policy();
        wakee.set_process(self.home.as_ref().map(|_| host.only_process()));
        wakee.set_group(self.group.as_ref().map(|_| host.only_group()));
        wakee
    }

    /// The CPUs that the wakee may use.
    pub fn affinity(&self) -> CpuMask {
        let n = self.allowed.len();
        CpuMask::of(n, (0..n).filter(|&cpu| self.allowed[cpu]))
    }

    /// Asks the policy; the scenario becomes what the policy leaves behind.
    pub fn decide(&mut self, host: &mut Host, policy: &Policy) -> Verdict {
        let wake = self.wake.to_policy();
        let (mut waker, mut wakee) = (self.waker.to_policy(), self.wakee_of(host));
        let allowed = self.affinity();
        let verdict = host.select(policy, &wake, &mut waker, &mut wakee, &allowed);
        self.waker = self.waker.after(&waker);
        self.wakee = self.wakee.after(&wakee);
        let topology = host.topology().clone();
        for shared in 0..topology.nr_shared() {
            let cpus: Vec<usize> = topology.shared_span(shared).iter().collect();
            let left = (host.nr_idle_scan(shared), host.idle_cores(shared));
            match self.state.asym.get_mut(&cpus) {
                Some(asym) => *asym = left,
                None => (self.state.scan[cpus[0]], self.state.idle_cores[cpus[0]]) = left,
            }
        }
        for llc in 0..topology.nr_llcs() {
            let first = topology.llc_span(llc).iter().next().unwrap_or(0);
            self.state.spread[first] = host.spread(llc);
        }
        for cpu in 0..self.allowed.len() {
            self.state.idle[cpu] = host.is_idle(cpu);
            self.state.sched_idle[cpu] = host.is_sched_idle(cpu);
        }
        verdict
    }
}

/// The asymmetric domains that are no LLC.
fn asym_sets(shape: &Shape) -> impl Iterator<Item = &Vec<usize>> {
    let is_llc = |set: &Vec<usize>| shape.llc[set[0]].as_ref() == Some(set);
    shape.asym.iter().flatten().filter(move |set| !is_llc(set))
}
