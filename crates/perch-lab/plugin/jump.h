/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When icount may jump.
 *
 * While all CPUs idle, icount with sleep=off adds the time until the next timer. QEMU's main thread
 * does so when it comes by, which it also does for reasons of its own while the thread of the CPUs
 * works. Twice that makes a run differ from another:
 *
 * - The last CPU has halted, but the instructions of its turn are not counted yet. The jump starts
 *   from the beginning of that turn, and the timer comes late by the turn.
 * - The jump was made and its timer is due, but not run yet. All CPUs still idle, so the main thread
 *   wakes the thread of the CPUs once more, which ends the turns of all CPUs early.
 *
 * How often this happens depends on the host. So the main thread hears that the CPUs idle only once
 * their thread has said so itself and does nothing but wait, and hears it once for each such wait.
 */
#ifndef PERCH_JUMP_H
#define PERCH_JUMP_H

#include <stdbool.h>

#include "qemu.h"

extern bool jump_waits;

/* When a CPU starts; they do so in their order. */
void jump_cpu_starts(unsigned int cpu);

/* The guest's clock is read: the thread of the CPUs does so before each round of turns. */
static inline void jump_clock_is_read(void)
{
	if (current_cpu)
		__atomic_store_n(&jump_waits, false, __ATOMIC_RELAXED);
}

#endif
