// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduler's counts, and how other programs read them: by the protocol of sched_ext's own tools
//! (the crate scx_stats: a line of JSON each way over a socket), as JSON, as OpenMetrics and in
//! Prometheus's text format, over HTTP too.

mod client;
mod groups;
mod listener;
mod meta;
mod openmetrics;
mod server;
mod waits;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use perch_machine::Machine;
use perch_policy::{Modes, Reason};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::counters::{Counters, Totals};
use perch_plan::interface::{Event, WaitReason};

pub use client::{Client, StatisticsError};
pub use groups::GroupWaits;
use groups::Paths;
pub use listener::Listener;
pub use openmetrics::{openmetrics, prometheus};
pub use server::Server;
pub use waits::Waits;

/// Where the tools of sched_ext look for the loaded scheduler's statistics.
pub const SOCKET: &str = "/var/run/scx/root/stats";

/// The machine, kernel and settings with which a scheduler was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct About {
    /// The machine's name, as its processor tells it.
    pub machine: String,
    /// The kernel's version.
    pub kernel: String,
    /// The mechanisms' modes, as `--set` takes them.
    pub modes: String,
    /// The real-time band's rules and its share; empty without one.
    pub band: String,
    /// The rules of the tasks that are perch's; empty if all are.
    pub partial: String,
    /// CPUs that are scheduled.
    pub cpus: u64,
}

impl About {
    /// A detected machine under a kernel.
    pub fn new(machine: &Machine, kernel: String, modes: Modes) -> About {
        let cpus = machine.cpus.len();
        About {
            machine: processor(machine).to_string(),
            kernel,
            modes: modes.to_string(),
            band: String::new(),
            partial: String::new(),
            cpus: cpus as u64,
        }
    }
}

/// The name of a machine's processor, or of the machine where nobody detected it.
pub fn processor(machine: &Machine) -> &str {
    // It comes first where the machine was detected.
    let named = machine.description.split_once(&format!(", {} CPUs", machine.cpus.len()));
    named.map_or(machine.name.as_str(), |(name, _)| name)
}

/// How often one reason decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decisions {
    /// The number of wake-ups that the reason decided.
    pub wakeups: u64,
}

/// The CPUs that share a last-level cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cache {
    /// Their NUMA node.
    pub node: u64,
    /// How many they are.
    pub cpus: u64,
    /// Time that tasks ran on them, nanoseconds.
    pub busy_ns: u64,
    /// Tasks that ran or waited there when the scheduler last looked, milliseconds ago.
    pub runnable: u64,
}

/// The work of a scheduler since it was loaded, reloads included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// When it was read, nanoseconds since 1970.
    pub at_ns: u64,
    /// How long the scheduler has been loaded, nanoseconds.
    pub uptime_ns: u64,
    /// Time that tasks ran under it, nanoseconds, summed over CPUs.
    pub busy_ns: u64,
    /// How often it was loaded again because the machine or the configuration changed.
    pub restarts: u64,
    /// CPUs on which a task of the real-time band waits now that may run elsewhere.
    pub overloaded_cpus: u64,
    /// The counters of these, summed: as many, whenever nothing changes.
    pub overload_sum: i64,
    /// The lowest of these counters.
    pub overload_lowest: i64,
    /// Tasks that are perch's now, where not all are: those that fit a rule of `partial`.
    pub partial_tasks: u64,
    /// Tasks that fit such a rule and that the kernel did not let in.
    pub partial_refused: u64,
    /// The machine, kernel and settings with which it was loaded.
    #[serde(flatten)]
    pub about: About,
    /// Decisions by [`Reason::name`]; those that never decided included.
    pub reasons: BTreeMap<String, Decisions>,
    /// Waits for a CPU by [`WaitReason::name`]; empty where the key `waits` is false.
    #[serde(default)]
    pub waits: BTreeMap<String, Waits>,
    /// Waits for a CPU by the path of the tasks' cgroup, those of cgroups below it left out; empty where
    /// the key `group_waits` is false.
    #[serde(default)]
    pub group_waits: BTreeMap<String, GroupWaits>,
    /// Last-level caches by number; empty where CPUs share none.
    #[serde(default)]
    pub llcs: BTreeMap<String, Cache>,
    /// Events by [`Event::name`].
    #[serde(flatten)]
    pub events: BTreeMap<String, u64>,
}

