// SPDX-License-Identifier: GPL-2.0-or-later
//! The scheduling classes: who runs next among the tasks of one CPU.

pub(crate) mod fair;
pub(crate) mod rt;
