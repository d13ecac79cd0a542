/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The native host: plain arrays that the simulator or the replay keeps
 * current, so that a question costs a load. Mirrored by
 * crates/perch-policy/src/ffi.rs, which also owns the arrays.
 */
#ifndef PERCH_HOSTS_NATIVE_H
#define PERCH_HOSTS_NATIVE_H

#include "../include/perch/host.h"

/* A set of CPUs: words `first` to `first + words - 1`, at pool[offset]. */
struct perch_native_set {
	perch_u32 first, words, offset, weight;
};

struct perch_native_domain {
	perch_u32 flags, set, imbalance_pct, imb_numa_nr;
	perch_u32 groups, first_group; /* in group_sets[] */
	perch_u32 level, pad;
};

/* What never changes of a CPU. */
struct perch_native_place {
	perch_u32 core_set, cluster_set, llc_set;
	perch_u32 llc; /* index into llcs[], PERCH_NONE without an LLC domain */
	perch_u32 domains[PERCH_MAX_LEVELS];
};

/* What changes of a CPU. */
struct perch_native_cpu {
	/* The balancer of the simulator sums these four over many CPUs: side by side. */
	perch_u32 nr_running, load, runnable, util;
	perch_u32 nr_delayed, capacity, curr_load, idle_exit_ns;
	perch_u64 idle_since_ns;
};

struct perch_native_llc {
	perch_u32 set, nr_idle_scan;
	perch_u32 idle_cores, pad;
};

struct perch_host {
	const perch_u64 *pool;
	const struct perch_native_set *sets;
	const struct perch_native_domain *domains;
	const perch_u32 *group_sets;
	const struct perch_native_place *places;
	const perch_u64 *idle, *sched_idle;
	const struct perch_native_cpu *cpus;
	struct perch_native_llc *llcs;
	const perch_u32 *llc_of_set; /* index into llcs[] by set number */
	perch_u32 nr_cpus;
	perch_u8 has_clusters, has_smt, pad[2];
};

PERCH_INLINE perch_u32 perch_host_nr_cpus(const struct perch_host *h)
{
	return h->nr_cpus;
}

PERCH_INLINE perch_u8 perch_host_has_clusters(const struct perch_host *h)
{
	return h->has_clusters;
}

PERCH_INLINE perch_u8 perch_host_has_smt(const struct perch_host *h)
{
	return h->has_smt;
}

PERCH_INLINE perch_u32 perch_host_set_first(const struct perch_host *h, perch_u32 set)
{
	return h->sets[set].first;
}

PERCH_INLINE perch_u32 perch_host_set_words(const struct perch_host *h, perch_u32 set)
{
	return h->sets[set].words;
}

PERCH_INLINE perch_u64 perch_host_set_word(const struct perch_host *h, perch_u32 set, perch_u32 w)
{
	return h->pool[h->sets[set].offset + w - h->sets[set].first];
}

PERCH_INLINE perch_u32 perch_host_set_weight(const struct perch_host *h, perch_u32 set)
{
	return h->sets[set].weight;
}

PERCH_INLINE perch_u32 perch_host_core_set(const struct perch_host *h, perch_u32 cpu)
{
	return h->places[cpu].core_set;
}

PERCH_INLINE perch_u32 perch_host_cluster_set(const struct perch_host *h, perch_u32 cpu)
{
	return h->places[cpu].cluster_set;
}

PERCH_INLINE perch_u32 perch_host_llc_set(const struct perch_host *h, perch_u32 cpu)
{
	return h->places[cpu].llc_set;
}

PERCH_INLINE perch_u64 perch_host_allowed_word(const struct perch_host *h,
					       const struct perch_task *p, perch_u32 w)
{
	(void)h;
	return p->allowed[w];
}

PERCH_INLINE perch_u64 perch_host_idle_word(const struct perch_host *h, perch_u32 w)
{
	return h->idle[w];
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

PERCH_INLINE perch_u32 perch_host_nr_idle_scan(const struct perch_host *h, perch_u32 set)
{
	return h->llcs[h->llc_of_set[set]].nr_idle_scan;
}

PERCH_INLINE perch_u8 perch_host_idle_cores(const struct perch_host *h, perch_u32 set)
{
	return h->llcs[h->llc_of_set[set]].idle_cores != 0;
}

PERCH_INLINE void perch_host_set_idle_cores(struct perch_host *h, perch_u32 set, perch_u8 has)
{
	h->llcs[h->llc_of_set[set]].idle_cores = has;
}

PERCH_INLINE perch_u32 perch_host_domain(const struct perch_host *h, perch_u32 cpu, perch_u32 level)
{
	return h->places[cpu].domains[level];
}

PERCH_INLINE perch_u32 perch_host_domain_flags(const struct perch_host *h, perch_u32 domain)
{
	return h->domains[domain].flags;
}

PERCH_INLINE perch_u32 perch_host_domain_set(const struct perch_host *h, perch_u32 domain)
{
	return h->domains[domain].set;
}

PERCH_INLINE perch_u32 perch_host_domain_imbalance(const struct perch_host *h, perch_u32 domain)
{
	return h->domains[domain].imbalance_pct;
}

PERCH_INLINE perch_u32 perch_host_domain_imb_numa(const struct perch_host *h, perch_u32 domain)
{
	return h->domains[domain].imb_numa_nr;
}

PERCH_INLINE perch_u32 perch_host_domain_groups(const struct perch_host *h, perch_u32 domain)
{
	return h->domains[domain].groups;
}

PERCH_INLINE perch_u32 perch_host_domain_group(const struct perch_host *h, perch_u32 domain,
					       perch_u32 i)
{
	return h->group_sets[h->domains[domain].first_group + i];
}

#endif
