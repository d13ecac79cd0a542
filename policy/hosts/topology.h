/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The machine's shape as plain arrays, which hosts share: the native one keeps
 * them in its process, the BPF one in an arena. crates/perch-policy builds
 * them (Topology).
 *
 * A host says where its arrays are by perch_topology(), and in which address
 * space by PERCH_AS, before it includes this.
 */
#ifndef PERCH_HOSTS_TOPOLOGY_H
#define PERCH_HOSTS_TOPOLOGY_H

#include "../include/perch/host.h"

/*
 * A set of CPUs: words `first` to `first + words - 1`, at pool[offset]. Its
 * capacity is the sum of its CPUs' architectural ones; then the largest of these.
 */
struct perch_native_set {
	perch_u32 first, words, offset, weight;
	perch_u32 capacity, max_capacity;
};

struct perch_native_domain {
	perch_u32 flags, set, imbalance_pct, imb_numa_nr;
	perch_u32 groups, first_group; /* in group_sets[] */
	perch_u32 level, pad;
};

/* Where a CPU is. */
struct perch_native_place {
	perch_u32 core_set, cluster_set, llc_set;
	perch_u32 llc; /* index into llcs[], PERCH_NONE without an LLC domain */
	perch_u32 asym_set, capacity;
	perch_u32 domains[PERCH_MAX_LEVELS + 1]; /* PERCH_NONE ends them */
};

struct perch_topology {
	const perch_u64 PERCH_AS *pool;
	const struct perch_native_set PERCH_AS *sets;
	const struct perch_native_domain PERCH_AS *domains;
	const perch_u32 PERCH_AS *group_sets;
	const struct perch_native_place PERCH_AS *places;
	const perch_u32 PERCH_AS *llc_of_set; /* LLC index by set number */
	const perch_u32 PERCH_AS *llc_sets;   /* set number by LLC index */
	perch_u32 nr_cpus, nr_llcs;
	perch_u8 has_clusters, has_smt;
	perch_u16 max_capacity;
	perch_u32 pad;
};

PERCH_INLINE const struct perch_topology *perch_topology(const struct perch_host *h);

PERCH_INLINE perch_u32 perch_host_nr_cpus(const struct perch_host *h)
{
	return perch_topology(h)->nr_cpus;
}

PERCH_INLINE perch_u8 perch_host_has_clusters(const struct perch_host *h)
{
	return perch_topology(h)->has_clusters;
}

PERCH_INLINE perch_u8 perch_host_has_smt(const struct perch_host *h)
{
	return perch_topology(h)->has_smt;
}

PERCH_INLINE perch_u32 perch_host_max_capacity(const struct perch_host *h)
{
	return perch_topology(h)->max_capacity;
}

PERCH_INLINE perch_u32 perch_host_set_first(const struct perch_host *h, perch_u32 set)
{
	return perch_topology(h)->sets[set].first;
}

PERCH_INLINE perch_u32 perch_host_set_words(const struct perch_host *h, perch_u32 set)
{
	return perch_topology(h)->sets[set].words;
}

PERCH_INLINE perch_u64 perch_host_set_word(const struct perch_host *h, perch_u32 set, perch_u32 w)
{
	return perch_topology(h)->pool[perch_topology(h)->sets[set].offset + w -
				       perch_topology(h)->sets[set].first];
}

PERCH_INLINE perch_u32 perch_host_set_weight(const struct perch_host *h, perch_u32 set)
{
	return perch_topology(h)->sets[set].weight;
}

PERCH_INLINE perch_u32 perch_host_core_set(const struct perch_host *h, perch_u32 cpu)
{
	return perch_topology(h)->places[cpu].core_set;
}

PERCH_INLINE perch_u32 perch_host_cluster_set(const struct perch_host *h, perch_u32 cpu)
{
	return perch_topology(h)->places[cpu].cluster_set;
}

PERCH_INLINE perch_u32 perch_host_llc_set(const struct perch_host *h, perch_u32 cpu)
{
	return perch_topology(h)->places[cpu].llc_set;
}

PERCH_INLINE perch_u32 perch_host_nr_llcs(const struct perch_host *h)
{
	return perch_topology(h)->nr_llcs;
}

PERCH_INLINE perch_u32 perch_host_llc(const struct perch_host *h, perch_u32 cpu)
{
	return perch_topology(h)->places[cpu].llc;
}

PERCH_INLINE perch_u32 perch_host_llc_cpus(const struct perch_host *h, perch_u32 llc)
{
	return perch_topology(h)->llc_sets[llc];
}

PERCH_INLINE perch_u32 perch_host_asym_set(const struct perch_host *h, perch_u32 cpu)
{
	return perch_topology(h)->places[cpu].asym_set;
}

PERCH_INLINE perch_u32 perch_host_capacity_max(const struct perch_host *h, perch_u32 cpu)
{
	return perch_topology(h)->places[cpu].capacity;
}

PERCH_INLINE perch_u32 perch_host_domain(const struct perch_host *h, perch_u32 cpu, perch_u32 level)
{
	return perch_topology(h)->places[cpu].domains[level];
}

PERCH_INLINE perch_u32 perch_host_domain_flags(const struct perch_host *h, perch_u32 domain)
{
	return perch_topology(h)->domains[domain].flags;
}

PERCH_INLINE perch_u32 perch_host_domain_set(const struct perch_host *h, perch_u32 domain)
{
	return perch_topology(h)->domains[domain].set;
}

PERCH_INLINE perch_u32 perch_host_domain_imbalance(const struct perch_host *h, perch_u32 domain)
{
	return perch_topology(h)->domains[domain].imbalance_pct;
}

PERCH_INLINE perch_u32 perch_host_domain_imb_numa(const struct perch_host *h, perch_u32 domain)
{
	return perch_topology(h)->domains[domain].imb_numa_nr;
}

PERCH_INLINE perch_u32 perch_host_domain_groups(const struct perch_host *h, perch_u32 domain)
{
	return perch_topology(h)->domains[domain].groups;
}

PERCH_INLINE perch_u32 perch_host_domain_group(const struct perch_host *h, perch_u32 domain,
					       perch_u32 i)
{
	return perch_topology(h)->group_sets[perch_topology(h)->domains[domain].first_group + i];
}

#endif
