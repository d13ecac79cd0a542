/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task that waits on a CPU whose running task is of a class above sched_ext.
 * Where only some tasks are perch's, the fair class is such a class: on a CPU
 * with a hog of that class the task would get nothing until the hog sleeps (up
 * to 6.18; 7.2 keeps 5 % of the CPU for sched_ext), and the kernel throws a
 * scheduler out that lets a task wait for 30 s. Without this follower that
 * happened in a guest of 6.18 with four hogs of perch's and one of the kernel's
 * on four CPUs: by their numbers, two tasks here and one there are level. So
 * balancing counts such a task twice, as it does one that waits behind the band.
 */
#ifndef PERCH_ABOVE_H
#define PERCH_ABOVE_H

#include "base/hooks.h"

/* 1: only the tasks of SCHED_EXT are perch's. Written by the loader. */
const volatile perch_u32 perch_partial SEC(".rodata.partial") = 0;

static inline perch_u32 above_turn_cpu(struct perch_cpu __arena *c, perch_u32 nr, perch_u32 queued)
{
	const struct rq *rq = cpu_rq(c - config()->cpus);

	if (nr < 2 || !rq || (rq->curr->scx.flags & SCX_TASK_QUEUED))
		return queued;
	return queued + 1;
}

static const struct perch_follower above_follower = {
	.turn_cpu = above_turn_cpu,
};

#endif
