/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * steer: sends the wakee to a CPU where its task group has nothing queued
 * (docs/mechanisms/steer.md).
 *
 * With task groups a CPU's queue is a tree. If the wakee's group has a task
 * queued there, the wakee queues behind that task within the group. If the
 * group has none, the group itself is queued, as a sleeper that is owed time,
 * and a heavy group then takes the CPU from a light group's hog at once. So
 * where no CPU is idle, a CPU on which the queue of the wakee's own group is
 * empty is the next best. A virtual machine of weight 8192 among hogs of 1024
 * answered 1.5 to 2.2 times as often by it.
 *
 * The mechanism acts only where the search has found no idle CPU, and never for
 * a task of the root group.
 */
#ifndef PERCH_STEER_H
#define PERCH_STEER_H

#include "capacity.h"

/*
 * Mode perch: the number of queues that it compares after the target's. To
 * learn that a queue is empty costs it one bit of a word. To learn how long the
 * wakee would wait there costs it another CPU's cache line, on a machine that
 * the search has just called too busy to be looked at. Eight CPUs are those of
 * an X5570's cache, or two clusters of a Kunpeng 920.
 */
#define PERCH_STEER_BUDGET 8

/* A search among empty queues, and the best CPU so far. */
struct perch_steer {
	perch_u32 from; /* where the wakee goes if nothing is better */
	perch_u32 cpu;	/* PERCH_NONE: none yet */
	perch_u32 running;
	perch_u32 budget;
	perch_u32 word;	  /* that is being compared */
	perch_u64 load;	  /* per capacity, 1024ths */
	perch_u8 unequal; /* CPUs differ in capacity */
};

/* The CPUs of one word of the set that the task may use and where its group has nothing queued. */
PERCH_INLINE perch_u64 perch_empty_word(const struct perch_host *h, const struct perch_task *p,
					perch_u32 set, perch_u32 w)
{
	perch_u64 m = perch_host_set_word(h, set, w) & perch_host_allowed_word(h, p, w);

	return m & ~perch_host_queued_word(h, p, w);
}

/*
 * Mode posted: returns the first such CPU of the target's cache in ascending
 * order. It does not prefer the target to the others, and all wakees of a group
 * go to the CPU of the lowest number until a task of the group is queued there.
 */
PERCH_OUTLINE perch_u32 perch_steer_first(const struct perch_host *h PERCH_GIVEN,
					  const struct perch_task *p PERCH_GIVEN,
					  struct perch_search *s PERCH_GIVEN, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(h, set), words = perch_host_set_words(h, set), k;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(h, set, first + k);
		perch_u64 empty = perch_empty_word(h, p, set, first + k);

		m &= perch_host_allowed_word(h, p, first + k);
		s->examined += __builtin_popcountll(empty ? m & (empty ^ (empty - 1)) : m);
		if (empty)
			return (first + k) * 64 + __builtin_ctzll(empty);
	}
	return PERCH_NONE;
}

/*
 * True if the CPU suits the wakee's capacity needs no worse than the CPU where
 * the wakee goes otherwise: a task that fits no CPU may still move among the
 * large ones.
 */
PERCH_INLINE perch_u8 perch_steer_fits(const struct perch_host *h, const struct perch_policy *pol,
				       const struct perch_task *p, const struct perch_steer *st,
				       perch_u32 cpu)
{
	return !st->unequal || perch_task_fits(h, pol, p, cpu) ||
	       perch_host_capacity(h, cpu) >= perch_host_capacity(h, st->from);
}

/*
 * Compares the CPUs `m` of a word by how long the wakee would wait: the less
 * loaded first, as the wakee's group is the heavier there, then the one with
 * fewer tasks, then the CPU that the walk meets first. Returns 1 at a CPU that
 * has no task.
 */
PERCH_OUTLINE int perch_steer_grade(const struct perch_host *h PERCH_GIVEN,
				    const struct perch_policy *pol PERCH_GIVEN,
				    const struct perch_task *p PERCH_GIVEN,
				    struct perch_steer *st PERCH_GIVEN, perch_u64 m)
{
	while (m && st->budget && PERCH_MORE) {
		perch_u32 cpu = st->word * 64 + __builtin_ctzll(m);
		perch_u32 running = perch_host_nr_running(h, cpu), capacity;
		perch_u64 load = perch_host_load(h, cpu);

		m &= m - 1;
		st->budget--;
		if (!perch_steer_fits(h, pol, p, st, cpu))
			continue;
		if (perch_idle_ok(h, pol, p, cpu)) {
			st->cpu = cpu;
			return 1;
		}
		capacity = perch_host_capacity(h, cpu);
		load = load * 1024 / (capacity ? capacity : 1);
		if (st->cpu == PERCH_NONE || load < st->load ||
		    (load == st->load && running < st->running)) {
			st->cpu = cpu;
			st->load = load;
			st->running = running;
		}
	}
	return 0;
}

