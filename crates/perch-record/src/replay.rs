// SPDX-License-Identifier: GPL-2.0-or-later
//! A replay: the choices of a policy at the moments of a recording.

use std::cmp::Reverse;
use std::io::Read;
use std::sync::Arc;

use perch_policy::{CpuMask, Host, Policy, Reason, Topology, Verdict, Wake};

use crate::agreement::{Agreement, Summary};
use crate::capacity::{GroupCapacity, compares};
use crate::cause::Cause;
use crate::decision::{Decision, Kind, KindTally, Model, Why};
use crate::format::{Block, BlockError, FormatError, Moment, Reader};
use crate::moment::{Class, Task, UNSEEN_ROWS, WakeUp};
use crate::parallel::in_parallel;
use crate::stake::Stake;

/// The distance of the chosen CPU from the one where the wakee ran last, by the scheduling domains
/// that have both. The hardware's own distance, [`perch_machine::Distance`], also tells packages apart
/// and goes by the last-level caches that there are, not by those that firmware declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DomainDistance {
    /// The same CPU.
    Same,
    /// The other thread of the same core.
    Core,
    /// Another core of the same cluster.
    Cluster,
    /// Another CPU of the same last-level cache.
    Llc,
    /// Another CPU of the same node.
    Node,
    /// A CPU of another node.
    Machine,
}

impl DomainDistance {
    /// All distances, nearest first.
    pub const ALL: [DomainDistance; 6] = [
        DomainDistance::Same,
        DomainDistance::Core,
        DomainDistance::Cluster,
        DomainDistance::Llc,
        DomainDistance::Node,
        DomainDistance::Machine,
    ];

    /// Returns the distance between two CPUs.
    pub fn between(topology: &Topology, one: usize, other: usize) -> DomainDistance {
        let llc = |cpu| topology.llc(cpu);
        if one == other {
            DomainDistance::Same
        } else if topology.core_span(one).contains(other) {
            DomainDistance::Core
        } else if topology.cluster_span(one).is_some_and(|c| c.contains(other)) {
            DomainDistance::Cluster
        } else if llc(one).is_some() && llc(one) == llc(other) {
            DomainDistance::Llc
        } else if topology.node(one) == topology.node(other) {
            DomainDistance::Node
        } else {
            DomainDistance::Machine
        }
    }

    /// Returns the distance's name.
    pub fn name(self) -> &'static str {
        match self {
            DomainDistance::Same => "same CPU",
            DomainDistance::Core => "core",
            DomainDistance::Cluster => "cluster",
            DomainDistance::Llc => "LLC",
            DomainDistance::Node => "node",
            DomainDistance::Machine => "machine",
        }
    }
}

/// A comparison of a policy's choices with those of a reference at the same moments. All fields are
/// sums: those of a recording's parts add up to those of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// The number of wake-ups.
    pub asked: u64,
    /// The wake-ups for which both chose the same CPU.
    pub same: u64,
    /// By the policy's reason: the choices while no CPU that was looked at and that the wakee may
    /// use was idle, then those with an idle CPU to win. A saturated machine leaves most reasons one
    /// choice only, which any model gets right.
    pub by_reason: [[Agreement; 2]; Reason::ALL.len()],
    /// By the policy's reason, those of the above for which only one CPU was possible: the wakee may
    /// use no other, or no CPU was idle and the waker's CPU and the wakee's previous one were one.
    pub forced: [Agreement; Reason::ALL.len()],
    /// By the policy's reason, those that were not forced and during which nothing changed that the
    /// recorder looked at twice.
    pub unchanged: [Agreement; Reason::ALL.len()],
    /// By the distance of the choice from the CPU where the wakee ran last: the reference's
    /// choices, then the policy's.
    pub by_distance: [[u64; DomainDistance::ALL.len()]; DomainDistance::ALL.len()],
    /// Choices of a CPU that was idle: the reference's, then the policy's.
    pub idle: [u64; 2],
    /// Choices of a CPU that the wakee fits, with a fifth to spare: the reference's, then the
    /// policy's.
    pub fits: [u64; 2],
    /// The number of CPUs that the policy examined.
    pub examined: u64,
    /// The choices that differ, by cause; only where the reference is a kernel.
    pub by_cause: [u64; Cause::ALL.len()],
}

