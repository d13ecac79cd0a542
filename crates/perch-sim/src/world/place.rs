// SPDX-License-Identifier: GPL-2.0-or-later
//! The places where a task can be.

use perch_workload::{Op, Site, TaskSpec};

use crate::id::{GuestId, VcpuId};

/// The place of a task, and its part there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A task of this machine.
    Host,
    /// A vCPU, a task of this machine: the virtual machine and which of its vCPUs.
    Vcpu(GuestId, VcpuId),
    /// A task of this virtual machine, whose CPUs are vCPUs.
    Guest(GuestId),
    /// A task on another computer. For the books it sleeps while it works: a timer ends its work.
    Outside,
}

impl Place {
    /// The place of a task of a workload.
    pub fn of(spec: &TaskSpec) -> Place {
        match (spec.site, spec.program.first()) {
            (Site::Outside, _) => Place::Outside,
            (Site::Guest(guest), _) => Place::Guest(GuestId(guest)),
            (Site::Host, Some(&Op::Vcpu { guest, vcpu })) => {
                Place::Vcpu(GuestId(guest), VcpuId(vcpu))
            }
            (Site::Host, _) => Place::Host,
        }
    }
}
