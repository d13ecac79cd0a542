/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The callbacks where there is a real-time band. Each looks first whether the
 * task is the band's, and takes the base's step (base/fair.h) if it is not. The
 * loader registers this table of callbacks when the configuration has a band,
 * else perch_ops, which knows nothing of it.
 */
#ifndef PERCH_BAND_OPS_H
#define PERCH_BAND_OPS_H

#include "band/migrate.h"
#include "base/fair.h"

SEC("struct_ops/select_cpu")
__s32 BPF_PROG(perch_band_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	bool placed = false;
	perch_u32 cpu;

	use_arena();
	cpu = band_select(p, prev_cpu);
	if (cpu != PERCH_NONE)
		return cpu;
	cpu = choose_cpu(p, prev_cpu, wake_flags, &placed);
	/* A wakee must not wait behind a task of the band if it may run elsewhere. */
	if (!placed && has_place(cpu) && band_top(cpu) && p->nr_cpus_allowed > 1)
		cpu = place(allowed_at(p, bpf_get_smp_processor_id()), cpu, 1);
	return cpu;
}

SEC("struct_ops/enqueue")
void BPF_PROG(perch_band_enqueue, struct task_struct *p, __u64 enq_flags)
{
	use_arena();
	/*
	 * A task of the band that is alone on its CPU continues through the
	 * band's queue, so the followers see no SCX_ENQ_LAST.
	 */
	if (follow_enqueue(p, enq_flags & ~SCX_ENQ_LAST))
		return;
	if (!band_enqueue(p, enq_flags))
		enqueue(p, enq_flags);
}

/* Charges the task that ran until now and renews the share. True if the band's share is used up. */
static inline bool share_is_spent(perch_u32 cpu, struct perch_band_task *t,
				  const struct task_struct *prev)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (t)
		account_band(cpu, t, prev);
	else
		renew_share(c, scx_bpf_now());
	return c->band_spent;
}

/*
 * Fixed priorities let the lowest wait for ever, and a task that waits for 30 s
 * makes the kernel throw the scheduler out. So a task that has waited for a
 * third of that time behind others of the band runs until the next tick.
 */
#define PERCH_BAND_PATIENCE_NS 10000000000ull
#define PERCH_BAND_RELIEF_NS 1000001ull /* the slice by which such a task is recognised */

/*
 * A CPU looks once a second whether a task has waited so long. Where one had,
 * others may wait just as long behind it: with one relief a second thirty tasks
 * on a CPU were too many. So the next look comes soon, a tick or two after the
 * task that was found. In units of 2^20 ns, about a millisecond.
 */
#define PERCH_BAND_LOOK_SHIFT 20
#define PERCH_BAND_LOOK_LATER 1024
#define PERCH_BAND_LOOK_SOON 8

PERCH_OUTLINE int relieve(perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 now = scx_bpf_now();
	perch_u32 at = now >> PERCH_BAND_LOOK_SHIFT;
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool found = false;

	/* Only a time that is near counts: the first is 0, and the unit wraps after 52 days. */
	if (c->band_look_at - at - 1 < PERCH_BAND_LOOK_LATER)
		return 0;
	if (!bpf_iter_scx_dsq_new(&it, band_queue(cpu), 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			struct perch_band_task *t = band_task(p);

			if (!t || now - t->since_ns < PERCH_BAND_PATIENCE_NS)
				continue;
			c->band_prio = t->prio;
			scx_bpf_dsq_move_set_slice(&it, PERCH_BAND_RELIEF_NS);
			found = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (found) {
		count(cpu, PERCH_EV_BAND_RELIEVED);
		note_band(cpu);
	}
	c->band_look_at = at + (found ? PERCH_BAND_LOOK_SOON : PERCH_BAND_LOOK_LATER);
	return found;
}

/*
 * True if a task of the band runs next. `t` is the record of the task that ran
 * until now, if it could go on.
 */
static __attribute__((noinline)) int band_dispatch(perch_u32 cpu, struct perch_band_task *t,
						   struct task_struct *prev)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u32 own = t ? t->prio : 0, best;
	bool over = t && turn_is_over(t);

	look_again(cpu);
	if (c->band_first && relieve(cpu))
		return 1;
	best = own > c->band_first ? own : c->band_first;
	if (best < 99 && has_place(cpu) && others_overloaded(cpu))
		pull_band(cpu, best);
	best = c->band_first;
	if (best > own || (over && best == own)) {
		if (move_to_local(band_queue(cpu))) {
			c->band_prio = best;
			note_band(cpu);
			if (c->band_movable)
				call_for(cpu);
			return 1;
		}
		note_band(cpu);
	}
	c->band_prio = own;
	if (!t)
		return 0;
	next_turn(t);
	c->curr_weight = prev->scx.weight;
	set_slice(prev, band_slice(t));
	return 1;
}

/*
 * The band comes first while its share lasts. When the share is used up the
 * band gets the time that the others leave: a CPU that has no other task goes
 * on with the band.
 */
SEC("struct_ops/dispatch")
void BPF_PROG(perch_band_dispatch, __s32 cpu, struct task_struct *prev)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	struct perch_band_task *t = 0;
	bool runs_on = is_queued(prev), spent;

	use_arena();
	if (runs_on) {
		t = band_task(prev);
		if (t && !t->prio)
			t = 0;
	}
	spent = share_is_spent(cpu, t, prev);
	if (!spent && band_dispatch(cpu, t, prev))
		return;
	if (dispatch(cpu, prev, runs_on && !t)) {
		c->band_prio = 0;
		if (c->band_spent == 1 && (t || c->band_first)) {
			c->band_spent = 2;
			count(cpu, PERCH_EV_BAND_THROTTLED);
		}
		return;
	}
	/* A task of the band may have come while the others were looked for: see serve_latecomer(). */
	if ((spent || c->band_first) && band_dispatch(cpu, t, prev))
		return;
	if (calls_for_band(c, 0))
		scx_bpf_kick_cpu(cpu, 0);
}

