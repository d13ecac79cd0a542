// SPDX-License-Identifier: GPL-2.0-only
//! The guest's files.
