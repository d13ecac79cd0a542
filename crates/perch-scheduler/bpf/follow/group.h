/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Task groups: cgroups with a cpu controller, whose cpu.weight counts over the
 * whole hierarchy, and where each has something queued, for the mechanism that
 * steers to empty queues (policy/include/perch/steer.h).
 *
 * A CPU has one queue for all tasks, not one a group, so the hierarchy is
 * flattened: what a task is worth beside any other is its weight, divided by
 * what runs beside it in its group, times the group's weight, and so on up to
 * the root. It is worth that on every CPU: a group that runs on eight gets an
 * eighth of its weight on each.
 *
 * A group's `load` is the weights of its runnable tasks, and of its groups in
 * which anything is runnable. Each of the latter stands there with what it
 * `counted`, which settle() exchanges at once, so that nothing is added twice
 * or forgotten, whoever comes or goes on other CPUs in the meantime and
 * whatever is written to cpu.weight. While two exchange, a load may be wrong
 * for an instant, below 0 even, but never their sum.
 *
 * A group has a slot of a table of fixed size from its creation until it is
 * deleted and its last task is gone: whoever may still come back to it holds a
 * reference. A group that finds the table full is part of the one above.
 */
#ifndef PERCH_GROUP_H
#define PERCH_GROUP_H

#include "follow/home.h"

/* What a cgroup's slot is, by cgroup. */
struct perch_cgroup_slot {
	__u32 slot; /* 0: none, it counts as the root; not its own: it found no room */
	__u32 own;
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct perch_cgroup_slot);
} cgroups SEC(".maps");

/* Where a task is counted. */
struct perch_group_task {
	__u32 slot;  /* its group's; 0: none */
	__u32 added; /* its weight in the group's load; 0: it is not runnable */
	__u32 cpu;   /* on whose queue, or running where */
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct perch_group_task);
} group_tasks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK);
	__uint(max_entries, 1); /* the loader knows how many */
	__uint(value_size, sizeof(__u32));
} free_groups SEC(".maps");

/* Groups in the table: while there are none, nobody is asked for his. */
static perch_u32 nr_live;

static inline struct perch_group_task *group_task(struct task_struct *p)
{
	return bpf_task_storage_get(&group_tasks, p, 0, 0);
}

/* Slots count from 1. */
static inline struct perch_group_slot __arena *group_at(perch_u32 slot)
{
	return &config()->groups[slot - 1];
}

static inline struct perch_group_cell __arena *cell_at(perch_u32 slot, perch_u32 cpu)
{
	return &group_at(slot)->cells[cpu];
}

static inline void count_group(enum perch_event event)
{
	__sync_fetch_and_add(&cpu_state(bpf_get_smp_processor_id())->events[event], 1);
}

/* So much more is runnable in the group: whether it had nothing before, or has nothing now. */
static inline bool add_load(perch_u32 slot, perch_s64 weight)
{
	perch_s64 was = __sync_fetch_and_add(&group_at(slot)->load, weight);

	return (was > 0) != (was + weight > 0);
}

/*
 * Has the group stand in its parent's load with its weight while anything in it
 * is runnable, and with nothing else. Whoever changes that, or the weight,
 * calls this afterwards. Two that do so at once may exchange in either order:
 * each looks again at what it went by. Whether the same changed for the parent.
 */
static __attribute__((noinline)) bool settle_one(perch_u32 slot)
{
	struct perch_group_slot __arena *g = group_at(slot);
	bool changed = false;

	while (PERCH_MORE) {
		perch_u32 want = g->load > 0 ? g->weight : 0;
		perch_u32 was = __sync_lock_test_and_set(&g->counted, want);

		if (was != want && g->parent)
			changed |= add_load(g->parent, (perch_s64)want - was);
		if (want == (g->load > 0 ? g->weight : 0))
			break;
	}
	return changed;
}

/* Likewise what is above, as far as it changes. */
static __attribute__((noinline)) int settle(perch_u32 slot)
{
	while (slot && settle_one(slot) && PERCH_MORE)
		slot = group_at(slot)->parent;
	return 0;
}

