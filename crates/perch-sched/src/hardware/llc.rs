// SPDX-License-Identifier: GPL-2.0-or-later
//! Last-level caches: the processes' working sets that each of them holds, and the cost of running
//! a thread where its process's set is not.
//!
//! A run, and each further stretch of computing in it, uses all of the set that the threads of its
//! process share ([`SharedSet`]) and all of its own footprint. The thread then has to fetch:
//!
//! - Lines that threads elsewhere have written since: the last writer's CPU has them modified.
//!   Every run writes the written part of the set, so these are all of that part if the last run
//!   was in another LLC, and none if it was in this one. Coherence within an LLC is not charged: a
//!   message's lines pay for it, and it is a few nanoseconds beside the way to another LLC.
//! - Lines that this LLC does not hold: from another LLC that does, or from memory, whichever is
//!   nearer.
//! - Lines that the LLC holds and the CPU's own caches don't: an LLC hit each.
//! - Lines of its own that the LLC has lost and the CPU's L2 does not hold: from memory, where
//!   [`Costs::refill_ns`] had counted an LLC hit.
//!
//! The contents of a cache follow the footprint model of Thiebaut and Stone ("Footprints in the
//! Cache", 1987), as those of the private caches do here: a line that comes in takes an empty place
//! while there is one, and after that the place of any other with the same chance. So the lines
//! that all others hold fall off exponentially with the lines that came in, and the sets together
//! never exceed the cache. The fetches overlap as those of a task's own lines do.
//!
//! The model leaves out sets of lines and associativity, what the replacement policy of a real
//! cache knows, inclusion and victim caches, write-backs, prefetching, bandwidth, and the homes of
//! pages.
//!
//! All of this exists only for workloads in which the threads of some process share data. Its
//! memory is proportional to LLCs times such processes, and to the tasks; nothing grows with time.

use perch_machine::Machine;

use super::{Costs, survivors};
use crate::id::{IdVec, TaskId};

/// Stands for a process that shares nothing, and for no LLC.
const NONE: u32 = u32::MAX;

/// The data that the threads of one process share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedSet {
    /// The size of the working set that each of the process's threads uses, in KiB.
    pub kib: u32,
    /// The part of it that a thread writes rather than reads, in percent, 0 to 100.
    pub written_pct: u8,
}

/// A thread that uses its lines on a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// The task.
    pub task: TaskId,
    /// The CPU on which the task runs.
    pub cpu: usize,
    /// The number of lines of its own.
    pub footprint: u32,
    /// The CPU on which the task ran before; `None` for the first time.
    pub warm: Option<usize>,
    /// The number of lines that other tasks have used there since.
    pub others: u64,
}

/// The cost of a use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Charge {
    /// The nanoseconds of waiting.
    pub ns: u64,
    /// The number of shared lines that came into the CPU's own caches.
    pub filled: u64,
}

/// The working set that the threads of a process share.
#[derive(Clone, Copy, Debug)]
struct Set {
    lines: u64,
    written: u64,
    /// The CPU on which one of its threads last ran.
    last: Option<usize>,
}

/// One last-level cache.
#[derive(Clone, Copy, Debug)]
struct Llc {
    /// One of the LLC's CPUs: all of them are equally far from another LLC.
    cpu: usize,
    /// The number of lines that it can hold.
    capacity: u64,
    /// The number of empty places.
    free: u64,
    /// The number of lines that came in and evicted others.
    evictions: u64,
}

/// The number of lines that an LLC held when its number of evictions was `evictions`.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    lines: u64,
    evictions: u64,
}

/// The place of a task's own lines.
#[derive(Clone, Copy, Debug)]
struct Own {
    /// The set of the task's process, or `NONE`.
    set: u32,
    /// The LLC that the task used last, or `NONE`, and the lines that it held then.
    llc: u32,
    held: Held,
}

/// The last-level caches of a machine, and their contents.
#[derive(Debug)]
pub struct Llcs {
    of: Vec<u32>,
    llcs: Vec<Llc>,
    sets: Vec<Set>,
    /// The lines held, by LLC, then by set.
    held: Vec<Held>,
    tasks: IdVec<TaskId, Own>,
    /// The set that was last used on each CPU, or `NONE`.
    near: Vec<u32>,
}

impl Llcs {
    /// Returns empty caches, for tasks of these address spaces; `None` if the threads of no space
    /// share data.
    pub fn new(
        machine: &Machine,
        spaces: &[SharedSet],
        tasks: impl Iterator<Item = Option<u32>>,
    ) -> Option<Llcs> {
        let line = u64::from(machine.hardware.line_bytes.max(1));
        let mut sets = Vec::new();
        let slots: Vec<u32> = (spaces.iter())
            .map(|space| {
                let lines = (u64::from(space.kib) << 10).div_ceil(line);
                if lines == 0 {
                    return NONE;
                }
                sets.push(Set {
                    lines,
                    written: lines * u64::from(space.written_pct.min(100)) / 100,
                    last: None,
                });
                sets.len() as u32 - 1
            })
            .collect();
        if sets.is_empty() {
            return None;
        }
        let of: Vec<u32> = machine.cpus.iter().map(|cpu| cpu.llc).collect();
        let llcs: Vec<Llc> = (0..machine.llcs() as u32)
            .map(|llc| {
                let capacity = machine.llc_bytes(llc) / line;
                Llc {
                    cpu: of.iter().position(|&l| l == llc).unwrap_or(0),
                    capacity,
                    free: capacity,
                    evictions: 0,
                }
            })
            .collect();
        let slot = |space: u32| slots.get(space as usize).copied().unwrap_or(NONE);
        Some(Llcs {
            near: vec![NONE; of.len()],
            of,
            held: vec![Held::default(); llcs.len() * sets.len()],
            llcs,
            sets,
            tasks: tasks
                .map(|space| Own {
                    set: space.map_or(NONE, slot),
                    llc: NONE,
                    held: Held::default(),
                })
                .collect(),
        })
    }

