/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moves the band's tasks between CPUs, as the kernel's real-time class moves
 * its own (docs/mechanisms/overload.md and docs/mechanisms/stock.md#rt). The
 * aim: of all tasks that could run, those with the highest priorities do run.
 *
 *  - A task that wakes stays if its CPU runs a lower priority. Otherwise it
 *    goes to the CPU that runs the lowest: an idle CPU, then one that runs a
 *    task outside the band, then the one that runs the band's lowest priority;
 *    among equal CPUs the nearest. A task that is queued, also because another
 *    task interrupted it, is pushed by the same rule.
 *  - Before a CPU runs its next task it asks the counters whether another CPU
 *    is overloaded. If one is, this CPU pulls the waiting task with the highest
 *    priority, provided that this is higher than that of its own next task.
 *  - CPUs decide without locks, so two tasks may come to one CPU. A CPU that
 *    leaves a task waiting calls the CPU that should take it; if no CPU has
 *    called, the next tick of the CPU where the task waits does.
 */
#ifndef PERCH_MIGRATE_H
#define PERCH_MIGRATE_H

#include "band/queue.h"
#include "base/affinity.h"

/* A value above every priority: the CPU takes no task of the band now. */
#define PERCH_TAKES_NONE 100u

/* The highest priority that the CPU runs or will run next. */
static inline perch_u32 band_top(perch_u32 cpu)
{
	const struct perch_cpu __arena *c = cpu_state(cpu);

	if (c->band_spent)
		return PERCH_TAKES_NONE;
	return c->band_prio > c->band_first ? c->band_prio : c->band_first;
}

/* True if the CPU stays online and runs no task of the kernel's real-time or deadline class. */
static inline bool takes_band(perch_u32 cpu)
{
	const struct rq *rq = cpu_rq(cpu);
	perch_u32 policy;

	if (!rq || !rq->online || may_go_offline(rq))
		return false;
	policy = rq->curr->policy;
	return policy != SCHED_FIFO && policy != SCHED_RR && policy != SCHED_DEADLINE;
}

/*
 * The CPU of a set that runs the lowest priority, if that is below `below`;
 * PERCH_NONE without one.
 */
PERCH_OUTLINE perch_u32 lowest_in_set(perch_u64 allowed_at, perch_u32 set, perch_u32 below)
{
	perch_u32 first = perch_host_set_first(0, set), words = perch_host_set_words(0, set), k;
	perch_u32 lowest = PERCH_NONE;

	for (k = another_zero(); k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);

		m &= mask_word(allowed_at, first + k);
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);
			perch_u32 top = band_top(cpu);

			m &= m - 1;
			if (top < below && takes_band(cpu)) {
				below = top;
				lowest = cpu;
			}
		}
	}
	return lowest;
}

/* The CPU to which a task of this priority on `cpu` should go; `cpu` if no other is better. */
PERCH_OUTLINE perch_u32 place(perch_u64 allowed_at, perch_u32 cpu, perch_u32 prio)
{
	perch_u32 level, sd, found, best = cpu;

	if (band_top(cpu) < prio && mask_word(allowed_at, cpu / 64) >> (cpu % 64) & 1 &&
	    takes_band(cpu))
		return cpu;
	for (level = another_zero(); PERCH_MORE; level++) {
		sd = perch_host_domain(0, cpu, level);
		if (sd == PERCH_NONE)
			break;
		found = idle_in_set(allowed_at, perch_host_domain_set(0, sd));
		if (found != PERCH_NONE)
			return found;
	}
	for (level = another_zero(); prio && PERCH_MORE; level++) {
		sd = perch_host_domain(0, cpu, level);
		if (sd == PERCH_NONE)
			break;
		found = lowest_in_set(allowed_at, perch_host_domain_set(0, sd), prio);
		if (found != PERCH_NONE) {
			best = found;
			prio = band_top(found);
		}
	}
	return best;
}

