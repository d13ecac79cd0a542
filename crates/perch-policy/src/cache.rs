// SPDX-License-Identifier: GPL-2.0-or-later
//! The records that the cache mechanism keeps of processes, CPUs and last-level caches, and the
//! calls by which a host reports events to it (policy/include/perch/occupancy.h and cache.h).

use crate::face::face;
use crate::ffi;
use crate::ffi::generated::{
    PERCH_CACHE_FULL_RUNNABLE, PERCH_CACHE_FULL_UTIL, PERCH_CACHE_NONE, PERCH_CACHE_REDIRECTED,
    PERCH_CACHE_RETURNED, PERCH_CACHE_UNFIT, PERCH_MOVE_FREE, PERCH_MOVE_GO, PERCH_MOVE_STAY,
    PERCH_NR_CACHE_STEPS,
};
use crate::host::{Host, TaskState};
use crate::image::Image;
use crate::mode::Mode;
use crate::policy::Policy;
use crate::topology::Topology;

face! {
/// How full a last-level cache is. Layout of `struct perch_llc_load`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LlcLoad = perch_llc_load {
    /// Sum of its CPUs' utilisation, 1024 for one that is always busy: at the last periodic
    /// balance, or now (mode perch).
    pub util: u32,
    /// Slow average of its runnable tasks (mode posted); those there or on their way now (perch).
    pub nr: u32,
    pub(crate) known: u32,
    pub(crate) capacity: u32,
    pub(crate) cores: u32,
    pub(crate) size_kib: u32,
    pub(crate) pad: [u32; 2],
}
}

impl LlcLoad {
    /// Whether anybody has looked yet: before that, mode posted takes the LLC for full.
    pub fn known(&self) -> bool {
        self.known != 0
    }
}

/// What the cache mechanism did on the way to a verdict: counted beside the reason, as the search
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

/// A process (an address space) of a [`Host`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessId(pub(crate) u32);

impl ProcessId {
    /// Its number among the host's processes, from 0.
    pub fn number(self) -> u32 {
        self.0
    }
}

/// A process and the arrays that belong to it.
#[derive(Debug)]
pub(crate) struct Process {
    raw: ffi::Process,
    occupancy: Box<[ffi::Occupancy]>,
    seats: Box<[ffi::Seat]>,
}

impl Process {
    fn new(topology: &Topology) -> Process {
        let empty = ffi::Seat {
            hot_cpu: ffi::NONE,
            occupancy: 0,
            preferred: 0,
            pad: 0,
        };
        Process {
            raw: ffi::Process {
                occupancy: std::ptr::null_mut(),
                seats: std::ptr::null_mut(),
                // No epoch has this number: the first tick looks.
                scan_epoch: u64::MAX,
                pref_cpu: ffi::NONE,
                nr_preferred: 0,
                nr_threads: 0,
                nr_running: 0,
                running_avg: 0,
                footprint_kib: 0,
            },
            occupancy: vec![ffi::Occupancy::default(); topology.nr_cpus()].into(),
            seats: vec![empty; topology.nr_llcs()].into(),
        }
    }

    /// As C reads it: valid until the process moves or goes.
    pub(crate) fn raw(&mut self) -> *mut ffi::Process {
        self.raw.occupancy = self.occupancy.as_mut_ptr();
        self.raw.seats = self.seats.as_mut_ptr();
        &mut self.raw
    }

    /// Laid out in another address space; its address.
    pub(crate) fn place(&self, image: &mut Image) -> u64 {
        let raw = ffi::Process {
            occupancy: image.push(&self.occupancy) as *mut ffi::Occupancy,
            seats: image.push(&self.seats) as *mut ffi::Seat,
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
            size_kib: topology.llc_kib(),
            ..LlcLoad::default()
        }
    };
    (0..topology.nr_llcs()).map(load).collect()
}

