// SPDX-License-Identifier: GPL-2.0-or-later
//! The reports of the kernel to the cache mechanism (docs/mechanisms/cache.md#occupancy): which
//! process runs where, and how full the last-level caches are. With the mechanism off none of this
//! is done. Callers ask for the mode first, and the functions are kept out of their way
//! (`#[cold]`), because they would otherwise cost every run some per cent.

mod books;
mod check;

use perch_policy::{Mode, ProcessId};

use crate::core::Sched;
use crate::id::TaskId;
use crate::observe::Observed;
use books::Trail;
pub(crate) use books::{CacheBooks, CacheTask, processes};

/// Two changes of LLC within this time, there and back, are a bounce. The value is that of issue 5:
/// the time after which a process without a scan loses its preference.
const BOUNCE_NS: u64 = 50_000_000;

impl Sched<'_> {
    /// Notes that a task starts to run in another LLC than before. Counts the change, and a bounce
    /// if the task comes back to the LLC that it left a short time ago.
    #[cold]
    pub(crate) fn changes_llc(&mut self, cpu: usize, task: TaskId) {
        let here = self.llc(cpu);
        let now = self.rq.now();
        let trail = self.rq.task(task).cache.trail;
        let first = trail.now.is_none();
        let back = here.is_some() && trail.before == here;
        if !first && here.is_some() {
            let bounces = back && now - trail.since_ns <= BOUNCE_NS;
            self.happened(Observed::ChangedLlc { task, cpu, bounces });
        }
        let trail = &mut self.rq.task_mut(task).cache.trail;
        *trail = Trail { now: here, before: trail.now, since_ns: now };
    }

    /// Charges the task's process the time that the running task has run since the last charge: at
    /// ticks, and when the task leaves the CPU.
    fn account_slice(&mut self, cpu: usize, task: TaskId) {
        let Some(process) = self.rq.task(task).state.process() else {
            return;
        };
        let ran_ns = self.rq.run_time(task).sum_ns;
        let t = self.rq.task_mut(task);
        let delta_ns = ran_ns - std::mem::replace(&mut t.cache.accounted_ns, ran_ns);
        if delta_ns > 0 {
            self.host.account(process, cpu, self.rq.now(), delta_ns);
        }
        if self.caches.mode == Mode::Upstream && self.rq.is_balanced(task) {
            self.host.check(process, cpu);
            self.follow_preference(cpu, task, process);
        }
    }

    /// Mode upstream: a task takes over the preference of its process while it runs, and only then.
    fn follow_preference(&mut self, cpu: usize, task: TaskId, process: ProcessId) {
        let topology = self.host.topology();
        let preferred = self.host.preferred_cpu(process);
        let wants = preferred.and_then(|c| topology.llc(c));
        let home = self.llc(cpu);
        let t = self.rq.task_mut(task);
        if t.cache.wants != wants {
            self.caches.count(cpu, home, t.cache.wants, -1);
            self.caches.count(cpu, home, wants, 1);
            t.cache.wants = wants;
        }
    }

    /// Counts that a task has entered a CPU's queue (`by` is 1) or left it (-1).
    #[cold]
    pub(crate) fn count_wish(&mut self, cpu: usize, task: TaskId, by: i32) {
        if self.caches.mode != Mode::Upstream {
            return;
        }
        let (home, wants) = (self.llc(cpu), self.rq.task(task).cache.wants);
        self.caches.count(cpu, home, wants, by);
    }

    /// Scans all LLCs, at a tick, for the process of the running task, if no thread has done so in
    /// this epoch. The scan is charged to the task in every mode: the kernel makes it when the task
    /// returns to user mode.
    #[cold]
    pub(crate) fn tick_cache(&mut self, cpu: usize) {
        let Some(task) = self.rq.current(cpu) else {
            return;
        };
        let Some(process) = self.rq.task(task).state.process() else {
            return;
        };
        self.account_slice(cpu, task);
        if !self.host.due(&self.policy, process, cpu, self.rq.now()) {
            return;
        }
        self.host.scan(&self.policy, process, cpu, self.rq.now());
        // 7.2 scans nothing for a process with one thread; the posted form scans and then prefers
        // nothing.
        if self.caches.mode == Mode::Posted || self.host.nr_threads(process).0 > 1 {
            self.stop_segment(cpu);
            let cost = self.costs.examine_ns(self.caches.looked_at);
            self.charge_kernel(cpu, task, cost);
            self.begin_segment(cpu);
        }
    }

    /// Counts that a thread is forked (`by` is 1) or ends (-1).
    pub(crate) fn count_thread(&mut self, task: TaskId, by: i32) {
        if let Some(process) = self.rq.task(task).state.process() {
            let threads = self.host.threads(process).0;
            *threads = threads.wrapping_add_signed(by);
        }
    }

    /// Counts that a thread gets a CPU.
    #[cold]
    pub(crate) fn starts_running(&mut self, task: TaskId) {
        if let Some(process) = self.rq.task(task).state.process() {
            *self.host.threads(process).1 += 1;
        }
    }

    /// Charges a thread that gets `cpu` for the accounting of the slice that it begins, and of the
    /// one before it.
    #[cold]
    pub(crate) fn pays_accounting(&mut self, cpu: usize, task: TaskId) {
        if self.rq.task(task).state.process().is_some() {
            self.charge_kernel(cpu, task, self.caches.accounting_ns);
        }
    }

    /// Counts that a thread leaves its CPU, and charges its process the run time.
    #[cold]
    pub(crate) fn stops_running(&mut self, cpu: usize, task: TaskId) {
        self.account_slice(cpu, task);
        if let Some(process) = self.rq.task(task).state.process() {
            *self.host.threads(process).1 -= 1;
        }
    }

    /// Mode perch: counts a task for which `cpu` is chosen and that is not runnable yet (`by` is
    /// 1), or one that sleeps, ends or moves elsewhere (-1). A task counts from the choice on,
    /// before it arrives, so that the next wake-up sees it.
    #[cold]
    pub(crate) fn reserve(&mut self, cpu: usize, by: i32) {
        if self.caches.mode != Mode::Perch {
            return;
        }
        if let Some(llc) = self.llc(cpu) {
            let load = self.host.llc_load_mut(llc);
            load.nr = load.nr.wrapping_add_signed(by);
        }
    }

    /// Mode perch: brings the utilisation of the CPU's LLC up to date with what was just published.
    #[cold]
    pub(crate) fn sum_util(&mut self, cpu: usize) {
        let now = self.host.cpu(cpu).util;
        let before = std::mem::replace(&mut self.caches.util[cpu], now);
        if let Some(llc) = self.llc(cpu) {
            let load = self.host.llc_load_mut(llc);
            load.util = load.util.wrapping_add(now).wrapping_sub(before);
        }
    }
}
