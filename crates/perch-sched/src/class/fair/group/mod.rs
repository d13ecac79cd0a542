// SPDX-License-Identifier: GPL-2.0-or-later
//! Task groups (docs/mechanisms/stock.md#groups): a group has, per CPU, a queue of its own and an entity
//! that stands for it in its parent's queue. Read in 3.4, 5.6, 6.1, 6.12 and 7.2.
//!
//! Queues and entities have numbers. The queues of the CPUs come first, then those of groups; the
//! entities of tasks come first, then those of groups, in the order of their queues. A machine
//! without groups is the case in which every walk up ends where it began. Nothing here walks over
//! all groups: a queue is made when a task of its group first comes to its CPU, and what is walked
//! over later are the levels above a task and the groups that are at work on one CPU.

mod levels;
mod load;
mod shares;
mod state;
mod tree;
mod window;

pub(super) use load::Moment;
pub(crate) use state::{TaskGroups, of_task};
