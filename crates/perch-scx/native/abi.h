/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a scheduler that was compiled natively and the simulated kernel know of
 * each other. src/abi.rs declares the same in Rust; a test compares the two.
 *
 * A scheduler is a shared object. Each simulation loads a copy of its own, so
 * the program's global variables are that simulation's.
 */
#ifndef PERCH_SCX_ABI_H
#define PERCH_SCX_ABI_H

typedef unsigned char scx_u8;
typedef unsigned int scx_u32;
typedef int scx_s32;
typedef unsigned long long scx_u64;

/* A map as its definition declares it; the map's address is its name. */
struct scx_map {
	scx_u32 type; /* enum bpf_map_type */
	scx_u32 max_entries;
	scx_u32 key_size;
	scx_u32 value_size;
};

/* The kernel, as the program's helpers and kfuncs call it. `of` is passed to each function. */
struct scx_kernel {
	void *of;
	void *rqs; /* an array of the program's struct rq, one per CPU */
	scx_u32 nr_cpus;

	scx_u64 (*now)(void *of); /* ns since boot */
	scx_u32 (*this_cpu)(void *of);
	scx_u32 (*random)(void *of);
	void *(*current)(void *of); /* a CPU that idles runs its idle task */
	void (*error)(void *of, const char *message);

	scx_s32 (*task_cpu)(void *of, const void *task);
	void *(*task_cgroup)(void *of, const void *task);
	void *(*cgroup_ancestor)(void *of, void *cgroup, scx_s32 level); /* null: it has none */

	scx_s32 (*create_dsq)(void *of, scx_u64 dsq, scx_s32 node);
	void (*destroy_dsq)(void *of, scx_u64 dsq);
	scx_s32 (*dsq_nr_queued)(void *of, scx_u64 dsq);
	scx_u8 (*dsq_insert)(void *of, void *task, scx_u64 dsq, scx_u64 slice, scx_u64 enq_flags);
	scx_u8 (*dsq_insert_vtime)(void *of, void *task, scx_u64 dsq, scx_u64 slice, scx_u64 vtime,
				   scx_u64 enq_flags);
	scx_u8 (*dsq_move_to_local)(void *of, scx_u64 dsq, scx_u64 enq_flags);
	/* An iterator is six words, which the kernel fills in. */
	scx_s32 (*iter_new)(void *of, scx_u64 *it, scx_u64 dsq, scx_u64 flags);
	void *(*iter_next)(void *of, scx_u64 *it);
	void (*iter_destroy)(void *of, scx_u64 *it);
	void (*move_set_slice)(void *of, scx_u64 *it, scx_u64 slice);
	void (*move_set_vtime)(void *of, scx_u64 *it, scx_u64 vtime);
	scx_u8 (*dsq_move)(void *of, scx_u64 *it, void *task, scx_u64 dsq, scx_u64 enq_flags,
			   scx_u8 by_vtime);
	scx_u32 (*reenqueue_local)(void *of);

	void (*kick_cpu)(void *of, scx_s32 cpu, scx_u64 flags);
	const void *(*idle_mask)(void *of, scx_u8 of_cores);
	scx_u8 (*test_and_clear_cpu_idle)(void *of, scx_s32 cpu);
	scx_s32 (*pick_idle_cpu)(void *of, const void *cpumask, scx_u64 flags);
	scx_s32 (*pick_any_cpu)(void *of, const void *cpumask, scx_u64 flags);
	/* The CPU, negative without an idle one. */
	scx_s32 (*select_cpu)(void *of, const void *task, scx_s32 prev_cpu, scx_u64 wake_flags,
			      const void *cpumask, scx_u64 flags);

	void *(*map_lookup)(void *of, const void *map, const struct scx_map *is, const void *key,
			    scx_s32 cpu); /* cpu: of a per-CPU map, -1: this one */
	scx_s32 (*map_update)(void *of, const void *map, const struct scx_map *is, const void *key,
			      const void *value, scx_u64 flags);
	scx_s32 (*map_delete)(void *of, const void *map, const struct scx_map *is, const void *key);
	scx_s32 (*map_push)(void *of, const void *map, const struct scx_map *is, const void *value);
	scx_s32 (*map_pop)(void *of, const void *map, const struct scx_map *is, void *value);
	/* Storage of a task or a cgroup, which is named by its address. */
	void *(*storage_get)(void *of, const void *map, const struct scx_map *is, const void *owner,
			     const void *first, scx_u64 flags);
	scx_s32 (*storage_delete)(void *of, const void *map, const void *owner);

	scx_s32 (*timer_start)(void *of, void *timer, scx_u64 ns, scx_u64 flags);

	/* What perch tells of its own memory: a CPU reads or writes a line that CPUs share. */
	void (*line)(void *of, const void *at, scx_u8 writes);
	scx_u8 (*claim_lost)(void *of); /* a fault: another CPU was faster */

