// SPDX-License-Identifier: GPL-2.0-or-later
//! What a recording tells about a load in its steady part, in figures that the recording of a kernel
//! and one of its simulation both have: so the two can be set side by side.
//!
//! A recording holds wake-ups only. That a task sleeps shows in its CPU, which later wake-ups see
//! idle; that the balancer moved it, in the CPU that it leaves when it is woken next.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::Arc;

use perch_policy::{Policy, Topology};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cause::Cause;
use crate::format::{FormatError, Moment, Reader};
use crate::moment::{Class, Cpu, Group, UNSEEN_ROWS};
use crate::replay::{Outcome, Replay};
use crate::result::Agreements;

/// The parts of the wanted time whose wake-ups [`steady`] counts.
const SLICES: u64 = 20;

/// Finds the steady part of a recording: the `most_ns` before its load ended, as beginning and end in
/// nanoseconds. A load begins task by task and ends so, and while it ends few tasks are left: it has
/// ended after the last twentieth of `most_ns` with half as many wake-ups as the busiest has. `None`
/// where no wake-up is the fair class's.
///
/// # Errors
/// Returns an error when the recording is damaged.
pub fn steady<R: Read>(
    reader: &mut Reader<R>,
    topology: &Arc<Topology>,
    model: Policy,
    most_ns: u64,
) -> Result<Option<(u64, u64)>, FormatError> {
    let slice_ns = (most_ns / SLICES).max(1);
    let mut replay = Replay::new(topology, reader.header().hz, model, None);
    // Of each slice: how many wake-ups it has, and its last.
    let mut slices: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    let mut first_ns = u64::MAX;
    while let Some(block) = reader.next_block()? {
        replay.each(&block, |replay| {
            let wake_up = replay.moment().wake_up();
            if wake_up.class == Class::Fair {
                let (count, last) = slices.entry(wake_up.at_ns / slice_ns).or_default();
                (*count, *last) = (*count + 1, (*last).max(wake_up.at_ns));
                first_ns = first_ns.min(wake_up.at_ns);
            }
        })?;
    }
    let most = slices.values().map(|&(count, _)| count).max();
    let mut busy = slices.values().rev();
    let end = busy.find(|&&(count, _)| 2 * count >= most.unwrap_or(0));
    Ok(end.map(|&(_, end_ns)| (end_ns.saturating_sub(most_ns).max(first_ns), end_ns)))
}

/// A load in figures.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Profile {
    /// The recorded kernel's version.
    pub kernel: String,
    /// The kernel that the model is of.
    pub era: String,
    /// The command or the workload that was recorded.
    pub command: Vec<String>,
    /// The length of the part that is counted, nanoseconds.
    pub span_ns: u64,
    /// Wake-ups that the fair class decided.
    pub wake_ups: u64,
    /// Share of the model's reasons among these, 0 to 1, by reason.
    pub reasons: BTreeMap<&'static str, f64>,
    /// Wake-ups of tasks that never left their queue, as a share of these and those that were
    /// decided, 0 to 1; of the whole recording. Null where the end of the file is missing.
    pub never_left: Option<f64>,
    /// Wake-ups a second, with the estimated number of those that needed no decision.
    pub per_second: f64,
    /// Wake-ups that took the wakee to another CPU, per wake-up.
    pub migrations: f64,
    /// Tasks that were moved between two of their wake-ups, a second: the balancer pulled them.
    pub pulled_per_second: f64,
    /// Share of the CPUs in the cache of the wakee's previous CPU that are idle, 0 to 1, as the
    /// wake-ups find them.
    pub idle: Option<f64>,
    /// The number of CPUs that a search in that cache may examine, as the wake-ups find it.
    pub scan_budget: Option<f64>,
    /// CPUs that the model examined, for each wake-up for which it searched; null without any.
    pub examined: Option<f64>,
    /// The time from a task's wake-up to the moment at which it wakes another.
    pub to_wake: Times,
    /// The time from then on for which its CPU is still seen busy, where no other task came.
    pub to_idle: Times,
    /// The share of these CPUs, 0 to 1, that another task was sent to before they were seen idle.
    pub taken: Option<f64>,
    /// The agreement of the model with the kernel.
    pub agreement: Agreements,
    /// The choices that differ, by cause.
    pub causes: BTreeMap<&'static str, u64>,
}

/// Times between two events.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Times {
    /// How many there are.
    pub count: u64,
    /// Their mean, nanoseconds; null without any.
    pub mean_ns: Option<f64>,
    /// Their median, nanoseconds; null without any.
    pub median_ns: Option<f64>,
}

