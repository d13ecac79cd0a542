// SPDX-License-Identifier: GPL-2.0-only
//! A QEMU that can make the topology.
