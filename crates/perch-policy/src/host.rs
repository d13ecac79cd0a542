// SPDX-License-Identifier: GPL-2.0-or-later
//! The native host: the arrays behind policy/hosts/native.h, and one call to the policy.

use std::sync::Arc;

use crate::cache::{self, CacheStep, LlcLoad, Process, ProcessId};
use crate::face::face;
use crate::ffi;
use crate::ffi::generated::{
    PERCH_TASK_PERCPU_KTHREAD, PERCH_TASK_SCHED_IDLE, PERCH_WAKE_CURRENT, PERCH_WAKE_EXEC,
    PERCH_WAKE_FORK, PERCH_WAKE_IN_TASK, PERCH_WAKE_SYNC,
};
use crate::image::Image;
use crate::mask::CpuMask;
use crate::policy::Policy;
use crate::reason::Reason;
use crate::topology::Topology;

face! {
/// The state of a CPU that changes while the machine runs, as the policy sees it. Layout of `struct
/// perch_native_cpu`.
///
/// Loads count 1024 for one nice-0 task that always runs, capacities 1024 for the most capable
/// CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuState = perch_native_cpu {
    /// Runnable fair tasks, the running one included.
    pub nr_running: u32,
    /// Load average of the queue.
    pub load: u32,
    /// Runnable average of the queue.
    pub runnable: u32,
    /// Utilisation of the queue: max of average and estimate.
    pub util: u32,
    /// Those of the runnable tasks that are queued only to lose their lag (EEVDF).
    pub nr_delayed: u32,
    /// Capacity left for fair tasks.
    pub capacity: u32,
    /// Load average of the running task; 0 on an idle CPU.
    pub curr_load: u32,
    /// Exit latency of the idle state the CPU is in, nanoseconds.
    pub idle_exit_ns: u32,
    /// When the CPU became idle, nanoseconds; meaningful while it is idle.
    pub idle_since_ns: u64,
}
}

face! {
/// The facts that the policy knows of a task and the memory that it keeps on the task. Layout of
/// `struct perch_task`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskState = perch_task {
    /// Address of the affinity words during a call; 0 outside.
    allowed: usize,
    /// When the flips were halved last, nanoseconds.
    pub flip_decay_at_ns: u64,
    /// Unique while the task lives; 0 is no task.
    pub id: u32,
    /// Id of the task that it woke last.
    pub last_wakee: u32,
    /// How often that changed, halved once a second.
    pub wakee_flips: u32,
    /// Where it ran before its previous CPU (`recent_used_cpu`), if anywhere.
    recent_cpu: u32,
    nr_allowed: u32,
    flags: u32,
    /// Hierarchical load, 1024 for nice 0 always running; in 3.4 a wakee's load is the weight that
    /// the waker's CPU would gain by it.
    pub load: u32,
    /// Utilisation, 0 to 1024: max of average and estimate.
    pub util: u32,
    uclamp_min: u32,
    uclamp_max: u32,
    /// Address of its process during a call; 0 outside.
    process: usize,
    /// Number of its process plus 1; 0 for a kernel thread.
    process_id: u32,
    /// Number of its task group plus 1; 0 for the root group.
    pub(crate) group_id: u32,
    /// Address of the words that say where the group has something queued, during a call.
    pub(crate) queued: usize,
    /// In 3.4, the amount by which the load of the wakee's previous CPU changes because the task's
    /// group has its weight elsewhere: at most 0 for a wakee, at least 0 for a waker, which leaves.
    pub load_shift: i32,
    pad: u32,
}
}

impl TaskState {
    /// A task that has not run yet. `id` must not be 0.
    pub fn new(id: u32) -> TaskState {
        TaskState {
            allowed: 0,
            flip_decay_at_ns: 0,
            id,
            last_wakee: 0,
            wakee_flips: 0,
            recent_cpu: ffi::NONE,
            nr_allowed: 0,
            flags: 0,
            load: 0,
            util: 0,
            uclamp_min: 0,
            uclamp_max: 1024,
            process: 0,
            process_id: 0,
            group_id: 0,
            queued: 0,
            load_shift: 0,
            pad: 0,
        }
    }

    /// Makes the task a thread of a process of the host that will be asked about it; `None`, as
    /// at first, for a kernel thread.
    pub fn set_process(&mut self, process: Option<ProcessId>) {
        self.process_id = process.map_or(0, |p| p.0 + 1);
    }

    /// The process whose thread it is.
    pub fn process(&self) -> Option<ProcessId> {
        self.process_id.checked_sub(1).map(ProcessId)
    }

    /// Says where its process lies during a call.
    pub(crate) fn lend(&mut self, process: u64) {
        self.process = process as usize;
    }

