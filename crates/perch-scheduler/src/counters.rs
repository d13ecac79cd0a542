// SPDX-License-Identifier: GPL-2.0-or-later
//! The counts of the BPF program, read from its arena.

use std::collections::BTreeMap;
use std::mem::offset_of;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use perch_policy::Reason;

use crate::stats::{Cache, GroupWaits, Waits};
use perch_plan::interface::{self, Cpu, Event, Group, NONE, WAIT_BUCKETS, WaitReason};
use perch_plan::{GroupPlaces, Places};

/// Sums over all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Time that tasks ran under the scheduler, nanoseconds.
    pub busy_ns: u64,
    /// By [`Event`].
    pub events: Vec<u64>,
    /// By [`Reason`].
    pub reasons: Vec<u64>,
    /// By [`WaitReason`]; empty where waits are not counted.
    pub waits: Vec<Waits>,
    /// By the id of the cgroup, those that are there now; empty where waits are not counted by group.
    pub groups: BTreeMap<u64, GroupWaits>,
    /// By number of the last-level cache.
    pub llcs: Vec<Cache>,
    /// The counters of the CPUs that are overloaded now.
    pub overload: Overload,
}

/// CPUs with a waiting task of the real-time band that may run elsewhere, now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overload {
    /// CPUs that are marked.
    pub cpus: u64,
    /// The counters' sum: the same, whenever nothing changes.
    pub sum: i64,
    /// The lowest counter, which must not be below 0.
    pub lowest: i64,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals {
            busy_ns: 0,
            events: vec![0; Event::ALL.len()],
            reasons: vec![0; Reason::ALL.len()],
            waits: Vec::new(),
            groups: BTreeMap::new(),
            llcs: Vec::new(),
            overload: Overload::default(),
        }
    }
}

impl Totals {
    /// Adds what `other` counted; what is not a sum over time is its alone.
    pub fn add(&mut self, other: &Totals) {
        self.busy_ns = self.busy_ns.wrapping_add(other.busy_ns);
        for (sum, count) in self.events.iter_mut().zip(&other.events) {
            *sum = sum.wrapping_add(*count);
        }
        for (sum, count) in self.reasons.iter_mut().zip(&other.reasons) {
            *sum = sum.wrapping_add(*count);
        }
        let waits = self.waits.len().max(other.waits.len());
        self.waits.resize_with(waits, Waits::default);
        for (sum, waits) in self.waits.iter_mut().zip(&other.waits) {
            sum.add(waits);
        }
        let was = std::mem::replace(&mut self.groups, other.groups.clone());
        for (id, sum) in &mut self.groups {
            if let Some(was) = was.get(id) {
                sum.add(was);
            }
        }
        let was = std::mem::replace(&mut self.llcs, other.llcs.clone());
        for (llc, was) in self.llcs.iter_mut().zip(&was) {
            llc.busy_ns = llc.busy_ns.wrapping_add(was.busy_ns);
        }
        self.overload = other.overload;
    }
}

impl Totals {
    /// Adds a CPU to its last-level cache, which may be none.
    fn count_llc(&mut self, number: u32, cpu: Cache) {
        if number == NONE {
            return;
        }
        let number = number as usize;
        if self.llcs.len() <= number {
            self.llcs.resize_with(number + 1, Cache::default);
        }
        let llc = &mut self.llcs[number];
        llc.node = cpu.node;
        llc.cpus += cpu.cpus;
        llc.busy_ns = llc.busy_ns.wrapping_add(cpu.busy_ns);
        llc.runnable += cpu.runnable;
    }
}

/// The CPUs' counters in a mapped arena, which the BPF program keeps writing.
#[derive(Debug)]
pub struct Counters {
    arena: NonNull<u8>,
    places: Places,
}

/// The id of the root group, which has no [`Group`].
pub(crate) const ROOT_GROUP: u64 = 1;

// SAFETY: the memory is only read, and by atomic loads.
unsafe impl Send for Counters {}

impl Counters {
    /// # Safety
    /// The places are of words in an arena at `arena` that stays mapped as long as the value lives.
    pub unsafe fn new(arena: NonNull<u8>, places: Places) -> Counters {
        Counters { arena, places }
    }

    /// The word at a place.
    fn word(&self, at: usize) -> u64 {
        // SAFETY: aligned and mapped ([`Counters::new`]), and only the kernel's side writes, whole
        // words.
        unsafe { AtomicU64::from_ptr(self.arena.as_ptr().add(at).cast()) }.load(Ordering::Relaxed)
    }

    /// The half word at a place.
    fn half(&self, at: usize) -> u32 {
        // SAFETY: as in [`Counters::word`].
        unsafe { AtomicU32::from_ptr(self.arena.as_ptr().add(at).cast()) }.load(Ordering::Relaxed)
    }

