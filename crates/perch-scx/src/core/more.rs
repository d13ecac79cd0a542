// SPDX-License-Identifier: GPL-2.0-or-later
//! What other schedulers than perch ask the kernel for: masks of their own, nodes, timers to stop.

use std::collections::HashMap;

use perch_engine::TaskId;
use perch_policy::Topology;

use super::{Core, State};
use crate::abi::flag;

/// The kernel's masks of CPUs are as long as its CONFIG_NR_CPUS says, and a program may read them
/// whole.
const MASK_WORDS: usize = 8192 / 64;

/// Masks whose addresses the program has.
#[derive(Default)]
pub(super) struct Masks {
    /// The program's own, by address, with the number of its references.
    own: HashMap<usize, (Box<[u64; MASK_WORDS]>, i32)>,
    /// Those of all CPUs and of nodes' idle CPUs and cores, by number.
    lent: HashMap<usize, Box<[u64; MASK_WORDS]>>,
}

impl Masks {
    /// Writes a mask to lend, whose address stays.
    fn lend(&mut self, number: usize, words: &[u64]) -> usize {
        let mask = self
            .lent
            .entry(number)
            .or_insert_with(|| Box::new([0; MASK_WORDS]));
        mask[..words.len()].copy_from_slice(words);
        mask.as_ptr() as usize
    }
}

/// The CPUs of a node among `words`.
pub(super) fn of_node(topology: &Topology, words: &[u64], node: usize) -> Vec<u64> {
    let mut own = vec![0; words.len()];
    for cpu in (0..topology.nr_cpus()).filter(|&cpu| topology.node(cpu) == node) {
        own[cpu / 64] |= words[cpu / 64] & 1 << (cpu % 64);
    }
    own
}

impl Core {
    pub fn task_of_pid(&self, pid: i32) -> Option<TaskId> {
        // Pids begin at 1.
        let number = usize::try_from(pid).ok()?.checked_sub(1)?;
        (number < self.look().tasks.len()).then_some(TaskId(number as u32))
    }

    /// Stops a timer. Returns whether it was started and has not expired yet.
    pub fn cancel_timer(&self, timer: usize) -> bool {
        let now_ns = self.now_ns();
        let mut state = self.state();
        let found = state.timers.iter_mut().find(|&&mut (at, _)| at == timer);
        found.is_some_and(|(_, at_ns)| {
            let was = std::mem::replace(at_ns, u64::MAX);
            was != u64::MAX && was > now_ns
        })
    }

    /// The tasks that `ops.dispatch()` may still dispatch (`scx_bpf_dispatch_nr_slots()`).
    pub fn dispatch_slots(&self) -> u32 {
        // SCX_DSP_DFL_MAX_BATCH.
        let most = match self.callbacks.get().dispatch_max_batch {
            0 => 32,
            batch => batch,
        };
        most.saturating_sub(self.look().buffer.len() as u32)
    }

    pub fn dispatch_cancel(&self) {
        self.state().buffer.pop();
    }

    /// A mask without CPUs that the program owns.
    pub fn mask_create(&self) -> usize {
        let mask = Box::new([0; MASK_WORDS]);
        let at = mask.as_ptr() as usize;
        self.state().masks.own.insert(at, (mask, 1));
        at
    }

    /// Adds to the references of a mask, and frees it without any.
    pub fn mask_hold(&self, at: usize, more: i32) {
        let mut state = self.state();
        let own = &mut state.masks.own;
        let Some((_, references)) = own.get_mut(&at) else {
            drop(state);
            return self.end(format!("{at:#x} is no mask that the program has created"));
        };
        *references += more;
        if *references <= 0 {
            own.remove(&at);
        }
    }

    /// The mask of all CPUs: each is online as long as the run lasts.
    pub fn mask_of_all(&self) -> usize {
        let mut words = vec![0; self.nr_cpus.div_ceil(64)];
        for cpu in 0..self.nr_cpus {
            words[cpu / 64] |= 1_u64 << (cpu % 64);
        }
        self.state().masks.lend(0, &words)
    }

    fn is_node(&self, node: i32) -> Option<usize> {
        let found = usize::try_from(node)
            .ok()
            .filter(|&node| node < self.kernel(|kernel| kernel.topology().nr_nodes()));
        if found.is_none() {
            self.end(format!("invalid NUMA node {node}"));
        }
        found
    }

    /// The idle CPUs of a node, or the CPUs of its idle cores, as they are now.
    pub fn idle_mask_of_node(&self, of_cores: bool, node: i32) -> usize {
        let number = self.is_node(node).unwrap_or(0);
        let all = self.look().idle.words(of_cores).to_vec();
        let own = self.kernel(|kernel| of_node(kernel.topology(), &all, number));
        let lent = 1 + 2 * number + usize::from(of_cores);
        self.state().masks.lend(lent, &own)
    }

    /// An idle CPU among these, claimed: one of this node, and one of another unless the flags forbid
    /// it.
    pub fn pick_idle_of_node(&self, words: &[u64], node: i32, flags: u64) -> Option<usize> {
        let number = self.is_node(node)?;
        let own = self.kernel(|kernel| of_node(kernel.topology(), words, number));
        let near = self.pick_idle(&own, flags);
        match flags & flag::PICK_IDLE_IN_NODE {
            0 => near.or_else(|| self.pick_idle(words, flags)),
            _ => near,
        }
    }

    /// Notes that the class has chosen the task's CPU, which a task with only one does not let it do.
    pub(super) fn note_selected(&self, task: TaskId) {
        let several = self.kernel(|kernel| kernel.allowed(task).weight() > 1);
        self.state().tasks[task.0 as usize].selected = several;
    }

    /// What `ops.enqueue()` is told of that choice.
    pub(super) fn selected(&self, task: TaskId) -> u64 {
        let State { tasks, .. } = &mut *self.state();
        match std::mem::take(&mut tasks[task.0 as usize].selected) {
            true => flag::ENQ_CPU_SELECTED,
            false => 0,
        }
    }
}
