/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The scheduler's memory of a task between its wake-ups: `struct perch_memory`,
 * found by the lower bits of the task's pid.
 */
#ifndef PERCH_MEMORY_H
#define PERCH_MEMORY_H

#include "base/hooks.h"

static inline struct perch_memory __arena *memory_of(perch_u32 pid)
{
	const struct perch_config *c = config();

	return &c->memories[pid & c->memory_mask];
}

/* Begins a memory for the task `p`: its place held another task's pid, or none. */
static __attribute__((noinline)) void take_memory(struct perch_memory __arena *m,
						  const struct task_struct *p, perch_u32 cpu)
{
	m->pid = p->pid;
	m->last_wakee = m->wakee_flips = 0;
	m->recent_cpu = PERCH_NONE;
	m->turn_ns = PERCH_TURN_LONG;
	follow_begin_memory(m, p, cpu);
}

/* The task goes to sleep after a turn of so many ns. */
static inline void note_turn(const struct task_struct *p, perch_u64 ns)
{
	struct perch_memory __arena *m = memory_of(p->pid);
	perch_u32 known = m->turn_ns, turn = perch_turn(known, ns);

	if (turn != known && m->pid == (perch_u32)p->pid)
		m->turn_ns = turn;
}

static inline struct perch_memory __arena *own_memory(const struct task_struct *p, perch_u32 cpu)
{
	struct perch_memory __arena *m = memory_of(p->pid);

	if (m->pid != (perch_u32)p->pid)
		take_memory(m, p, cpu);
	return m;
}

#endif
