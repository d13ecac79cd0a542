/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every balance_ns one CPU looks at all CPUs: it measures how busy they were,
 * settles how far a wake-up may search each last-level cache, and looks for
 * queues that are too long and for idle CPUs that no wake-up would find.
 */
#ifndef PERCH_TIMER_H
#define PERCH_TIMER_H

#include "base/affinity.h"
#include "base/hotplug.h"
#include "base/queue.h"
#include "base/spread.h"

struct turn {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct turn);
} turns SEC(".maps");

/* Utilisation halves its distance to the present in this many turns, as a power of two. */
#define PERCH_UTIL_SHIFT 2

/* Returns the number of runnable tasks; of a CPU that is offline, which has room for none, 1. */
static inline perch_u32 update_cpu(perch_u32 cpu, perch_u64 elapsed)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	const struct rq *rq = cpu_rq(cpu);
	perch_u64 busy = c->busy_ns - c->busy_seen_ns;
	perch_u32 nr = nr_running(cpu);
	perch_s32 now;

	c->busy_seen_ns += busy;
	now = elapsed ? busy * c->capacity / elapsed : 0;
	if (now > (perch_s32)c->capacity)
		now = c->capacity;
	c->util += (now - (perch_s32)c->util) >> PERCH_UTIL_SHIFT;
	if (rq && !rq->online) {
		c->queued = PERCH_LONGEST;
		stay_offline(cpu);
		return 1;
	}
	c->queued = follow_turn_cpu(c, nr);
	if (c->stuck)
		c->stuck--;
	/*
	 * The CPU is idle, yet not marked so: it was claimed for a task that went
	 * elsewhere (the task's affinity changed on the way). A kick makes it look
	 * for work, find none and mark itself.
	 */
	if (rq && !nr && rq->curr == rq->idle && !is_idle(cpu)) {
		if (c->unused_claims++) {
			scx_bpf_kick_cpu(cpu, 0);
			count(cpu, PERCH_EV_REVIVED);
			c->unused_claims = 0;
		}
	} else {
		c->unused_claims = 0;
	}
	return nr;
}

/*
 * nr_idle_scan of an LLC (docs/mechanisms/stock.md#scan), from the utilisation that this
 * scheduler measures instead of PELT; and how full it is.
 */
static inline void update_llc(perch_u32 number, bool some_idle)
{
	struct perch_llc __arena *llc = &config()->llcs[number];
	perch_u32 weight = perch_host_set_weight(0, llc->set), k, nr = another_zero();
	perch_u32 first = perch_host_set_first(0, llc->set);
	perch_u64 util = 0, used;

	for (k = another_zero(); k < perch_host_set_words(0, llc->set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, llc->set, first + k);

		while (m && PERCH_MORE) {
			struct perch_cpu __arena *c =
				cpu_state((first + k) * 64 + __builtin_ctzll(m));

			util += c->util;
			nr += c->queued % PERCH_LONGEST;
			m &= m - 1;
		}
	}
	follow_turn_llc(number, util, nr, some_idle);
	util /= weight ?: 1;
	llc->util = util;
	used = util * util * 117 * 117 / (10000 * 1024);
	if (used > 1024)
		used = 1024;
	llc->nr_idle_scan = (1024 - used) * weight / 1024;
}

/*
 * True if one more task would be better off on the one CPU than on the other,
 * by the tasks there and their capacities: an idle CPU comes before a busy one,
 * then the CPU with more capacity for each task, the new one included.
 */
static inline bool roomier(perch_u32 nr, perch_u32 capacity, perch_u32 nr_than,
			   perch_u32 capacity_than)
{
	if (!nr != !nr_than)
		return !nr;
	return (nr + 1) * capacity_than < (nr_than + 1) * capacity;
}

/* A CPU's queue, as level_queues() compares it. */
struct queue {
	perch_u32 nr, cpu, capacity;
};

/* The shortest and the longest of some CPUs' queues, by the CPUs' capacities. */
struct queues {
	/* ~0 tasks: there is no CPU */
	struct queue shortest;
	/* Of those from which another CPU may take a task; 0 tasks: there is none */
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

	q->shortest = (struct queue){.nr = ~0u, .capacity = 1024};
	q->longest = (struct queue){.capacity = 1024};
	for (k = another_zero(); k < perch_host_set_words(0, set) && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);
		perch_u64 marked = m & config()->sched_idle[first + k];