impl Report {
    /// Decisions of the policy, whatever the reason.
    pub fn wakeups(&self) -> u64 {
        self.reasons.values().map(|reason| reason.wakeups).sum()
    }

    /// How often an event happened; 0 for one that the scheduler does not know.
    pub fn event(&self, event: Event) -> u64 {
        self.events.get(event.name()).copied().unwrap_or(0)
    }

    /// The waits of a cgroup's tasks and of those of all cgroups below it.
    pub fn waits_below(&self, path: &str) -> GroupWaits {
        let below = |name: &str| {
            let rest = name.strip_prefix(path.trim_end_matches('/'));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let mut sum = GroupWaits::default();
        for (name, waits) in &self.group_waits {
            if below(name) {
                sum.add(waits);
            }
        }
        sum
    }

    /// The work since the report `earlier` of the same scheduler; the whole report, if `earlier` is
    /// another scheduler's.
    pub fn since(&self, earlier: &Report) -> Report {
        if earlier.uptime_ns > self.uptime_ns {
            return self.clone();
        }
        let mut out = self.clone();
        out.uptime_ns -= earlier.uptime_ns;
        out.busy_ns = out.busy_ns.saturating_sub(earlier.busy_ns);
        for (name, reason) in &mut out.reasons {
            let before = earlier.reasons.get(name).map_or(0, |reason| reason.wakeups);
            reason.wakeups = reason.wakeups.saturating_sub(before);
        }
        for (number, llc) in &mut out.llcs {
            let before = earlier.llcs.get(number).map_or(0, |llc| llc.busy_ns);
            llc.busy_ns = llc.busy_ns.saturating_sub(before);
        }
        for (name, waits) in &mut out.waits {
            if let Some(before) = earlier.waits.get(name) {
                *waits = waits.since(before);
            }
        }
        for (path, waits) in &mut out.group_waits {
            if let Some(before) = earlier.group_waits.get(path) {
                *waits = waits.since(before);
            }
        }
        for (name, count) in &mut out.events {
            *count = count.saturating_sub(earlier.events.get(name).copied().unwrap_or(0));
        }
        out
    }
}

/// The counters of a session, which outlive the programs that count.
#[derive(Clone, Debug, Default)]
pub struct Source {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    about: About,
    began: Option<Instant>,
    restarts: u64,
    /// Tasks that are the scheduler's where not all are, and tasks that the kernel kept out.
    members: (u64, u64),
    /// Of the programs that are gone.
    past: Totals,
    paths: Paths,
    live: Option<Counters>,
}

impl Source {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if no program has counted yet.
    pub(crate) fn is_new(&self) -> bool {
        self.lock().began.is_none()
    }

    /// A program counts from now on.
    pub(crate) fn open(&self, counters: Counters, about: About) {
        let mut state = self.lock();
        state.about = about;
        state.began.get_or_insert_with(Instant::now);
        state.live = Some(counters);
    }

    /// The program has ended, and its memory is about to go.
    pub(crate) fn retire(&self) {
        let mut state = self.lock();
        if let Some(counters) = state.live.take() {
            state.past.add(&counters.last_totals());
        }
    }

    /// Sets how often the program was loaded again.
    pub(crate) fn restarted(&self, times: u64) {
        self.lock().restarts = times;
    }

    /// Sets how many tasks are the scheduler's, where not all are, and how many the kernel kept out.
    pub(crate) fn members(&self, members: u64, refused: u64) {
        self.lock().members = (members, refused);
    }

