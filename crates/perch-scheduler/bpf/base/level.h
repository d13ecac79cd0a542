/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Levels queues. The tasks of a CPU share it by weight, so what counts is the
 * weight that competes for a CPU, its load, and not how many tasks there are: a
 * task of nice 19 beside a hog leaves room for another hog.
 *
 * The lengths of all queues are known at each turn of the timer, and a CPU adds
 * up its tasks' weights at its own tick. A group's weight plays no part: within
 * groups, tasks count by their own weights.
 */
#ifndef PERCH_LEVEL_H
#define PERCH_LEVEL_H

#include "base/queue.h"

/* A tick looks at so many waiting tasks; a longer queue counts by their mean weight. */
#define PERCH_WEIGHED 64

/* At the tick of a CPU in whose queue tasks may wait: notes the weights of its tasks. */
static __attribute__((noinline)) void weigh_queue(perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 sum = c->curr_weight;
	perch_u32 nr = 1, lightest = ~0u;
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, cpu, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			perch_u32 weight = p->scx.weight;

			sum += weight;
			if (weight < lightest)
				lightest = weight;
			if (nr++ == PERCH_WEIGHED)
				break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (nr == 1)
		return;
	c->weights = sum;
	c->weighed = nr;
	c->lightest = lightest;
}

/*
 * At a turn of the timer, which found `nr` tasks in the CPU's run queue: notes the
 * weight that competes for it; 0: it has no tasks. A task that another CPU pulled
 * counts there already, though it is in this run queue until that CPU takes it. A
 * task of a higher class counts as one of perch's.
 */
static inline void note_queue_load(struct perch_cpu __arena *c, perch_u32 cpu, perch_u32 nr)
{
	perch_u64 load = (perch_u64)(c->curr_weight ?: 100) * c->queued;

	if (is_waiting(cpu) && c->weighed)
		load = c->weights * (scx_bpf_dsq_nr_queued(cpu) + 1 + c->queued - nr) / c->weighed;
	c->load = load;
}

/* A CPU's queue, as level_queues() compares it. */
struct queue {
	perch_u32 load, cpu, capacity;
};

/*
 * True if one more task of nice 0 would be better off on the one CPU than on the
 * other: an idle CPU comes before a busy one, then the CPU with more capacity for
 * its load, the new task included.
 */
static inline bool roomier(const struct queue *q, const struct queue *than)
{
	if (!q->load != !than->load)
		return !q->load;
	return (q->load + 100ull) * than->capacity < (than->load + 100ull) * q->capacity;
}

/* True if a task of this weight in the longer queue would have more of a CPU in the shorter one. */
static inline bool gains(perch_u32 weight, const struct perch_cpu __arena *c,
			 const struct perch_cpu __arena *from)
{
	return ((perch_u64)c->load + weight) * from->capacity < (perch_u64)from->load * c->capacity;
}

/* The shortest and the longest of some CPUs' queues, by load and the CPUs' capacities. */
struct queues {
	/* A load of ~0: there is no CPU */
	struct queue shortest;
	/* Of those from which another CPU may take a task; a load of 0: there is none */
	struct queue longest;
};

/*
 * Finds them among the CPUs of a set that run only tasks of SCHED_IDLE, or among all others. True: the
 * set has CPUs of the other sort.
 */
static inline bool find_ends(struct queues *q, perch_u32 set, bool sched_idle)
{
	perch_u32 first = perch_host_set_first(0, set), k;
	perch_u64 left = 0;

	q->shortest = (struct queue){.load = ~0u, .capacity = 1024};
	q->longest = (struct queue){.capacity = 1024};
	for (k = another_zero(); k < perch_host_set_words(0, set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);
		perch_u64 marked = m & config()->sched_idle[first + k];

		left |= sched_idle ? m & ~marked : marked;
		m = sched_idle ? marked : m & ~marked;
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);
			const struct perch_cpu __arena *c = cpu_state(cpu);
			struct queue one = {c->load, cpu, c->capacity};

			m &= m - 1;
			if (q->shortest.load == ~0u || roomier(&one, &q->shortest))
				q->shortest = one;
			if ((perch_u64)one.load * q->longest.capacity >
				    (perch_u64)q->longest.load * one.capacity &&
			    is_waiting(cpu) && !c->stuck)
				q->longest = one;
		}
	}
	return left;
}

static inline bool has_some(const struct queue *q)
{
	return q->load && cpu_state(q->cpu)->queued > 1;
}

/*
 * Tells the CPU of a set's shortest queue to pull from the longest if the
 * lightest task there gains by it; between equal CPUs whose tasks have equal
 * weights that needs a difference of two tasks. An idle CPU takes a waiting task
 * whatever its own capacity, or two hogs would share a big CPU beside it.
 *
 * Where no CPU is idle, one that runs only tasks of SCHED_IDLE takes what waits behind
 * other tasks. Only when nothing does are the queues of such CPUs levelled, among
 * themselves.
 */
static inline void level_queues(perch_u32 set)
{
	struct queues q, yielding;

	if (find_ends(&q, set, false)) {
		find_ends(&yielding, set, true);
		if (q.shortest.load && has_some(&q.longest) && yielding.shortest.load != ~0u) {
			cpu_state(yielding.shortest.cpu)->pull_from = q.longest.cpu;
			scx_bpf_kick_cpu(yielding.shortest.cpu, SCX_KICK_PREEMPT);
			return;
		}
		if (!has_some(&q.longest)) {
			q.longest = yielding.longest;
			if (q.shortest.load)
				q.shortest = yielding.shortest;
		}
	}
	if (!has_some(&q.longest))
		return;
	if (q.shortest.load && !gains(cpu_state(q.longest.cpu)->lightest, cpu_state(q.shortest.cpu),
				      cpu_state(q.longest.cpu)))
		return;
	cpu_state(q.shortest.cpu)->pull_from = q.longest.cpu;
	if (!q.shortest.load) {
		scx_bpf_kick_cpu(q.shortest.cpu, SCX_KICK_IDLE);
		count(q.shortest.cpu, PERCH_EV_KICKED);
	}
}

#endif
