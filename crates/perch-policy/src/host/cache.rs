// SPDX-License-Identifier: GPL-2.0-or-later
//! The calls by which a host reports events to the cache mechanism and asks about moves
//! (policy/include/perch/occupancy.h and cache.h).

use bytemuck::must_cast_ref;

use super::Host;
use crate::cache::{Move, Process};
use crate::ffi;
use crate::image::Image;
use crate::load::LlcLoad;
use crate::mode::Mode;
use crate::policy::Policy;
use crate::task::{ProcessId, TaskState};

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

    /// The share of each LLC that the process occupied at its last scan: 2^20 for each CPU that it
    /// had to itself.
    pub fn occupancy(&self, process: ProcessId) -> Vec<u64> {
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

    /// Sets how full an LLC is, in utilisation and tasks, both 0 as long as no balance has looked at
    /// it: for tests.
    #[doc(hidden)]
    pub fn set_llc_load(&mut self, llc: usize, (util, nr): (u32, u32)) {
        let load = &mut self.loads[llc];
        (load.util, load.nr) = (util, nr);
    }

    /// How full an LLC is.
    pub fn llc_load(&self, llc: usize) -> &LlcLoad {
        &self.loads[llc]
    }

    /// How full an LLC is, for the host of mode perch to keep current.
    pub fn llc_load_mut(&mut self, llc: usize) -> &mut LlcLoad {
        &mut self.loads[llc]
    }

    /// Notes how busy the CPUs of an LLC are in the mean, 0 to 1024, for the mechanism spread.
    pub fn level(&mut self, llc: usize, busy: u32) {
        self.refresh();
        // SAFETY: as in `draws`.
        unsafe { ffi::perch_native_level(&mut self.raw, llc as u32, busy) }
    }

    /// How busy an LLC was when it was last looked at, and how many wakees may leave it.
    pub fn spread(&self, llc: usize) -> (u32, u32) {
        (self.loads[llc].busy, self.loads[llc].leaving)
    }

    /// Sets how busy an LLC was, and how many wakees may leave it.
    pub fn set_spread(&mut self, llc: usize, (busy, leaving): (u32, u32)) {
        (self.loads[llc].busy, self.loads[llc].leaving) = (busy, leaving);
    }

    /// A thread of the process has run on `cpu` for `delta_ns` up to now. Slices of one CPU come
    /// in the order of time.
    pub fn account(&mut self, process: ProcessId, cpu: usize, now_ns: u64, delta_ns: u64) {
        self.call(cpu, process, |host, process, cpu| {
            // SAFETY: see `call`.
            unsafe { ffi::perch_native_account(host, process, cpu, now_ns, delta_ns) }
        });
    }

    /// Mode upstream: a thread of the process has run on `cpu`; takes the process's preference away
    /// if it must not gather.
    pub fn check(&mut self, process: ProcessId, cpu: usize) {
        self.call(cpu, process, |host, process, cpu| {
            // SAFETY: see `call`.
            unsafe { ffi::perch_native_check(host, process, cpu) }
        });
    }

    /// True, at a tick on `cpu`, which runs a thread of the process, if [`Host::scan`] is due. The
    /// caller must then call it.
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

    /// Periodic balance has summed up an LLC: its utilisation, and its runnable tasks. Notes with
    /// them what its CPUs have left of their capacity now.
    pub fn note_llc(&mut self, llc: usize, util: u32, nr_running: u32) {
        assert!(llc < self.loads.len());
        let span = self.topology.llc_span(llc).iter();
        let left = span.map(|cpu| self.cpu(cpu).capacity).sum();
        self.refresh();
        // SAFETY: the arrays are the host's and current, and the LLC is one of them.
        unsafe { ffi::perch_native_note(&mut self.raw, llc as u32, util, left, nr_running) }
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
            ffi::perch_native_move(
                &mut self.raw,
                policy,
                must_cast_ref(&task),
                src as u32,
                dst as u32,
            )
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

    /// The task's process laid out in another address space; its address, 0 without one.
    pub(crate) fn place_process(&self, task: &TaskState, image: &mut Image) -> u64 {
        let process = task.process().map(|p| &self.processes[p.0 as usize]);
        process.map_or(0, |p| p.place(image))
    }
}
