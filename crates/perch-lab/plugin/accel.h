/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of the accelerator's functions. A function is found by what QEMU has put there; both
 * functions here end QEMU with a message when the table is not as the plugin knows it.
 */
#ifndef PERCH_ACCEL_H
#define PERCH_ACCEL_H

/* Puts other functions in the places where the table has `old`, in their order. */
void accel_replace(void *old, void *const *by, int count);

/* Puts a function in the empty place behind the one of `before`. */
void accel_fill(void *before, void *function);

#endif
