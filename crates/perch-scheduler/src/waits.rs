// SPDX-License-Identifier: GPL-2.0-or-later
//! How long tasks wait for a CPU, and between which CPUs they move, under whatever scheduler the
//! kernel has: those of a command for `perch lab run --waits`, others for `perch trial`. The BPF side
//! is bpf/waits.bpf.c.

use std::io::{self, Read};

use bytemuck::{Pod, Zeroable};
use libbpf_rs::{Error, Iter, Link, MapCore, MapFlags, Object, ObjectBuilder, num_possible_cpus};

use crate::error::SchedulerError;
use crate::histogram::{BYTES, Histogram};
use crate::program::{hear, heard};
use crate::refusal::RefusedError;

/// bpf/waits.bpf.c, compiled by build.rs.
static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/waits.bpf.o"));

/// The most CPUs that the program tells apart.
const MAX_CPUS: usize = 1024;

/// The most cgroups whose tasks a [`Watch`] can count.
pub const MAX_GROUPS: usize = 16;

/// The program that gives records to the tasks that are there, which runs once.
const BEGIN: &str = "waits_begin";

/// The tasks that a [`Watch`] counts.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Those that descend from this process from now on, without the process itself.
    Descendants,
    /// Those of user space that do not descend from this process, nor belong to it: all, or where
    /// cgroups are named, at most [`MAX_GROUPS`], those in them and below them.
    Others(&'a [Group]),
}

/// A cgroup of the second hierarchy, as the kernel knows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct Group {
    /// The inode of its folder.
    pub id: u64,
    /// Its distance from the root, whose own is 0.
    pub level: u64,
}

/// `struct waits_scope`.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct ScopeImage {
    root: u32,
    others: u32,
    nr_groups: u32,
    pad: u32,
    groups: [Group; MAX_GROUPS],
}

impl Scope<'_> {
    fn image(self) -> Result<ScopeImage, Error> {
        let mut image = ScopeImage::zeroed();
        image.root = std::process::id();
        if let Scope::Others(groups) = self {
            image.others = 1;
            image.nr_groups = groups.len() as u32;
            let Some(places) = image.groups.get_mut(..groups.len()) else {
                let words = format!("{} cgroups, and at most {MAX_GROUPS} can count", groups.len());
                return Err(io::Error::other(words).into());
            };
            places.copy_from_slice(groups);
        }
        Ok(image)
    }
}

/// What a wait begins with, in the program's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The task enters a queue because it was woken.
    AfterWakeup = 0,
    /// Its waker begins to wake it: before a CPU is chosen, and told.
    AfterWaking = 1,
    /// It leaves a CPU though it could go on running.
    AfterPreemption = 2,
}

/// Why a task runs on another CPU than before, or on the same, in the program's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It was woken.
    Woken = 0,
    /// It was preempted and waited in a queue.
    Preempted = 1,
    /// It was forked; the CPU before is that of its parent.
    Forked = 2,
}

const WAITS: usize = 3;
const CAUSES: usize = 3;

/// Counts as long as it lives.
pub struct Watch {
    object: Object,
    _links: Vec<Link>,
}

/// What a [`Watch`] counted.
pub struct Counted {
    /// All buckets of each kind of wait, as the program has them.
    sums: Vec<u64>,
    /// The same, to ask about.
    waits: Vec<Histogram>,
    /// By cause, the CPU before and the CPU now.
    moves: Vec<u64>,
    cpus: usize,
}

fn failed(source: Error) -> SchedulerError {
    let what = "the BPF programs that watch tasks wait".to_string();
    let heard = heard();
    RefusedError::Load { what, source, heard }.into()
}

impl Watch {
    /// Counts tasks from now on. A task that is already there counts from the next time that it
    /// leaves a CPU.
    ///
    /// # Errors
    /// [`SchedulerError::Refused`] when the kernel does not take the programs.
    pub fn begin(scope: Scope<'_>) -> Result<Watch, SchedulerError> {
        hear();
        Watch::load(scope).map_err(failed)
    }

