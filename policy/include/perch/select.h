/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decides where a waking (or new) task of the fair class should go, and why, in
 * the order of docs/mechanisms/README.md#one-wake-up.
 *
 * The stock kernel's decision is written out below. A mechanism takes part in
 * it by hooks, which it has in one or more of these stages; mechanisms.def
 * lists them, and its order is the order of calls within a stage. A hook is
 * PERCH_INLINE, or PERCH_OUTLINE where five arguments are enough.
 *
 * first       perch_NAME_first(h, pol, wake, waker, p, v): a CPU, with v->reason,
 *             or PERCH_NONE. Of the tasks it may read what perch_stays() does,
 *             and the waker's turns and the wakee's recent CPU.
 * leave       perch_NAME_leave(h, pol, p, wake, v): a CPU, with v->reason and
 *             v->examined, or PERCH_NONE.
 * aim         perch_NAME_aim(h, pol, p, wake, v): the CPU that stands for prev
 *             from here on; wake->prev_cpu if the mechanism has no better one.
 *             The first hook that has one ends the stage.
 * near        perch_NAME_near(h, pol, p, s, cpu, candidate): an enum perch_near.
 *             All hooks must take a candidate; the first hook that does not
 *             take it decides.
 * scan        perch_NAME_scan(h, pol, p, s, when): a CPU, with s->reason, or
 *             PERCH_NONE. Called at each point of enum perch_scan.
 * unbudgeted  perch_NAME_unbudgeted(pol): whether the mechanism scans at
 *             PERCH_SCAN_LLC where the LLC is too busy to be scanned.
 * home        perch_NAME_home(v): the search was aimed elsewhere (stage aim),
 *             found no idle CPU, and begins again from where the wakee was.
 * last        perch_NAME_last(h, pol, p, s, cpu): the search has ended at `cpu`
 *             with s->reason; the same CPU, or another one with another reason.
 */
#ifndef PERCH_SELECT_H
#define PERCH_SELECT_H

#include "early.h"
#include "slow.h"

#define PERCH_MECHANISM_HEADERS
#include "mechanisms.def"
#undef PERCH_MECHANISM_HEADERS

#include "stay.h"

#define PERCH_FOUND(s, why, cpu)     \
	do {                         \
		(s)->reason = (why); \
		return (cpu);        \
	} while (0)

/*
 * Each stage includes the table with its own macro saying what a hook's line
 * becomes, and those of the other stages saying nothing.
 */
#define PERCH_IN_first(name)
#define PERCH_IN_leave(name)
#define PERCH_IN_aim(name)
#define PERCH_IN_near(name)
#define PERCH_IN_scan(name)
#define PERCH_IN_unbudgeted(name)
#define PERCH_IN_home(name)
#define PERCH_IN_last(name)

PERCH_INLINE perch_u32 perch_stage_first(const struct perch_host *h, const struct perch_policy *pol,
					 const struct perch_wake *wake,
					 const struct perch_task *waker, struct perch_task *p,
					 struct perch_verdict *v)
{
	perch_u32 cpu;

#undef PERCH_IN_first
#define PERCH_IN_first(name)                                   \
	cpu = perch_##name##_first(h, pol, wake, waker, p, v); \
	if (cpu != PERCH_NONE)                                 \
		return cpu;
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_first
#define PERCH_IN_first(name)
	return PERCH_NONE;
}

/*
 * Chooses by little knowledge of the tasks, where that is enough: a hook of stage
 * first, or stay.h. Returns 1 if v has a CPU and its reason. A host that asks
 * this before it gathers the rest defines PERCH_ASKS_FIRST, and perch_select()
 * does not ask again.
 */
PERCH_INLINE perch_u8 perch_soon(const struct perch_host *h, const struct perch_policy *pol,
				 const struct perch_wake *wake, struct perch_task *waker,
				 struct perch_task *p, struct perch_verdict *v)
{
	v->cpu = perch_stage_first(h, pol, wake, waker, p, v);
	if (v->cpu != PERCH_NONE)
		return 1;
	v->cpu = wake->prev_cpu;
	v->reason = perch_stays(h, pol, wake, waker, p);
	if (v->reason == PERCH_BY_PREV_IDLE)
		v->target = wake->this_cpu;
	return v->reason != PERCH_BY_NOTHING;
}

