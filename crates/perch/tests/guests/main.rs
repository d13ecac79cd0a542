// SPDX-License-Identifier: GPL-2.0-or-later
//! The tests that need a real kernel, in guests: the guests themselves, the live scheduler (that
//! benchmarks run under it, that tasks go where the policy says and share CPUs fairly, and that no
//! event does harm), recordings of the stock one, and the policy as BPF.
//!
//! A boot takes as long as many tests, so a test gets a guest of its own that goes on from a snapshot
//! of one that had just come up, unless it asks for a guest that boots. The first test fetches the
//! parts of a guest that the host lacks; a test that cannot have them fails and says why.

mod adversary;
mod arm64;
mod band;
mod benchmarks;
mod beside;
mod cache;
mod capacity;
mod chaos;
mod coherence;
mod compared;
mod decide;
mod doctor;
mod errors;
mod fairness;
mod groups;
mod guest;
mod imported;
mod lab;
mod limits;
mod loaded;
mod operator;
#[path = "../support/page.rs"]
mod page;
mod partial;
mod placement;
mod preferred;
mod real_time;
mod recorded;
mod robust;
mod sched_idle;
mod service;
#[allow(dead_code, reason = "the tests of the command use the rest")]
#[path = "../support/mod.rs"]
mod support;
mod timed;
mod trial;
mod tutorial;
#[path = "../cli/schemas/validator.rs"]
mod validator;
mod waits;
