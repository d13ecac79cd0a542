/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole decision, in the order of docs/mechanisms/README.md#one-wake-up: where a waking (or
 * new) task of the fair class should go, and why. Every mechanism has its
 * line here and its header beside this one.
 */
#ifndef PERCH_SELECT_H
#define PERCH_SELECT_H

#include "cache.h"
#include "capacity.h"
#include "cluster.h"
#include "early.h"
#include "slow.h"
#include "steer.h"

#define PERCH_FOUND(s, why, cpu)     \
	do {                         \
		(s)->reason = (why); \
		return (cpu);        \
	} while (0)

/* The idle-sibling search: docs/mechanisms/stock.md#idle-search, steps 1 to 9. */
PERCH_OUTLINE perch_u32 perch_search_idle(struct perch_host *h PERCH_GIVEN,
					  const struct perch_policy *pol PERCH_GIVEN,
					  struct perch_task *p PERCH_GIVEN,
					  struct perch_search *s PERCH_GIVEN)
{
	perch_u32 recent, cpu;

	s->set = perch_capacity_set(h, pol, s->target);
	if (s->set != PERCH_NONE && pol->modes.capacity == PERCH_POSTED)
		return perch_capacity_search(h, pol, p, s);

	if (perch_idle_ok(h, pol, p, s->target) && perch_capacity_near(h, pol, p, s->target) &&
	    !perch_cache_passes(h, pol, p, s, s->target))
		PERCH_FOUND(s, PERCH_BY_TARGET_IDLE, s->target);

	if (s->prev != s->target && perch_share_llc(h, s->prev, s->target) &&
	    perch_idle_ok(h, pol, p, s->prev) && perch_capacity_near(h, pol, p, s->prev) &&
	    !perch_cache_passes(h, pol, p, s, s->prev)) {
		if (perch_cluster_near(h, pol, s->prev, s->target))
			PERCH_FOUND(s, PERCH_BY_PREV_IDLE, s->prev);
		s->near_prev = s->prev;
	}

	/*
	 * A per-CPU kthread (a kworker completing the wakee's I/O) wakes it on
	 * its own CPU and is about to sleep: stacking costs nothing.
	 */
	if ((s->flags & PERCH_WAKE_IN_TASK) && s->prev == s->this_cpu &&
	    perch_host_nr_running(h, s->this_cpu) <= 1 && perch_capacity_near(h, pol, p, s->prev))
		PERCH_FOUND(s, PERCH_BY_KTHREAD, s->prev);

	/* A preferred CPU is not where it ran: recent is of no use beside it, and stays. */
	recent = s->home == PERCH_NONE ? p->recent_cpu : PERCH_NONE;
	if (!pol->rules.recent_when_taken && s->home == PERCH_NONE)
		p->recent_cpu = s->prev;
	if (recent != PERCH_NONE && recent != s->prev && recent != s->target &&
	    perch_share_llc(h, recent, s->target) && perch_idle_ok(h, pol, p, recent) &&
	    perch_allowed(h, p, recent) && perch_capacity_near(h, pol, p, recent) &&
	    !perch_cache_passes(h, pol, p, s, recent)) {
		if (perch_cluster_near(h, pol, recent, s->target)) {
			p->recent_cpu = s->prev;
			PERCH_FOUND(s, PERCH_BY_RECENT_IDLE, recent);
		}
		s->near_recent = recent;
	}

	if (s->set != PERCH_NONE)
		return perch_capacity_search(h, pol, p, s);

	s->llc = perch_host_llc_set(h, s->target);
	if (s->llc == PERCH_NONE)
		PERCH_FOUND(s, PERCH_BY_NO_LLC, s->target);

	if (perch_host_has_smt(h)) {
		s->idle_cores = perch_host_idle_cores(h, s->llc);
		if (!s->idle_cores && perch_share_llc(h, s->prev, s->target)) {
			cpu = perch_idle_sibling(h, pol, p, s->prev);
			if (cpu != PERCH_NONE)
				PERCH_FOUND(s, PERCH_BY_SIBLING_IDLE, cpu);
		}
	}

	s->budget = perch_host_nr_idle_scan(h, s->llc);
	/*
	 * A budget of 0 says that the LLC is too busy to be worth a look, idle
	 * cores or not. Only the cluster in perch mode has a budget of its own.
	 */
	if ((s->budget || pol->modes.cluster == PERCH_PERCH) &&
	    !(pol->rules.empty_mask_fails_early && !perch_set_meets(h, p, s->llc))) {
		cpu = perch_cluster_scan(h, pol, p, s);
		if (cpu != PERCH_NONE)
			return cpu;
		/* Without a budget, what the cluster showed on the way still counts. */
		if (!s->budget && s->thread != PERCH_NONE)
			PERCH_FOUND(s, PERCH_BY_CLUSTER_SCAN, s->thread);
		if (s->budget)
			cpu = perch_scan_llc(h, pol, p, s);
		if (cpu != PERCH_NONE)
			return cpu;
	}

	if (s->home != PERCH_NONE) {
		s->again = 1;
		return s->target;
	}
	cpu = perch_cluster_fallback(h, pol, p, s);
	if (cpu != PERCH_NONE)
		return cpu;
	PERCH_FOUND(s, PERCH_BY_TARGET_BUSY, s->target);
}