    /// Sets the bounds of the task's utilisation where a CPU is chosen for it, as
    /// `sched_setattr(2)` does.
    ///
    /// # Panics
    /// When `min` is beyond `max` or `max` beyond 1024: the caller's bug, as the code that reads
    /// the user's words has checked both.
    pub fn set_uclamp(&mut self, min: u32, max: u32) {
        assert!(min <= max && max <= 1024, "uclamp {min} to {max}");
        (self.uclamp_min, self.uclamp_max) = (min, max);
    }

    /// The bounds of the task's utilisation: least and most, 0 to 1024.
    pub fn uclamp(&self) -> (u32, u32) {
        (self.uclamp_min, self.uclamp_max)
    }

    /// Marks a kernel thread that may run on one CPU only.
    pub fn set_percpu_kthread(&mut self, is: bool) {
        self.mark(PERCH_TASK_PERCPU_KTHREAD, is);
    }

    /// True if the task is a kernel thread that may run on one CPU only.
    pub fn is_percpu_kthread(&self) -> bool {
        self.flags & PERCH_TASK_PERCPU_KTHREAD != 0
    }

    /// True if the task is a SCHED_IDLE task.
    pub fn is_sched_idle(&self) -> bool {
        self.flags & PERCH_TASK_SCHED_IDLE != 0
    }

    /// Marks a SCHED_IDLE task.
    pub fn set_sched_idle(&mut self, is: bool) {
        self.mark(PERCH_TASK_SCHED_IDLE, is);
    }

    fn mark(&mut self, flag: u32, is: bool) {
        self.flags = if is {
            self.flags | flag
        } else {
            self.flags & !flag
        };
    }

    /// Where the task ran before its previous CPU.
    pub fn recent_cpu(&self) -> Option<usize> {
        (self.recent_cpu != ffi::NONE).then_some(self.recent_cpu as usize)
    }

    /// Sets where the task ran before its previous CPU.
    pub fn set_recent_cpu(&mut self, cpu: Option<usize>) {
        self.recent_cpu = cpu.map_or(ffi::NONE, |c| c as u32);
    }

    /// The CPUs that it may use during a call, whose words lie at this address.
    pub(crate) fn allow(&mut self, allowed: &CpuMask, address: u64) {
        self.allowed = address as usize;
        self.nr_allowed = allowed.weight();
    }

    /// The task without the addresses that hold during a call only.
    pub(crate) fn outside(self) -> TaskState {
        TaskState {
            allowed: 0,
            process: 0,
            queued: 0,
            ..self
        }
    }
}

/// A wake-up to decide.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wake {
    /// The time, nanoseconds.
    pub now_ns: u64,
    /// Where the waker runs.
    pub this_cpu: usize,
    /// Where the wakee ran last.
    pub prev_cpu: usize,
    /// The waker says that it is about to sleep.
    pub sync: bool,
    /// A new task's first wake-up.
    pub fork: bool,
    /// The task calls exec.
    pub exec: bool,
    /// The caller asks for the waker's CPU.
    pub current: bool,
    /// The waker runs in task context, not in an interrupt.
    pub in_task: bool,
}

impl Wake {
    /// Why and how it happens, as the bits of `PERCH_WAKE_*` (policy/include/perch/wake.h).
    pub fn flags(&self) -> u32 {
        let bit = |is: bool, flag: u32| if is { flag } else { 0 };
        bit(self.sync, PERCH_WAKE_SYNC)
            | bit(self.fork, PERCH_WAKE_FORK)
            | bit(self.exec, PERCH_WAKE_EXEC)
            | bit(self.current, PERCH_WAKE_CURRENT)
            | bit(self.in_task, PERCH_WAKE_IN_TASK)
    }

    /// The same wake-up with these bits; those that mean nothing are left out.
    pub fn with_flags(self, flags: u32) -> Wake {
        Wake {
            sync: flags & PERCH_WAKE_SYNC != 0,
            fork: flags & PERCH_WAKE_FORK != 0,
            exec: flags & PERCH_WAKE_EXEC != 0,
            current: flags & PERCH_WAKE_CURRENT != 0,
            in_task: flags & PERCH_WAKE_IN_TASK != 0,
            ..self
        }
    }

    pub(crate) fn raw(&self) -> ffi::Wake {
        ffi::Wake {
            now_ns: self.now_ns,
            this_cpu: self.this_cpu as u32,
            prev_cpu: self.prev_cpu as u32,
            flags: self.flags(),
            pad: 0,
        }
    }
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Where the wakee goes: allowed, unless no CPU is.
    pub cpu: usize,
    /// The reason for the choice.
    pub reason: Reason,
    /// CPUs whose idleness the scans looked at.
    pub examined: u32,
    /// The CPU at which wake_affine aimed.
    pub target: usize,
    /// The cache mechanism's step on the way to the choice.
    pub cache: CacheStep,
}

