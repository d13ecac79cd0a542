// SPDX-License-Identifier: GPL-2.0-or-later
//! A workload that is ready to run, whichever builder made it.

use std::sync::Arc;

use perch_policy::{Change, CpuMask, Era};

use crate::{Basis, GroupSpec, GuestSpec, Measure, Network, Space, TaskSpec, UNCLAMPED};

/// A workload on a machine, ready to run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The name and the keys that the workload was built from.
    pub spec: String,
    /// The workload's tasks; operations name a task by its position here.
    pub tasks: Vec<TaskSpec>,
    /// The tasks' address spaces.
    pub spaces: Vec<Space>,
    /// Number of channels between the tasks.
    pub channels: usize,
    /// Number of pipes between the tasks.
    pub pipes: usize,
    /// Number of mutexes that the tasks share.
    pub mutexes: usize,
    /// Number of counters that the tasks share.
    pub counters: usize,
    /// The task groups that the tasks are in, parents before their children.
    pub groups: Vec<GroupSpec>,
    /// The score that the workload is judged by.
    pub measure: Measure,
    /// The workload's virtual machines.
    pub guests: Vec<GuestSpec>,
    /// The network to the tasks on other computers; `None` if all tasks are here.
    pub network: Option<Network>,
    /// Sets of CPUs that tasks bind themselves to on the way, see [`crate::Op::Bind`].
    pub masks: Vec<Arc<CpuMask>>,
    /// What the workload's source asks for and perch does not simulate, one sentence for each kind.
    pub notes: Vec<String>,
}

/// The most tasks that a workload may have: the numbers that name tasks have room for no more.
pub const MAX_TASKS: u64 = 1 << 24;

impl Workload {
    /// A workload of tasks that share nothing but address spaces.
    pub(crate) fn of(tasks: Vec<TaskSpec>, spaces: Vec<Space>, measure: Measure) -> Workload {
        Workload {
            spec: String::new(),
            tasks,
            spaces,
            channels: 0,
            pipes: 0,
            mutexes: 0,
            counters: 0,
            groups: Vec::new(),
            measure,
            guests: Vec::new(),
            network: None,
            masks: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Refuses a workload that asks for what the era's kernel does not have: uclamp came with
    /// Linux 5.3.
    ///
    /// # Errors
    /// The error displays the keys, and says what the user can do.
    pub fn check(&self, era: Era) -> Result<(), EraError> {
        if !era.has(Change::Uclamp) && self.tasks.iter().any(|t| t.uclamp != UNCLAMPED) {
            Err(EraError::NoUclamp { spec: self.spec.clone(), era })
        } else {
            Ok(())
        }
    }

    /// Returns true for a workload that starts and stops its clock itself, and is judged by the time
    /// that it takes.
    pub fn is_timed(&self) -> bool {
        matches!(self.measure.basis, Basis::Time { .. })
    }
}

/// Gives each task an address space of its own, so that each is a process of one thread, and
/// returns the address spaces.
pub(crate) fn one_process_each(tasks: &mut [TaskSpec]) -> Vec<Space> {
    for (space, task) in (0u32..).zip(tasks.iter_mut()) {
        task.space = Some(space);
    }
    vec![Space::default(); tasks.len()]
}

/// The reason why the kernel of an era cannot run a workload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EraError {
    /// The workload clamps utilisation, and uclamp came with Linux 5.3.
    #[error(
        "workload \"{spec}\": era {era} has no uclamp: leave uclamp_min and uclamp_max out, or \
         choose era 5.3 or a later one"
    )]
    NoUclamp {
        /// The workload.
        spec: String,
        /// The era.
        era: Era,
    },
}
