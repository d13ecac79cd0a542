/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cluster: scan the cluster first (docs/mechanisms/cluster.md).
 *
 * On Kunpeng 920 four CPUs share an L3 tag, on Jacobsville an L2: data that one
 * of them has written reaches the others sooner than it reaches the rest of the
 * LLC. Two tasks that talk are better off in one cluster, so an idle CPU
 * elsewhere in the LLC, even the previous one, is only a second choice.
 *
 * Its hooks are in three stages: near says whether a candidate is near enough
 * to end the search, scan looks at the cluster's CPUs before the LLC's, and
 * last returns to the candidates that were passed over.
 */
#ifndef PERCH_CLUSTER_H
#define PERCH_CLUSTER_H

#include "stock.h"

PERCH_INLINE perch_u8 perch_cluster_on(const struct perch_host *h, const struct perch_policy *pol)
{
	return pol->modes.cluster != PERCH_OFF && perch_host_has_clusters(h);
}

/*
 * The kernel's id of the CPUs with which a CPU shares its nearest resources:
 * the first CPU of its cluster, else the first of its LLC, else the CPU itself
 * (docs/mechanisms/cluster.md).
 */
PERCH_INLINE perch_u32 perch_share_id(const struct perch_host *h, perch_u32 cpu)
{
	perch_u32 set = perch_host_cluster_set(h, cpu), first;

	if (set == PERCH_NONE)
		set = perch_host_llc_set(h, cpu);
	if (set == PERCH_NONE)
		return cpu;
	first = perch_host_set_first(h, set);
	return first * 64 + __builtin_ctzll(perch_host_set_word(h, set, first));
}

/*
 * True if candidate `cpu`, which is idle and in the target's LLC, may end the
 * search. CPUs without a cluster are as near to each other as their LLC makes
 * them. Where only some CPUs of an LLC have a cluster and the LLC's first CPU
 * is among them, that cluster and the CPUs without any have the same id, so
 * modes posted and upstream take these CPUs for near; mode perch compares the
 * clusters themselves.
 */
PERCH_INLINE perch_u8 perch_cluster_shares(const struct perch_host *h,
					   const struct perch_policy *pol, perch_u32 cpu,
					   perch_u32 target)
{
	if (!perch_cluster_on(h, pol))
		return 1;
	if (pol->modes.cluster == PERCH_PERCH)
		return perch_host_cluster_set(h, cpu) == perch_host_cluster_set(h, target);
	return perch_share_id(h, cpu) == perch_share_id(h, target);
}

/* Stage near: the mechanism judges prev and recent, in steps 2 and 4. */
PERCH_INLINE enum perch_near perch_cluster_near(const struct perch_host *h,
						const struct perch_policy *pol,
						const struct perch_task *p,
						const struct perch_search *s, perch_u32 cpu,
						enum perch_candidate candidate)
{
	(void)p;
	if (candidate != PERCH_CANDIDATE_PREV && candidate != PERCH_CANDIDATE_RECENT)
		return PERCH_NEAR_TAKE;
	return perch_cluster_shares(h, pol, cpu, s->target) ? PERCH_NEAR_TAKE : PERCH_NEAR_LATER;
}

/* Stage unbudgeted: a cluster in mode perch has a budget of its own. */
PERCH_INLINE perch_u8 perch_cluster_unbudgeted(const struct perch_policy *pol)
{
	return pol->modes.cluster == PERCH_PERCH;
}

/*
 * Stage scan, the first part of step 8. Modes posted and upstream spend the
 * LLC's budget: with a budget of n they examine n CPUs in all, and in an LLC
 * too busy to be scanned (budget 0) they do not look even at four near CPUs
 * that may well be idle. Mode perch looks at the cluster whatever the budget.
 * On Kunpeng 920 with 32 pairs on a node the LLC's utilisation is beyond the
 * point where nr_idle_scan is 0, yet the CPU beside a pair's first one is often
 * idle; to read four bits of one word costs less than to read the budget.
 */
PERCH_INLINE perch_u32 perch_cluster_scan(const struct perch_host *h,
					  const struct perch_policy *pol,
					  const struct perch_task *p, struct perch_search *s,
					  enum perch_scan when)
{
	perch_u32 set, llcs, cpu;

	if (when != PERCH_SCAN_LLC || !perch_cluster_on(h, pol))
		return PERCH_NONE;
	set = perch_host_cluster_set(h, s->target);
	if (set == PERCH_NONE)
		return PERCH_NONE;
	if (s->idle_cores) {
		s->reason = PERCH_BY_CLUSTER_CORE;
		cpu = perch_scan_cores(h, pol, p, s, set);
	} else {
		s->reason = PERCH_BY_CLUSTER_SCAN;
		llcs = s->budget;
		if (pol->modes.cluster == PERCH_PERCH)
			s->budget = perch_host_set_weight(h, set);
		cpu = perch_scan_cpus(h, pol, p, s, set);
		if (pol->modes.cluster == PERCH_PERCH)
			s->budget = llcs;
	}
	s->done_set = set;
	/* Without a budget for the LLC, an idle thread that the cluster's cores showed is taken. */
	if (cpu == PERCH_NONE && !s->budget && s->thread != PERCH_NONE) {
		s->reason = PERCH_BY_CLUSTER_SCAN;
		return s->thread;
	}
	return cpu;
}

/*
 * Stage last: if the search found no CPU, it takes prev or recent after all,
 * which were idle but in another cluster. Without this, hackbench with as many
 * threads as CPUs stacked tasks on the target while prev was idle (v8 of the
 * series). The search took time, so modes posted and perch look again whether
 * the candidate is still idle; upstream does not.
 */
PERCH_INLINE perch_u32 perch_cluster_last(const struct perch_host *h,
					  const struct perch_policy *pol,
					  const struct perch_task *p, struct perch_search *s,
					  perch_u32 cpu)
{
	perch_u8 trust = pol->modes.cluster == PERCH_UPSTREAM;

	if (s->reason != PERCH_BY_TARGET_BUSY)
		return cpu;
	if (s->near_prev != PERCH_NONE && (trust || perch_idle_ok(h, pol, p, s->near_prev))) {
		s->reason = PERCH_BY_CLUSTER_PREV;
		return s->near_prev;
	}
	if (s->near_recent != PERCH_NONE && (trust || perch_idle_ok(h, pol, p, s->near_recent))) {
		s->reason = PERCH_BY_CLUSTER_RECENT;
		return s->near_recent;
	}
	return cpu;
}

#endif
