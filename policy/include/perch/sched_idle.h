/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sched_idle: where nothing is idle, preempts tasks of SCHED_IDLE
 * (docs/mechanisms/sched_idle.md).
 *
 * The stock kernel takes a CPU that runs only tasks of SCHED_IDLE for an idle
 * one, but a busy last-level cache gets no scan, and then the wakee waits at its
 * target while another CPU of the cache has nothing to do that could not wait.
 * The scan is left out because it reads a cache line of each CPU. To find these
 * CPUs takes a word for 64 of them.
 */
#ifndef PERCH_SCHED_IDLE_H
#define PERCH_SCHED_IDLE_H

#include "stock.h"

/* The first such CPU of the target's cache after the target, or the target. */
PERCH_RARE perch_u32 perch_sched_idle_from(const struct perch_host *h PERCH_GIVEN,
					   const struct perch_task *p PERCH_GIVEN,
					   struct perch_search *s PERCH_GIVEN, perch_u32 target)
{
	perch_u32 set = perch_host_llc_set(h, target), k;
	struct perch_ring ring;

	if (set == PERCH_NONE)
		return target;
	ring = perch_ring(h, set, target);
	for (k = PERCH_ZERO; k <= ring.words && PERCH_MORE; k++) {
		perch_u64 keep;
		perch_u32 w = perch_ring_word(&ring, k, &keep);
		perch_u64 m = perch_host_set_word(h, set, w) & keep;

		m &= perch_host_sched_idle_word(h, w);
		if (m)
			m &= perch_host_allowed_word(h, p, w);
		if (m) {
			s->examined++;
			s->reason = PERCH_BY_SCHED_IDLE;
			return w * 64 + __builtin_ctzll(m);
		}
	}
	return target;
}

/* Stage last. A task of SCHED_IDLE preempts none of its like. */
PERCH_INLINE perch_u32 perch_sched_idle_last(const struct perch_host *h,
					     const struct perch_policy *pol,
					     const struct perch_task *p, struct perch_search *s,
					     perch_u32 cpu)
{
	if (pol->modes.sched_idle != PERCH_PERCH || s->reason != PERCH_BY_TARGET_BUSY ||
	    (p->flags & PERCH_TASK_SCHED_IDLE))
		return cpu;
	return perch_sched_idle_from(h, p, s, cpu);
}

#endif
