// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's structures as the program sees them, in memory that lies where the program expects
//! it: `struct task_struct`, `struct rq`, `struct cgroup`.

mod block;
mod cgroups;

use std::ffi::c_void;

use perch_engine::TaskId;

pub(crate) use self::block::{CgroupAt, MaskAt, TaskAt};
pub(crate) use self::cgroups::{CgroupShape, Cgroups};

use self::block::Block;
use crate::abi::{Layout, flag};

pub(crate) struct Memory {
    layout: Layout,
    /// The tasks of the run; then the idle task of each CPU.
    tasks: Block,
    nr_tasks: usize,
    rqs: Block,
    /// The idle state of each CPU.
    idle_states: Block,
    pub cgroups: Cgroups,
    /// The address spaces, one per process, by the number of its first thread.
    spaces: Block,
}

impl Memory {
    pub fn new(layout: Layout, nr_tasks: usize, nr_cpus: usize, cgroups: &[CgroupShape]) -> Memory {
        let memory = Memory {
            layout,
            tasks: Block::new(nr_tasks + nr_cpus, layout.task_size),
            nr_tasks,
            rqs: Block::dense(nr_cpus, layout.rq_size as usize),
            idle_states: Block::new(nr_cpus, layout.idle_state_size),
            cgroups: Cgroups::new(layout, cgroups),
            spaces: Block::new(nr_tasks, layout.mm_size),
        };
        for cpu in 0..nr_cpus {
            memory.put_cpu(cpu);
        }
        memory
    }

    fn put_cpu(&self, cpu: usize) {
        let (l, idle) = (&self.layout, self.nr_tasks + cpu);
        self.rqs.put(cpu, l.online, 1_i32);
        self.rqs.put(cpu, l.idle, self.tasks.at(idle));
        self.rqs.put(cpu, l.curr, self.tasks.at(idle));
        self.tasks.put(idle, l.flags, flag::PF_IDLE | flag::PF_KTHREAD);
        self.tasks.put(idle, l.nr_cpus_allowed, 1_i32);
        self.tasks.put(idle, l.cgroups, self.cgroups.set(0));
        self.tasks.put(idle, l.group_leader, self.tasks.at(idle));
        self.put_parent(idle);
    }

    /// Every task is a child of the idle task of CPU 0, which is its own.
    fn put_parent(&self, number: usize) {
        let above = self.tasks.at(self.nr_tasks);
        self.tasks.put(number, self.layout.real_parent, above);
        self.tasks.put(number, self.layout.parent, above);
    }

    pub fn rqs(&self) -> *mut c_void {
        self.rqs.at(0)
    }

    pub fn task(&self, task: TaskId) -> TaskAt {
        TaskAt(self.tasks.at(task.0 as usize))
    }

    /// What runs on a CPU; `None` is its idle task.
    pub fn current(&self, cpu: usize, current: Option<TaskId>) -> TaskAt {
        let idle = || TaskAt(self.tasks.at(self.nr_tasks + cpu));
        current.map_or_else(idle, |task| self.task(task))
    }

    /// The task at this address; `None` for an idle task, and where there is none.
    pub fn task_at(&self, at: *const c_void) -> Option<TaskId> {
        let number = self.tasks.number(at).filter(|&number| number < self.nr_tasks)?;
        Some(TaskId(number as u32))
    }

    /// The CPU whose idle task is at this address.
    pub fn idle_at(&self, at: *const c_void) -> Option<usize> {
        self.tasks.number(at)?.checked_sub(self.nr_tasks)
    }

    pub fn cgroup_of(&self, task: TaskId) -> CgroupAt {
        let set: usize = self.tasks.get(task.0 as usize, self.layout.cgroups);
        self.cgroups.of_set(set as *const c_void)
    }

    /// Writes what a new task is.
    pub fn put_task(&self, task: TaskId, pid: i32, tgid: i32, nice: i32, cgroup: usize) {
        let (l, at) = (&self.layout, task.0 as usize);
        self.tasks.put(at, l.pid, pid);
        self.tasks.put(at, l.tgid, tgid);
        self.tasks.put(at, l.static_prio, 120 + nice);
        self.tasks.put(at, l.cgroups, self.cgroups.set(cgroup));
        self.tasks.put(at, l.prio, 120 + nice);
        self.tasks.put(at, l.normal_prio, 120 + nice);
        let leader = (tgid - 1) as usize;
        self.tasks.put(at, l.group_leader, self.tasks.at(leader));
        self.tasks.put(at, l.mm, self.spaces.at(leader));
        self.put_parent(at);
    }

    /// Writes a task's affinity; `words` must stay where they are.
    pub fn put_allowed(&self, task: TaskId, words: *const u64, weight: u32) {
        let (l, at) = (&self.layout, task.0 as usize);
        self.tasks.put(at, l.cpus_ptr, words);
        self.tasks.put(at, l.nr_cpus_allowed, weight as i32);
    }

    pub fn allowed(&self, task: TaskId) -> MaskAt {
        let at: usize = self.tasks.get(task.0 as usize, self.layout.cpus_ptr);
        MaskAt(at as *const c_void)
    }

    fn put<T: Copy>(&self, task: TaskId, place: u32, value: T) {
        self.tasks.put(task.0 as usize, place, value);
    }

    pub fn put_weight(&self, task: TaskId, weight: u32) {
        self.put(task, self.layout.scx_weight, weight);
    }

    pub fn put_ran(&self, task: TaskId, ns: u64) {
        self.put(task, self.layout.sum_exec_runtime, ns);
    }

    pub fn put_queued(&self, task: TaskId, queued: bool) {
        let flags = if queued { flag::TASK_QUEUED } else { 0 };
        self.put(task, self.layout.scx_flags, flags);
    }

    pub fn put_runnable_at(&self, task: TaskId, jiffies: u64) {
        self.put(task, self.layout.scx_runnable_at, jiffies);
    }

    pub fn slice(&self, task: TaskId) -> u64 {
        self.tasks.get(task.0 as usize, self.layout.scx_slice)
    }

    pub fn put_slice(&self, task: TaskId, slice: u64) {
        self.put(task, self.layout.scx_slice, slice);
    }

    pub fn vtime(&self, task: TaskId) -> u64 {
        self.tasks.get(task.0 as usize, self.layout.scx_dsq_vtime)
    }

    pub fn put_vtime(&self, task: TaskId, vtime: u64) {
        self.put(task, self.layout.scx_dsq_vtime, vtime);
    }

    /// Writes the idle state of a CPU, which takes so long to leave; `None`: the CPU is busy.
    pub fn put_idle_state(&self, cpu: usize, exit_ns: Option<u32>) {
        let l = &self.layout;
        let state = exit_ns.map_or(std::ptr::null_mut(), |exit_ns| {
            self.idle_states.put(cpu, l.exit_latency_ns, i64::from(exit_ns));
            self.idle_states.at(cpu)
        });
        self.rqs.put(cpu, l.idle_state, state);
    }

    /// Writes what runs and waits on a CPU.
    pub fn put_queue(&self, cpu: usize, nr: u32, current: Option<TaskId>) {
        self.rqs.put(cpu, self.layout.nr_running, nr);
        self.rqs.put(cpu, self.layout.curr, self.current(cpu, current));
    }
}