PERCH_INLINE perch_u32 perch_stage_leave(const struct perch_host *h, const struct perch_policy *pol,
					 const struct perch_task *p, const struct perch_wake *wake,
					 struct perch_verdict *v)
{
	perch_u32 cpu;

#undef PERCH_IN_leave
#define PERCH_IN_leave(name)                            \
	cpu = perch_##name##_leave(h, pol, p, wake, v); \
	if (cpu != PERCH_NONE)                          \
		return cpu;
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_leave
#define PERCH_IN_leave(name)
	return PERCH_NONE;
}

PERCH_INLINE perch_u32 perch_stage_aim(const struct perch_host *h, const struct perch_policy *pol,
				       const struct perch_task *p, const struct perch_wake *wake,
				       struct perch_verdict *v)
{
	perch_u32 cpu;

#undef PERCH_IN_aim
#define PERCH_IN_aim(name)                            \
	cpu = perch_##name##_aim(h, pol, p, wake, v); \
	if (cpu != wake->prev_cpu)                    \
		return cpu;
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_aim
#define PERCH_IN_aim(name)
	return wake->prev_cpu;
}

PERCH_INLINE enum perch_near perch_stage_near(const struct perch_host *h,
					      const struct perch_policy *pol,
					      const struct perch_task *p,
					      const struct perch_search *s, perch_u32 cpu,
					      enum perch_candidate candidate)
{
	enum perch_near said;

#undef PERCH_IN_near
#define PERCH_IN_near(name)                                       \
	said = perch_##name##_near(h, pol, p, s, cpu, candidate); \
	if (said != PERCH_NEAR_TAKE)                              \
		return said;
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_near
#define PERCH_IN_near(name)
	return PERCH_NEAR_TAKE;
}

PERCH_INLINE perch_u32 perch_stage_scan(struct perch_host *h, const struct perch_policy *pol,
					const struct perch_task *p, struct perch_search *s,
					enum perch_scan when)
{
	perch_u32 cpu;

#undef PERCH_IN_scan
#define PERCH_IN_scan(name)                            \
	cpu = perch_##name##_scan(h, pol, p, s, when); \
	if (cpu != PERCH_NONE)                         \
		return cpu;
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_scan
#define PERCH_IN_scan(name)
	return PERCH_NONE;
}

