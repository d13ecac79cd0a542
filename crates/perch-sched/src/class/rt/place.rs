// SPDX-License-Identifier: GPL-2.0-or-later
//! The choice of a real-time task's CPU (`select_task_rq_rt` and `find_lowest_rq` of 6.12).

use perch_policy::{SetView, Wake};

use crate::core::{Sched, Waker};
use crate::hardware::{Access, Field, Symbol};
use crate::id::TaskId;
use crate::observe::{Moved, Observed, RtStep};

impl Sched<'_> {
    /// Returns whether `cpu` has the capacity that `task` asks for; every CPU does where CPUs are
    /// equal.
    fn fits_rt(&self, task: TaskId, cpu: usize) -> bool {
        let asked = self.rq.tasks[task].rt.capacity;
        !self.rq.unequal || self.host.topology().capacity(cpu) >= asked
    }

    /// Chooses a CPU for a task that `waker` wakes or forks, and records the choice.
    #[inline(never)]
    pub(super) fn place_rt(&mut self, task: TaskId, wake: &Wake, waker: Waker) -> usize {
        let prev = wake.prev_cpu;
        let prev_cpu = self.rq.tasks[task].cpu;
        let (cpu, place) = self.choose_rt(task, prev);
        let here = self.acting;
        let busy = !self.host.is_idle(cpu);
        self.note_place(task, here, prev, cpu, place);
        self.happened(Observed::RtWoken {
            task,
            waker,
            this_cpu: wake.this_cpu,
            prev_cpu,
            cpu,
            busy,
        });
        cpu
    }

    fn choose_rt(&mut self, task: TaskId, prev: usize) -> (usize, RtStep) {
        let allowed = self.allowed(task);
        if !allowed.contains(prev) || allowed.weight() == 1 {
            let node = self.host.topology().node(prev);
            let near = |&cpu: &usize| self.host.topology().node(cpu) == node;
            let cpu = allowed.iter().find(near).or(allowed.iter().next());
            return (cpu.unwrap_or(prev), RtStep::Allowed);
        }
        let priority = self.rq.tasks[task].rt.priority;
        let taken = self.rq.cpus[prev].current.is_some_and(|current| {
            let running = self.rq.tasks[current].rt.priority;
            running > 0 && (self.allowed(current).weight() < 2 || running >= priority)
        });
        if !taken && self.fits_rt(task, prev) {
            return (prev, RtStep::Stay);
        }
        let Some(target) = self.find_lowest(task) else {
            return (prev, RtStep::Stay);
        };
        let no_better = !taken && !self.fits_rt(task, target);
        if target == prev || no_better || self.rq.cpus[target].rt.runnable.highest() >= priority {
            return (prev, RtStep::Stay);
        }
        (target, RtStep::Lowest)
    }

    /// Reads the counters of the levels below `priority`, from the lowest on, up to the level
    /// `found`.
    fn read_cpupri(&mut self, priority: u8, found: Option<u8>) {
        if !self.has_lines() {
            return;
        }
        let here = self.acting;
        let last = found.unwrap_or(priority.saturating_sub(1));
        for level in 0..=last {
            self.line(
                here,
                Symbol::CpupriFind,
                Field::CpupriCount(level),
                Access::Load,
            );
            if self.rt_domain().cpupri.count(level) > 0 {
                self.line(
                    here,
                    Symbol::CpupriFind,
                    Field::CpupriMask(level),
                    Access::Load,
                );
            }
        }
    }

    /// Returns whether any CPU that `task` may use runs a lower priority.
    pub(super) fn any_lower(&mut self, task: TaskId) -> bool {
        let priority = self.rq.tasks[task].rt.priority;
        let any = self
            .rt_domain()
            .cpupri
            .any_below(priority, self.allowed(task));
        self.read_cpupri(priority, None);
        any
    }

    /// Returns the best of the CPUs with the lowest priority, if that is lower than the task's: the
    /// task's own CPU, then the CPU that makes the choice, then any, in the smallest domain that
    /// has one. Among several CPUs the choice rotates.
    pub(super) fn find_lowest(&mut self, task: TaskId) -> Option<usize> {
        if self.allowed(task).weight() == 1 {
            return None;
        }
        let priority = self.rq.tasks[task].rt.priority;
        let mut lowest = std::mem::take(&mut self.rt_domain_mut().lowest);
        let (cpupri, allowed) = (&self.rt_domain().cpupri, self.allowed(task));
        let fits = |cpu: usize| self.fits_rt(task, cpu);
        let fitting = match self.rq.unequal {
            true => cpupri.lowest(priority, allowed, Some(&fits), &mut lowest),
            false => None,
        };
        // That a task of a higher priority runs at all is more important than that it fits its CPU.
        let found = fitting.or_else(|| cpupri.lowest(priority, allowed, None, &mut lowest));
        self.read_cpupri(priority, found);
        let cpu = found.map(|_| self.nearest(task, &lowest));
        self.rt_domain_mut().lowest = lowest;
        cpu
    }

    fn nearest(&mut self, task: TaskId, lowest: &[u64]) -> usize {
        let cpu = self.rq.tasks[task].cpu;
        let is_in = |cpu: usize| lowest[cpu / 64] >> (cpu % 64) & 1 != 0;
        if is_in(cpu) {
            return cpu;
        }
        let here = Some(self.acting).filter(|&here| is_in(here));
        let topology = self.host.topology().clone();
        for domain in topology.domains(cpu).filter(|d| d.wake_affine()) {
            let span = domain.span();
            if let Some(here) = here.filter(|&here| span.contains(here)) {
                return here;
            }
            if let Some(cpu) = self.rotate(|number| lowest[number] & word_of(&span, number)) {
                return cpu;
            }
        }
        here.or_else(|| self.rotate(|number| lowest[number]))
            .unwrap_or(cpu)
    }

    /// Returns the next CPU of a set after the one that this CPU's last such choice fell on,
    /// beginning anew after the last.
    fn rotate(&mut self, word: impl Fn(usize) -> u64) -> Option<usize> {
        let words = self.host.idle_words().len();
        let from = self.rq.cpus[self.acting].rt.rotor + 1;
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
        self.rq.cpus[self.acting].rt.rotor = found;
        Some(found)
    }

    /// Tells the readers of events that `task` goes from `from` to `to`, or stays.
    pub(super) fn note_place(
        &mut self,
        task: TaskId,
        waker: usize,
        from: usize,
        to: usize,
        place: RtStep,
    ) {
        let distance = self.costs.distance(from, to);
        self.happened(Observed::RtMoved(Moved {
            task,
            this_cpu: waker,
            from,
            to,
            distance,
            step: place,
        }));
    }
}

/// Returns a word of a set, by its number among the machine's words.
fn word_of(set: &SetView<'_>, number: usize) -> u64 {
    let at = number.checked_sub(set.first_word());
    at.and_then(|at| set.words().get(at)).copied().unwrap_or(0)
}