impl Topology {
    /// Lays out in `image` what the cache mechanism keeps of CPUs and LLCs, before anything ran:
    /// the addresses of an array of `struct perch_epoch`, one a CPU up to `possible`, and one of
    /// `struct perch_llc_load`, one an LLC.
    pub fn image_cache(&self, image: &mut Image, possible: usize) -> (u64, u64) {
        let epochs = image.push(&vec![ffi::Epoch::default(); possible.max(self.nr_cpus())]);
        (epochs, image.push(&new_loads(self)))
    }
}

impl Host {
    /// A new process, without threads.
    pub fn add_process(&mut self) -> ProcessId {
        self.processes.push(Process::new(&self.topology));
        ProcessId(self.processes.len() as u32 - 1)
    }

    /// Threads that live, and those on a CPU right now.
    pub fn threads(&mut self, process: ProcessId) -> (&mut u32, &mut u32) {
        let raw = &mut self.processes[process.0 as usize].raw;
        (&mut raw.nr_threads, &mut raw.nr_running)
    }

    /// Threads that live, and those on a CPU right now.
    pub fn nr_threads(&self, process: ProcessId) -> (u32, u32) {
        let raw = &self.processes[process.0 as usize].raw;
        (raw.nr_threads, raw.nr_running)
    }

    /// The process's working set, KiB; 0, as at first, when it is unknown.
    pub fn set_footprint(&mut self, process: ProcessId, kib: u32) {
        self.processes[process.0 as usize].raw.footprint_kib = kib;
    }

    /// The CPU that stands for the LLC that the process prefers, if it does.
    pub fn preferred_cpu(&self, process: ProcessId) -> Option<usize> {
        let cpu = self.processes[process.0 as usize].raw.pref_cpu;
        (cpu != ffi::NONE).then_some(cpu as usize)
    }

    /// The LLCs that the process prefers, ascending; more than one in mode perch only.
    pub fn preferred_llcs(&self, policy: &Policy, process: ProcessId) -> Vec<usize> {
        let known = &self.processes[process.0 as usize];
        let Some(cpu) = self.preferred_cpu(process) else {
            return Vec::new();
        };
        if policy.modes().cache != Mode::Perch {
            return self.topology.llc(cpu).into_iter().collect();
        }
        let seats = known.seats.iter().enumerate();
        let preferred = seats.filter(|(_, seat)| seat.preferred != 0);
        preferred.map(|(llc, _)| llc).collect()
    }

    /// What the process occupied of each LLC when it was last looked at: 1024 for each CPU that it
    /// had to itself.
    pub fn occupancy(&self, process: ProcessId) -> Vec<u32> {
        let seats = self.processes[process.0 as usize].seats.iter();
        seats.map(|seat| seat.occupancy).collect()
    }

    /// Has the mechanism prefer this CPU's LLC and no other, as a scan that found the process
    /// there would: for tests.
    #[doc(hidden)]
    pub fn prefer(&mut self, process: ProcessId, cpu: Option<usize>, llcs: &[usize]) {
        let known = &mut self.processes[process.0 as usize];
        known.raw.pref_cpu = cpu.map_or(ffi::NONE, |cpu| cpu as u32);
        known.raw.nr_preferred = llcs.len() as u32;
        for (llc, seat) in known.seats.iter_mut().enumerate() {
            let mut span = self.topology.llc_span(llc).iter();
            let own = cpu.filter(|&cpu| self.topology.llc(cpu) == Some(llc));
            seat.preferred = llcs.contains(&llc).into();
            seat.hot_cpu = own.or_else(|| span.next()).unwrap_or(0) as u32;
        }
    }

    /// The first process, added if there is none: for tests that know one at a time.
    #[doc(hidden)]
    pub fn only_process(&mut self) -> ProcessId {
        if self.processes.is_empty() {
            self.add_process();
        }
        ProcessId(0)
    }

    /// Sets how full an LLC is, in utilisation and tasks, or that no balance has looked at it yet:
    /// for tests.
    #[doc(hidden)]
    pub fn set_llc_load(&mut self, llc: usize, load: Option<(u32, u32)>) {
        let known = &mut self.loads[llc];
        (known.util, known.nr) = load.unwrap_or((0, 0));
        known.known = load.is_some().into();
    }