    /// The sums now.
    pub fn totals(&self) -> Totals {
        self.sums(false)
    }

    /// The sums of a program that has ended, which gave up its groups then: those of which memory is left
    /// are among them.
    pub fn last_totals(&self) -> Totals {
        self.sums(true)
    }

    fn sums(&self, ended: bool) -> Totals {
        let mut totals = Totals::default();
        for number in 0..self.places.nr_cpus {
            let cpu = self.places.cpus + number * size_of::<Cpu>();
            totals.count_llc(
                self.half(cpu + offset_of!(Cpu, llc)),
                Cache {
                    node: self.half(cpu + offset_of!(Cpu, node)).into(),
                    cpus: 1,
                    busy_ns: self.word(cpu + offset_of!(Cpu, busy_ns)),
                    runnable: self.half(cpu + offset_of!(Cpu, queued)).into(),
                },
            );
            let add = |sum: &mut u64, at: usize| *sum = sum.wrapping_add(self.word(cpu + at));
            add(&mut totals.busy_ns, offset_of!(Cpu, busy_ns));
            for (index, sum) in totals.events.iter_mut().enumerate() {
                add(sum, offset_of!(Cpu, events) + 8 * index);
            }
            for (index, sum) in totals.reasons.iter_mut().enumerate() {
                add(sum, offset_of!(Cpu, reasons) + 8 * index);
            }
        }
        if let Some(at) = self.places.waits {
            totals.waits = self.waits(at);
        }
        if let Some(places) = &self.places.groups {
            totals.groups = self.groups(places, ended);
        }
        let marked = self.places.overloaded.iter();
        let marked = marked.map(|&at| u64::from(self.word(at).count_ones()));
        // The lower half is the count.
        let counts = self.places.overload.iter().map(|&at| self.word(at) as i32);
        totals.overload = Overload {
            cpus: marked.sum(),
            sum: counts.clone().map(i64::from).sum(),
            lowest: counts.min().map_or(0, i64::from),
        };
        totals
    }

    /// The waits of all CPUs, of which the first CPU's are at a place.
    fn waits(&self, first: usize) -> Vec<Waits> {
        let mut sums = vec![Waits::default(); WaitReason::ALL.len()];
        for number in 0..self.places.nr_cpus {
            let at = first + number * size_of::<interface::Waits>();
            for (reason, sum) in sums.iter_mut().enumerate() {
                let ns = at + offset_of!(interface::Waits, sums_ns) + 8 * reason;
                let counts = at + offset_of!(interface::Waits, counts) + 8 * WAIT_BUCKETS * reason;
                sum.add(&self.histogram(counts, ns));
            }
        }
        sums
    }

    /// The waits of which the buckets and the sum are at these places.
    fn histogram(&self, counts: usize, ns: usize) -> Waits {
        let buckets = (0..WAIT_BUCKETS).map(|bucket| self.word(counts + 8 * bucket));
        let buckets: Vec<u64> = buckets.collect();
        Waits { count: buckets.iter().sum(), sum_ns: self.word(ns), buckets }
    }

    /// The waits of the groups that are there, or were if so `ended`, and of which a task has waited.
    fn groups(&self, places: &GroupPlaces, ended: bool) -> BTreeMap<u64, GroupWaits> {
        let slots = 0..=places.nr_groups;
        let of_slots = slots.filter_map(|slot| {
            let id = self.group(places, slot, ended)?;
            let waits = self.group_waits(places, slot);
            // The slot may have become another group's meanwhile.
            let same = self.group(places, slot, ended) == Some(id);
            (same && waits.waits.count + waits.limited > 0).then_some((id, waits))
        });
        of_slots.collect()
    }

    /// The id of the group in a slot; none if the slot is free, unless it became so as the program `ended`.
    fn group(&self, places: &GroupPlaces, slot: usize, ended: bool) -> Option<u64> {
        let Some(index) = slot.checked_sub(1) else {
            return Some(ROOT_GROUP);
        };
        let at = places.groups + index * size_of::<Group>();
        let id = self.word(at + offset_of!(Group, id));
        let lives = ended || self.half(at + offset_of!(Group, refs)) > 0;
        (lives && id != 0).then_some(id)
    }

