// SPDX-License-Identifier: GPL-2.0-only
//! Packages of the distribution, through an apt of our own.
