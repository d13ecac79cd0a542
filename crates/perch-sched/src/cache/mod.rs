// SPDX-License-Identifier: GPL-2.0-or-later
//! What the kernel tells the cache mechanism (docs/mechanisms/cache.md#occupancy): which process runs where, and how
//! full the last-level caches are. With the mechanism off none of it is done: callers ask for the
//! mode first, and what follows is kept out of their way (`#[cold]`), as it would cost every run
//! some per cent otherwise.

mod check;

use perch_policy::{Host, Mode, Policy, ProcessId, Topology};

use crate::core::{Sched, Setup};

/// Two changes of LLC within this time, there and back, are a bounce. From issue 5; the time after
/// which a process without a scan loses its preference.
const BOUNCE_NS: u64 = 50_000_000;

/// What is kept for the cache mechanism.
#[derive(Debug)]
pub(crate) struct CacheBooks {
    mode: Mode,
    /// CPUs that a look at all LLCs takes in.
    looked_at: u32,
    /// By domain: the LLCs that are its groups, in their order. Empty but for the domains just
    /// above the LLCs, and in modes that have no use for statistics.
    groups_of: Vec<Vec<u32>>,
    /// By LLC: when its statistics were written last.
    noted_ns: Vec<Option<u64>>,
    /// Mode perch: the utilisation of each CPU that its LLC's sum holds.
    util: Vec<u32>,
    /// Mode upstream: tasks queued on a CPU that prefer an LLC, by CPU and then LLC.
    wanting: Vec<u32>,
    /// Mode upstream: tasks queued outside of the LLC that they prefer, by that LLC.
    away: Vec<u32>,
}

impl CacheBooks {
    pub fn new(policy: &Policy, topology: &Topology) -> CacheBooks {
        let mode = mode_on(policy, topology);
        let (cpus, llcs) = (topology.nr_cpus(), topology.nr_llcs());
        let notes = matches!(mode, Mode::Posted | Mode::Upstream);
        let only = |is: bool, n: usize| if is { n } else { 0 };
        CacheBooks {
            mode,
            looked_at: (0..llcs).map(|l| topology.llc_span(l).weight()).sum(),
            groups_of: (0..topology.nr_domains())
                .map(|number| match notes {
                    true => llcs_of(topology, number),
                    false => Vec::new(),
                })
                .collect(),
            noted_ns: vec![None; llcs],
            util: vec![0; only(mode == Mode::Perch, cpus)],
            wanting: vec![0; only(mode == Mode::Upstream, cpus * llcs)],
            away: vec![0; only(mode == Mode::Upstream, llcs)],
        }
    }

    /// Whether the mechanism is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// Whether tasks count from the choice of their CPU on (mode perch).
    #[inline]
    pub fn reserves(&self) -> bool {
        self.mode == Mode::Perch
    }

    /// The mechanism's mode on this machine.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The LLCs that are a domain's groups, if statistics are written of them.
    pub fn groups_of(&self, domain: usize) -> &[u32] {
        &self.groups_of[domain]
    }

    /// Statistics of an LLC were written at `now_ns`.
    pub fn note(&mut self, llc: usize, now_ns: u64) {
        self.noted_ns[llc] = Some(now_ns);
    }

    /// When statistics of an LLC were written last.
    pub fn noted_ns(&self, llc: usize) -> Option<u64> {
        self.noted_ns[llc]
    }

    /// Tasks queued on `cpu` that prefer `llc`.
    pub fn wanting(&self, cpu: usize, llc: u32) -> u32 {
        self.wanting[cpu * self.away.len() + llc as usize]
    }

    /// Tasks queued anywhere else that prefer `llc`.
    pub fn away(&self, llc: u32) -> u32 {
        self.away[llc as usize]
    }

    /// A task that prefers an LLC is on a CPU's queue (1) or no more (-1).
    fn count(&mut self, cpu: usize, home: Option<usize>, wants: Option<u32>, by: i32) {
        let Some(llc) = wants else {
            return;
        };
        let at = cpu * self.away.len() + llc as usize;
        self.wanting[at] = self.wanting[at].wrapping_add_signed(by);
        if home != Some(llc as usize) {
            let away = &mut self.away[llc as usize];
            *away = away.wrapping_add_signed(by);
        }
    }
}

