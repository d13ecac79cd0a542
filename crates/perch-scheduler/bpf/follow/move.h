/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moves a running task to another CPU. A follower that comes later in the list
 * claims an idle CPU for the task in dispatch (claim_move()); the kernel then
 * enqueues the task, and this follower puts it on the claimed CPU.
 */
#ifndef PERCH_MOVE_H
#define PERCH_MOVE_H

#include "base/affinity.h"
#include "base/queue.h"

/* At a tick: the task's slice ends, and the dispatch that follows looks again. */
static inline void seek_move(struct task_struct *p, perch_u32 cpu, enum perch_seeks what)
{
	cpu_state(cpu)->seeks = what;
	set_slice(p, 0);
}

/*
 * In dispatch: true if the last tick found such a CPU for the task that ran until
 * now. It looks once: the task may go on without starting anew.
 */
static inline bool sought(perch_u32 cpu, enum perch_seeks what)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (c->seeks != what)
		return false;
	c->seeks = PERCH_SEEKS_NOTHING;
	return true;
}

/*
 * In dispatch, which has the run queue of `cpu`: claims the CPU `to` for the
 * task that ran until now; `event` counts it if the task goes there. False: `to`
 * is no CPU, or another CPU was faster.
 */
static inline bool claim_move(perch_u32 cpu, perch_u32 to, enum perch_event event)
{
	if (to == PERCH_NONE || !claim_idle(to))
		return false;
	cpu_state(cpu)->move_to = to;
	cpu_state(cpu)->move_event = event;
	return true;
}

/* The task did not go to the CPU that was claimed for it, after all: that CPU idles anew. */
static inline void forget_move(struct perch_cpu __arena *c)
{
	if (c->move_to == PERCH_NONE)
		return;
	scx_bpf_kick_cpu(c->move_to, 0);
	c->move_to = PERCH_NONE;
}

static inline void move_running(struct task_struct *p, struct perch_cpu __arena *c, perch_u32 cpu)
{
	forget_move(c);
	c->seeks = PERCH_SEEKS_NOTHING;
}

static inline bool move_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on)
{
	forget_move(cpu_state(cpu));
	return runs_on;
}

/*
 * Puts a task that leaves on the CPU that was claimed for it, with its lag. A
 * task that exits or must not migrate stays, as the kernel does not enqueue it;
 * and a task's affinity may have changed since the claim.
 */
static inline bool leaves(struct task_struct *p, perch_u64 enq_flags)
{
	struct perch_cpu __arena *c = cpu_state(bpf_get_smp_processor_id());
	perch_u32 to = c->move_to;

	if (to == PERCH_NONE || p != bpf_get_current_task_btf() || !may_run(p, to))
		return false;
	c->move_to = PERCH_NONE;
	set_vtime(p, clamp_lag(vtime_of(p->scx.dsq_vtime, c->clock), c->clock));
	insert_direct(p, SCX_DSQ_LOCAL_ON | to, enq_flags);
	c->events[c->move_event]++;
	return true;
}

static inline bool move_enqueue(struct task_struct *p, perch_u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_WAKEUP)
		return false;
	if (leaves(p, enq_flags))
		return true;
	/* The task was to leave, and its CPU has no other task: it goes on here. */
	if (!(enq_flags & SCX_ENQ_LAST))
		return false;
	insert(p, SCX_DSQ_LOCAL, slice_for(1), enq_flags);
	return true;
}

static const struct perch_follower move_follower = {
	.enqueue = move_enqueue,
	.running = move_running,
	.dispatch = move_dispatch,
};

#endif