/// The question that a policy and its reference answered.
struct Asked<'a> {
    wake_up: &'a WakeUp,
    /// The wakee's utilisation, 0 to 1024.
    util: u32,
    stake: Stake,
}

impl Tally {
    fn count(&mut self, asked: &Asked, reference: usize, verdict: &Verdict, host: &Host) {
        let (prev, util) = (asked.wake_up.prev_cpu as usize, asked.util);
        let choices = [reference, verdict.cpu];
        let same = verdict.cpu == reference;
        self.asked += 1;
        self.same += u64::from(same);
        let (reason, stake) = (verdict.reason, asked.stake);
        let one = Agreement { asked: 1, differ: u64::from(!same), unexplained: 0 };
        self.by_reason[reason as usize][usize::from(stake.to_win)].add(&one);
        if stake.forces(reason) {
            self.forced[reason as usize].add(&one);
        } else if stake.unchanged {
            self.unchanged[reason as usize].add(&one);
        }
        let [was, is] = choices.map(|cpu| DomainDistance::between(host.topology(), prev, cpu));
        self.by_distance[was as usize][is as usize] += 1;
        for (i, cpu) in choices.into_iter().enumerate() {
            let room = u64::from(host.cpu(cpu).capacity) * 1024;
            self.idle[i] += u64::from(host.is_idle(cpu));
            self.fits[i] += u64::from(u64::from(util) * 1280 < room);
        }
        self.examined += u64::from(verdict.examined);
    }

    /// Counts the cause for which a choice with this reason differs.
    fn explain(&mut self, cause: Cause, reason: Reason, stake: Stake) {
        self.by_cause[cause as usize] += 1;
        let unexplained = u64::from(cause == Cause::Model);
        self.by_reason[reason as usize][usize::from(stake.to_win)].unexplained += unexplained;
        if stake.forces(reason) {
            self.forced[reason as usize].unexplained += unexplained;
        } else if stake.unchanged {
            self.unchanged[reason as usize].unexplained += unexplained;
        }
    }

    /// Returns the comparison in a few counts.
    pub fn summary(&self) -> Summary {
        Summary::of(Reason::ALL.into_iter().map(|reason| {
            let i = reason as usize;
            let all = self.by_reason[i].iter().sum();
            (reason, all, self.forced[i], self.unchanged[i])
        }))
    }

    /// Returns the reasons that decided at all, the most frequent first: the choices while no CPU
    /// was idle, then those with an idle CPU to win.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, [Agreement; 2])> {
        let asked = |stakes: &[Agreement; 2]| stakes.iter().sum::<Agreement>().asked;
        let all = Reason::ALL.iter().copied().zip(self.by_reason);
        let mut rows: Vec<_> = all.filter(|(_, stakes)| asked(stakes) > 0).collect();
        rows.sort_by_key(|(_, stakes)| Reverse(asked(stakes)));
        rows.into_iter()
    }

    /// Returns how many of the reference's choices and of the policy's are at each distance from
    /// the CPU where the wakee ran last.
    pub fn distances(&self) -> impl Iterator<Item = (DomainDistance, [u64; 2])> {
        let by = self.by_distance;
        DomainDistance::ALL.into_iter().map(move |d| {
            let was = by[d as usize].iter().sum();
            (d, [was, by.iter().map(|row| row[d as usize]).sum()])
        })
    }

    fn add(&mut self, other: &Tally) {
        let pair = |sum: &mut [u64], more: &[u64]| {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        };
        self.asked += other.asked;
        self.same += other.same;
        self.examined += other.examined;
        let others = other.by_reason.as_flattened();
        for (sum, more) in self.by_reason.as_flattened_mut().iter_mut().zip(others) {
            sum.add(more);
        }
        for (sum, more) in self.forced.iter_mut().zip(&other.forced) {
            sum.add(more);
        }
        for (sum, more) in self.unchanged.iter_mut().zip(&other.unchanged) {
            sum.add(more);
        }
        pair(self.by_distance.as_flattened_mut(), other.by_distance.as_flattened());
        pair(&mut self.idle, &other.idle);
        pair(&mut self.fits, &other.fits);
        pair(&mut self.by_cause, &other.by_cause);
    }
}

