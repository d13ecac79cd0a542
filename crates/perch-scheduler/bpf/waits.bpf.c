// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How long tasks wait for a CPU and between which CPUs they move, under
 * whatever scheduler the kernel has: the tracepoints are the same for all of
 * them. Only the descendants of the loader's process count (src/waits.rs).
 *
 * Each CPU counts for itself, in memory of its own: where lines cost time, one
 * moves for the counting, the task's record, from its waker to its CPU.
 */
#include "base/kernel.h"
#include "histogram.h"

#define MAX_CPUS 1024

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

/* The process whose descendants count. */
const volatile __u32 root SEC(".rodata.root") = 0;

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

/* The record of a task that counts; null for any other. */
static inline struct waits_task *record(struct task_struct *p)
{
	return bpf_task_storage_get(&tasks, p, 0, 0);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(waits_fork, struct task_struct *parent, struct task_struct *child)
{
	struct waits_task *made;

	if (parent->tgid != root && !record(parent))
		return 0;
	/* Here and not at a switch: memory cannot be had under a queue's lock. */
	made = bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!made)
		return 0;
	made->cpu = bpf_get_smp_processor_id();
	made->state = SLEEPS;
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

/* Counts the switch to a task on this CPU. The queue's lock is held and interrupts are off. */
static inline void begin(struct waits_task *task, __u64 now)
{
	__u32 cpu = bpf_get_smp_processor_id(), from = task->cpu;
	struct waits_cpu *here = bpf_map_lookup_elem(&cpus, &cpu);
	enum move move;

	if (!here || from >= MAX_CPUS)
		return;
	switch (task->state) {
	case WAITS_WOKEN:
		count(here, AFTER_WAKEUP, now - task->since);
		count(here, AFTER_WAKING, now - task->waking);
		move = WOKEN;
		break;
	case WAITS_PREEMPTED:
		count(here, AFTER_PREEMPTION, now - task->since);
		move = PREEMPTED;
		break;
	case WAITS_FORKED:
		move = FORKED;
		break;
	default:
		return;
	}
	here->moves[move][from]++;
	task->state = RUNS;
	task->cpu = cpu;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(waits_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct waits_task *task = record(prev);

	if (task) {
		task->since = bpf_ktime_get_ns();
		task->state = preempt || !prev_state ? WAITS_PREEMPTED : SLEEPS;
	}
	task = record(next);
	if (task)
		begin(task, bpf_ktime_get_ns());
	return 0;
}

char _license[] SEC("license") = "GPL";
