/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Matches tasks with the rules of the real-time band. The first rule of the
 * configuration that fits a task's command name, cgroup, niceness and user decides
 * whether the task is in the band. Any of these four may change at any time,
 * and the kernel reports a change of the niceness only. So the band keeps with
 * each task the values by which it was matched, and compares them whenever the
 * task wakes, is queued, or runs at a tick; it looks at the rules again only
 * when a value differs.
 */
#ifndef PERCH_MATCH_H
#define PERCH_MATCH_H

#include "base/host.h"

/* The band's record of a task. */
struct perch_band_task {
	__u64 comm[2], cgroup; /* as they were when it was matched */
	__s32 static_prio;
	__u32 uid;
	__u32 known;  /* the task was matched with the rules */
	__u32 prio;   /* 1 to 99; 0: the task is not in the band */
	__u32 yields; /* the task has given up the CPU for others of its priority */
	__u32 pad;
	__u64 slice_ns;	 /* round robin: a whole turn; 0: first in, first out */
	__s64 left_ns;	 /* the rest of the present turn */
	__u64 cgroup_at; /* while it is matched: the address of its cgroup, as a number */
	__u64 since_ns;	 /* since when it waits for a CPU, scx_bpf_now() */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct perch_band_task);
} band_tasks SEC(".maps");

/*
 * The band's record of the task, as the last match left it; null if the kernel
 * had no memory to make one.
 */
static inline struct perch_band_task *band_task(struct task_struct *p)
{
	return bpf_task_storage_get(&band_tasks, p, 0, 0);
}

