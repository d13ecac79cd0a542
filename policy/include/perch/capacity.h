/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capacity: capacity-aware wake-up (docs/mechanisms/capacity.md).
 *
 * Where CPUs differ in capacity (big.LITTLE), an idle CPU is good only if the
 * task fits it. Up to 5.6 the kernel asked that of the waker's and the
 * wakee's CPU alone, and balanced a misfit like a fork: right where each kind
 * had an LLC of its own (Juno), slow everywhere, and of no use where one LLC
 * spans both kinds (DynamIQ), because the idle search that follows a fitting
 * verdict does not look at capacities. sysbench's threads on a Pixel 3 lost a
 * fifth by it.
 *
 * Its hooks are in two stages: near says whether a candidate fits, and scan
 * looks for the idle CPU of the asymmetric domain that fits best. The stock
 * kernel up to 5.6 asks this header too when it chooses between fast and slow
 * path.
 */
#ifndef PERCH_CAPACITY_H
#define PERCH_CAPACITY_H

#include "stock.h"

/* How well a task fits a CPU, the more the better. */
enum perch_fit {
	PERCH_FIT_NOT = 0,
	PERCH_FIT_UNBOOSTED, /* its utilisation does, its uclamp_min asks for more */
	PERCH_FIT,
};

/* A fifth of the capacity stays free: utilisation lags behind a task that grows. */
PERCH_INLINE perch_u8 perch_fits_capacity(perch_u32 util, perch_u32 capacity)
{
	return util * 1280 < capacity * 1024;
}

/* The kernel's rule up to 6.1: what uclamp leaves of the utilisation fits, or does not. */
PERCH_INLINE perch_u32 perch_clamped_util(const struct perch_task *p)
{
	perch_u32 util = p->util < p->uclamp_min ? p->uclamp_min : p->util;

	return util < p->uclamp_max ? util : p->uclamp_max;
}

/*
 * The rule since 6.2 (util_fits_cpu). The margin belongs to the utilisation
 * alone: a task capped to what the CPU has fits however much it would like to
 * run, and one boosted to the largest capacity fits the largest CPU.
 */
PERCH_INLINE enum perch_fit perch_fit(const struct perch_host *h, const struct perch_task *p,
				      perch_u32 cpu)
{
	perch_u32 max = perch_host_capacity_max(h, cpu), min;
	perch_u8 fits = perch_fits_capacity(p->util, perch_host_capacity(h, cpu));

	/* No CPU has more than 1024: a cap there caps nothing. */
	if (p->uclamp_max <= max && !(max == 1024 && p->uclamp_max == 1024))
		fits = 1;
	if (!fits)
		return PERCH_FIT_NOT;
	min = p->uclamp_min < p->uclamp_max ? p->uclamp_min : p->uclamp_max;
	return p->util < min && min > max ? PERCH_FIT_UNBOOSTED : PERCH_FIT;
}

/* Whether the task fits, as the stock kernel of this era asks it. */
PERCH_INLINE perch_u8 perch_task_fits(const struct perch_host *h, const struct perch_policy *pol,
				      const struct perch_task *p, perch_u32 cpu)
{
	if (pol->rules.wake_cap)
		return perch_fits_capacity(perch_clamped_util(p), perch_host_capacity(h, cpu));
	return perch_fit(h, p, cpu) == PERCH_FIT;
}

/*
 * Whether the stock kernel up to 5.6 balances wake-ups here at all: `capacity`
 * took SD_BALANCE_WAKE away together with wake_cap().
 */
PERCH_INLINE perch_u8 perch_wake_balances(const struct perch_host *h,
					  const struct perch_policy *pol, perch_u32 this_cpu)
{
	return pol->rules.wake_cap && pol->modes.capacity == PERCH_OFF &&
	       perch_host_asym_set(h, this_cpu) != PERCH_NONE;
}

