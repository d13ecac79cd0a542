/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Asks the policy where a waking task should go, and claims that CPU for it. */
#ifndef PERCH_CHOOSE_H
#define PERCH_CHOOSE_H

#include "base/affinity.h"
#include "base/memory.h"
#include "base/queue.h"

/* The policy's view of a waking task. */
static __always_inline void look_at_wakee(struct perch_task *t, struct task_struct *p)
{
	perch_u32 pid = p->pid;
	struct perch_memory __arena *m = memory_of(pid);

	t->id = pid;
	t->nr_allowed = p->nr_cpus_allowed;
	t->flags = is_sched_idle(p) ? PERCH_TASK_SCHED_IDLE : 0;
	/* CPUs' loads are those of their queues (perch_host_load()), and this task is in none. */
	t->load = 0;
	if (m->pid == pid) {
		t->wakee_flips = m->wakee_flips;
		t->recent_cpu = m->recent_cpu;
	} else {
		t->wakee_flips = 0;
		t->recent_cpu = PERCH_NONE;
		take_memory(m, p, scx_bpf_task_cpu(p));
	}
	follow_wakee(t, p, m);
}

/*
 * The policy asks only for the waker's flips. The idle task, which is the waker
 * when an interrupt wakes, has pid 0 on every CPU and has no memory.
 */
static inline void look_at_waker(struct perch_task *t, const struct task_struct *p)
{
	perch_u32 pid = p->pid;
	struct perch_memory __arena *m = memory_of(pid);

	t->id = pid;
	t->flags = 0;
	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)
		t->flags = PERCH_TASK_PERCPU_KTHREAD;
	if (pid && m->pid == pid) {
		t->flip_decay_at_ns = m->flip_decay_at_ns;
		t->last_wakee = m->last_wakee;
		t->wakee_flips = m->wakee_flips;
	} else {
		t->flip_decay_at_ns = 0;
		t->last_wakee = t->wakee_flips = 0;
		take_memory(m, p, bpf_get_smp_processor_id());
	}
}

/* Writes back the fields of the waker that the policy changed. */
static inline void remember_waker(struct perch_memory __arena *m, const struct perch_task *waker)
{
	if (waker->id && (m->last_wakee != waker->last_wakee ||
			  m->flip_decay_at_ns != waker->flip_decay_at_ns)) {
		m->flip_decay_at_ns = waker->flip_decay_at_ns;
		m->last_wakee = waker->last_wakee;
		m->wakee_flips = waker->wakee_flips;
	}
}

/* Writes back the fields of both tasks that the policy changed. */
static inline void remember(const struct perch_task *waker, const struct perch_task *wakee)
{
	struct perch_memory __arena *m = memory_of(wakee->id);

	remember_waker(memory_of(waker->id), waker);
	if (m->recent_cpu != wakee->recent_cpu)
		m->recent_cpu = wakee->recent_cpu;
}

static inline perch_u32 wake_flags_of(perch_u64 flags, const struct perch_task *waker)
{
	perch_u32 out = 0;

	if (flags & SCX_WAKE_SYNC)
		out |= PERCH_WAKE_SYNC;
	if (flags & SCX_WAKE_FORK)
		out |= PERCH_WAKE_FORK;
	if (flags & WF_CURRENT_CPU)
		out |= PERCH_WAKE_CURRENT;
	if (waker->flags & PERCH_TASK_PERCPU_KTHREAD)
		out |= PERCH_WAKE_IN_TASK;
	return out;
}

/* True if a verdict of this reason names a CPU that may well be idle. */
static inline bool may_be_idle(perch_u32 reason)
{
	return reason != PERCH_BY_TARGET_BUSY && reason != PERCH_BY_KTHREAD &&
	       reason != PERCH_BY_HINT && reason != PERCH_BY_CAPACITY_SPARE;
}

PERCH_OUTLINE int ask_policy(struct perch_question *q PERCH_GIVEN)
{
	perch_select(&q->host, &q->policy, &q->wake, &q->waker, &q->wakee, &q->verdict);
	return 0;
}

/*
 * The wake-up for which little has to be known of the tasks (perch_soon() in policy/): most of a
 * ping-pong's. Returns the reason for the waker's CPU (PERCH_BY_BEHIND) or for prev_cpu, which the task
 * has claimed then.
 */
