/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Cache-aware wake-up: a process's threads gather in the LLC that it occupies
 * most, unless that is over-aggregated. Written from docs/mechanisms/cache.md.
 *
 * A host reports every execution slice (perch_cache_account), asks at ticks
 * whether the process is due for a scan of all LLCs (perch_cache_due) and then
 * runs that scan (perch_cache_scan; these three are in occupancy.h). The host
 * also reports how full the LLCs are: in modes posted and upstream it calls
 * perch_cache_note() while it balances, in mode perch it keeps perch_llc_load
 * current. Its balancer asks perch_cache_move().
 */
#ifndef PERCH_CACHE_H
#define PERCH_CACHE_H

#include "capacity.h"
#include "occupancy.h"

/*
 * The host calls this when a periodic (never a newidle) balance of the domain
 * above the LLCs has summed up this LLC. The average moves by an eighth of the
 * difference, cut to whole tasks, so it stands still within 7 of its goal
 * (docs/mechanisms/cache.md#defects).
 */
PERCH_INLINE void perch_cache_note(const struct perch_host *h, perch_u32 llc, perch_u32 util,
				   perch_u32 capacity_left, perch_u32 nr_running)
{
	struct perch_llc_load PERCH_AS *load = perch_host_llc_load(h, llc);

	load->util = util;
	load->nr += (perch_s32)(nr_running - load->nr) / 8;
	load->capacity_left = capacity_left;
}

/*
 * Mode posted: the reason why an LLC takes no further task; PERCH_CACHE_NONE if
 * it takes one. For a process with fewer threads than the LLC has CPUs it does
 * not look at the load: the load of other processes counts for nothing then.
 * An LLC that no balance has looked at yet counts as unused.
 */
PERCH_INLINE perch_u32 perch_llc_full_posted(const struct perch_host *h,
					     const struct perch_process PERCH_AS *process,
					     perch_u32 llc)
{
	const struct perch_llc_load PERCH_AS *load = perch_host_llc_load(h, llc);
	perch_u32 weight = perch_llc_weight(h, llc);

	if (process->nr_threads < weight)
		return PERCH_CACHE_NONE;
	if (load->util * 4 >= weight * 1024)
		return PERCH_CACHE_FULL_UTIL;
	if (load->nr * 3 >= weight)
		return PERCH_CACHE_FULL_RUNNABLE;
	return PERCH_CACHE_NONE;
}

/*
 * Mode perch: tasks leave an LLC when every core has a task to run, in number
 * of tasks or in utilisation (where threads share cores, half of the CPUs'
 * capacity; 7.2 draws the same line). Tasks enter an LLC only below 80 % of
 * either, so that the next wake-up does not put back the task that the balancer
 * took out. schbench with as many workers as CPUs showed that this gap is
 * needed.
 */
PERCH_INLINE perch_u32 perch_llc_full(const struct perch_host *h, perch_u32 llc, perch_u8 entering)
{
	const struct perch_llc_load PERCH_AS *load = perch_host_llc_load(h, llc);
	perch_u8 smt = load->cores < perch_llc_weight(h, llc);
	perch_u32 percent = smt ? (entering ? 40 : 50) : (entering ? 60 : 75);

	if ((perch_u64)load->util * 100 >= (perch_u64)load->capacity * percent)
		return PERCH_CACHE_FULL_UTIL;
	if (entering ? load->nr >= perch_llc_holds(load) : load->nr > load->cores)
		return PERCH_CACHE_FULL_RUNNABLE;
	return PERCH_CACHE_NONE;
}

/*
 * Mode perch: true if the task may run on the CPU and, where CPUs differ, the
 * CPU is large enough.
 */
PERCH_INLINE perch_u8 perch_cache_suits(const struct perch_host *h, const struct perch_policy *pol,
					const struct perch_task *p, perch_u32 cpu)
{
	return perch_allowed(h, p, cpu) &&
	       (perch_host_asym_set(h, cpu) == PERCH_NONE || perch_task_fits(h, pol, p, cpu));
}

