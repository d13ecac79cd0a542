/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cache=upstream: 7.2 redirects no wake-ups; its balancer moves tasks to the
 * LLC that their process prefers. Here the thread at whose tick the policy
 * looked at the process, once in 10 ms, goes there itself if the policy wants
 * it there and a CPU of that LLC idles. It moves as a misfit moves to a larger
 * CPU.
 */
#ifndef PERCH_HOMEWARD_H
#define PERCH_HOMEWARD_H

#include "follow/cache.h"
#include "follow/move.h"

/* The idle CPU to which the running task should go; PERCH_NONE: none. */
static inline perch_u32 way_home(const struct task_struct *p, perch_u32 cpu)
{
	perch_u32 slot = cpu_state(cpu)->process, pref;

	if (!slot || p->nr_cpus_allowed == 1)
		return PERCH_NONE;
	pref = process_at(slot)->pref_cpu;
	if (pref == PERCH_NONE || cpu_state(pref)->llc == cpu_state(cpu)->llc ||
	    moving(p, cpu, pref) != PERCH_MOVE_GO)
		return PERCH_NONE;
	return idle_in_set(allowed_at(p, cpu), perch_host_llc_cpus(0, cpu_state(pref)->llc));
}

/* Called at the tick at which the policy looked at the task's process. */
static inline void look_homeward(struct task_struct *p, perch_u32 cpu)
{
	if (way_home(p, cpu) != PERCH_NONE)
		seek_move(p, cpu, PERCH_SEEKS_HOME);
}

/* In dispatch: true if the task that ran until now leaves for the LLC that its process prefers. */
static inline bool goes_home(const struct task_struct *p, perch_u32 cpu)
{
	return sought(cpu, PERCH_SEEKS_HOME) &&
	       claim_move(cpu, way_home(p, cpu), PERCH_EV_CACHE_MOVED);
}

#endif
