/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A wakee that goes behind its waker, on the waker's own CPU: where the waker
 * sleeps at once, as the two ends of a pipe do in turn, the wakee runs there
 * sooner than on a CPU that an interrupt has to wake, and what it reads is in
 * the cache. The kernel calls such a wake-up sync, and is wrong about it where
 * the waker has more to do; so the length of each waker's own turns decides.
 */
#ifndef PERCH_BEHIND_H
#define PERCH_BEHIND_H

#include "base/affinity.h"
#include "base/memory.h"
#include "base/queue.h"

/*
 * The task goes to sleep after a turn of so many ns. A longer turn than expected
 * counts at once, a shorter one by an eighth: a waker that once went on for a
 * millisecond is believed again after fifty turns.
 */
static inline void note_turn(const struct task_struct *p, perch_u64 ns)
{
	struct perch_memory __arena *m = memory_of(p->pid);
	perch_u32 turn = ns < PERCH_TURN_MOST_NS ? ns : PERCH_TURN_MOST_NS, known = m->turn_ns;

	if (turn < known)
		turn = known - ((known - turn + 7) >> 3);
	if (turn != known && m->pid == (perch_u32)p->pid)
		m->turn_ns = turn;
}

/* The time until a task would run on another CPU: an interrupt, and the way out of its idle state. */
static inline perch_u64 wake_ns(perch_u32 cpu)
{
	perch_u64 ns = config()->behind_ns;

	if (cpu != PERCH_NONE && has_place(cpu) && is_idle(cpu))
		ns += perch_host_idle_exit_ns(0, cpu);
	return ns;
}

/*
 * Returns true if the wakee should run on this CPU as soon as the waker,
 * `current`, sleeps. Nothing else may wait here, and no mechanism may draw the
 * wakee elsewhere.
 */
static __attribute__((noinline)) bool goes_behind(const struct task_struct *p, perch_u32 prev_cpu,
						  perch_u32 this_cpu,
						  const struct task_struct *current)
{
	struct perch_memory __arena *mine = memory_of(current->pid), *m = memory_of(p->pid);
	perch_u32 turn = mine->turn_ns;
	const struct rq *rq;

	if (turn > config()->behind_most_ns || mine->pid != (perch_u32)current->pid ||
	    m->pid != (perch_u32)p->pid)
		return false;
	/* A wakee that was behind before remembers the CPU that it left. */
	if (prev_cpu == this_cpu)
		prev_cpu = m->recent_cpu;
	if (turn > config()->behind_ns && turn > wake_ns(prev_cpu))
		return false;
	rq = cpu_rq(this_cpu);
	if (!rq || rq->nr_running != 1 || !current->pid || !may_run(p, this_cpu) ||
	    is_apart(this_cpu) || follow_draws(p, m))
		return false;
	if (m->recent_cpu != prev_cpu)
		m->recent_cpu = prev_cpu;
	return true;
}

#endif
