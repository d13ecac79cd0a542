// SPDX-License-Identifier: GPL-2.0-or-later
//! The fair class: what CFS and EEVDF have in common, and the choice between the two.

mod account;
mod ask;
mod cfs;
mod check;
mod eevdf;
mod enqueue;
mod entity;
mod group;
mod pick;
mod place;
mod queue;
pub(crate) mod snapshot;
mod standing;
mod state;
mod told;
mod touch;
mod turn;
mod waiting;

pub(crate) use group::of_task;
pub(crate) use state::{FairState, ShownFair};
