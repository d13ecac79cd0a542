/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a scheduler's shared object exports by the program's own structures. A
 * file of its own for each program includes the program and then this, after it
 * has defined
 *
 *  SCX_OPS(each)   as each(NAME) for every struct sched_ext_ops of the program;
 *                  the first is the one that is meant when none is named;
 *  SCX_WHOLE_OPS   if its struct sched_ext_ops has every member that the kernel's
 *                  has, as where vmlinux.h declares it;
 *  SCX_NO_UCLAMP   if its struct task_struct has no uclamp_req.
 */
#ifndef PERCH_SCX_EXPORTS_H
#define PERCH_SCX_EXPORTS_H

/* From here on constants are constant again: the program is over (native.h). */
#undef const

/* The address asks bpf_per_cpu_ptr() for the run queues, which are the kernel's. */
struct rq runqueues;

#define SCX_AT(type, member) __builtin_offsetof(struct type, member)
/* Of what only the kernel's whole structures have. */
#ifdef SCX_WHOLE_OPS
#define SCX_WHOLE_AT SCX_AT
#define SCX_WHOLE_SIZE(type) sizeof(struct type)
#else
#define SCX_WHOLE_AT(type, member) ~0u
#define SCX_WHOLE_SIZE(type) 0
#endif

const struct scx_layout scx_layout = {
	.task_size = sizeof(struct task_struct),
	.rq_size = sizeof(struct rq),
	.cgroup_size = sizeof(struct cgroup),
	.kernfs_node_size = sizeof(struct kernfs_node),
	.css_set_size = sizeof(struct css_set),
	.flags = SCX_AT(task_struct, flags),
	.policy = SCX_AT(task_struct, policy),
	.static_prio = SCX_AT(task_struct, static_prio),
	.nr_cpus_allowed = SCX_AT(task_struct, nr_cpus_allowed),
	.cpus_ptr = SCX_AT(task_struct, cpus_ptr),
	.sum_exec_runtime = SCX_AT(task_struct, se.sum_exec_runtime),
	.scx_flags = SCX_AT(task_struct, scx.flags),
	.scx_weight = SCX_AT(task_struct, scx.weight),
	.scx_slice = SCX_AT(task_struct, scx.slice),
	.scx_dsq_vtime = SCX_AT(task_struct, scx.dsq_vtime),
	.scx_runnable_at = SCX_AT(task_struct, scx.runnable_at),
	.pid = SCX_AT(task_struct, pid),
	.tgid = SCX_AT(task_struct, tgid),
	.cgroups = SCX_AT(task_struct, cgroups),
	.comm = SCX_AT(task_struct, comm),
	.nr_running = SCX_AT(rq, nr_running),
	.online = SCX_AT(rq, online),
	.curr = SCX_AT(rq, curr),
	.idle = SCX_AT(rq, idle),
	.idle_state = SCX_AT(rq, idle_state),
	.idle_state_size = sizeof(struct cpuidle_state),
	.exit_latency_ns = SCX_AT(cpuidle_state, exit_latency_ns),
	.kn = SCX_AT(cgroup, kn),
	.level = SCX_AT(cgroup, level),
	.ancestors = SCX_AT(cgroup, ancestors),
	.kn_name = SCX_AT(kernfs_node, name),
	.kn_id = SCX_AT(kernfs_node, id),
	.dfl_cgrp = SCX_AT(css_set, dfl_cgrp),
	.mm = SCX_WHOLE_AT(task_struct, mm),
	.group_leader = SCX_WHOLE_AT(task_struct, group_leader),
	.real_parent = SCX_WHOLE_AT(task_struct, real_parent),
	.parent = SCX_WHOLE_AT(task_struct, parent),
	.prio = SCX_WHOLE_AT(task_struct, prio),
	.normal_prio = SCX_WHOLE_AT(task_struct, normal_prio),
	.mm_size = SCX_WHOLE_SIZE(mm_struct),
	.cpumask_size = SCX_WHOLE_SIZE(cpumask),
};

void scx_set_uclamp(void *task, scx_u32 min, scx_u32 max)
{
#ifndef SCX_NO_UCLAMP
	struct task_struct *p = task;

	p->uclamp_req[0].value = min;
	p->uclamp_req[1].value = max;
#endif
}

/* The ops that the kernel asked for last, to which the functions below pass on. */
static struct sched_ext_ops *scx_ops;

static scx_s32 scx_init_task(void *task, scx_u8 fork, void *cgroup)
{
	struct scx_init_task_args args = {.fork = fork, .cgroup = cgroup};

	return scx_ops->init_task(task, &args);
}

/* Every argument is 0, whatever there is: the task was born and has lived. */
static void scx_exit_task(void *task)
{
	scx_u64 args[8] = {};

	scx_ops->exit_task(task, (void *)args);
}

static scx_s32 scx_cgroup_init(void *cgroup, scx_u32 weight)
{
	struct scx_cgroup_init_args args = {.weight = weight};

	return scx_ops->cgroup_init(cgroup, &args);
}

static void scx_exit(scx_s32 kind, scx_u64 code, const char *reason, const char *message)
{
	struct scx_exit_info info = {
		.kind = kind,
		.exit_code = code,
		.reason = (char *)reason,
		.msg = (char *)message,
	};

	scx_ops->exit(&info);
}

#define SCX_DIRECT(member) .member = (void *)ops->member
#define SCX_PASSED(member) .member = ops->member ? scx_##member : 0

static struct scx_callbacks scx_callbacks_of(const struct sched_ext_ops *ops)
{
	struct scx_callbacks callbacks = {
		SCX_DIRECT(select_cpu),
		SCX_DIRECT(enqueue),
		SCX_DIRECT(dispatch),
		SCX_DIRECT(tick),
		SCX_DIRECT(update_idle),
		SCX_DIRECT(runnable),
		SCX_DIRECT(running),
		SCX_DIRECT(stopping),
		SCX_DIRECT(quiescent),
		SCX_DIRECT(yield),
		SCX_DIRECT(cpu_release),
		SCX_PASSED(init_task),
		SCX_PASSED(exit_task),
		SCX_DIRECT(enable),
		SCX_PASSED(cgroup_init),
		SCX_DIRECT(cgroup_exit),
		SCX_DIRECT(cgroup_move),
		SCX_DIRECT(cgroup_set_weight),
		SCX_DIRECT(init),
		SCX_PASSED(exit),
		.flags = ops->flags,
#ifdef SCX_WHOLE_OPS
		SCX_DIRECT(dequeue),
		SCX_DIRECT(set_weight),
		SCX_DIRECT(set_cpumask),
		SCX_DIRECT(cpu_acquire),
		SCX_DIRECT(disable),
		.dispatch_max_batch = ops->dispatch_max_batch,
		.timeout_ms = ops->timeout_ms,
#endif
	};

	__builtin_memcpy(callbacks.name, ops->name, sizeof(callbacks.name));
	return callbacks;
}

static scx_u8 scx_same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

scx_s32 scx_callbacks(const char *name, struct scx_callbacks *callbacks)
{
#define SCX_NAMED(ops) {#ops, &ops},
	static const struct {
		const char *name;
		struct sched_ext_ops *ops;
	} all[] = {SCX_OPS(SCX_NAMED)};
	scx_u32 i;

	for (i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (name && !scx_same(all[i].name, name))
			continue;
		scx_ops = all[i].ops;
		*callbacks = scx_callbacks_of(scx_ops);
		return 0;
	}
	return -1;
}

#endif
