// SPDX-License-Identifier: GPL-2.0-or-later
//! The stock kernel, as far as it is modelled: run queues, wake-ups, ticks, balancing.
//!
//! [`Kernel`] owns the whole simulated world. One event at a time, in order of time and arrival;
//! nothing here reads a clock, walks a hash map or draws an unseeded number.

mod balance;
mod cache;
mod cfs;
mod channel;
mod check;
mod chores;
mod clock;
mod condition;
mod contend;
mod eevdf;
mod era;
mod fair;
mod futex;
pub mod glimpse;
mod group;
mod guest;
mod idle;
mod mutex;
mod net;
mod pelt;
mod pick;
mod queue;
mod rt;
mod run;
mod streak;
mod task;
mod wake;
mod watcher;

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;

use perch_machine::Machine;
use perch_policy::{CpuMask, GroupId, Host, Mode, Policy, TaskState, Topology};

use crate::engine::{Event, EventQueue, Random};
use crate::hardware::{Costs, Layouts, Lines, Llcs};
use crate::metrics::Metrics;
use crate::requests::Requests;
use crate::scenario::RootDomain;
use crate::workload::{TaskSpec, Workload};

use channel::Channel;
use clock::Stopwatch;
pub use era::{EraRules, NICE_WEIGHT};
use futex::Futexes;
use mutex::{Counter, Mutex};
use pelt::Clock;
use queue::{Cpu, DomainState, Fair};
use task::{Entity, Life, Phase, Task};

/// Kinds of events. Of the events of one moment the earlier arrival goes first, whatever its kind;
/// with a workload that has mutexes, the lower kind and then the lower key, see `streak.rs`.
mod kind {
    /// The running task's segment ends.
    pub const SEGMENT: u8 = 0;
    /// An interrupt reaches a CPU: woken tasks to enqueue, or a request to reschedule.
    pub const IPI: u8 = 1;
    /// A sleeping task's timer fires.
    pub const TIMER: u8 = 2;
    /// A task appears by itself.
    pub const FORK: u8 = 3;
    /// Every CPU's tick.
    pub const TICK: u8 = 4;
    /// An interrupt for a vCPU: its tick, or a packet.
    pub const VCPU: u8 = 5;
    /// A packet arrives, from another computer or there.
    pub const PACKET: u8 = 6;
}

/// The simulated world.
pub struct Kernel<'a> {
    now: u64,
    events: EventQueue,
    host: Host,
    policy: Policy,
    rules: EraRules,
    costs: Costs,
    /// What the last-level caches hold, where some process's threads share something.
    llcs: Option<Llcs>,
    /// The kernel's contended cache lines, where the machine has figures for them.
    lines: Option<Lines>,
    /// The CPU that is at work: who pays for what the kernel does.
    acting: usize,
    tick_ns: u64,
    cpus: Vec<Cpu>,
    /// The fair class's queues: the CPUs', then those of groups on CPUs.
    queues: Vec<Fair>,
    tasks: Vec<Task>,
    /// Who stands in queues: the tasks (of a real-time one only the run time counts), then groups.
    entities: Vec<Entity>,
    /// The tasks' affinities, each stored once.
    affinities: Vec<Arc<CpuMask>>,
    /// What the policy remembers of each CPU's idle task, the waker of timer interrupts.
    idle_tasks: Vec<TaskState>,
    channels: Vec<Channel>,
    mutexes: Vec<Mutex>,
    counters: Vec<Counter>,
    /// The next moments of shared timers, once they are used.
    timers: Vec<Option<u64>>,
    futexes: Futexes,
    /// Once they are used.
    conditions: Vec<condition::Condition>,
    /// CPUs with more than one task, by words of 64.
    crowded: Vec<u64>,
    /// CPUs differ in capacity.
    unequal: bool,
    /// The largest capacity of a CPU.
    largest: u32,
    /// Some queue has more than one task, or a CPU a task that does not fit it (the root domain's flag; set early, cleared lazily).
    overload: bool,
    /// The real-time class's part of the root domain, if any task is in it.
    rt: Option<Box<rt::RtDomain>>,
    /// Kind and key of the event that is handled.
    handled: (u8, u32),
    /// Every step is an event: no streaks. For tests.
    stepwise: bool,
    /// Times that any task was queued or picked.
    turns: u64,
    /// Next time the averages of idle CPUs are brought up to date.
    decay_next_ns: u64,
    /// Next time idle CPUs are balanced on their behalf.
    nohz_next_ns: u64,
    metrics: Metrics,
    /// For workloads that are judged by it.
    requests: Option<Box<Requests>>,
    stopwatch: Stopwatch,
    random: Random,
    trace: Option<&'a mut dyn Write>,
    trace_error: Option<std::io::Error>,
    watcher: Option<Box<watcher::Watcher<'a>>>,
    /// The groups of every domain and what runs in them.
    groups: balance::Groups,
    /// Working memory of the balancer.
    scratch: balance::Scratch,
    /// What the cache mechanism is told.
    caches: cache::CacheBooks,
    /// The task groups.
    task_groups: group::TaskGroups,
    /// The virtual machines.
    guests: Vec<guest::Guest>,
    /// The network, if somebody is at its other end.
    net: Option<Box<net::Net>>,
}

