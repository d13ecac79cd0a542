// SPDX-License-Identifier: GPL-2.0-or-later
//! What is kept for the cache mechanism: by LLC, by CPU and by task.

use perch_policy::{Host, Mode, Policy, ProcessId, Topology};

use crate::setup::Setup;

/// What is kept for the cache mechanism.
#[derive(Debug)]
pub(crate) struct CacheBooks {
    pub(super) mode: Mode,
    /// CPUs that a look at all LLCs takes in.
    pub(super) looked_at: u32,
    /// By domain: the LLCs that are its groups, in their order. Empty but for the domains just
    /// above the LLCs, and in modes that have no use for statistics.
    groups_of: Vec<Vec<usize>>,
    /// By LLC: when its statistics were written last.
    noted_ns: Vec<Option<u64>>,
    /// Mode perch: the utilisation of each CPU that its LLC's sum holds.
    pub(super) util: Vec<u32>,
    /// Mode upstream: tasks queued on a CPU that prefer an LLC, by CPU and then LLC.
    pub(super) wanting: Vec<u32>,
    /// Mode upstream: tasks queued outside of the LLC that they prefer, by that LLC.
    pub(super) away: Vec<u32>,
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
    pub fn groups_of(&self, domain: usize) -> &[usize] {
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
    pub fn wanting(&self, cpu: usize, llc: usize) -> u32 {
        self.wanting[cpu * self.away.len() + llc]
    }

    /// Tasks queued anywhere else that prefer `llc`.
    pub fn away(&self, llc: usize) -> u32 {
        self.away[llc]
    }

    /// A task that prefers an LLC is on a CPU's queue (1) or no more (-1).
    pub(super) fn count(&mut self, cpu: usize, home: Option<usize>, wants: Option<usize>, by: i32) {
        let Some(llc) = wants else {
            return;
        };
        let at = cpu * self.away.len() + llc;
        self.wanting[at] = self.wanting[at].wrapping_add_signed(by);
        if home != Some(llc) {
            let away = &mut self.away[llc];
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
fn llcs_of(topology: &Topology, number: usize) -> Vec<usize> {
    let domain = topology.domain(number);
    let groups = (0..domain.groups()).map(|g| {
        let group = domain.group(g);
        let llc = topology.llc(group.iter().next()?)?;
        let same = topology.llc_span(llc).number() == group.number();
        (same && !domain.shares_llc()).then_some(llc)
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
    pub(super) accounted_ns: u64,
    /// Mode upstream: the LLC that its process preferred when it ran last.
    pub(super) wants: Option<usize>,
    /// The LLCs on which it ran last.
    pub(super) trail: Trail,
}

impl CacheTask {
    /// Mode upstream: the LLC that the task's process preferred when the task ran last.
    #[inline]
    pub fn wants(&self) -> Option<usize> {
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
pub(super) struct Trail {
    /// The LLC on which it ran last, `None` before the first time.
    pub(super) now: Option<usize>,
    /// The one before that.
    pub(super) before: Option<usize>,
    /// When it came from there.
    pub(super) since_ns: u64,
}