/// The result of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The comparison of the recorded kernel's model with the kernel's own choices.
    pub model: Tally,
    /// The comparison of the other policy with the model, which is the change that the policy would
    /// bring.
    pub change: Option<Tally>,
    /// Wake-ups that another class than the fair one decided, or no class.
    pub others: u64,
    /// Wake-ups that a policy would decide by values that the recording lacks.
    pub unseen: u64,
    /// Times of the first and the last wake-up, nanoseconds.
    pub span_ns: Option<(u64, u64)>,
    /// How many decisions about queues the model makes as the kernel did, by kind.
    pub decisions: [KindTally; Kind::ALL.len()],
    /// Decisions about queues that the model was not asked about: its era has no EEVDF, or the
    /// numbers are none that a kernel can have.
    pub unasked: u64,
}

impl Outcome {
    /// Adds the result of another part of the same recording.
    pub fn add(&mut self, other: &Outcome) {
        self.model.add(&other.model);
        if let Some(more) = &other.change {
            self.change.get_or_insert_default().add(more);
        }
        self.others += other.others;
        self.unseen += other.unseen;
        self.unasked += other.unasked;
        for (sum, more) in self.decisions.iter_mut().zip(&other.decisions) {
            sum.add(more);
        }
        let spans = [self.span_ns, other.span_ns].into_iter().flatten();
        self.span_ns = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }

    /// Returns the kinds of decision about queues that were recorded at all.
    pub fn kinds(&self) -> impl Iterator<Item = (Kind, &KindTally)> {
        let all = Kind::ALL.into_iter().zip(&self.decisions);
        all.filter(|(_, tally)| tally.asked > 0)
    }
}

/// A wake-up with the answers to it, for callers who list them.
#[derive(Debug)]
pub struct Decided<'a> {
    /// The answers of the model and of the other policy; none where the fair class was not asked.
    pub verdicts: Option<(Verdict, Option<Verdict>)>,
    /// The cause for which the model chose otherwise than the kernel, if it did.
    pub cause: Option<Cause>,
    /// The recorded state.
    pub moment: &'a Moment,
}

/// The values that a question puts in the place of the recorded ones.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) in_task: Option<bool>,
    pub(crate) load: Option<u32>,
}

/// The policies that a replay asks at the moments of a recording.
#[derive(Debug)]
pub struct Replay {
    pub(crate) host: Host,
    pub(crate) model: Policy,
    other: Option<Policy>,
    pub(crate) moment: Moment,
    all: CpuMask,
    /// The time, nanoseconds, whose wake-ups count; without one all do.
    within: Option<(u64, u64)>,
    /// The model of how the kernel decides about queues, where the era is one of EEVDF.
    queues: Option<Model>,
}

impl Replay {
    /// Makes a replay for a machine, with the model of the recorded kernel, of `hz` ticks a second,
    /// and the policy to compare with the model.
    pub fn new(topology: &Arc<Topology>, hz: u32, model: Policy, other: Option<Policy>) -> Replay {
        let n = topology.nr_cpus();
        Replay {
            host: Host::new(topology.clone()),
            model,
            other,
            moment: Moment::new(n, topology.nr_shared()),
            all: CpuMask::full(n),
            within: None,
            queues: Model::new(model.era(), hz),
        }
    }

