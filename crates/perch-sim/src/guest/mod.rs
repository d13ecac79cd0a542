// SPDX-License-Identifier: GPL-2.0-or-later
//! Virtual machines: the scheduler of the kernel inside. What a virtual machine is made of is the
//! workload's to say, see [`GuestSpec`].
//!
//! A virtual machine is a set of tasks of the host, its vCPUs. What runs inside are programs of
//! the same operations as on the host; they make progress only while their vCPU runs on a CPU. The
//! host sees the vCPUs alone, and the guest sees nothing of the host: a vCPU that is preempted
//! holds up who runs on it, the holder of a lock included.

mod scheduler;

pub use perch_workload::{GuestSpec, Network, Site};
pub use scheduler::Scheduler;