/* The group's bit for the CPU says whether it has somebody there: as settle(), looked at again. */
static __attribute__((noinline)) int mark_queued(perch_u32 slot, perch_u32 cpu)
{
	perch_u64 PERCH_AS *word = &group_at(slot)->queued[cpu / 64];
	struct perch_group_cell __arena *cell = cell_at(slot, cpu);
	perch_u64 bit = 1ull << (cpu % 64);
	perch_u32 nr = cell->nr, seen;

	while (PERCH_MORE) {
		if (nr)
			__sync_fetch_and_or(word, bit);
		else
			__sync_fetch_and_and(word, ~bit);
		/* A mere load might come before what was just written. */
		seen = __sync_val_compare_and_swap(&cell->nr, nr, nr);
		if (!nr == !seen)
			break;
		nr = seen;
	}
	return 0;
}

/* One more or less of the group's tasks is queued or runs on the CPU. */
static inline void add_to_cell(perch_u32 slot, perch_u32 cpu, perch_s32 nr)
{
	perch_u32 was = __sync_fetch_and_add(&cell_at(slot, cpu)->nr, nr);

	if (!was || was + nr == 0)
		mark_queued(slot, cpu);
}

/* The task is on this CPU now, and was counted on another. */
static inline void move_in_group(struct perch_group_task *t, perch_u32 cpu)
{
	if (!t->added || t->cpu == cpu)
		return;
	add_to_cell(t->slot, cpu, 1);
	add_to_cell(t->slot, t->cpu, -1);
	t->cpu = cpu;
}

static inline void enter_group(struct perch_group_task *t, const struct task_struct *p,
			       perch_u32 cpu)
{
	if (!t->slot || t->added)
		return;
	t->added = p->scx.weight;
	t->cpu = cpu;
	add_to_cell(t->slot, cpu, 1);
	if (add_load(t->slot, t->added))
		settle(t->slot);
}

static inline void leave_group(struct perch_group_task *t)
{
	if (!t->added)
		return;
	add_to_cell(t->slot, t->cpu, -1);
	if (add_load(t->slot, -(perch_s64)t->added))
		settle(t->slot);
	t->added = 0;
}

/*
 * What a task of the group with this weight is worth beside one of the root
 * group, 1024ths of sched_ext's weight. Not less than an eighth of the least
 * weight there is: virtual time that runs 800 times as fast as the clock takes
 * four months until it is of no use.
 */
#define PERCH_LEAST_WORTH 128

static __attribute__((noinline)) perch_u64 worth(perch_u32 slot, perch_u32 weight)
{
	perch_u64 part = (perch_u64)weight << 10;

	while (slot && PERCH_MORE) {
		struct perch_group_slot __arena *g = group_at(slot);
		perch_s64 load = g->load;

		part = part * g->weight / (load > weight ? load : weight);
		/* What stands in the parent's load is the group. */
		weight = g->weight;
		slot = g->parent;
	}
	return part < PERCH_LEAST_WORTH ? PERCH_LEAST_WORTH : part;
}

/* One reference less: with the last, the slot is free. */
static __attribute__((noinline)) int put_group(perch_u32 slot)
{
	while (slot && PERCH_MORE) {
		struct perch_group_slot __arena *g = group_at(slot);
		perch_u32 parent = g->parent;
		__u32 freed = slot;

		if (__sync_fetch_and_add(&g->refs, -1) != 1)
			break;
		bpf_map_push_elem(&free_groups, &freed, 0);
		__sync_fetch_and_add(&nr_live, -1);
		count_group(PERCH_EV_GROUPS_ENDED);
		slot = parent;
	}
	return 0;
}

static inline void get_group(perch_u32 slot)
{
	if (slot)
		__sync_fetch_and_add(&group_at(slot)->refs, 1);
}

/* The slot of a cgroup that is alive, 0 for the root's. */
static inline perch_u32 slot_of(struct cgroup *cgrp)
{
	struct perch_cgroup_slot *held = bpf_cgrp_storage_get(&cgroups, cgrp, 0, 0);

	return held ? held->slot : 0;
}

/* The slot of the cgroup above. */
static inline perch_u32 slot_above(struct cgroup *cgrp)
{
	struct cgroup *above;
	perch_u32 slot;

	if (cgrp->level < 1)
		return 0;
	above = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	if (!above)
		return 0;
	slot = slot_of(above);
	bpf_cgroup_release(above);
	return slot;
}

