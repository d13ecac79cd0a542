// SPDX-License-Identifier: GPL-2.0-or-later
//! Advice: the effect that the mechanisms would have on a recording's machine. Every mode that the
//! recorded kernel does not have is asked about every wake-up, and the sums come with a measure of
//! how far they can be trusted.
//!
//! A replay knows which CPU would have been chosen, and nothing of the consequences. The advice
//! therefore judges the places where tasks would land: near the CPU that the kernel aims at, on an
//! idle one, on one that they fit. docs/recordings.md has the reasons for each threshold.

mod slices;
mod spread;

use std::io::Read;
use std::sync::Arc;

use perch_policy::{Mechanism, Mode, Modes, Policy, Premise, ReasonClass, Recording, Topology};

use crate::format::{FormatError, Reader};
use crate::moment::{Class, Task};
use crate::parallel::in_parallel;
use crate::replay::{DomainDistance, Given, Replay};

pub use slices::{LEAST_SLICES, Net, Share};
pub use spread::Spread;

use slices::Slices;
use spread::{MOST_LLCS, Seen};

/// A mechanism that changes fewer wake-ups than this share is not worth a trial. The largest change
/// that any of the mechanisms' sources publishes is about twofold, where nearly every wake-up was
/// decided otherwise: one in a hundred would then be worth one per cent, which no benchmark of
/// theirs tells from another run.
pub const NOTABLE: f64 = 0.01;

/// Columns of the slices that do not belong to a policy.
mod at {
    /// Wake-ups that the fair class decided.
    pub const ASKED: usize = 0;
    /// Wake-ups whose choice the model explains.
    pub const EXPLAINED: usize = 1;
    /// Wake-ups whose choice the model does not explain.
    pub const UNEXPLAINED: usize = 2;
    /// Explained wake-ups whose wakee went to an idle CPU.
    pub const IDLE: usize = 3;
    /// Explained wake-ups whose wakee went to the CPU where it ran last.
    pub const STAYED: usize = 4;
    /// Explained wake-ups where the model found nothing idle.
    pub const BUSY: usize = 5;
    /// The number of these columns.
    pub const COLUMNS: usize = 6;
}

/// The columns of a policy, which stand behind those above.
mod change {
    pub const CHANGED: usize = 0;
    pub const NEARER: usize = 1;
    pub const FARTHER: usize = 2;
    pub const TO_IDLE: usize = 3;
    pub const FROM_IDLE: usize = 4;
    pub const TO_FIT: usize = 5;
    pub const FROM_FIT: usize = 6;
    pub const COLUMNS: usize = 7;
}

/// The effect on the wake-ups when a mechanism gets another mode. All shares are of the wake-ups
/// whose choice the model explains: for these the kernel's own choice is known to be the model's.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The mode that the mechanism would get.
    pub mode: Mode,
    /// The share of wake-ups whose wakee would go to another CPU.
    pub changed: Share,
    /// The wake-ups whose wakee would land nearer to the CPU that the kernel aims at, the waker's
    /// or the wakee's last one (`wake_affine`), less those that would land farther. Only pairs of
    /// CPUs that are both idle or both busy count: to wait for a near CPU is no gain.
    pub near: Net,
    /// Choices of an idle CPU instead of a busy one, less the reverse.
    pub idle: Net,
    /// Choices of a CPU that the task fits instead of one that it does not, less the reverse.
    pub fits: Net,
    /// The verdict that sums up the change in one word.
    pub verdict: Verdict,
}

/// The worth of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The change is certainly too small to matter.
    Nothing,
    /// The change may or may not be too small to matter.
    Unsure,
    /// The change is not larger than the share of the kernel's choices that the model does not
    /// explain.
    Unclear,
    /// The change is better in something that is recorded, and worse in nothing.
    Better,
    /// The change is worse in something that is recorded, and better in nothing.
    Worse,
    /// The change is better in one thing and worse in another.
    Trade,
    /// The change leads to other CPUs, which are neither better nor worse by the recorded figures.
    Sideways,
}

impl Verdict {
    /// Returns the verdict's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Nothing => "nothing",
            Verdict::Unsure => "unsure",
            Verdict::Unclear => "unclear",
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::Trade => "trade",
            Verdict::Sideways => "sideways",
        }
    }

    /// Judges a change by the share that changes, by the share that the model leaves unexplained,
    /// and by the gains. Where all CPUs have one capacity, `fits` is none: the capacity that
    /// interrupts leave is no matter of fitting.
    fn of(changed: &Share, unexplained: f64, nets: [&Net; 2], fits: Option<&Net>) -> Verdict {
        let nets = || nets.into_iter().chain(fits);
        let better = nets().any(|net| net.low > 0.0);
        let worse = nets().any(|net| net.high < 0.0);
        match (better, worse) {
            _ if changed.high < NOTABLE => Verdict::Nothing,
            _ if changed.low < NOTABLE => Verdict::Unsure,
            _ if changed.low <= unexplained => Verdict::Unclear,
            (true, true) => Verdict::Trade,
            (true, false) => Verdict::Better,
            (false, true) => Verdict::Worse,
            (false, false) => Verdict::Sideways,
        }
    }
}

