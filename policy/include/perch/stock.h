/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The stock kernel's wake-up: it settles whether the waker pulls the wakee to
 * its CPU (wake_wide, wake_affine), and has the steps of the idle-sibling
 * search that no mechanism replaces. Written from docs/mechanisms/stock.md.
 */
#ifndef PERCH_STOCK_H
#define PERCH_STOCK_H

#include "sets.h"

/* One idle-sibling search on its way through select.h. */
struct perch_search {
	perch_u32 this_cpu;
	perch_u32 prev;
	perch_u32 target;
	perch_u32 flags;       /* of the wake-up */
	perch_u32 llc;	       /* set of the LLC being scanned */
	perch_u32 budget;      /* CPUs the scan may still examine */
	perch_u32 examined;    /* CPUs it has examined */
	perch_u32 set;	       /* set being scanned */
	perch_u32 done_set;    /* already walked, not to be visited again */
	perch_u32 thread;      /* idle thread passed while looking for an idle core */
	perch_u32 near_prev;   /* cluster: idle prev that is not near target */
	perch_u32 near_recent; /* cluster: likewise recent */
	perch_u32 home;	       /* cache: the true previous CPU while prev is a preferred one */
	perch_u32 reason;
	perch_u8 idle_cores; /* the LLC may have a fully idle core */
	perch_u8 again;	     /* cache: nothing idle in the preferred LLC, search at home */
};

/* The CPUs that the search looks at one by one before it scans, in this order. */
enum perch_candidate {
	PERCH_CANDIDATE_TARGET,
	PERCH_CANDIDATE_PREV,
	PERCH_CANDIDATE_KTHREAD, /* prev again, busy with the per-CPU kthread that wakes */
	PERCH_CANDIDATE_RECENT,
};

/*
 * The answers of a hook of stage near to such a candidate, which is idle or
 * runs the waking kthread.
 */
enum perch_near {
	PERCH_NEAR_TAKE = 0,
	PERCH_NEAR_PASS,  /* the search goes on without it */
	PERCH_NEAR_LATER, /* likewise, and remembers it (near_prev, near_recent) */
};

/* The points of the search at which hooks of stage scan are called. */
enum perch_scan {
	PERCH_SCAN_FIRST,  /* before the candidates */
	PERCH_SCAN_DOMAIN, /* after them; no hook has looked at the LLC yet */
	PERCH_SCAN_LLC,	   /* before the stock kernel scans the LLC, which is s->llc */
};

/*
 * Those of the CPUs `among` that count as idle for this wakee: idle ones, and
 * those that run only SCHED_IDLE tasks.
 */
PERCH_INLINE perch_u64 perch_idle_ok_word(const struct perch_host *h,
					  const struct perch_policy *pol,
					  const struct perch_task *p, perch_u32 w, perch_u64 among)
{
	perch_u64 idle = perch_host_idle_word(h, w, among);
	perch_u64 also = perch_host_sched_idle_word(h, w) & among;

	if (also && pol->rules.idle_sees_policy && (p->flags & PERCH_TASK_SCHED_IDLE))
		return idle;
	return idle | also;
}

PERCH_INLINE perch_u8 perch_idle_ok(const struct perch_host *h, const struct perch_policy *pol,
				    const struct perch_task *p, perch_u32 cpu)
{
	if (perch_host_idle(h, cpu))
		return 1;
	if (!(perch_host_sched_idle_word(h, cpu / 64) >> (cpu % 64) & 1))
		return 0;
	return !(pol->rules.idle_sees_policy && (p->flags & PERCH_TASK_SCHED_IDLE));
}

PERCH_INLINE perch_u8 perch_share_llc(const struct perch_host *h, perch_u32 a, perch_u32 b)
{
	perch_u32 llc = perch_host_llc_set(h, a);

	return a == b || (llc != PERCH_NONE && llc == perch_host_llc_set(h, b));
}