/* The CPU runs this task from now on, be it in the band or not. */
static inline void starts(struct task_struct *p, const struct perch_band_task *t, perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (t && t->prio) {
		c->band_prio = t->prio;
		c->sched_idle = 0;
		c->exec_start = p->se.sum_exec_runtime;
		c->curr_weight = p->scx.weight;
		/*
		 * No wakee may count as far behind this task: its place in a
		 * queue is not a virtual time.
		 */
		c->curr_vtime = 0;
		keep_vtime(p, 0);
	} else {
		c->band_prio = 0;
		picked(c, p);
	}
	/*
	 * The task was put here without a look at the tasks that wait, or it
	 * runs for one tick only. On a CPU that goes offline the kernel would
	 * only put it here again.
	 */
	if (calls_for_band(c, c->band_prio) && p->scx.slice != PERCH_BAND_RELIEF_NS &&
	    !may_go_offline(cpu_rq(cpu)))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

SEC("struct_ops/running")
void BPF_PROG(perch_band_running, struct task_struct *p)
{
	perch_u32 cpu = scx_bpf_task_cpu(p);

	use_arena();
	starts(p, band_task(p), cpu);
	start(p, cpu);
}

SEC("struct_ops/stopping")
void BPF_PROG(perch_band_stopping, struct task_struct *p, bool runnable)
{
	struct perch_band_task *t = band_task(p);
	perch_u32 cpu = scx_bpf_task_cpu(p);

	use_arena();
	if (t && t->prio)
		follow_stopping(p, cpu, runnable, account_band(cpu, t, p));
	else
		stop(p, cpu, runnable);
}

/* The tick of a CPU that runs a task of the band. */
static inline void band_tick(struct task_struct *p, struct perch_band_task *t, perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	follow_tick(p, cpu, account_band(cpu, t, p));
	if ((c->band_spent && nr_waiting) || c->band_first > t->prio ||
	    (turn_is_over(t) && c->band_first == t->prio))
		set_slice(p, 0);
}

SEC("struct_ops/tick")
void BPF_PROG(perch_band_tick, struct task_struct *p)
{
	struct perch_band_task *t = band_task(p);
	perch_u32 cpu = bpf_get_smp_processor_id(), prio;
	struct perch_cpu __arena *c = cpu_state(cpu);

	use_arena();
	prio = t ? t->prio : 0;
	if (prio) {
		band_tick(p, t, cpu);
	} else {
		renew_share(c, scx_bpf_now());
		tick(p, cpu);
		if (calls_for_band(c, 0))
			set_slice(p, 0);
	}
	t = band_of(p);
	if (t && t->prio != prio) {
		starts(p, t, cpu);
		set_slice(p, 0);
	}
	if (has_place(cpu))
		look_after_band(cpu);
}

/*
 * The task yields to the others of its priority, which now come first. It
 * cannot yield to one of them by name.
 */
SEC("struct_ops/yield")
bool BPF_PROG(perch_band_yield, struct task_struct *from, struct task_struct *to)
{
	struct perch_band_task *t = band_task(from);

	if (to)
		return false;
	if (t && t->prio)
		t->yields = 1;
	set_slice(from, 0);
	return false;
}

SEC(".struct_ops.link")
struct sched_ext_ops perch_band_ops = {
	.select_cpu = (void *)perch_band_select_cpu,
	.enqueue = (void *)perch_band_enqueue,
	.dispatch = (void *)perch_band_dispatch,
	.runnable = (void *)perch_runnable,
	.quiescent = (void *)perch_quiescent,
	.tick = (void *)perch_band_tick,
	.update_idle = (void *)perch_update_idle,
	.running = (void *)perch_band_running,
	.stopping = (void *)perch_band_stopping,
	.yield = (void *)perch_band_yield,
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

#endif
