/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Task groups: cgroups with a cpu controller. This follower weighs a task by
 * cpu.weight over the whole hierarchy, and keeps for each group on which CPUs it
 * has a task.
 *
 * The base has one queue per CPU and none per group, so this follower flattens the
 * hierarchy into one weight a task: the task's own weight, divided by the load of
 * its group, times the group's weight, and likewise at every level up to the
 * root. The flattened weight is the same on every CPU: a group that runs on eight
 * CPUs gets an eighth of its weight on each.
 *
 * A group's `load` is the sum of the weights of its runnable tasks, and of those
 * of its child groups in which a task is runnable. A child's part of that sum is
 * its `counted`. settle() exchanges `counted` atomically and adds the difference
 * to the load, so no part is added twice or forgotten, even if tasks come and go
 * on other CPUs or an administrator writes to cpu.weight at the same time. While
 * two CPUs exchange, one group's load may be wrong for an instant, even below 0;
 * their sum never is.
 *
 * The table of groups has a fixed size. A group has a slot there from its
 * creation until it is deleted and its last task is gone: each task and each
 * child holds a reference. A group that finds the table full has no slot, and its
 * tasks count for the group above, whose cpu.max holds for them; with a cpu.max of
 * its own it ends the load (limit.h).
 */
#ifndef PERCH_GROUP_H
#define PERCH_GROUP_H

#include "base/hooks.h"

/* The slot of a cgroup. */
struct perch_cgroup_slot {
	__u32 slot; /* where its tasks count; 0: the root group */
	__u32 own;  /* 1: the slot is its own; 0: an ancestor's, as the table was full */
};

struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct perch_cgroup_slot);
} cgroups SEC(".maps");

