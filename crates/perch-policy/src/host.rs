// SPDX-License-Identifier: GPL-2.0-or-later
//! The native host: the arrays behind policy/hosts/native.h, and one call to the policy.

mod cache;
mod group;

use std::sync::Arc;

use bytemuck::{Zeroable, must_cast_mut};

use crate::cache::{Process, new_loads};
use crate::ffi;
use crate::image::Image;
use crate::load::{CpuState, LlcLoad};
use crate::mask::CpuMask;
use crate::policy::Policy;
use crate::task::TaskState;
use crate::topology::Topology;
use crate::wake::{Verdict, Wake};

/// A machine's state as the policy reads it. The owner keeps it as current as the kernel would.
#[derive(Debug)]
pub struct Host {
    topology: Arc<Topology>,
    idle: Box<[u64]>,
    sched_idle: Box<[u64]>,
    cpus: Box<[CpuState]>,
    /// By the number of the group's set.
    groups: Box<[ffi::Group]>,
    llcs: Box<[ffi::Llc]>,
    epochs: Box<[ffi::Epoch]>,
    loads: Box<[LlcLoad]>,
    processes: Vec<Process>,
    /// By task group, where it has something queued.
    queued: Vec<Box<[u64]>>,
    /// The addresses in it lead into heap blocks that `Host` itself owns or holds by Arc.
    raw: ffi::Host,
}

impl Host {
    /// A host whose CPUs are all idle since time 0, without tasks, and whose LLCs were just found
    /// idle.
    pub fn new(topology: Arc<Topology>) -> Host {
        let n = topology.nr_cpus();
        let mut idle = CpuMask::empty(n);
        (0..n).for_each(|cpu| idle.insert(cpu));
        let idle = idle.into_words();
        let sched_idle = vec![0; idle.len()].into_boxed_slice();
        let cpus: Box<[CpuState]> = (0..n)
            .map(|cpu| CpuState { capacity: topology.capacity(cpu), ..CpuState::default() })
            .collect();
        let groups = topology.new_groups();
        let llcs = topology.new_llcs();
        let raw = ffi::Host {
            topology: topology.raw(),
            idle: idle.as_ptr() as u64,
            sched_idle: sched_idle.as_ptr() as u64,
            // refresh() writes these before each call.
            cpus: 0,
            groups: 0,
            llcs: 0,
            epochs: 0,
            loads: 0,
        };
        Host {
            epochs: vec![ffi::Epoch::zeroed(); n].into(),
            loads: new_loads(&topology),
            processes: Vec::new(),
            queued: Vec::new(),
            topology,
            idle,
            sched_idle,
            cpus,
            groups,
            llcs,
            raw,
        }
    }

    /// The machine's shape.
    pub fn topology(&self) -> &Arc<Topology> {
        &self.topology
    }

    /// A CPU's state.
    pub fn cpu(&self, cpu: usize) -> &CpuState {
        &self.cpus[cpu]
    }

    /// A CPU's state, to be changed.
    pub fn cpu_mut(&mut self, cpu: usize) -> &mut CpuState {
        &mut self.cpus[cpu]
    }

    /// Every CPU's state.
    pub fn cpus(&self) -> &[CpuState] {
        &self.cpus
    }

