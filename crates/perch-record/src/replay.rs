// SPDX-License-Identifier: GPL-2.0-or-later
//! What a policy makes of the moments of a recording.

use std::io::Read;
use std::sync::Arc;

use perch_policy::{CpuMask, Host, Policy, Reason, Topology, Verdict, Wake};

use crate::cause::Cause;
use crate::format::{Block, BlockError, FormatError, Moment, Reader};
use crate::moment::{Class, Task, UNSEEN_ROWS, WakeUp};
use crate::parallel::in_parallel;

/// How far a wakee goes from where it ran last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// Nowhere.
    Same,
    /// To the other thread of its core.
    Core,
    /// Within its cluster.
    Cluster,
    /// Within its last-level cache.
    Llc,
    /// Within its node.
    Node,
    /// Farther.
    Machine,
}

impl Distance {
    /// All, nearest first.
    pub const ALL: [Distance; 6] = [
        Distance::Same,
        Distance::Core,
        Distance::Cluster,
        Distance::Llc,
        Distance::Node,
        Distance::Machine,
    ];

    /// Between two CPUs.
    pub fn between(topology: &Topology, one: usize, other: usize) -> Distance {
        let llc = |cpu| topology.llc(cpu);
        if one == other {
            Distance::Same
        } else if topology.core_span(one).contains(other) {
            Distance::Core
        } else if topology
            .cluster_span(one)
            .is_some_and(|c| c.contains(other))
        {
            Distance::Cluster
        } else if llc(one).is_some() && llc(one) == llc(other) {
            Distance::Llc
        } else if topology.node(one) == topology.node(other) {
            Distance::Node
        } else {
            Distance::Machine
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Distance::Same => "same CPU",
            Distance::Core => "core",
            Distance::Cluster => "cluster",
            Distance::Llc => "LLC",
            Distance::Node => "node",
            Distance::Machine => "machine",
        }
    }
}

/// How the choices of a policy compare with those of a reference on the same moments. Sums: those
/// of a recording's parts add up to those of the whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Wake-ups.
    pub asked: u64,
    /// Of those, the same CPU.
    pub same: u64,
    /// By the policy's reason: its choices, and how many of them are another CPU than the
    /// reference's.
    pub by_reason: [[u64; 2]; Reason::ALL.len()],
    /// By how far the choices are from where the wakee ran last: the reference's, then the policy's.
    pub by_distance: [[u64; Distance::ALL.len()]; Distance::ALL.len()],
    /// Choices of a CPU that was idle: the reference's, and the policy's.
    pub idle: [u64; 2],
    /// Likewise of a CPU that the wakee fits, with a fifth to spare.
    pub fits: [u64; 2],
    /// CPUs that the policy examined.
    pub examined: u64,
    /// What is not the same, by cause; only where the reference is a kernel.
    pub by_cause: [u64; Cause::ALL.len()],
}

impl Tally {
    fn count(&mut self, w: &WakeUp, util: u32, reference: usize, verdict: &Verdict, host: &Host) {
        let (prev, choices) = (w.prev_cpu as usize, [reference, verdict.cpu]);
        let same = verdict.cpu == reference;
        self.asked += 1;
        self.same += u64::from(same);
        let [all, others] = &mut self.by_reason[verdict.reason as usize];
        *all += 1;
        *others += u64::from(!same);
        let [was, is] = choices.map(|cpu| Distance::between(host.topology(), prev, cpu));
        self.by_distance[was as usize][is as usize] += 1;
        for (i, cpu) in choices.into_iter().enumerate() {
            let room = u64::from(host.cpu(cpu).capacity) * 1024;
            self.idle[i] += u64::from(host.is_idle(cpu));
            self.fits[i] += u64::from(u64::from(util) * 1280 < room);
        }
        self.examined += u64::from(verdict.examined);
    }

    fn add(&mut self, other: &Tally) {
        let pair = |sum: &mut [u64], more: &[u64]| {
            sum.iter_mut()
                .zip(more)
                .for_each(|(sum, more)| *sum += more);
        };
        self.asked += other.asked;
        self.same += other.same;
        self.examined += other.examined;
        pair(
            self.by_reason.as_flattened_mut(),
            other.by_reason.as_flattened(),
        );
        pair(
            self.by_distance.as_flattened_mut(),
            other.by_distance.as_flattened(),
        );
        pair(&mut self.idle, &other.idle);
        pair(&mut self.fits, &other.fits);
        pair(&mut self.by_cause, &other.by_cause);
    }
}

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The model of the recorded kernel against its own choices.
    pub model: Tally,
    /// The other policy against the model: what that would change.
    pub change: Option<Tally>,
    /// Wake-ups that another class than the fair one decided, or nobody.
    pub others: u64,
    /// Wake-ups that a policy would decide by what the recording does not have of them.
    pub unseen: u64,
    /// Times of the first and the last wake-up, nanoseconds.
    pub span_ns: Option<(u64, u64)>,
}

impl Outcome {
    /// Adds what was found elsewhere in the same recording.
    pub fn add(&mut self, other: &Outcome) {
        self.model.add(&other.model);
        if let Some(more) = &other.change {
            self.change.get_or_insert_default().add(more);
        }
        self.others += other.others;
        self.unseen += other.unseen;
        let spans = [self.span_ns, other.span_ns].into_iter().flatten();
        self.span_ns = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }
}

