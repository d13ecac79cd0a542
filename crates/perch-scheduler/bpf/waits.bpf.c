// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long tasks wait for a CPU and between which CPUs they move, under
 * whatever scheduler the kernel has: the tracepoints are the same for all of
 * them. The loader chooses the tasks that count (src/waits.rs): the descendants
 * of its own process, or all tasks of user space but itself and its
 * descendants, or those of the latter that are in some cgroups.
 *
 * A task that may count has a record. Memory cannot be had under a queue's
 * lock, so a new task gets its record when it is forked, and a task that was
 * there before gets it from an iterator that the loader runs once. Cgroups are
 * looked up when a wait ends: a task that moves counts from then on where it is.
 *
 * Each CPU counts for itself, in memory of its own: where lines cost time, one
 * moves for the counting, the task's record, from its waker to its CPU.
 */
#include "base/kernel.h"
#include "histogram.h"

#define MAX_CPUS 1024
#define MAX_GROUPS 16

/* What a wait begins with. */
enum wait {
	AFTER_WAKEUP,	  /* the task enters a queue */
	AFTER_WAKING,	  /* the waker's call, before a CPU is chosen and told */
	AFTER_PREEMPTION, /* the task leaves a CPU and could go on running */
	NR_WAITS,
};

/* Why a task runs where it did not run last. */
enum move {
	WOKEN,
	PREEMPTED,
	FORKED, /* from the parent's CPU */
	NR_MOVES,
};

struct waits_cpu {
	struct time_bucket waits[NR_WAITS][NR_BUCKETS];
	__u64 moves[NR_MOVES][MAX_CPUS]; /* to this CPU, by the CPU before */
};

enum state {
	RUNS,
	SLEEPS,
	WAITS_WOKEN,
	WAITS_PREEMPTED,
	WAITS_FORKED,
};

struct waits_task {
	__u64 waking; /* when somebody last began to wake it */
	__u64 since;  /* when it entered the state */
	__u32 state;
	__u32 cpu; /* where it last ran */
};

/* A cgroup: its kernfs_node's id, and its distance from the root. */
struct waits_group {
	__u64 id;
	__u64 level;
};

/* The tasks that count. */
struct waits_scope {
	__u32 root;	 /* the loader's process */
	__u32 others;	 /* 1: the tasks that do not descend from it; 0: those that do */
	__u32 nr_groups; /* 0: in any cgroup */
	__u32 pad;
	struct waits_group groups[MAX_GROUPS];
};

const volatile struct waits_scope scope SEC(".rodata.scope") = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* the loader sets one for each CPU */
	__type(key, __u32);
	__type(value, struct waits_cpu);
} cpus SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct waits_task);
} tasks SEC(".maps");

struct bpf_iter__task {
	struct task_struct *task;
} __attribute__((preserve_access_index));

/* The record of a task that may count; null for any other. */
static inline struct waits_task *record(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(waits_fork, struct task_struct *parent, struct task_struct *child)
{
	bool may_count = record(parent);
	struct waits_task *made;

	/* A kernel thread's child that is none is a program that the kernel starts. */
	if (scope.others)
		may_count = (may_count || parent->flags & PF_KTHREAD) &&
			    !(child->flags & PF_KTHREAD);
	else if (parent->tgid == scope.root)
		may_count = true;
	if (!may_count)
		return 0;
	made = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!made)
		return 0;
	made->cpu = bpf_get_smp_processor_id();
	made->state = SLEEPS;
	return 0;
}

/*
 * Gives a record to a task that was there before. Whether it runs, waits or
 * sleeps is not known, so it counts from the next time that it leaves a CPU.
 */
SEC("iter/task")
int waits_begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || task->flags & PF_KTHREAD || task->tgid == scope.root)
		return 0;
	bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(waits_wakeup_new, struct task_struct *p)
{
	struct waits_task *task = record(p);

	if (!task)
		return 0;
	task->since = bpf_ktime_get_ns();
	task->state = WAITS_FORKED;
	return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(waits_waking, struct task_struct *p)
{
	struct waits_task *task = record(p);

	/* It may still be on its way to sleep on another CPU, so its state says nothing. */
	if (task)
		task->waking = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(waits_wakeup, struct task_struct *p)
{
	struct waits_task *task = record(p);

	/* One that was about to sleep and has not left its CPU or its queue waits for nothing new. */
	if (!task || task->state != SLEEPS)
		return 0;
	task->since = bpf_ktime_get_ns();
	task->state = WAITS_WOKEN;
	return 0;
}

static inline void count(struct waits_cpu *here, enum wait wait, __u64 ns)
{
	struct time_bucket *bucket = &here->waits[wait][bucket_of(ns)];

	bucket->count++;
	bucket->ns += ns;
}

/* True if the task is in one of the cgroups that count, or below one. */
static inline bool in_scope(struct task_struct *p)
{
	const struct cgroup *own = p->cgroups->dfl_cgrp;
	__u64 ancestors = (__u64)own + bpf_core_field_offset(struct cgroup, ancestors);
	__u32 i;

	if (!scope.nr_groups)
		return true;
	for (i = 0; i < MAX_GROUPS && i < scope.nr_groups; i++) {
		__u64 level = scope.groups[i].level;
		const struct cgroup *above;

		if (own->level < (int)level)
			continue;
		if (bpf_probe_read_kernel(&above, sizeof(above),
					  (void *)(ancestors + level * sizeof(above))))
			continue;
		if (BPF_CORE_READ(above, kn, id) == scope.groups[i].id)
			return true;
	}
	return false;
}

/* Counts a task's switch to this CPU. The queue's lock is held and interrupts are off. */
static inline void begin(struct task_struct *p, struct waits_task *task, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id(), from = task->cpu;
	struct waits_cpu *here = bpf_map_lookup_elem(&cpus, &cpu);
	enum state was = task->state;
	enum move move;

	task->state = RUNS;
	task->cpu = cpu;
	if (!here || from >= MAX_CPUS || was == RUNS || was == SLEEPS || !in_scope(p))
		return;
	switch (was) {
	case WAITS_WOKEN:
		count(here, AFTER_WAKEUP, now - task->since);
		count(here, AFTER_WAKING, now - task->waking);
		move = WOKEN;
		break;
	case WAITS_PREEMPTED:
		count(here, AFTER_PREEMPTION, now - task->since);
		move = PREEMPTED;
		break;
	default:
		move = FORKED;
		break;
	}
	here->moves[move][from]++;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(waits_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct waits_task *task = record(prev);

	if (task) {
		task->since = bpf_ktime_get_ns();
		task->state = preempt || !prev_state ? WAITS_PREEMPTED : SLEEPS;
		task->cpu = bpf_get_smp_processor_id();
	}
	task = record(next);
	if (task)
		begin(next, task, bpf_ktime_get_ns());
	return 0;
}

char _license[] SEC("license") = "GPL";
