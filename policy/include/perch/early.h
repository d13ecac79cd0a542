/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The wake-up path of Linux 3.4 (docs/mechanisms/stock.md#34), the kernel
 * against which `steer` was posted. It has no scan CPU by CPU, no budget, and
 * no memory of the tasks that a waker woke. It looks for idle groups of CPUs
 * from the last-level cache downward, and its loads are weights of the moment.
 * It knew no clusters, no differing capacities and no address spaces, so the
 * mechanisms for these do not exist here.
 */
#ifndef PERCH_EARLY_H
#define PERCH_EARLY_H

#include "slow.h"

/*
 * wake_affine: true if the waker's CPU would be no busier than the wakee's
 * previous one. The loads are weights, so a task of a group counts as the
 * amount by which its coming or going changes the group's shares; the host has
 * predicted that. `pct` is the imbalance that the domain tolerates, in percent.
 */
PERCH_INLINE perch_u8 perch_early_pulls(const struct perch_host *h, const struct perch_wake *wake,
					const struct perch_task *waker, const struct perch_task *p,
					perch_u32 pct)
{
	perch_u32 this_cpu = wake->this_cpu, prev = wake->prev_cpu;
	perch_s64 here = perch_host_load(h, this_cpu), there = perch_host_load(h, prev);
	perch_u32 running = perch_host_nr_running(h, this_cpu);
	perch_s64 each = running ? here / running : 0, all = there;
	perch_u8 balanced = 1;

	if (wake->flags & PERCH_WAKE_SYNC) {
		here -= perch_host_curr_load(h, this_cpu);
		there += waker->load_shift;
	}
	if (here > 0) {
		perch_s64 left = 100 * (perch_s64)perch_host_capacity(h, prev);
		perch_s64 right = 100 + (pct - 100) / 2;

		left *= here + p->load;
		right *= perch_host_capacity(h, this_cpu);
		right *= there + p->load_shift;
		balanced = left <= right;
	}
	/* Both CPUs together carry less than one task of this CPU: there is nothing to balance. */
	return balanced || (here <= there && here + all <= each);
}

/* The CPU at which the search for idle groups aims; PERCH_NONE when no search is made. */
PERCH_OUTLINE perch_u32 perch_early_target(const struct perch_host *h PERCH_GIVEN,
					   const struct perch_policy *pol PERCH_GIVEN,
					   const struct perch_task *waker PERCH_GIVEN,
					   const struct perch_task *p PERCH_GIVEN,
					   const struct perch_wake *wake PERCH_GIVEN)
{
	perch_u32 this_cpu = wake->this_cpu, prev = wake->prev_cpu, level;

	if (!perch_allowed(h, p, this_cpu))
		return PERCH_NONE;
	for (level = PERCH_ZERO; PERCH_MORE; level++) {
		perch_u32 sd = perch_host_domain(h, this_cpu, level);

		if (sd == PERCH_NONE)
			break;
		if (!(perch_host_domain_flags(h, sd) & PERCH_SD_WAKE_AFFINE) ||
		    !perch_set_has(h, perch_host_domain_set(h, sd), prev))
			continue;
		if (this_cpu == prev ||
		    perch_early_pulls(h, wake, waker, p, perch_imbalance_pct(h, pol, sd)))
			return this_cpu;
		return prev;
	}
	return PERCH_NONE;
}

/*
 * The first allowed CPU of the set, if all its CPUs are idle. Looks at the CPUs
 * in ascending order up to the first that is busy, and at none if the task may
 * use no CPU of the set.
 */
PERCH_OUTLINE perch_u32 perch_idle_set(const struct perch_host *h PERCH_GIVEN,
				       const struct perch_task *p PERCH_GIVEN,
				       struct perch_search *s PERCH_GIVEN, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(h, set), cpu = PERCH_NONE, k;
	perch_u32 words = perch_host_set_words(h, set);

	if (!perch_set_meets(h, p, set))
		return PERCH_NONE;
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);
		perch_u64 busy = m & ~perch_host_idle_word(h, first + k, m);

		s->examined += __builtin_popcountll(busy ? m & (busy ^ (busy - 1)) : m);
		if (busy)
			return PERCH_NONE;
		m &= perch_host_allowed_word(h, p, first + k);
		if (cpu == PERCH_NONE && m)
			cpu = (first + k) * 64 + __builtin_ctzll(m);
	}
	return cpu;
}