    fn load(scope: Scope<'_>) -> Result<Watch, Error> {
        let image = scope.image()?;
        let cpus = num_possible_cpus()?;
        if cpus > MAX_CPUS {
            let words = format!("{cpus} CPUs, and no more than {MAX_CPUS} are told apart");
            return Err(io::Error::other(words).into());
        }
        let mut open = ObjectBuilder::default().name("waits")?.open_memory(OBJECT)?;
        for mut map in open.maps_mut() {
            match map.name().to_str() {
                Some("cpus") => map.set_max_entries(cpus as u32)?,
                Some(".rodata.scope") => {
                    let bytes = bytemuck::bytes_of(&image);
                    let value = map.initial_value_mut();
                    let value = value.filter(|value| value.len() == bytes.len());
                    let value = value.ok_or_else(|| absent(".rodata.scope of that size"))?;
                    value.copy_from_slice(bytes);
                }
                _ => {}
            }
        }
        let others = matches!(scope, Scope::Others(_));
        for mut program in open.progs_mut() {
            if program.name() == BEGIN {
                program.set_autoload(others);
            }
        }
        let object = open.load()?;
        let mut links = Vec::new();
        for program in object.progs_mut().filter(|program| program.name() != BEGIN) {
            links.push(program.attach()?);
        }
        // Now that forked tasks get their records, so that none is missed between the two.
        if others {
            let mut programs = object.progs_mut();
            let program = programs.find(|program| program.name() == BEGIN);
            let link = program.ok_or_else(|| absent(BEGIN))?.attach()?;
            Iter::new(&link)?.read_to_end(&mut Vec::new())?;
        }
        Ok(Watch { object, _links: links })
    }

    /// What was counted so far.
    ///
    /// # Errors
    /// [`SchedulerError::Refused`] when the kernel does not hand it out.
    pub fn counted(&self) -> Result<Counted, SchedulerError> {
        self.read().map_err(failed)
    }

    fn read(&self) -> Result<Counted, Error> {
        let map = self.object.maps().find(|map| map.name() == "cpus");
        let map = map.ok_or_else(|| absent("map of CPUs"))?;
        let values = (0..map.max_entries()).map(|cpu: u32| {
            let value = map.lookup(&cpu.to_ne_bytes(), MapFlags::ANY)?;
            value.ok_or_else(|| absent("entry of a CPU"))
        });
        Ok(Counted::new(&values.collect::<Result<Vec<_>, _>>()?))
    }
}

fn absent(what: &str) -> Error {
    io::Error::other(format!("the object has no {what}")).into()
}

impl Counted {
    /// Sums up each CPU's `struct waits_cpu`.
    fn new(values: &[Vec<u8>]) -> Counted {
        let words = |value: &[u8]| -> Vec<u64> {
            let words = value.chunks_exact(8);
            let words = words.map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes")));
            words.collect()
        };
        let cpus = values.len();
        let mut sums = vec![0u64; WAITS * BYTES / 8];
        let mut moves = vec![0; CAUSES * cpus * cpus];
        for (to, value) in values.iter().enumerate() {
            let words = words(value);
            let (waits, from) = words.split_at(sums.len());
            for (sum, word) in sums.iter_mut().zip(waits) {
                *sum += word;
            }
            for (cause, row) in from.chunks_exact(MAX_CPUS).enumerate() {
                for (before, count) in row[..cpus].iter().enumerate() {
                    moves[(cause * cpus + before) * cpus + to] = *count;
                }
            }
        }
        Counted::of(sums, moves, cpus)
    }

    fn of(sums: Vec<u64>, moves: Vec<u64>, cpus: usize) -> Counted {
        let bytes: &[u8] = bytemuck::cast_slice(&sums);
        let waits = bytes.chunks_exact(BYTES).map(Histogram::new).collect();
        Counted { sums, waits, moves, cpus }
    }

