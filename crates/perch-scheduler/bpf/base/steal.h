/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How a CPU takes tasks from another CPU's queue: an idle one steals, from near
 * to far, and one with a shorter queue pulls when the timer says so.
 */
#ifndef PERCH_STEAL_H
#define PERCH_STEAL_H

#include "base/affinity.h"
#include "base/level.h"
#include "base/queue.h"

/*
 * Finds the queue of a set, other than the CPU's own, that was served longest
 * ago. It passes over CPUs that idle: either such a CPU's bit is stale, as
 * others emptied its queue, or the CPU is about to run the task that was just
 * put there.
 */
static inline perch_u32 longest_unserved(perch_u32 set, perch_u32 cpu, perch_u64 before_ns)
{
	perch_u32 first = perch_host_set_first(0, set), words = perch_host_set_words(0, set), k;
	perch_u32 oldest = PERCH_NONE;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);

		m &= config()->waiting[first + k];
		if (m)
			m &= ~idle_among(first + k, m);
		if (first + k == cpu / 64)
			m &= ~(1ull << (cpu % 64));
		while (m && PERCH_MORE) {
			perch_u32 other = (first + k) * 64 + __builtin_ctzll(m);
			perch_u64 served = cpu_state(other)->served_ns;

			m &= m - 1;
			if (served < before_ns && !cpu_state(other)->stuck) {
				before_ns = served;
				oldest = other;
			}
		}
	}
	return oldest;
}

/* The event by which a theft from within this domain is counted. */
static inline enum perch_event theft(perch_u32 domain_flags)
{
	if (domain_flags & (PERCH_SD_SMT | PERCH_SD_CLUSTER))
		return PERCH_EV_STOLEN_CLUSTER;
	if (domain_flags & PERCH_SD_LLC)
		return PERCH_EV_STOLEN_LLC;
	return domain_flags & PERCH_SD_NUMA ? PERCH_EV_STOLEN_REMOTE : PERCH_EV_STOLEN_NODE;
}

/*
 * Sets the CPU's clock and adds the change to `jumped`. A reading that was
 * stored less `jumped` becomes a valid reading again when the present `jumped`
 * is added. The task that ran until now may still be runnable, if its group's limit
 * stops it here: it is charged later, and has to keep its lag.
 */
static inline void set_clock(perch_u32 cpu, perch_u64 clock)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 jump = clock - c->clock;

	c->jumped += jump;
	c->curr_vtime += jump;
	c->clock = clock;
}

/*
 * A CPU found no task in the queue that it may run. If another CPU idles that
 * may run one, that CPU is called; else thieves leave the queue alone for a
 * while, and longer if no task there may run elsewhere at all.
 */
static __attribute__((noinline)) void leave_to_others(perch_u32 cpu, perch_u32 from)
{
	perch_u32 turns = PERCH_STUCK_TURNS, to = PERCH_NONE, widest = widest_set(cpu);
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, from, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (p->nr_cpus_allowed == 1)
				continue;
			turns = PERCH_BUSY_TURNS;
			if (widest != PERCH_NONE)
				to = idle_in_set(allowed_at(p, cpu), widest);
			if (to != PERCH_NONE)
				break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (to != PERCH_NONE && has_place(to)) {
		turns = 0;
		cpu_state(to)->pull_from = from;
		scx_bpf_kick_cpu(to, SCX_KICK_IDLE);
		count(to, PERCH_EV_KICKED);
	}
	cpu_state(from)->stuck = turns;
}

/*
 * The CPU has nothing to run: it takes the first task of the queue that was
 * served longest ago, from the nearest domain that has one, and with it the
 * other CPU's clock, so that the task's virtual time keeps its meaning. Another
 * node's queues are left alone for a while: their own CPUs are cheaper.
 */
static __attribute__((noinline)) bool steal(perch_u32 cpu)
{
	perch_u64 now = scx_bpf_now();
	perch_u32 level;

	for (level = PERCH_ZERO; PERCH_MORE;) {
		perch_u32 sd = perch_host_domain(0, cpu, level), flags, other;
		perch_u64 before = now + 1;

		if (sd == PERCH_NONE)
			break;
		flags = perch_host_domain_flags(0, sd);
		if (flags & PERCH_SD_NUMA)
			before = now - config()->steal_remote_ns;
		other = longest_unserved(perch_host_domain_set(0, sd), cpu, before);
		if (other == PERCH_NONE) {
			level++;
			continue;
		}
		if (follow_keeps(cpu, other, now)) {
			level++;
			continue;
		}
		if (!move_to_local(other)) {
			leave_to_others(cpu, other);
			/* An idle CPU was called for it: this one looks no further. */
			if (!cpu_state(other)->stuck)
				return false;
			continue;
		}
		set_clock(cpu, cpu_state(other)->clock);
		cpu_state(other)->served_ns = now;
		count(cpu, theft(flags));
		return true;
	}
	return false;
}

/* Not a follower: only tasks that take the CPU from those of SCHED_IDLE will do. */
#define PERCH_NOT_SCHED_IDLE (PERCH_NONE - 1)

/*
 * Takes over the first task of the queue that may run here and suits the
 * follower `who`; PERCH_NONE: one that gains by it, for an idle CPU any. The task
 * keeps its lag.
 */
static __attribute__((noinline)) bool pull_one(perch_u32 cpu, perch_u32 from, perch_u32 who)
{
	const struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 ahead = c->clock - cpu_state(from)->clock;
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool found = false;

	if (!bpf_iter_scx_dsq_new(&it, from, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (!may_run(p, cpu) || !follow_suits(p, cpu, from, who) ||
			    (who == PERCH_NOT_SCHED_IDLE && is_sched_idle(p)) ||
			    (who == PERCH_NONE && c->curr_weight &&
			     !gains(p->scx.weight, c, cpu_state(from))))
				continue;
			mark_waiting(cpu);
			scx_bpf_dsq_move_set_vtime(&it, p->scx.dsq_vtime + ahead);
			if (scx_bpf_dsq_move_vtime(&it, p, cpu, 0))
				count(cpu, PERCH_EV_PULLED);
			found = true;
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return found;
}

/*
 * The timer saw a queue that is too long: this CPU takes one task of it.
 * Followers choose the task; where none of them moved one, this CPU takes the
 * first that gains by it.
 */
static __attribute__((noinline)) void pull(perch_u32 cpu, perch_u32 from)
{
	enum perch_pull done = follow_pull(cpu, from);
	bool found = done == PERCH_PULL_MOVED;

	if (done == PERCH_PULL_KEEP)
		return;
	if (!found && cpu_state(cpu)->curr_weight && cpu_state(cpu)->sched_idle)
		found = pull_one(cpu, from, PERCH_NOT_SCHED_IDLE);
	if (!found)
		found = pull_one(cpu, from, PERCH_NONE);
	if (found)
		cpu_state(from)->stuck = 0;
	else
		leave_to_others(cpu, from);
}

#endif
