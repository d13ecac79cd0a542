// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The live scheduler: sched_ext's callbacks around the policy. select_cpu asks
 * it where a waking task should go; the rest sees to it that the task runs
 * there, that the tasks of a CPU share it by weight (clock.h), and that no CPU
 * idles while a task waits (queue.h, timer.h).
 */
#include "base/choose.h"
#include "follow/homeward.h"
#include "base/timer.h"

struct perch_exit perch_exit SEC(".data.exit");

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(perch_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool placed;

	use_arena();
	return choose_cpu(p, prev_cpu, wake_flags, &placed);
}

static __always_inline void enqueue(struct task_struct *p, __u64 enq_flags)
{
	perch_u32 cpu = scx_bpf_task_cpu(p);

	/* The kernel asks nobody where a task goes that has no choice. */
	if ((enq_flags & SCX_ENQ_WAKEUP) && p->nr_cpus_allowed == 1) {
		struct perch_cpu __arena *c = cpu_state(cpu);

		c->reasons[PERCH_BY_AFFINITY]++;
		c->events[PERCH_EV_PINNED]++;
		if (scx_bpf_test_and_clear_cpu_idle(cpu)) {
			insert_direct(p, SCX_DSQ_LOCAL, enq_flags);
			c->events[PERCH_EV_DIRECT]++;
			return;
		}
	}
	if (perch_config.utils && !(enq_flags & SCX_ENQ_WAKEUP)) {
		if (moves_up(p, cpu, enq_flags))
			return;
		/* It was to leave, and nobody else is here: it goes on. */
		if (enq_flags & SCX_ENQ_LAST) {
			insert(p, SCX_DSQ_LOCAL, slice_for(1), enq_flags);
			return;
		}
	}
	queue_task(p, cpu, enq_flags);
}

SEC("struct_ops/enqueue")
void BPF_PROG(perch_enqueue, struct task_struct *p, __u64 enq_flags)
{
	use_arena();
	enqueue(p, enq_flags);
}

/* A CPU that came since the program was loaded belongs to no domain. */
static inline bool has_place(perch_u32 cpu)
{
	return cpu < config()->topology.nr_cpus;
}

/* Whether the task that ran until now leaves for a CPU that was claimed for it. */
static inline bool goes_elsewhere(struct task_struct *p, perch_u32 cpu)
{
	return (perch_config.capacities && leaves(p, cpu)) ||
	       (perch_config.cache == PERCH_UPSTREAM && goes_home(p, cpu));
}

/* Whether somebody runs next: the task that ran until now, or one that was fetched. */
static __always_inline bool dispatch(perch_u32 cpu, struct task_struct *prev, bool runs_on)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (c->pull_from != PERCH_NONE) {
		pull(cpu, c->pull_from);
		c->pull_from = PERCH_NONE;
	}
	if (perch_config.utils) {
		forget_move(c);
		if (runs_on && goes_elsewhere(prev, cpu))
			runs_on = false;
	}
	if (nr_waiting && is_waiting(cpu)) {
		if (c->impatient && relieve_one(cpu))
			return true;
		if (runs_on) {
			perch_u64 ran = account(c, prev, false);

			if (perch_config.cache)
				thread_ran(cpu, ran);
			/*
			 * Its slice is used up, but nobody who waits is further behind.
			 * Were the clock not moved, a wakee would stand before it by as
			 * much as it runs on.
			 */
			if (c->curr_vtime < first_vtime(cpu)) {
				if (c->curr_vtime > c->clock)
					c->clock = c->curr_vtime;
				set_slice(prev, slice_for(2));
				return true;
			}
		}
		if (serve(cpu))
			return true;
	}
	if (runs_on) {
		set_slice(prev, slice_for(1));
		return true;
	}
	if (perch_config.capacities && nr_misfits && has_place(cpu) && call_misfit(cpu))
		goto idles;
	if (nr_waiting && has_place(cpu) && steal(cpu))
		return true;
idles:
	c->curr_weight = 0;
	c->idle_since_ns = coarse_now;
	return false;
}

static inline bool is_queued(const struct task_struct *prev)
{
	return prev && (prev->scx.flags & SCX_TASK_QUEUED);
}

SEC("struct_ops/dispatch")
void BPF_PROG(perch_dispatch, __s32 cpu, struct task_struct *prev)
{
	use_arena();
	dispatch(cpu, prev, is_queued(prev));
}