/* Makes the CPU look at its own queue, or at the queues of others. */
static inline void interrupt(perch_u32 cpu)
{
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	count(bpf_get_smp_processor_id(), PERCH_EV_BAND_PREEMPTED);
}

/* Puts the task on an idle CPU that was claimed for it; `dsq` is that CPU's own. */
static inline void send_direct(struct task_struct *p, const struct perch_band_task *t, perch_u32 to,
			       perch_u64 dsq, perch_u64 enq_flags)
{
	if (bpf_core_enum_value_exists(enum scx_enq_flags, SCX_ENQ_IMMED))
		enq_flags |= bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_IMMED);
	cpu_state(to)->band_prio = t->prio;
	insert(p, dsq, band_slice(t), enq_flags);
	count(bpf_get_smp_processor_id(), PERCH_EV_DIRECT);
}

/*
 * Called in select_cpu: returns the CPU for a waking task of the band;
 * PERCH_NONE for a task outside it.
 */
static __attribute__((noinline)) perch_u32 band_select(struct task_struct *p, perch_u32 prev)
{
	struct perch_band_task *t = band_of(p);
	perch_u32 this_cpu = bpf_get_smp_processor_id(), to;

	if (!t || !t->prio)
		return PERCH_NONE;
	count(this_cpu, PERCH_EV_BAND_WAKEUPS);
	if (prev >= config()->topology.nr_cpus)
		return prev;
	to = place(allowed_at(p, this_cpu), prev, t->prio);
	if (claim_idle(to))
		send_direct(p, t, to, SCX_DSQ_LOCAL, 0);
	return to;
}

/* Called in enqueue: queues a task of the band and returns 1; returns 0 for a task outside it. */
static __attribute__((noinline)) int band_enqueue(struct task_struct *p, perch_u64 enq_flags)
{
	perch_u32 cpu = scx_bpf_task_cpu(p), this_cpu = bpf_get_smp_processor_id(), to = cpu, prio;
	bool ran = p == bpf_get_current_task_btf() && !(enq_flags & SCX_ENQ_WAKEUP);
	struct perch_band_task *t = band_of(p);
	bool pinned = p->nr_cpus_allowed == 1, over;
	struct perch_cpu __arena *c;

	if (!t || !t->prio)
		return 0;
	prio = t->prio;
	if (pinned && (enq_flags & SCX_ENQ_WAKEUP))
		count(this_cpu, PERCH_EV_BAND_WAKEUPS);
	else if (!pinned && cpu < config()->topology.nr_cpus)
		to = place(allowed_at(p, this_cpu), cpu, prio);
	if (to != cpu)
		count(this_cpu, PERCH_EV_BAND_PUSHED);
	if ((to != cpu || (enq_flags & SCX_ENQ_WAKEUP)) && claim_idle(to)) {
		send_direct(p, t, to, SCX_DSQ_LOCAL_ON | to, enq_flags);
		return 1;
	}
	over = turn_is_over(t);
	next_turn(t);
	if (ran || (enq_flags & SCX_ENQ_WAKEUP) || !t->since_ns)
		t->since_ns = scx_bpf_now();
	insert_vtime(p, band_queue(to), band_slice(t),
		     ran && !over ? first_place(to, prio) : last_place(to, prio), enq_flags);
	count(this_cpu, PERCH_EV_BAND_QUEUED);
	expect_in_queue(to, prio, !pinned);
	note_band(to);
	if (to != cpu && cpu_state(cpu)->overloaded)
		note_band(cpu);
	c = cpu_state(to);
	if (!(ran && to == cpu) && prio > c->band_prio && !c->band_spent)
		interrupt(to);
	return 1;
}

/*
 * The overloaded CPU whose movable task has the highest priority above `prio`;
 * PERCH_NONE without one.
 */