/* The group and the CPU for which a task counts. */
struct perch_group_task {
	__u32 slot;  /* slot of its group; 0: the root group */
	__u32 added; /* its weight in the group's load; 0: it is not runnable */
	__u32 cpu;   /* the CPU on which it runs or is queued */
	/* For cpu.max (follow/limit.h): */
	__u32 held;   /* the CPU on whose run queue it is while it is held, plus 1; 0: it is not */
	__u32 passes; /* it runs once although its group is throttled */
	__u32 free;   /* it stopped where it holds nothing for which others may wait */
	__u32 sleeps; /* it went to sleep when it stopped last */
	__u32 pad;
	__u64 user_regs; /* where its registers of user mode are (follow/user.h); 0: not known yet */
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

/* Groups in the table. While there are none, no task is asked for its group. */
static perch_u32 nr_live;

/* Null if the kernel had no memory to make one. */
static inline struct perch_group_task *group_task(struct task_struct *p)
{
	return bpf_task_storage_get(&group_tasks, p, 0, 0);
}

/* The same, made if the task has none. */
static inline struct perch_group_task *make_group_task(struct task_struct *p)
{
	return bpf_task_storage_get(&group_tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Slots count from 1. */
static inline struct perch_group_slot __arena *group_at(perch_u32 slot)
{
	return &config()->groups[slot - 1];
}

/* The id of the group's queue, in which its tasks wait while cpu.max holds them. */
static inline perch_u64 group_queue(perch_u32 slot)
{
	return (2ull << 32) | slot;
}

static inline struct perch_group_cell __arena *cell_at(perch_u32 slot, perch_u32 cpu)
{
	return &group_at(slot)->cells[cpu];
}

static inline void count_group(enum perch_event event)
{
	__sync_fetch_and_add(&cpu_state(bpf_get_smp_processor_id())->events[event], 1);
}

/* Adds `weight` to the group's load. True: it had no load before, or has none now. */
static inline bool add_load(perch_u32 slot, perch_s64 weight)
{
	perch_s64 was = __sync_fetch_and_add(&group_at(slot)->load, weight);

	return (was > 0) != (was + weight > 0);
}

/* What the group adds to its parent's load: nothing while none of its tasks may run. */
static inline perch_u32 claim_of(const struct perch_group_slot __arena *g)
{
	return g->load > 0 && !g->throttled ? g->weight : 0;
}

/*
 * Counts the group in its parent's load. A CPU that changes the group's load
 * between some and none, its weight, or whether it is throttled calls this
 * afterwards. Two CPUs that do so at once may exchange in either order, so each
 * looks again after its exchange. True: the parent's load changed between some
 * and none.
 */
static __attribute__((noinline)) bool settle_one(perch_u32 slot)
{
	struct perch_group_slot __arena *g = group_at(slot);
	bool changed = false;

	while (PERCH_MORE) {
		perch_u32 want = claim_of(g);
		perch_u32 was = __sync_lock_test_and_set(&g->counted, want);

		if (was != want && g->parent)
			changed |= add_load(g->parent, (perch_s64)want - was);
		if (want == claim_of(g))
			break;
	}
	return changed;
}

/* Counts the group in its parent's load, and each ancestor in its own parent's while that changes. */
static __attribute__((noinline)) int settle(perch_u32 slot)
{
	while (slot && settle_one(slot) && PERCH_MORE)
		slot = group_at(slot)->parent;
	return 0;
}

/*
 * Sets or clears the group's bit for the CPU, which says that it has a task there.
 * As in settle_one(), the number of tasks is read again after the bit is written.
 */
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
		/* The CPU could move a mere load before the write above. */
		seen = __sync_val_compare_and_swap(&cell->nr, nr, nr);
		if (!nr == !seen)
			break;
		nr = seen;
	}
	return 0;
}

/* The group has `nr` (1 or -1) more tasks on the CPU. */
static inline void add_to_cell(perch_u32 slot, perch_u32 cpu, perch_s32 nr)
{
	perch_u32 was = __sync_fetch_and_add(&cell_at(slot, cpu)->nr, nr);

	if (!was || was + nr == 0)
		mark_queued(slot, cpu);
}

/* The task is on this CPU; if it counted on another, it counts here from now on. */
static inline void move_in_group(struct perch_group_task *t, perch_u32 cpu)
{
	if (!t->added || t->cpu == cpu)
		return;
	add_to_cell(t->slot, cpu, 1);
	add_to_cell(t->slot, t->cpu, -1);
	t->cpu = cpu;
}

/* The task becomes runnable. */
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

/* The task is not runnable any more. */
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
 * The flattened weight of a task of the group, in 1024ths of sched_ext's weight:
 * its share beside a task of the root group. The least is an eighth of the least
 * weight that sched_ext knows: virtual time then runs 800 times as fast as the
 * clock, and takes four months to reach numbers that this scheduler mistakes.
 */
#define PERCH_LEAST_WORTH 128

static __attribute__((noinline)) perch_u64 worth(perch_u32 slot, perch_u32 weight)
{
	perch_u64 part = (perch_u64)weight << 10;

	while (slot && PERCH_MORE) {
		struct perch_group_slot __arena *g = group_at(slot);
		perch_s64 load = g->load;

		part = part * g->weight / (load > weight ? load : weight);
		/* In the parent's load, the group stands for the task. */
		weight = g->weight;
		slot = g->parent;
	}
	return part < PERCH_LEAST_WORTH ? PERCH_LEAST_WORTH : part;
}

/* Of SCHED_IDLE's weight, where nice 0 has 1024: less than one of sched_ext's per cents. */
#define PERCH_SCHED_IDLE_WEIGHT 3

/* The flattened weight of a task of the group in `slot`. */
static inline perch_u32 flat_weight(const struct task_struct *p, perch_u32 slot)
{
	perch_u32 flat = worth(slot, p->scx.weight);

	if (p->policy == SCHED_IDLE)
		flat = flat * 100 / 1024 * PERCH_SCHED_IDLE_WEIGHT;
	return flat < PERCH_LEAST_WORTH ? PERCH_LEAST_WORTH : flat;
}

/* Groups with cpu.idle. */
static perch_u32 nr_sched_idle;

/* True if the group, or one above it, has cpu.idle. */
static __attribute__((noinline)) perch_u32 has_idle(perch_u32 slot)
{
	while (slot && PERCH_MORE) {
		if (group_at(slot)->idle)
			return 1;
		slot = group_at(slot)->parent;
	}
	return 0;
}

/*
 * The group in this slot has this cpu.idle from now on. With it the group has the least weight, near
 * that of SCHED_IDLE; when it ends, the default weight, as in the kernel.
 */
static __attribute__((noinline)) int set_idle(perch_u32 slot, perch_u32 idle)
{
	perch_u32 i;

	if (__sync_lock_test_and_set(&group_at(slot)->idle, idle) == idle)
		return 0;
	__sync_fetch_and_add(&nr_sched_idle, idle ? 1 : -1);
	group_at(slot)->weight = idle ? 1 : 100;
	settle(slot);
	for (i = PERCH_ZERO; i < config()->nr_groups && can_loop; i++)
		if (group_at(i + 1)->refs)
			group_at(i + 1)->sched_idle = has_idle(i + 1);
	return 0;
}

/* cpu.idle of the cgroup, which the kernel tells of only when it changes. */
static inline perch_u32 idle_of(struct cgroup *cgrp)
{
	perch_u32 controller = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
	struct cgroup_subsys_state *css = BPF_CORE_READ(cgrp, subsys[controller]);
	struct task_group *group;

	if (!css)
		return 0;
	group = (void *)css - bpf_core_field_offset(struct task_group, css);
	return BPF_CORE_READ(group, idle) > 0;
}

/* Drops a reference to the group. With the last one the slot is free, and its parent loses one. */
static __attribute__((noinline)) int put_group(perch_u32 slot)
{
	while (slot && PERCH_MORE) {
		struct perch_group_slot __arena *g = group_at(slot);
		perch_u32 parent = g->parent;
		__u32 freed = slot;

		if (__sync_fetch_and_add(&g->refs, -1) != 1)
			break;
		scx_bpf_destroy_dsq(group_queue(slot));
		bpf_map_push_elem(&free_groups, &freed, 0);
		set_idle(slot, 0);
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

/* The slot of a cgroup that is alive; 0: the root group. */
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

/* The group in this slot is a new one, of which no wait has been counted. */
static inline void forget_waits(perch_u32 slot)
{
	perch_u32 parts = config()->group_parts, words, i;
	perch_u64 __arena *word = (perch_u64 __arena *)&config()->group_waits[slot * parts];

	words = parts * (sizeof(struct perch_group_waits) / sizeof(*word));
	for (i = PERCH_ZERO; i < words && can_loop; i++)
		word[i] = 0;
}

/*
 * A cgroup is born, or was there when the scheduler was loaded. The kernel names
 * a cgroup after its parents.
 */
static inline int init_group(struct cgroup *cgrp, perch_u32 weight)
{
	struct perch_cgroup_slot *held =
		bpf_cgrp_storage_get(&cgroups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	struct perch_group_slot __arena *g;
	perch_u32 cpu, parent, words;
	__u32 slot;
	int err;

	if (!held)
		return -12; /* -ENOMEM */
	held->slot = held->own = 0;
	/* Tasks of the root group compete by their own weights. */
	if (cgrp->level < 1)
		return 0;
	parent = slot_above(cgrp);
	if (bpf_map_pop_elem(&free_groups, &slot)) {
		held->slot = parent;
		get_group(parent);
		count_group(PERCH_EV_GROUPS_UNTRACKED);
		return 0;
	}
	err = scx_bpf_create_dsq(group_queue(slot), -1);
	if (err) {
		bpf_map_push_elem(&free_groups, &slot, 0);
		return err;
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
	g->idle = 0;
	g->limited = g->throttled = 0;
	g->quota_ns = 0;
	g->id = BPF_CORE_READ(cgrp, kn, id);
	forget_waits(slot);
	g->parent = parent;
	g->refs = 1;
	get_group(parent);
	held->slot = slot;
	held->own = 1;
	g->sched_idle = has_idle(slot);
	if (idle_of(cgrp))
		set_idle(slot, 1);
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

	if (!held || !held->own || group_at(held->slot)->idle)
		return;
	group_at(held->slot)->weight = weight;
	settle(held->slot);
}

/* The administrator wrote to cpu.idle. */
static inline void idle_group(struct cgroup *cgrp, perch_u32 idle)
{
	struct perch_cgroup_slot *held = bpf_cgrp_storage_get(&cgroups, cgrp, 0, 0);

	if (held && held->own)
		set_idle(held->slot, idle);
}

/* Fills the stack of free slots, before the kernel names the first cgroup. */
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

/* The task belongs to the cgroup from now on. */
static inline void join_group(struct perch_group_task *t, struct cgroup *cgrp)
{
	t->slot = slot_of(cgrp);
	get_group(t->slot);
}

/* The task does not belong to its group any longer. */
static inline void part_from_group(struct perch_group_task *t)
{
	leave_group(t);
	if (t->slot)
		put_group(t->slot);
	t->slot = 0;
}

/*
 * The task, which is about to run, was born when the kernel had no memory for its
 * record: makes it now, and returns it if there is memory by now.
 */
static __attribute__((noinline)) struct perch_group_task *record_late(struct task_struct *p,
								      perch_u32 cpu)
{
	struct perch_group_task *t;
	struct cgroup *cgrp;

	if (!bpf_ksym_exists(scx_bpf_task_cgroup))
		return 0;
	t = make_group_task(p);
	if (!t)
		return 0;
	cgrp = scx_bpf_task_cgroup(p);
	if (!cgrp)
		return t;
	join_group(t, cgrp);
	bpf_cgroup_release(cgrp);
	enter_group(t, p, cpu);
	return t;
}

/* The task starts to run on this CPU: notes its group, its flattened weight and if it is limited. */
static __attribute__((noinline)) int weigh(struct task_struct *p, perch_u32 cpu)
{
	struct perch_group_task *t = group_task(p);
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (!t)
		t = record_late(p, cpu);
	c->group = t ? t->slot : 0;
	c->limited = 0;
	if (t && t->slot) {
		move_in_group(t, cpu);
		if (group_at(t->slot)->limited)
			c->limited = t->passes ? PERCH_PASSES : PERCH_LIMITED;
		t->passes = 0;
		/* The band's priorities hold whatever the group's. */
		if (!c->band_prio)
			c->sched_idle |= group_at(t->slot)->sched_idle;
	}
	c->flat = flat_weight(p, c->group);
	return 0;
}

static __attribute__((noinline)) bool in_idle_group(struct task_struct *p)
{
	struct perch_group_task *t = group_task(p);

	return t && t->slot && group_at(t->slot)->sched_idle;
}

static inline bool group_sched_idle(struct task_struct *p)
{
	return nr_sched_idle && in_idle_group(p);
}

static inline int group_init(void)
{
	return free_all_groups();
}

static inline void group_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	struct perch_group_task *t;
	struct cgroup *cgrp;

	if (!bpf_core_field_exists(args->cgroup))
		return;
	t = make_group_task(p);
	cgrp = args->cgroup;
	if (!t) {
		count_unrecorded();
		return;
	}
	/* The program before this one may have left its record. */
	__builtin_memset(t, 0, sizeof(*t));
	if (cgrp)
		join_group(t, cgrp);
}

static inline void group_exit_task(struct task_struct *p)
{
	struct perch_group_task *t = group_task(p);

	if (t)
		part_from_group(t);
}

static inline void group_running(struct task_struct *p, struct perch_cpu __arena *c, perch_u32 cpu)
{
	if (nr_live)
		weigh(p, cpu);
	else
		c->flat = c->group = c->limited = 0;
}

static inline void group_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (c->group)
		c->flat = flat_weight(p, c->group);
}

static const struct perch_follower group_follower = {
	.init = group_init,
	.init_task = group_init_task,
	.exit_task = group_exit_task,
	.sched_idle = group_sched_idle,
	.running = group_running,
	.tick = group_tick,
};

#endif
