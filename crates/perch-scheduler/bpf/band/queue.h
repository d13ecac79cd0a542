/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The real-time band. sched_ext stands below the kernel's real-time class and
 * cannot change it, so perch has a band of its own among its tasks: the tasks
 * that the configuration chooses (match.h) have priorities of 1 to 99. They run
 * before all other tasks, by priority, within a share of each CPU's time.
 *
 * Each CPU has a queue for the band's tasks beside its other queue. It is
 * ordered by priority, and tasks of one priority by arrival, but a task that
 * was interrupted comes back to the head of its priority. The CPU that changes
 * a queue also writes down, by note_band(), the two facts that other CPUs must
 * know of it: the highest priority that waits, and the highest priority that
 * waits and may run elsewhere. As long as there is a task of the second kind
 * the queue's CPU is overloaded: it is marked and counted
 * (policy/include/perch/overload.h), and CPUs that run a lower priority come
 * for that task (migrate.h).
 */
#ifndef PERCH_BAND_QUEUE_H
#define PERCH_BAND_QUEUE_H

#include "band/match.h"
#include "base/queue.h"

/* Reads the value in program order: no access before or after this one passes it. */
static inline perch_u32 ordered(perch_u32 __arena *p)
{
	return __sync_val_compare_and_swap(p, 0, 0);
}

/*
 * BPF has no acquiring loads before v5 of its instruction set. x86 orders its
 * loads itself; elsewhere an atomic instruction that changes nothing, on a word
 * of this CPU, does it.
 */
static inline perch_u64 load_acquire(const perch_u64 __arena *p)
{
	perch_u64 value = *(const volatile perch_u64 __arena *)p;

#ifndef __TARGET_ARCH_x86
	ordered(&cpu_state(bpf_get_smp_processor_id())->band_changes);
#endif
	asm volatile("" : : : "memory");
	return value;
}

#define PERCH_ATOMIC_LOAD(p) load_acquire(p)
#define PERCH_ATOMIC_ADD(p, n) ((void)__sync_fetch_and_add(p, n))

/*
 * The loops of overload.h have several counters, and each needs a zero of its
 * own (another_zero()).
 */
#pragma push_macro("PERCH_ZERO")
#undef PERCH_ZERO
#define PERCH_ZERO another_zero()

#include "../../../../policy/include/perch/overload.h"

#pragma pop_macro("PERCH_ZERO")

/*
 * The id of the queue of the CPU's band tasks. The queue of its other tasks has
 * the CPU's number.
 */
static inline perch_u64 band_queue(perch_u32 cpu)
{
	return (1ull << 32) | cpu;
}

/*
 * A place in a queue is a negative number, the most urgent place first. Its
 * upper 16 bits are the negative of the priority. The bits below are the order
 * of arrival, which begins in the middle of its range, so that a task can be
 * put before all others of its priority.
 */
#define PERCH_PLACE_SHIFT 48
#define PERCH_PLACE_MIDDLE (1ull << 47)

static inline perch_u64 last_place(perch_u32 cpu, perch_u32 prio)
{
	perch_u64 nth = __sync_fetch_and_add(&cpu_state(cpu)->band_arrivals, 1);

	return (-(perch_u64)prio << PERCH_PLACE_SHIFT) + PERCH_PLACE_MIDDLE + nth;
}

static inline perch_u64 first_place(perch_u32 cpu, perch_u32 prio)
{
	perch_u64 nth = __sync_fetch_and_add(&cpu_state(cpu)->band_returns, 1);

	return (-(perch_u64)prio << PERCH_PLACE_SHIFT) + PERCH_PLACE_MIDDLE - 1 - nth;
}

static inline perch_u32 prio_of_place(perch_u64 place)
{
	return -(perch_u32)(place >> PERCH_PLACE_SHIFT) & 0xffff;
}

/*
 * A word holds two priorities: the highest that waits in its lower half, the
 * highest that may move in its upper half.
 */
#define PERCH_BAND_HALF 16

static inline perch_u32 higher_of_each(perch_u32 a, perch_u32 b)
{
	perch_u32 low = (a & 0xffff) > (b & 0xffff) ? a & 0xffff : b & 0xffff;
	perch_u32 high = a >> PERCH_BAND_HALF > b >> PERCH_BAND_HALF ? a >> PERCH_BAND_HALF :
								       b >> PERCH_BAND_HALF;

	return high << PERCH_BAND_HALF | low;
}

/*
 * A task that a callback queues is not in the queue before the callback has
 * returned. Until the CPU itself has looked at its queue, others read the
 * task's priority from here.
 */
static inline void expect_in_queue(perch_u32 cpu, perch_u32 prio, bool may_move)
{
	perch_u32 __arena *coming = &cpu_state(cpu)->band_coming;
	perch_u32 word = may_move ? prio << PERCH_BAND_HALF | prio : prio, was;

	while (PERCH_MORE) {
		was = ordered(coming);
		if (__sync_val_compare_and_swap(coming, was, higher_of_each(was, word)) == was)
			break;
	}
}