PERCH_INLINE perch_u8 perch_stage_unbudgeted(const struct perch_policy *pol)
{
#undef PERCH_IN_unbudgeted
#define PERCH_IN_unbudgeted(name)           \
	if (perch_##name##_unbudgeted(pol)) \
		return 1;
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_unbudgeted
#define PERCH_IN_unbudgeted(name)
	return 0;
}

PERCH_INLINE void perch_stage_home(struct perch_verdict *v)
{
#undef PERCH_IN_home
#define PERCH_IN_home(name) perch_##name##_home(v);
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_home
#define PERCH_IN_home(name)
}

PERCH_OUTLINE perch_u32 perch_stage_last(const struct perch_host *h PERCH_GIVEN,
					 const struct perch_policy *pol PERCH_GIVEN,
					 const struct perch_task *p PERCH_GIVEN,
					 struct perch_search *s PERCH_GIVEN, perch_u32 cpu)
{
#undef PERCH_IN_last
#define PERCH_IN_last(name) cpu = perch_##name##_last(h, pol, p, s, cpu);
#define PERCH_STAGE(stage, name) PERCH_IN_##stage(name)
#include "mechanisms.def"
#undef PERCH_IN_last
#define PERCH_IN_last(name)
	return cpu;
}

/* The idle-sibling search: docs/mechanisms/stock.md#idle-search, steps 1 to 9. */
PERCH_OUTLINE perch_u32 perch_search_idle(struct perch_host *h PERCH_GIVEN,
					  const struct perch_policy *pol PERCH_GIVEN,
					  struct perch_task *p PERCH_GIVEN,
					  struct perch_search *s PERCH_GIVEN)
{
	enum perch_near near;
	perch_u32 recent, cpu;

	cpu = perch_stage_scan(h, pol, p, s, PERCH_SCAN_FIRST);
	if (cpu != PERCH_NONE)
		return cpu;

	if (perch_idle_ok(h, pol, p, s->target) &&
	    perch_stage_near(h, pol, p, s, s->target, PERCH_CANDIDATE_TARGET) == PERCH_NEAR_TAKE)
		PERCH_FOUND(s, PERCH_BY_TARGET_IDLE, s->target);

	if (s->prev != s->target && perch_share_llc(h, s->prev, s->target) &&
	    perch_idle_ok(h, pol, p, s->prev)) {
		near = perch_stage_near(h, pol, p, s, s->prev, PERCH_CANDIDATE_PREV);
		if (near == PERCH_NEAR_TAKE)
			PERCH_FOUND(s, PERCH_BY_PREV_IDLE, s->prev);
		if (near == PERCH_NEAR_LATER)
			s->near_prev = s->prev;
	}

	/*
	 * A per-CPU kthread (a kworker completing the wakee's I/O) wakes it on
	 * its own CPU and is about to sleep: the wakee that stacks there loses
	 * nothing.
	 */
	if ((s->flags & PERCH_WAKE_IN_TASK) && s->prev == s->this_cpu &&
	    perch_host_nr_running(h, s->this_cpu) <= 1 &&
	    perch_stage_near(h, pol, p, s, s->prev, PERCH_CANDIDATE_KTHREAD) == PERCH_NEAR_TAKE)
		PERCH_FOUND(s, PERCH_BY_KTHREAD, s->prev);

	/*
	 * The wakee did not run on a preferred CPU: the recent CPU is of no use
	 * beside it. It is forgotten all the same, for the preferred one.
	 */
	recent = s->home == PERCH_NONE ? p->recent_cpu : PERCH_NONE;
	if (!pol->rules.recent_when_taken)
		p->recent_cpu = s->prev;
	if (recent != PERCH_NONE && recent != s->prev && recent != s->target &&
	    perch_share_llc(h, recent, s->target) && perch_idle_ok(h, pol, p, recent) &&
	    perch_allowed(h, p, recent)) {
		near = perch_stage_near(h, pol, p, s, recent, PERCH_CANDIDATE_RECENT);
		if (near == PERCH_NEAR_TAKE) {
			p->recent_cpu = s->prev;
			PERCH_FOUND(s, PERCH_BY_RECENT_IDLE, recent);
		}
		if (near == PERCH_NEAR_LATER)
			s->near_recent = recent;
	}

	cpu = perch_stage_scan(h, pol, p, s, PERCH_SCAN_DOMAIN);
	if (cpu != PERCH_NONE)
		return cpu;

	s->llc = perch_host_llc_set(h, s->target);
	if (s->llc == PERCH_NONE)
		PERCH_FOUND(s, PERCH_BY_NO_LLC, s->target);

	if (perch_host_has_smt(h)) {
		s->idle_cores = perch_host_idle_cores(h, s->llc);
		if (!s->idle_cores && perch_share_llc(h, s->prev, s->target)) {
			cpu = perch_idle_sibling(h, pol, p, s->prev);
			if (cpu != PERCH_NONE)
				PERCH_FOUND(s, PERCH_BY_SIBLING_IDLE, cpu);
		}
	}

	s->budget = perch_host_nr_idle_scan(h, s->llc);
	/*
	 * A budget of 0 says that the LLC is too busy to be worth a look, idle
	 * cores or not.
	 */
	if ((s->budget || perch_stage_unbudgeted(pol)) &&
	    !(pol->rules.empty_mask_fails_early && !perch_set_meets(h, p, s->llc))) {
		cpu = perch_stage_scan(h, pol, p, s, PERCH_SCAN_LLC);
		if (cpu == PERCH_NONE && s->budget)
			cpu = perch_scan_llc(h, pol, p, s);
		if (cpu != PERCH_NONE)
			return cpu;
	}

	if (s->home != PERCH_NONE) {
		s->again = 1;
		return s->target;
	}
	PERCH_FOUND(s, PERCH_BY_TARGET_BUSY, s->target);
}

/*
 * Replaces a choice that is not allowed (the affinity changed while the task
 * slept): returns the first allowed CPU of prev's node, else the first allowed
 * CPU of all (select_fallback_rq); prev when the affinity is empty, which no
 * host should let happen.
 */
PERCH_RARE perch_u32 perch_fallback_cpu(const struct perch_host *h PERCH_GIVEN,
					const struct perch_task *p PERCH_GIVEN, perch_u32 prev)
{
	perch_u32 level, k, sd, node = PERCH_NONE, words = (perch_host_nr_cpus(h) + 63) / 64;

	/* The node is the widest domain below the NUMA levels. */
	for (level = PERCH_ZERO; PERCH_MORE; level++) {
		sd = perch_host_domain(h, prev, level);
		if (sd == PERCH_NONE || perch_host_domain_flags(h, sd) & PERCH_SD_NUMA)
			break;
		node = sd;
	}
	if (node != PERCH_NONE) {
		perch_u32 set = perch_host_domain_set(h, node);
		perch_u32 first = perch_host_set_first(h, set);

		for (k = PERCH_ZERO; k < perch_host_set_words(h, set) && PERCH_MORE; k++) {
			perch_u64 m = perch_host_set_word(h, set, first + k);

			m &= perch_host_allowed_word(h, p, first + k);
			if (m)
				return (first + k) * 64 + __builtin_ctzll(m);
		}
	} else if (perch_allowed(h, p, prev)) {
		return prev; /* it has its node to itself */
	}
	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_allowed_word(h, p, k);

		if (m)
			return k * 64 + __builtin_ctzll(m);
	}
	return prev;
}