/*
 * A CPU of the first idle group of a domain; the group that has the target
 * comes before the others.
 */
PERCH_OUTLINE perch_u32 perch_idle_group(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN,
					 struct perch_search *s PERCH_GIVEN, perch_u32 sd)
{
	perch_u32 n = perch_host_domain_groups(h, sd), own, i;

	own = perch_own_group(h, sd, s->target);
	for (i = PERCH_ZERO; i < n && PERCH_MORE; i++) {
		perch_u32 at = own + i < n ? own + i : own + i - n;
		perch_u32 cpu = perch_idle_set(h, p, s, perch_host_domain_group(h, sd, at));

		if (cpu != PERCH_NONE)
			return cpu;
	}
	return PERCH_NONE;
}

/*
 * The search: takes the target when it is idle, else a CPU of the first idle
 * group from the last-level cache downward. With SMT the groups of a cache are
 * cores, so an idle thread beside a busy one is found only on the target's own
 * core.
 */
PERCH_OUTLINE perch_u32 perch_early_search(const struct perch_host *h PERCH_GIVEN,
					   const struct perch_task *p PERCH_GIVEN,
					   struct perch_search *s PERCH_GIVEN)
{
	perch_u32 llc = perch_host_llc_set(h, s->target), level, top = 0, cpu;

	s->reason = PERCH_BY_TARGET_IDLE;
	if (perch_host_idle(h, s->target))
		return s->target;
	s->reason = PERCH_BY_NO_LLC;
	if (llc == PERCH_NONE)
		return s->target;
	s->reason = PERCH_BY_IDLE_GROUP;
	for (level = PERCH_ZERO; PERCH_MORE; level++) {
		perch_u32 sd = perch_host_domain(h, s->target, level);

		if (sd == PERCH_NONE || perch_host_set_weight(h, perch_host_domain_set(h, sd)) >
						perch_host_set_weight(h, llc))
			break;
		top = level + 1;
	}
	while (top && PERCH_MORE) {
		cpu = perch_idle_group(h, p, s, perch_host_domain(h, s->target, --top));
		if (cpu != PERCH_NONE)
			return cpu;
	}
	s->reason = PERCH_BY_TARGET_BUSY;
	return s->target;
}

/* Fork and exec: how loaded a group is for its capacity. */
struct perch_early_group {
	perch_u32 set, nr_allowed;
	perch_u64 load; /* per capacity, 1024ths */
};

PERCH_OUTLINE int perch_early_group(const struct perch_host *h PERCH_GIVEN,
				    const struct perch_task *p PERCH_GIVEN,
				    struct perch_early_group *g PERCH_GIVEN)
{
	perch_u32 first = perch_host_set_first(h, g->set), words = perch_host_set_words(h, g->set);
	perch_u64 load = 0, capacity = perch_host_group_capacity(h, g->set);
	perch_u32 k;

	g->nr_allowed = 0;
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, g->set, first + k);

		g->nr_allowed += __builtin_popcountll(m & perch_host_allowed_word(h, p, first + k));
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);

			m &= m - 1;
			load += perch_host_load(h, cpu);
		}
	}
	g->load = capacity ? load * 1024 / capacity : 0;
	return 0;
}

/*
 * The least loaded group that the task may use; PERCH_NONE if the task should
 * stay in the group that has `cpu`.
 */