/* A cgroup is born, or was there when the scheduler was loaded; its parents came before it. */
static inline int init_group(struct cgroup *cgrp, perch_u32 weight)
{
	struct perch_cgroup_slot *held =
		bpf_cgrp_storage_get(&cgroups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct perch_group_slot __arena *g;
	perch_u32 cpu, parent, words;
	__u32 slot;

	if (!held)
		return -12; /* -ENOMEM */
	held->slot = held->own = 0;
	/* The root's tasks compete as they are. */
	if (cgrp->level < 1)
		return 0;
	parent = slot_above(cgrp);
	if (bpf_map_pop_elem(&free_groups, &slot)) {
		held->slot = parent;
		get_group(parent);
		count_group(PERCH_EV_GROUPS_UNTRACKED);
		return 0;
	}
	g = group_at(slot);
	for (cpu = PERCH_ZERO; cpu < config()->nr_possible && can_loop; cpu++) {
		g->cells[cpu].vtime = 0;
		g->cells[cpu].nr = 0;
	}
	words = (config()->nr_possible + 63) / 64;
	for (cpu = PERCH_ZERO; cpu < words && can_loop; cpu++)
		g->queued[cpu] = 0;
	g->load = 0;
	g->counted = 0;
	g->weight = weight;
	g->parent = parent;
	g->refs = 1;
	get_group(parent);
	held->slot = slot;
	held->own = 1;
	__sync_fetch_and_add(&nr_live, 1);
	count_group(PERCH_EV_GROUPS_TRACKED);
	return 0;
}

static inline void exit_group(struct cgroup *cgrp)
{
	perch_u32 slot = slot_of(cgrp);

	if (slot)
		put_group(slot);
}

static inline void weigh_group(struct cgroup *cgrp, perch_u32 weight)
{
	struct perch_cgroup_slot *held = bpf_cgrp_storage_get(&cgroups, cgrp, 0, 0);

	if (!held || !held->own)
		return;
	group_at(held->slot)->weight = weight;
	settle(held->slot);
}

/* Before any cgroup comes. */
static inline int free_all_groups(void)
{
	__u32 slot;
	int err;

	for (slot = config()->nr_groups; slot && can_loop; slot--) {
		err = bpf_map_push_elem(&free_groups, &slot, 0);
		if (err)
			return err;
	}
	return 0;
}

/* A task is in the cgroup from now on. */
static inline void join_group(struct perch_group_task *t, struct cgroup *cgrp)
{
	t->slot = slot_of(cgrp);
	get_group(t->slot);
}

/* And no longer. */
static inline void part_from_group(struct perch_group_task *t)
{
	leave_group(t);
	if (t->slot)
		put_group(t->slot);
	t->slot = 0;
}

/* The running task's group has come to this virtual time here. */
static inline void charge_group(const struct perch_cpu __arena *c, perch_u32 cpu)
{
	struct perch_group_cell __arena *cell = cell_at(c->group, cpu);
	perch_u64 vtime = c->curr_vtime - c->jumped;

	if ((perch_s64)(vtime - cell->vtime) > 0)
		cell->vtime = vtime;
}

/*
 * Where a wakee of a group stands that has nobody else on the CPU: as if the
 * group had slept there since it ran there last. It is owed at most lag_ns,
 * like any sleeper, and what it receives is charged to the group's own virtual
 * time on this CPU: who wakes often, or in turns with others of the group, is
 * owed no more than who wakes once. ~0: it stands where it would anyway.
 */
static inline perch_u64 credited(const struct perch_group_task *t, perch_u32 cpu)
{
	const struct perch_cpu __arena *c = cpu_state(cpu);
	const struct perch_group_cell __arena *cell;
	perch_u64 earliest = c->clock - config()->lag_ns, vtime;

	if (!t->added || cpu != t->cpu)
		return ~0ull;
	cell = cell_at(t->slot, cpu);
	if (cell->nr > 1)
		return ~0ull;
	vtime = cell->vtime + c->jumped;
	return (perch_s64)(vtime - earliest) > 0 ? vtime : earliest;
}

#endif
