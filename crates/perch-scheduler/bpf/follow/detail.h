/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `--detail`: how often a wake-up found an idle CPU near its target, and took it. */
#ifndef PERCH_DETAIL_H
#define PERCH_DETAIL_H

#include "base/hooks.h"

/*
 * Counts a wake-up for which the target's cluster has an idle CPU, and one
 * whose wakee goes to that cluster.
 */
static __attribute__((noinline)) void detail_asked(struct perch_host *h, const struct perch_task *t,
						   const struct perch_verdict *v, perch_u32 cpu)
{
	perch_u32 set = perch_host_cluster_set(h, v->target), first, k;

	if (set == PERCH_NONE)
		return;
	first = perch_host_set_first(h, set);
	for (k = PERCH_ZERO; k < perch_host_set_words(h, set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		m &= perch_host_allowed_word(h, t, first + k);
		if (!perch_host_idle_word(h, first + k, m))
			continue;
		count(cpu, PERCH_EV_NEAR_IDLE);
		if (perch_set_has(h, set, v->cpu))
			count(cpu, PERCH_EV_NEAR_TAKEN);
		return;
	}
}

/* Every wake-up counts. */
static inline bool detail_draws(const struct task_struct *p, const struct perch_memory __arena *m)
{
	return true;
}

static const struct perch_follower detail_follower = {
	.draws = detail_draws,
	.asked = detail_asked,
};

#endif
