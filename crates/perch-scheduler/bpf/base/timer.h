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
#include "base/level.h"
#include "base/queue.h"

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
		c->load = 100 * PERCH_LONGEST;
		stay_offline(cpu);
		return 1;
	}
	c->queued = follow_turn_cpu(c, nr);
	note_queue_load(c, cpu, nr);
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
	if (number < config()->topology.nr_llcs)
		config()->llc_loads[number].busy = util;
	used = util * util * 117 * 117 / (10000 * 1024);
	if (used > 1024)
		used = 1024;
	llc->nr_idle_scan = (1024 - used) * weight / 1024;
}

static __attribute__((noinline)) void update_llcs(bool some_idle)
{
	const struct perch_config *c = config();
	struct perch_host host = {};
	perch_u32 i, least;

	for (i = another_zero(); i < c->nr_llcs && can_loop; i++) {
		update_llc(i, some_idle);
		level_queues(c->llcs[i].set);
	}
	if (c->policy.modes.spread) {
		least = perch_least_busy(&host);
		for (i = another_zero(); i < c->topology.nr_llcs && can_loop; i++)
			perch_spread_level(&host, i, least);
	}
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
	/*
	 * Walks through queues need an RCU critical section. Up to 6.17 the verifier sees none
	 * in a timer's callback if the program that sets the timer, perch_init(), may sleep.
	 */
	bpf_rcu_read_lock();
	follow_turn(now);
	for (cpu = 0; cpu < c->topology.nr_cpus && can_loop; cpu++)
		if (!update_cpu(cpu, elapsed) && !is_apart(cpu))
			some_idle = true;
	update_llcs(some_idle);
	level_machine();
	look_for_impatient(now);
	bpf_rcu_read_unlock();
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
