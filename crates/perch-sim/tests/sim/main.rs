// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulator's behaviour, from outside and, where no score shows it, from a glimpse inside.
//!
//! docs/testing.md says which property is tested where, and how to bring a failure back.

mod balance;
mod batches;
mod bounds;
mod cache;
mod capacity;
mod chores;
mod claims;
mod cluster;
mod common;
mod contend;
mod costs;
mod determinism;
mod eras;
mod errors;
mod fair;
mod ffmpeg;
mod groups;
mod guest;
mod hackbench;
mod invariants;
mod leaving;
mod llc;
mod load;
mod make;
mod recorded;
mod rt;
mod rt_cases;
mod rtapp;
mod scan;
mod schbench;
mod services;
mod snapshots;
mod sysbench;
