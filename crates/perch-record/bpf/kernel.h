/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's structures and functions that the recorder reads. This file declares only the fields
 * in use: their offsets are the running kernel's (CO-RE).
 */
#ifndef PERCH_RECORD_KERNEL_H
#define PERCH_RECORD_KERNEL_H

typedef _Bool bool;
#define true 1
#define false 0
typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u32 __wsum;

enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
};

#define BPF_RB_NO_WAKEUP 1
#define BPF_F_RDONLY_PROG 128
#define BPF_F_MMAPABLE 1024

#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define SCHED_IDLE 5
/* WF_EXEC and WF_FORK: the kernel puts such a task where the fewest others are. */
#define WF_SLOW 0x6
#define WF_FORK 0x4

/*
 * The parts of preempt_count for an NMI, an interrupt, and a softirq that is being served (not one
 * that is put off).
 */
#define IN_INTERRUPT 0x00ff0100u

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_avg {
	unsigned long load_avg;
	unsigned long runnable_avg;
	unsigned long util_avg;
	unsigned int util_est;
};

/* Up to 6.7. */
struct util_est {
	unsigned int enqueued;
	unsigned int ewma;
};

struct sched_avg___old {
	struct util_est util_est;
};

struct cfs_rq;

struct sched_entity {
	struct sched_avg avg;
	struct cfs_rq *cfs_rq;
	struct sched_entity *parent;
};

struct cfs_rq {
	unsigned int h_nr_queued;
	unsigned int h_nr_runnable;
	unsigned int h_nr_idle;
	unsigned long h_load;
	unsigned long last_h_load_update; /* jiffies */
	struct sched_avg avg;
};

/* Up to 6.14 the counts had other names; delayed tasks came with 6.12. */
struct cfs_rq___old {
	unsigned int h_nr_delayed;
	unsigned int idle_h_nr_running;
};

struct uclamp_se {
	unsigned int value : 11;
};

struct task_struct {
	unsigned int flags;
	unsigned int policy;
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_entity se;
	struct uclamp_se uclamp[2];
	unsigned int wakee_flips;
	unsigned long wakee_flip_decay_ts;
	struct task_struct *last_wakee;
	int recent_used_cpu;
	int numa_preferred_nid;
	unsigned int on_rq;
	unsigned short migration_disabled;
	int pid;
	int tgid;
};

/* arm64 keeps the count here, x86 in a variable of each CPU. */
struct preempt_count {
	__u32 count;
};

struct thread_info___arm64 {
	struct preempt_count preempt;
};

struct task_struct___arm64 {
	struct thread_info___arm64 thread_info;
};

struct cpuidle_state {
	__s64 exit_latency_ns;
};

struct rq___old {
	struct cfs_rq___old cfs;
};

struct sched_domain_shared {
	int has_idle_cores;
	int nr_idle_scan;
};

struct sched_group_capacity {
	unsigned long capacity;
	unsigned long max_capacity;
};

struct sched_group {
	struct sched_group_capacity *sgc;
};

struct sched_domain {
	struct sched_domain *parent;
	struct sched_group *groups; /* that of the domain's own CPU */
	struct sched_domain_shared *shared;
};

struct rq {
	unsigned int nr_running;
	unsigned int ttwu_pending;
	unsigned long cpu_capacity;
	struct cfs_rq cfs;
	struct task_struct *curr;
	struct task_struct *idle;
	__u64 idle_stamp;
	struct cpuidle_state *idle_state;
	struct sched_domain *sd;
};

#pragma clang attribute pop

#ifdef NO_MAY_GOTO
/* The machine's size, which the loader sets, bounds every loop. */
#define can_loop true
#else
/*
 * can_loop ends a loop that runs away, and shows the verifier that the loop ends. A loop that the
 * machine's size bounds never reaches this end.
 */
#define can_loop                                                       \
	({                                                             \
		__label__ spent, done;                                 \
		bool more = true;                                      \
		asm volatile goto("may_goto %l[spent]" : : : : spent); \
		goto done;                                             \
spent:                                                                 \
		more = false;                                          \
done:;                                                                 \
		more;                                                  \
	})
#endif

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

extern const struct rq runqueues __ksym;
extern struct sched_domain *sd_asym_cpucapacity __ksym;
extern struct sched_domain_shared *sd_llc_shared __ksym;
/* Since 7.2 this structure holds the idle-core hint. */
extern struct sched_domain_shared *sd_balance_shared __ksym __weak;
extern const int __preempt_count __ksym __weak;

#endif