/*
 * Mode perch: the hottest CPU of an LLC if it suits the task, else the LLC's
 * first CPU that does.
 */
PERCH_OUTLINE perch_u32 perch_cache_cpu(const struct perch_host *h PERCH_GIVEN,
					const struct perch_policy *pol PERCH_GIVEN,
					const struct perch_task *p PERCH_GIVEN, perch_u32 llc,
					perch_u32 hot)
{
	perch_u32 set = perch_host_llc_cpus(h, llc), k;
	perch_u32 first = perch_host_set_first(h, set), words = perch_host_set_words(h, set);

	if (hot != PERCH_NONE && perch_cache_suits(h, pol, p, hot))
		return hot;
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		m &= perch_host_allowed_word(h, p, first + k);
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);

			if (perch_cache_suits(h, pol, p, cpu))
				return cpu;
			m &= m - 1;
		}
	}
	return PERCH_NONE;
}

/* Mode perch: tries one LLC. Returns its CPU, or PERCH_NONE and the cause in v->cache. */
PERCH_OUTLINE perch_u32 perch_cache_try(const struct perch_host *h PERCH_GIVEN,
					const struct perch_policy *pol PERCH_GIVEN,
					const struct perch_task *p PERCH_GIVEN,
					struct perch_verdict *v PERCH_GIVEN, perch_u32 llc)
{
	perch_u32 cpu;

	v->cache = perch_llc_full(h, llc, 1);
	if (v->cache != PERCH_CACHE_NONE)
		return PERCH_NONE;
	cpu = perch_cache_cpu(h, pol, p, llc, p->process->seats[llc].hot_cpu);
	v->cache = cpu == PERCH_NONE ? PERCH_CACHE_UNFIT : PERCH_CACHE_REDIRECTED;
	return cpu;
}

/*
 * Mode perch: true if a waking task had better go to another LLC: with this
 * task, more than nine tenths of the LLC's cores have a task to run. The limit
 * lies above the one below which wake-ups may enter.
 */
PERCH_INLINE perch_u8 perch_llc_crowded(const struct perch_llc_load PERCH_AS *load)
{
	return load->nr * 10 >= load->cores * 9;
}

/* Mode perch: an idle CPU of an LLC that suits the task, on an idle core if the LLC has one. */
PERCH_OUTLINE perch_u32 perch_cache_idle(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_policy *pol PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN, perch_u32 llc)
{
	perch_u32 set = perch_host_llc_cpus(h, llc), k, thread = PERCH_NONE;
	perch_u32 first = perch_host_set_first(h, set), words = perch_host_set_words(h, set);

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		m &= perch_host_allowed_word(h, p, first + k);
		m = perch_idle_ok_word(h, pol, p, first + k, m);
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);

			m &= m - 1;
			if (!perch_cache_suits(h, pol, p, cpu))
				continue;
			if (perch_siblings_idle(h, cpu))
				return cpu;
			if (thread == PERCH_NONE)
				thread = cpu;
		}
	}
	return thread;
}

/*
 * Mode perch: sends the task out of a crowded LLC to an idle CPU of an LLC that
 * has clearly fewer runnable tasks and clearly less utilisation, both by an
 * eighth. A preferred LLC comes first, then the others in order of number,
 * which is the order of nearness on most machines. schbench with 128 workers
 * showed the need: its workers gathered while they began, and 88 stayed on 60
 * cores for seconds, because each of them had a CPU, if only half a core, and
 * the balancer moves such a task once in a quarter second. With 239 workers the
 * number of runnable tasks alone would do harm: it swings with the workers that
 * sleep, and an idle CPU there belongs to a worker that wakes soon.
 */
PERCH_OUTLINE perch_u32 perch_cache_leave(const struct perch_host *h PERCH_GIVEN,
					  const struct perch_policy *pol PERCH_GIVEN,
					  const struct perch_task *p PERCH_GIVEN,
					  struct perch_verdict *v PERCH_GIVEN, perch_u32 prev)
{
	perch_u32 nr_llcs = perch_host_nr_llcs(h), home = perch_host_llc(h, prev), k, cpu;
	struct perch_llc_load PERCH_AS *here;