PERCH_OUTLINE perch_u32 most_urgent(perch_u32 cpu, perch_u32 prio)
{
	perch_u32 words = (config()->topology.nr_cpus + 63) / 64, k, found = PERCH_NONE;

	for (k = another_zero(); k < words && PERCH_MORE; k++) {
		perch_u64 m = config()->overloaded[k];

		while (m && PERCH_MORE) {
			perch_u32 other = k * 64 + __builtin_ctzll(m);
			perch_u32 waits = cpu_state(other)->band_movable;

			m &= m - 1;
			if (waits > prio && other != cpu) {
				prio = waits;
				found = other;
			}
		}
	}
	return found;
}

/* Returns 1 if the mask at this address has the CPU. */
PERCH_OUTLINE int allows(perch_u64 allowed_at, perch_u32 cpu)
{
	return mask_word(allowed_at, cpu / 64) >> (cpu % 64) & 1;
}

/*
 * Takes over the first task of another CPU's queue that has a priority above
 * `prio` and may run here.
 */
PERCH_OUTLINE int take_over(perch_u32 cpu, perch_u32 from, perch_u32 prio)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool found = false;

	if (!bpf_iter_scx_dsq_new(&it, band_queue(from), 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			perch_u32 waits = prio_of_place(p->scx.dsq_vtime);

			if (waits <= prio)
				break;
			if (p->nr_cpus_allowed == 1 || !allows(allowed_at(p, cpu), cpu))
				continue;
			scx_bpf_dsq_move_set_vtime(&it, last_place(cpu, waits));
			found = scx_bpf_dsq_move_vtime(&it, p, band_queue(cpu), 0);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return found;
}

/*
 * The CPU would run `prio` next: it takes a waiting task of a higher priority,
 * the highest there is, from the CPU where that task waits. If the task may not
 * run here, or another CPU was faster, a later tick moves it.
 */
PERCH_OUTLINE int pull_band(perch_u32 cpu, perch_u32 prio)
{
	/* As the kernel's real-time class: an isolated CPU draws nothing. */
	perch_u32 from = is_apart(cpu) ? PERCH_NONE : most_urgent(cpu, prio);

	if (from == PERCH_NONE)
		return 0;
	if (take_over(cpu, from, prio)) {
		count(cpu, PERCH_EV_BAND_PULLED);
		note_band(cpu);
	}
	note_band(from);
	return 0;
}

/*
 * Returns 1 if another CPU is overloaded by the counters, which a CPU reads
 * before it looks at any other CPU.
 */
PERCH_OUTLINE int others_overloaded(perch_u32 cpu)
{
	const struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u32 loads, level;

	level = perch_overload_read(config()->overload, c->overload_home, &loads);
	count(cpu, PERCH_EV_OVERLOAD_NONE + level);
	return level == PERCH_OVERLOAD_MORE || (level == PERCH_OVERLOAD_ONE && !c->overload_mark);
}

/* Calls the CPU that should run the first task that waits on this one and may move. */
PERCH_OUTLINE int call_for(perch_u32 cpu)
{
	perch_u32 this_cpu = bpf_get_smp_processor_id(), prio = 0, to;
	struct bpf_iter_scx_dsq it;
	perch_u64 allowed = 0;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, band_queue(cpu), 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (p->nr_cpus_allowed == 1)
				continue;
			prio = prio_of_place(p->scx.dsq_vtime);
			allowed = allowed_at(p, this_cpu);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (!prio)
		return 0;
	to = place(allowed, cpu, prio);
	if (to == cpu)
		return 0;
	scx_bpf_kick_cpu(to, SCX_KICK_PREEMPT);
	count(this_cpu, PERCH_EV_BAND_CALLED);
	return 1;
}

/* At a tick the CPU looks for tasks that a race between CPUs left waiting. */
static inline void look_after_band(perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u32 this_cpu = bpf_get_smp_processor_id();

	look_again(cpu);
	if (c->band_movable) {
		count(this_cpu, PERCH_EV_BAND_WAITED);
		if (call_for(cpu))
			count(this_cpu, PERCH_EV_BAND_PASSED);
	}
	if (calls_for_band(c, c->band_prio))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

#endif
