// SPDX-License-Identifier: GPL-2.0-only
//! The live scheduler in real kernels: that benchmarks run under it, that tasks go where the policy
//! says and share CPUs fairly, and that nothing it meets does harm.
//!
//! Every test boots a guest of its own, so that what one breaks is not another's failure. What a
//! guest needs is fetched when the host has none; a test that cannot have it fails and says why.

mod band;
mod benchmarks;
mod cache;
mod capacity;
mod errors;
mod fairness;
mod groups;
mod guest;
mod imported;
mod placement;
mod recorded;
mod robust;
