/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The callbacks that sched_ext has for task groups, and that no other follower
 * needs, but for `runnable`. Where cgroups do not count, the loader leaves them
 * out.
 */
#ifndef PERCH_GROUP_OPS_H
#define PERCH_GROUP_OPS_H

#include "follow/limit.h"

SEC("struct_ops/runnable")
void BPF_PROG(perch_runnable, struct task_struct *p, __u64 enq_flags)
{
	struct perch_group_task *t;

	use_arena();
	follow_runnable(p, scx_bpf_task_cpu(p), enq_flags);
	if (!nr_live)
		return;
	t = group_task(p);
	if (t)
		enter_group(t, p, scx_bpf_task_cpu(p));
}

SEC("struct_ops/quiescent")
void BPF_PROG(perch_quiescent, struct task_struct *p, __u64 deq_flags)
{
	struct perch_group_task *t;

	use_arena();
	if (!nr_live)
		return;
	t = group_task(p);
	if (!t)
		return;
	leave_group(t);
	if (t->held)
		note_released(t);
}

SEC("struct_ops.s/cgroup_init")
__s32 BPF_PROG(perch_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	int err;

	use_arena();
	err = init_group(cgrp, args->weight);
	/* A kernel before 6.17 tells of no limit. */
	if (!err && bpf_core_field_exists(args->bw_quota_us))
		limit_group(cgrp, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return err;
}

SEC("struct_ops/cgroup_exit")
void BPF_PROG(perch_cgroup_exit, struct cgroup *cgrp)
{
	use_arena();
	unlimit_group(cgrp);
	exit_group(cgrp);
}

/* The task does not run meanwhile, and is not runnable. */
SEC("struct_ops/cgroup_move")
void BPF_PROG(perch_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct perch_group_task *t = group_task(p);

	use_arena();
	if (!t)
		return;
	part_from_group(t);
	join_group(t, to);
}

SEC("struct_ops/cgroup_set_weight")
void BPF_PROG(perch_cgroup_set_weight, struct cgroup *cgrp, __u32 weight)
{
	use_arena();
	weigh_group(cgrp, weight);
}

/* From 7.2 on. */
SEC("struct_ops/cgroup_set_idle")
void BPF_PROG(perch_cgroup_set_idle, struct cgroup *cgrp, bool idle)
{
	use_arena();
	idle_group(cgrp, idle);
}

SEC("struct_ops/cgroup_set_bandwidth")
void BPF_PROG(perch_cgroup_set_bandwidth, struct cgroup *cgrp, __u64 period_us, __u64 quota_us,
	      __u64 burst_us)
{
	use_arena();
	limit_group(cgrp, period_us, quota_us, burst_us);
}

#endif