    /// True if the CPU is idle and no wake-up is on its way to it.
    pub fn is_idle(&self, cpu: usize) -> bool {
        self.idle[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// The idle CPUs, by words of 64.
    pub fn idle_words(&self) -> &[u64] {
        &self.idle
    }

    /// The CPUs that run SCHED_IDLE tasks and nothing else, by words of 64.
    pub fn sched_idle_words(&self) -> &[u64] {
        &self.sched_idle
    }

    /// Sets whether the CPU is idle with no wake-up on its way to it.
    pub fn set_idle(&mut self, cpu: usize, idle: bool) {
        let bit = 1 << (cpu % 64);
        if idle {
            self.idle[cpu / 64] |= bit;
        } else {
            self.idle[cpu / 64] &= !bit;
        }
    }

    /// Sets whether the CPU runs SCHED_IDLE tasks and nothing else.
    pub fn set_sched_idle(&mut self, cpu: usize, is: bool) {
        let bit = 1 << (cpu % 64);
        if is {
            self.sched_idle[cpu / 64] |= bit;
        } else {
            self.sched_idle[cpu / 64] &= !bit;
        }
    }

    /// True if the CPU runs SCHED_IDLE tasks and nothing else.
    pub fn is_sched_idle(&self, cpu: usize) -> bool {
        self.sched_idle[cpu / 64] >> (cpu % 64) & 1 != 0
    }

    /// The capacity of a group of a domain and the largest of its CPUs', by the number of the group's
    /// set, as the kernel's periodic balance last added them up.
    pub fn group_capacity(&self, set: usize) -> (u32, u32) {
        let group = &self.groups[set];
        (group.capacity, group.max_capacity)
    }

    /// Sets the capacity of a group and the largest of its CPUs'.
    pub fn set_group_capacity(&mut self, set: usize, capacity: u32, max_capacity: u32) {
        self.groups[set] = ffi::Group { capacity, max_capacity };
    }

    /// How many CPUs a scan of this LLC, or of this set of [`Topology::nr_shared`], may examine
    /// (`nr_idle_scan`).
    pub fn nr_idle_scan(&self, llc: usize) -> u32 {
        self.llcs[llc].nr_idle_scan
    }

    /// Sets how many CPUs a scan of this LLC (or set, as above) may examine.
    pub fn set_nr_idle_scan(&mut self, llc: usize, nr: u32) {
        self.llcs[llc].nr_idle_scan = nr;
    }

    /// True if the host takes this LLC (or set, as above) to have a fully idle core.
    pub fn idle_cores(&self, llc: usize) -> bool {
        self.llcs[llc].idle_cores != 0
    }

    /// Sets whether the host takes this LLC (or set, as above) to have a fully idle core.
    pub fn set_idle_cores(&mut self, llc: usize, has: bool) {
        self.llcs[llc].idle_cores = has.into();
    }

    /// The arrays laid out in another address space, where `topology` already is.
    pub(crate) fn place(&self, topology: ffi::Topology, image: &mut Image) -> ffi::Host {
        ffi::Host {
            topology,
            idle: image.push(&self.idle),
            sched_idle: image.push(&self.sched_idle),
            cpus: image.push(&self.cpus),
            groups: image.push(&self.groups),
            llcs: image.push(&self.llcs),
            epochs: image.push(&self.epochs),
            loads: image.push(&self.loads),
        }
    }

    /// Points the task at its process and its group for a call.
    fn lend(&mut self, task: &mut TaskState) {
        let words = task.group().map(|g| self.queued[g.0 as usize].as_ptr());
        task.lend_group(words.map_or(0, |words| words as u64));
        let process = task.process();
        let raw = process.map(|p| self.processes[p.0 as usize].raw() as u64);
        task.lend(raw.unwrap_or(0));
    }

    /// Points C's view at those arrays that may have moved.
    fn refresh(&mut self) {
        self.raw.cpus = self.cpus.as_ptr() as u64;
        self.raw.groups = self.groups.as_ptr() as u64;
        self.raw.llcs = self.llcs.as_mut_ptr() as u64;
        self.raw.epochs = self.epochs.as_mut_ptr() as u64;
        self.raw.loads = self.loads.as_mut_ptr() as u64;
    }

    /// Asks the policy where `wakee` should wake up. `waker` remembers the wake-up (its flips),
    /// `wakee` its recent CPU.
    ///
    /// # Panics
    /// When a CPU number is not the machine's, `allowed` is another machine's mask or the wakee's
    /// process another host's: the caller's bug, caught before C reads past an array.
    pub fn select(
        &mut self,
        policy: &Policy,
        wake: &Wake,
        waker: &mut TaskState,
        wakee: &mut TaskState,
        allowed: &CpuMask,
    ) -> Verdict {
        let n = self.cpus.len();
        assert!(wake.this_cpu < n && wake.prev_cpu < n, "wake-up on a CPU beyond {n}");
        assert!(wakee.recent_cpu().is_none_or(|cpu| cpu < n));
        assert_eq!(allowed.words().len(), self.idle.len(), "affinity of another machine");
        wakee.allow(allowed, allowed.words().as_ptr() as u64);
        let raw_wake = wake.raw();
        let mut verdict = ffi::Verdict::zeroed();
        self.lend(wakee);
        self.refresh();
        // SAFETY: every address in `raw` leads to an array that lives as long as `self` and is as
        // long as the topology says; the CPU numbers were checked above; the affinity words stay
        // borrowed for the call; the C code keeps no pointer.
        unsafe {
            ffi::perch_native_select(
                &mut self.raw,
                policy.raw(),
                &raw_wake,
                must_cast_mut(waker),
                must_cast_mut(wakee),
                &mut verdict,
            );
        }
        wakee.end_call();
        Verdict::from_raw(&verdict).expect("the mirror is what C has (scripts/mirrors)")
    }
}
