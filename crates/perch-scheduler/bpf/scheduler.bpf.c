// SPDX-License-Identifier: GPL-2.0-only
/*
 * The live scheduler: sched_ext's callbacks around the policy. select_cpu asks
 * it where a waking task should go; the rest sees to it that the task runs
 * there, that the tasks of a CPU share it by weight (clock.h), and that no CPU
 * idles while a task waits (queue.h, timer.h).
 */
#include "queue.h"
#include "homeward.h"
#include "timer.h"

/* A cgroup's cpu.weight, 100 unless set; for the mechanism that steers groups. */
struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u32);
} cgroups SEC(".maps");

struct perch_exit perch_exit SEC(".data.exit");

/* The policy's view of a waking task. */
static inline void look_at_wakee(struct perch_task *t, const struct task_struct *p)
{
	perch_u32 pid = p->pid;
	struct perch_memory __arena *m = memory_of(pid);

	t->id = pid;
	t->nr_allowed = p->nr_cpus_allowed;
	t->flags = p->policy == SCHED_IDLE ? PERCH_TASK_SCHED_IDLE : 0;
	/* Weight 100 is load 1024; a division costs more than it is worth. */
	t->load = p->scx.weight * 10486 >> 10;
	if (m->pid == pid) {
		t->wakee_flips = m->wakee_flips;
		t->recent_cpu = m->recent_cpu;
	} else {
		t->wakee_flips = 0;
		t->recent_cpu = PERCH_NONE;
		take_memory(m, p, scx_bpf_task_cpu(p));
	}
	if (perch_config.follows) {
		if (perch_config.utils)
			look_at_need(t, p, m);
		if (perch_config.cache)
			t->process = process_at(same_slot(m->process, p));
	}
}

/*
 * Of the waker, it asks for the flips alone. The idle task, which wakes for
 * interrupts, has pid 0 on every CPU and remembers nobody.
 */
static inline void look_at_waker(struct perch_task *t, const struct task_struct *p)
{
	perch_u32 pid = p->pid;
	struct perch_memory __arena *m = memory_of(pid);

	t->id = pid;
	t->flags = 0;
	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1)
		t->flags = PERCH_TASK_PERCPU_KTHREAD;
	if (pid && m->pid == pid) {
		t->flip_decay_at_ns = m->flip_decay_at_ns;
		t->last_wakee = m->last_wakee;
		t->wakee_flips = m->wakee_flips;
	} else {
		t->flip_decay_at_ns = 0;
		t->last_wakee = t->wakee_flips = 0;
		take_memory(m, p, bpf_get_smp_processor_id());
	}
}

/* What the policy changed. */
static inline void remember(const struct perch_task *waker, const struct perch_task *wakee)
{
	struct perch_memory __arena *m = memory_of(waker->id);

	if (waker->id && (m->last_wakee != waker->last_wakee ||
			  m->flip_decay_at_ns != waker->flip_decay_at_ns)) {
		m->flip_decay_at_ns = waker->flip_decay_at_ns;
		m->last_wakee = waker->last_wakee;
		m->wakee_flips = waker->wakee_flips;
	}
	m = memory_of(wakee->id);
	if (m->recent_cpu != wakee->recent_cpu)
		m->recent_cpu = wakee->recent_cpu;
}

static inline perch_u32 wake_flags_of(perch_u64 flags, const struct perch_task *waker)
{
	perch_u32 out = 0;

	if (flags & SCX_WAKE_SYNC)
		out |= PERCH_WAKE_SYNC;
	if (flags & SCX_WAKE_FORK)
		out |= PERCH_WAKE_FORK;
	if (flags & WF_CURRENT_CPU)
		out |= PERCH_WAKE_CURRENT;
	if (waker->flags & PERCH_TASK_PERCPU_KTHREAD)
		out |= PERCH_WAKE_IN_TASK;
	return out;
}

/* Whether a verdict of this reason names a CPU that may well be idle. */
static inline bool may_be_idle(perch_u32 reason)
{
	return reason != PERCH_BY_TARGET_BUSY && reason != PERCH_BY_KTHREAD &&
	       reason != PERCH_BY_HINT && reason != PERCH_BY_CAPACITY_SPARE;
}

