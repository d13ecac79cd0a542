/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * capacity: capacity-aware wake-up (docs/mechanisms/capacity.md).
 *
 * Where CPUs differ in capacity (big.LITTLE), an idle CPU is good only if the
 * task fits it. Up to 5.6 the kernel asked whether the task fits the waker's
 * and the wakee's CPU, and no other, and balanced a misfit like a fork. That
 * was right where each kind of CPU had an LLC of its own (Juno), but slow
 * everywhere. It was of no use where one LLC spans both kinds (DynamIQ),
 * because the idle search that follows when the task fits does not look at
 * capacities. sysbench's threads on a Pixel 3 lost a fifth by it.
 *
 * Its hooks are in two stages: near says whether a candidate fits, and scan
 * looks for the idle CPU of the asymmetric domain that fits best. The stock
 * kernel up to 5.6 asks this header too when it chooses between fast and slow
 * path.
 */
#ifndef PERCH_CAPACITY_H
#define PERCH_CAPACITY_H

#include "stock.h"

/* How well a task fits a CPU; a higher value is a better fit. */
enum perch_fit {
	PERCH_FIT_NOT = 0,
	PERCH_FIT_UNBOOSTED, /* its utilisation fits, its uclamp_min asks for more */
	PERCH_FIT,
};

/* A fifth of the capacity stays free: utilisation lags behind a task that grows. */
PERCH_INLINE perch_u8 perch_fits_capacity(perch_u32 util, perch_u32 capacity)
{
	return util * 1280 < capacity * 1024;
}

/* The utilisation between its clamps, by which the kernel up to 6.1 asks whether a task fits. */
PERCH_INLINE perch_u32 perch_clamped_util(const struct perch_task *p)
{
	perch_u32 util = p->util < p->uclamp_min ? p->uclamp_min : p->util;

	return util < p->uclamp_max ? util : p->uclamp_max;
}

/*
 * The rule since 6.2 (util_fits_cpu). The margin belongs to the utilisation
 * alone: a task that is capped to the CPU's capacity fits however much it would
 * like to run, and a task that is boosted to the largest capacity fits the
 * largest CPU.
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

/* True if the task fits the CPU by the rule of this era's stock kernel. */
PERCH_INLINE perch_u8 perch_task_fits(const struct perch_host *h, const struct perch_policy *pol,
				      const struct perch_task *p, perch_u32 cpu)
{
	if (pol->rules.wake_cap)
		return perch_fits_capacity(perch_clamped_util(p), perch_host_capacity(h, cpu));
	return perch_fit(h, p, cpu) == PERCH_FIT;
}

/*
 * True if the stock kernel up to 5.6 balances wake-ups on this machine at all.
 * The series `capacity` removed SD_BALANCE_WAKE together with wake_cap().
 */
PERCH_INLINE perch_u8 perch_wake_balances(const struct perch_host *h,
					  const struct perch_policy *pol, perch_u32 this_cpu)
{
	return pol->rules.wake_cap && pol->modes.capacity == PERCH_OFF &&
	       perch_host_asym_set(h, this_cpu) != PERCH_NONE;
}

/*
 * True if the stock kernel up to 5.6 takes the slow path because the task does
 * not fit the smaller of its two CPUs. Capacities that differ by less than an
 * eighth count as equal.
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

/*
 * The lowest domain around `cpu` that has CPUs of every capacity, if the
 * mechanism has to search it.
 */
PERCH_INLINE perch_u32 perch_capacity_set(const struct perch_host *h,
					  const struct perch_policy *pol, perch_u32 cpu)
{
	return pol->modes.capacity == PERCH_OFF ? PERCH_NONE : perch_host_asym_set(h, cpu);
}

/* True if the other threads of the CPU's core are idle. */
PERCH_OUTLINE int perch_siblings_idle(const struct perch_host *h PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 core = perch_host_core_set(h, cpu), k;
	perch_u32 first = perch_host_set_first(h, core), words = perch_host_set_words(h, core);

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, core, first + k);

		m &= ~perch_host_idle_word(h, first + k, m);
		if (first + k == cpu / 64)
			m &= ~(1ull << (cpu % 64));
		if (m)
			return 0;
	}
	return 1;
}

/*
 * True if a candidate of steps 1 to 4, which is idle and near, may end the
 * search. Mode posted never asks this, as it scans first: a pair that sat on
 * two fitting CPUs went on to the next idle CPU at every wake-up (999,364
 * migrations in hikey960's pipe benchmark, none with the steps before the scan;
 * 5.10).
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

/* Stage near: the mechanism judges every candidate. */
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

/* The best idle CPU that a capacity scan has met, and where the scan is. */
struct perch_capable {
	perch_u32 cpu, merit, capacity;
	perch_u32 cores; /* idle cores are worth looking for */
	perch_u64 m;	 /* the CPUs to look at, in word w */
	perch_u32 w, pad;
};

