/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The native host: plain arrays that the simulator or the replay keeps
 * current, so that a question costs a load. crates/perch-policy owns the
 * arrays. The BPF test program of the live scheduler is this host too, with arrays in an arena.
 */
#ifndef PERCH_HOSTS_NATIVE_H
#define PERCH_HOSTS_NATIVE_H

#include "topology.h"

/* The state of a CPU that changes while the machine runs. */
struct perch_native_cpu {
	/* The simulator's balancer sums these four over many CPUs, so they lie side by side. */
	perch_u32 nr_running, load, runnable, util;
	perch_u32 nr_delayed, capacity, curr_load, idle_exit_ns;
	perch_u64 idle_since_ns;
};

/* The capacity of a group of a domain, and the largest of its CPUs'. */
struct perch_native_group {
	perch_u32 capacity, max_capacity;
};

struct perch_native_llc {
	perch_u32 set, nr_idle_scan;
	perch_u32 idle_cores, pad;
};

struct perch_host {
	struct perch_topology topology;
	const perch_u64 PERCH_AS *idle;
	const perch_u64 PERCH_AS *sched_idle;
	const struct perch_native_cpu PERCH_AS *cpus;
	const struct perch_native_group PERCH_AS *groups; /* by set number */
	struct perch_native_llc PERCH_AS *llcs;
	struct perch_epoch PERCH_AS *epochs;
	struct perch_llc_load PERCH_AS *loads;
};

PERCH_INLINE const struct perch_topology *perch_topology(const struct perch_host *h)
{
	return &h->topology;
}

PERCH_INLINE perch_u64 perch_host_allowed_word(const struct perch_host *h,
					       const struct perch_task *p, perch_u32 w)
{
	(void)h;
	return p->allowed[w];
}

PERCH_INLINE perch_u8 perch_host_grouped(const struct perch_host *h, const struct perch_task *p)
{
	(void)h;
	return !!p->queued;
}

PERCH_INLINE perch_u64 perch_host_queued_word(const struct perch_host *h,
					      const struct perch_task *p, perch_u32 w)
{
	(void)h;
	return p->queued[w];
}

PERCH_INLINE perch_u8 perch_host_idle(const struct perch_host *h, perch_u32 cpu)
{
	return h->idle[cpu / 64] >> (cpu % 64) & 1;
}

PERCH_INLINE perch_u64 perch_host_idle_word(const struct perch_host *h, perch_u32 w,
					    perch_u64 among)
{
	return h->idle[w] & among;
}

PERCH_INLINE perch_u64 perch_host_sched_idle_word(const struct perch_host *h, perch_u32 w)
{
	return h->sched_idle[w];
}

PERCH_INLINE perch_u32 perch_host_nr_running(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].nr_running;
}

PERCH_INLINE perch_u32 perch_host_nr_delayed(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].nr_delayed;
}

PERCH_INLINE perch_u32 perch_host_load(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].load;
}

PERCH_INLINE perch_u32 perch_host_runnable(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].runnable;
}

PERCH_INLINE perch_u32 perch_host_util(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].util;
}

PERCH_INLINE perch_u32 perch_host_capacity(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].capacity;
}

PERCH_INLINE perch_u32 perch_host_group_capacity(const struct perch_host *h, perch_u32 set)
{
	return h->groups[set].capacity;
}

PERCH_INLINE perch_u32 perch_host_group_max_capacity(const struct perch_host *h, perch_u32 set)
{
	return h->groups[set].max_capacity;
}

PERCH_INLINE perch_u32 perch_host_curr_load(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].curr_load;
}

PERCH_INLINE perch_u32 perch_host_idle_exit_ns(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].idle_exit_ns;
}

PERCH_INLINE perch_u64 perch_host_idle_since_ns(const struct perch_host *h, perch_u32 cpu)
{
	return h->cpus[cpu].idle_since_ns;
}

/* As the live scheduler has it unless its user says otherwise (behind_us). */
PERCH_INLINE perch_u32 perch_host_kick_ns(const struct perch_host *h)
{
	(void)h;
	return 5000;
}

PERCH_INLINE perch_u32 perch_host_nr_idle_scan(const struct perch_host *h, perch_u32 set)
{
	return h->llcs[h->topology.llc_of_set[set]].nr_idle_scan;
}

PERCH_INLINE perch_u8 perch_host_idle_cores(const struct perch_host *h, perch_u32 set)
{
	return h->llcs[h->topology.llc_of_set[set]].idle_cores != 0;
}

PERCH_INLINE void perch_host_set_idle_cores(struct perch_host *h, perch_u32 set, perch_u8 has)
{
	h->llcs[h->topology.llc_of_set[set]].idle_cores = has;
}

PERCH_INLINE struct perch_epoch PERCH_AS *perch_host_epoch(const struct perch_host *h,
							   perch_u32 cpu)
{
	return &h->epochs[cpu];
}

PERCH_INLINE struct perch_llc_load PERCH_AS *perch_host_llc_load(const struct perch_host *h,
								 perch_u32 llc)
{
	return &h->loads[llc];
}

#endif