/// The features of a machine that mechanisms can act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The mechanisms whose premise the machine has: those that can choose another CPU on it at all
    /// (docs/testing.md#properties, P3), and `overload`, which chooses none, if its counters can be
    /// more than one.
    pub acts: Vec<Mechanism>,
    /// True where some domain has CPUs of different capacities.
    pub asymmetric: bool,
}

impl Shape {
    /// Returns the shape of a machine.
    pub fn of(topology: &Topology) -> Shape {
        let acts = |m: &Mechanism| m.premise().0.holds(topology);
        Shape {
            acts: Mechanism::ALL.into_iter().filter(acts).collect(),
            asymmetric: Premise::Capacities.holds(topology),
        }
    }

    /// Returns true where a mechanism can act on this machine.
    pub fn can_act(&self, mechanism: Mechanism) -> bool {
        self.acts.contains(&mechanism)
    }
}

/// The advice that a recording gives about the mechanisms.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The machine's shape.
    pub shape: Shape,
    /// The modes of the mechanisms that the recorded kernel has.
    pub kernel: Modes,
    /// Wake-ups that the fair class decided.
    pub asked: u64,
    /// Wake-ups that the real-time class decided.
    pub real_time: u64,
    /// Times of the first and the last wake-up, nanoseconds.
    pub span_ns: Option<(u64, u64)>,
    /// The number of slices of time with wake-ups in them, and the length of each, nanoseconds.
    pub slices: (usize, u64),
    /// The share of choices that the model explains. It is `None`, as are all other shares, when
    /// the recording is too short for more than counts.
    pub explained: Option<Share>,
    /// The share of wake-ups that, by the model, found nothing idle.
    pub busy: Option<Share>,
    /// The effect of each mode that the kernel does not have, of mechanisms that can act and whose
    /// state is recorded.
    pub changes: Vec<Change>,
    /// The spread of processes over caches; `None` on machines with more than 64 last-level caches.
    pub spread: Option<Spread>,
}

/// The counts of one thread.
struct Part {
    replay: Replay,
    slices: Slices,
    seen: Seen,
    spread: Spread,
    real_time: u64,
    span_ns: Option<(u64, u64)>,
}

/// Returns the modes to ask about: those that the kernel does not have, of mechanisms that can act
/// and whose state every recording holds.
fn candidates(shape: &Shape, kernel: Modes) -> Vec<(Mechanism, Mode, Modes)> {
    let mut candidates = Vec::new();
    for (mechanism, has) in kernel.iter() {
        let replayed = mechanism.recording().0 == Recording::Kernel && shape.can_act(mechanism);
        let others = mechanism.modes().iter().filter(|&&m| replayed && m != has);
        for &mode in others {
            let mut modes = kernel;
            modes[mechanism] = mode;
            candidates.push((mechanism, mode, modes));
        }
    }
    candidates
}

