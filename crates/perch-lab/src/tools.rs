// SPDX-License-Identifier: GPL-2.0-only
//! Programs to run in the guest.
