// SPDX-License-Identifier: GPL-2.0-or-later
//! The choice of a real-time task's CPU (`select_task_rq_rt` and `find_lowest_rq` of 6.12).

use perch_policy::SetView;

use crate::class::RunQueues;
use crate::class::effect::Effect;
use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;
use crate::observe::RtStep;

impl RunQueues {
    /// Returns whether `cpu` has the capacity that `task` asks for; every CPU does where CPUs are
    /// equal.
    fn fits_rt(&self, task: TaskId, cpu: usize) -> bool {
        let asked = self.tasks[task].rt.capacity;
        !self.unequal || self.cpus[cpu].capacity >= asked
    }

    /// Chooses a CPU for a task that `here` wakes or forks and that ran on `prev` last. Returns it,
    /// and how it was found.
    #[inline(never)]
    pub(in crate::class) fn choose_rt(
        &mut self,
        task: TaskId,
        prev: usize,
        here: usize,
    ) -> (usize, RtStep) {
        let allowed = self.allowed(task);
        if !allowed.contains(prev) || allowed.weight() == 1 {
            let node = self.topology.node(prev);
            let near = |&cpu: &usize| self.topology.node(cpu) == node;
            let cpu = allowed.iter().find(near).or(allowed.iter().next());
            return (cpu.unwrap_or(prev), RtStep::Allowed);
        }
        let priority = self.tasks[task].rt.priority;
        let taken = self.cpus[prev].current.is_some_and(|current| {
            let running = self.tasks[current].rt.priority;
            running > 0 && (self.allowed(current).weight() < 2 || running >= priority)
        });
        if !taken && self.fits_rt(task, prev) {
            return (prev, RtStep::Stay);
        }
        let Some(target) = self.find_lowest(task, here) else {
            return (prev, RtStep::Stay);
        };
        let no_better = !taken && !self.fits_rt(task, target);
        if target == prev || no_better || self.cpus[target].rt.runnable.highest() >= priority {
            return (prev, RtStep::Stay);
        }
        (target, RtStep::Lowest)
    }

    /// Reads the counters of the levels below `priority`, from the lowest on, up to the level
    /// `found`.
    fn read_cpupri(&mut self, priority: u8, found: Option<u8>) {
        if !self.has_lines {
            return;
        }
        let last = found.unwrap_or(priority.saturating_sub(1));
        let mut first = 0;
        let (levels, effects) = (self.rt.as_ref().map(|rt| &rt.cpupri), &mut self.effects);
        for level in levels.into_iter().flat_map(|levels| levels.below(last + 1)) {
            effects.push(Effect::Levels(first, level));
            let mask = Field::CpupriMask(level);
            effects.push(Effect::Line(Symbol::CpupriFind, mask, Access::Load));
            first = level + 1;
        }
        if first <= last {
            effects.push(Effect::Levels(first, last));
        }
    }

    /// Returns whether any CPU that `task` may use runs a lower priority.
    pub(super) fn any_lower(&mut self, task: TaskId) -> bool {
        let priority = self.tasks[task].rt.priority;
        let any = self.rt_domain().cpupri.any_below(priority, self.allowed(task));
        self.read_cpupri(priority, None);
        any
    }

    /// Returns the best of the CPUs with the lowest priority, if that is lower than the task's: the
    /// task's own CPU, then the CPU that makes the choice, then any, in the smallest domain that
    /// has one. Among several CPUs the choice rotates.
    pub(super) fn find_lowest(&mut self, task: TaskId, here: usize) -> Option<usize> {
        if self.allowed(task).weight() == 1 {
            return None;
        }
        let priority = self.tasks[task].rt.priority;
        let mut lowest = std::mem::take(&mut self.rt_domain_mut().lowest);
        let (cpupri, allowed) = (&self.rt_domain().cpupri, self.allowed(task));
        let fits = |cpu: usize| self.fits_rt(task, cpu);
        let fitting = if self.unequal {
            cpupri.lowest(priority, allowed, Some(&fits), &mut lowest)
        } else {
            None
        };
        // That a task of a higher priority runs at all is more important than that it fits its CPU.
        let found = fitting.or_else(|| cpupri.lowest(priority, allowed, None, &mut lowest));
        self.read_cpupri(priority, found);
        let cpu = found.map(|_| self.nearest(task, here, &lowest));
        self.rt_domain_mut().lowest = lowest;
        cpu
    }

    fn nearest(&mut self, task: TaskId, here: usize, lowest: &[u64]) -> usize {
        let cpu = self.tasks[task].cpu;
        let is_in = |cpu: usize| lowest[cpu / 64] >> (cpu % 64) & 1 != 0;
        if is_in(cpu) {
            return cpu;
        }
        let near = Some(here).filter(|&here| is_in(here));
        let topology = self.topology.clone();
        for domain in topology.domains(cpu).filter(|d| d.wake_affine()) {
            let span = domain.span();
            if let Some(near) = near.filter(|&near| span.contains(near)) {
                return near;
            }
            if let Some(cpu) = self.rotate(here, |number| lowest[number] & word_of(&span, number)) {
                return cpu;
            }
        }
        near.or_else(|| self.rotate(here, |number| lowest[number])).unwrap_or(cpu)
    }

    /// Returns the next CPU of a set after the one that this CPU's last such choice fell on,
    /// beginning anew after the last.
    fn rotate(&mut self, here: usize, word: impl Fn(usize) -> u64) -> Option<usize> {
        let words = self.cpus.len().div_ceil(64);
        let from = self.cpus[here].rt.rotor + 1;
        let first = |at: usize, bits: u64| at * 64 + bits.trailing_zeros() as usize;
        let at = from / 64;
        let high = !0 << (from % 64);
        let parts = [(at, high)]
            .into_iter()
            .chain((at + 1..words).map(|at| (at, !0)))
            .chain((0..words.min(at + 1)).map(|at| (at, !0)));
        let mut parts = parts.filter(|(at, _)| *at < words);
        let found = parts.find_map(|(at, part)| {
            let bits = word(at) & part;
            (bits != 0).then(|| first(at, bits))
        })?;
        self.cpus[here].rt.rotor = found;
        Some(found)
    }
}

/// Returns a word of a set, by its number among the machine's words.
fn word_of(set: &SetView<'_>, number: usize) -> u64 {
    let at = number.checked_sub(set.first_word());
    at.and_then(|at| set.words().get(at)).copied().unwrap_or(0)
}
