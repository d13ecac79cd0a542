// SPDX-License-Identifier: GPL-2.0-or-later
//! Tests of recordings: of whole files, of damaged files, of what is counted, and of the advice that perch makes from a
//! recording.

mod advice;
mod damage;
mod decisions;
mod stakes;
mod whole;
