/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtual time. Each CPU has a clock that shows how much a nice-0 task without
 * lag would have received there; a task's virtual time advances by its
 * execution time over its weight, and the task that is furthest behind runs
 * first.
 *
 * p->scx.dsq_vtime holds the virtual time while the task is queued or running,
 * as a reading of that CPU's clock. A task that sleeps keeps only its lag, the
 * distance to the clock, at most lag_ns either way, and takes it along to
 * whichever CPU it wakes on. Clocks begin at PERCH_CLOCK_START, so that the two
 * cannot be mistaken for each other.
 */
#ifndef PERCH_CLOCK_H
#define PERCH_CLOCK_H

#include "base/host.h"

#define PERCH_CLOCK_START (1ull << 48)

/* Nanoseconds of virtual time for `ns` of execution. */
static inline perch_u64 virtual_ns(perch_u64 ns, perch_u32 weight)
{
	if (weight == 100)
		return ns;
	return ns * 100 / (weight ?: 1);
}

/*
 * Writes only a new value: most tasks that sleep keep a lag of 0, and the
 * kernel's function is not free.
 */
static inline void keep_vtime(struct task_struct *p, perch_u64 vtime)
{
	if (p->scx.dsq_vtime != vtime)
		set_vtime(p, vtime);
}

static inline bool is_lag(perch_u64 stored)
{
	return (perch_s64)stored < (perch_s64)(PERCH_CLOCK_START / 2);
}

/* The virtual time that dsq_vtime stands for on a CPU whose clock shows `clock`. */
static inline perch_u64 vtime_of(perch_u64 stored, perch_u64 clock)
{
	return is_lag(stored) ? clock + stored : stored;
}

static inline perch_u64 clamp_lag(perch_u64 vtime, perch_u64 clock)
{
	perch_s64 lag = vtime - clock, most = config()->lag_ns;

	if (lag > most)
		lag = most;
	if (lag < -most)
		lag = -most;
	return lag;
}

/*
 * The lag that a task keeps when it goes to sleep. A task may have so little
 * weight (c->flat) that a tick costs it many times lag_ns. Such a task owes up
 * to lag_ns of its own running time, or it would escape its weight by sleeping.
 */
static inline perch_u64 lag_of(const struct perch_cpu __arena *c)
{
	perch_s64 lag = c->curr_vtime - c->clock, most = config()->lag_ns;

	if (lag > most) {
		if (c->flat && c->flat < 100 * 1024)
			most = (perch_u64)most * (100 * 1024) / c->flat;
		return lag < most ? lag : most;
	}
	return lag < -most ? -most : lag;
}

/*
 * Charges the running task for its time since the last accounting. A task that
 * is alone drags the clock along; while others wait, the clock moves as each of
 * them is picked (below). Returns the ns that the task ran since then.
 */
static __always_inline perch_u64 account(struct perch_cpu __arena *c, const struct task_struct *p,
					 bool alone)
{
	perch_u64 now = p->se.sum_exec_runtime, ran = now - c->exec_start;
	perch_u64 vtime = c->curr_vtime;

	/*
	 * The task is not the one that started here last: seen once after a CPU
	 * went offline and came back.
	 */
	if ((perch_s64)ran < 0)
		ran = 0;

	if (c->flat)
		vtime += ran * (100 * 1024) / c->flat;
	else
		vtime += virtual_ns(ran, p->scx.weight);

	c->exec_start = now;
	c->busy_ns += ran;
	c->curr_vtime = vtime;
	if (alone && vtime > c->clock)
		c->clock = vtime;
	return ran;
}

/*
 * A task starts to run: it was furthest behind, so the clock need not stay
 * behind it. A stream of newborn tasks, each placed a slice ahead of the clock,
 * thereby moves the clock on until the hog that waits is picked.
 */
static __always_inline void picked(struct perch_cpu __arena *c, const struct task_struct *p)
{
	perch_u64 vtime = vtime_of(p->scx.dsq_vtime, c->clock);

	if (vtime > c->clock)
		c->clock = vtime;
	c->curr_vtime = vtime;
	c->turn_start = c->exec_start = p->se.sum_exec_runtime;
	c->curr_weight = p->scx.weight;
	c->sched_idle = p->policy == SCHED_IDLE;
	c->behind = 0;
}

#endif
