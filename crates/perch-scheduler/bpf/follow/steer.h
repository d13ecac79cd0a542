/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Serves the mechanism that steers to empty queues
 * (policy/include/perch/steer.h): it tells the policy where a task group has a
 * task queued, and it credits a wakee whose group has no other task on the CPU
 * to which the wakee was steered.
 */
#ifndef PERCH_STEER_FOLLOWER_H
#define PERCH_STEER_FOLLOWER_H

#include "follow/group.h"

/* The running task's group has reached the task's virtual time on this CPU. */
static inline void charge_group(const struct perch_cpu __arena *c, perch_u32 cpu)
{
	struct perch_group_cell __arena *cell = cell_at(c->group, cpu);
	perch_u64 vtime = c->curr_vtime - c->jumped;

	if ((perch_s64)(vtime - cell->vtime) > 0)
		cell->vtime = vtime;
}

/*
 * The virtual time of a wakee whose group has no other task on the CPU: the
 * group's own virtual time there, as if the group had slept since it ran there
 * last. The CPU owes the group at most lag_ns, as it owes any sleeper. The
 * running time of its tasks is charged to the group (charge_group()), so a task
 * that wakes often, or in turns with others of its group, gains no more than
 * one that wakes once. ~0: the group has no claim.
 */
static inline perch_u64 credited(const struct perch_group_task *t, perch_u32 cpu)
{
	const struct perch_cpu __arena *c = cpu_state(cpu);
	const struct perch_group_cell __arena *cell;
	perch_u64 earliest = c->clock - config()->lag_ns, vtime;

	if (!t->added || cpu != t->cpu)
		return ~0ull;
	cell = cell_at(t->slot, cpu);
	if (cell->nr > 1)
		return ~0ull;
	vtime = cell->vtime + c->jumped;
	return (perch_s64)(vtime - earliest) > 0 ? vtime : earliest;
}

/* The wakee's virtual time on this CPU: its own or its group's, whichever is earlier. */
static __attribute__((noinline)) perch_u64 stand(struct task_struct *p, perch_u32 cpu,
						 perch_u64 vtime)
{
	struct perch_group_task *t = group_task(p);
	perch_u64 earlier;

	if (!t || !t->slot)
		return vtime;
	earlier = credited(t, cpu);
	if (earlier >= vtime)
		return vtime;
	count(cpu, PERCH_EV_CREDITED);
	return earlier;
}

/* Tells the policy on which CPUs the wakee's group has a task; the root group has no such set. */
static inline void steer_wakee(struct perch_task *t, struct task_struct *p,
			       const struct perch_memory __arena *m)
{
	struct perch_group_task *g;

	t->queued = 0;
	if (!nr_live)
		return;
	g = group_task(p);
	if (g && g->slot)
		t->queued = group_at(g->slot)->queued;
}

static inline perch_u64 steer_stand(struct task_struct *p, perch_u32 cpu, perch_u64 vtime,
				    perch_u64 enq_flags)
{
	if (nr_live && (enq_flags & SCX_ENQ_WAKEUP))
		return stand(p, cpu, vtime);
	return vtime;
}

static inline void steer_left(const struct perch_cpu __arena *c, perch_u32 cpu)
{
	if (c->group)
		charge_group(c, cpu);
}

static const struct perch_follower steer_follower = {
	.wakee = steer_wakee,
	.stand = steer_stand,
	.left = steer_left,
};

#endif