/* The waker notes whether it wakes another task than last time (record_wakee). */
PERCH_INLINE void perch_record_wakee(const struct perch_policy *pol, const struct perch_wake *wake,
				     struct perch_task *waker, const struct perch_task *p)
{
	/*
	 * The count is halved once at most, however long ago it changed: an old
	 * server that has slept for minutes is still a server when it wakes its
	 * next client.
	 */
	if (wake->now_ns > waker->flip_decay_at_ns + pol->rules.flip_decay_ns) {
		waker->wakee_flips >>= 1;
		waker->flip_decay_at_ns = wake->now_ns;
	}
	if (waker->last_wakee != p->id) {
		waker->last_wakee = p->id;
		waker->wakee_flips++;
	}
}

/*
 * True if waker and wakee are one task and many partners that would crowd one
 * LLC: the task with fewer flips has at least one for each CPU of the LLC, and
 * the other task has that many times more.
 */
PERCH_INLINE perch_u8 perch_wake_wide(const struct perch_host *h, perch_u32 this_cpu,
				      const struct perch_task *waker, const struct perch_task *p)
{
	perch_u32 most = waker->wakee_flips, least = p->wakee_flips, llc;
	perch_u64 factor;

	if (most < least) {
		perch_u32 swap = most;

		most = least;
		least = swap;
	}
	/* Most pairs end here: one of the two tasks never wakes two others in turn. */
	if (!least)
		return 0;
	llc = perch_host_llc_set(h, this_cpu);
	factor = llc == PERCH_NONE ? 1 : perch_host_set_weight(h, llc);
	return least >= factor && most >= least * factor;
}

/* wa_idle: returns the one of the two CPUs that is free at once; PERCH_NONE when neither is. */
PERCH_INLINE perch_u32 perch_affine_idle(const struct perch_host *h, perch_u32 this_cpu,
					 perch_u32 prev, perch_u32 flags)
{
	perch_u32 running;

	/*
	 * The waker's CPU is idle: an interrupt wakes. Pulling would only
	 * follow the interrupt, so prev wins when it is idle and as near.
	 */
	if (perch_host_idle(h, this_cpu) && perch_share_llc(h, this_cpu, prev))
		return perch_host_idle(h, prev) ? prev : this_cpu;
	running = perch_host_nr_running(h, this_cpu);
	running -= perch_host_nr_delayed(h, this_cpu);
	if ((flags & PERCH_WAKE_SYNC) && running == 1)
		return this_cpu;
	return perch_host_idle(h, prev) ? prev : PERCH_NONE;
}

/*
 * wa_weight: returns the waker's CPU if it would be the less loaded one with
 * the wakee on it, else PERCH_NONE.
 */
PERCH_INLINE perch_u32 perch_affine_weight(const struct perch_host *h, const struct perch_task *p,
					   perch_u32 this_cpu, perch_u32 prev, perch_u32 flags,
					   perch_u32 imbalance_pct)
{
	perch_s64 here = perch_host_load(h, this_cpu), there = perch_host_load(h, prev);
	perch_s64 load = p->load;

	if (flags & PERCH_WAKE_SYNC) {
		perch_s64 current = perch_host_curr_load(h, this_cpu);

		if (current > here)
			return this_cpu;
		here -= current;
	}
	here = (here + load) * 100 * perch_host_capacity(h, prev);
	there -= load < there ? load : there;
	there *= (100 + (imbalance_pct - 100) / 2) * (perch_s64)perch_host_capacity(h, this_cpu);
	/* A sync waker leaves: a tie goes to its CPU. */
	if (flags & PERCH_WAKE_SYNC)
		there++;
	return here < there ? this_cpu : PERCH_NONE;
}

