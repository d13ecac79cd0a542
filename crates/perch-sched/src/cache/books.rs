// SPDX-License-Identifier: GPL-2.0-or-later
//! The books of the cache mechanism: its figures for each LLC, each CPU and each task.

use perch_policy::{Host, Mode, Policy, ProcessId, Topology};

use crate::hardware::Costs;
use crate::setup::Setup;

/// The instructions that the accounting adds to a run of a thread: half of what a round of a pipe
/// takes longer on 7.2 with cache-aware scheduling than without (docs/calibration.md).
const ACCOUNTING: u32 = 120;

/// The books of the cache mechanism.
#[derive(Debug)]
pub(crate) struct CacheBooks {
    pub(super) mode: Mode,
    /// The number of CPUs that a scan of all LLCs examines.
    pub(super) looked_at: u32,
    /// The time that the accounting of a run of a thread takes, in nanoseconds.
    pub(super) accounting_ns: u64,
    /// For each domain, the LLCs that are its groups, in their order. The list is empty for all
    /// domains but those just above the LLCs, and in modes that have no use for statistics.
    groups_of: Vec<Vec<usize>>,
    /// For each LLC, the time at which its statistics were last written.
    noted_ns: Vec<Option<u64>>,
    /// Mode perch: for each CPU, the utilisation that is counted in the sum of its LLC.
    pub(super) util: Vec<u32>,
    /// Mode upstream: the number of tasks queued on a CPU that prefer an LLC, by CPU and then LLC.
    pub(super) wanting: Vec<u32>,
    /// Mode upstream: for each LLC, the number of tasks that prefer it and are queued outside of
    /// it.
    pub(super) away: Vec<u32>,
}

impl CacheBooks {
    pub fn new(policy: &Policy, topology: &Topology, costs: &Costs) -> CacheBooks {
        let mode = mode_on(policy, topology);
        let (cpus, llcs) = (topology.nr_cpus(), topology.nr_llcs());
        let notes = matches!(mode, Mode::Posted | Mode::Upstream);
        let only = |is: bool, n: usize| if is { n } else { 0 };
        CacheBooks {
            mode,
            looked_at: (0..llcs).map(|l| topology.llc_span(l).weight()).sum(),
            accounting_ns: costs.instructions_ns(ACCOUNTING),
            groups_of: (0..topology.nr_domains())
                .map(|number| if notes { llcs_of(topology, number) } else { Vec::new() })
                .collect(),
            noted_ns: vec![None; llcs],
            util: vec![0; only(mode == Mode::Perch, cpus)],
            wanting: vec![0; only(mode == Mode::Upstream, cpus * llcs)],
            away: vec![0; only(mode == Mode::Upstream, llcs)],
        }
    }

    /// Returns whether the mechanism is on.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.mode != Mode::Off
    }

    /// Returns whether tasks count from the choice of their CPU on (mode perch).
    #[inline]
    pub fn reserves(&self) -> bool {
        self.mode == Mode::Perch
    }

    /// Returns the mechanism's mode on this machine.
    #[inline]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the LLCs that are the groups of `domain`, if statistics of them are written.
    pub fn groups_of(&self, domain: usize) -> &[usize] {
        &self.groups_of[domain]
    }

    /// Notes that the statistics of `llc` were written at `now_ns`.
    pub fn note(&mut self, llc: usize, now_ns: u64) {
        self.noted_ns[llc] = Some(now_ns);
    }

    /// Returns the time at which the statistics of `llc` were last written.
    pub fn noted_ns(&self, llc: usize) -> Option<u64> {
        self.noted_ns[llc]
    }

    /// Returns the number of tasks queued on `cpu` that prefer `llc`.
    pub fn wanting(&self, cpu: usize, llc: usize) -> u32 {
        self.wanting[cpu * self.away.len() + llc]
    }

    /// Returns the number of tasks that prefer `llc` and are queued outside of it.
    pub fn away(&self, llc: usize) -> u32 {
        self.away[llc]
    }

    /// Counts that a task that prefers the LLC `wants` has entered the queue of `cpu` (`by` is 1)
    /// or left it (-1). `home` is the CPU's LLC.
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

/// Returns the mechanism's mode on this machine. It is off where there is only one LLC to choose
/// from, as 7.2's static key has it (P3).
fn mode_on(policy: &Policy, topology: &Topology) -> Mode {
    match topology.nr_llcs() {
        0 | 1 => Mode::Off,
        _ => policy.modes().cache,
    }
}

/// Returns the LLCs that are a domain's groups, if all of its groups are LLCs; otherwise none.
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

/// Makes the processes of the address spaces that are set up, if the mechanism is on, and returns
/// them.
pub(crate) fn processes(host: &mut Host, policy: &Policy, setup: &Setup<'_>) -> Vec<ProcessId> {
    if mode_on(policy, host.topology()) == Mode::Off {
        return Vec::new();
    }
    let machine = setup.machine;
    let processes = (0u32..).zip(setup.spaces).map(|(number, space)| {
        let process = host.add_process();
        // 7.2 learns a footprint from the faults of NUMA balancing, which a machine of one node
        // does not have. The model has the result of the faults, and not the faults.
        if machine.nodes() > 1 {
            let own = setup.tasks.iter().filter(|t| t.space == Some(number));
            let lines: u64 = own.map(|t| u64::from(t.footprint.lines)).sum();
            let kib = u64::from(space.kib) + lines * u64::from(machine.hardware.line_bytes) / 1024;
            host.set_footprint(process, kib.min(u32::MAX.into()) as u32);
        }
        process
    });
    processes.collect()
}

/// The cache mechanism's state of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CacheTask {
    /// The part of the task's run time that has been charged to its process.
    pub(super) accounted_ns: u64,
    /// Mode upstream: the LLC that the task's process preferred when the task last ran.
    pub(super) wants: Option<usize>,
    /// The LLCs in which the task last ran.
    pub(super) trail: Trail,
}

impl CacheTask {
    /// Mode upstream: returns the LLC that the task's process preferred when the task last ran.
    #[inline]
    pub fn wants(&self) -> Option<usize> {
        self.wants
    }

    /// Returns the LLC in which the task last ran, `None` before the first time.
    #[inline]
    pub fn ran_in(&self) -> Option<usize> {
        self.trail.now
    }
}

/// The LLCs in which a task ran lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trail {
    /// The LLC in which the task last ran, `None` before the first time.
    pub(super) now: Option<usize>,
    /// The LLC before that one.
    pub(super) before: Option<usize>,
    /// The time at which the task came from there.
    pub(super) since_ns: u64,
}
