/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The questions that a policy may ask. Nothing in policy/ reads anything but
 * its arguments and the answers of these functions, so any program that can
 * answer them can host the policy.
 *
 * A host defines `struct perch_host` and every function below as `static
 * inline` before it includes select.h; hosts/native.h does it for the simulator
 * and the replay. An answer may be stale where the kernel's would be
 * (nr_idle_scan is as old as the last balance), but a host never invents one.
 *
 * CPU sets are walked by words of 64 CPUs. A set is named by a number: the
 * host knows its first word and how many words it takes, so that a cluster
 * of four CPUs costs one word on a machine of 8192.
 */
#ifndef PERCH_HOST_H
#define PERCH_HOST_H

#include "wake.h"

struct perch_host;

/* The machine. */
PERCH_INLINE perch_u32 perch_host_nr_cpus(const struct perch_host *h);
/* True if any domain has a cluster level (the kernel's sched_cluster_active). */
PERCH_INLINE perch_u8 perch_host_has_clusters(const struct perch_host *h);
PERCH_INLINE perch_u8 perch_host_has_smt(const struct perch_host *h);
/*
 * The largest architectural capacity of any CPU: 1024, unless the CPUs of that
 * capacity are offline.
 */
PERCH_INLINE perch_u32 perch_host_max_capacity(const struct perch_host *h);

/* CPU sets: first word, number of words, one word (absolute index), CPUs in it. */
PERCH_INLINE perch_u32 perch_host_set_first(const struct perch_host *h, perch_u32 set);
PERCH_INLINE perch_u32 perch_host_set_words(const struct perch_host *h, perch_u32 set);
PERCH_INLINE perch_u64 perch_host_set_word(const struct perch_host *h, perch_u32 set, perch_u32 w);
PERCH_INLINE perch_u32 perch_host_set_weight(const struct perch_host *h, perch_u32 set);

/*
 * The sets to which a CPU belongs: its SMT siblings and itself; its cluster
 * domain, PERCH_NONE without one; its LLC domain, PERCH_NONE without one; its
 * lowest domain that has CPUs of every capacity, PERCH_NONE where all CPUs have
 * the same.
 */
