// SPDX-License-Identifier: GPL-2.0-or-later
//! The command as its users meet it: what it says, refuses and writes. One program for all of them,
//! because each would be linked with everything that perch is made of.

mod command;
mod overload;
mod progress;
mod recordings;
mod refusals;
mod report_page;
#[path = "../support/mod.rs"]
mod support;
mod trace_processor;