    /// Notes that a task uses its process's lines and its own, and returns the cost.
    pub fn touch(&mut self, costs: &Costs, by: &Use) -> Charge {
        let shared = self.touch_shared(costs, by);
        let own = self.touch_own(costs, by);
        Charge { ns: (shared.ns + own) / costs.refills_at_once(), filled: shared.filled }
    }

    fn touch_shared(&mut self, costs: &Costs, by: &Use) -> Charge {
        let (cpu, llc) = (by.cpu, self.of[by.cpu] as usize);
        let slot = self.tasks[by.task].set;
        let near = std::mem::replace(&mut self.near[cpu], slot);
        if slot == NONE {
            return Charge::default();
        }
        let set = self.sets[slot as usize];
        let mut held = self.holds(llc, slot as usize);
        let mut modified = 0;
        if let Some(last) = set.last
            && self.of[last] as usize != llc
        {
            modified = set.written;
            held = held.min(set.lines - modified);
        }
        let missing = set.lines - held;
        let mut ns = match set.last {
            Some(last) => modified * costs.line_ns(last, cpu),
            None => 0,
        };
        if missing > modified {
            ns += self.fetch_ns(costs, slot as usize, missing - modified, cpu);
        }
        self.held[llc * self.sets.len() + slot as usize] = self.bring_in(llc, held, set.lines);
        self.sets[slot as usize].last = Some(cpu);
        let filled = if near == slot { missing } else { set.lines };
        if near != slot {
            ns += if by.warm == Some(cpu) {
                costs.lost_ns(held, by.others)
            } else {
                held * u64::from(costs.hardware.llc_hit_ns)
            };
        }
        Charge { ns, filled }
    }

    /// Returns the time to fetch lines of a set from the nearest other LLC, as far as it holds
    /// them, and the rest from memory.
    fn fetch_ns(&self, costs: &Costs, slot: usize, lines: u64, cpu: usize) -> u64 {
        let memory_ns = u64::from(costs.hardware.memory_ns.0);
        let nearest = (0..self.llcs.len())
            .filter(|&llc| llc != self.of[cpu] as usize && self.holds(llc, slot) > 0)
            .min_by_key(|&llc| costs.line_ns(self.llcs[llc].cpu, cpu));
        let (there, line_ns) = nearest.map_or((0, 0), |llc| {
            (self.holds(llc, slot).min(lines), costs.line_ns(self.llcs[llc].cpu, cpu))
        });
        there * line_ns.min(memory_ns) + (lines - there) * memory_ns
    }

    fn touch_own(&mut self, costs: &Costs, by: &Use) -> u64 {
        let footprint = u64::from(by.footprint);
        let (own, llc) = (self.tasks[by.task], self.of[by.cpu]);
        // These lines are left in the LLC that the task used last.
        let kept = match own.llc {
            NONE => 0,
            llc => self.survive(llc as usize, own.held),
        };
        let here = if own.llc == llc { kept } else { 0 };
        let mut ns = 0;
        if own.llc != NONE && kept < footprint {
            let l2 = costs.l2_lines;
            let from_l2 = survivors(footprint.min(l2), by.others, l2);
            let lost = (footprint - kept) * (footprint - from_l2) / footprint;
            let counted_ns = match by.warm {
                Some(warm) if warm != by.cpu => costs.line_ns(warm, by.cpu),
                _ => u64::from(costs.hardware.llc_hit_ns),
            };
            ns = lost * u64::from(costs.hardware.memory_ns.0).saturating_sub(counted_ns);
        }
        let held = self.bring_in(llc as usize, here, footprint);
        let own = &mut self.tasks[by.task];
        (own.llc, own.held) = (llc, held);
        ns
    }

    /// Returns how many lines of a set an LLC holds, whether they are modified elsewhere or not.
    fn holds(&self, llc: usize, slot: usize) -> u64 {
        self.survive(llc, self.held[llc * self.sets.len() + slot])
    }

    fn survive(&self, llc: usize, held: Held) -> u64 {
        let llc = &self.llcs[llc];
        survivors(held.lines, llc.evictions - held.evictions, llc.capacity)
    }

    /// Brings the missing lines into an LLC that holds `held` of `all`.
    fn bring_in(&mut self, llc: usize, held: u64, all: u64) -> Held {
        let llc = &mut self.llcs[llc];
        let missing = all - held;
        let free = llc.free.min(missing);
        llc.free -= free;
        llc.evictions += missing - free;
        // Each line that comes in may evict one that came with it, just as it may evict one of the
        // others.
        let held = held + free;
        let others = survivors(llc.capacity - held, missing - free, llc.capacity);
        Held { lines: (llc.capacity - others).min(all), evictions: llc.evictions }
    }
}

#[cfg(test)]
mod tests;