	/* What other schedulers than perch call: */
	scx_s32 (*timer_cancel)(void *of, void *timer); /* 1: it was started */
	/* Where the value of a map begins that holds this address, and its key of up to 64 bytes. */
	void *(*map_key)(void *of, const void *map, const void *at, void *key);
	void *(*task_of_pid)(void *of, scx_s32 pid);
	void *(*cgroup_of_id)(void *of, scx_u64 id);
	scx_u32 (*nr_nodes)(void *of);
	scx_s32 (*cpu_node)(void *of, scx_s32 cpu);
	scx_u32 (*cpu_capacity)(void *of, scx_s32 cpu); /* 0 to 1024 */
	scx_u32 (*dispatch_slots)(void *of);
	void (*dispatch_cancel)(void *of);
	/* A mask of the program's own is freed when as many have let go of it as hold it. */
	void *(*mask_create)(void *of);
	void (*mask_hold)(void *of, void *mask, scx_s32 more);
	const void *(*mask_of_all)(void *of);
	const void *(*idle_mask_of_node)(void *of, scx_u8 of_cores, scx_s32 node);
	scx_s32 (*pick_idle_cpu_node)(void *of, const void *cpumask, scx_s32 node, scx_u64 flags);
};

/* The callbacks of a struct sched_ext_ops; null: it has none. */
struct scx_callbacks {
	scx_s32 (*select_cpu)(void *task, scx_s32 prev_cpu, scx_u64 wake_flags);
	void (*enqueue)(void *task, scx_u64 enq_flags);
	void (*dequeue)(void *task, scx_u64 deq_flags);
	void (*dispatch)(scx_s32 cpu, void *prev);
	void (*tick)(void *task);
	void (*runnable)(void *task, scx_u64 enq_flags);
	void (*running)(void *task);
	void (*stopping)(void *task, scx_u8 runnable);
	void (*quiescent)(void *task, scx_u64 deq_flags);
	scx_u8 (*yield)(void *from, void *to);
	void (*set_weight)(void *task, scx_u32 weight);
	void (*set_cpumask)(void *task, const void *cpumask);
	void (*update_idle)(scx_s32 cpu, scx_u8 idle);
	void (*cpu_acquire)(scx_s32 cpu, void *args);
	void (*cpu_release)(scx_s32 cpu, void *args);
	scx_s32 (*init_task)(void *task, scx_u8 fork, void *cgroup);
	void (*exit_task)(void *task);
	void (*enable)(void *task);
	void (*disable)(void *task);
	scx_s32 (*cgroup_init)(void *cgroup, scx_u32 weight);
	void (*cgroup_exit)(void *cgroup);
	void (*cgroup_move)(void *task, void *from, void *to);
	void (*cgroup_set_weight)(void *cgroup, scx_u32 weight);
	scx_s32 (*init)(void);
	void (*exit)(scx_s32 kind, scx_u64 code, const char *reason, const char *message);
	scx_u64 flags;
	scx_u32 dispatch_max_batch;
	scx_u32 timeout_ms;
	char name[128];
};

/* Where the program's structures have what the kernel writes; ~0: nowhere. In bytes. */
struct scx_layout {
	scx_u32 task_size, rq_size, cgroup_size, kernfs_node_size, css_set_size;
	/* struct task_struct */
	scx_u32 flags, policy, static_prio, nr_cpus_allowed, cpus_ptr, sum_exec_runtime;
	scx_u32 scx_flags, scx_weight, scx_slice, scx_dsq_vtime, scx_runnable_at;
	scx_u32 pid, tgid, cgroups, comm;
	/* struct rq */
	scx_u32 nr_running, online, curr, idle, idle_state;
	/* struct cpuidle_state */
	scx_u32 idle_state_size, exit_latency_ns;
	/* struct cgroup; `ancestors` is an array of pointers */
	scx_u32 kn, level, ancestors;
	/* struct kernfs_node, struct css_set */
	scx_u32 kn_name, kn_id, dfl_cgrp;
	/* What perch's own structures lack: struct task_struct, and the sizes of others */
	scx_u32 mm, group_leader, real_parent, parent, prio, normal_prio;
	scx_u32 mm_size, cpumask_size;
};

/* What a shared object exports. */
extern const struct scx_layout scx_layout;
/* The first function that is called: the program's kernel from now on. */
void scx_bind(const struct scx_kernel *kernel);
/* Returns 0, or -1 if the program has no ops of this name; null asks for its only ones. */
scx_s32 scx_callbacks(const char *ops, struct scx_callbacks *callbacks);
/* What a task's uclamp is, each 0 to 1024. */
void scx_set_uclamp(void *task, scx_u32 min, scx_u32 max);
/* A timer that was started has expired. */
void scx_timer_expired(void *timer);

#endif