/*
 * Whether the stock kernel up to 5.6 takes the slow path because the task does
 * not fit the smaller of its two CPUs. Capacities that differ by less than an
 * eighth are alike.
 */
PERCH_INLINE perch_u8 perch_wake_cap(const struct perch_host *h, const struct perch_task *p,
				     perch_u32 this_cpu, perch_u32 prev)
{
	perch_u32 hi = perch_host_max_capacity(h), lo = perch_host_capacity_max(h, prev);
	perch_u32 other = perch_host_capacity_max(h, this_cpu);

	if (other < lo)
		lo = other;
	if (hi - lo < hi >> 3)
		return 0;
	return !perch_fits_capacity(perch_clamped_util(p), lo);
}

/* The CPUs of every capacity around `cpu`, if the mechanism has to look among them. */
PERCH_INLINE perch_u32 perch_capacity_set(const struct perch_host *h,
					  const struct perch_policy *pol, perch_u32 cpu)
{
	return pol->modes.capacity == PERCH_OFF ? PERCH_NONE : perch_host_asym_set(h, cpu);
}

/* Whether the other threads of the CPU's core are idle. */
PERCH_OUTLINE int perch_siblings_idle(const struct perch_host *h PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 core = perch_host_core_set(h, cpu), k;
	perch_u32 first = perch_host_set_first(h, core), words = perch_host_set_words(h, core);

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, core, first + k);

		m &= ~perch_host_idle_word(h, first + k);
		if (first + k == cpu / 64)
			m &= ~(1ull << (cpu % 64));
		if (m)
			return 0;
	}
	return 1;
}

/*
 * Whether a candidate of steps 1 to 4, idle and near, may end the search.
 * posted never comes to ask: it scans first, so a pair that sat on two fitting
 * CPUs went on to the next idle one at every wake-up (999,364 migrations in
 * hikey960's pipe benchmark, none with the steps before the scan; 5.10).
 */
PERCH_OUTLINE int perch_capacity_suits(const struct perch_host *h PERCH_GIVEN,
				       const struct perch_policy *pol PERCH_GIVEN,
				       const struct perch_task *p PERCH_GIVEN, perch_u32 cpu)
{
	if (perch_capacity_set(h, pol, cpu) == PERCH_NONE)
		return 1;
	if (perch_host_has_smt(h) && !perch_siblings_idle(h, cpu))
		return 0;
	return perch_fit(h, p, cpu) == PERCH_FIT;
}

/* Stage near: of every candidate. */
PERCH_INLINE enum perch_near perch_capacity_near(const struct perch_host *h,
						 const struct perch_policy *pol,
						 const struct perch_task *p,
						 const struct perch_search *s, perch_u32 cpu,
						 enum perch_candidate candidate)
{
	(void)s;
	(void)candidate;
	return perch_capacity_suits(h, pol, p, cpu) ? PERCH_NEAR_TAKE : PERCH_NEAR_PASS;
}

/* A fit on an idle core beats any fit beside a busy sibling. */
#define PERCH_FIT_CORE 3

/* The best idle CPU that a capacity scan has met. */
struct perch_capable {
	perch_u32 cpu, merit, capacity;
	perch_u32 cores; /* idle cores are worth looking for */
};

/*
 * Grades an idle CPU: posted by capacity alone, upstream and perch by how well
 * the task fits, then by capacity; the first of equals wins. Returns whether
 * nothing better can come.
 */