/// Asks about every wake-up of a recording, on `jobs` threads, in the memory of a few blocks;
/// `model` is the model of the recorded kernel. The result does not depend on `jobs`.
///
/// # Errors
/// Returns an error when the recording is damaged.
pub fn advise<R: Read>(
    reader: &mut Reader<R>,
    topology: &Arc<Topology>,
    model: Policy,
    jobs: usize,
) -> Result<Advice, FormatError> {
    let shape = Shape::of(topology);
    let asymmetric = shape.asymmetric;
    let candidates = candidates(&shape, model.modes());
    let others: Vec<Policy> =
        (candidates.iter()).map(|&(_, _, modes)| Policy::new(model.era(), modes)).collect();
    let columns = at::COLUMNS + change::COLUMNS * others.len();
    let hz = reader.header().hz;
    let begin = || Part {
        replay: Replay::new(topology, hz, model, None),
        slices: Slices::new(columns),
        seen: Seen::default(),
        spread: Spread::default(),
        real_time: 0,
        span_ns: None,
    };
    let parts = in_parallel(reader, jobs, begin, |part, block| {
        let Part { replay, slices, seen, spread, real_time, span_ns } = part;
        replay.each(block, |replay| {
            let w = replay.moment().wake_up();
            let (class, at_ns) = (w.class, w.at_ns);
            let span = span_ns.get_or_insert((at_ns, at_ns));
            *span = (span.0.min(at_ns), span.1.max(at_ns));
            *real_time += u64::from(class == Class::RealTime);
            if class == Class::Fair {
                count(replay, model, &others, slices.row(at_ns));
                let moment = replay.moment();
                seen.take(moment.wake_up(), moment.wakee(), replay.host());
            }
        })?;
        spread.add(&seen.sum(topology));
        Ok(())
    })?;
    let mut slices = Slices::new(columns);
    let mut spread = Spread::default();
    let mut real_time = 0;
    let mut span_ns: Option<(u64, u64)> = None;
    for part in parts {
        slices.add(part.slices);
        spread.add(&part.spread);
        real_time += part.real_time;
        let spans = [span_ns, part.span_ns].into_iter().flatten();
        span_ns = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    }
    let usual = usual(&slices);
    let explained = slices.share(at::EXPLAINED, at::ASKED, usual);
    let unexplained = explained.map_or(1.0, |share| 1.0 - share.low);
    let of = |i: usize| at::COLUMNS + i * change::COLUMNS;
    let changes = candidates.iter().enumerate();
    let changes = changes.filter_map(|(i, &(mechanism, mode, _))| {
        let net = |plus, minus| slices.net(of(i) + plus, of(i) + minus, at::EXPLAINED);
        let changed = slices.share(of(i) + change::CHANGED, at::EXPLAINED, usual)?;
        let near = net(change::NEARER, change::FARTHER)?;
        let idle = net(change::TO_IDLE, change::FROM_IDLE)?;
        let fits = net(change::TO_FIT, change::FROM_FIT)?;
        Some(Change {
            mechanism,
            mode,
            changed,
            near,
            idle,
            fits,
            verdict: Verdict::of(
                &changed,
                unexplained,
                [&near, &idle],
                asymmetric.then_some(&fits),
            ),
        })
    });
    Ok(Advice {
        shape,
        kernel: model.modes(),
        asked: slices.sum(at::ASKED),
        real_time,
        span_ns,
        slices: (slices.len(), slices.slice_ns()),
        explained,
        busy: slices.share(at::BUSY, at::EXPLAINED, usual),
        changes: changes.collect(),
        spread: (topology.nr_llcs() <= MOST_LLCS).then_some(spread),
    })
}

/// Returns how bunched wake-ups usually are in this recording, for events that are too rare to show
/// their own bunches. It is the greatest bunching of three things that happen in every recording.
fn usual(slices: &Slices) -> f64 {
    let common =
        [(at::UNEXPLAINED, at::ASKED), (at::IDLE, at::EXPLAINED), (at::STAYED, at::EXPLAINED)];
    let bunches = common.iter().filter_map(|&(n, of)| slices.bunch(n, of));
    bunches.fold(1.0, f64::max)
}

/// Counts each policy's answer to the wake-up that was read last.
fn count(replay: &mut Replay, model: Policy, others: &[Policy], row: &mut [u64]) {
    let verdict = replay.ask(model, &Given::default());
    let w = replay.moment().wake_up();
    let (prev, chosen) = (w.prev_cpu as usize, w.chosen as usize);
    row[at::ASKED] += 1;
    if verdict.cpu != chosen {
        row[at::UNEXPLAINED] += 1;
        return;
    }
    row[at::EXPLAINED] += 1;
    row[at::IDLE] += u64::from(replay.host().is_idle(chosen));
    row[at::STAYED] += u64::from(chosen == prev);
    row[at::BUSY] += u64::from(verdict.reason.class() == ReasonClass::Queued);
    let util = replay.moment().wakee()[Task::Util].min(1024);
    for (i, &policy) in others.iter().enumerate() {
        let cpu = replay.ask(policy, &Given::default()).cpu;
        if cpu == chosen {
            continue;
        }
        let row = &mut row[at::COLUMNS + i * change::COLUMNS..][..change::COLUMNS];
        let host = replay.host();
        let far = |cpu| DomainDistance::between(host.topology(), verdict.target, cpu);
        let fits = |cpu| util * 1280 < u64::from(host.cpu(cpu).capacity) * 1024;
        let (is, was) = (far(cpu), far(chosen));
        row[change::CHANGED] += 1;
        let alike = host.is_idle(cpu) == host.is_idle(chosen);
        row[change::NEARER] += u64::from(alike && is < was);
        row[change::FARTHER] += u64::from(alike && is > was);
        let pair = |is: bool, was: bool| [u64::from(is && !was), u64::from(was && !is)];
        let [to, from] = pair(host.is_idle(cpu), host.is_idle(chosen));
        row[change::TO_IDLE] += to;
        row[change::FROM_IDLE] += from;
        let [to, from] = pair(fits(cpu), fits(chosen));
        row[change::TO_FIT] += to;
        row[change::FROM_FIT] += from;
    }
}