/// The mechanism's mode on this machine: where there is nothing to choose between it is off, as
/// 7.2's static key has it (P3).
fn mode_on(policy: &Policy, topology: &Topology) -> Mode {
    match topology.nr_llcs() {
        0 | 1 => Mode::Off,
        _ => policy.modes().cache,
    }
}

/// The LLCs that are a domain's groups: all of them are or none is.
fn llcs_of(topology: &Topology, number: usize) -> Vec<u32> {
    let domain = topology.domain(number);
    let groups = (0..domain.groups()).map(|g| {
        let group = domain.group(g);
        let llc = topology.llc(group.iter().next()?)?;
        let same = topology.llc_span(llc).number() == group.number();
        (same && !domain.shares_llc()).then_some(llc as u32)
    });
    groups.collect::<Option<_>>().unwrap_or_default()
}

/// The processes of the address spaces that are set up, if the mechanism is on.
pub(crate) fn processes(host: &mut Host, policy: &Policy, setup: &Setup<'_>) -> Vec<ProcessId> {
    if mode_on(policy, host.topology()) == Mode::Off {
        return Vec::new();
    }
    let machine = setup.machine;
    let processes = (0u32..).zip(setup.spaces).map(|(number, space)| {
        let process = host.add_process();
        // 7.2 learns a footprint from the faults of NUMA balancing, which a machine of one node
        // does not have; the model has the faults' result and not the faults.
        if machine.nodes() > 1 {
            let own = setup.tasks.iter().filter(|t| t.space == Some(number));
            let lines: u64 = own.map(|t| u64::from(t.footprint)).sum();
            let kib = u64::from(space.kib) + lines * u64::from(machine.hardware.line_bytes) / 1024;
            host.set_footprint(process, kib.min(u32::MAX.into()) as u32);
        }
        process
    });
    processes.collect()
}

/// What is remembered of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheTask {
    /// What of its run time its process has been accounted.
    accounted_ns: u64,
    /// Mode upstream: the LLC that its process preferred when it ran last.
    wants: Option<u32>,
    /// The LLCs on which it ran last.
    trail: Trail,
}

impl CacheTask {
    /// Mode upstream: the LLC that the task's process preferred when the task ran last.
    #[inline]
    pub fn wants(&self) -> Option<u32> {
        self.wants
    }

    /// The LLC on which the task ran last, `None` before the first time.
    #[inline]
    pub fn ran_in(&self) -> Option<usize> {
        self.trail.now
    }
}

/// Where a task ran lately, by LLC.
#[derive(Clone, Copy, Debug, Default)]
struct Trail {
    /// The LLC on which it ran last, `None` before the first time.
    now: Option<usize>,
    /// The one before that.
    before: Option<usize>,
    /// When it came from there.
    since_ns: u64,
}