/* Begins a search where the wakee ran last. */
PERCH_INLINE void perch_search_begin(struct perch_search *s, const struct perch_wake *wake)
{
	*s = (struct perch_search){
		.this_cpu = wake->this_cpu,
		.prev = wake->prev_cpu,
		.target = wake->prev_cpu,
		.flags = wake->flags,
		.llc = PERCH_NONE,
		.set = PERCH_NONE,
		.done_set = PERCH_NONE,
		.thread = PERCH_NONE,
		.near_prev = PERCH_NONE,
		.near_recent = PERCH_NONE,
		.home = PERCH_NONE,
	};
}

/*
 * Ends a search that has found `cpu`: the hooks of stage last may choose another
 * CPU, and the verdict gets the reason and the count.
 */
PERCH_INLINE perch_u32 perch_search_end(const struct perch_host *h, const struct perch_policy *pol,
					const struct perch_task *p, struct perch_search *s,
					struct perch_verdict *v, perch_u32 cpu)
{
	cpu = perch_stage_last(h, pol, p, s, cpu);
	v->reason = s->reason;
	v->examined = s->examined;
	return cpu;
}

/* 3.4: chooses as the kernel did before PELT (early.h). */
PERCH_APART perch_u32 perch_choose_early(struct perch_host *h, const struct perch_policy *pol,
					 const struct perch_wake *wake, struct perch_task *waker,
					 struct perch_task *p, struct perch_verdict *v)
{
	struct perch_search s;

	perch_search_begin(&s, wake);
	s.target = perch_early_target(h, pol, waker, p, wake);
	if (s.target == PERCH_NONE) {
		v->reason = PERCH_BY_UNSEARCHED;
		return wake->prev_cpu;
	}
	v->target = s.target;
	return perch_search_end(h, pol, p, &s, v, perch_early_search(h, p, &s));
}

