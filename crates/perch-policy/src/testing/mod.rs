// SPDX-License-Identifier: GPL-2.0-or-later
//! Random moments on random machines for tests, here and in the crates that build on this one. A
//! failing test prints the seed; the seed brings the moment back.

pub mod dice;
pub mod here;
pub mod machines;
mod random;
pub mod scenario;
