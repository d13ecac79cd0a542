// SPDX-License-Identifier: GPL-2.0-or-later
//! Where a task is.

use perch_workload::{Op, Site, TaskSpec};

use crate::id::{GuestId, VcpuId};

/// Where a task is, and what it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A task of this machine.
    Host,
    /// A vCPU, a task of this machine: the virtual machine and which of its vCPUs.
    Vcpu(GuestId, VcpuId),
    /// A task of that virtual machine; its CPU is a vCPU.
    Guest(GuestId),
    /// A task on another computer; it runs, for the books, while a timer of it is pending.
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
