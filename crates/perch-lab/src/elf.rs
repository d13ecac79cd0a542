// SPDX-License-Identifier: GPL-2.0-only
//! Kernels and programs as files: what is in a bzImage, which libraries a program needs.