impl Times {
    fn of(mut times: Vec<u64>) -> Times {
        times.sort_unstable();
        let count = times.len() as u64;
        Times {
            count,
            mean_ns: ratio(times.iter().sum(), count),
            median_ns: times.get(times.len() / 2).map(|&ns| ns as f64),
        }
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Profile {
    /// Returns true for the recording of a simulation.
    pub fn is_simulated(&self) -> bool {
        self.kernel.starts_with("simulated")
    }

    /// Reads a recording whose steady part is `span`, and leaves the reader at its end.
    ///
    /// # Errors
    /// Returns an error when the recording is damaged.
    pub fn read<R: Read>(
        reader: &mut Reader<R>,
        topology: &Arc<Topology>,
        model: Policy,
        span: (u64, u64),
    ) -> Result<Profile, FormatError> {
        let hz = reader.header().hz;
        let mut replay = Replay::new(topology, hz, model, None).within(span);
        let (mut outcome, mut course) = (Outcome::default(), Course::new(topology.nr_cpus()));
        while let Some(block) = reader.next_block()? {
            outcome.add(&replay.block(&block, |decided| {
                if let Some((verdict, _)) = &decided.verdicts {
                    course.step(decided.moment, topology, verdict.examined);
                }
            })?);
        }
        let (tally, header) = (&outcome.model, reader.header());
        let asked = tally.asked;
        let undecided = reader.footer().map(|footer| &footer.undecided);
        let decided = reader.footer().map_or(0, |footer| footer.wake_ups);
        let queued = undecided.map_or(0, |counts| counts.queued);
        let stayed = queued + undecided.map_or(0, |counts| counts.others);
        let per_second = |count: u64| count as f64 * 1e9 / (span.1 - span.0).max(1) as f64;
        let all = 1.0 + ratio(stayed, decided).unwrap_or(0.0);
        let whole = tally.reasons().map(|(reason, stakes)| {
            let asked_here: u64 = stakes.iter().map(|stake| stake.asked).sum();
            (reason.name(), ratio(asked_here, asked).unwrap_or(0.0))
        });
        Ok(Profile {
            kernel: header.kernel.clone(),
            era: model.era().to_string(),
            command: header.command.clone(),
            span_ns: span.1 - span.0,
            wake_ups: asked,
            reasons: whole.collect(),
            never_left: undecided.and(ratio(queued, decided + stayed)),
            per_second: per_second(asked) * all,
            migrations: ratio(course.migrations, asked).unwrap_or(0.0),
            pulled_per_second: per_second(course.pulled),
            idle: ratio(course.idle, course.cpus),
            scan_budget: ratio(course.budget, course.caches),
            examined: ratio(tally.examined, course.searches),
            taken: ratio(course.taken, course.taken + course.to_idle.len() as u64),
            to_wake: Times::of(course.to_wake),
            to_idle: Times::of(course.to_idle),
            agreement: Agreements::of(tally),
            causes: (Cause::ALL.into_iter())
                .map(|cause| (cause.name(), tally.by_cause[cause as usize]))
                .collect(),
        })
    }
}

/// The course of the load, followed from wake-up to wake-up.
#[derive(Default)]
struct Course {
    /// The CPU that each task was sent to last, and when, until it wakes another.
    sent: HashMap<u32, (u32, Option<u64>)>,
    /// When the task that runs on a CPU woke another, until the CPU is seen idle.
    leaving: Vec<Option<u64>>,
    migrations: u64,
    pulled: u64,
    /// Wake-ups whose previous CPU is in a cache, and sums over these: the cache's CPUs, those of
    /// them that are idle, and the budget.
    caches: u64,
    cpus: u64,
    idle: u64,
    budget: u64,
    searches: u64,
    taken: u64,
    to_wake: Vec<u64>,
    to_idle: Vec<u64>,
}

impl Course {
    fn new(cpus: usize) -> Course {
        Course { leaving: vec![None; cpus], ..Course::default() }
    }

    fn step(&mut self, moment: &Moment, topology: &Topology, examined: u32) {
        let w = moment.wake_up();
        let [this, prev] = [w.this_cpu, w.prev_cpu].map(|cpu| topology.llc(cpu as usize));
        for (cpu, leaving) in self.leaving.iter_mut().enumerate() {
            let seen = || {
                let llc = topology.llc(cpu);
                w.unseen & UNSEEN_ROWS == 0 || llc == this || llc == prev
            };
            if let Some(since) = *leaving
                && moment.cpus()[cpu][Cpu::Idle] != 0
                && seen()
            {
                self.to_idle.push(w.at_ns.saturating_sub(since));
                *leaving = None;
            }
        }
        if w.waker != 0
            && let Some((_, woken)) = self.sent.get_mut(&w.waker)
            && let Some(woken) = woken.take()
        {
            self.to_wake.push(w.at_ns.saturating_sub(woken));
            self.leaving[w.this_cpu as usize] = Some(w.at_ns);
        }
        if let Some(llc) = prev {
            let span = topology.llc_span(llc);
            let idle = span.iter().filter(|&cpu| moment.cpus()[cpu][Cpu::Idle] != 0);
            self.caches += 1;
            self.cpus += u64::from(span.weight());
            self.idle += idle.count() as u64;
            self.budget += moment.groups()[llc][Group::NrIdleScan];
        }
        self.taken += u64::from(self.leaving[w.chosen as usize].take().is_some());
        self.migrations += u64::from(w.chosen != w.prev_cpu);
        self.searches += u64::from(examined > 0);
        let before = self.sent.insert(w.wakee, (w.chosen, Some(w.at_ns)));
        self.pulled += u64::from(before.is_some_and(|(cpu, _)| cpu != w.prev_cpu));
    }
}

#[cfg(test)]
mod tests {
    use perch_machine::library;
    use perch_policy::{Era, Modes};

    use super::*;
    use crate::format::{Footer, Header, Undecided, Writer};
    use crate::moment::{Row, WakeUp};

    /// Two tasks of two CPUs: 1 runs on CPU 0 and wakes 2 on CPU 1 after 3 us, which wakes 1 back
    /// after 5 us, when CPU 0 has become idle; the balancer moves 2 once. Then a last wake-up comes
    /// long after the load.
    #[test]
    fn times_and_moves_follow_from_wake_ups() {
        let machine = library::load("x5570").expect("in the library");
        let topology = Topology::new(&machine);
        let (cpus, groups) = (topology.nr_cpus(), topology.nr_shared());
        let header = Header {
            machine: machine.to_toml(),
            kernel: "6.1.0".to_string(),
            era: "6.1".to_string(),
            hz: 250,
            ..Header::default()
        };
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, header, cpus, groups).expect("memory");
        let mut at_ns = 1_000_000;
        let mut wake = |[waker, wakee, this, prev, chosen]: [u32; 5], at_ns| {
            let mut rows = vec![Row::default(); cpus];
            for (cpu, row) in rows.iter_mut().enumerate() {
                row[Cpu::Idle] = u64::from(cpu != this as usize);
            }
            let wake_up = WakeUp {
                at_ns,
                this_cpu: this,
                prev_cpu: prev,
                chosen,
                waker,
                wakee,
                ..WakeUp::default()
            };
            let groups = vec![Row::default(); groups];
            let tasks = [&Row::default(), &Row::default()];
            writer.add(&wake_up, tasks, None, &rows, &groups).expect("memory");
        };
        for round in 0..10 {
            wake([1, 2, 0, if round == 5 { 3 } else { 1 }, 1], at_ns);
            wake([2, 1, 1, 0, 0], at_ns + 5_000);
            at_ns += 8_000;
        }
        wake([9, 8, 2, 2, 2], at_ns + 50_000_000);
        let undecided = Undecided { queued: 7, ..Undecided::default() };
        let footer = Footer { undecided, ..Footer::default() };
        writer.finish(footer).expect("memory");
        let reader = || Reader::new(&file[..]).expect("a recording");
        let model = Policy::new(Era::V6_5, Modes::default());
        let span = steady(&mut reader(), &topology, model, 1_000_000).expect("whole");
        assert_eq!(span, Some((1_000_000, 1_077_000)));
        let found = Profile::read(&mut reader(), &topology, model, span.expect("wake-ups"));
        let found = found.expect("whole");
        assert_eq!(found.wake_ups, 20);
        assert_eq!(found.to_wake.count, 19);
        assert_eq!(found.to_wake.median_ns, Some(5_000.0));
        assert_eq!(found.to_idle.median_ns, Some(5_000.0));
        assert_eq!(found.migrations, 1.0 / 20.0);
        assert_eq!(found.pulled_per_second.round(), (1e9 / 77_000.0_f64).round());
        assert_eq!(found.idle, Some(7.0 / 8.0));
        assert_eq!(found.never_left, Some(7.0 / 28.0));
    }
}