	if (home == PERCH_NONE)
		return prev;
	here = perch_host_llc_load(h, home);
	if (!perch_llc_crowded(here))
		return prev;
	for (k = PERCH_ZERO; k < 2 * nr_llcs && PERCH_MORE; k++) {
		perch_u32 llc = home + (k < nr_llcs ? k : k - nr_llcs);
		struct perch_llc_load PERCH_AS *there;

		llc = llc < nr_llcs ? llc : llc - nr_llcs;
		if (llc == home || (p->process->seats[llc].preferred != 0) != (k < nr_llcs))
			continue;
		there = perch_host_llc_load(h, llc);
		if (there->nr + 1 + there->cores / 8 >= here->nr ||
		    (perch_u64)there->util * 8 >= (perch_u64)here->util * 7)
			continue;
		cpu = perch_cache_idle(h, pol, p, llc);
		if (cpu == PERCH_NONE)
			continue;
		v->cache = PERCH_CACHE_REDIRECTED;
		return cpu;
	}
	return prev;
}

/*
 * Mode perch: of several preferred LLCs it tries the waker's first, as waker
 * and wakee are about to talk, then the most occupied one, then any that has
 * room.
 */
PERCH_INLINE perch_u32 perch_cache_prev_most(const struct perch_host *h,
					     const struct perch_policy *pol,
					     const struct perch_task *p,
					     const struct perch_wake *wake, struct perch_verdict *v)
{
	struct perch_process PERCH_AS *process = p->process;
	perch_u32 llc = perch_host_llc(h, wake->prev_cpu), cpu, pref, near;

	if (llc != PERCH_NONE && process->seats[llc].preferred)
		return perch_cache_leave(h, pol, p, v, wake->prev_cpu);
	pref = perch_host_llc(h, process->pref_cpu);
	near = perch_host_llc(h, wake->this_cpu);
	if (near == PERCH_NONE || !process->seats[near].preferred)
		near = pref;
	cpu = perch_cache_try(h, pol, p, v, near);
	if (cpu == PERCH_NONE && near != pref)
		cpu = perch_cache_try(h, pol, p, v, pref);
	if (cpu != PERCH_NONE)
		return cpu;
	for (llc = PERCH_ZERO;
	     process->nr_preferred > 1 && llc < perch_host_nr_llcs(h) && PERCH_MORE; llc++) {
		if (!process->seats[llc].preferred || llc == pref || llc == near)
			continue;
		cpu = perch_cache_try(h, pol, p, v, llc);
		if (cpu != PERCH_NONE)
			return cpu;
	}
	return perch_cache_leave(h, pol, p, v, wake->prev_cpu);
}

/* True if the mode redirects wake-ups at all: 7.2 leaves the gathering to the balancer. */
PERCH_INLINE perch_u8 perch_cache_redirects(const struct perch_policy *pol)
{
	return pol->modes.cache == PERCH_POSTED || pol->modes.cache == PERCH_PERCH;
}

/* True if the wakee's process prefers a last-level cache, to which its wake-ups may go. */
PERCH_INLINE perch_u8 perch_cache_prefers(const struct perch_policy *pol,
					  const struct perch_task *p)
{
	return perch_cache_redirects(pol) && p->process && p->process->pref_cpu != PERCH_NONE;
}

/*
 * Returns the CPU that stands for prev_cpu from here on: a CPU in a preferred
 * LLC, or prev_cpu itself. Mode posted aims at the preferred CPU whether the
 * task may run there or not: either the search that follows finds an allowed
 * CPU, or perch_select() corrects the choice.
 */
