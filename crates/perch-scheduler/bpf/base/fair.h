/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The steps by which tasks share a CPU by weight, for tasks without a fixed
 * priority. scheduler.bpf.c makes its callbacks of these steps, and so does the
 * real-time band for the tasks that are not its own.
 */
#ifndef PERCH_FAIR_H
#define PERCH_FAIR_H

#include "base/choose.h"
#include "base/steal.h"

static __always_inline void enqueue(struct task_struct *p, perch_u64 enq_flags)
{
	perch_u32 cpu = scx_bpf_task_cpu(p);

	if (follow_hold(p, enq_flags))
		return;
	/* For a task that may use one CPU only the kernel does not call select_cpu. */
	if ((enq_flags & SCX_ENQ_WAKEUP) && p->nr_cpus_allowed == 1) {
		struct perch_cpu __arena *c = cpu_state(cpu);
		bool idle = claim_idle(cpu);

		c->reasons[PERCH_BY_AFFINITY]++;
		c->events[PERCH_EV_PINNED]++;
		if (!idle && !is_sched_idle(p) && claim_sched_idle(cpu)) {
			idle = true;
			enq_flags |= SCX_ENQ_PREEMPT;
		}
		if (idle) {
			insert_direct(p, SCX_DSQ_LOCAL, enq_flags);
			c->events[PERCH_EV_DIRECT]++;
			return;
		}
	}
	if (!follow_enqueue(p, enq_flags))
		queue_task(p, cpu, enq_flags);
}

/* True if a task runs next: the one that ran until now, or one that was fetched from a queue. */
static __always_inline bool dispatch(perch_u32 cpu, struct task_struct *prev, bool runs_on)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (c->pull_from != PERCH_NONE) {
		pull(cpu, c->pull_from);
		c->pull_from = PERCH_NONE;
	}
	runs_on = follow_dispatch(prev, cpu, runs_on);
	if (nr_waiting && is_waiting(cpu)) {
		if (c->impatient && relieve_one(cpu))
			return true;
		if (runs_on) {
			follow_charged(cpu, account(c, prev, false));
			/*
			 * The task's slice is used up, but no waiting task is
			 * further behind. If the clock did not move, a wakee
			 * would stand before this task by as much as the task
			 * runs on.
			 */
			if (c->curr_vtime < first_vtime(cpu)) {
				if (c->curr_vtime > c->clock)
					c->clock = c->curr_vtime;
				set_slice(prev, slice_for(2));
				return true;
			}
		}
		if (serve(cpu))
			return true;
	}
	if (runs_on) {
		set_slice(prev, slice_for(1));
		return true;
	}
	if (!follow_idle(cpu) && nr_waiting && has_place(cpu) && steal(cpu))
		return true;
	if (is_waiting(cpu) && serve_latecomer(cpu))
		return true;
	c->idle_since_ns = coarse_now;
	/* The kernel tells of a CPU that begins to idle, and not of one that goes on after a look. */
	if (!c->curr_weight)
		idles_on(cpu);
	c->curr_weight = 0;
	return false;
}

/* The task starts to run. */
static __always_inline void start(struct task_struct *p, perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	follow_running(p, c, cpu);
	if (c->sched_idle)
		mark_sched_idle(cpu);
}

static __always_inline void stop(struct task_struct *p, perch_u32 cpu, bool runnable)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 ran = account(c, p, !nr_waiting || !is_waiting(cpu));

	if (c->sched_idle)
		claim_sched_idle(cpu);
	if (!runnable && config()->policy.modes.behind)
		note_turn(p, p->se.sum_exec_runtime - c->turn_start);
	follow_left(c, cpu);
	keep_vtime(p, runnable ? c->curr_vtime : lag_of(c));
	follow_stopping(p, cpu, runnable, ran);
}

/*
 * While others wait, the task that runs gets no more than a share of the slice,
 * and no more than a tick if one of them counted on its sleep.
 */
static __always_inline void tick(struct task_struct *p, perch_u32 cpu)
{
	bool waiting = is_waiting(cpu);
	perch_u64 share;

	/* The wakee that claimed the CPU, or that waited here, may have gone elsewhere. */
	if (cpu_state(cpu)->sched_idle && !runs_sched_idle(cpu))
		mark_sched_idle(cpu);

	follow_tick(p, cpu, account(cpu_state(cpu), p, !waiting));
	if (cpu_state(cpu)->behind)
		set_slice(p, 0);
	if (!waiting)
		return;
	weigh_queue(cpu);
	share = slice_for(nr_running(cpu));
	if (p->scx.slice > share)
		set_slice(p, share);
}

#endif