    /// The waits of the group in a slot, over all last-level caches.
    fn group_waits(&self, places: &GroupPlaces, slot: usize) -> GroupWaits {
        let mut sum = GroupWaits::default();
        for part in 0..places.parts {
            let number = slot * places.parts + part;
            let at = places.waits + number * size_of::<interface::GroupWaits>();
            let counts = at + offset_of!(interface::GroupWaits, counts);
            let ns = at + offset_of!(interface::GroupWaits, sum_ns);
            sum.add(&GroupWaits {
                waits: self.histogram(counts, ns),
                limited: self.word(at + offset_of!(interface::GroupWaits, limited)),
                limited_ns: self.word(at + offset_of!(interface::GroupWaits, limited_ns)),
            });
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use perch_plan::idle_cpu;

    #[test]
    fn counters_are_summed_over_cpus() {
        #[repr(C)]
        struct Arena {
            cpus: [Cpu; 3],
            waits: [interface::Waits; 3],
            groups: [Group; 2],
            // Of the root group and these two, for two caches each.
            group_waits: [interface::GroupWaits; 6],
        }
        let mut cpus = [idle_cpu(); 3];
        let mut arena = Box::new(Arena {
            cpus,
            waits: [interface::Waits::zeroed(); 3],
            groups: [Group::zeroed(); 2],
            group_waits: [interface::GroupWaits::zeroed(); 6],
        });
        for (number, cpu) in cpus.iter_mut().enumerate() {
            cpu.busy_ns = 10;
            cpu.events[Event::Direct as usize] = number as u64;
            cpu.reasons[Reason::TargetIdle as usize] = 2;
            cpu.queued = 4;
            cpu.llc = [1, 1, NONE][number];
        }
        // Words that stand for a mask and two counters, of which one was lowered too often.
        cpus[2].clock = 0b1011;
        cpus[2].curr_vtime = (7 << 32) + 2;
        cpus[2].exec_start = (9 << 32) + u64::from(u32::MAX);
        let third = 2 * size_of::<Cpu>();
        let places = Places {
            cpus: 0,
            nr_cpus: 3,
            waits: Some(offset_of!(Arena, waits)),
            groups: Some(GroupPlaces {
                groups: offset_of!(Arena, groups),
                nr_groups: 2,
                waits: offset_of!(Arena, group_waits),
                parts: 2,
            }),
            overloaded: vec![third + offset_of!(Cpu, clock)],
            overload: vec![
                third + offset_of!(Cpu, curr_vtime),
                third + offset_of!(Cpu, exec_start),
            ],
        };
        arena.cpus = cpus;
        let moved = WaitReason::Moved as usize;
        for (number, waits) in arena.waits.iter_mut().enumerate() {
            waits.counts[moved][WAIT_BUCKETS - 1] = number as u64;
            waits.sums_ns[moved] = 7;
        }
        // The first is gone, and its waits do not count until the program has ended.
        arena.groups[0].id = 66;
        arena.groups[1].refs = 3;
        arena.groups[1].id = 77;
        for waits in &mut arena.group_waits[2..] {
            waits.counts[4] = 1;
            waits.sum_ns = 10_000;
            waits.limited = 2;
            waits.limited_ns = 5;
        }
        // SAFETY: as many of each as the places say, which outlive the counters.
        let counters = unsafe { Counters::new(NonNull::from(&mut *arena).cast(), places) };
        let totals = counters.totals();
        assert_eq!(totals.busy_ns, 30);
        assert_eq!(totals.events[Event::Direct as usize], 3);
        assert_eq!(totals.reasons[Reason::TargetIdle as usize], 6);
        let overload = totals.overload;
        assert_eq!((overload.cpus, overload.sum, overload.lowest), (3, 1, -1));
        let waits = &totals.waits[moved];
        assert_eq!((waits.sum_ns, waits.buckets[WAIT_BUCKETS - 1]), (21, 3));
        assert_eq!(totals.waits[WaitReason::Idle as usize].count, 0);
        let group = &totals.groups[&77];
        assert_eq!(totals.groups.len(), 1);
        assert_eq!((group.waits.buckets[4], group.waits.sum_ns), (2, 20_000));
        assert_eq!((group.limited, group.limited_ns), (4, 10));
        let last = counters.last_totals().groups;
        assert_eq!(last.keys().collect::<Vec<_>>(), [&66, &77]);
        assert_eq!(&last[&66], group);
        let llc = Cache { node: 0, cpus: 2, busy_ns: 20, runnable: 8 };
        assert_eq!(totals.llcs, [Cache::default(), llc]);
        // Those of a program before it, which counted no waits, and of one that did.
        let mut sum = Totals::default();
        sum.add(&totals);
        sum.add(&Totals::default());
        sum.add(&totals);
        assert_eq!(sum.waits[moved].sum_ns, 42);
        let mut sum = totals.clone();
        sum.groups.insert(5, group.clone());
        sum.add(&totals);
        assert_eq!(sum.groups[&77].limited, 8);
        assert_eq!(sum.groups.len(), 1, "one that is gone is forgotten");
        assert_eq!((sum.llcs[1].busy_ns, sum.llcs[1].runnable), (40, 8));
    }
}
