// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's structures as the program sees them, in memory that lies where the program expects
//! it: `struct task_struct`, `struct rq`, `struct cgroup`.

use std::ffi::c_void;
use std::ptr::NonNull;

use perch_engine::TaskId;

use crate::abi::{Layout, NOWHERE, flag};

/// Zeroed memory for structures of one size, which never moves. The program writes there too, so
/// nothing here ever borrows the words.
struct Block {
    words: NonNull<[u64]>,
    size: usize,
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `new` took the words from a box.
        drop(unsafe { Box::from_raw(self.words.as_ptr()) });
    }
}

impl Block {
    /// `len` structures, each on cache lines of its own.
    fn new(len: usize, size: u32) -> Block {
        Block::dense(len, (size as usize).next_multiple_of(64))
    }

    /// `len` structures, one directly after the other.
    fn dense(len: usize, size: usize) -> Block {
        let words: Box<[u64]> = vec![0; (len * size).div_ceil(8)].into();
        Block {
            words: NonNull::from(Box::leak(words)),
            size,
        }
    }

    fn at(&self, number: usize) -> *mut c_void {
        assert!((number + 1) * self.size <= self.words.len() * 8);
        let first: *mut c_void = self.words.as_ptr().cast();
        first.wrapping_byte_add(number * self.size)
    }

    fn number(&self, at: *const c_void) -> Option<usize> {
        let first = self.words.as_ptr().cast::<u8>() as usize;
        let offset = (at as usize).checked_sub(first)?;
        (offset < self.words.len() * 8).then(|| offset / self.size)
    }

    fn put<T: Copy>(&self, number: usize, offset: u32, value: T) {
        if offset == NOWHERE {
            return;
        }
        assert!(offset as usize + size_of::<T>() <= self.size);
        // SAFETY: it is inside the structure, and C aligns a field as its type demands.
        unsafe {
            self.at(number)
                .wrapping_byte_add(offset as usize)
                .cast::<T>()
                .write(value)
        }
    }

    fn get<T: Copy + Default>(&self, number: usize, offset: u32) -> T {
        if offset == NOWHERE {
            return T::default();
        }
        assert!(offset as usize + size_of::<T>() <= self.size);
        // SAFETY: as in `put`; the types that are asked for are numbers.
        unsafe {
            self.at(number)
                .wrapping_byte_add(offset as usize)
                .cast::<T>()
                .read()
        }
    }
}

/// A task group as the program sees it.
pub(crate) struct CgroupShape {
    /// The groups above it, the root first, and itself.
    pub path: Vec<usize>,
    /// The name of its folder.
    pub name: String,
}

/// All of it.
pub(crate) struct Memory {
    layout: Layout,
    /// The tasks of the run; then the idle task of each CPU.
    tasks: Block,
    nr_tasks: usize,
    rqs: Block,
    /// The idle state of each CPU.
    idle_states: Block,
    cgroups: Block,
    folders: Block,
    /// What `task_struct.cgroups` points at, one a cgroup.
    sets: Block,
    /// The address spaces, one a process, by the number of its first thread.
    spaces: Block,
    /// The folders' names, each with a 0 behind it.
    names: Vec<Box<[u8]>>,
}

impl Memory {
    pub fn new(layout: Layout, nr_tasks: usize, nr_cpus: usize, cgroups: &[CgroupShape]) -> Memory {
        let depth = cgroups
            .iter()
            .map(|cgroup| cgroup.path.len())
            .max()
            .unwrap_or(1);
        let cgroup_size = layout
            .cgroup_size
            .max(layout.ancestors.saturating_add(8 * depth as u32));
        let memory = Memory {
            layout,
            tasks: Block::new(nr_tasks + nr_cpus, layout.task_size),
            nr_tasks,
            rqs: Block::dense(nr_cpus, layout.rq_size as usize),
            idle_states: Block::new(nr_cpus, layout.idle_state_size),
            cgroups: Block::new(cgroups.len(), cgroup_size),
            folders: Block::new(cgroups.len(), layout.kernfs_node_size),
            sets: Block::new(cgroups.len(), layout.css_set_size),
            spaces: Block::new(nr_tasks, layout.mm_size),
            names: cgroups
                .iter()
                .map(|cgroup| [cgroup.name.as_bytes(), &[0]].concat().into())
                .collect(),
        };
        for (number, cgroup) in cgroups.iter().enumerate() {
            memory.put_cgroup(number, cgroup);
        }
        for cpu in 0..nr_cpus {
            memory.put_cpu(cpu);
        }
        memory
    }

    fn put_cgroup(&self, number: usize, cgroup: &CgroupShape) {
        let l = &self.layout;
        self.folders
            .put(number, l.kn_name, self.names[number].as_ptr());
        self.folders.put(number, l.kn_id, number as u64 + 1);
        self.cgroups.put(number, l.kn, self.folders.at(number));
        self.cgroups
            .put(number, l.level, cgroup.path.len() as i32 - 1);
        if l.ancestors != NOWHERE {
            for (level, &above) in cgroup.path.iter().enumerate() {
                let at = l.ancestors + 8 * level as u32;
                self.cgroups.put(number, at, self.cgroups.at(above));
            }
        }
        self.sets.put(number, l.dfl_cgrp, self.cgroups.at(number));
    }

