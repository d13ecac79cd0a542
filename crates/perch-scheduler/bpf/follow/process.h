/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes that the cache mechanism follows: a table of a fixed size in
 * the arena, found by the process's number (tgid).
 *
 * A process takes a slot with its first task and gives it back with its last:
 * init_task and exit_task count them. A task's tgid never changes, whichever
 * thread of its process exits first or execs, so the count of tasks is all that
 * matters. A process that is born while the table is full stays without a slot
 * for life, and so do its threads: if they were let in later, some would be
 * counted and others not.
 *
 * A wake-up does not look into the hash. A task's memory names the slot of its
 * process, and the slot names its process. If the slot has gone to another
 * process, the task has none.
 */
#ifndef PERCH_PROCESS_H
#define PERCH_PROCESS_H

#include "base/clock.h"

/* Slots by tgid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1); /* the loader knows how many */
	__type(key, __u32);
	__type(value, __u32);
} processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1); /* likewise */
	__uint(value_size, sizeof(__u32));
} free_slots SEC(".maps");

/*
 * A task that was there before the scheduler was loaded found no room: the
 * table then takes no other such task.
 */
static bool full_at_load;

/*
 * Births and deaths happen outside the scheduler's own callbacks: other code on
 * this CPU may count at the same time.
 */
static inline void count_process(enum perch_event event)
{
	__sync_fetch_and_add(&cpu_state(bpf_get_smp_processor_id())->events[event], 1);
}

static inline struct perch_slot __arena *slot_at(perch_u32 slot)
{
	return &config()->slots[slot];
}

static inline bool is_kernel_s(const struct task_struct *p)
{
	return p->flags & PF_KTHREAD;
}

/* The slot of the task's process plus 1; 0: the process has none. */
static __attribute__((noinline)) perch_u32 find_slot(const struct task_struct *p)
{
	__u32 tgid = p->tgid, *slot;

	if (is_kernel_s(p))
		return 0;
	slot = bpf_map_lookup_elem(&processes, &tgid);
	return slot ? *slot + 1 : 0;
}

/* The slot that a task's memory names, if that still belongs to the task's process; else 0. */
static inline perch_u32 same_slot(perch_u32 slot, const struct task_struct *p)
{
	return slot && slot_at(slot - 1)->tgid == (perch_u32)p->tgid ? slot : 0;
}

static inline struct perch_process __arena *process_at(perch_u32 slot)
{
	return slot ? &slot_at(slot - 1)->process : 0;
}

/* Counts one more task of a process. False: the process's last task is just leaving. */
static inline bool one_more(struct perch_slot __arena *s)
{
	perch_u32 tasks = s->process.nr_threads;

	while (tasks && can_loop) {
		perch_u32 seen =
			__sync_val_compare_and_swap(&s->process.nr_threads, tasks, tasks + 1);

		if (seen == tasks)
			return true;
		tasks = seen;
	}
	return false;
}

/* Takes a slot for a process, whose first task this is; false: no slot is free. */
static inline bool take_slot(__u32 tgid)
{
	struct perch_slot __arena *s;
	perch_u32 cpu, llc;
	__u32 slot;

	if (bpf_map_pop_elem(&free_slots, &slot))
		return false;
	s = slot_at(slot);
	for (cpu = PERCH_ZERO; cpu < config()->topology.nr_cpus && can_loop; cpu++)
		s->process.occupancy[cpu].runtime_ns = 0;
	for (llc = PERCH_ZERO; llc < config()->topology.nr_llcs && can_loop; llc++)
		s->process.seats[llc].preferred = 0;
	perch_cache_forget(&s->process);
	s->process.running_avg = 0;
	s->process.nr_running = 0;
	s->process.nr_threads = 1;
	s->tgid = tgid;
	if (!bpf_map_update_elem(&processes, &tgid, &slot, BPF_NOEXIST))
		return true;
	s->tgid = 0;
	bpf_map_push_elem(&free_slots, &slot, 0);
	return false;
}

/* A task is born, or was there when the scheduler was loaded. */
static inline void join_process(const struct task_struct *p, bool fork)
{
	__u32 tgid = p->tgid, *slot;

	if (is_kernel_s(p))
		return;
	slot = bpf_map_lookup_elem(&processes, &tgid);
	if (slot && one_more(slot_at(*slot)))
		return;
	if (fork && (__u32)p->pid != tgid)
		return;
	if ((fork || !full_at_load) && take_slot(tgid)) {
		count_process(PERCH_EV_PROCESSES_TRACKED);
		return;
	}
	if (!fork)
		full_at_load = true;
	if ((__u32)p->pid == tgid)
		count_process(PERCH_EV_PROCESSES_UNTRACKED);
}

/* A task is gone, or was not born after all. */
static inline void leave_process(const struct task_struct *p)
{
	__u32 tgid = p->tgid, *found, slot;

	if (is_kernel_s(p))
		return;
	found = bpf_map_lookup_elem(&processes, &tgid);
	if (!found)
		return;
	slot = *found;
	if (__sync_fetch_and_add(&slot_at(slot)->process.nr_threads, -1) != 1)
		return;
	slot_at(slot)->tgid = 0;
	bpf_map_delete_elem(&processes, &tgid);
	bpf_map_push_elem(&free_slots, &slot, 0);
	count_process(PERCH_EV_PROCESSES_ENDED);
}

/* Fills the stack of free slots, before the first task joins. */
static inline int free_all_slots(void)
{
	__u32 slot;
	int err;

	for (slot = 0; slot < config()->nr_slots && can_loop; slot++) {
		err = bpf_map_push_elem(&free_slots, &slot, 0);
		if (err)
			return err;
	}
	return 0;
}

#endif
