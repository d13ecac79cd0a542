// SPDX-License-Identifier: GPL-2.0-or-later
//! The command as its users meet it: its output, its refusals and its files. All these tests are
//! one program, because each further program would be linked with everything that perch consists
//! of.

mod command;
mod doctor;
mod exits;
mod files;
mod gates;
mod live_arms;
mod predicted;
mod progress;
mod recordings;
mod refusals;
mod report_page;
mod schemas;
#[path = "../support/mod.rs"]
mod support;
mod sweep;
mod top;
mod trace_processor;
