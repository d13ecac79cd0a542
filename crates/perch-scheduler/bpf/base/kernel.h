/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's structures that the program reads, and the functions of
 * sched_ext that it calls. Only the fields in use are declared: the loader
 * takes their offsets from the running kernel (CO-RE), so the build needs no
 * header of a particular kernel. A function that not every kernel from 6.16 on
 * has is weak; ask bpf_ksym_exists() before calling it, never a version.
 */
#ifndef PERCH_KERNEL_H
#define PERCH_KERNEL_H

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

typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_STACK = 23,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_CGRP_STORAGE = 32,
	BPF_MAP_TYPE_ARENA = 33,
};

#define BPF_NOEXIST 1
#define BPF_F_NO_PREALLOC 1
#define BPF_F_MMAPABLE 1024
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define CLOCK_MONOTONIC 1

struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};

struct sched_avg {
	unsigned long util_avg;
};

struct sched_entity {
	__u64 sum_exec_runtime;
	struct sched_avg avg;
};

/* The order of these bits differs between kernels; CO-RE finds them. */
struct uclamp_se {
	unsigned int value : 11;
};

struct sched_ext_entity {
	__u32 flags;
	__u32 weight;
	__u64 slice;
	__u64 dsq_vtime;
	unsigned long runnable_at; /* jiffies when it woke or was put back */
};

/* The kernel's record of a file of cgroupfs: here of the folder that a cgroup is. */
struct kernfs_node {
	const char *name;
	__u64 id; /* no other folder has had it since boot */
};

/* A cgroup's part in one controller. */
struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct autogroup;

/* Its part in the cpu controller, or an autogroup, which is no cgroup. */
struct task_group {
	struct cgroup_subsys_state css;
	int idle; /* cpu.idle */
	/* cpu.uclamp.min and max, within those of the groups above; CONFIG_UCLAMP_TASK_GROUP */
	struct uclamp_se uclamp[2];
	struct task_group *parent;   /* null: the root */
	struct autogroup *autogroup; /* CONFIG_SCHED_AUTOGROUP */
};

enum cgroup_subsys_id {
	cpu_cgrp_id = 0,
};

struct cgroup {
	struct cgroup_subsys_state *subsys[1]; /* by enum cgroup_subsys_id */
	struct kernfs_node *kn;
	int level; /* 0: the root */
	struct cgroup *ancestors[];
};

typedef struct {
	__u32 val;
} kuid_t;

struct cred {
	kuid_t uid, euid;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	unsigned int flags;
	unsigned int __state;
	unsigned int policy;
	int static_prio; /* 120 at nice 0 */
	int nr_cpus_allowed;
	const struct cpumask *cpus_ptr;
	struct sched_entity se;
	struct sched_ext_entity scx;
	struct uclamp_se uclamp_req[2]; /* min, max; CONFIG_UCLAMP_TASK */
	struct task_group *sched_task_group;
	int pid;
	int tgid;
	const struct cred *real_cred; /* what others may do to it, and not a driver's for a moment */
	struct css_set *cgroups;
	int rcu_read_lock_nesting; /* CONFIG_PREEMPT_RCU */
	char comm[16];
};

struct cpuidle_state {
	__s64 exit_latency_ns;
};

struct balance_callback;

struct rq {
	unsigned int nr_running;
	int online;
	struct balance_callback *balance_callback;
	struct task_struct *curr;
	struct task_struct *idle;
	struct cpuidle_state *idle_state;
};

struct scx_cpu_release_args;
struct scx_exit_task_args;

struct scx_init_task_args {
	bool fork;	       /* born now, and not there when the scheduler was loaded */
	struct cgroup *cgroup; /* CONFIG_EXT_GROUP_SCHED */
};

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	__s64 exit_code;
	const char *reason;
	char *msg;
};

struct scx_cgroup_init_args {
	__u32 weight;
	__u64 bw_period_us; /* cpu.max; 6.17 */
	__u64 bw_quota_us;
	__u64 bw_burst_us;
};

/* A task put straight on a CPU that cannot run it at once comes back to enqueue (7.1). */
enum scx_enq_flags {
	SCX_ENQ_IMMED = 1ull << 33,
};

#pragma clang attribute pop

/* Matched with the kernel's by the members' names, not their places. */
struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags);
	void (*enqueue)(struct task_struct *p, __u64 enq_flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, __u64 enq_flags);
	void (*quiescent)(struct task_struct *p, __u64 deq_flags);
	void (*tick)(struct task_struct *p);
	void (*update_idle)(__s32 cpu, bool idle);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	__s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*enable)(struct task_struct *p);
	__s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *cgrp);
	void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
	void (*cgroup_set_weight)(struct cgroup *cgrp, __u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *cgrp, __u64 period_us, __u64 quota_us,
				     __u64 burst_us);
	void (*cgroup_set_idle)(struct cgroup *cgrp, bool idle);
	void (*cpu_release)(__s32 cpu, struct scx_cpu_release_args *args);
	void (*cpu_online)(__s32 cpu);
	void (*cpu_offline)(__s32 cpu);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	__u64 hotplug_seq;
	char name[128];
};