    fn put_cpu(&self, cpu: usize) {
        let (l, idle) = (&self.layout, self.nr_tasks + cpu);
        self.rqs.put(cpu, l.online, 1_i32);
        self.rqs.put(cpu, l.idle, self.tasks.at(idle));
        self.rqs.put(cpu, l.curr, self.tasks.at(idle));
        self.tasks
            .put(idle, l.flags, flag::PF_IDLE | flag::PF_KTHREAD);
        self.tasks.put(idle, l.nr_cpus_allowed, 1_i32);
        self.tasks.put(idle, l.cgroups, self.sets.at(0));
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

    pub fn task(&self, task: TaskId) -> *mut c_void {
        self.tasks.at(task.0 as usize)
    }

    pub fn idle_task(&self, cpu: usize) -> *mut c_void {
        self.tasks.at(self.nr_tasks + cpu)
    }

    /// The task at this address; `None` for an idle task, and where there is none.
    pub fn task_at(&self, at: *const c_void) -> Option<TaskId> {
        let number = self
            .tasks
            .number(at)
            .filter(|&number| number < self.nr_tasks)?;
        Some(TaskId(number as u32))
    }

    /// The CPU whose idle task is at this address.
    pub fn idle_at(&self, at: *const c_void) -> Option<usize> {
        self.tasks.number(at)?.checked_sub(self.nr_tasks)
    }

    pub fn cgroup(&self, number: usize) -> *mut c_void {
        self.cgroups.at(number)
    }

    /// The cgroup whose folder has this number; null if there is none.
    pub fn cgroup_of_id(&self, id: u64) -> *mut c_void {
        match usize::try_from(id).ok().and_then(|id| id.checked_sub(1)) {
            Some(number) if number < self.names.len() => self.cgroups.at(number),
            _ => std::ptr::null_mut(),
        }
    }

    /// The cgroup of a task.
    pub fn cgroup_of(&self, task: TaskId) -> *mut c_void {
        let set: usize = self.tasks.get(task.0 as usize, self.layout.cgroups);
        match self.sets.number(set as *const c_void) {
            Some(number) => self.cgroups.at(number),
            None => self.cgroups.at(0),
        }
    }

    /// The ancestor of a cgroup at this level, the root's being 0; null where it has none.
    pub fn ancestor(&self, at: *const c_void, level: i32) -> *mut c_void {
        let Some(number) = self.cgroups.number(at) else {
            return std::ptr::null_mut();
        };
        let own: i32 = self.cgroups.get(number, self.layout.level);
        if !(0..=own).contains(&level) {
            return std::ptr::null_mut();
        }
        let at: usize = self
            .cgroups
            .get(number, self.layout.ancestors + 8 * level as u32);
        at as *mut c_void
    }

    /// Writes what a new task is.
    pub fn put_task(&self, task: TaskId, pid: i32, tgid: i32, nice: i32, cgroup: usize) {
        let (l, at) = (&self.layout, task.0 as usize);
        self.tasks.put(at, l.pid, pid);
        self.tasks.put(at, l.tgid, tgid);
        self.tasks.put(at, l.static_prio, 120 + nice);
        self.tasks.put(at, l.cgroups, self.sets.at(cgroup));
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

    pub fn allowed(&self, task: TaskId) -> *const u64 {
        let at: usize = self.tasks.get(task.0 as usize, self.layout.cpus_ptr);
        at as *const u64
    }

    pub fn put_weight(&self, task: TaskId, weight: u32) {
        self.tasks
            .put(task.0 as usize, self.layout.scx_weight, weight);
    }

    pub fn put_ran(&self, task: TaskId, ns: u64) {
        self.tasks
            .put(task.0 as usize, self.layout.sum_exec_runtime, ns);
    }

    pub fn put_queued(&self, task: TaskId, queued: bool) {
        let flags = if queued { flag::TASK_QUEUED } else { 0 };
        self.tasks
            .put(task.0 as usize, self.layout.scx_flags, flags);
    }

    pub fn put_runnable_at(&self, task: TaskId, jiffies: u64) {
        self.tasks
            .put(task.0 as usize, self.layout.scx_runnable_at, jiffies);
    }

    pub fn slice(&self, task: TaskId) -> u64 {
        self.tasks.get(task.0 as usize, self.layout.scx_slice)
    }

    pub fn put_slice(&self, task: TaskId, slice: u64) {
        self.tasks
            .put(task.0 as usize, self.layout.scx_slice, slice);
    }

    pub fn vtime(&self, task: TaskId) -> u64 {
        self.tasks.get(task.0 as usize, self.layout.scx_dsq_vtime)
    }

    pub fn put_vtime(&self, task: TaskId, vtime: u64) {
        self.tasks
            .put(task.0 as usize, self.layout.scx_dsq_vtime, vtime);
    }

    /// Writes the idle state of a CPU, which takes so long to leave; `None`: the CPU is busy.
    pub fn put_idle_state(&self, cpu: usize, exit_ns: Option<u32>) {
        let l = &self.layout;
        let state = exit_ns.map_or(std::ptr::null_mut(), |exit_ns| {
            self.idle_states
                .put(cpu, l.exit_latency_ns, i64::from(exit_ns));
            self.idle_states.at(cpu)
        });
        self.rqs.put(cpu, l.idle_state, state);
    }

    /// Writes what runs and waits on a CPU; `None` is its idle task.
    pub fn put_queue(&self, cpu: usize, nr: u32, current: Option<TaskId>) {
        let curr = current.map_or_else(|| self.idle_task(cpu), |task| self.task(task));
        self.rqs.put(cpu, self.layout.nr_running, nr);
        self.rqs.put(cpu, self.layout.curr, curr);
    }
}