PERCH_OUTLINE perch_u32 perch_early_idlest(const struct perch_host *h PERCH_GIVEN,
					   const struct perch_policy *pol PERCH_GIVEN,
					   const struct perch_task *p PERCH_GIVEN,
					   struct perch_descent *d PERCH_GIVEN)
{
	perch_u32 sd = d->sd, cpu = d->cpu, n = perch_host_domain_groups(h, sd), own, i;
	perch_u32 idlest = PERCH_NONE, pct = 100 + (perch_imbalance_pct(h, pol, sd) - 100) / 2;
	perch_u64 local = 0, least = ~0ull;

	d->examined += perch_host_set_weight(h, perch_host_domain_set(h, sd));
	own = perch_own_group(h, sd, cpu);
	for (i = PERCH_ZERO; i < n && PERCH_MORE; i++) {
		perch_u32 at = own + i < n ? own + i : own + i - n;
		struct perch_early_group g = {.set = perch_host_domain_group(h, sd, at)};

		perch_early_group(h, p, &g);
		if (!g.nr_allowed)
			continue;
		if (perch_set_has(h, g.set, cpu)) {
			local = g.load;
		} else if (g.load < least) {
			least = g.load;
			idlest = g.set;
		}
	}
	return idlest != PERCH_NONE && 100 * local >= pct * least ? idlest : PERCH_NONE;
}

/* The least loaded allowed CPU of a group; among equals `cpu`, then the first. */
PERCH_OUTLINE perch_u32 perch_early_cpu(const struct perch_host *h PERCH_GIVEN,
					const struct perch_task *p PERCH_GIVEN,
					struct perch_descent *d PERCH_GIVEN, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(h, set), words = perch_host_set_words(h, set), k;
	perch_u32 best = d->cpu, least = 0xffffffffu;

	d->examined += perch_host_set_weight(h, set);
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		m &= perch_host_allowed_word(h, p, first + k);
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);
			perch_u32 load = perch_host_load(h, cpu);

			m &= m - 1;
			if (load < least || (load == least && cpu == d->cpu)) {
				least = load;
				best = cpu;
			}
		}
	}
	return best;
}

/*
 * Does the work of perch_slow_path() by load alone; a task that execs counts in
 * the load of its CPU.
 */
PERCH_RARE perch_u32 perch_early_slow(const struct perch_host *h PERCH_GIVEN,
				      const struct perch_policy *pol PERCH_GIVEN,
				      const struct perch_task *p PERCH_GIVEN,
				      const struct perch_wake *wake PERCH_GIVEN,
				      struct perch_verdict *v PERCH_GIVEN)
{
	struct perch_descent d = {.cpu = wake->this_cpu};
	perch_u32 level = 0, i, set, next, weight;

	for (i = PERCH_ZERO; PERCH_MORE; i++) {
		d.sd = perch_host_domain(h, d.cpu, i);
		if (d.sd == PERCH_NONE)
			break;
		if (perch_host_domain_flags(h, d.sd) & PERCH_SD_BALANCE_FORK)
			level = i + 1;
	}
	while (level && PERCH_MORE) {
		d.sd = perch_host_domain(h, d.cpu, --level);
		if (!(perch_host_domain_flags(h, d.sd) & PERCH_SD_BALANCE_FORK))
			continue;
		set = perch_early_idlest(h, pol, p, &d);
		if (set == PERCH_NONE)
			continue;
		next = perch_early_cpu(h, p, &d, set);
		if (next == d.cpu)
			continue;
		weight = perch_host_set_weight(h, perch_host_domain_set(h, d.sd));
		d.cpu = next;
		level = 0;
		for (i = PERCH_ZERO; PERCH_MORE; i++) {
			d.sd = perch_host_domain(h, d.cpu, i);
			if (d.sd == PERCH_NONE ||
			    perch_host_set_weight(h, perch_host_domain_set(h, d.sd)) >= weight)
				break;
			level = i + 1;
		}
	}
	v->examined = d.examined;
	return d.cpu;
}

#endif