/* How often there was an idle CPU in the target's cluster, and the wakee went there. */
static __attribute__((noinline)) void look_near(struct perch_host *h, const struct perch_task *t,
						const struct perch_verdict *v, perch_u32 cpu)
{
	perch_u32 set = perch_host_cluster_set(h, v->target), first, k;

	if (set == PERCH_NONE)
		return;
	first = perch_host_set_first(h, set);
	for (k = PERCH_ZERO; k < perch_host_set_words(h, set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);

		if (!(m & perch_host_allowed_word(h, t, first + k) &
		      perch_host_idle_word(h, first + k)))
			continue;
		count(cpu, PERCH_EV_NEAR_IDLE);
		if (perch_set_has(h, set, v->cpu))
			count(cpu, PERCH_EV_NEAR_TAKEN);
		return;
	}
}

PERCH_OUTLINE int ask_policy(struct perch_question *q PERCH_GIVEN)
{
	perch_select(&q->host, &q->policy, &q->wake, &q->waker, &q->wakee, &q->verdict);
	return 0;
}

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(perch_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	struct task_struct *current = bpf_get_current_task_btf();
	perch_u32 this_cpu = bpf_get_smp_processor_id(), tries;
	struct perch_cpu __arena *c = cpu_state(this_cpu);
	struct perch_question *q;

	use_arena();
	q = question();
	/* CPUs that came since belong to no topology; a restart is under way. */
	if (!q || this_cpu >= config()->topology.nr_cpus ||
	    (perch_u32)prev_cpu >= config()->topology.nr_cpus)
		return prev_cpu;
	look_at_waker(&q->waker, current);
	look_at_wakee(&q->wakee, p);
	q->host.allowed_at = 0;
	if (q->wakee.nr_allowed < config()->topology.nr_cpus)
		q->host.allowed_at = (perch_u64)p->cpus_ptr;
	q->host.idle_word = prev_cpu / 64u;
	q->wake.now_ns = coarse_now;
	q->wake.this_cpu = this_cpu;
	q->wake.prev_cpu = prev_cpu;
	q->wake.flags = wake_flags_of(wake_flags, &q->waker);

	/* Somebody else may claim the CPU first: the next best, then. */
	for (tries = 0; tries < 3 && can_loop; tries++) {
		perch_u32 recent = q->wakee.recent_cpu;

		q->host.idle = mask_word(idle_cpus_at, q->host.idle_word);
		ask_policy(q);
		if (q->verdict.examined)
			c->events[PERCH_EV_EXAMINED] += q->verdict.examined;
		if (perch_config.detail)
			look_near(&q->host, &q->wakee, &q->verdict, this_cpu);
		if (!may_be_idle(q->verdict.reason))
			break;
		if (scx_bpf_test_and_clear_cpu_idle(q->verdict.cpu)) {
			insert_direct(p, SCX_DSQ_LOCAL, 0);
			c->events[PERCH_EV_DIRECT]++;
			break;
		}
		if (q->verdict.reason == PERCH_BY_SLOW_PATH ||
		    q->verdict.reason == PERCH_BY_FALLBACK)
			break;
		c->events[PERCH_EV_CLAIM_LOST]++;
		q->wakee.recent_cpu = recent;
	}
	remember(&q->waker, &q->wakee);
	if (perch_config.cache)
		note_step(&q->verdict, this_cpu);
	if (q->verdict.reason < PERCH_MAX_REASONS)
		c->reasons[q->verdict.reason]++;
	return q->verdict.cpu;
}

SEC("struct_ops/enqueue")
void BPF_PROG(perch_enqueue, struct task_struct *p, __u64 enq_flags)
{
	perch_u32 cpu = scx_bpf_task_cpu(p);

	use_arena();
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

SEC("struct_ops/dispatch")
void BPF_PROG(perch_dispatch, __s32 cpu, struct task_struct *prev)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	bool runs_on = prev && (prev->scx.flags & SCX_TASK_QUEUED);

	use_arena();
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
		if (runs_on) {
			perch_u64 ran = account(c, prev, false);

			if (perch_config.cache)
				thread_ran(cpu, ran);
			/* Its slice is used up, but nobody who waits is further behind. */
			if (c->curr_vtime < first_vtime(cpu)) {
				set_slice(prev, slice_for(2));
				return;
			}
		}
		if (serve(cpu))
			return;
	}
	if (runs_on) {
		set_slice(prev, slice_for(1));
		return;
	}
	if (perch_config.capacities && nr_misfits && has_place(cpu) && call_misfit(cpu))
		goto idles;
	if (nr_waiting && has_place(cpu) && steal(cpu))
		return;