    /// Leaves out the wake-ups before `from_ns` and those after `to_ns`.
    pub fn within(mut self, (from_ns, to_ns): (u64, u64)) -> Replay {
        self.within = Some((from_ns, to_ns));
        self
    }

    /// Asks about each wake-up of a block that the fair class decided, and shows each to `look`.
    ///
    /// # Errors
    /// Returns an error when the block is damaged in a way that its checksum does not show.
    pub fn block(
        &mut self,
        block: &Block,
        mut look: impl FnMut(&Decided),
    ) -> Result<Outcome, FormatError> {
        let mut outcome = Outcome::default();
        self.each(block, |replay| {
            let at_ns = replay.moment.wake_up().at_ns;
            if (replay.within).is_some_and(|(from, to)| !(from..=to).contains(&at_ns)) {
                return;
            }
            let span = outcome.span_ns.get_or_insert((at_ns, at_ns));
            *span = (span.0.min(at_ns), span.1.max(at_ns));
            let verdicts = replay.decide(&mut outcome);
            let cause = match &verdicts {
                Some((model, _)) if model.cpu != replay.moment.wake_up().chosen as usize => {
                    let (cause, reason) = (replay.cause(), model.reason);
                    outcome.model.explain(cause, reason, replay.stake());
                    Some(cause)
                }
                _ => None,
            };
            look(&Decided { verdicts, cause, moment: &replay.moment });
        })?;
        self.decisions(block, &mut outcome, |_, _| {})?;
        Ok(outcome)
    }

    /// Asks about each decision about a queue of a block, and shows it to `look` with the reason for
    /// which the model's answer differs, if it does.
    ///
    /// # Errors
    /// Returns an error when the block is damaged in a way that its checksum does not show.
    pub fn decisions(
        &self,
        block: &Block,
        outcome: &mut Outcome,
        mut look: impl FnMut(&Decision, Option<Why>),
    ) -> Result<(), FormatError> {
        for decision in block.decisions() {
            let decision = decision?;
            let Some(model) = self.queues.as_ref().filter(|_| decision.is_possible()) else {
                outcome.unasked += 1;
                continue;
            };
            let why = model.ask(&decision, &mut outcome.decisions);
            look(&decision, why);
        }
        Ok(())
    }

    /// Sets moment and host to each wake-up of a block in turn.
    pub(crate) fn each(
        &mut self,
        block: &Block,
        mut look: impl FnMut(&mut Replay),
    ) -> Result<(), FormatError> {
        let damaged = |what: BlockError| FormatError::Damaged { at: block.at, source: what.into() };
        let mut cursor = block.cursor();
        cursor.begin(&mut self.moment);
        for (cpu, row) in self.moment.cpus().iter().enumerate() {
            row.put(&mut self.host, cpu);
        }
        while cursor.advance(&mut self.moment).map_err(damaged)? {
            for &cpu in self.moment.changed_cpus() {
                self.moment.cpus()[cpu as usize].put(&mut self.host, cpu as usize);
            }
            self.put_groups();
            look(self);
        }
        Ok(())
    }

    /// Returns the recorded state of the wake-up that was read last.
    pub(crate) fn moment(&self) -> &Moment {
        &self.moment
    }

    /// Returns the machine in its state at that wake-up.
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    fn decide(&mut self, outcome: &mut Outcome) -> Option<(Verdict, Option<Verdict>)> {
        if self.moment.wake_up().class != Class::Fair {
            outcome.others += 1;
            return None;
        }
        if self.is_unseen() {
            outcome.unseen += 1;
            return None;
        }
        let given = Given::default();
        let model = self.ask(self.model, &given);
        let other = self.other.map(|policy| self.ask(policy, &given));
        let (wake_up, host) = (self.moment.wake_up(), &self.host);
        let asked = Asked {
            wake_up,
            util: self.moment.wakee()[Task::Util].min(1024) as u32,
            stake: self.stake(),
        };
        let chosen = wake_up.chosen as usize;
        outcome.model.count(&asked, chosen, &model, host);
        if let Some(other) = &other {
            let change = outcome.change.get_or_insert_default();
            change.count(&asked, model.cpu, other, host);
        }
        Some((model, other))
    }