/* Numbers of the kernel's interface. */
#define PF_KTHREAD 0x00200000u
#define TASK_UNINTERRUPTIBLE 2u
#define SCHED_FIFO 1u
#define SCHED_RR 2u
#define SCHED_BATCH 3u
#define SCHED_IDLE 5u
#define SCHED_DEADLINE 6u
#define DEFAULT_PRIO 120

#define SCX_OPS_ALLOW_QUEUED_WAKEUP (1ull << 5)
#define SCX_DSQ_LOCAL ((1ull << 63) | 2)
#define SCX_DSQ_LOCAL_ON ((1ull << 63) | (1ull << 62))
#define SCX_ENQ_WAKEUP 1ull
#define SCX_ENQ_PREEMPT (1ull << 32)
#define SCX_ENQ_LAST (1ull << 41)
#define SCX_WAKE_FORK 4ull
#define SCX_WAKE_TTWU 8ull
#define SCX_WAKE_SYNC 16ull
#define SCX_KICK_IDLE 1ull
#define SCX_KICK_PREEMPT 2ull
#define SCX_TASK_QUEUED 1u
#define SCX_ECODE_RSN_HOTPLUG (1ull << 32)
#define SCX_ECODE_ACT_RESTART (1ull << 48)
#define WF_CURRENT_CPU 0x40ull

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* A native compiler has both already, and needs neither (crates/perch-scx/native). */
#ifndef __arena
#define __arena __attribute__((address_space(1)))
#endif

#ifndef can_loop
/*
 * Ends a loop that runs away, and shows the verifier that it ends. One that
 * the machine's size bounds never gets there.
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

struct bpf_iter_scx_dsq {
	__u64 opaque[6];
} __attribute__((aligned(8)));

struct scx_bpf_dsq_insert_vtime_args {
	__u64 dsq_id;
	__u64 slice;
	__u64 vtime;
	__u64 enq_flags;
};

extern const struct rq runqueues __ksym;

struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;
void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;
void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym;
__s32 scx_bpf_create_dsq(__u64 dsq_id, __s32 node) __ksym;
void scx_bpf_destroy_dsq(__u64 dsq_id) __ksym;
__s32 scx_bpf_dsq_nr_queued(__u64 dsq_id) __ksym;
void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
__s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
void scx_bpf_error_bstr(char *fmt, unsigned long long *data, __u32 data_sz) __ksym;
void scx_bpf_exit_bstr(__s64 code, char *fmt, unsigned long long *data, __u32 data_sz) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq_id, __u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it, __u64 vtime) __ksym;
bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq_id,
			    __u64 enq_flags) __ksym;
void scx_bpf_dsq_move_set_slice(struct bpf_iter_scx_dsq *it, __u64 slice) __ksym;
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq_id,
		      __u64 enq_flags) __ksym;
__u64 scx_bpf_now(void) __ksym;
__u32 scx_bpf_reenqueue_local(void) __ksym;

/*
 * Newer forms of kernel functions, and the older forms that they replace.
 * libbpf drops the last ___ of a name and all that follows it, so a name that
 * contains ___ needs another one at its end.
 */
bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, __u64 dsq_id, __u64 slice,
				   __u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert(struct task_struct *p, __u64 dsq_id, __u64 slice,
			__u64 enq_flags) __ksym __weak;
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p,
				struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
void scx_bpf_dsq_insert_vtime(struct task_struct *p, __u64 dsq_id, __u64 slice, __u64 vtime,
			      __u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v2___new(__u64 dsq_id, __u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local(__u64 dsq_id) __ksym __weak;
struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym __weak; /* CONFIG_CGROUP_SCHED */
bool scx_bpf_task_set_slice(struct task_struct *p, __u64 slice) __ksym __weak;
bool scx_bpf_task_set_dsq_vtime(struct task_struct *p, __u64 vtime) __ksym __weak;

static inline void insert(struct task_struct *p, __u64 dsq, __u64 slice, __u64 enq_flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___new))
		scx_bpf_dsq_insert___v2___new(p, dsq, slice, enq_flags);
	else
		scx_bpf_dsq_insert(p, dsq, slice, enq_flags);
}

static inline void insert_vtime(struct task_struct *p, __u64 dsq, __u64 slice, __u64 vtime,
				__u64 enq_flags)
{
	struct scx_bpf_dsq_insert_vtime_args args = {dsq, slice, vtime, enq_flags};

	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime))
		__scx_bpf_dsq_insert_vtime(p, &args);
	else
		scx_bpf_dsq_insert_vtime(p, dsq, slice, vtime, enq_flags);
}

static inline bool move_to_local(__u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___new))
		return scx_bpf_dsq_move_to_local___v2___new(dsq, 0);
	return scx_bpf_dsq_move_to_local(dsq);
}

static inline void set_slice(struct task_struct *p, __u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

static inline void set_vtime(struct task_struct *p, __u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime))
		scx_bpf_task_set_dsq_vtime(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}

#endif