		left |= sched_idle ? m & ~marked : marked;
		m = sched_idle ? marked : m & ~marked;
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);
			perch_u32 nr = cpu_state(cpu)->queued;
			perch_u32 capacity = cpu_state(cpu)->capacity;

			m &= m - 1;
			if (q->shortest.nr == ~0u ||
			    roomier(nr, capacity, q->shortest.nr, q->shortest.capacity))
				q->shortest = (struct queue){nr, cpu, capacity};
			if (nr * q->longest.capacity > q->longest.nr * capacity &&
			    is_waiting(cpu) && !cpu_state(cpu)->stuck)
				q->longest = (struct queue){nr, cpu, capacity};
		}
	}
	return left;
}

/*
 * Tells the CPU of a set's shortest queue to pull from the longest if the task
 * that comes over would have more of a CPU there; between equal CPUs that needs a
 * difference of two tasks. An idle CPU takes a waiting task whatever its own
 * capacity, or two hogs would share a big CPU beside it.
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
		if (q.shortest.nr && q.longest.nr > 1 && yielding.shortest.nr != ~0u) {
			cpu_state(yielding.shortest.cpu)->pull_from = q.longest.cpu;
			scx_bpf_kick_cpu(yielding.shortest.cpu, SCX_KICK_PREEMPT);
			return;
		}
		if (q.longest.nr < 2) {
			q.longest = yielding.longest;
			if (q.shortest.nr)
				q.shortest = yielding.shortest;
		}
	}
	if (q.shortest.nr ?
		    q.longest.nr * q.shortest.capacity <= (q.shortest.nr + 1) * q.longest.capacity :
		    q.longest.nr < 2)
		return;
	cpu_state(q.shortest.cpu)->pull_from = q.longest.cpu;
	if (!q.shortest.nr) {
		scx_bpf_kick_cpu(q.shortest.cpu, SCX_KICK_IDLE);
		count(q.shortest.cpu, PERCH_EV_KICKED);
	}
}

static __attribute__((noinline)) void update_llcs(bool some_idle)
{
	const struct perch_config *c = config();
	perch_u32 i;

	for (i = another_zero(); i < c->nr_llcs && can_loop; i++) {
		update_llc(i, some_idle);
		level_queues(c->llcs[i].set);
	}
	/* A full small CPU counts less than a full large one, so LLCs of unlike CPUs do not compare. */
	if (c->topology.nr_llcs > 1 && !c->capacities)
		level_llcs();
}

static __attribute__((noinline)) void level_machine(void)
{
	perch_u32 widest = PERCH_NONE, cpu;

	/* CPU 0 may be apart; the first that is not has the whole machine around it. */
	for (cpu = another_zero(); cpu < config()->topology.nr_cpus && can_loop; cpu++) {
		widest = widest_set(cpu);
		if (widest != PERCH_NONE)
			break;
	}
	if (widest != PERCH_NONE)
		level_queues(widest);
}

/* No task must wait for ever: the timer tells every CPU where a task may wait too long to look. */
static inline void look_for_impatient(perch_u64 now)
{
	static perch_u64 next, last;
	perch_u32 cpu;

	if (now < next)
		return;
	next = now + PERCH_PATIENCE_NS;
	patient_since = last;
	last = bpf_jiffies64();
	for (cpu = another_zero(); cpu < config()->nr_possible && can_loop; cpu++)
		cpu_state(cpu)->impatient = 1;
}

/* Turns of the timer, for the loader: while they come, the scheduler does its work. */
perch_u64 perch_turns SEC(".data.turns");

static int turn(void *map, int *key, struct bpf_timer *timer)
{
	const struct perch_config *c = config();
	perch_u64 now = bpf_ktime_get_ns(), elapsed = now - coarse_now;
	bool some_idle = false;
	perch_u32 cpu;

	coarse_now = now;
	perch_turns++;
	follow_turn(now);
	for (cpu = 0; cpu < c->topology.nr_cpus && can_loop; cpu++)
		if (!update_cpu(cpu, elapsed) && !is_apart(cpu))
			some_idle = true;
	update_llcs(some_idle);
	level_machine();
	look_for_impatient(now);
	bpf_timer_start(timer, c->balance_ns, 0);
	return 0;
}

static inline int start_timer(void)
{
	perch_u32 zero = 0;
	struct turn *t = bpf_map_lookup_elem(&turns, &zero);
	int err;

	if (!t)
		return -1;
	err = bpf_timer_init(&t->timer, &turns, CLOCK_MONOTONIC);
	if (!err)
		err = bpf_timer_set_callback(&t->timer, turn);
	if (!err)
		err = bpf_timer_start(&t->timer, config()->balance_ns, 0);
	return err;
}

#endif