    /// Returns the stake of the choice.
    fn stake(&self) -> Stake {
        Stake::of(&self.moment, &self.host, &self.all)
    }

    /// Returns true where a policy would read values that were not recorded: the slow path and the
    /// search for the CPU that fits best look at every CPU.
    fn is_unseen(&self) -> bool {
        self.moment.wake_up().unseen & UNSEEN_ROWS != 0 && self.looks_everywhere()
    }

    /// Returns true where the slow path decides, or the search for the CPU that fits best.
    fn looks_everywhere(&self) -> bool {
        let w = self.moment.wake_up();
        let wake = Wake { this_cpu: w.this_cpu as usize, ..Wake::default().with_flags(w.flags) };
        compares(self.host.topology(), &wake)
    }

    /// Sets the groups' capacities where the kernel compares groups.
    fn put_groups(&mut self) {
        if !self.looks_everywhere() {
            return;
        }
        let topology = self.host.topology().clone();
        for set in 0..topology.nr_sets() {
            let set = topology.set_numbered(set);
            GroupCapacity::now(set, self.moment.cpus()).put(&mut self.host);
        }
        for group in &self.moment.wake_up().capacities {
            group.put(&mut self.host);
        }
    }

    /// Returns a policy's answer to the wake-up that was read last.
    pub(crate) fn ask(&mut self, policy: Policy, given: &Given) -> Verdict {
        // The policy may change its hints of idle cores, so each question gets hints of its own.
        for (number, row) in self.moment.groups().iter().enumerate() {
            row.put(&mut self.host, number);
        }
        let w = self.moment.wake_up();
        let wake = Wake {
            now_ns: w.at_ns,
            this_cpu: w.this_cpu as usize,
            prev_cpu: w.prev_cpu as usize,
            ..Wake::default().with_flags(w.flags)
        };
        let wake = Wake { in_task: given.in_task.unwrap_or(wake.in_task), ..wake };
        let cpus = self.moment.cpus().len();
        let idle = u32::MAX - w.this_cpu;
        let waker_id = if w.waker == 0 { idle } else { w.waker };
        let mut waker = self.moment.waker().task(waker_id, cpus);
        let mut wakee = self.moment.wakee().task(w.wakee, cpus);
        wakee.load = given.load.unwrap_or(wakee.load);
        if !w.queued.is_empty() {
            let group = self.host.only_group();
            for cpu in 0..cpus {
                let word = w.queued.get(cpu / 64).copied().unwrap_or(0);
                self.host.set_queued(group, cpu, word >> (cpu % 64) & 1 != 0);
            }
            wakee.set_group(Some(group));
        }
        let affinity = self.moment.affinity().unwrap_or(&self.all);
        self.host.select(&policy, &wake, &mut waker, &mut wakee, affinity)
    }
}

/// Asks about every wake-up of a recording, on `jobs` threads. The file is read once, in the memory
/// of a few blocks; the sums are the same with any number of threads.
///
/// # Errors
/// Returns an error when the recording is damaged: the sums of the blocks before the damage are not
/// returned, since a table of an unknown part says nothing.
pub fn replay<R: Read>(
    reader: &mut Reader<R>,
    topology: &Arc<Topology>,
    model: Policy,
    other: Option<Policy>,
    jobs: usize,
) -> Result<Outcome, FormatError> {
    let hz = reader.header().hz;
    let begin = || (Replay::new(topology, hz, model, other), Outcome::default());
    let parts = in_parallel(reader, jobs, begin, |(replay, sum), block| {
        sum.add(&replay.block(block, |_| {})?);
        Ok(())
    })?;
    let mut sum = Outcome::default();
    parts.iter().for_each(|(_, part)| sum.add(part));
    Ok(sum)
}