/// A wake-up with what was made of it, for those who list them.
#[derive(Debug)]
pub struct Decided<'a> {
    /// What the model and the other policy said; nothing where the fair class was not asked.
    pub verdicts: Option<(Verdict, Option<Verdict>)>,
    /// Why the model chose otherwise than the kernel, if it did.
    pub cause: Option<Cause>,
    /// All that was recorded.
    pub moment: &'a Moment,
}

/// What a question has in the place of what was recorded.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) in_task: Option<bool>,
    pub(crate) load: Option<u32>,
}

/// Policies on the moments of a recording.
#[derive(Debug)]
pub struct Replay {
    pub(crate) host: Host,
    pub(crate) model: Policy,
    other: Option<Policy>,
    pub(crate) moment: Moment,
    all: CpuMask,
}

impl Replay {
    /// For a machine: the model of the kernel that was recorded, and what it is to be compared with.
    pub fn new(topology: &Arc<Topology>, model: Policy, other: Option<Policy>) -> Replay {
        let n = topology.nr_cpus();
        Replay {
            host: Host::new(topology.clone()),
            model,
            other,
            moment: Moment::new(n, topology.nr_shared()),
            all: CpuMask::full(n),
        }
    }

    /// Asks about each wake-up of a block that the fair class decided, and lets `look` see it.
    ///
    /// # Errors
    /// When the block is damaged in a way that its checksum does not show.
    pub fn block(
        &mut self,
        block: &Block,
        mut look: impl FnMut(&Decided),
    ) -> Result<Outcome, FormatError> {
        let mut outcome = Outcome::default();
        self.each(block, |replay| {
            let at_ns = replay.moment.wake_up().at_ns;
            let span = outcome.span_ns.get_or_insert((at_ns, at_ns));
            *span = (span.0.min(at_ns), span.1.max(at_ns));
            let verdicts = replay.decide(&mut outcome);
            let cause = match &verdicts {
                Some((model, _)) if model.cpu != replay.moment.wake_up().chosen as usize => {
                    let cause = replay.cause();
                    outcome.model.by_cause[cause as usize] += 1;
                    Some(cause)
                }
                _ => None,
            };
            look(&Decided {
                verdicts,
                cause,
                moment: &replay.moment,
            });
        })?;
        Ok(outcome)
    }

    /// Brings moment and host to each wake-up of a block in turn.
    pub(crate) fn each(
        &mut self,
        block: &Block,
        mut look: impl FnMut(&mut Replay),
    ) -> Result<(), FormatError> {
        let damaged = |what: BlockError| FormatError::Damaged {
            at: block.at,
            source: what.into(),
        };
        let mut cursor = block.cursor();
        cursor.begin(&mut self.moment);
        for (cpu, row) in self.moment.cpus().iter().enumerate() {
            row.put(&mut self.host, cpu);
        }
        while cursor.advance(&mut self.moment).map_err(damaged)? {
            for &cpu in self.moment.changed_cpus() {
                self.moment.cpus()[cpu as usize].put(&mut self.host, cpu as usize);
            }
            look(self);
        }
        Ok(())
    }

    /// What was recorded of the wake-up that was read last.
    pub(crate) fn moment(&self) -> &Moment {
        &self.moment
    }

    /// The machine as it was then.
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
        let (w, host) = (self.moment.wake_up(), &self.host);
        let util = self.moment.wakee()[Task::Util].min(1024) as u32;
        let chosen = w.chosen as usize;
        outcome.model.count(w, util, chosen, &model, host);
        if let Some(other) = &other {
            let change = outcome.change.get_or_insert_default();
            change.count(w, util, model.cpu, other, host);
        }
        Some((model, other))
    }

    /// Whether a policy would read what was not recorded: the slow path and the search for the CPU
    /// that fits best look at every CPU.
    fn is_unseen(&self) -> bool {
        let w = self.moment.wake_up();
        let wake = Wake::default().with_flags(w.flags);
        let everywhere = wake.fork || wake.exec;
        let unequal = || {
            self.host
                .topology()
                .asym_span(w.this_cpu as usize)
                .is_some()
        };
        w.unseen & UNSEEN_ROWS != 0 && (everywhere || unequal())
    }

    /// What a policy says to the wake-up that was read last.
    pub(crate) fn ask(&mut self, policy: Policy, given: &Given) -> Verdict {
        // The policy may change what it knows of idle cores: each question has its own.
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
        let wake = Wake {
            in_task: given.in_task.unwrap_or(wake.in_task),
            ..wake
        };
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
                self.host
                    .set_queued(group, cpu, word >> (cpu % 64) & 1 != 0);
            }
            wakee.set_group(Some(group));
        }
        let affinity = self.moment.affinity().unwrap_or(&self.all);
        self.host
            .select(&policy, &wake, &mut waker, &mut wakee, affinity)
    }
}

/// Asks about every wake-up of a recording, on `jobs` threads. The file is read once, in the memory
/// of a few blocks; the sums are the same with any number of threads.
///
/// # Errors
/// When the recording is damaged: the sums of what comes before are not returned, since a table of
/// an unknown part says nothing.
pub fn replay<R: Read>(
    reader: &mut Reader<R>,
    topology: &Arc<Topology>,
    model: Policy,
    other: Option<Policy>,
    jobs: usize,
) -> Result<Outcome, FormatError> {
    let begin = || (Replay::new(topology, model, other), Outcome::default());
    let parts = in_parallel(reader, jobs, begin, |(replay, sum), block| {
        sum.add(&replay.block(block, |_| {})?);
        Ok(())
    })?;
    let mut sum = Outcome::default();
    parts.iter().for_each(|(_, part)| sum.add(part));
    Ok(sum)
}
