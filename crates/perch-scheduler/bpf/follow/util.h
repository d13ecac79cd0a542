/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a task needs of a CPU: its utilisation, tracked here because the
 * kernel's PELT does not follow tasks of sched_ext, and its clamps. Only where
 * capacities differ or cache=upstream asks; elsewhere config's `utils`, which
 * the verifier knows, takes all of it out of the program.
 */
#ifndef PERCH_UTIL_H
#define PERCH_UTIL_H

#include "follow/process.h"

#include "follow/pelt.h"

static inline struct perch_memory __arena *memory_of(perch_u32 pid)
{
	const struct perch_config *c = config();

	return &c->memories[pid & c->memory_mask];
}

/* Utilisation now, without a change of anything: since the last update it went towards `to`. */
static inline perch_u32 util_at(const struct perch_memory __arena *m, perch_u32 to, perch_u64 now)
{
	perch_s64 passed = now - m->util_at_ns;

	/* Clocks of two CPUs may be some microseconds apart. */
	return perch_pelt(m->util, to << PERCH_PELT_SHIFT,
			  passed > 0 ? passed >> PERCH_PELT_UNIT : 0);
}

/* Brings it up to date; less than a unit of time is left for the next time. */
static inline void update_util(struct perch_memory __arena *m, perch_u32 to, perch_u64 now)
{
	perch_s64 passed = now - m->util_at_ns;

	if (passed < 1 << PERCH_PELT_UNIT)
		return;
	m->util = util_at(m, to, now);
	m->util_at_ns += passed >> PERCH_PELT_UNIT << PERCH_PELT_UNIT;
}

/*
 * What a newborn task is taken to use: half of what its CPU has left, as the
 * kernel does, so that it neither counts for nothing nor for a hog until its
 * first period is over. A task that was there before perch begins with what
 * the kernel's own scheduler knew of it.
 */
static inline perch_u32 first_util(const struct task_struct *p, perch_u32 cpu)
{
	const struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 known = p->se.avg.util_avg;

	if (known)
		return known < 1024 ? known : 1024;
	return c->util < c->capacity ? (c->capacity - c->util) / 2 : 0;
}

/* Somebody else's pid was found in its place, or nobody's: the task has no past. */
static __attribute__((noinline)) void take_memory(struct perch_memory __arena *m,
						  const struct task_struct *p, perch_u32 cpu)
{
	m->pid = p->pid;
	m->last_wakee = m->wakee_flips = 0;
	m->recent_cpu = PERCH_NONE;
	if (perch_config.utils) {
		m->util = first_util(p, cpu) << PERCH_PELT_SHIFT;
		m->util_est = 0;
		m->util_at_ns = scx_bpf_now();
	}
	if (perch_config.cache) {
		m->process = find_slot(p);
		m->llc = m->llc_before = PERCH_NONE;
	}
}

static inline struct perch_memory __arena *own_memory(const struct task_struct *p, perch_u32 cpu)
{
	struct perch_memory __arena *m = memory_of(p->pid);

	if (m->pid != (perch_u32)p->pid)
		take_memory(m, p, cpu);
	return m;
}

/* It starts to run: since the last update it slept or waited. */
static inline void util_running(const struct task_struct *p, perch_u32 cpu)
{
	update_util(own_memory(p, cpu), 0, scx_bpf_now());
}

/* It runs, and has since the last update. */
static inline struct perch_memory __arena *util_ran(const struct task_struct *p, perch_u32 cpu)
{
	struct perch_memory __arena *m = own_memory(p, cpu);

	update_util(m, cpu_state(cpu)->capacity, scx_bpf_now());
	return m;
}

/* It stops, to sleep or for somebody else. */
static inline void util_stopping(const struct task_struct *p, perch_u32 cpu, bool sleeps)
{
	struct perch_memory __arena *m = util_ran(p, cpu);

	if (sleeps)
		m->util_est = perch_util_est(m->util_est, m->util >> PERCH_PELT_SHIFT);
}

static inline perch_u32 clamp_of(const struct uclamp_se *clamp)
{
	return BPF_CORE_READ_BITFIELD(clamp, value);
}

/*
 * The clamps that were asked for the task itself; those of its cgroup and of
 * the whole system are not looked at.
 */
static inline void look_at_clamps(struct perch_task *t, const struct task_struct *p)
{
	t->uclamp_min = 0;
	t->uclamp_max = 1024;
	if (bpf_core_field_exists(p->uclamp_req)) {
		t->uclamp_min = clamp_of(&p->uclamp_req[0]);
		t->uclamp_max = clamp_of(&p->uclamp_req[1]);
	}
}

/* What the policy is told of a task that wakes or waits: a long sleep makes it no smaller. */
static inline void look_at_need(struct perch_task *t, const struct task_struct *p,
				const struct perch_memory __arena *m)
{
	perch_u32 util = util_at(m, 0, scx_bpf_now()) >> PERCH_PELT_SHIFT;

	t->util = util > m->util_est ? util : m->util_est;
	look_at_clamps(t, p);
}

#endif