/*
 * The choice is not allowed (affinity changed while the task slept): the
 * nearest allowed CPU of prev's domains, else any; prev when the affinity is
 * empty, which no host should let happen.
 */
PERCH_OUTLINE perch_u32 perch_fallback_cpu(const struct perch_host *h PERCH_GIVEN,
					   const struct perch_task *p PERCH_GIVEN, perch_u32 prev)
{
	perch_u32 level, k, words = (perch_host_nr_cpus(h) + 63) / 64;

	for (level = PERCH_ZERO; PERCH_MORE; level++) {
		perch_u32 sd = perch_host_domain(h, prev, level), set, first;

		if (sd == PERCH_NONE)
			break;
		set = perch_host_domain_set(h, sd);
		first = perch_host_set_first(h, set);
		for (k = PERCH_ZERO; k < perch_host_set_words(h, set) && PERCH_MORE; k++) {
			perch_u64 m = perch_host_set_word(h, set, first + k);

			m &= perch_host_allowed_word(h, p, first + k);
			if (m)
				return (first + k) * 64 + __builtin_ctzll(m);
		}
	}
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_allowed_word(h, p, k);

		if (m)
			return k * 64 + __builtin_ctzll(m);
	}
	return prev;
}

/* Where the task goes before affinity has its last word; fills reason and target. */
PERCH_INLINE perch_u32 perch_choose(struct perch_host *h, const struct perch_policy *pol,
				    const struct perch_wake *wake, struct perch_task *waker,
				    struct perch_task *p, struct perch_verdict *v)
{
	struct perch_search s = {
		.this_cpu = wake->this_cpu,
		.prev = wake->prev_cpu,
		.target = wake->prev_cpu,
		.flags = wake->flags,
		.llc = PERCH_NONE,
		.set = PERCH_NONE,
		.done_set = PERCH_NONE,
		.thread = PERCH_NONE,
		.near_prev = PERCH_NONE,
		.near_recent = PERCH_NONE,
		.home = PERCH_NONE,
	};
	perch_u8 affine = 0;
	perch_u32 cpu;

	v->examined = 0;
	v->cache = PERCH_CACHE_NONE;
	v->pad = 0;
	v->target = wake->prev_cpu;
	if (p->nr_allowed == 1) {
		v->reason = PERCH_BY_AFFINITY;
		return perch_fallback_cpu(h, p, wake->prev_cpu);
	}
	if (wake->flags & (PERCH_WAKE_FORK | PERCH_WAKE_EXEC)) {
		v->reason = PERCH_BY_SLOW_PATH;
		if (pol->rules.early_path)
			return perch_early_slow(h, pol, p, wake, v);
		return perch_slow_path(h, pol, p, wake, v);
	}
	if (pol->rules.early_path) {
		s.target = perch_early_target(h, pol, waker, p, wake);
		if (s.target == PERCH_NONE) {
			v->reason = PERCH_BY_UNSEARCHED;
			return wake->prev_cpu;
		}
		v->target = s.target;
		cpu = perch_early_search(h, p, &s);
		goto searched;
	}
	perch_record_wakee(pol, wake, waker, p);
	if (perch_allowed(h, p, wake->this_cpu)) {
		if (wake->flags & PERCH_WAKE_CURRENT) {
			v->reason = PERCH_BY_HINT;
			return wake->this_cpu;
		}
		affine = !perch_wake_wide(h, wake->this_cpu, waker, p);
	}
	if (perch_cache_redirects(pol)) {
		s.prev = s.target = perch_cache_prev(h, pol, p, wake, v);
		if (s.prev != wake->prev_cpu)
			s.home = wake->prev_cpu;
	}
	if (perch_wake_balances(h, pol, wake->this_cpu) &&
	    (!affine || perch_wake_cap(h, p, wake->this_cpu, s.prev))) {
		v->reason = PERCH_BY_WAKE_BALANCE;
		return perch_slow_path(h, pol, p, wake, v);
	}
	if (affine)
		s.target = perch_wake_affine(h, pol, p, wake, s.prev);
	if (!(waker->flags & PERCH_TASK_PERCPU_KTHREAD))
		s.flags &= ~PERCH_WAKE_IN_TASK;
	v->target = s.target;
	cpu = perch_search_idle(h, pol, p, &s);
	if (s.again) {
		/* Once, as if the cache mechanism had never spoken, and with no candidate of before. */
		s.prev = s.target = v->target = s.home;
		s.home = s.near_prev = s.near_recent = s.thread = s.done_set = PERCH_NONE;
		v->cache = PERCH_CACHE_RETURNED;
		cpu = perch_search_idle(h, pol, p, &s);
	}
	if (pol->rules.recent_when_taken && affine)
		waker->recent_cpu = wake->this_cpu;
searched:
	cpu = perch_steer(h, pol, p, &s, cpu);
	v->reason = s.reason;
	v->examined = s.examined;
	return cpu;
}

PERCH_INLINE void perch_select(struct perch_host *h, const struct perch_policy *pol,
			       const struct perch_wake *wake, struct perch_task *waker,
			       struct perch_task *p, struct perch_verdict *v)
{
	v->cpu = perch_choose(h, pol, wake, waker, p, v);
	if (!perch_allowed(h, p, v->cpu)) {
		v->cpu = perch_fallback_cpu(h, p, wake->prev_cpu);
		v->reason = PERCH_BY_FALLBACK;
	}
}

#endif
