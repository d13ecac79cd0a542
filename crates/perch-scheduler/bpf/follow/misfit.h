/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A task that outgrows its CPU while it runs. Wake-ups ask who fits where, but
 * a compiler that was born on a LITTLE does not sleep, and would stay there
 * while a big CPU idles beside it. So, where capacities differ:
 *
 *  - at its tick, a running task that does not fit is told to the others
 *    (`misfits`), and if a larger CPU idles, its slice ends;
 *  - when it comes to dispatch, its CPU claims the largest idle one for it, and
 *    enqueue puts it there;
 *  - a larger CPU that goes idle interrupts it before its tick would.
 *
 * The bits of `misfits` are hints: each belongs to one CPU, which sets it at a
 * tick and clears it when the task stops.
 */
#ifndef PERCH_MISFIT_H
#define PERCH_MISFIT_H

#include "base/queue.h"

/* Bits that are set in all words, as nr_waiting. */
static perch_u64 nr_misfits;

static inline bool has_misfit(perch_u32 cpu)
{
	return config()->misfits[cpu / 64] >> (cpu % 64) & 1;
}

static inline void mark_misfit(perch_u32 cpu)
{
	if (has_misfit(cpu))
		return;
	__sync_fetch_and_add(&nr_misfits, 1);
	__sync_fetch_and_or(&config()->misfits[cpu / 64], 1ull << (cpu % 64));
}

static inline void clear_misfit(perch_u32 cpu)
{
	if (!has_misfit(cpu))
		return;
	__sync_fetch_and_and(&config()->misfits[cpu / 64], ~(1ull << (cpu % 64)));
	__sync_fetch_and_add(&nr_misfits, -1);
}

/* Whether the CPU is too small for the task, by its utilisation and its clamps. */
static inline bool outgrew(const struct task_struct *p, perch_u32 util, perch_u32 cpu)
{
	struct perch_task t = {.util = util};

	if (cpu_state(cpu)->capacity >= config()->topology.max_capacity)
		return false;
	look_at_clamps(&t, p);
	return perch_fit(0, &t, cpu) != PERCH_FIT;
}

/*
 * Where the task's affinity mask is, as a number: the verifier follows a pointer
 * through every count of a loop that reads by it. Read back from the memory of
 * this CPU, it is no pointer any more.
 */
static inline perch_u64 allowed_at(const struct task_struct *p, perch_u32 cpu)
{
	volatile perch_u64 __arena *at = &cpu_state(cpu)->allowed_at;

	*at = (perch_u64)p->cpus_ptr;
	return *at;
}

/*
 * The largest idle CPU of those that the task may use and that are larger than
 * its own, `cpu`; PERCH_NONE without one. The largest, although a middle one may do: a
 * utilisation that has reached what a CPU can give does not say how much more
 * it would be.
 */
PERCH_OUTLINE perch_u32 larger_idle(perch_u64 allowed_at, perch_u32 cpu)
{
	perch_u32 set = perch_host_asym_set(0, cpu), most = cpu_state(cpu)->capacity;
	perch_u32 best = PERCH_NONE, first, words, k;

	if (set == PERCH_NONE)
		return PERCH_NONE;
	first = perch_host_set_first(0, set);
	words = perch_host_set_words(0, set);
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = mask_word(idle_cpus_at, first + k);

		if (m)
			m &= perch_host_set_word(0, set, first + k) &
			     mask_word(allowed_at, first + k);
		while (m && PERCH_MORE) {
			perch_u32 other = (first + k) * 64 + __builtin_ctzll(m);
			perch_u32 capacity = cpu_state(other)->capacity;

			m &= m - 1;
			if (capacity > most) {
				most = capacity;
				best = other;
			}
		}
	}
	return best;
}

/* At the tick, with the running task's utilisation up to date. */
static inline void look_for_misfit(struct task_struct *p, perch_u32 util, perch_u32 cpu)
{
	if (p->nr_cpus_allowed == 1 || !outgrew(p, util, cpu)) {
		clear_misfit(cpu);
		return;
	}
	mark_misfit(cpu);
	if (larger_idle(allowed_at(p, cpu), cpu) != PERCH_NONE)
		set_slice(p, 0);
}

/*
 * In dispatch, which has the run queue of `cpu`: whether the task that ran
 * until now leaves for a larger CPU, which is claimed for it.
 */
static inline bool leaves(struct task_struct *p, perch_u32 cpu)
{
	perch_u32 to;

	if (!has_misfit(cpu))
		return false;
	to = larger_idle(allowed_at(p, cpu), cpu);
	if (to == PERCH_NONE || !scx_bpf_test_and_clear_cpu_idle(to))
		return false;
	cpu_state(cpu)->move_to = to;
	return true;
}

/* The claim on a CPU that the task did not go to, after all: that one idles anew. */
static inline void forget_move(struct perch_cpu __arena *c)
{
	if (c->move_to == PERCH_NONE)
		return;
	scx_bpf_kick_cpu(c->move_to, 0);
	c->move_to = PERCH_NONE;
}

/*
 * In enqueue: puts the task that leaves on the CPU that was claimed for it, with
 * its lag. The kernel enqueues neither a task that exits nor one that must not
 * migrate, which stay; and its affinity may have changed since.
 */
static inline bool moves_up(struct task_struct *p, perch_u32 cpu, perch_u64 enq_flags)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u32 to = c->move_to;
	bool home;

	if (to == PERCH_NONE || p != bpf_get_current_task_btf() || !may_run(p, to))
		return false;
	c->move_to = PERCH_NONE;
	set_vtime(p, clamp_lag(vtime_of(p->scx.dsq_vtime, c->clock), c->clock));
	insert_direct(p, SCX_DSQ_LOCAL_ON | to, enq_flags);
	home = cpu_state(to)->capacity <= c->capacity;
	count(cpu, home ? PERCH_EV_CACHE_MOVED : PERCH_EV_MOVED_UP);
	return true;
}

/*
 * A CPU that has nothing to run looks at smaller ones of its domain on which a
 * task runs that fits neither: before it steals, for a task that waits is as
 * well served by the smaller CPU that this sets free. The interrupted CPU finds
 * it idle, or not any more. A browser's main thread on a LITTLE, and the big
 * CPUs idle for the milliseconds between two frames: without the call it
 * has every fourth of them, when a tick falls into one.
 */
PERCH_OUTLINE int call_misfit(perch_u32 cpu)
{
	perch_u32 set = perch_host_asym_set(0, cpu), first, words, k;
	perch_u32 capacity = cpu_state(cpu)->capacity;

	if (set == PERCH_NONE)
		return 0;
	first = perch_host_set_first(0, set);
	words = perch_host_set_words(0, set);
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = config()->misfits[first + k];

		m &= perch_host_set_word(0, set, first + k);
		while (m && PERCH_MORE) {
			perch_u32 other = (first + k) * 64 + __builtin_ctzll(m);
			const struct rq *rq = cpu_rq(other);

			m &= m - 1;
			if (!rq || cpu_state(other)->capacity >= capacity ||
			    !may_run(rq->curr, cpu))
				continue;
			scx_bpf_kick_cpu(other, SCX_KICK_PREEMPT);
			count(cpu, PERCH_EV_CALLED_UP);
			return 1;
		}
	}
	return 0;
}

#endif
