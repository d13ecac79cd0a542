/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spread: wakees leave a busy last-level cache for the least busy one
 * (docs/mechanisms/spread.md).
 *
 * Tasks that sleep often seldom wait in a queue, so nothing that levels queues
 * moves them, however many share an LLC; and a wakee that finds its CPU busy
 * takes another task's CPU in the same LLC, which does so in turn. So whoever
 * levels the queues compares the LLCs' utilisation too, and lets some wakees
 * that find their CPUs busy leave for the LLC that is the least busy.
 */
#ifndef PERCH_SPREAD_H
#define PERCH_SPREAD_H

#include "cache.h"
#include "capacity.h"

/* An LLC that is less busy than this keeps its wakees, as a busy CPU there has idle ones beside it. */
#define PERCH_SPREAD_BUSY 512

/* The LLC whose CPUs were the least busy when the host last looked. */
PERCH_OUTLINE perch_u32 perch_least_busy(const struct perch_host *h PERCH_GIVEN)
{
	perch_u32 i, least = PERCH_ZERO;

	for (i = PERCH_ZERO; i < perch_host_nr_llcs(h) && PERCH_MORE; i++)
		if (perch_host_llc_load(h, i)->busy < perch_host_llc_load(h, least)->busy)
			least = i;
	return least;
}

/*
 * The host has written how busy the LLCs are, of which `least` is the least: sets
 * how many wakees may leave this one.
 */
PERCH_OUTLINE int perch_spread_level(const struct perch_host *h PERCH_GIVEN, perch_u32 llc,
				     perch_u32 least)
{
	struct perch_llc_load PERCH_AS *load = perch_host_llc_load(h, llc);
	perch_u32 more = load->busy - perch_host_llc_load(h, least)->busy;

	/* In CPUs; a task that leaves lessens the difference by two. */
	more = more * perch_host_set_weight(h, perch_host_llc_cpus(h, llc)) / 2048;
	load->leaving = load->busy < PERCH_SPREAD_BUSY ? 0 : (more + 3) / 4;
	return 0;
}

/* The first allowed CPU of the least busy LLC whose whole core idles; PERCH_NONE without one. */
PERCH_RARE perch_u32 perch_spread_to(const struct perch_host *h PERCH_GIVEN,
				     const struct perch_task *p PERCH_GIVEN,
				     struct perch_verdict *v PERCH_GIVEN)
{
	perch_u32 set = perch_host_llc_cpus(h, perch_least_busy(h));
	perch_u32 first = perch_host_set_first(h, set), words = perch_host_set_words(h, set), k;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		m = perch_host_idle_word(h, first + k,
					 m & perch_host_allowed_word(h, p, first + k));
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);

			m &= m - 1;
			v->examined++;
			if (perch_siblings_idle(h, cpu))
				return cpu;
		}
	}
	return PERCH_NONE;
}

/*
 * Stage leave: an idle CPU of another LLC for a wakee that does not find its CPU
 * idle, and whose waker is in its own LLC. CPUs of several sizes are no measure:
 * a full small one counts less than a full large one.
 */
PERCH_INLINE perch_u32 perch_spread_leave(const struct perch_host *h,
					  const struct perch_policy *pol,
					  const struct perch_task *p, const struct perch_wake *wake,
					  struct perch_verdict *v)
{
	struct perch_llc_load PERCH_AS *load;
	perch_u32 llc, cpu;

	if (pol->modes.spread != PERCH_PERCH)
		return PERCH_NONE;
	llc = perch_host_llc(h, wake->prev_cpu);
	if (llc == PERCH_NONE || perch_host_llc(h, wake->this_cpu) != llc)
		return PERCH_NONE;
	load = perch_host_llc_load(h, llc);
	if (!load->leaving || perch_host_idle(h, wake->prev_cpu) ||
	    perch_capacity_set(h, pol, wake->prev_cpu) != PERCH_NONE || perch_cache_prefers(pol, p))
		return PERCH_NONE;
	cpu = perch_spread_to(h, p, v);
	if (cpu == PERCH_NONE)
		return PERCH_NONE;
	/* Two wakers may count the same one. */
	if (load->leaving)
		load->leaving--;
	v->reason = PERCH_BY_SPREAD;
	return cpu;
}

#endif