/*
 * Grades an idle CPU: mode posted grades by capacity alone, upstream and perch
 * by how well the task fits and then by capacity; the first of equals wins.
 * Returns true if no later CPU can be better.
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
 * Looks at the CPUs `m` of word w as perch_scan_capacity() does. Returns 1 if
 * the search ends with best->cpu. This is a function of its own because the
 * verifier of Linux 6.18 does not see the end of such a loop within another
 * loop.
 */
PERCH_OUTLINE int perch_look_capacity(const struct perch_host *h PERCH_GIVEN,
				      const struct perch_policy *pol PERCH_GIVEN,
				      const struct perch_task *p PERCH_GIVEN,
				      struct perch_search *s PERCH_GIVEN,
				      struct perch_capable *best PERCH_GIVEN)
{
	perch_u64 m = best->m, idle = perch_idle_ok_word(h, pol, p, best->w, m);
	perch_u32 seen;

	while (idle && PERCH_MORE) {
		seen = __builtin_popcountll(m & (idle ^ (idle - 1)));
		if (seen > s->budget)
			break;
		if (perch_capacity_grade(h, pol, p, best, best->w * 64 + __builtin_ctzll(idle))) {
			s->examined += seen;
			return 1;
		}
		idle &= idle - 1;
	}
	seen = __builtin_popcountll(m);
	seen = seen < s->budget ? seen : s->budget;
	s->examined += seen;
	s->budget -= seen;
	return 0;
}

/*
 * Finds the first idle CPU from the target on that the task fits; if the task
 * fits none, the best of the idle CPUs.
 *
 * Mode upstream examines no more than nr_idle_scan CPUs. That count is made for
 * LLCs of equal CPUs: it compares the utilisation of all with 1024 for each, so
 * on Juno with every CPU busy most of the time upstream looks at 2 of 6, which
 * may be the two that the task does not fit. Mode perch looks at all CPUs: both
 * modes read the words of the idle mask anyway, and an asymmetric domain has
 * tens of CPUs, not hundreds.
 */
PERCH_OUTLINE perch_u32 perch_scan_capacity(const struct perch_host *h PERCH_GIVEN,
					    const struct perch_policy *pol PERCH_GIVEN,
					    const struct perch_task *p PERCH_GIVEN,
					    struct perch_search *s PERCH_GIVEN)
{
	struct perch_ring ring = perch_ring(h, s->set, s->target);
	struct perch_capable best = {.cpu = PERCH_NONE, .cores = s->idle_cores};
	perch_u32 k;

	for (k = PERCH_ZERO; k <= ring.words && s->budget && PERCH_MORE; k++) {
		perch_u64 keep;

		best.w = perch_ring_word(&ring, k, &keep);
		best.m = perch_host_set_word(h, s->set, best.w) &
			 perch_host_allowed_word(h, p, best.w) & keep;
		if (perch_look_capacity(h, pol, p, s, &best)) {
			s->reason = PERCH_BY_CAPACITY_FIT;
			return best.cpu;
		}
	}
	/* The task fits a CPU with a busy sibling; the search hoped for an idle core. */
	s->reason = best.merit == PERCH_FIT ? PERCH_BY_CAPACITY_FIT : PERCH_BY_CAPACITY_BEST;
	return best.cpu;
}

/* The CPU's capacity that no task uses. */
PERCH_INLINE perch_u32 perch_spare(const struct perch_host *h, perch_u32 cpu)
{
	perch_u32 capacity = perch_host_capacity(h, cpu), used = perch_host_util(h, cpu);

	return used < capacity ? capacity - used : 0;
}

/*
 * Grades the CPUs `m` of word w by the capacity that no task uses; the first of
 * equals wins. This is a function of its own because the verifier of Linux 6.18
 * does not see the end of such a loop within another loop.
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
 * The spare capacity that a task must gain to leave the target: an eighth of
 * the largest CPU, the difference below which wake_cap() took capacities for
 * equal. hackbench with 400 tasks leaves no CPU idle on Juno; without this
 * margin its tasks moved for differences that are gone before the task runs,
 * and hackbench took 3.8 % longer than on the target.
 */
#define PERCH_SPARE_CLEAR 128

/*
 * Mode perch, when no CPU is idle: returns the allowed CPU with the most spare
 * capacity if it has clearly more than the target, else the target. The other
 * modes return the target, be it a LITTLE or a big CPU, whatever waits there:
 * two of three woken tasks of a saturated Juno then queue on the kind that
 * takes twice as long for each.
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
 * The capacity search on the asymmetric domain s->set. It ends the idle-sibling
 * search whether it finds a CPU or not, so neither the LLC nor the cluster is
 * scanned afterwards.
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
	/* The scan has seen the candidates that the steps before it passed over. */
	s->near_prev = s->near_recent = PERCH_NONE;
	return cpu;
}

/*
 * Stage scan: mode posted scans before the candidates, upstream and perch scan
 * after them and in place of the LLC scan.
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
