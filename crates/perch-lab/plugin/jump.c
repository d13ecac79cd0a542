/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * When icount may jump (jump.h). QEMU asks whether all CPUs idle one after the other, in their
 * order, and asks the accelerator last of all, for which TCG has no function: this one is put there.
 * The big lock is held meanwhile, by either thread.
 */
#include "jump.h"

#include "accel.h"

/* The thread of the CPUs has found all of them idle, and has not read the clock since. */
bool jump_waits;
/* The main thread was told that they do not idle, and has to look again when they do. */
static bool refused;
static void *last;

static bool is_idle(void *cpu)
{
	/* All others idle if QEMU asks for the last one. */
	if (cpu != last)
		return true;
	if (current_cpu) {
		__atomic_store_n(&jump_waits, true, __ATOMIC_RELAXED);
		if (refused)
			qemu_notify_event();
		refused = false;
		return true;
	}
	refused = !__atomic_exchange_n(&jump_waits, false, __ATOMIC_RELAXED);
	return !refused;
}

void jump_cpu_starts(unsigned int cpu)
{
	/* Its place is behind the function that wakes the thread of the CPUs. */
	if (!last)
		accel_fill((void *)rr_kick_vcpu_thread, (void *)is_idle);
	last = qemu_get_cpu((int)cpu);
}