impl<'a> Kernel<'a> {
    /// A machine where nothing has run yet, and the tasks that will be forked on it.
    pub fn new(
        machine: &Machine,
        topology: &Arc<Topology>,
        policy: Policy,
        hz: u32,
        workload: &Workload,
        root_domain: RootDomain,
        seed: u64,
    ) -> Kernel<'a> {
        let specs = &workload.tasks;
        let n = machine.cpus.len();
        let rules = EraRules::new(policy.era(), n);
        let costs = Costs::new(machine);
        let largest = (0..n).map(|cpu| topology.capacity(cpu)).max().unwrap_or(0);
        let mut random = Random::new(seed, 0);
        let tick_ns = 1_000_000_000 / u64::from(hz);
        let mut events = EventQueue::with_capacity(n * 2 + specs.len());
        events.push(Event {
            at_ns: tick_ns,
            kind: kind::TICK,
            key: 0,
            tag: 0,
        });
        let mut host = Host::new(topology.clone());
        let processes = cache::processes(&mut host, &policy, workload, machine);
        let groups: Vec<GroupId> = workload.groups.iter().map(|_| host.add_group()).collect();
        let mut affinities: Vec<Arc<CpuMask>> = workload.masks.clone();
        let mut tasks: Vec<Task> = Vec::with_capacity(specs.len());
        for (i, spec) in specs.iter().enumerate() {
            // Tasks that share an affinity follow one another, or share the very same one.
            let known = affinities
                .iter()
                .rposition(|a| Arc::ptr_eq(a, &spec.allowed));
            let affinity = known.unwrap_or_else(|| {
                affinities.push(spec.allowed.clone());
                affinities.len() - 1
            });
            let mut task = new_task(i as u32, spec, affinity as u32, seed);
            let process = spec.space.and_then(|s| processes.get(s as usize));
            task.state.set_process(process.copied());
            task.state.set_group(spec.group.map(|g| groups[g]));
            tasks.push(task);
        }
        for (key, (task, spec)) in tasks.iter_mut().zip(specs).enumerate() {
            if let Some(start) = spec.start {
                let at_ns = start.sample(&mut task.random);
                events.push(Event {
                    at_ns,
                    kind: kind::FORK,
                    key: key as u32,
                    tag: 0,
                });
            }
        }
        let guests = guest::guests(workload, &mut events, seed);
        let layouts = Layouts {
            counters: policy.modes().overload_layout(),
            rearranged: root_domain == RootDomain::Rearranged,
        };
        let llcs = Llcs::new(machine, &workload.spaces, specs.iter().map(|t| t.space));
        Kernel {
            now: 0,
            events,
            host,
            policy,
            rules,
            lines: Lines::new(machine, layouts),
            acting: 0,
            tick_ns,
            cpus: (0..n)
                .map(|cpu| new_cpu(topology, &costs, cpu, &mut random))
                .collect(),
            costs,
            idle_tasks: (0..n)
                .map(|cpu| TaskState::new(u32::MAX - cpu as u32))
                .collect(),
            channels: (0..workload.channels).map(|_| Channel::default()).collect(),
            mutexes: (0..workload.mutexes).map(|_| Mutex::default()).collect(),
            counters: (0..workload.counters).map(|_| Counter::default()).collect(),
            timers: Vec::new(),
            futexes: Futexes::default(),
            conditions: Vec::new(),
            queues: (0..n).map(|_| Fair::default()).collect(),
            entities: tasks
                .iter()
                .map(|t| Entity::of_task(t.state.load))
                .collect(),
            tasks,
            affinities,
            crowded: vec![0; n.div_ceil(64)],
            unequal: (0..n).any(|cpu| topology.capacity(cpu) < largest),
            largest,
            overload: false,
            rt: rt::domain(specs, &policy, topology),
            handled: (0, 0),
            // Each round of a streak would use the working set again.
            stepwise: llcs.is_some(),
            llcs,
            turns: 0,
            decay_next_ns: 0,
            nohz_next_ns: 0,
            metrics: Metrics::new(),
            requests: None,
            stopwatch: Stopwatch::default(),
            random,
            trace: None,
            trace_error: None,
            watcher: None,
            groups: balance::Groups::new(topology, &rules.balance),
            scratch: balance::Scratch::default(),
            caches: cache::CacheBooks::new(&policy, topology),
            guests,
            net: net::Net::new(workload),
            task_groups: group::TaskGroups::new(&workload.groups, &groups, specs.len(), n),
        }
    }

    /// Writes a line for each decision from now on.
    pub fn trace_to(&mut self, out: &'a mut dyn Write) {
        self.trace = Some(out);
    }

    /// Makes every step an event from now on, also where many could be one.
    pub fn step_by_step(&mut self) {
        self.stepwise = true;
    }

    /// When the workload started and stopped its clock.
    pub fn stopwatch(&self) -> Stopwatch {
        self.stopwatch
    }

    /// Handles every event up to `until_ns`, or until the workload stops its clock.
    pub fn run_until(&mut self, until_ns: u64) -> std::io::Result<()> {
        while self.stopwatch.stopped_ns.is_none()
            && let Some(event) = self.events.pop_until(until_ns)
        {
            self.now = event.at_ns;
            let event = match self.mutexes.is_empty() {
                true => event,
                // Streaks leave out events: what is left must not depend on when it was pushed.
                false => self.events.exchange_for_least(event, |e| (e.kind, e.key)),
            };
            self.handle(event);
            if self.watcher.is_some() {
                self.tell();
                // Who cannot keep what is told wants no more of it.
                if let Some(error) = self.trace_error.take() {
                    return Err(error);
                }
            }
        }
        self.now = self.stopwatch.stopped_ns.unwrap_or(until_ns);
        self.trace_error.take().map_or(Ok(()), Err)
    }

    fn handle(&mut self, event: Event) {
        self.metrics.events += 1;
        self.handled = (event.kind, event.key);
        self.acting = match event.kind {
            kind::TIMER => self.host_cpu(event.key),
            kind::SEGMENT | kind::IPI => event.key as usize,
            kind::VCPU => self.cpu_of_vcpu(event.key),
            _ => 0,
        };
        match event.kind {
            kind::SEGMENT => {
                let cpu = event.key as usize;
                if self.cpus[cpu].segment_tag == event.tag {
                    self.segment_end(cpu);
                } else {
                    self.metrics.events -= 1;
                }
            }
            kind::IPI if self.finish_chore(event.key as usize) => self.metrics.events -= 1,
            kind::IPI => self.interrupt(event.key as usize),
            kind::TIMER => self.timer(event.key),
            kind::FORK => self.appear(event.key),
            kind::VCPU => self.vcpu_interrupt(event.key, event.tag),
            kind::PACKET => self.packet(event.key, event.tag),
            _ => self.tick(),
        }
    }

    /// Forgets what was counted so far: the measured part of the run begins.
    pub fn start_measuring(&mut self) {
        self.take_busy();
        self.take_vcpus_ran();
        self.metrics = Metrics::new();
        if let Some(lines) = &mut self.lines {
            lines.start_counting();
        }
    }

    /// Keeps wake-up latencies and requests of the `measure_ns` from now on.
    pub fn measure_requests(&mut self, measure_ns: u64) {
        self.requests = Some(Box::new(Requests::new(self.now, measure_ns)));
    }

    /// What was kept of these; the last sample is closed.
    pub fn take_requests(&mut self) -> Option<Requests> {
        let mut requests = self.requests.take()?;
        requests.close(self.now);
        Some(*requests)
    }

    /// What was counted since the measured part began `since_ns` ago.
    pub fn finish(&mut self, since_ns: u64) -> Metrics {
        self.metrics.busy_by_cpu = self.take_busy();
        self.metrics.busy_ns = self.metrics.busy_by_cpu.iter().sum();
        self.metrics.latencies = self.metrics.wake_latency.total();
        self.metrics.simulated_ns = self.now - since_ns;
        self.metrics.guest.vcpus_ran_ns = self.take_vcpus_ran();
        self.metrics.c2c = self.lines.as_ref().map(|lines| Box::new(lines.counted()));
        std::mem::take(&mut self.metrics)
    }

    /// Every CPU's tick. Ticks of all CPUs fall on the same moment (the kernel's default). An idle
    /// CPU has none: without a cpuidle driver, as on most servers with one idle state, the tick
    /// stops on every entry.
    fn tick(&mut self) {
        if self.rt.is_some() {
            self.limit_period();
        }
        for cpu in 0..self.cpus.len() {
            self.acting = cpu;
            if self.cpus[cpu].current.is_none() {
                self.tick_idle(cpu);
                continue;
            }
            self.metrics.events += 1;
            self.tick_current(cpu);
            if self.rules.balance.by_weight {
                self.tick_weights(cpu);
            }
            if self.caches.mode != Mode::Off {
                self.tick_cache(cpu);
            }
            let mut spent = self.costs.tick_ns();
            if self.now >= self.cpus[cpu].next_balance_ns {
                spent += self.balance_due(cpu, false);
            }
            self.take_time(cpu, spent);
            self.resched_if_needed(cpu);
        }
        self.balance_sleepers();
        self.events.push(Event {
            at_ns: self.now + self.tick_ns,
            kind: kind::TICK,
            key: 0,
            tag: 0,
        });
    }
}