/* The same, made if the task has none. */
static inline struct perch_band_task *make_band_task(struct task_struct *p)
{
	return bpf_task_storage_get(&band_tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static inline __u32 comm_char(__u64 low, __u64 high, __u32 i)
{
	return (i < 8 ? low >> (i * 8) : high >> ((i & 7) * 8)) & 0xff;
}

/*
 * Returns 1 if a name of at most 15 characters, given as two words, fits a
 * rule's pattern. `star` is the place of the last * in the pattern: whenever
 * the pattern behind the * does not fit, the loop tries it again one character
 * later in the name.
 */
PERCH_OUTLINE int fits_comm(__u32 rule, __u64 low, __u64 high)
{
	const char __arena *glob = config()->bands[rule].comm;
	__u32 at = PERCH_ZERO, i = PERCH_ZERO, star = PERCH_NONE, from = PERCH_ZERO;

	while (i < 16 && PERCH_MORE) {
		__u32 c = comm_char(low, high, i);

		if (!c)
			break;
		if (glob[at] == '*') {
			star = at++;
			from = i;
		} else if (glob[at] == '?' || (__u8)glob[at] == c) {
			at++;
			i++;
		} else if (star != PERCH_NONE) {
			at = star + 1;
			i = ++from;
		} else {
			return 0;
		}
	}
	while (glob[at] == '*' && PERCH_MORE)
		at++;
	return !glob[at];
}

/*
 * Compares the cgroup's own name with the name at `at` in the rule's path.
 * Returns the place behind that name; 0 if the names differ.
 */
PERCH_OUTLINE __u32 fits_name(__u32 rule, __u32 at, __u64 cgroup_at)
{
	const struct cgroup *cgroup =
		bpf_rdonly_cast((void *)cgroup_at, bpf_core_type_id_kernel(struct cgroup));
	const char __arena *path = config()->bands[rule].path;
	char name[PERCH_BAND_NAME];
	__u32 i;

	if (bpf_probe_read_kernel_str(name, sizeof(name), cgroup->kn->name) < 0)
		return 0;
	for (i = PERCH_ZERO; i < PERCH_BAND_NAME && PERCH_MORE; i++) {
		char c = name[i & (PERCH_BAND_NAME - 1)];

		if (path[at + i] != c)
			return 0;
		if (!c)
			return at + i + 1;
	}
	return 0;
}

/* Returns 1 if the cgroup is the one that the rule names, or is below it. */
PERCH_OUTLINE int fits_cgroup(__u32 rule, __u64 cgroup_at)
{
	const struct cgroup *cgroup =
		bpf_rdonly_cast((void *)cgroup_at, bpf_core_type_id_kernel(struct cgroup));
	__u64 ancestors = cgroup_at + bpf_core_field_offset(struct cgroup, ancestors);
	__u32 depth = config()->bands[rule].depth, level, at = PERCH_ZERO;

	if (cgroup->level < (int)depth)
		return 0;
	for (level = PERCH_ZERO; level < depth && PERCH_MORE; level++) {
		at = fits_name(rule, at, mask_word(ancestors, level + 1));
		if (!at)
			return 0;
	}
	return 1;
}

/*
 * Finds the first rule that fits; PERCH_NONE without one. A rule chooses a
 * kernel thread by its name only: a user who asks for niceness -20 does not
 * mean half of the kernel's workers.
 */
static __attribute__((noinline)) __u32 find_band(const struct perch_band_task *t, bool kernel_s,
						 __u64 cgroup_at)
{
	const struct perch_config *c = config();
	__u32 rule;

	for (rule = PERCH_ZERO; rule < c->nr_bands && PERCH_MORE; rule++) {
		__u32 flags = c->bands[rule].flags;

		if (kernel_s && !(flags & PERCH_BAND_COMM))
			continue;
		if ((flags & PERCH_BAND_NICE) &&
		    t->static_prio - DEFAULT_PRIO != c->bands[rule].nice)
			continue;
		if ((flags & PERCH_BAND_COMM) && !fits_comm(rule, t->comm[0], t->comm[1]))
			continue;
		if ((flags & PERCH_BAND_USER) && t->uid != c->bands[rule].uid)
			continue;
		if ((flags & PERCH_BAND_CGROUP) && !fits_cgroup(rule, cgroup_at))
			continue;
		return rule;
	}
	return PERCH_NONE;
}

/*
 * Matches a task of which a value has changed. A task that joins or leaves the
 * band starts without lag: it owes no time and is owed none.
 */
static __attribute__((noinline)) void match(struct perch_band_task *t, struct task_struct *p)
{
	volatile __u64 *cgroup_at = &t->cgroup_at;
	__u32 rule, was = t->prio;

	*cgroup_at = (__u64)p->cgroups->dfl_cgrp;
	rule = find_band(t, p->flags & PF_KTHREAD, *cgroup_at);
	t->known = 1;
	if (rule == PERCH_NONE) {
		t->prio = 0;
	} else {
		t->prio = config()->bands[rule].prio;
		t->slice_ns = config()->bands[rule].slice_ns;
		t->left_ns = t->slice_ns;
	}
	if (!was != !t->prio)
		set_vtime(p, 0);
}

/*
 * The task's user; PERCH_NONE if it acts by another's rights, as any user may start
 * such a program, under any name.
 */
static inline __u32 user_of(const struct task_struct *p)
{
	__u32 uid = p->real_cred->uid.val;

	return p->real_cred->euid.val == uid ? uid : PERCH_NONE;
}

/* The band's record of the task, brought up to date; null while the kernel has no memory for it. */
static __attribute__((noinline)) struct perch_band_task *band_of(struct task_struct *p)
{
	struct perch_band_task *t = make_band_task(p);
	__u64 low, high, cgroup = 0;
	__u32 uid = 0;

	if (!t)
		return 0;
	low = mask_word((__u64)p->comm, 0);
	high = mask_word((__u64)p->comm, 1);
	if (perch_config.band_cgroups)
		cgroup = p->cgroups->dfl_cgrp->kn->id;
	if (perch_config.band_users)
		uid = user_of(p);
	if (t->known && t->comm[0] == low && t->comm[1] == high && t->cgroup == cgroup &&
	    t->static_prio == p->static_prio && t->uid == uid)
		return t;
	t->comm[0] = low;
	t->comm[1] = high;
	t->cgroup = cgroup;
	t->static_prio = p->static_prio;
	t->uid = uid;
	match(t, p);
	return t;
}

#endif
