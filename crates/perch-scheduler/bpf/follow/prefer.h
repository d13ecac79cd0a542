/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sends a task that runs to an idle core which the kernel prefers to the task's:
 * such cores reach a higher frequency than others of their kind (ITMT, AMD's
 * preferred cores). As in the kernel (SD_ASYM_PACKING) wake-ups do not ask for
 * it; at its tick a CPU looks for an idle core of its LLC that ranks higher, and
 * its task moves there as a misfit moves to a larger CPU (move.h).
 */
#ifndef PERCH_PREFER_H
#define PERCH_PREFER_H

#include "follow/list.h"
#include "follow/move.h"

/*
 * The highest idle CPU of those that the task may use, that rank above `cpu`,
 * have its capacity and lie in an idle core of its LLC; PERCH_NONE without one.
 */
PERCH_OUTLINE perch_u32 preferred_idle_core(perch_u64 allowed_at, perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u32 most = c->ranking, best = PERCH_NONE, set, first, words, k;
	struct perch_host host = {};

	if (c->llc == PERCH_NONE)
		return PERCH_NONE;
	set = perch_host_llc_cpus(0, c->llc);
	first = perch_host_set_first(0, set);
	words = perch_host_set_words(0, set);
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);

		m = idle_among(first + k, m & mask_word(allowed_at, first + k));
		while (m && PERCH_MORE) {
			perch_u32 other = (first + k) * 64 + __builtin_ctzll(m);
			struct perch_cpu __arena *o = cpu_state(other);

			m &= m - 1;
			if (o->ranking <= most || o->capacity != c->capacity ||
			    !perch_siblings_idle(&host, other))
				continue;
			most = o->ranking;
			best = other;
		}
	}
	return best;
}

/* Of two busy siblings neither is asked: the follower `part` sends one of them away first. */
static inline void prefer_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	struct perch_host host = {};

	if (!c->outranked || c->seeks || p->nr_cpus_allowed == 1 ||
	    !perch_siblings_idle(&host, cpu) ||
	    preferred_idle_core(allowed_at(p, cpu), cpu) == PERCH_NONE)
		return;
	seek_move(p, cpu, PERCH_SEEKS_RANK);
}

static inline bool prefer_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on)
{
	if (!runs_on || !sought(cpu, PERCH_SEEKS_RANK))
		return runs_on;
	return !claim_move(cpu, preferred_idle_core(allowed_at(prev, cpu), cpu),
			   PERCH_EV_PREFERRED);
}

static const struct perch_follower prefer_follower = {
	.tick = prefer_tick,
	.dispatch = prefer_dispatch,
};

#endif