fn new_task(id: u32, spec: &TaskSpec, affinity: u32, seed: u64) -> Task {
    let weight = NICE_WEIGHT[(i32::from(spec.nice) + 20) as usize];
    let mut state = TaskState::new(id + 1);
    state.load = weight;
    state.set_uclamp(spec.uclamp.0, spec.uclamp.1);
    Task {
        state,
        place: guest::place_of(spec),
        affinity,
        cpu: 0,
        life: Life::Unborn,
        group: group::of_task(spec),
        rt: rt::RtEntity::new(spec),
        program: spec.program.clone(),
        pc: 0,
        phase: Phase::Fresh,
        rounds: 0,
        drawn: 0,
        timer_ns: 0,
        random: Random::new(seed, u64::from(id) + 1),
        left_ns: 0,
        debt_ns: 0,
        footprint: spec.footprint,
        warm_cpu: u32::MAX,
        warm_fill: 0,
        woken_ns: 0,
        accounted_ns: 0,
        wants: None,
        trail: cache::Trail::default(),
    }
}

fn new_cpu(topology: &Topology, costs: &Costs, cpu: usize, random: &mut Random) -> Cpu {
    let mut prefer_sibling = false;
    let domains = topology.domain_numbers(cpu).map(|domain| {
        let view = topology.domain(domain);
        let weight = u64::from(view.span().weight());
        let local = (0..view.groups()).position(|g| view.group(g).contains(cpu));
        DomainState {
            domain: domain as u32,
            local_group: local.expect("a domain's groups cover its CPUs") as u32,
            prefer_sibling: std::mem::replace(&mut prefer_sibling, view.prefers_sibling()),
            failed: 0,
            interval_ns: weight * 1_000_000,
            // Domains were built at boot, long ago and not all at once.
            last_ns: 0,
            newidle_cost_ns: 0,
            newidle_decay_ns: 0,
            newidle_success: 512,
            newidle_calls: 0,
        }
    });
    Cpu {
        llc: topology.llc(cpu),
        current: None,
        choices: 0,
        rt: rt::RtQueue::default(),
        segment_tag: 0,
        segment_start_ns: 0,
        streak: None,
        speed_1024: costs.speed_1024(topology.capacity(cpu), 0),
        misfit: 0,
        scan_cost_ns: 0,
        pelt: Clock::new(topology.capacity(cpu)),
        weights: balance::Weights::default(),
        need_resched: false,
        wake_list: VecDeque::new(),
        ipi_pending: false,
        fill: 0,
        owed_ns: 0,
        owed_since_ns: 0,
        chores: Vec::new(),
        idle: true,
        idle_since_ns: 0,
        busy_ns: 0,
        busy_since_ns: 0,
        avg_idle_ns: 1_000_000,
        max_idle_cost_ns: 500_000,
        next_balance_ns: random.below(64_000_000),
        domains: domains.collect(),
    }
}