PERCH_INLINE perch_u32 perch_host_core_set(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_cluster_set(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_llc_set(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_asym_set(const struct perch_host *h, perch_u32 cpu);

/*
 * The number of LLCs, which count from 0; a CPU's LLC, PERCH_NONE without one;
 * the set of an LLC's CPUs.
 */
PERCH_INLINE perch_u32 perch_host_nr_llcs(const struct perch_host *h);
PERCH_INLINE perch_u32 perch_host_llc(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_llc_cpus(const struct perch_host *h, perch_u32 llc);

/* The tasks' affinity and the CPUs' state, by words. */
PERCH_INLINE perch_u64 perch_host_allowed_word(const struct perch_host *h,
					       const struct perch_task *p, perch_u32 w);
/*
 * The first function is true if the task is in a group other than the root
 * group. The second returns the CPUs where that group itself, not a group below
 * it, has something runnable queued.
 */
PERCH_INLINE perch_u8 perch_host_grouped(const struct perch_host *h, const struct perch_task *p);
PERCH_INLINE perch_u64 perch_host_queued_word(const struct perch_host *h,
					      const struct perch_task *p, perch_u32 w);
/*
 * A CPU is idle if no wake-up is on its way to it. The second function returns
 * those of the CPUs `among` in a word that are: a host may keep the parts of a
 * word apart, each where its own CPUs write.
 */
PERCH_INLINE perch_u8 perch_host_idle(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u64 perch_host_idle_word(const struct perch_host *h, perch_u32 w,
					    perch_u64 among);
/* The CPUs that run SCHED_IDLE tasks only. */
PERCH_INLINE perch_u64 perch_host_sched_idle_word(const struct perch_host *h, perch_u32 w);

/* One CPU. Loads and capacities: 1024 is one nice-0 task, one largest CPU. */
PERCH_INLINE perch_u32 perch_host_nr_running(const struct perch_host *h, perch_u32 cpu);
/* EEVDF: those of the runnable tasks that are queued only to lose their lag (delayed dequeue). */
PERCH_INLINE perch_u32 perch_host_nr_delayed(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_load(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_runnable(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_util(const struct perch_host *h, perch_u32 cpu);
/*
 * The capacity that is left for fair tasks; then the architectural one, at the
 * highest frequency.
 */
PERCH_INLINE perch_u32 perch_host_capacity(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u32 perch_host_capacity_max(const struct perch_host *h, perch_u32 cpu);
/*
 * The capacity of a group of a domain, and the largest of its CPUs', by the
 * group's set: as the kernel's periodic balance last added them up.
 */
PERCH_INLINE perch_u32 perch_host_group_capacity(const struct perch_host *h, perch_u32 set);
PERCH_INLINE perch_u32 perch_host_group_max_capacity(const struct perch_host *h, perch_u32 set);
/* Load of the task that the CPU runs now; 0 for an idle CPU. */
PERCH_INLINE perch_u32 perch_host_curr_load(const struct perch_host *h, perch_u32 cpu);
/* For an idle CPU: the exit latency of its idle state, and the moment at which it went idle. */
PERCH_INLINE perch_u32 perch_host_idle_exit_ns(const struct perch_host *h, perch_u32 cpu);
PERCH_INLINE perch_u64 perch_host_idle_since_ns(const struct perch_host *h, perch_u32 cpu);
/* The time that an interrupt takes to have an idle CPU run a wakee, its idle state's exit left out. */
PERCH_INLINE perch_u32 perch_host_kick_ns(const struct perch_host *h);

/* The state that the CPUs of one LLC share; `set` is the set of an LLC. */
PERCH_INLINE perch_u32 perch_host_nr_idle_scan(const struct perch_host *h, perch_u32 set);
PERCH_INLINE perch_u8 perch_host_idle_cores(const struct perch_host *h, perch_u32 set);
PERCH_INLINE void perch_host_set_idle_cores(struct perch_host *h, perch_u32 set, perch_u8 has);

/*
 * The records that the cache mechanism keeps of a CPU, and that it and spread keep of an LLC by its
 * number.
 */
PERCH_INLINE struct perch_epoch PERCH_AS *perch_host_epoch(const struct perch_host *h,
							   perch_u32 cpu);
PERCH_INLINE struct perch_llc_load PERCH_AS *perch_host_llc_load(const struct perch_host *h,
								 perch_u32 llc);

/*
 * The scheduling domains of a CPU, lowest first; `level` counts from 0 and
 * PERCH_NONE ends them. Groups of a domain are sets.
 */
#define PERCH_SD_SMT 0x1u
#define PERCH_SD_CLUSTER 0x2u
#define PERCH_SD_LLC 0x4u /* its CPUs share the last-level cache */
#define PERCH_SD_NUMA 0x8u
#define PERCH_SD_BALANCE_FORK 0x10u /* fork and exec */
#define PERCH_SD_WAKE_AFFINE 0x20u
#define PERCH_SD_PREFER_SIBLING 0x40u
#define PERCH_SD_ASYM 0x80u /* its CPUs differ in capacity */

#define PERCH_MAX_LEVELS 12

PERCH_INLINE perch_u32 perch_host_domain(const struct perch_host *h, perch_u32 cpu,
					 perch_u32 level);
PERCH_INLINE perch_u32 perch_host_domain_flags(const struct perch_host *h, perch_u32 domain);
PERCH_INLINE perch_u32 perch_host_domain_set(const struct perch_host *h, perch_u32 domain);
PERCH_INLINE perch_u32 perch_host_domain_imbalance(const struct perch_host *h, perch_u32 domain);
PERCH_INLINE perch_u32 perch_host_domain_imb_numa(const struct perch_host *h, perch_u32 domain);
PERCH_INLINE perch_u32 perch_host_domain_groups(const struct perch_host *h, perch_u32 domain);
PERCH_INLINE perch_u32 perch_host_domain_group(const struct perch_host *h, perch_u32 domain,
					       perch_u32 i);

#endif