    /// The sums now.
    pub fn report(&self) -> Report {
        let mut state = self.lock();
        let mut totals = state.past.clone();
        if let Some(counters) = &state.live {
            totals.add(&counters.totals());
        }
        let group_waits = state.paths.name(&totals.groups);
        // The time of day is for programs that collect reports; nothing here depends on it.
        #[allow(clippy::disallowed_methods)]
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        Report {
            at_ns: now.map_or(0, |now| now.as_nanos() as u64),
            uptime_ns: state.began.map_or(0, |began| began.elapsed().as_nanos() as u64),
            busy_ns: totals.busy_ns,
            restarts: state.restarts,
            overloaded_cpus: totals.overload.cpus,
            overload_sum: totals.overload.sum,
            overload_lowest: totals.overload.lowest,
            partial_tasks: state.members.0,
            partial_refused: state.members.1,
            about: state.about.clone(),
            reasons: Reason::ALL
                .iter()
                .zip(&totals.reasons)
                .map(|(reason, &wakeups)| (reason.name().to_string(), Decisions { wakeups }))
                .collect(),
            waits: WaitReason::ALL
                .iter()
                .zip(&totals.waits)
                .map(|(reason, waits)| (reason.name().to_string(), waits.clone()))
                .collect(),
            group_waits,
            llcs: totals
                .llcs
                .iter()
                .enumerate()
                .map(|(number, llc)| (number.to_string(), *llc))
                .collect(),
            events: Event::ALL
                .iter()
                .zip(&totals.events)
                .map(|(event, &count)| (event.name().to_string(), count))
                .collect(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A report with a few numbers in it.
    pub(crate) fn sample() -> Report {
        let source = Source::default();
        {
            let mut state = source.lock();
            state.past.busy_ns = 2_500_000_000;
            state.past.reasons[Reason::TargetIdle as usize] = 30;
            state.past.reasons[Reason::ClusterScan as usize] = 70;
            state.past.events[Event::Direct as usize] = 90;
            let waits = |count, sum_ns| Waits { count, sum_ns, buckets: vec![0, 0, 0, count] };
            state.past.waits = vec![Waits::default(); WaitReason::ALL.len()];
            state.past.waits[WaitReason::Queued as usize] = waits(5, 30_000);
            state.paths.set("/web", 42);
            let of_web = GroupWaits { waits: waits(4, 26_000), limited: 2, limited_ns: 80_000_000 };
            state.past.groups.insert(42, of_web);
            state.about = About {
                machine: "A \"quoted\" CPU".to_string(),
                kernel: "7.2.12".to_string(),
                modes: "cluster=perch".to_string(),
                band: "nice=-20,priority=5; at most 95 % of 100 ms".to_string(),
                partial: "cgroup=/web".to_string(),
                cpus: 16,
            };
        }
        let mut report = source.report();
        report.at_ns = 1_700_000_000_000_000_000;
        report.uptime_ns = 5_000_000_000;
        report
    }

    #[test]
    fn reports_survive_json() {
        let report = sample();
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
        assert_eq!(report.wakeups(), 100);
        assert_eq!((report.waits["queued"].count, report.waits["idle"].count), (5, 0));
    }

    #[test]
    fn a_cgroup_has_the_waits_of_those_below_it() {
        let mut report = sample();
        let web = report.group_waits["/web"].clone();
        report.group_waits.insert("/web/a".to_string(), web.clone());
        report.group_waits.insert("/webs".to_string(), web.clone());
        let counts = |path| {
            let below = report.waits_below(path);
            (below.waits.count, below.limited)
        };
        assert_eq!(counts("/web"), (8, 4));
        assert_eq!(counts("/web/a"), (4, 2));
        assert_eq!(counts("/"), (12, 6));
        assert_eq!(counts("/we"), (0, 0));
        assert_eq!(web.since(&web).waits.count, 0);
    }

    #[test]
    fn differences_are_of_one_scheduler() {
        let earlier = sample();
        let mut later = sample();
        later.uptime_ns += 1_000_000_000;
        later.events.insert("direct".to_string(), 100);
        let change = later.since(&earlier);
        assert_eq!((change.event(Event::Direct), change.wakeups()), (10, 0));
        assert_eq!(change.uptime_ns, 1_000_000_000);
        assert_eq!(earlier.since(&later), earlier);
    }
}
