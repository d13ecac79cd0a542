// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups (docs/mechanisms/stock.md#groups): a group has, on each CPU, a queue of its own and
//! an entity that represents it in its parent's queue. Read in 3.4, 5.6, 6.1, 6.12 and 7.2.
//!
//! Queues and entities have numbers. The queues of the CPUs come first, then those of groups; the
//! entities of tasks come first, then those of groups, in the order of their queues. On a machine
//! without groups every walk upwards ends where it began. Nothing here walks over all groups: a
//! queue is made when a task of its group first comes to its CPU, and later walks visit only the
//! levels above a task and the groups that are active on one CPU.

mod levels;
mod load;
mod shares;
mod state;
mod tree;
mod window;

pub(super) use load::Moment;
pub use state::NONE;
pub(crate) use state::{TaskGroups, of_task};