    /// How full an LLC is.
    pub fn llc_load(&self, llc: usize) -> &LlcLoad {
        &self.loads[llc]
    }

    /// How full an LLC is, for the host of mode perch to keep current.
    pub fn llc_load_mut(&mut self, llc: usize) -> &mut LlcLoad {
        self.loads[llc].known = 1;
        &mut self.loads[llc]
    }

    /// A thread of the process has run on `cpu` for `delta_ns` up to now. Slices of one CPU come
    /// in the order of time.
    pub fn account(&mut self, process: ProcessId, cpu: usize, now_ns: u64, delta_ns: u64) {
        self.call(cpu, process, |host, process, cpu| {
            // SAFETY: see `call`.
            unsafe { ffi::perch_native_account(host, process, cpu, now_ns, delta_ns) }
        });
    }

    /// At a tick on `cpu`, which runs a thread of the process: whether [`Host::scan`] is due, which
    /// the caller then owes.
    pub fn due(&mut self, policy: &Policy, process: ProcessId, cpu: usize, now_ns: u64) -> bool {
        let policy = policy.raw();
        self.call(cpu, process, |host, process, cpu| {
            // SAFETY: see `call`.
            unsafe { ffi::perch_native_due(host, policy, process, cpu, now_ns) != 0 }
        })
    }

    /// Looks at every LLC and settles which the process prefers.
    pub fn scan(&mut self, policy: &Policy, process: ProcessId, cpu: usize, now_ns: u64) {
        let policy = policy.raw();
        self.call(cpu, process, |host, process, cpu| {
            // SAFETY: see `call`.
            unsafe { ffi::perch_native_scan(host, policy, process, cpu, now_ns) }
        });
    }

    /// Periodic balance has summed up an LLC: its utilisation, and its runnable tasks.
    pub fn note_llc(&mut self, llc: usize, util: u32, nr_running: u32) {
        assert!(llc < self.loads.len());
        self.refresh();
        // SAFETY: the arrays are the host's and current, and the LLC is one of them.
        unsafe { ffi::perch_native_note(&mut self.raw, llc as u32, util, nr_running) }
    }

    /// True if a balancing pass for the LLC `dst` looks in `src` for tasks that prefer `dst`, as
    /// 7.2 does.
    pub fn llc_draws(&mut self, src: usize, dst: usize) -> bool {
        assert!(src < self.loads.len() && dst < self.loads.len());
        self.refresh();
        // SAFETY: the arrays are the host's and current, and the LLCs are among them.
        unsafe { ffi::perch_native_draws(&mut self.raw, src as u32, dst as u32) != 0 }
    }

    /// The mechanism's answer to a balancer that would move a task from the queue of `src` to
    /// `dst`.
    pub fn cache_move(
        &mut self,
        policy: &Policy,
        task: &TaskState,
        src: usize,
        dst: usize,
    ) -> Move {
        assert!(src < self.cpus().len() && dst < self.cpus().len());
        self.refresh();
        let mut task = *task;
        self.lend(&mut task);
        // SAFETY: the arrays are the host's and current, the CPUs and the process are theirs.
        let said = unsafe {
            let policy = policy.raw();
            ffi::perch_native_move(&mut self.raw, policy, &task, src as u32, dst as u32)
        };
        [Move::Free, Move::Stay, Move::Go][said as usize]
    }

    /// Calls C about a process on a CPU. The pointers lead to arrays that live as long as `self`
    /// and are as long as the topology says; C keeps none of them.
    fn call<T>(
        &mut self,
        cpu: usize,
        process: ProcessId,
        f: impl FnOnce(*mut ffi::Host, *mut ffi::Process, u32) -> T,
    ) -> T {
        assert!(cpu < self.cpus().len());
        self.refresh();
        let process = self.processes[process.0 as usize].raw();
        f(&mut self.raw, process, cpu as u32)
    }
}