PERCH_RARE perch_u32 perch_cache_prev(const struct perch_host *h PERCH_GIVEN,
				      const struct perch_policy *pol PERCH_GIVEN,
				      const struct perch_task *p PERCH_GIVEN,
				      const struct perch_wake *wake PERCH_GIVEN,
				      struct perch_verdict *v PERCH_GIVEN)
{
	struct perch_process PERCH_AS *process = p->process;
	perch_u32 pref, llc;

	if (!process)
		return wake->prev_cpu;
	pref = process->pref_cpu;
	if (pref == PERCH_NONE)
		return wake->prev_cpu;
	if (pol->modes.cache == PERCH_PERCH)
		return perch_cache_prev_most(h, pol, p, wake, v);
	if (perch_share_llc(h, wake->prev_cpu, pref))
		return wake->prev_cpu;
	llc = perch_host_llc(h, pref);
	v->cache = perch_llc_full_posted(h, process, llc);
	if (v->cache != PERCH_CACHE_NONE)
		return wake->prev_cpu;
	v->cache = PERCH_CACHE_REDIRECTED;
	return pref;
}

/*
 * Mode perch: true if the search passes over an idle CPU that it would take at
 * once (the target, prev or recent) and looks for an idle core instead. There
 * are two such cases. A wakee that was just sent to this LLC has nothing in any
 * CPU's own caches, and the thread that usually runs on the preferred CPU,
 * asleep for a moment, keeps its place. A thread of a gathered process does not
 * share its core with a neighbour while other cores idle. schbench with 8 and
 * 32 workers showed both: gathered beside each other the workers shared cores,
 * one of them with the messenger, whose every wake-up then took half as long
 * again.
 */
PERCH_OUTLINE int perch_cache_passes(const struct perch_host *h PERCH_GIVEN,
				     const struct perch_task *p PERCH_GIVEN,
				     const struct perch_search *s PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 llc;

	if (!p->process || s->set != PERCH_NONE || !perch_host_has_smt(h) ||
	    perch_host_nr_llcs(h) < 2 || p->process->pref_cpu == PERCH_NONE)
		return 0;
	if (s->home == PERCH_NONE && perch_siblings_idle(h, cpu))
		return 0;
	llc = perch_host_llc(h, s->target);
	/*
	 * In an LLC that is nearly full an idle core is one whose usual thread
	 * sleeps for a moment: the 128 workers of a schbench run chased each
	 * other round.
	 */
	if (llc == PERCH_NONE ||
	    perch_host_llc_load(h, llc)->nr >= perch_llc_holds(perch_host_llc_load(h, llc)))
		return 0;
	/* A search that would not find an idle core must not lose the idle CPU at hand. */
	llc = perch_host_llc_cpus(h, llc);
	return perch_host_nr_idle_scan(h, llc) && perch_host_idle_cores(h, llc);
}

/* Stage aim: the CPU that stands for prev from here on. */
PERCH_INLINE perch_u32 perch_cache_aim(const struct perch_host *h, const struct perch_policy *pol,
				       const struct perch_task *p, const struct perch_wake *wake,
				       struct perch_verdict *v)
{
	return perch_cache_redirects(pol) ? perch_cache_prev(h, pol, p, wake, v) : wake->prev_cpu;
}

/* Stage near: the mechanism judges every candidate that is idle. */
PERCH_INLINE enum perch_near perch_cache_near(const struct perch_host *h,
					      const struct perch_policy *pol,
					      const struct perch_task *p,
					      const struct perch_search *s, perch_u32 cpu,
					      enum perch_candidate candidate)
{
	if (pol->modes.cache != PERCH_PERCH || candidate == PERCH_CANDIDATE_KTHREAD)
		return PERCH_NEAR_TAKE;
	return perch_cache_passes(h, p, s, cpu) ? PERCH_NEAR_PASS : PERCH_NEAR_TAKE;
}

/* Stage home: the verdict notes that the search returned. */
PERCH_INLINE void perch_cache_home(struct perch_verdict *v)
{
	v->cache = PERCH_CACHE_RETURNED;
}

