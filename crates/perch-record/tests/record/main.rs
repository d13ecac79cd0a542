// SPDX-License-Identifier: GPL-2.0-or-later
//! Recordings: files that are whole, files that are damaged, and advice from either.

mod advice;
mod damage;
mod whole;
