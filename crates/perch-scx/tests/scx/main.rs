// SPDX-License-Identifier: GPL-2.0-or-later
//! perch's own scheduler over random machines and loads.

// The simulator's own random machines and loads.
#[path = "../../../perch-sim/tests/sim/common.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../../perch-sim/tests/sim/load.rs"]
#[allow(dead_code)]
mod load;

mod foreign;
mod invariants;
mod placed;
mod preempt;
