// SPDX-License-Identifier: GPL-2.0-or-later
//! What needs a real kernel, in guests: the guests themselves, the live scheduler (that benchmarks
//! run under it, that tasks go where the policy says and share CPUs fairly, and that nothing it meets
//! does harm), recordings of the stock one, and the policy as BPF.
//!
//! A boot takes as long as many tests, so a test gets a guest that goes on from the state of one that
//! had just come up, as if nobody had been there before, where it does not ask for one that boots.
//! What a guest needs is fetched when the host has none; a test that cannot have it fails and says
//! why.

mod arm64;
mod band;
mod benchmarks;
mod cache;
mod capacity;
mod decide;
mod errors;
mod fairness;
mod groups;
mod guest;
mod imported;
mod lab;
mod loaded;
#[path = "../support/page.rs"]
mod page;
mod placement;
mod recorded;
mod robust;
#[path = "../support/mod.rs"]
mod support;
mod tutorial;