/*
 * Compares the empty queues of a set, in ring order after the CPU where the
 * wakee goes otherwise.
 */
PERCH_OUTLINE int perch_steer_walk(const struct perch_host *h PERCH_GIVEN,
				   const struct perch_policy *pol PERCH_GIVEN,
				   const struct perch_task *p PERCH_GIVEN,
				   struct perch_steer *st PERCH_GIVEN, perch_u32 set)
{
	struct perch_ring ring = perch_ring(h, set, st->from + 1);
	perch_u32 k;

	for (k = PERCH_ZERO; k <= ring.words && st->budget && PERCH_MORE; k++) {
		perch_u64 keep, m;

		st->word = perch_ring_word(&ring, k, &keep);
		m = perch_empty_word(h, p, set, st->word) & keep;
		if (m && perch_steer_grade(h, pol, p, st, m))
			return 1;
	}
	return 0;
}

/*
 * Mode perch: returns the CPU where the wakee goes otherwise if its group has
 * nothing queued there, else the best CPU of that CPU's cluster, and only then
 * the best of its cache.
 */
PERCH_OUTLINE perch_u32 perch_steer_best(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_policy *pol PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN,
					 struct perch_search *s PERCH_GIVEN, perch_u32 from)
{
	struct perch_steer st = {
		.from = from,
		.cpu = PERCH_NONE,
		.budget = PERCH_STEER_BUDGET,
		.unequal = perch_host_asym_set(h, from) != PERCH_NONE,
	};
	perch_u32 set = perch_host_cluster_set(h, from);

	s->examined++;
	if (perch_allowed(h, p, from) &&
	    !(perch_host_queued_word(h, p, from / 64) >> (from % 64) & 1))
		return from;
	if (set != PERCH_NONE)
		perch_steer_walk(h, pol, p, &st, set);
	if (st.cpu == PERCH_NONE)
		perch_steer_walk(h, pol, p, &st, perch_host_llc_set(h, from));
	s->examined += PERCH_STEER_BUDGET - st.budget;
	return st.cpu;
}

/* The mechanism is on and the wakee is in a group: see perch_steer_last(). */
PERCH_RARE perch_u32 perch_steer_from(const struct perch_host *h PERCH_GIVEN,
				      const struct perch_policy *pol PERCH_GIVEN,
				      const struct perch_task *p PERCH_GIVEN,
				      struct perch_search *s PERCH_GIVEN, perch_u32 cpu)
{
	perch_u32 found, set;

	/* The CPU that `capacity` takes when none is idle is as busy as any target. */
	if (s->reason != PERCH_BY_TARGET_BUSY &&
	    (s->reason != PERCH_BY_CAPACITY_SPARE || pol->modes.steer != PERCH_PERCH))
		return cpu;
	/* The posted patch crashed on a CPU without such a domain. */
	set = perch_host_llc_set(h, cpu);
	if (set == PERCH_NONE)
		return cpu;
	if (pol->modes.steer == PERCH_POSTED)
		found = perch_steer_first(h, p, s, set);
	else
		found = perch_steer_best(h, pol, p, s, cpu);
	if (found == PERCH_NONE)
		return cpu;
	s->reason = PERCH_BY_EMPTY_QUEUE;
	return found;
}

/*
 * Stage last: the same CPU, or one where the queue of the wakee's group is
 * empty. Most wake-ups end here, with the mechanism off or a wakee of the root
 * group.
 */
PERCH_INLINE perch_u32 perch_steer_last(const struct perch_host *h, const struct perch_policy *pol,
					const struct perch_task *p, struct perch_search *s,
					perch_u32 cpu)
{
	if (pol->modes.steer == PERCH_OFF || pol->modes.steer == PERCH_UPSTREAM ||
	    !perch_host_grouped(h, p))
		return cpu;
	return perch_steer_from(h, pol, p, s, cpu);
}

#endif
