// SPDX-License-Identifier: GPL-2.0-or-later
//! The records that the cache mechanism keeps of processes, CPUs and last-level caches
//! (policy/include/perch/occupancy.h and cache.h).

use bytemuck::Zeroable;

use crate::ffi;
use crate::ffi::generated::{
    PERCH_CACHE_FULL_RUNNABLE, PERCH_CACHE_FULL_UTIL, PERCH_CACHE_NONE, PERCH_CACHE_REDIRECTED,
    PERCH_CACHE_RETURNED, PERCH_CACHE_UNFIT, PERCH_MOVE_FREE, PERCH_MOVE_GO, PERCH_MOVE_STAY,
    PERCH_NR_CACHE_STEPS,
};
use crate::image::Image;
use crate::load::LlcLoad;
use crate::topology::Topology;

/// The cache mechanism's step on the way to a verdict: counted beside the reason, as the search
/// that follows has one of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum CacheStep {
    /// The process prefers nothing, or the wakee is there already.
    #[default]
    None = PERCH_CACHE_NONE,
    /// Aimed at the preferred LLC.
    Redirected = PERCH_CACHE_REDIRECTED,
    /// Inhibited: that LLC is over-aggregated by utilisation.
    FullUtil = PERCH_CACHE_FULL_UTIL,
    /// Inhibited: it is by runnable tasks.
    FullRunnable = PERCH_CACHE_FULL_RUNNABLE,
    /// Inhibited: no CPU there is allowed and large enough.
    Unfit = PERCH_CACHE_UNFIT,
    /// Aimed there, found no idle CPU, searched again at home.
    Returned = PERCH_CACHE_RETURNED,
}

const _: () = assert!(CacheStep::ALL.len() == PERCH_NR_CACHE_STEPS as usize);

impl CacheStep {
    /// Every step, in the order of their numbers.
    pub const ALL: [CacheStep; 6] = [
        CacheStep::None,
        CacheStep::Redirected,
        CacheStep::FullUtil,
        CacheStep::FullRunnable,
        CacheStep::Unfit,
        CacheStep::Returned,
    ];

    /// As tables and statistics name it.
    pub fn name(self) -> &'static str {
        [
            "no preference",
            "redirected",
            "inhibited by utilisation",
            "inhibited by runnable tasks",
            "preferred CPU unfit",
            "returned",
        ][self as usize]
    }
}

/// The mechanism's answer to a balancer that would move a task; `enum perch_move`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Move {
    /// Nothing.
    Free = PERCH_MOVE_FREE,
    /// It should stay: as cache-hot as tasks get.
    Stay = PERCH_MOVE_STAY,
    /// It is wanted there.
    Go = PERCH_MOVE_GO,
}

/// A process and the arrays that belong to it.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) raw: ffi::Process,
    occupancy: Box<[ffi::Occupancy]>,
    pub(crate) seats: Box<[ffi::Seat]>,
}

impl Process {
    /// A process without threads, which has occupied nothing yet.
    pub(crate) fn new(topology: &Topology) -> Process {
        let empty = ffi::Seat { occupancy: 0, hot_cpu: ffi::NONE, preferred: 0 };
        Process {
            raw: ffi::Process {
                // raw() writes these before each call.
                occupancy: 0,
                seats: 0,
                // No epoch has this number: the first tick looks.
                scan_epoch: u64::MAX,
                pref_cpu: ffi::NONE,
                nr_preferred: 0,
                nr_threads: 0,
                nr_running: 0,
                running_avg: 0,
                footprint_kib: 0,
            },
            occupancy: vec![ffi::Occupancy::zeroed(); topology.nr_cpus()].into(),
            seats: vec![empty; topology.nr_llcs()].into(),
        }
    }

    /// As C reads it: valid until the process moves or goes.
    pub(crate) fn raw(&mut self) -> *mut ffi::Process {
        self.raw.occupancy = self.occupancy.as_mut_ptr() as u64;
        self.raw.seats = self.seats.as_mut_ptr() as u64;
        &mut self.raw
    }

    /// Laid out in another address space; its address.
    pub(crate) fn place(&self, image: &mut Image) -> u64 {
        let raw = ffi::Process {
            occupancy: image.push(&self.occupancy),
            seats: image.push(&self.seats),
            ..self.raw
        };
        image.push(&[raw])
    }
}

/// The loads of all LLCs, each without a task.
pub(crate) fn new_loads(topology: &Topology) -> Box<[LlcLoad]> {
    let load = |llc| {
        let span = topology.llc_span(llc);
        let leads = |&cpu: &usize| topology.core_span(cpu).iter().next() == Some(cpu);
        LlcLoad {
            capacity: span.iter().map(|cpu| topology.capacity(cpu)).sum(),
            cores: span.iter().filter(leads).count() as u32,
            size_kib: span.iter().next().map_or(0, |cpu| topology.llc_kib(cpu)),
            ..LlcLoad::default()
        }
    };
    (0..topology.nr_llcs()).map(load).collect()
}

impl Topology {
    /// Lays out in `image` what the cache mechanism keeps of CPUs and LLCs, before anything ran:
    /// the addresses of an array of `struct perch_epoch`, one per CPU up to `possible`, and one of
    /// `struct perch_llc_load`, one per LLC.
    pub fn image_cache(&self, image: &mut Image, possible: usize) -> (u64, u64) {
        let epochs = image.push(&vec![ffi::Epoch::zeroed(); possible.max(self.nr_cpus())]);
        (epochs, image.push(&new_loads(self)))
    }
}