/* Chooses as later kernels do: aims at a CPU and searches for an idle one around it. */
PERCH_INLINE perch_u32 perch_choose_near(struct perch_host *h, const struct perch_policy *pol,
					 const struct perch_wake *wake, struct perch_task *waker,
					 struct perch_task *p, struct perch_verdict *v)
{
	struct perch_search s;
	perch_u8 affine = 0;
	perch_u32 cpu;

#ifndef PERCH_ASKS_FIRST
	if (perch_soon(h, pol, wake, waker, p, v))
		return v->cpu;
#endif
	perch_search_begin(&s, wake);
	perch_record_wakee(pol, wake, waker, p);
	if (perch_allowed(h, p, wake->this_cpu)) {
		if (wake->flags & PERCH_WAKE_CURRENT) {
			v->reason = PERCH_BY_HINT;
			return wake->this_cpu;
		}
		affine = !perch_wake_wide(h, wake->this_cpu, waker, p);
	}
	cpu = perch_stage_leave(h, pol, p, wake, v);
	if (cpu != PERCH_NONE)
		return cpu;
	s.examined = v->examined;
	s.prev = s.target = perch_stage_aim(h, pol, p, wake, v);
	if (s.prev != wake->prev_cpu)
		s.home = wake->prev_cpu;
	if (perch_wake_balances(h, pol, wake->this_cpu) &&
	    (!affine || perch_wake_cap(h, p, wake->this_cpu, s.prev))) {
		v->reason = PERCH_BY_WAKE_BALANCE;
		return perch_slow_path(h, pol, p, wake, v);
	}
	if (affine)
		s.target = perch_wake_affine(h, pol, p, wake, s.prev);
	if (!(waker->flags & PERCH_TASK_PERCPU_KTHREAD))
		s.flags &= ~PERCH_WAKE_IN_TASK;
	v->target = s.target;
	cpu = perch_search_idle(h, pol, p, &s);
	if (s.again) {
		/*
		 * Search once more, as if no hook had aimed elsewhere, and
		 * without the earlier candidates.
		 */
		s.prev = s.target = v->target = s.home;
		s.home = s.near_prev = s.near_recent = s.thread = s.done_set = PERCH_NONE;
		perch_stage_home(v);
		cpu = perch_search_idle(h, pol, p, &s);
	}
	if (pol->rules.recent_when_taken && affine)
		waker->recent_cpu = wake->this_cpu;
	return perch_search_end(h, pol, p, &s, v, cpu);
}

/*
 * Chooses the CPU, which perch_select() then checks against the affinity; fills
 * reason and target.
 */
PERCH_INLINE perch_u32 perch_choose(struct perch_host *h, const struct perch_policy *pol,
				    const struct perch_wake *wake, struct perch_task *waker,
				    struct perch_task *p, struct perch_verdict *v)
{
	v->examined = 0;
	v->cache = PERCH_CACHE_NONE;
	v->pad = 0;
	v->target = wake->prev_cpu;
	if (p->nr_allowed == 1) {
		v->reason = PERCH_BY_AFFINITY;
		/* The task is nearly always there already. */
		if (perch_allowed(h, p, wake->prev_cpu))
			return wake->prev_cpu;
		return perch_fallback_cpu(h, p, wake->prev_cpu);
	}
	if (wake->flags & (PERCH_WAKE_FORK | PERCH_WAKE_EXEC)) {
		v->reason = PERCH_BY_SLOW_PATH;
		if (pol->rules.early_path)
			return perch_early_slow(h, pol, p, wake, v);
		return perch_slow_path(h, pol, p, wake, v);
	}
	if (pol->rules.early_path)
		return perch_choose_early(h, pol, wake, waker, p, v);
	return perch_choose_near(h, pol, wake, waker, p, v);
}

PERCH_INLINE void perch_select(struct perch_host *h, const struct perch_policy *pol,
			       const struct perch_wake *wake, struct perch_task *waker,
			       struct perch_task *p, struct perch_verdict *v)
{
	v->cpu = perch_choose(h, pol, wake, waker, p, v);
	if (!perch_allowed(h, p, v->cpu)) {
		v->cpu = perch_fallback_cpu(h, p, wake->prev_cpu);
		v->reason = PERCH_BY_FALLBACK;
	}
}

#endif