PERCH_OUTLINE int perch_capacity_grade(const struct perch_host *h PERCH_GIVEN,
				       const struct perch_policy *pol PERCH_GIVEN,
				       const struct perch_task *p PERCH_GIVEN,
				       struct perch_capable *best PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 capacity = perch_host_capacity(h, cpu), merit = PERCH_FIT_NOT;

	if (pol->modes.capacity == PERCH_POSTED) {
		if (perch_fits_capacity(perch_clamped_util(p), capacity))
			merit = PERCH_FIT;
	} else {
		merit = perch_fit(h, p, cpu);
		if (merit == PERCH_FIT_UNBOOSTED)
			capacity = perch_host_capacity_max(h, cpu);
	}
	if (!best->cores || perch_siblings_idle(h, cpu))
		merit += PERCH_FIT_CORE;
	if (best->cpu == PERCH_NONE || merit > best->merit ||
	    (merit == best->merit && capacity > best->capacity)) {
		best->cpu = cpu;
		best->merit = merit;
		best->capacity = capacity;
	}
	return merit == PERCH_FIT + PERCH_FIT_CORE;
}

/*
 * The first idle CPU from target on that the task fits; if it fits none, the
 * best of those that are idle.
 *
 * upstream examines no more than nr_idle_scan CPUs, a count made for LLCs of
 * equal CPUs: it takes the utilisation of all against 1024 each, so on Juno
 * with every CPU busy most of the time 2 of 6 are looked at, which may be the
 * two that do not fit. perch looks at all: the words of the idle mask are read
 * either way, and an asymmetric domain has tens of CPUs, not hundreds.
 */
PERCH_OUTLINE perch_u32 perch_scan_capacity(const struct perch_host *h PERCH_GIVEN,
					    const struct perch_policy *pol PERCH_GIVEN,
					    const struct perch_task *p PERCH_GIVEN,
					    struct perch_search *s PERCH_GIVEN)
{
	struct perch_ring ring = perch_ring(h, s->set, s->target);
	struct perch_capable best = {.cpu = PERCH_NONE, .cores = s->idle_cores};
	perch_u32 k, seen;

	for (k = PERCH_ZERO; k <= ring.words && s->budget && PERCH_MORE; k++) {
		perch_u64 keep, m, idle;
		perch_u32 w = perch_ring_word(&ring, k, &keep);

		m = perch_host_set_word(h, s->set, w) & perch_host_allowed_word(h, p, w) & keep;
		idle = m & perch_idle_ok_word(h, pol, p, w);
		while (idle && PERCH_MORE) {
			seen = __builtin_popcountll(m & (idle ^ (idle - 1)));
			if (seen > s->budget)
				break;
			if (perch_capacity_grade(h, pol, p, &best,
						 w * 64 + __builtin_ctzll(idle))) {
				s->examined += seen;
				s->reason = PERCH_BY_CAPACITY_FIT;
				return best.cpu;
			}
			idle &= idle - 1;
		}
		seen = __builtin_popcountll(m);
		seen = seen < s->budget ? seen : s->budget;
		s->examined += seen;
		s->budget -= seen;
	}
	/* Fits, but beside a busy sibling, where an idle core was hoped for. */
	s->reason = best.merit == PERCH_FIT ? PERCH_BY_CAPACITY_FIT : PERCH_BY_CAPACITY_BEST;
	return best.cpu;
}

/* Capacity that nobody uses. */
PERCH_INLINE perch_u32 perch_spare(const struct perch_host *h, perch_u32 cpu)
{
	perch_u32 capacity = perch_host_capacity(h, cpu), used = perch_host_util(h, cpu);

	return used < capacity ? capacity - used : 0;
}

/*
 * Grades the CPUs `m` of word w by the capacity that nobody uses; the first of
 * equals wins. A function of its own, as Linux 6.18 does not see the end of
 * such a loop within another.
 */
PERCH_OUTLINE int perch_spare_grade(const struct perch_host *h PERCH_GIVEN,
				    struct perch_capable *best PERCH_GIVEN, perch_u32 w,
				    perch_u64 m)
{
	while (m && PERCH_MORE) {
		perch_u32 cpu = w * 64 + __builtin_ctzll(m);
		perch_u32 spare = perch_spare(h, cpu);

		m &= m - 1;
		if (best->cpu == PERCH_NONE || spare > best->capacity) {
			best->cpu = cpu;
			best->capacity = spare;
		}
	}
	return 0;
}

