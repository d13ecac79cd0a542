/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Levels last-level caches by their wakees. Tasks that sleep often seldom wait in
 * a queue, so neither a thief nor level_queues() moves them, however many share an
 * LLC; and a wakee that finds its CPU busy takes another task's CPU in the same
 * LLC, which does so in turn. The kernel's balancer levels the idle CPUs of such
 * domains. Here the timer compares the LLCs' utilisation, and lets some wakees
 * that find their CPUs busy leave for the LLC that is the least busy.
 */
#ifndef PERCH_SPREAD_H
#define PERCH_SPREAD_H

#include "base/affinity.h"

/* An LLC that is less busy than this keeps its wakees, as a busy CPU there has idle ones beside it. */
#define PERCH_SPREAD_UTIL 512

/* The LLC that was the least busy at the timer's last turn. */
static perch_u32 least_busy_llc;

/* At a turn of the timer, after the LLCs' utilisation was updated. */
static inline void level_llcs(void)
{
	const struct perch_config *c = config();
	perch_u32 i, least = another_zero();

	for (i = another_zero(); i < c->topology.nr_llcs && can_loop; i++)
		if (c->llcs[i].util < c->llcs[least].util)
			least = i;
	for (i = another_zero(); i < c->topology.nr_llcs && can_loop; i++) {
		struct perch_llc __arena *llc = &c->llcs[i];
		perch_u32 more = llc->util - c->llcs[least].util;

		/* In CPUs; a task that leaves lessens the difference by two. */
		more = more * perch_host_set_weight(0, llc->set) / 2048;
		llc->leaving = llc->util < PERCH_SPREAD_UTIL ? 0 : (more + 3) / 4;
	}
	least_busy_llc = least;
}

/*
 * The idle CPU of another LLC for a wakee that does not find its CPU idle;
 * PERCH_NONE: it stays in its own, where its waker is, too.
 */
static __attribute__((noinline)) perch_u32 leaves_llc(const struct task_struct *p,
						      perch_u32 prev_cpu, perch_u32 this_cpu)
{
	perch_u32 number = cpu_state(prev_cpu)->llc, cpu;
	struct perch_llc __arena *llc;

	if (number == PERCH_NONE || cpu_state(this_cpu)->llc != number)
		return PERCH_NONE;
	llc = &config()->llcs[number];
	if (!llc->leaving || is_idle(prev_cpu) || follow_draws(p, memory_of(p->pid)))
		return PERCH_NONE;
	cpu = idle_core_in_set(allowed_at(p, this_cpu), config()->llcs[least_busy_llc].set);
	if (cpu == PERCH_NONE || !claim_idle(cpu))
		return PERCH_NONE;
	/* Two wakers may count the same one. */
	if (llc->leaving)
		llc->leaving--;
	return cpu;
}

#endif
