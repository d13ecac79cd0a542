/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Moves a task that outgrows its CPU while it runs. Wake-ups ask whether a task
 * fits its CPU, but a compiler that was born on a LITTLE does not sleep, and
 * would stay there while a big CPU idles beside it. So, where capacities
 * differ:
 *
 *  - at its tick, a CPU whose running task does not fit tells the other CPUs
 *    (`misfits`), and if a larger CPU idles, the task's slice ends;
 *  - in the dispatch that follows, the CPU claims the largest idle CPU for the
 *    task, and enqueue puts it there (move.h);
 *  - a larger CPU that goes idle interrupts such a task before its tick would.
 *
 * The bits of `misfits` are hints: each belongs to one CPU, which sets it at a
 * tick and clears it when the task stops.
 */
#ifndef PERCH_MISFIT_H
#define PERCH_MISFIT_H

#include "base/steal.h"
#include "follow/list.h"
#include "follow/move.h"
#include "follow/util.h"

/* The number of bits that are set in all words, as nr_waiting. */
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

/* True if the CPU is too small for the task, by the task's utilisation and clamps. */
static inline bool outgrew(const struct task_struct *p, perch_u32 util, perch_u32 cpu)
{
	struct perch_task t = {.util = util};

	if (cpu_state(cpu)->capacity >= config()->topology.max_capacity)
		return false;
	look_at_clamps(&t, p);
	return perch_fit(0, &t, cpu) != PERCH_FIT;
}

/*
 * The largest idle CPU of those that the task may use and that are larger than
 * its own, `cpu`; PERCH_NONE without one. It takes the largest, although a
 * middle one may do: a utilisation that has reached the CPU's capacity does not
 * tell how much higher it would be.
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
		perch_u64 m = perch_host_set_word(0, set, first + k);

		m = idle_among(first + k, m & mask_word(allowed_at, first + k));
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

/*
 * A CPU that has nothing to run looks for smaller CPUs of its domain whose
 * running task does not fit them. It does so before it steals, because the
 * smaller CPU that becomes free by this serves a waiting task as well. The
 * interrupted CPU then claims the idle one, if it still idles. An example is a
 * browser's main thread on a LITTLE, while the big CPUs idle for the
 * milliseconds between two frames: without the call the thread gets every
 * fourth of these gaps, when a tick falls into one.
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

/* True if a task that waits fits the CPU, as far as the scheduler knows the task. */
static inline bool fits(const struct task_struct *p, perch_u32 cpu)
{
	perch_u32 pid = p->pid;
	struct perch_memory __arena *m = memory_of(pid);
	struct perch_task t = {};

	if (m->pid != pid)
		return true;
	look_at_need(&t, p, m);
	return perch_fit(0, &t, cpu) == PERCH_FIT;
}

/*
 * True if the task that a thief would get from a larger CPU's queue does not
 * fit the thief, and is about to be served where it is. Each of two hogs that
 * share a big CPU gets more done there than on a LITTLE of its own; a LITTLE
 * that stole one for being idle a moment would keep it until a big CPU idles.
 */
static __attribute__((noinline)) bool better_left(perch_u32 cpu, perch_u32 from, perch_u64 now)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool fit = true;

	if (now - cpu_state(from)->served_ns > config()->slice_ns)
		return false;
	if (!bpf_iter_scx_dsq_new(&it, from, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (!may_run(p, cpu))
				continue;
			fit = fits(p, cpu);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return !fit;
}

/* At a tick: the follower `util`, which comes first, has brought the task's utilisation up to date. */
static inline void misfit_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	perch_u32 util = memory_of(p->pid)->util >> PERCH_PELT_SHIFT;

	if (p->nr_cpus_allowed == 1 || !outgrew(p, util, cpu)) {
		clear_misfit(cpu);
		return;
	}
	mark_misfit(cpu);
	if (larger_idle(allowed_at(p, cpu), cpu) != PERCH_NONE)
		set_slice(p, 0);
}

static inline void misfit_stopping(struct task_struct *p, perch_u32 cpu, bool runnable,
				   perch_u64 ran)
{
	clear_misfit(cpu);
}

/* A task that outgrew its CPU leaves for a larger CPU, which this function claims for it. */
static inline bool misfit_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on)
{
	if (!runs_on || !has_misfit(cpu))
		return runs_on;
	return !claim_move(cpu, larger_idle(allowed_at(prev, cpu), cpu), PERCH_EV_MOVED_UP);
}

static inline bool misfit_idle(perch_u32 cpu)
{
	return nr_misfits && has_place(cpu) && call_misfit(cpu);
}

static inline bool misfit_keeps(perch_u32 cpu, perch_u32 from, perch_u64 now)
{
	if (cpu_state(cpu)->capacity >= cpu_state(from)->capacity || !better_left(cpu, from, now))
		return false;
	count(cpu, PERCH_EV_LEFT_LARGER);
	return true;
}

/*
 * True if the task is one that had better move between two CPUs that differ: a
 * task moves to a smaller CPU if it fits there, and to a larger CPU if it does
 * not fit where it is.
 */
static inline bool misfit_suits(const struct task_struct *p, perch_u32 cpu, perch_u32 from)
{
	perch_u32 here = cpu_state(cpu)->capacity, there = cpu_state(from)->capacity;

	if (here == there)
		return true;
	return here < there ? fits(p, cpu) : !fits(p, from);
}

/*
 * If no task fits better here, the first in the queue comes, because no larger
 * CPU had room either.
 */
static inline enum perch_pull misfit_pull(perch_u32 cpu, perch_u32 from)
{
	return pull_one(cpu, from, PERCH_FOLLOWER_misfit) ? PERCH_PULL_MOVED : PERCH_PULL_NOBODY;
}

static const struct perch_follower misfit_follower = {
	.tick = misfit_tick,
	.dispatch = misfit_dispatch,
	.stopping = misfit_stopping,
	.idle = misfit_idle,
	.keeps = misfit_keeps,
	.pull = misfit_pull,
	.suits = misfit_suits,
};

#endif
