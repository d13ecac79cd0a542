/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A CPU whose running task is of a class above sched_ext: a real-time class, and
 * where only some tasks are perch's the fair class as well. Up to 6.18 perch's
 * tasks get nothing of the CPU until that one sleeps (7.2 keeps 5 % of it for
 * them), and the kernel throws a scheduler out that lets a task wait for 30 s. So
 * a task that is interrupted there must come where other CPUs can take it, and
 * other CPUs take it, however many tasks of their own they have.
 */
#ifndef PERCH_ABOVE_H
#define PERCH_ABOVE_H

#include "base/hooks.h"

/*
 * A task that stops with a rest of its slice gives way to a higher class. The
 * kernel puts it at the head of the CPU's own queue, which no other CPU sees; a
 * task without a slice comes to enqueue. cpu_release is no help up to 6.18: it
 * runs in the context of the task that stops, whose migration the BPF program's
 * entry has disabled, so the kernel does not let perch have that task and puts
 * it back. Four hogs of perch's and one of the kernel's on four CPUs ended so in
 * an ejection, in a guest of 6.18.
 */
static inline void above_stopping(struct task_struct *p, perch_u32 cpu, bool runnable,
				  perch_u64 ran)
{
	if (runnable && p->scx.slice)
		set_slice(p, 0);
}

/*
 * Such a CPU's queue counts as longer than that of any CPU which runs a task of
 * ours, once ours have had less than a sixteenth of the CPU lately; until then a
 * task that waits here counts twice, as one that waits behind the band does. By
 * their numbers alone one task here and two on the other CPU were level, and the
 * one waited for a second at a time.
 */
static inline perch_u32 above_turn_cpu(struct perch_cpu __arena *c, perch_u32 nr, perch_u32 queued)
{
	const struct rq *rq = cpu_rq(c - config()->cpus);

	if (!nr || !rq || (rq->curr->scx.flags & SCX_TASK_QUEUED))
		return queued;
	if (c->util < c->capacity / 16)
		return queued + PERCH_LONGEST;
	return nr > 1 ? queued + 1 : queued;
}

static const struct perch_follower above_follower = {
	.stopping = above_stopping,
	.turn_cpu = above_turn_cpu,
};

#endif