/* The mechanism's answer to a balancer that would move a task. */
enum perch_move {
	PERCH_MOVE_FREE = 0, /* nothing */
	PERCH_MOVE_STAY = 1, /* it should stay: as cache-hot as tasks get */
	PERCH_MOVE_GO = 2,   /* it is wanted there */
};

/*
 * 7.2: an LLC is calm below half of its capacity (three quarters without SMT),
 * as the last balance noted both. Before the first both are 0 and no LLC is calm.
 */
PERCH_INLINE perch_u8 perch_llc_calm(const struct perch_host *h, perch_u32 llc, perch_u64 util)
{
	const struct perch_llc_load PERCH_AS *load = perch_host_llc_load(h, llc);
	perch_u32 percent = load->cores < perch_llc_weight(h, llc) ? 50 : 75;

	return util * 100 < (perch_u64)load->capacity_left * percent;
}

/*
 * 7.2: answers whether the balancer may move this task between two LLCs, one of
 * which its process prefers.
 */
PERCH_INLINE perch_u32 perch_cache_move_upstream(const struct perch_host *h, perch_u32 util,
						 perch_u32 pref, perch_u32 src, perch_u32 dst)
{
	perch_u64 from = perch_host_llc_load(h, src)->util, to;
	perch_u8 from_calm, to_calm;

	from = from > util ? from - util : 0;
	to = perch_host_llc_load(h, dst)->util + (perch_u64)util;
	from_calm = perch_llc_calm(h, src, from);
	to_calm = perch_llc_calm(h, dst, to);
	if ((!from_calm && !to_calm) || (pref != src && pref != dst))
		return PERCH_MOVE_FREE;
	if (pref == dst)
		return !to_calm && to * 10 > from * 12 ? PERCH_MOVE_STAY : PERCH_MOVE_GO;
	return from_calm || from * 10 <= to * 12 ? PERCH_MOVE_STAY : PERCH_MOVE_FREE;
}

/*
 * 7.2: true if a balancing pass for LLC `dst` looks in LLC `src` for tasks that
 * prefer `dst`, before it knows any of them.
 */
PERCH_INLINE perch_u8 perch_cache_draws(const struct perch_host *h, perch_u32 src, perch_u32 dst)
{
	return perch_cache_move_upstream(h, 0, dst, src, dst) == PERCH_MOVE_GO;
}

/*
 * Answers a balancer that would move `p` from the queue of `src` to `dst`; mode
 * upstream reads the task's util. Mode posted keeps a task in its preferred LLC
 * only while the destination is too full to be preferred itself:
 * docs/mechanisms/cache.md calls this the inversion. Mode perch keeps the task
 * there as long as the LLC has room for it.
 */
PERCH_OUTLINE perch_u32 perch_cache_move(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_policy *pol PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN, perch_u32 src,
					 perch_u32 dst)
{
	struct perch_process PERCH_AS *process = p->process;
	perch_u32 pref, from = perch_host_llc(h, src), to = perch_host_llc(h, dst);

	if (pol->modes.cache == PERCH_OFF || !process || from == PERCH_NONE || to == PERCH_NONE ||
	    from == to)
		return PERCH_MOVE_FREE;
	pref = process->pref_cpu;
	if (pref == PERCH_NONE)
		return PERCH_MOVE_FREE;
	pref = perch_host_llc(h, pref);
	if (pol->modes.cache == PERCH_UPSTREAM)
		return perch_cache_move_upstream(h, p->util, pref, from, to);
	if (pol->modes.cache == PERCH_PERCH) {
		if (!process->seats[from].preferred || process->seats[to].preferred)
			return PERCH_MOVE_FREE;
		return perch_llc_full(h, from, 0) ? PERCH_MOVE_FREE : PERCH_MOVE_STAY;
	}
	if (pref != from)
		return PERCH_MOVE_FREE;
	return perch_llc_full_posted(h, process, to) ? PERCH_MOVE_STAY : PERCH_MOVE_FREE;
}

#endif