/* What the task that starts to run is worth, and where it is counted. */
static __attribute__((noinline)) int weigh(struct task_struct *p, perch_u32 cpu)
{
	struct perch_group_task *t = group_task(p);
	struct perch_cpu __arena *c = cpu_state(cpu);

	c->group = t ? t->slot : 0;
	if (t && t->slot)
		move_in_group(t, cpu);
	c->flat = worth(c->group, p->scx.weight);
	return 0;
}

/* What is followed of a task that starts to run. */
static __always_inline void follow_start(struct task_struct *p, struct perch_cpu __arena *c,
					 perch_u32 cpu)
{
	if (perch_config.nr_groups) {
		if (nr_live)
			weigh(p, cpu);
		else
			c->flat = c->group = 0;
	}
	if (perch_config.follows) {
		if (perch_config.utils) {
			forget_move(c);
			util_running(p, cpu);
		}
		if (perch_config.cache)
			thread_starts(p, cpu);
	}
}

SEC("struct_ops/running")
void BPF_PROG(perch_running, struct task_struct *p)
{
	perch_u32 cpu = bpf_get_smp_processor_id();
	struct perch_cpu __arena *c = cpu_state(cpu);

	use_arena();
	picked(c, p);
	follow_start(p, c, cpu);
}

/* And of one that stops, having run for so long since the last time. */
static __always_inline void follow_stop(struct task_struct *p, perch_u32 cpu, bool runnable,
					perch_u64 ran)
{
	if (perch_config.follows) {
		if (perch_config.utils)
			util_stopping(p, cpu, !runnable);
		if (perch_config.capacities)
			clear_misfit(cpu);
		if (perch_config.cache)
			thread_stops(cpu, ran);
	}
}

static __always_inline void stop(struct task_struct *p, perch_u32 cpu, bool runnable)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 ran = account(c, p, !nr_waiting || !is_waiting(cpu));

	if (perch_config.credits && c->group)
		charge_group(c, cpu);
	keep_vtime(p, runnable ? c->curr_vtime : lag_of(c));
	follow_stop(p, cpu, runnable, ran);
}

SEC("struct_ops/stopping")
void BPF_PROG(perch_stopping, struct task_struct *p, bool runnable)
{
	use_arena();
	stop(p, bpf_get_smp_processor_id(), runnable);
}

/* What is followed of the running task, and whether it had better run elsewhere. */
static inline void look_at_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	perch_u32 util = 0;

	if (perch_config.utils)
		util = util_ran(p, cpu)->util >> PERCH_PELT_SHIFT;
	if (perch_config.capacities)
		look_for_misfit(p, util, cpu);
	if (perch_config.cache && thread_ticks(cpu, ran) && perch_config.cache == PERCH_UPSTREAM)
		look_homeward(p, cpu);
}

/* With others waiting, whoever runs gets no more than a share of the slice. */
static __always_inline void tick(struct task_struct *p, perch_u32 cpu)
{
	bool waiting = is_waiting(cpu);
	const struct rq *rq = cpu_rq(cpu);
	perch_u64 share, ran;

	ran = account(cpu_state(cpu), p, !waiting);
	if (perch_config.nr_groups && cpu_state(cpu)->group)
		cpu_state(cpu)->flat = worth(cpu_state(cpu)->group, p->scx.weight);
	if (perch_config.follows)
		look_at_tick(p, cpu, ran);
	if (!waiting || !rq)
		return;
	share = slice_for(rq->nr_running);
	if (p->scx.slice > share)
		set_slice(p, share);
}

SEC("struct_ops/tick")
void BPF_PROG(perch_tick, struct task_struct *p)
{
	use_arena();
	tick(p, bpf_get_smp_processor_id());
}

