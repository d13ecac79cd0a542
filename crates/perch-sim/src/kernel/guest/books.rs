// SPDX-License-Identifier: GPL-2.0-only
//! What vCPUs got of the host's CPUs, and how long they waited for them.

use crate::kernel::Kernel;
use crate::kernel::task::{Life, Place};

impl Kernel<'_> {
    /// A task of the host, if it is a vCPU, begins to wait for a CPU.
    pub(in crate::kernel) fn note_wait(&mut self, task: u32) {
        if let Place::Vcpu(guest, vcpu) = self.tasks[task as usize].place {
            let now = self.now;
            self.vcpu(guest as usize, vcpu as usize).waits_since_ns = now;
        }
    }

    /// What all vCPUs have run since the last call, nanoseconds.
    pub(in crate::kernel) fn take_vcpus_ran(&mut self) -> u64 {
        let (tasks, entities, now) = (&self.tasks, &self.entities, self.now);
        let vcpus = self.guests.iter_mut().flat_map(|g| &mut g.vcpus);
        let ran = vcpus.map(|v| {
            let se = &entities[v.task as usize];
            let runs_ns = match tasks[v.task as usize].life {
                Life::Running => now.saturating_sub(se.exec_start_ns),
                _ => 0,
            };
            let ran_ns = se.sum_exec_ns + runs_ns;
            ran_ns - std::mem::replace(&mut v.ran_before_ns, ran_ns)
        });
        ran.sum()
    }
}
