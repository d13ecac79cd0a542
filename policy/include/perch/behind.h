/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * behind: a wakee goes behind its waker, on the waker's own CPU
 * (docs/mechanisms/behind.md).
 *
 * Where the waker sleeps at once, as the two ends of a pipe do in turn, the
 * wakee runs there sooner than on a CPU that an interrupt has to wake, and what
 * it reads is in the cache. The kernel calls such a wake-up sync, and is wrong
 * about it where the waker has more to do; so the length of each waker's own
 * turns decides.
 */
#ifndef PERCH_BEHIND_H
#define PERCH_BEHIND_H

#include "cache.h"
#include "capacity.h"

/*
 * The length of a task's turns after one of so many ns, which ended in sleep. A
 * longer turn than expected counts at once, a shorter one by an eighth: a waker
 * that once went on for a millisecond is believed again after fifty turns.
 */
PERCH_INLINE perch_u32 perch_turn(perch_u32 known, perch_u64 ns)
{
	perch_u32 turn = ns < PERCH_TURN_LONG ? ns : PERCH_TURN_LONG;

	return turn < known ? known - ((known - turn + 7) >> 3) : turn;
}

/*
 * True if the wakee would run on its previous CPU no later than the waker is
 * expected to sleep: an interrupt away, and, where that CPU idles, the way out
 * of its idle state.
 */
PERCH_INLINE perch_u8 perch_wakes_in(const struct perch_host *h, perch_u32 prev, perch_u32 turn)
{
	perch_u32 ns = perch_host_kick_ns(h);

	if (turn <= ns)
		return 0;
	return prev == PERCH_NONE || !perch_host_idle(h, prev) ||
	       turn > ns + perch_host_idle_exit_ns(h, prev);
}

/* Stage first: the waker's CPU, if nothing else is there. */
PERCH_INLINE perch_u32 perch_behind_first(const struct perch_host *h,
					  const struct perch_policy *pol,
					  const struct perch_wake *wake,
					  const struct perch_task *waker, struct perch_task *p,
					  struct perch_verdict *v)
{
	perch_u32 here = wake->this_cpu, prev = wake->prev_cpu;

	if (pol->modes.behind != PERCH_PERCH || waker->turn_ns >= PERCH_TURN_LONG ||
	    (wake->flags & (PERCH_WAKE_SYNC | PERCH_WAKE_FORK | PERCH_WAKE_EXEC)) !=
		    PERCH_WAKE_SYNC)
		return PERCH_NONE;
	/* A wakee that was behind before remembers the CPU that it left. */
	if (prev == here)
		prev = p->recent_cpu;
	if (perch_wakes_in(h, prev, waker->turn_ns) ||
	    perch_host_nr_running(h, here) - perch_host_nr_delayed(h, here) != 1 ||
	    perch_host_domain(h, here, 0) == PERCH_NONE || !perch_allowed(h, p, here) ||
	    perch_cache_prefers(pol, p))
		return PERCH_NONE;
	/* The cache is no gain on a smaller CPU. */
	if (prev != PERCH_NONE && perch_capacity_set(h, pol, here) != PERCH_NONE &&
	    perch_host_capacity(h, here) < perch_host_capacity(h, prev))
		return PERCH_NONE;
	p->recent_cpu = prev;
	v->reason = PERCH_BY_BEHIND;
	return here;
}

#endif
