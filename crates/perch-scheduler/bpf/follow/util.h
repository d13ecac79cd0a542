/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tells the policy how much of a CPU a task needs: the task's clamps, and its
 * utilisation, which this follower tracks because the kernel's PELT does not
 * follow tasks of sched_ext. The follower is on where capacities differ, and
 * with cache=upstream.
 */
#ifndef PERCH_UTIL_H
#define PERCH_UTIL_H

#include "base/memory.h"
#include "follow/pelt.h"

/*
 * The task's utilisation now, if it has moved towards `to` since the last
 * update; changes nothing.
 */
static inline perch_u32 util_at(const struct perch_memory __arena *m, perch_u32 to, perch_u64 now)
{
	perch_s64 passed = now - m->util_at_ns;

	/* Clocks of two CPUs may be some microseconds apart. */
	return perch_pelt(m->util, to << PERCH_PELT_SHIFT,
			  passed > 0 ? passed >> PERCH_PELT_UNIT : 0);
}

/*
 * Brings the task's utilisation up to date; a rest of less than a unit of time
 * counts at the next update.
 */
static inline void update_util(struct perch_memory __arena *m, perch_u32 to, perch_u64 now)
{
	perch_s64 passed = now - m->util_at_ns;

	if (passed < 1 << PERCH_PELT_UNIT)
		return;
	m->util = util_at(m, to, now);
	m->util_at_ns += passed >> PERCH_PELT_UNIT << PERCH_PELT_UNIT;
}

/*
 * The utilisation that a newborn task begins with: half of the capacity that
 * its CPU has left, as in the kernel, so that until its first period is over
 * the task counts neither as nothing nor as a hog. A task that was there before
 * perch begins with the utilisation that the kernel's own scheduler had
 * measured.
 */
static inline perch_u32 first_util(const struct task_struct *p, perch_u32 cpu)
{
	const struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 known = p->se.avg.util_avg;

	if (known)
		return known < 1024 ? known : 1024;
	return c->util < c->capacity ? (c->capacity - c->util) / 2 : 0;
}

static inline perch_u32 clamp(perch_u32 value, perch_u32 min, perch_u32 max)
{
	return value < min ? min : value > max ? max : value;
}

static inline perch_u32 clamp_of(const struct uclamp_se *clamp)
{
	return BPF_CORE_READ_BITFIELD(clamp, value);
}

/* The most that a task may ask for: the limits of the whole system (sched_util_clamp_min, _max). */
static perch_u32 system_min = 1024, system_max = 1024;

/* The kernel keeps these limits as the clamps of the root group, too. */
static inline void util_turn(perch_u64 now)
{
	const struct task_struct *p = bpf_get_current_task_btf();
	const struct task_group *g = p ? p->sched_task_group : 0;

	if (!bpf_core_field_exists(g->uclamp) || !g)
		return;
	while (g->parent && can_loop)
		g = g->parent;
	system_min = clamp_of(&g->uclamp[0]);
	system_max = clamp_of(&g->uclamp[1]);
}

/*
 * Reads the clamps that were set for the task itself, and keeps them between those of its cgroup and below
 * those of the whole system. The root has none of its own, nor have autogroups.
 */
static inline void look_at_clamps(struct perch_task *t, const struct task_struct *p)
{
	const struct task_group *g = p->sched_task_group;
	perch_u32 min = 0, max = 1024;

	t->uclamp_min = min;
	t->uclamp_max = max;
	if (bpf_core_field_exists(p->uclamp_req)) {
		t->uclamp_min = clamp_of(&p->uclamp_req[0]);
		t->uclamp_max = clamp_of(&p->uclamp_req[1]);
	}
	if (bpf_core_field_exists(g->uclamp) && g && g->parent &&
	    !(bpf_core_field_exists(g->autogroup) && g->autogroup)) {
		min = clamp_of(&g->uclamp[0]);
		max = clamp_of(&g->uclamp[1]);
	}
	t->uclamp_min = clamp(clamp(t->uclamp_min, min, max), 0, system_min);
	t->uclamp_max = clamp(clamp(t->uclamp_max, min, max), 0, system_max);
}

/*
 * Tells the policy the need of a task that wakes or waits: a long sleep makes
 * the task no smaller.
 */
static inline void look_at_need(struct perch_task *t, const struct task_struct *p,
				const struct perch_memory __arena *m)
{
	perch_u32 util = util_at(m, 0, scx_bpf_now()) >> PERCH_PELT_SHIFT;

	t->util = util > m->util_est ? util : m->util_est;
	look_at_clamps(t, p);
}

static inline void util_begin_memory(struct perch_memory __arena *m, const struct task_struct *p,
				     perch_u32 cpu)
{
	m->util = first_util(p, cpu) << PERCH_PELT_SHIFT;
	m->util_est = 0;
	m->util_at_ns = scx_bpf_now();
}

static inline void util_wakee(struct perch_task *t, struct task_struct *p,
			      const struct perch_memory __arena *m)
{
	look_at_need(t, p, m);
}

/* Since the last update the task slept or waited. */
static inline void util_running(struct task_struct *p, struct perch_cpu __arena *c, perch_u32 cpu)
{
	update_util(own_memory(p, cpu), 0, scx_bpf_now());
}

/* The task runs, and has run since the last update. */
static inline struct perch_memory __arena *util_ran(const struct task_struct *p, perch_u32 cpu)
{
	struct perch_memory __arena *m = own_memory(p, cpu);

	update_util(m, cpu_state(cpu)->capacity, scx_bpf_now());
	return m;
}

static inline void util_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	util_ran(p, cpu);
}

static inline void util_stopping(struct task_struct *p, perch_u32 cpu, bool runnable, perch_u64 ran)
{
	struct perch_memory __arena *m = util_ran(p, cpu);

	if (!runnable)
		m->util_est = perch_util_est(m->util_est, m->util >> PERCH_PELT_SHIFT);
}

static const struct perch_follower util_follower = {
	.begin_memory = util_begin_memory,
	.wakee = util_wakee,
	.running = util_running,
	.tick = util_tick,
	.stopping = util_stopping,
	.turn = util_turn,
};

#endif