idles:
	c->curr_weight = 0;
	c->idle_since_ns = coarse_now;
}

SEC("struct_ops/running")
void BPF_PROG(perch_running, struct task_struct *p)
{
	perch_u32 cpu = bpf_get_smp_processor_id();

	use_arena();
	picked(cpu_state(cpu), p);
	if (perch_config.follows) {
		if (perch_config.utils) {
			forget_move(cpu_state(cpu));
			util_running(p, cpu);
		}
		if (perch_config.cache)
			thread_starts(p, cpu);
	}
}

SEC("struct_ops/stopping")
void BPF_PROG(perch_stopping, struct task_struct *p, bool runnable)
{
	perch_u32 cpu = bpf_get_smp_processor_id();
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 ran;

	use_arena();
	ran = account(c, p, !nr_waiting || !is_waiting(cpu));
	keep_vtime(p, runnable ? c->curr_vtime : clamp_lag(c->curr_vtime, c->clock));
	if (perch_config.follows) {
		if (perch_config.utils)
			util_stopping(p, cpu, !runnable);
		if (perch_config.capacities)
			clear_misfit(cpu);
		if (perch_config.cache)
			thread_stops(cpu, ran);
	}
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
SEC("struct_ops/tick")
void BPF_PROG(perch_tick, struct task_struct *p)
{
	perch_u32 cpu = bpf_get_smp_processor_id();
	bool waiting = is_waiting(cpu);
	const struct rq *rq = cpu_rq(cpu);
	perch_u64 share, ran;

	use_arena();
	ran = account(cpu_state(cpu), p, !waiting);
	if (perch_config.follows)
		look_at_tick(p, cpu, ran);
	if (!waiting || !rq)
		return;
	share = slice_for(rq->nr_running);
	if (p->scx.slice > share)
		set_slice(p, share);
}

/* Up to 7.0, where a task of a higher class took the CPU; the loader leaves it out later. */
SEC("struct_ops/cpu_release")
void BPF_PROG(perch_cpu_release, __s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

SEC("struct_ops/init_task")
__s32 BPF_PROG(perch_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	use_arena();
	join_process(p, args->fork);
	return 0;
}

SEC("struct_ops/exit_task")
void BPF_PROG(perch_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	use_arena();
	leave_process(p);
}

/* A newborn task remembers nothing and owes a slice, or forks would always come before those that wait. */
SEC("struct_ops/enable")
void BPF_PROG(perch_enable, struct task_struct *p)
{
	use_arena();
	memory_of(p->pid)->pid = 0;
	set_vtime(p, virtual_ns(slice_for(1), p->scx.weight));
}

SEC("struct_ops/cgroup_init")
__s32 BPF_PROG(perch_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	__u32 *weight = bpf_cgrp_storage_get(&cgroups, cgrp, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!weight)
		return -12; /* -ENOMEM */
	*weight = args->weight;
	return 0;
}

SEC("struct_ops/cgroup_set_weight")
void BPF_PROG(perch_cgroup_set_weight, struct cgroup *cgrp, __u32 weight)
{
	__u32 *held = bpf_cgrp_storage_get(&cgroups, cgrp, 0, 0);

	if (held)
		*held = weight;
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
	.tick = (void *)perch_tick,
	.running = (void *)perch_running,
	.stopping = (void *)perch_stopping,
	.init_task = (void *)perch_init_task,
	.exit_task = (void *)perch_exit_task,
	.enable = (void *)perch_enable,
	.cgroup_init = (void *)perch_cgroup_init,
	.cgroup_set_weight = (void *)perch_cgroup_set_weight,
	.cpu_release = (void *)perch_cpu_release,
	.init = (void *)perch_init,
	.exit = (void *)perch_exited,
	.flags = SCX_OPS_ALLOW_QUEUED_WAKEUP,
	.name = "perch",
};

char _license[] SEC("license") = "GPL";
