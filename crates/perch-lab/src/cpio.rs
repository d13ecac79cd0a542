// SPDX-License-Identifier: GPL-2.0-only
//! The archive format that the kernel unpacks as its first file system (newc).
