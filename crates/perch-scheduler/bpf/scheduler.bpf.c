// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The live scheduler: sched_ext's callbacks around the policy. select_cpu asks
 * the policy where a waking task should go; the other callbacks see to it that
 * the task runs there, that the tasks of a CPU share it by weight
 * (base/clock.h), and that no CPU idles while a task waits (base/steal.h,
 * base/timer.h). README.md explains the layers.
 */
#include "base/fair.h"
#include "base/hotplug.h"
#include "base/timer.h"
#include "follow/call.h"
#include "follow/group_ops.h"

struct perch_exit perch_exit SEC(".data.exit");

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(perch_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool placed;

	use_arena();
	return choose_cpu(p, prev_cpu, wake_flags, &placed);
}

SEC("struct_ops/enqueue")
void BPF_PROG(perch_enqueue, struct task_struct *p, __u64 enq_flags)
{
	use_arena();
	enqueue(p, enq_flags);
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

/*
 * This callback and the next may come on another CPU than the task's, which then holds the lock of
 * the task's run queue: when the scheduler is loaded, and when a running task changes its group.
 */
SEC("struct_ops/running")
void BPF_PROG(perch_running, struct task_struct *p)
{
	perch_u32 cpu = scx_bpf_task_cpu(p);
	struct perch_cpu __arena *c = cpu_state(cpu);

	use_arena();
	picked(c, p);
	start(p, cpu);
}

SEC("struct_ops/stopping")
void BPF_PROG(perch_stopping, struct task_struct *p, bool runnable)
{
	use_arena();
	stop(p, scx_bpf_task_cpu(p), runnable);
}

SEC("struct_ops/update_idle")
void BPF_PROG(perch_update_idle, __s32 cpu, bool idle)
{
	use_arena();
	if (idle)
		idles(cpu);
	else
		mark_busy(cpu);
}

SEC("struct_ops/tick")
void BPF_PROG(perch_tick, struct task_struct *p)
{
	use_arena();
	tick(p, bpf_get_smp_processor_id());
}

/*
 * Kernels up to 7.0 call this when a task of a higher class took the CPU; on
 * later ones the loader leaves it out.
 */
SEC("struct_ops/cpu_release")
void BPF_PROG(perch_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

SEC("struct_ops/cpu_online")
void BPF_PROG(perch_cpu_online, __s32 cpu)
{
	use_arena();
	comes_online(cpu);
}

SEC("struct_ops/cpu_offline")
void BPF_PROG(perch_cpu_offline, __s32 cpu)
{
	use_arena();
	goes_offline(cpu);
}

SEC("struct_ops/init_task")
__s32 BPF_PROG(perch_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	use_arena();
	follow_init_task(p, args);
	return 0;
}

SEC("struct_ops/exit_task")
void BPF_PROG(perch_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	use_arena();
	follow_exit_task(p);
}

/*
 * A newborn task has no memory and owes a slice, or forks would always come
 * before the tasks that wait.
 */
SEC("struct_ops/enable")
void BPF_PROG(perch_enable, struct task_struct *p)
{
	use_arena();
	memory_of(p->pid)->pid = 0;
	follow_enable(p);
	set_vtime(p, clamp_lag(virtual_ns(slice_for(1), p->scx.weight), 0));
}

SEC("struct_ops.s/init")
__s32 BPF_PROG(perch_init)
{
	perch_u32 cpu, zero = 0;
	int err;

	use_arena();
	coarse_now = bpf_ktime_get_ns();
	for (cpu = 0; cpu < config()->nr_possible && can_loop; cpu++) {
		struct perch_question *q = bpf_map_lookup_percpu_elem(&questions, &zero, cpu);

		if (q)
			q->policy = config()->policy;
		cpu_state(cpu)->clock = PERCH_CLOCK_START;
		err = scx_bpf_create_dsq(cpu, cpu_state(cpu)->node);
		if (!err)
			err = follow_init_cpu(cpu);
		if (err)
			return err;
	}
	err = follow_init();
	if (err)
		return err;
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
	.update_idle = (void *)perch_update_idle,
	.running = (void *)perch_running,
	.stopping = (void *)perch_stopping,
	.init_task = (void *)perch_init_task,
	.exit_task = (void *)perch_exit_task,
	.enable = (void *)perch_enable,
	.cgroup_init = (void *)perch_cgroup_init,
	.cgroup_exit = (void *)perch_cgroup_exit,
	.cgroup_move = (void *)perch_cgroup_move,
	.cgroup_set_weight = (void *)perch_cgroup_set_weight,
	.cgroup_set_bandwidth = (void *)perch_cgroup_set_bandwidth,
	.cgroup_set_idle = (void *)perch_cgroup_set_idle,
	.cpu_release = (void *)perch_cpu_release,
	.cpu_online = (void *)perch_cpu_online,
	.cpu_offline = (void *)perch_cpu_offline,
	.init = (void *)perch_init,
	.exit = (void *)perch_exited,
	.flags = SCX_OPS_ALLOW_QUEUED_WAKEUP,
	.name = "perch",
};

#include "band/ops.h"

char _license[] SEC("license") = "GPL";
