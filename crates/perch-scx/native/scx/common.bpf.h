/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stands before scx's header of this name. What it changes: a loader makes some
 * of a scheduler's arrays as long as the machine has CPUs before it loads them;
 * here they are long enough for every machine.
 */
#include_next <scx/common.bpf.h>

#undef RESIZABLE_ARRAY
#define RESIZABLE_ARRAY(section, array) array[8192]
