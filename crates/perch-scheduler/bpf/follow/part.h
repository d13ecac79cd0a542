/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Parts two tasks that run on sibling threads while a whole core idles, as the
 * kernel's active balance does: each runs faster on a core of its own. At its
 * tick the later of the siblings looks for an idle core, nearest first, and its
 * task moves there as a misfit moves to a larger CPU (move.h).
 */
#ifndef PERCH_PART_H
#define PERCH_PART_H

#include "follow/list.h"
#include "follow/move.h"

/* True if another thread of the core is busy whose number is lower. */
static inline bool has_busy_sibling(perch_u32 cpu)
{
	perch_u32 sd = perch_host_domain(0, cpu, 0), set, first, k;

	if (sd == PERCH_NONE || !(perch_host_domain_flags(0, sd) & PERCH_SD_SMT))
		return false;
	set = perch_host_domain_set(0, sd);
	first = perch_host_set_first(0, set);
	for (k = another_zero(); k < perch_host_set_words(0, set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);

		if (first + k > cpu / 64)
			break;
		if (first + k == cpu / 64)
			m &= (1ull << (cpu % 64)) - 1;
		if (m & ~idle_among(first + k, m))
			return true;
	}
	return false;
}

/* A CPU of the nearest idle core that the task may use; PERCH_NONE without one. */
PERCH_OUTLINE perch_u32 nearest_idle_core(perch_u64 allowed_at, perch_u32 cpu)
{
	perch_u32 level, found;

	for (level = another_zero(); PERCH_MORE; level++) {
		perch_u32 sd = perch_host_domain(0, cpu, level);

		if (sd == PERCH_NONE || perch_host_domain_flags(0, sd) & PERCH_SD_NUMA)
			break;
		found = idle_core_in_set(allowed_at, perch_host_domain_set(0, sd));
		if (found != PERCH_NONE)
			return found;
	}
	return PERCH_NONE;
}

static inline void part_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	if (p->nr_cpus_allowed == 1 || !has_place(cpu) || cpu_state(cpu)->seeks ||
	    !has_busy_sibling(cpu) || nearest_idle_core(allowed_at(p, cpu), cpu) == PERCH_NONE)
		return;
	seek_move(p, cpu, PERCH_SEEKS_CORE);
}

static inline bool part_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on)
{
	if (!runs_on || !sought(cpu, PERCH_SEEKS_CORE))
		return runs_on;
	return !claim_move(cpu, nearest_idle_core(allowed_at(prev, cpu), cpu), PERCH_EV_PARTED);
}

static const struct perch_follower part_follower = {
	.tick = part_tick,
	.dispatch = part_dispatch,
};

#endif
