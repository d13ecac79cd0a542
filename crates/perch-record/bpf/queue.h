/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The functions that look at a queue of the fair class and at its entities. They read by
 * bpf_probe_read_kernel: the tree's links are no pointers that the verifier knows.
 */
#ifndef PERCH_RECORD_QUEUE_H
#define PERCH_RECORD_QUEUE_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node {
	unsigned long __rb_parent_color;
	struct rb_node *rb_right;
	struct rb_node *rb_left;
};

struct rb_root_cached {
	struct rb_node *rb_leftmost;
};

struct load_weight {
	unsigned long weight;
};

/* The fields that only decisions read, of structures that kernel.h has. */
struct sched_entity___turn {
	struct load_weight load;
	struct rb_node run_node;
	__u64 deadline;
	int depth;
	unsigned char on_rq;
	unsigned char sched_delayed;
	unsigned char rel_deadline;
	__u64 vruntime;
	__s64 vlag;
	__u64 vprot;
	__u64 slice;
	struct cfs_rq *my_q;
};

struct cfs_rq___turn {
	unsigned int nr_queued;
	__s64 sum_w_vruntime;
	__u64 sum_weight;
	__u64 zero_vruntime;
	struct rb_root_cached tasks_timeline;
	struct sched_entity *curr;
	struct sched_entity *next;
};

/* As the kernel's fields were called up to 6.18. */
struct cfs_rq___before {
	unsigned int nr_running;
	__s64 avg_vruntime;
	__u64 avg_load;
	__u64 min_vruntime;
};

#pragma clang attribute pop

/* Returns the entity to which a node of a queue's tree belongs. */
static __always_inline const struct sched_entity___turn *entity_of(const struct rb_node *node)
{
	return (const void *)node - bpf_core_field_offset(struct sched_entity___turn, run_node);
}

static __always_inline void see_member(struct raw_member *to, const struct sched_entity___turn *se)
{
	to->vruntime = BPF_CORE_READ(se, vruntime);
	to->deadline = BPF_CORE_READ(se, deadline);
	to->vlag = BPF_CORE_READ(se, vlag);
	to->slice_ns = BPF_CORE_READ(se, slice);
	to->weight = BPF_CORE_READ(se, load.weight);
	/* Before 6.17 an entity is protected until its deadline, if its lag says so. */
	if (bpf_core_field_exists(se->vprot))
		to->protected = BPF_CORE_READ(se, vprot);
	else
		to->protected = (__u64)to->vlag == to->deadline ? to->deadline : 0;
	to->flags = 0;
	to->pid = 0;
	if (BPF_CORE_READ(se, my_q)) {
		to->flags |= RAW_GROUP;
	} else {
		const struct task_struct *task =
			(const void *)se - bpf_core_field_offset(struct task_struct, se);

		to->pid = BPF_CORE_READ(task, pid);
	}
	if (BPF_CORE_READ(se, sched_delayed))
		to->flags |= RAW_DELAYED;
	if (bpf_core_field_exists(se->rel_deadline) && BPF_CORE_READ(se, rel_deadline))
		to->flags |= RAW_RELATIVE;
	if (BPF_CORE_READ(se, on_rq))
		to->flags |= RAW_QUEUED;
}

static __always_inline __s32 depth_of(const struct sched_entity *se)
{
	return BPF_CORE_READ((const struct sched_entity___turn *)se, depth);
}

static __always_inline void see_entity(struct raw_member *to, const struct sched_entity *se)
{
	see_member(to, (const void *)se);
}

/* Records the entity that runs from a queue, if one does and is queued. */
static __always_inline void see_running(struct raw_decision *raw, const struct cfs_rq *queue)
{
	const struct cfs_rq___turn *cfs = (const void *)queue;
	const struct sched_entity *curr = BPF_CORE_READ(cfs, curr);

	if (!curr)
		return;
	see_entity(&raw->running, curr);
	if (raw->running.flags & RAW_QUEUED)
		raw->flags |= RAW_RUNNING;
	if (curr == BPF_CORE_READ(cfs, next))
		raw->flags |= RAW_NEXT_RUNS;
}

static __always_inline bool is_running(const struct cfs_rq *queue, const struct sched_entity *se)
{
	return BPF_CORE_READ((const struct cfs_rq___turn *)queue, curr) == se;
}

static __always_inline const struct rb_node *right_of(const struct rb_node *node)
{
	return BPF_CORE_READ(node, rb_right);
}

/* Returns the node that follows in the order of the tree; none after the last. */
static __always_inline const struct rb_node *following(const struct rb_node *node)
{
	const struct rb_node *next = right_of(node), *left;

	if (next) {
		while (can_loop) {
			left = BPF_CORE_READ(next, rb_left);
			if (!left)
				break;
			next = left;
		}
		return next;
	}
	while (can_loop) {
		next = (const void *)(BPF_CORE_READ(node, __rb_parent_color) & ~3ul);
		if (!next || right_of(next) != node)
			return next;
		node = next;
	}
	return 0;
}

/*
 * Records a queue: its sums, the entity that runs, and all that wait, by deadline. Returns false if
 * more wait than a record has room for.
 */
static __always_inline bool see_queue(struct raw_decision *raw, const struct cfs_rq *queue)
{
	const struct cfs_rq___turn *cfs = (const void *)queue;
	const struct cfs_rq___before *before = (const void *)queue;
	const struct rb_node *node = BPF_CORE_READ(cfs, tasks_timeline.rb_leftmost);
	const void *next = BPF_CORE_READ(cfs, next);
	__u32 i;

	raw->next = RAW_NOBODY;
	raw->nr_members = 0;
	if (bpf_core_field_exists(cfs->nr_queued))
		raw->nr_queued = BPF_CORE_READ(cfs, nr_queued);
	else
		raw->nr_queued = BPF_CORE_READ(before, nr_running);
	if (raw->nr_queued > RAW_MEMBERS)
		return false;
	if (bpf_core_field_exists(cfs->zero_vruntime))
		raw->zero_v = BPF_CORE_READ(cfs, zero_vruntime);
	else
		raw->zero_v = BPF_CORE_READ(before, min_vruntime);
	if (bpf_core_field_exists(cfs->sum_weight)) {
		raw->weighted_v = BPF_CORE_READ(cfs, sum_w_vruntime);
		raw->waiting_weight = BPF_CORE_READ(cfs, sum_weight);
	} else {
		raw->weighted_v = BPF_CORE_READ(before, avg_vruntime);
		raw->waiting_weight = BPF_CORE_READ(before, avg_load);
	}
	see_running(raw, queue);
	for (i = 0; i < RAW_MEMBERS && node && can_loop; i++) {
		const struct sched_entity___turn *se = entity_of(node);

		see_member(&raw->members[i], se);
		if (se == next)
			raw->next = i;
		if ((__u64)se == raw->wakee_entity)
			raw->wakee = i;
		raw->nr_members = i + 1;
		node = following(node);
	}
	return !node;
}

/* Returns the place of an entity among those that wait in a queue. */
static __always_inline __u32 place_of(const struct cfs_rq *queue, const void *entity)
{
	const struct cfs_rq___turn *cfs = (const void *)queue;
	const struct rb_node *node = BPF_CORE_READ(cfs, tasks_timeline.rb_leftmost);
	__u32 i;

	for (i = 0; i < RAW_MEMBERS && node && can_loop; i++) {
		if (entity_of(node) == entity)
			return i;
		node = following(node);
	}
	return RAW_NOBODY;
}

#endif