static __attribute__((noinline)) perch_u32 ask_soon(struct task_struct *p, __s32 prev_cpu,
						    perch_u32 this_cpu, __u64 wake_flags,
						    const struct task_struct *current)
{
	struct perch_host host = {};
	struct perch_wake wake = {.this_cpu = this_cpu, .prev_cpu = prev_cpu};
	struct perch_task waker = {.id = current->pid}, wakee = {.id = p->pid};
	struct perch_memory __arena *mine, *m;
	struct perch_verdict v;

	mine = memory_of(waker.id);
	m = memory_of(wakee.id);
	/* The policy asks the same; a busy CPU is to cost as little as possible. */
	if (!is_idle(prev_cpu) &&
	    (!(wake_flags & SCX_WAKE_SYNC) || mine->turn_ns > config()->behind_most_ns))
		return PERCH_BY_NOTHING;
	if (!waker.id || mine->pid != waker.id || m->pid != wakee.id || follow_draws(p, m))
		return PERCH_BY_NOTHING;
	if (p->nr_cpus_allowed < config()->nr_possible)
		host.allowed_at = (perch_u64)p->cpus_ptr;
	wake.now_ns = coarse_now;
	wake.flags = wake_flags_of(wake_flags, &waker);
	waker.flip_decay_at_ns = mine->flip_decay_at_ns;
	waker.last_wakee = mine->last_wakee;
	waker.wakee_flips = mine->wakee_flips;
	waker.turn_ns = mine->turn_ns;
	wakee.wakee_flips = m->wakee_flips;
	wakee.recent_cpu = m->recent_cpu;
	if (p->policy == SCHED_IDLE)
		wakee.flags = PERCH_TASK_SCHED_IDLE;
	if (!perch_soon(&host, &config()->policy, &wake, &waker, &wakee, &v))
		return PERCH_BY_NOTHING;
	if (v.reason == PERCH_BY_BEHIND) {
		if (m->recent_cpu != wakee.recent_cpu)
			m->recent_cpu = wakee.recent_cpu;
		return v.reason;
	}
	if (!claim_idle(prev_cpu))
		return PERCH_BY_NOTHING;
	remember_waker(mine, &waker);
	return v.reason;
}

/* Puts the task on the CPU that the policy chose: one that it has claimed, or the waker's own. */
static __always_inline void insert_wakee(struct task_struct *p, struct perch_cpu __arena *c,
					 perch_u32 reason, perch_u64 enq_flags)
{
	if (reason == PERCH_BY_BEHIND) {
		insert(p, SCX_DSQ_LOCAL, slice_for(1), enq_flags);
		c->behind = 1;
	} else {
		insert_direct(p, SCX_DSQ_LOCAL, enq_flags);
		c->events[PERCH_EV_DIRECT]++;
	}
}

/* Chooses the CPU for the task; sets `placed` if it has put the task there already. */
static __always_inline __s32 choose_cpu(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags,
					bool *placed)
{
	struct task_struct *current = bpf_get_current_task_btf();
	perch_u32 this_cpu = bpf_get_smp_processor_id(), reason, tries;
	struct perch_cpu __arena *c = cpu_state(this_cpu);
	struct perch_question *q;

	/* A CPU that came online since the load is not in the topology; a restart is under way. */
	if (!has_place(this_cpu) || !has_place(prev_cpu) || follow_bars(p))
		return prev_cpu;
	reason = ask_soon(p, prev_cpu, this_cpu, wake_flags, current);
	if (reason != PERCH_BY_NOTHING) {
		insert_wakee(p, c, reason, 0);
		*placed = true;
		if (reason < PERCH_MAX_REASONS)
			c->reasons[reason]++;
		return reason == PERCH_BY_BEHIND ? this_cpu : prev_cpu;
	}
	q = question();
	if (!q)
		return prev_cpu;
	look_at_waker(&q->waker, current);
	look_at_wakee(&q->wakee, p);
	q->host.allowed_at = 0;
	/* Not the topology's number: the mask may have CPUs that are offline. */
	if (q->wakee.nr_allowed < config()->nr_possible)
		q->host.allowed_at = (perch_u64)p->cpus_ptr;
	q->wake.now_ns = coarse_now;
	q->wake.this_cpu = this_cpu;
	q->wake.prev_cpu = prev_cpu;
	q->wake.flags = wake_flags_of(wake_flags, &q->waker);

	/* Another waker may claim the CPU first; the policy is then asked for the next best. */
	for (tries = 0; tries < 3 && can_loop; tries++) {
		perch_u32 recent = q->wakee.recent_cpu;

		ask_policy(q);
		if (q->verdict.examined)
			c->events[PERCH_EV_EXAMINED] += q->verdict.examined;
		follow_asked(&q->host, &q->wakee, &q->verdict, this_cpu);
		if (may_be_idle(q->verdict.reason) && claim_idle(q->verdict.cpu)) {
			insert_wakee(p, c, q->verdict.reason, 0);
			*placed = true;
			break;
		}
		if (!(q->wakee.flags & PERCH_TASK_SCHED_IDLE) && may_be_idle(q->verdict.reason) &&
		    claim_sched_idle(q->verdict.cpu)) {
			insert_wakee(p, c, q->verdict.reason, SCX_ENQ_PREEMPT);
			*placed = true;
			c->events[PERCH_EV_PREEMPTED]++;
			break;
		}
		if (!may_be_idle(q->verdict.reason) || q->verdict.reason == PERCH_BY_SLOW_PATH ||
		    q->verdict.reason == PERCH_BY_FALLBACK ||
		    q->verdict.reason == PERCH_BY_EMPTY_QUEUE)
			break;
		c->events[PERCH_EV_CLAIM_LOST]++;
		q->wakee.recent_cpu = recent;
	}
	remember(&q->waker, &q->wakee);
	follow_chosen(&q->verdict, this_cpu);
	if (q->verdict.reason < PERCH_MAX_REASONS)
		c->reasons[q->verdict.reason]++;
	return q->verdict.cpu;
}

#endif