impl Verdict {
    /// `None` when a number stands for no CPU, reason or step: another version's answer.
    pub(crate) fn from_raw(raw: &ffi::Verdict) -> Option<Verdict> {
        Some(Verdict {
            cpu: raw.cpu as usize,
            reason: *Reason::ALL.get(raw.reason as usize)?,
            examined: raw.examined,
            target: raw.target as usize,
            cache: *CacheStep::ALL.get(raw.cache as usize)?,
        })
    }
}

/// A machine's state as the policy reads it. The owner keeps it as current as the kernel would.
#[derive(Debug)]
pub struct Host {
    pub(crate) topology: Arc<Topology>,
    idle: Box<[u64]>,
    sched_idle: Box<[u64]>,
    cpus: Box<[CpuState]>,
    llcs: Box<[ffi::Llc]>,
    epochs: Box<[ffi::Epoch]>,
    pub(crate) loads: Box<[LlcLoad]>,
    pub(crate) processes: Vec<Process>,
    /// By task group, where it has something queued.
    pub(crate) queued: Vec<Box<[u64]>>,
    pub(crate) raw: ffi::Host,
}

// SAFETY: the raw pointers lead into heap blocks that `Host` itself owns or holds by Arc; nothing
// else writes to them.
unsafe impl Send for Host {}

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
            .map(|cpu| CpuState {
                capacity: topology.capacity(cpu),
                ..CpuState::default()
            })
            .collect();
        let llcs = topology.new_llcs();
        let raw = ffi::Host {
            topology: topology.raw(),
            idle: idle.as_ptr(),
            sched_idle: sched_idle.as_ptr(),
            cpus: std::ptr::null(),
            llcs: std::ptr::null_mut(),
            epochs: std::ptr::null_mut(),
            loads: std::ptr::null_mut(),
        };
        Host {
            epochs: vec![ffi::Epoch::default(); n].into(),
            loads: cache::new_loads(&topology),
            processes: Vec::new(),
            queued: Vec::new(),
            topology,
            idle,
            sched_idle,
            cpus,
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
            idle: image.push(&self.idle) as *const u64,
            sched_idle: image.push(&self.sched_idle) as *const u64,
            cpus: image.push(&self.cpus) as *const CpuState,
            llcs: image.push(&self.llcs) as *mut ffi::Llc,
            epochs: image.push(&self.epochs) as *mut ffi::Epoch,
            loads: image.push(&self.loads) as *mut LlcLoad,
        }
    }

    /// The task's process laid out in another address space; its address, 0 without one.
    pub(crate) fn place_process(&self, task: &TaskState, image: &mut Image) -> u64 {
        let process = task.process().map(|p| &self.processes[p.0 as usize]);
        process.map_or(0, |p| p.place(image))
    }

    /// Points the task at its process and its group for a call.
    pub(crate) fn lend(&mut self, task: &mut TaskState) {
        task.lend_group(self.group_words(task));
        let process = task.process();
        let raw = process.map(|p| self.processes[p.0 as usize].raw() as u64);
        task.lend(raw.unwrap_or(0));
    }

    /// Points C's view at those arrays that may have moved.
    pub(crate) fn refresh(&mut self) {
        self.raw.cpus = self.cpus.as_ptr();
        self.raw.llcs = self.llcs.as_mut_ptr();
        self.raw.epochs = self.epochs.as_mut_ptr();
        self.raw.loads = self.loads.as_mut_ptr();
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
        assert!(
            wake.this_cpu < n && wake.prev_cpu < n,
            "wake-up on a CPU beyond {n}"
        );
        assert!(wakee.recent_cpu == ffi::NONE || (wakee.recent_cpu as usize) < n);
        assert_eq!(
            allowed.words().len(),
            self.idle.len(),
            "affinity of another machine"
        );
        wakee.allow(allowed, allowed.words().as_ptr() as u64);
        let raw_wake = wake.raw();
        let mut verdict = ffi::Verdict::default();
        self.lend(wakee);
        self.refresh();
        // SAFETY: every pointer in `raw` leads to an array that lives as long as `self` and is as
        // long as the topology says; the CPU numbers were checked above; the affinity words stay
        // borrowed for the call; the C code keeps no pointer.
        unsafe {
            ffi::perch_native_select(
                &mut self.raw,
                policy.raw(),
                &raw_wake,
                waker,
                wakee,
                &mut verdict,
            );
        }
        *wakee = wakee.outside();
        Verdict::from_raw(&verdict).expect("the mirror is what C has (scripts/mirrors)")
    }
}