/* The CPU at which the idle search aims: this_cpu or prev. */
PERCH_OUTLINE perch_u32 perch_wake_affine(const struct perch_host *h PERCH_GIVEN,
					  const struct perch_policy *pol PERCH_GIVEN,
					  const struct perch_task *p PERCH_GIVEN,
					  const struct perch_wake *wake PERCH_GIVEN, perch_u32 prev)
{
	perch_u32 this_cpu = wake->this_cpu, flags = wake->flags;
	perch_u32 level, cpu = PERCH_NONE;
	perch_u8 near = perch_share_llc(h, this_cpu, prev);

	if (this_cpu == prev)
		return prev;
	/*
	 * Every domain within an LLC allows the pull, so most wake-ups need not
	 * look at the domains.
	 */
	if (near) {
		cpu = perch_affine_idle(h, this_cpu, prev, flags);
		if (cpu != PERCH_NONE)
			return cpu;
	}
	for (level = PERCH_ZERO; PERCH_MORE; level++) {
		perch_u32 sd = perch_host_domain(h, this_cpu, level);

		if (sd == PERCH_NONE)
			return prev;
		if (!(perch_host_domain_flags(h, sd) & PERCH_SD_WAKE_AFFINE) ||
		    !perch_set_has(h, perch_host_domain_set(h, sd), prev))
			continue;
		if (!near)
			cpu = perch_affine_idle(h, this_cpu, prev, flags);
		if (cpu == PERCH_NONE)
			cpu = perch_affine_weight(h, p, this_cpu, prev, flags,
						  perch_imbalance_pct(h, pol, sd));
		return cpu == this_cpu ? this_cpu : prev;
	}
	return prev;
}

/* Step 7: an idle SMT sibling of prev. */
PERCH_INLINE perch_u32 perch_idle_sibling(const struct perch_host *h,
					  const struct perch_policy *pol,
					  const struct perch_task *p, perch_u32 prev)
{
	perch_u32 core = perch_host_core_set(h, prev), k;
	perch_u32 first = perch_host_set_first(h, core), words = perch_host_set_words(h, core);

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, core, first + k);

		m &= perch_host_allowed_word(h, p, first + k);
		m = perch_idle_ok_word(h, pol, p, first + k, m);
		if (first + k == prev / 64)
			m &= ~(1ull << (prev % 64));
		if (m)
			return (first + k) * 64 + __builtin_ctzll(m);
	}
	return PERCH_NONE;
}

/* The CPUs of `set` that a scan may visit: allowed, and not walked before. */
PERCH_INLINE perch_u64 perch_scan_word(const struct perch_host *h, const struct perch_task *p,
				       const struct perch_search *s, perch_u32 set, perch_u32 w)
{
	perch_u64 m = perch_host_set_word(h, set, w) & perch_host_allowed_word(h, p, w);
	perch_u32 first;

	if (s->done_set != PERCH_NONE) {
		first = perch_host_set_first(h, s->done_set);
		if (w >= first && w < first + perch_host_set_words(h, s->done_set))
			m &= ~perch_host_set_word(h, s->done_set, w);
	}
	return m;
}

/*
 * Looks for an idle CPU of `set` in ring order after target, at most s->budget
 * CPUs far; the CPUs that were examined are taken off the budget. The kernel
 * goes CPU by CPU; this function takes a word of 64 at once, finds the same CPU
 * and counts the same number.
 */
PERCH_OUTLINE perch_u32 perch_scan_cpus(const struct perch_host *h PERCH_GIVEN,
					const struct perch_policy *pol PERCH_GIVEN,
					const struct perch_task *p PERCH_GIVEN,
					struct perch_search *s PERCH_GIVEN, perch_u32 set)
{
	struct perch_ring ring = perch_ring(h, set, s->target + 1);
	perch_u32 k, seen;

	/* Sets of one word without an idle CPU end here: on a full machine nearly every set. */
	if (ring.words == 1) {
		perch_u64 m = perch_scan_word(h, p, s, set, ring.first);

		if (!perch_idle_ok_word(h, pol, p, ring.first, m)) {
			seen = __builtin_popcountll(m);
			seen = seen < s->budget ? seen : s->budget;
			s->examined += seen;
			s->budget -= seen;
			return PERCH_NONE;
		}
	}
	for (k = PERCH_ZERO; k <= ring.words && PERCH_MORE; k++) {
		perch_u64 keep, m, idle;
		perch_u32 w = perch_ring_word(&ring, k, &keep);

		m = perch_scan_word(h, p, s, set, w) & keep;
		if (!m)
			continue;
		idle = perch_idle_ok_word(h, pol, p, w, m);
		seen = __builtin_popcountll(idle ? m & (idle ^ (idle - 1)) : m);
		if (seen > s->budget || (!idle && seen == s->budget)) {
			s->examined += s->budget;
			s->budget = 0;
			return PERCH_NONE;
		}
		s->examined += seen;
		s->budget -= seen;
		if (idle)
			return w * 64 + __builtin_ctzll(idle);
	}
	return PERCH_NONE;
}

