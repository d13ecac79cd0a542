/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The wake-up that needs no search: the wakee's last CPU is idle, and nothing draws it elsewhere. */
#ifndef PERCH_STAY_H
#define PERCH_STAY_H

#include "cache.h"
#include "cluster.h"

/* Returns true if a mechanism may prefer another CPU to the wakee's last one, though that is idle. */
PERCH_INLINE perch_u8 perch_drawn(const struct perch_host *h, const struct perch_policy *pol,
				  const struct perch_task *p, perch_u32 cpu)
{
	if (perch_capacity_set(h, pol, cpu) != PERCH_NONE)
		return 1;
	return perch_cache_prefers(pol, p);
}

/*
 * Returns the reason for which perch_choose_near() would choose prev_cpu, and
 * PERCH_BY_NOTHING where it may choose another CPU and has to be asked. Of the
 * tasks it reads the id, the flips, the affinity and the process.
 */
PERCH_INLINE perch_u32 perch_stays(const struct perch_host *h, const struct perch_policy *pol,
				   const struct perch_wake *wake, struct perch_task *waker,
				   const struct perch_task *p)
{
	perch_u32 this_cpu = wake->this_cpu, prev = wake->prev_cpu;

	if (!perch_host_idle(h, prev) || !perch_allowed(h, p, prev) ||
	    (wake->flags & (PERCH_WAKE_FORK | PERCH_WAKE_EXEC | PERCH_WAKE_CURRENT)) ||
	    pol->rules.early_path || pol->rules.wake_cap || pol->rules.recent_when_taken ||
	    perch_drawn(h, pol, p, prev))
		return PERCH_BY_NOTHING;
	/* To note the same wakee a second time, in perch_choose_near(), changes nothing. */
	perch_record_wakee(pol, wake, waker, p);
	if (this_cpu == prev)
		return PERCH_BY_TARGET_IDLE;
	if (!perch_share_llc(h, this_cpu, prev) || !perch_allowed(h, p, this_cpu) ||
	    perch_wake_wide(h, this_cpu, waker, p))
		return PERCH_BY_NOTHING;
	/* As perch_affine_idle(), where prev is idle. */
	if (!(wake->flags & PERCH_WAKE_SYNC) || perch_host_idle(h, this_cpu) ||
	    perch_host_nr_running(h, this_cpu) - perch_host_nr_delayed(h, this_cpu) != 1)
		return PERCH_BY_TARGET_IDLE;
	/* The waker's CPU is the target, and may be idle for this wakee: its task may be SCHED_IDLE. */
	if (perch_idle_ok(h, pol, p, this_cpu))
		return PERCH_BY_NOTHING;
	return perch_cluster_shares(h, pol, prev, this_cpu) ? PERCH_BY_PREV_IDLE : PERCH_BY_NOTHING;
}

#endif