impl Sched<'_> {
    /// A task starts to run in another LLC than before: counts that, and who soon comes back.
    #[cold]
    pub(crate) fn changes_llc(&mut self, cpu: usize, task: u32) {
        let here = self.cpus[cpu].llc;
        let trail = &mut self.tasks[task as usize].cache.trail;
        let first = trail.now.is_none();
        let back = here.is_some() && trail.before == here;
        if !first && here.is_some() {
            self.counts.llc_changes += 1;
            self.counts.bounces += u64::from(back && self.now - trail.since_ns <= BOUNCE_NS);
        }
        *trail = Trail {
            now: here,
            before: trail.now,
            since_ns: self.now,
        };
    }

    /// Accounts what a running task has run since that was done last: at ticks, and when it gives
    /// the CPU up.
    fn account_slice(&mut self, cpu: usize, task: u32) {
        let Some(process) = self.tasks[task as usize].state.process() else {
            return;
        };
        let ran_ns = self.run_time(task).sum_ns;
        let t = &mut self.tasks[task as usize];
        let delta_ns = ran_ns - std::mem::replace(&mut t.cache.accounted_ns, ran_ns);
        if delta_ns > 0 {
            self.host.account(process, cpu, self.now, delta_ns);
        }
        if self.caches.mode == Mode::Upstream && self.is_balanced(task) {
            self.follow_preference(cpu, task, process);
        }
    }

    /// Mode upstream: a running task takes over what its process prefers, and only then.
    fn follow_preference(&mut self, cpu: usize, task: u32, process: ProcessId) {
        let topology = self.host.topology();
        let preferred = self.host.preferred_cpu(process);
        let wants = preferred.and_then(|c| topology.llc(c)).map(|l| l as u32);
        let t = &mut self.tasks[task as usize];
        if t.cache.wants != wants {
            let home = self.cpus[cpu].llc;
            self.caches.count(cpu, home, t.cache.wants, -1);
            self.caches.count(cpu, home, wants, 1);
            t.cache.wants = wants;
        }
    }

    /// A task has come to a CPU's queue (1) or left it (-1).
    #[cold]
    pub(crate) fn count_wish(&mut self, cpu: usize, task: u32, by: i32) {
        if self.caches.mode != Mode::Upstream {
            return;
        }
        let (home, wants) = (self.cpus[cpu].llc, self.tasks[task as usize].cache.wants);
        self.caches.count(cpu, home, wants, by);
    }

    /// At a tick: looks at all LLCs for the running task's process, if nobody has in this epoch.
    /// The task pays, in every mode: the kernel does it when that returns to user mode.
    #[cold]
    pub(crate) fn tick_cache(&mut self, cpu: usize) {
        let Some(task) = self.cpus[cpu].current else {
            return;
        };
        let Some(process) = self.tasks[task as usize].state.process() else {
            return;
        };
        self.account_slice(cpu, task);
        if !self.host.due(&self.policy, process, cpu, self.now) {
            return;
        }
        self.host.scan(&self.policy, process, cpu, self.now);
        // Of a process with one thread there is nothing to look at.
        if self.host.nr_threads(process).0 > 1 {
            self.stop_segment(cpu);
            let cost = self.costs.examine_ns(self.caches.looked_at);
            self.charge_kernel(cpu, task, cost);
            self.begin_segment(cpu);
        }
    }

    /// A thread is forked (1) or ends (-1).
    pub(crate) fn count_thread(&mut self, task: u32, by: i32) {
        if let Some(process) = self.tasks[task as usize].state.process() {
            let threads = self.host.threads(process).0;
            *threads = threads.wrapping_add_signed(by);
        }
    }

    /// A thread gets a CPU.
    #[cold]
    pub(crate) fn starts_running(&mut self, task: u32) {
        if let Some(process) = self.tasks[task as usize].state.process() {
            *self.host.threads(process).1 += 1;
        }
    }

    /// A thread gives its CPU up; its run time is settled.
    #[cold]
    pub(crate) fn stops_running(&mut self, cpu: usize, task: u32) {
        self.account_slice(cpu, task);
        if let Some(process) = self.tasks[task as usize].state.process() {
            *self.host.threads(process).1 -= 1;
        }
    }

    /// Mode perch: a CPU is chosen for a task that is not runnable yet (1), or a task sleeps, ends
    /// or is taken elsewhere (-1). Between the choice and its arrival a task counts already, so
    /// that the next wake-up sees it.
    #[cold]
    pub(crate) fn reserve(&mut self, cpu: usize, by: i32) {
        if self.caches.mode != Mode::Perch {
            return;
        }
        if let Some(llc) = self.cpus[cpu].llc {
            let load = self.host.llc_load_mut(llc);
            load.nr = load.nr.wrapping_add_signed(by);
        }
    }

    /// Mode perch: a CPU's numbers were published.
    #[cold]
    pub(crate) fn sum_util(&mut self, cpu: usize) {
        let now = self.host.cpu(cpu).util;
        let before = std::mem::replace(&mut self.caches.util[cpu], now);
        if let Some(llc) = self.cpus[cpu].llc {
            let load = self.host.llc_load_mut(llc);
            load.util = load.util.wrapping_add(now).wrapping_sub(before);
        }
    }
}
