// SPDX-License-Identifier: GPL-2.0-or-later
/* The recorder for kernels whose verifier does not know may_goto (up to 6.8). */
#define NO_MAY_GOTO
#include "recorder.bpf.c"
