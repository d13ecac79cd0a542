// SPDX-License-Identifier: GPL-2.0-or-later
//! What must hold between any two moments of a run, for tests: the books of every queue, every
//! task in exactly one place with exactly one reason to wake (P13 of mechanisms.md), no task
//! where it may not be (P1).

use perch_policy::{Mode, Reason, ReasonClass, Verdict};

use super::balance::Sums;
use super::mutex::Word;
use super::task::{Life, Phase};
use super::{Kernel, kind};
use crate::workload::Op;

macro_rules! hold {
    ($what:expr, $($why:tt)+) => {
        if !$what {
            return Err(format!($($why)+));
        }
    };
}

mod caches;
mod fair;
mod rt;

/// What a check remembers of the one before.
#[derive(Debug, Default)]
pub struct Auditor {
    floors: Vec<i64>,
}

impl Auditor {
    /// Walks the whole world; an error says what does not hold, and when.
    pub fn check(&mut self, kernel: &Kernel<'_>) -> Result<(), String> {
        let walk = || {
            kernel.check_places()?;
            for cpu in 0..kernel.cpus.len() {
                kernel
                    .check_cpu(cpu)
                    .map_err(|e| format!("cpu {cpu}: {e}"))?;
            }
            kernel.check_queues()?;
            kernel.check_averages()?;
            kernel.check_groups()?;
            kernel.check_rt()?;
            kernel.check_channels()?;
            kernel.check_mutexes()?;
            kernel.check_conditions()?;
            kernel.check_guests()?;
            kernel.check_caches()
        };
        let queues = kernel.queue_numbers();
        let floors: Vec<i64> = queues.map(|q| kernel.queue(q).min_vruntime).collect();
        let fell = self
            .floors
            .iter()
            .zip(&floors)
            .position(|(before, now)| now < before);
        let result = walk().and_then(|()| match fell {
            Some(queue) => Err(format!("queue {queue}: min_vruntime went back")),
            None => Ok(()),
        });
        self.floors = floors;
        result.map_err(|why| format!("at {} ns: {why}", kernel.now))
    }
}