    /// What was counted since the same [`Watch`] had counted `before`.
    #[must_use]
    pub fn since(&self, before: &Counted) -> Counted {
        let less = |now: &[u64], before: &[u64]| {
            let pairs = now.iter().zip(before);
            pairs.map(|(now, before)| now.saturating_sub(*before)).collect()
        };
        Counted::of(less(&self.sums, &before.sums), less(&self.moves, &before.moves), self.cpus)
    }

    /// How many waits of this kind ended.
    pub fn waits(&self, wait: Wait) -> u64 {
        self.waits[wait as usize].runs()
    }

    /// Their mean, in ns; 0 without any.
    pub fn mean_ns(&self, wait: Wait) -> f64 {
        self.waits[wait as usize].mean()
    }

    /// The time, in ns to 1 in 128, that this part of them, more than 0 and at most 1, did not
    /// exceed; 0 without any.
    pub fn quantile_ns(&self, wait: Wait, part: f64) -> f64 {
        self.waits[wait as usize].quantile(part)
    }

    /// How often a task ran on a CPU after it had run on another, or on the same: the CPU before,
    /// the CPU now and the count, which is never 0.
    pub fn moves(&self, cause: Cause) -> impl Iterator<Item = (usize, usize, u64)> {
        let pairs = self.cpus * self.cpus;
        let moves = &self.moves[cause as usize * pairs..][..pairs];
        let moves = moves.iter().enumerate().filter(|(_, count)| **count > 0);
        moves.map(|(at, count)| (at / self.cpus, at % self.cpus, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU's counts: `(word, count)`.
    fn cpu(words: &[(usize, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; WAITS * BYTES + CAUSES * MAX_CPUS * 8];
        for (at, count) in words {
            bytes[8 * at..8 * at + 8].copy_from_slice(&count.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn a_stretch_is_counted_without_what_was_before() {
        let moves = WAITS * BYTES / 8;
        let before = Counted::new(&[cpu(&[(200, 3), (201, 300), (moves, 2)])]);
        let after = Counted::new(&[cpu(&[(200, 4), (201, 401), (20, 1), (21, 10), (moves, 7)])]);
        let found = after.since(&before);
        assert_eq!(found.waits(Wait::AfterWakeup), 2);
        assert_eq!(found.quantile_ns(Wait::AfterWakeup, 0.5), 10.0);
        assert_eq!(found.quantile_ns(Wait::AfterWakeup, 1.0), 101.0);
        assert_eq!(found.moves(Cause::Woken).collect::<Vec<_>>(), [(0, 0, 5)]);
    }

    #[test]
    fn more_cgroups_than_there_is_room_for_are_refused() {
        let group = Group { id: 7, level: 1 };
        let image = Scope::Others(&[group; MAX_GROUPS]).image().unwrap();
        assert_eq!((image.others, image.nr_groups), (1, 16));
        let refused = Scope::Others(&[group; MAX_GROUPS + 1]).image();
        assert!(refused.is_err_and(|error| error.to_string().contains("17 cgroups")));
    }

    #[test]
    fn cpus_are_summed_up() {
        let (preempted, moves) = (2 * BYTES / 8, WAITS * BYTES / 8);
        let first = cpu(&[(200, 3), (201, 300), (moves, 2), (moves + 1, 5)]);
        let second = cpu(&[
            (200, 1),
            (201, 101),
            (preempted + 20, 1),
            (preempted + 21, 10),
            (moves + MAX_CPUS, 7),
        ]);
        let counted = Counted::new(&[first, second]);
        assert_eq!(counted.waits(Wait::AfterWakeup), 4);
        assert_eq!(counted.waits(Wait::AfterWaking), 0);
        assert_eq!(counted.mean_ns(Wait::AfterWakeup), 100.25);
        assert_eq!(counted.quantile_ns(Wait::AfterPreemption, 0.5), 10.0);
        let moves = |cause| counted.moves(cause).collect::<Vec<_>>();
        assert_eq!(moves(Cause::Woken), [(0, 0, 2), (1, 0, 5)]);
        assert_eq!(moves(Cause::Preempted), [(0, 1, 7)]);
        assert_eq!(moves(Cause::Forked), []);
    }
}