/*
 * What leaving the target must bring: an eighth of the largest CPU, as
 * wake_cap() had it for capacities that are alike. hackbench with 400 tasks
 * leaves nothing idle on Juno; without this it moved after differences that
 * are gone before the task runs, and took 3.8 % longer than on the target.
 */
#define PERCH_SPARE_CLEAR 128

/*
 * perch, nothing idle: the allowed CPU with the most spare capacity, but the
 * target unless that has clearly more. The others return target, a LITTLE as
 * well as a big, whatever waits there: two of three woken tasks of a saturated
 * Juno then queue on the kind that takes twice as long for each.
 */
PERCH_OUTLINE perch_u32 perch_most_spare(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN,
					 struct perch_search *s PERCH_GIVEN)
{
	struct perch_ring ring = perch_ring(h, s->set, s->target);
	struct perch_capable best = {.cpu = PERCH_NONE};
	perch_u32 k;

	if (perch_allowed(h, p, s->target)) {
		best.cpu = s->target;
		best.capacity = perch_spare(h, s->target) + PERCH_SPARE_CLEAR;
	}
	for (k = PERCH_ZERO; k <= ring.words && PERCH_MORE; k++) {
		perch_u64 keep, m;
		perch_u32 w = perch_ring_word(&ring, k, &keep);

		m = perch_host_set_word(h, s->set, w) & perch_host_allowed_word(h, p, w) & keep;
		perch_spare_grade(h, &best, w, m);
	}
	return best.cpu;
}

/*
 * The capacity search on the asymmetric domain s->set: it ends the idle-sibling
 * search, found or not, so neither an LLC scan nor the cluster's follows.
 */
PERCH_INLINE perch_u32 perch_capacity_search(struct perch_host *h, const struct perch_policy *pol,
					     const struct perch_task *p, struct perch_search *s)
{
	perch_u32 cpu;

	s->budget = 0xffffffffu;
	if (pol->modes.capacity != PERCH_POSTED && perch_host_has_smt(h))
		s->idle_cores = perch_host_idle_cores(h, s->set);
	if (pol->modes.capacity == PERCH_UPSTREAM) {
		perch_u32 budget = perch_host_nr_idle_scan(h, s->set);

		if (!s->idle_cores || !budget)
			s->budget = budget;
	}
	cpu = perch_scan_capacity(h, pol, p, s);
	if (s->idle_cores && s->budget && (cpu == PERCH_NONE || !perch_siblings_idle(h, cpu)))
		perch_host_set_idle_cores(h, s->set, 0);
	if (cpu == PERCH_NONE && pol->modes.capacity == PERCH_PERCH) {
		s->reason = PERCH_BY_CAPACITY_SPARE;
		cpu = perch_most_spare(h, p, s);
	}
	if (cpu == PERCH_NONE) {
		s->reason = PERCH_BY_TARGET_BUSY;
		cpu = s->target;
	}
	/* The scan has seen the candidates that were passed over. */
	s->near_prev = s->near_recent = PERCH_NONE;
	return cpu;
}

/*
 * Stage scan: posted before the candidates, upstream and perch after them and
 * instead of the LLC.
 */
PERCH_INLINE perch_u32 perch_capacity_scan(struct perch_host *h, const struct perch_policy *pol,
					   const struct perch_task *p, struct perch_search *s,
					   enum perch_scan when)
{
	if (when == PERCH_SCAN_FIRST)
		s->set = perch_capacity_set(h, pol, s->target);
	else if (when != PERCH_SCAN_DOMAIN)
		return PERCH_NONE;
	if (s->set == PERCH_NONE ||
	    (when == PERCH_SCAN_FIRST) != (pol->modes.capacity == PERCH_POSTED))
		return PERCH_NONE;
	return perch_capacity_search(h, pol, p, s);
}

#endif
