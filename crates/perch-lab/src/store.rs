// SPDX-License-Identifier: GPL-2.0-only
//! The folder where fetched things are kept.