/* Up to 7.0, where a task of a higher class took the CPU; the loader leaves it out later. */
SEC("struct_ops/cpu_release")
void BPF_PROG(perch_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* What is kept of a task for the mechanisms that follow it from its birth. */
static inline int born(struct task_struct *p, struct scx_init_task_args *args)
{
	if (perch_config.nr_groups && bpf_core_field_exists(args->cgroup)) {
		struct perch_group_task *t =
			bpf_task_storage_get(&group_tasks, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
		struct cgroup *cgrp = args->cgroup;

		if (!t)
			return -12; /* -ENOMEM */
		if (cgrp)
			join_group(t, cgrp);
	}
	if (perch_config.cache)
		join_process(p, args->fork);
	return 0;
}

/* Runnable or not: the loader leaves these two out where cgroups do not count. */
SEC("struct_ops/runnable")
void BPF_PROG(perch_runnable, struct task_struct *p, __u64 enq_flags)
{
	struct perch_group_task *t;

	use_arena();
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
	if (t)
		leave_group(t);
}

SEC("struct_ops/init_task")
__s32 BPF_PROG(perch_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	use_arena();
	return born(p, args);
}

SEC("struct_ops/exit_task")
void BPF_PROG(perch_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	use_arena();
	if (perch_config.nr_groups) {
		struct perch_group_task *t = group_task(p);

		if (t)
			part_from_group(t);
	}
	if (perch_config.cache)
		leave_process(p);
}

/* A newborn task remembers nothing and owes a slice, or forks would always come before those that wait. */
SEC("struct_ops/enable")
void BPF_PROG(perch_enable, struct task_struct *p)
{
	use_arena();
	memory_of(p->pid)->pid = 0;
	set_vtime(p, clamp_lag(virtual_ns(slice_for(1), p->scx.weight), 0));
}

SEC("struct_ops/cgroup_init")
__s32 BPF_PROG(perch_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	use_arena();
	return init_group(cgrp, args->weight);
}

SEC("struct_ops/cgroup_exit")
void BPF_PROG(perch_cgroup_exit, struct cgroup *cgrp)
{
	use_arena();
	exit_group(cgrp);
}

/* It does not run meanwhile, and is not runnable. */
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

SEC("struct_ops.s/init")
__s32 BPF_PROG(perch_init)
{
	const struct cpumask *mask;
	perch_u32 cpu, zero = 0;
	int err;

	use_arena();
	mask = scx_bpf_get_idle_cpumask();
	idle_cpus_at = (perch_u64)mask;
	scx_bpf_put_idle_cpumask(mask);
	mask = scx_bpf_get_idle_smtmask();
	idle_cores_at = (perch_u64)mask;
	scx_bpf_put_idle_cpumask(mask);
	coarse_now = bpf_ktime_get_ns();
	for (cpu = 0; cpu < config()->nr_possible && can_loop; cpu++) {
		struct perch_question *q = bpf_map_lookup_percpu_elem(&questions, &zero, cpu);

		if (q)
			q->policy = config()->policy;
		cpu_state(cpu)->clock = PERCH_CLOCK_START;
		err = scx_bpf_create_dsq(cpu, cpu_state(cpu)->node);
		if (!err && perch_config.nr_bands)
			err = scx_bpf_create_dsq(band_queue(cpu), cpu_state(cpu)->node);
		if (err)
			return err;
	}
	if (perch_config.nr_groups) {
		err = free_all_groups();
		if (err)
			return err;
	}
	if (perch_config.cache) {
		err = free_all_slots();
		if (err)
			return err;
	}
	return start_timer();
}

SEC("struct_ops/exit")
void BPF_PROG(perch_exited, struct scx_exit_info *info)
{
	bpf_probe_read_kernel_str(perch_exit.reason, sizeof(perch_exit.reason), info->reason);
	bpf_probe_read_kernel_str(perch_exit.message, sizeof(perch_exit.message), info->msg);
	perch_exit.code = info->exit_code;
	perch_exit.kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops perch_ops = {
	.select_cpu = (void *)perch_select_cpu,
	.enqueue = (void *)perch_enqueue,
	.dispatch = (void *)perch_dispatch,
	.runnable = (void *)perch_runnable,
	.quiescent = (void *)perch_quiescent,
	.tick = (void *)perch_tick,
	.running = (void *)perch_running,
	.stopping = (void *)perch_stopping,
	.init_task = (void *)perch_init_task,
	.exit_task = (void *)perch_exit_task,
	.enable = (void *)perch_enable,
	.cgroup_init = (void *)perch_cgroup_init,
	.cgroup_exit = (void *)perch_cgroup_exit,
	.cgroup_move = (void *)perch_cgroup_move,
	.cgroup_set_weight = (void *)perch_cgroup_set_weight,
	.cpu_release = (void *)perch_cpu_release,
	.init = (void *)perch_init,
	.exit = (void *)perch_exited,
	.flags = SCX_OPS_ALLOW_QUEUED_WAKEUP,
	.name = "perch",
};

#include "band/ops.h"

char _license[] SEC("license") = "GPL";
