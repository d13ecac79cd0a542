// SPDX-License-Identifier: GPL-2.0-or-later
//! What vCPUs got of the host's CPUs, how long they waited for them, and what went to kernels.

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

    /// What a vCPU that runs has run so far.
    pub(super) fn ran_ns(&self, task: u32) -> u64 {
        let se = &self.entities[task as usize];
        se.sum_exec_ns + self.now.saturating_sub(se.exec_start_ns)
    }

    /// So much of a vCPU's time goes to the host's kernel, or to the guest's for interrupts.
    pub(super) fn charge_vcpu(&mut self, cpu: usize, task: u32, ns: u64) {
        self.charge_kernel(cpu, task, ns);
        self.metrics.guest.overhead_ns += ns;
    }
}