impl Kernel<'_> {
    /// Every task is in exactly as many places as its life allows.
    fn check_places(&self) -> Result<(), String> {
        let n = self.tasks.len();
        // Per task: on timelines, running, on wake lists, waiting for a message or futex, for a
        // timer, to be forked by the clock.
        let mut places = vec![[0u32; 6]; n];
        for c in &self.cpus {
            let waiting = c.rt.runnable.iter().filter(|&(_, t)| c.current != Some(t));
            waiting.for_each(|(_, t)| places[t as usize][0] += 1);
            c.current.iter().for_each(|&t| places[t as usize][1] += 1);
            c.wake_list.iter().for_each(|&t| places[t as usize][2] += 1);
        }
        let waiting = self
            .queue_numbers()
            .flat_map(|q| self.queue(q).timeline.iter());
        let waiting = waiting.filter(|w| self.below(w.entity).is_none());
        waiting.for_each(|w| places[w.entity as usize][0] += 1);
        self.places_in_guests(&mut places);
        for channel in &self.channels {
            let asleep = channel.waiting.iter().chain(&channel.blocked);
            asleep.for_each(|&t| places[t as usize][3] += 1);
        }
        let sleepers = self.mutexes.iter().flat_map(|m| &m.waiting);
        sleepers.for_each(|&t| places[t as usize][3] += 1);
        let sleepers = self.futexes.sleepers();
        sleepers.for_each(|t| places[t as usize][3] += 1);
        let sleepers = self.conditions.iter().flat_map(|c| c.sleepers());
        sleepers.for_each(|&t| places[t as usize][3] += 1);
        for event in self.events.iter() {
            match event.kind {
                kind::TIMER => places[event.key as usize][4] += 1,
                kind::FORK => places[event.key as usize][5] += 1,
                _ => {}
            }
        }
        for (id, (t, at)) in self.tasks.iter().zip(&places).enumerate() {
            let se = &self.entities[id];
            let (queue, reasons) = ([at[0], at[1], at[2]], at[3] + at[4]);
            let expected = match t.life {
                Life::Unborn | Life::Dead => [0, 0, 0],
                Life::Asleep => [se.delayed.into(), 0, 0],
                Life::Waking => [0, 0, 1],
                Life::Queued => [1, 0, 0],
                Life::Running => [0, 1, 0],
            };
            hold!(
                queue == expected,
                "task {id} is {:?}, yet on {} timelines, {} CPUs, {} wake lists",
                t.life,
                at[0],
                at[1],
                at[2]
            );
            let wanted = u32::from(t.life == Life::Asleep);
            hold!(
                reasons == wanted,
                "task {id} is {:?} with {reasons} reasons to wake",
                t.life
            );
            hold!(
                at[5] <= u32::from(t.life == Life::Unborn),
                "task {id} will be forked again"
            );
            hold!(self.is_allowed(t), "task {id} on cpu {}", t.cpu);
            hold!(
                !se.delayed || t.life == Life::Asleep,
                "task {id} is delayed and {:?}",
                t.life
            );
            hold!(
                !self.on_queue(id as u32) || se.attached == (t.on_host() && t.rt.priority == 0),
                "task {id} is queued but not attached"
            );
        }
        Ok(())
    }

    /// The CPU is as idle as it seems, and somebody will look after what it has to do.
    fn check_cpu(&self, cpu: usize) -> Result<(), String> {
        let (c, nr) = (&self.cpus[cpu], self.nr(cpu));
        hold!(
            c.idle == c.current.is_none(),
            "idle {} with current {:?}",
            c.idle,
            c.current
        );
        let free = c.current.is_none() && nr == 0 && c.wake_list.is_empty();
        let says = self.host.is_idle(cpu);
        hold!(
            says == free,
            "idle bit {says}: current {:?}, {nr} queued, {} to come",
            c.current,
            c.wake_list.len()
        );
        let of = |kind| {
            self.events
                .iter()
                .filter(move |e| e.kind == kind && e.key as usize == cpu)
        };
        let interrupts = of(kind::IPI).count();
        let sent = usize::from(c.ipi_pending);
        hold!(
            interrupts == sent,
            "{interrupts} interrupts on their way, not {sent}"
        );
        hold!(
            c.ipi_pending || c.wake_list.is_empty(),
            "nobody tells of {:?}",
            c.wake_list
        );
        hold!(
            c.ipi_pending || nr == 0 || c.current.is_some(),
            "idles with {nr} queued"
        );
        if c.current.is_some() {
            let ends = of(kind::SEGMENT).filter(|e| e.tag == c.segment_tag).count();
            hold!(ends == 1, "{ends} ends of the running segment");
        }
        let misfit = c.misfit > 0;
        hold!(
            !misfit || self.unequal && c.current.is_some_and(|t| !self.is_stuck(t, cpu)),
            "a misfit of load {} with current {:?}",
            c.misfit,
            c.current
        );
        let state = self.host.cpu(cpu);
        hold!(
            state.nr_running == nr,
            "the policy sees {} of {nr} tasks",
            state.nr_running
        );
        hold!(
            state.nr_delayed == self.queues[cpu].nr_delayed,
            "the policy sees other delayed tasks"
        );
        let crowded = self.crowded[cpu / 64] >> (cpu % 64) & 1 != 0;
        hold!(crowded == (nr > 1), "crowded {crowded} with {nr} tasks");
        hold!(
            !crowded || self.overload,
            "crowded, but the machine is not overloaded"
        );
        Ok(())
    }

    /// The sums that the balancer keeps are those of the CPUs.
    fn check_groups(&self) -> Result<(), String> {
        let topology = self.host.topology();
        for number in 0..topology.nr_domains() {
            let domain = topology.domain(number);
            for (g, shape) in self.groups.of_domain(number).iter().enumerate() {
                let mut walked = Sums::default();
                for cpu in domain.group(g).iter() {
                    let one = Sums::of(self.host.cpu(cpu));
                    walked.running += one.running;
                    walked.load += one.load;
                    walked.runnable += one.runnable;
                    walked.util += one.util;
                }
                let kept = self.groups.sums(shape, self.host.cpus());
                hold!(
                    kept == walked,
                    "domain {number}, group {g}: {kept:?}, not {walked:?}"
                );
            }
        }
        Ok(())
    }

    /// Who waits for a message is asleep, and no message lies there that nobody was woken for;
    /// what was sent was taken or lies there; who waits for room will be woken.
    fn check_channels(&self) -> Result<(), String> {
        let mut woken = vec![0; self.channels.len()];
        let mut waking = vec![false; self.channels.len()];
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for t in self.tasks.iter().filter(|t| up(t.life)) {
            if let Op::Receive { channel } = t.program[t.pc as usize] {
                woken[channel as usize] += 1;
                waking[channel as usize] |= t.phase == Phase::Inside;
            }
        }
        for (number, channel) in self.channels.iter().enumerate() {
            let left = channel.messages.len();
            hold!(
                channel.waiting.is_empty() || left <= woken[number],
                "channel {number}: {left} messages, {} woken for them, {:?} asleep",
                woken[number],
                channel.waiting
            );
            hold!(
                channel.sent - channel.taken == left as u64,
                "channel {number}: {left} of {} messages left, {} taken",
                channel.sent,
                channel.taken
            );
            hold!(
                channel.blocked.is_empty() || left > channel.low as usize || waking[number],
                "channel {number}: {left} messages, {:?} wait for room, nobody wakes them",
                channel.blocked
            );
        }
        Ok(())
    }

    /// A mutex is free exactly when nobody holds it, and who sleeps on one will be woken: its
    /// owner sees that it is waited for, or somebody is about to wake, or was woken and will mark
    /// it again.
    fn check_mutexes(&self) -> Result<(), String> {
        let mut awake = vec![false; self.mutexes.len()];
        let up = |l: Life| matches!(l, Life::Waking | Life::Queued | Life::Running);
        for t in self.tasks.iter().filter(|t| up(t.life)) {
            match (t.program[t.pc as usize], t.phase) {
                (Op::Unlock { first, .. }, Phase::Inside)
                | (Op::Lock { first, .. }, Phase::Inside | Phase::Woken) => {
                    awake[(first + t.drawn) as usize] = true;
                }
                _ => {}
            }
        }
        for (number, m) in self.mutexes.iter().enumerate() {
            hold!(
                m.owner.is_none() == (m.word == Word::Free),
                "mutex {number} is {:?}, held by {:?}",
                m.word,
                m.owner
            );
            let dead = |&t: &u32| matches!(self.tasks[t as usize].life, Life::Unborn | Life::Dead);
            hold!(
                !m.owner.as_ref().is_some_and(dead),
                "mutex {number} is held by {:?}, which is gone",
                m.owner
            );
            hold!(
                m.waiting.is_empty() || m.word == Word::Contended || awake[number],
                "mutex {number} is {:?}, {:?} asleep, nobody will wake them",
                m.word,
                m.waiting
            );
        }
        Ok(())
    }

    /// Who sleeps on a condition variable was not signalled, or is about to be woken.
    fn check_conditions(&self) -> Result<(), String> {
        for (number, c) in self.conditions.iter().enumerate() {
            let lost = c.sleepers().iter().find(|&&task| !c.is_in_order(task));
            hold!(
                lost.is_none(),
                "condition {number}: nobody will wake {lost:?}, which was signalled"
            );
        }
        Ok(())
    }

    /// A decision held against the state in which it was made: allowed (P1), idle where its
    /// reason says so, with an empty queue of the task's group where it says that (P12), and busy only
    /// where nothing idle was at hand (P18).
    pub(super) fn check_verdict(&self, verdict: &Verdict, task: u32) -> Result<(), String> {
        let t = &self.tasks[task as usize];
        let (cpu, allowed) = (verdict.cpu, &self.affinities[t.affinity as usize]);
        hold!(
            allowed.contains(cpu),
            "cpu {cpu} is not allowed: {verdict:?}"
        );
        let idle = self.host.is_idle(cpu);
        hold!(
            idle || verdict.reason.class() != ReasonClass::Idle,
            "cpu {cpu} is busy: {verdict:?}"
        );
        if verdict.reason == Reason::EmptyQueue {
            return self.check_steered(t.group, cpu);
        }
        if verdict.reason != Reason::TargetBusy {
            return Ok(());
        }
        hold!(!idle, "cpu {cpu} is idle: {verdict:?}");
        // 3.4 knows neither clusters nor capacities.
        if self.rules.balance.by_weight {
            return Ok(());
        }
        let (topology, modes) = (self.host.topology(), self.policy.modes());
        // The capacity scan has the last word where there is one, within its budget.
        if modes.capacity != Mode::Off && topology.asym(verdict.target).is_some() {
            return Ok(());
        }
        let cluster = topology.cluster_span(verdict.target);
        if let (Mode::Perch, Some(cluster)) = (modes.cluster, cluster) {
            let over = cluster
                .iter()
                .find(|&c| self.host.is_idle(c) && allowed.contains(c));
            hold!(
                over.is_none(),
                "idle cpu {over:?} of its cluster was passed over: {verdict:?}"
            );
        }
        Ok(())
    }
}