/* Returns 1 if `cpu` is the first of its core that a ring walk from target+1 visits. */
PERCH_OUTLINE int perch_leads_core(const struct perch_host *h PERCH_GIVEN,
				   const struct perch_task *p PERCH_GIVEN,
				   const struct perch_search *s PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 core = perch_host_core_set(h, cpu), k;
	perch_u32 first = perch_host_set_first(h, core), words = perch_host_set_words(h, core);
	perch_u32 n = perch_host_nr_cpus(h), from = s->target + 1;
	perch_u32 mine = cpu >= from ? cpu - from : cpu + n - from;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, core, first + k);

		m &= perch_scan_word(h, p, s, s->set, first + k);
		while (m && PERCH_MORE) {
			perch_u32 other = (first + k) * 64 + __builtin_ctzll(m);
			perch_u32 theirs = other >= from ? other - from : other + n - from;

			if (theirs < mine)
				return 0;
			m &= m - 1;
		}
	}
	return 1;
}

/*
 * One step of the idle-core search: returns 1 if all threads of the core are
 * idle. s->thread remembers the core's first idle thread that the scan may use,
 * unless an earlier core left one.
 */
PERCH_OUTLINE int perch_core_idle(const struct perch_host *h PERCH_GIVEN,
				  const struct perch_policy *pol PERCH_GIVEN,
				  const struct perch_task *p PERCH_GIVEN,
				  struct perch_search *s PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 core = perch_host_core_set(h, cpu), k;
	perch_u32 first = perch_host_set_first(h, core), words = perch_host_set_words(h, core);
	int all = 1;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, core, first + k);
		perch_u64 usable = perch_scan_word(h, p, s, s->set, first + k);

		if (m & ~perch_host_idle_word(h, first + k, m))
			all = 0;
		usable = perch_idle_ok_word(h, pol, p, first + k, usable & m);
		if (s->thread == PERCH_NONE && usable)
			s->thread = (first + k) * 64 + __builtin_ctzll(usable);
	}
	return all;
}

/* Looks for a fully idle core of `set` in ring order after target; no budget. */
PERCH_OUTLINE perch_u32 perch_scan_cores(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_policy *pol PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN,
					 struct perch_search *s PERCH_GIVEN, perch_u32 set)
{
	struct perch_ring ring = perch_ring(h, set, s->target + 1);
	perch_u32 k;

	s->set = set;
	for (k = PERCH_ZERO; k <= ring.words && PERCH_MORE; k++) {
		perch_u64 keep, m;
		perch_u32 w = perch_ring_word(&ring, k, &keep);

		m = perch_scan_word(h, p, s, set, w) & keep;
		while (m && PERCH_MORE) {
			perch_u32 cpu = w * 64 + __builtin_ctzll(m);

			m &= m - 1;
			if (!perch_leads_core(h, p, s, cpu))
				continue;
			s->examined++;
			if (perch_core_idle(h, pol, p, s, cpu))
				return cpu;
		}
	}
	return PERCH_NONE;
}

/*
 * Step 8 over the whole LLC, or over the part of it that the cluster scan has
 * left: docs/mechanisms/stock.md#scan.
 */
PERCH_INLINE perch_u32 perch_scan_llc(struct perch_host *h, const struct perch_policy *pol,
				      const struct perch_task *p, struct perch_search *s)
{
	perch_u32 cpu;

	if (!s->idle_cores) {
		s->reason = PERCH_BY_LLC_SCAN;
		return perch_scan_cpus(h, pol, p, s, s->llc);
	}
	s->reason = PERCH_BY_LLC_CORE;
	cpu = perch_scan_cores(h, pol, p, s, s->llc);
	if (cpu != PERCH_NONE)
		return cpu;
	perch_host_set_idle_cores(h, s->llc, 0);
	s->reason = PERCH_BY_LLC_THREAD;
	return s->thread;
}

#endif
