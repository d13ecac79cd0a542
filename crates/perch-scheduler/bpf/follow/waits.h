/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long tasks wait for a CPU: from the moment a task becomes runnable, or
 * leaves a CPU though it could go on, until it runs. Each CPU counts the waits
 * that end on it, by their reason.
 *
 * Where the loader wants it, the waits count for the task's group too. A counter for
 * each group and CPU would take too much memory, so the CPUs of an LLC share one: the
 * line moves, but not to another LLC.
 *
 * Where two live tasks share a place (memory.h), the one that came first may have
 * its wait go uncounted.
 */
#ifndef PERCH_WAITS_H
#define PERCH_WAITS_H

#include "follow/list.h"

static inline struct perch_wait __arena *wait_of(const struct task_struct *p)
{
	const struct perch_config *c = config();

	return &c->task_waits[(perch_u32)p->pid & c->memory_mask];
}

/* The task's wait if it has one, else null. */
static inline struct perch_wait __arena *own_wait(const struct task_struct *p)
{
	struct perch_wait __arena *w = wait_of(p);

	return w->pid == (perch_u32)p->pid && w->since_ns ? w : 0;
}

static inline void begin_wait(const struct task_struct *p, perch_u32 cpu, perch_u32 reason)
{
	struct perch_wait __arena *w = wait_of(p);

	w->pid = p->pid;
	w->reason = reason;
	w->cpu = cpu;
	w->since_ns = scx_bpf_now();
}

/* cpu.max holds the task back from now on. */
static inline void note_limited_wait(const struct task_struct *p)
{
	struct perch_wait __arena *w;

	if (!waits_is_on())
		return;
	w = own_wait(p);
	if (w)
		w->reason = PERCH_WAIT_LIMITED;
}

/* What another class made the task wait for is not counted. */
static inline void waits_enable(struct task_struct *p)
{
	wait_of(p)->since_ns = 0;
}

/*
 * A task that is neither woken nor newborn had its affinity, priority or group
 * changed. If it waited, it goes on to wait; if it ran, it runs on at once.
 */
static inline void waits_runnable(struct task_struct *p, perch_u32 cpu, perch_u64 enq_flags)
{
	if (enq_flags & SCX_ENQ_WAKEUP)
		begin_wait(p, cpu, cpu_state(cpu)->behind ? PERCH_WAIT_BEHIND : PERCH_WAIT_IDLE);
	else if (!p->se.sum_exec_runtime && !own_wait(p))
		begin_wait(p, cpu, PERCH_WAIT_FORKED);
}

static inline perch_u64 waits_stand(struct task_struct *p, perch_u32 cpu, perch_u64 vtime,
				    perch_u64 enq_flags)
{
	struct perch_wait __arena *w = own_wait(p);

	if (!w)
		return vtime;
	w->cpu = cpu;
	if (w->reason == PERCH_WAIT_IDLE || w->reason == PERCH_WAIT_BEHIND)
		w->reason = PERCH_WAIT_QUEUED;
	return vtime;
}

/* The bucket of a wait. */
static inline perch_u32 wait_bucket(perch_u64 ns)
{
	perch_u64 us = (ns + 999) / 1000;
	perch_u32 bucket = us > 1 ? 64 - __builtin_clzll(us - 1) : 0;

	return bucket < PERCH_WAIT_BUCKETS ? bucket : PERCH_WAIT_BUCKETS - 1;
}

/* Counts a wait for the group in `slot`, of whose tasks one runs on the CPU now. */
static inline void count_for_group(perch_u32 slot, perch_u32 cpu, perch_u32 reason,
				   perch_u32 bucket, perch_u64 ns)
{
	const struct perch_config *c = config();
	perch_u32 llc = cpu_state(cpu)->llc;
	struct perch_group_waits __arena *waits =
		&c->group_waits[slot * c->group_parts + (llc == PERCH_NONE ? 0 : llc)];

	if (reason == PERCH_WAIT_LIMITED) {
		__sync_fetch_and_add(&waits->limited, 1);
		__sync_fetch_and_add(&waits->limited_ns, ns);
		return;
	}
	__sync_fetch_and_add(&waits->counts[bucket], 1);
	__sync_fetch_and_add(&waits->sum_ns, ns);
}

static __attribute__((noinline)) int end_wait(const struct task_struct *p, perch_u32 cpu)
{
	struct perch_wait __arena *w = own_wait(p);
	struct perch_waits __arena *waits = &config()->waits[cpu];
	perch_u32 reason, bucket;
	perch_s64 ns;

	if (!w)
		return 0;
	ns = scx_bpf_now() - w->since_ns;
	/* CPUs' clocks may differ by a little. */
	if (ns < 0)
		ns = 0;
	w->since_ns = 0;
	reason = w->reason;
	if (cpu_state(cpu)->band_prio)
		reason = PERCH_WAIT_BAND;
	else if (w->cpu != cpu && reason != PERCH_WAIT_LIMITED)
		reason = PERCH_WAIT_MOVED;
	if (reason >= PERCH_NR_WAITS)
		return 0;
	bucket = wait_bucket(ns);
	waits->counts[reason][bucket]++;
	waits->sums_ns[reason] += ns;
	if (config()->group_parts)
		count_for_group(cpu_state(cpu)->group, cpu, reason, bucket, ns);
	return 0;
}

static inline void waits_running(struct task_struct *p, struct perch_cpu __arena *c, perch_u32 cpu)
{
	end_wait(p, cpu);
}

static inline void waits_stopping(struct task_struct *p, perch_u32 cpu, bool runnable,
				  perch_u64 ran)
{
	if (runnable)
		begin_wait(p, cpu, PERCH_WAIT_PREEMPTED);
}

static const struct perch_follower waits_follower = {
	.enable = waits_enable,
	.runnable = waits_runnable,
	.stand = waits_stand,
	.running = waits_running,
	.stopping = waits_stopping,
};

#endif