/* Looks at the queue and returns the two priorities of PERCH_BAND_HALF. */
PERCH_OUTLINE perch_u64 look_at_queue(perch_u32 cpu)
{
	perch_u64 first = another_zero(), movable = another_zero();
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, band_queue(cpu), 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			perch_u32 prio = prio_of_place(p->scx.dsq_vtime);

			if (!first)
				first = prio;
			if (p->nr_cpus_allowed > 1) {
				movable = prio;
				break;
			}
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return movable << PERCH_BAND_HALF | first;
}

/*
 * Marks the CPU before it counts it, and counts it out before it unmarks it: a
 * reader that finds it counted also finds it marked.
 */
PERCH_OUTLINE int set_overloaded(perch_u32 cpu, perch_u32 on)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 bit = 1ull << (cpu % 64);

	if (on) {
		__sync_fetch_and_or(&config()->overloaded[cpu / 64], bit);
		perch_overload_set(config()->overload, &c->overload_mark, c->overload_home);
	} else {
		perch_overload_clear(config()->overload, &c->overload_mark, c->overload_home);
		__sync_fetch_and_and(&config()->overloaded[cpu / 64], ~bit);
	}
	return 0;
}

/*
 * Called after a task came to the CPU's queue or left it, or may have. Several
 * CPUs may call at once, for any CPU, and there is no lock to take: one of them
 * looks at the queue and the others go on. The one that looked looks again if
 * anything has changed since. So two CPUs never mark and count at the same
 * time, and the last look comes after the last change.
 */
PERCH_OUTLINE int note_band(perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u32 was, seen, found;
	bool on;

	__sync_fetch_and_add(&c->band_changes, 1);
	while (PERCH_MORE) {
		was = ordered(&c->overloaded);
		if (was == PERCH_OVERLOAD_CHANGES)
			return 0;
		if (__sync_val_compare_and_swap(&c->overloaded, was, PERCH_OVERLOAD_CHANGES) != was)
			continue;
		seen = ordered(&c->band_changes);
		found = higher_of_each(look_at_queue(cpu), ordered(&c->band_coming));
		c->band_first = found & 0xffff;
		c->band_movable = found >> PERCH_BAND_HALF;
		on = found >> PERCH_BAND_HALF;
		if (on != was)
			set_overloaded(cpu, on);
		__sync_lock_test_and_set(&c->overloaded, on);
		if (ordered(&c->band_changes) == seen)
			return 0;
	}
	return 0;
}

/*
 * The CPU itself looks at its queue, at a tick or when it chooses its next
 * task: the tasks that expect_in_queue() announced are there by now. If it
 * looks a moment too early, its next tick finds the task in the queue.
 */
static inline void look_again(perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	if (c->band_coming)
		__sync_lock_test_and_set(&c->band_coming, 0);
	else if (!c->band_first && scx_bpf_dsq_nr_queued(band_queue(cpu)) <= 0)
		return;
	note_band(cpu);
}

/*
 * Begins a new period: the time that the band used beyond the share of the last
 * one counts for this one.
 */
static inline void renew_share(struct perch_cpu __arena *c, perch_u64 now)
{
	const struct perch_config *config_ = config();
	perch_u64 passed = now - c->band_since_ns, share = config_->band_share_ns, n;

	if ((perch_s64)passed >= (perch_s64)config_->band_period_ns) {
		n = passed / config_->band_period_ns;
		c->band_since_ns += n * config_->band_period_ns;
		if (c->band_used_ns / n < share)
			c->band_used_ns = 0;
		else
			c->band_used_ns -= n * share;
	}
	if (c->band_used_ns < share)
		c->band_spent = 0;
	else if (!c->band_spent)
		c->band_spent = 1;
}

/*
 * Charges the band and the running task for the time that it ran since the last
 * accounting, and returns that time in ns. Beyond its share the band is charged
 * only while other tasks wait here, as only then it takes time from them.
 */
static inline perch_u64 account_band(perch_u32 cpu, struct perch_band_task *t,
				     const struct task_struct *p)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 ran = p->se.sum_exec_runtime - c->exec_start, share = config()->band_share_ns;

	c->exec_start += ran;
	c->busy_ns += ran;
	c->band_used_ns += ran;
	t->left_ns -= ran;
	if (c->band_used_ns >= share && !is_waiting(cpu))
		c->band_used_ns = share - 1;
	renew_share(c, scx_bpf_now());
	return ran;
}

/* The time that a task may run until the scheduler looks at it again, in ns. */
static inline perch_u64 band_slice(const struct perch_band_task *t)
{
	perch_u64 period = config()->band_period_ns;

	if (t->slice_ns && t->left_ns > 0 && (perch_u64)t->left_ns < period)
		return t->left_ns;
	return period;
}

/* True if the task has had its turn or gave it up, so that others of its priority come first. */
static inline bool turn_is_over(const struct perch_band_task *t)
{
	return t->yields || (t->slice_ns && t->left_ns <= 0);
}

static inline void next_turn(struct perch_band_task *t)
{
	if (t->left_ns <= 0)
		t->left_ns = t->slice_ns;
	t->yields = 0;
}

/*
 * True if a task of the band with a priority above `prio` waits on this CPU and
 * may run now; none may while the share is used up.
 */
static inline bool calls_for_band(const struct perch_cpu __arena *c, perch_u32 prio)
{
	return c->band_first > prio && !c->band_spent;
}

#endif
