/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cpu.max: a group may use so much time in each period, on all CPUs together.
 * The kernel enforces this for its fair class only; here this follower does.
 *
 * A group that has a quota holds what is left of it in `left_ns`. A CPU that
 * starts one of its tasks takes a grant of a few ms from there, charges the task
 * to the grant, and gives back what is left of it when the task stops. The CPU
 * that takes the last of it marks the group throttled. From then on the group's
 * tasks go to a queue of the group, in which no CPU looks: those that wake, those
 * that waited (sweep()), and those that run, at the first tick at which their
 * grant is used up. So a task can run for a tick more than its group has left.
 * The group then owes that time, and the next periods bring less.
 *
 * A task is held only where it holds nothing of the kernel's for which others
 * may wait (`free` in its record): it was preempted in user mode, or it sleeps so
 * that a signal could wake it. Any other goes on until that is so. Linux does the
 * same since 6.18, where a task is throttled on its way to user mode. Tasks that
 * sleep for a disk most of the time may get there seldom, so they are held as well
 * while the group owes more than PERCH_OWES_NS.
 *
 * The timer brings new time, and moves tasks from the group's queue back to those
 * of their CPUs, as many as the group has grants for. What a CPU gave back while
 * the group was throttled comes out the same way.
 *
 * A group may be limited by several groups above it as well: each grant is one of
 * all of them, and one that is throttled is enough to hold a task.
 *
 * A task must not wait for longer than the kernel bears, which throws a scheduler
 * out after 30 s. One that its group has held for 8 s, and 16 at most until the
 * timer sees it, runs until the next tick and is not charged. That happens only
 * where a quota leaves each task of the group less than a tick in that time.
 *
 * Tasks of the real-time band are not limited, as in the kernel.
 */
#ifndef PERCH_LIMIT_H
#define PERCH_LIMIT_H

#include "base/queue.h"
#include "follow/group.h"
#include "follow/user.h"
#include "follow/waits.h"

/* What a CPU takes at once: the kernel's sched_cfs_bandwidth_slice_us. */
#define PERCH_GRANT_NS 5000000ll
/* And what it takes although less is left. */
#define PERCH_LEAST_GRANT_NS 500000ll

#define PERCH_OWES_NS 100000000ll

/* Groups that are throttled. While there is none, no task is asked for its group here. */
static perch_u32 nr_throttled;
/* How often a group was throttled: a CPU whose `swept` differs has to look at its queue. */
static perch_u32 nr_reached;
/* Bits that are set in config()->limits. */
static perch_u32 nr_limits;

/* The next group from this one on upwards that is throttled; 0: none. */
static __attribute__((noinline)) perch_u32 throttled_above(perch_u32 slot)
{
	while (slot && PERCH_MORE) {
		if (!group_at(slot)->limited)
			return 0;
		if (group_at(slot)->throttled)
			return slot;
		slot = group_at(slot)->parent;
	}
	return 0;
}

/* The group that keeps the task, which does not run, from running; 0: none. */
static __attribute__((noinline)) perch_u32 held_by(struct task_struct *p)
{
	struct perch_group_task *t = group_task(p);
	perch_u32 slot;

	if (!t || t->passes)
		return 0;
	slot = throttled_above(t->slot);
	if (slot && !t->free && (!t->sleeps || group_at(slot)->left_ns > -PERCH_OWES_NS))
		return 0;
	return slot;
}

static inline perch_u32 barred_by(struct task_struct *p)
{
	return nr_throttled ? held_by(p) : 0;
}

static __attribute__((noinline)) int set_throttled(perch_u32 slot, perch_u32 on)
{
	if (__sync_lock_test_and_set(&group_at(slot)->throttled, on) == on)
		return 0;
	if (on) {
		__sync_fetch_and_add(&nr_throttled, 1);
		__sync_fetch_and_add(&nr_reached, 1);
		count_group(PERCH_EV_LIMIT_REACHED);
	} else {
		__sync_fetch_and_add(&nr_throttled, -1);
	}
	settle(slot);
	return 0;
}

/* Adds time to what is left of the quotas of the group and of those above. */
static __attribute__((noinline)) int add_left(perch_u32 slot, perch_s64 ns)
{
	while (slot && PERCH_MORE) {
		struct perch_group_slot __arena *g = group_at(slot);

		if (!g->limited)
			break;
		if (g->quota_ns && __sync_fetch_and_add(&g->left_ns, ns) + ns <= 0)
			set_throttled(slot, 1);
		slot = g->parent;
	}
	return 0;
}

/* Takes a grant for the running task: no more than each of its groups has left. */
static __attribute__((noinline)) int take_grant(perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_s64 ns = PERCH_GRANT_NS;
	perch_u32 slot = c->group;

	while (slot && PERCH_MORE) {
		struct perch_group_slot __arena *g = group_at(slot);

		if (!g->limited)
			break;
		if (g->quota_ns && g->left_ns < ns)
			ns = g->left_ns;
		slot = g->parent;
	}
	if (ns < PERCH_LEAST_GRANT_NS)
		ns = PERCH_LEAST_GRANT_NS;
	add_left(c->group, -ns);
	c->granted_ns += ns;
	return 0;
}

/* The task is in its group's queue from now on, or not any more. */
static inline void note_held(struct perch_group_task *t, perch_u32 cpu)
{
	if (__sync_lock_test_and_set(&t->held, cpu + 1))
		return;
	__sync_fetch_and_add(&cpu_state(cpu)->held, 1);
	__sync_fetch_and_add(&nr_held, 1);
	count(cpu, PERCH_EV_LIMIT_HELD);
}

static inline void note_released(struct perch_group_task *t)
{
	perch_u32 was = __sync_lock_test_and_set(&t->held, 0);

	if (!was)
		return;
	__sync_fetch_and_add(&cpu_state(was - 1)->held, -1);
	__sync_fetch_and_add(&nr_held, -1);
}

/* What the virtual time of a task is ahead of the clock by, as a lag of any size. */
static inline perch_u64 as_lag(perch_u64 stored, perch_u32 cpu)
{
	return is_lag(stored) ? stored : stored - cpu_state(cpu)->clock;
}

/* Moves the tasks that may not run now from the CPU's queue to those of their groups. */
static __attribute__((noinline)) int sweep(perch_u32 cpu)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	cpu_state(cpu)->swept = nr_reached;
	if (!bpf_iter_scx_dsq_new(&it, cpu, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			perch_u32 slot = barred_by(p);
			struct perch_group_task *t;

			if (!slot)
				continue;
			scx_bpf_dsq_move_set_vtime(&it, as_lag(p->scx.dsq_vtime, cpu));
			if (!scx_bpf_dsq_move(&it, p, group_queue(slot), 0))
				continue;
			t = group_task(p);
			if (t)
				note_held(t, scx_bpf_task_cpu(p));
			note_limited_wait(p);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

static inline void sweep_if_due(perch_u32 cpu)
{
	if (nr_throttled && cpu_state(cpu)->swept != nr_reached)
		sweep(cpu);
}

/*
 * Moves up to `most` tasks from the group's queue to those of their CPUs, or to
 * that of another of their groups which is throttled.
 */
static __attribute__((noinline)) int release(perch_u32 slot, perch_u32 most)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, group_queue(slot), 0)) {
		while (most && (p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			perch_u32 cpu = scx_bpf_task_cpu(p), other = barred_by(p);
			struct perch_group_task *t = group_task(p);

			if (other == slot)
				break;
			if (other) {
				scx_bpf_dsq_move(&it, p, group_queue(other), 0);
				continue;
			}
			if (!hand_over(&it, p, cpu,
				       vtime_of(p->scx.dsq_vtime, cpu_state(cpu)->clock)))
				continue;
			if (t)
				note_released(t);
			most--;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* Lets tasks run that the group has held for too long. */
static __attribute__((noinline)) int let_pass(perch_u32 slot)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, group_queue(slot), 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			struct perch_group_task *t = group_task(p);
			perch_u32 cpu = scx_bpf_task_cpu(p);

			if (p->scx.runnable_at >= patient_since || !t)
				continue;
			t->passes = 1;
			scx_bpf_dsq_move_set_slice(&it, 1);
			if (!hand_over(&it, p, cpu, cpu_state(cpu)->clock))
				continue;
			note_released(t);
			count_group(PERCH_EV_LIMIT_PASSED);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* Brings the group the time of the periods that have begun since the last turn. */
static inline void renew(struct perch_group_slot __arena *g, perch_u64 now)
{
	perch_u64 passed = now - g->renewed_ns, n;
	perch_s64 most = g->quota_ns + g->burst_ns, left;

	/* A limit that was set since this turn of the timer began is younger than the turn. */
	if ((perch_s64)passed < (perch_s64)g->period_ns)
		return;
	n = passed / (g->period_ns ?: 1);
	g->renewed_ns += n * g->period_ns;
	left = __sync_fetch_and_add(&g->left_ns, n * g->quota_ns) + n * g->quota_ns;
	if (left > most)
		__sync_fetch_and_add(&g->left_ns, most - left);
}

static inline bool is_limited(perch_u32 slot)
{
	return config()->limits[(slot - 1) / 64] >> ((slot - 1) % 64) & 1;
}

/* The timer looks at a group only while its bit is set. */
static inline void mark_limited(perch_u32 slot, bool on)
{
	perch_u64 PERCH_AS *word = &config()->limits[(slot - 1) / 64];
	perch_u64 bit = 1ull << ((slot - 1) % 64);

	if (is_limited(slot) == on)
		return;
	if (on)
		__sync_fetch_and_or(word, bit);
	else
		__sync_fetch_and_and(word, ~bit);
	__sync_fetch_and_add(&nr_limits, on ? 1 : -1);
}

static __attribute__((noinline)) int look_at_limit(perch_u32 slot, perch_u64 now, perch_u32 late)
{
	struct perch_group_slot __arena *g = group_at(slot);
	perch_s32 held;

	if (g->quota_ns)
		renew(g, now);
	if (g->throttled && (!g->quota_ns || g->left_ns > 0))
		set_throttled(slot, 0);
	held = scx_bpf_dsq_nr_queued(group_queue(slot));
	if (held > 0 && !g->throttled)
		release(slot, g->quota_ns ? g->left_ns / PERCH_GRANT_NS + 1 : held);
	else if (held > 0 && late)
		let_pass(slot);
	else if (held <= 0 && !g->quota_ns)
		mark_limited(slot, false);
	return 0;
}

static __attribute__((noinline)) int look_at_limits(perch_u64 now)
{
	static perch_u64 late_since;
	perch_u32 late = late_since != patient_since, words = (config()->nr_groups + 63) / 64, w;

	late_since = patient_since;
	for (w = PERCH_ZERO; w < words && can_loop; w++) {
		perch_u64 m = config()->limits[w];

		while (m && PERCH_MORE) {
			look_at_limit(w * 64 + __builtin_ctzll(m) + 1, now, late);
			m &= m - 1;
		}
	}
	return 0;
}

/* True if the group, or one above it, has a quota. */
static __attribute__((noinline)) perch_u32 has_quota(perch_u32 slot)
{
	while (slot && PERCH_MORE) {
		if (group_at(slot)->quota_ns)
			return 1;
		slot = group_at(slot)->parent;
	}
	return 0;
}

/* No quota is so long: the kernel writes the largest number for "max". */
#define PERCH_QUOTA_MOST_US (1ull << 43)

/* The group in this slot, which is alive, gets this cpu.max; a quota of 0 is none. */
static inline void limit_slot(perch_u32 slot, perch_u64 period_us, perch_u64 quota_ns,
			      perch_u64 burst_us)
{
	struct perch_group_slot __arena *g = group_at(slot);
	perch_u32 i;

	if (!quota_ns && !g->quota_ns) {
		g->limited = has_quota(slot);
		return;
	}
	g->period_ns = period_us * 1000;
	g->burst_ns = burst_us * 1000;
	g->renewed_ns = bpf_ktime_get_ns();
	__sync_lock_test_and_set(&g->left_ns, (perch_s64)quota_ns);
	g->quota_ns = quota_ns;
	mark_limited(slot, true);
	for (i = PERCH_ZERO; i < config()->nr_groups && can_loop; i++)
		if (group_at(i + 1)->refs)
			group_at(i + 1)->limited = has_quota(i + 1);
}

/*
 * Ends the load: a group without a slot has a cpu.max, to which nobody would hold its tasks. The
 * kernel's own scheduler does.
 */
static inline void leave_limit(struct cgroup *cgrp)
{
	static char why[] = "cgroup %s has a cpu.max, and the table of %llu groups is full: "
			    "groups has to be larger";
	unsigned long long data[] = {(unsigned long long)BPF_CORE_READ(cgrp, kn, name),
				     config()->nr_groups};

	scx_bpf_exit_bstr(0, why, data, sizeof(data));
}

static inline void limit_group(struct cgroup *cgrp, perch_u64 period_us, perch_u64 quota_us,
			       perch_u64 burst_us)
{
	struct perch_cgroup_slot *held = bpf_cgrp_storage_get(&cgroups, cgrp, 0, 0);
	perch_u64 quota_ns = quota_us < PERCH_QUOTA_MOST_US ? quota_us * 1000 : 0;

	if (held && held->own)
		limit_slot(held->slot, period_us, quota_ns, burst_us);
	else if (quota_ns)
		leave_limit(cgrp);
}

/* The cgroup is deleted: none of its tasks runs any more. */
static inline void unlimit_group(struct cgroup *cgrp)
{
	struct perch_cgroup_slot *held = bpf_cgrp_storage_get(&cgroups, cgrp, 0, 0);

	if (!held || !held->own || !is_limited(held->slot))
		return;
	group_at(held->slot)->quota_ns = 0;
	set_throttled(held->slot, 0);
	mark_limited(held->slot, false);
}

static inline bool limit_bars(struct task_struct *p)
{
	return barred_by(p);
}

static inline bool limit_hold(struct task_struct *p, perch_u64 enq_flags)
{
	perch_u32 slot = barred_by(p), cpu = scx_bpf_task_cpu(p);
	struct perch_group_task *t;

	if (!slot)
		return false;
	keep_vtime(p, as_lag(p->scx.dsq_vtime, cpu));
	t = group_task(p);
	if (t)
		note_held(t, cpu);
	note_limited_wait(p);
	insert(p, group_queue(slot), slice_for(1), enq_flags);
	return true;
}

static __attribute__((noinline)) int begin_limited(struct task_struct *p, perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	c->granted_ns = 0;
	if (c->band_prio)
		c->limited = 0;
	else if (c->limited == PERCH_LIMITED && !(nr_throttled && throttled_above(c->group)))
		take_grant(cpu);
	return 0;
}

static inline void limit_running(struct task_struct *p, struct perch_cpu __arena *c, perch_u32 cpu)
{
	if (c->limited)
		begin_limited(p, cpu);
}

static __attribute__((noinline)) int tick_limited(struct task_struct *p, perch_u32 cpu,
						  perch_u64 ran)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 regs = user_regs();
	struct perch_group_task *t = group_task(p);

	c->granted_ns -= ran;
	if (t && regs)
		t->user_regs = regs;
	if (c->limited == PERCH_LIMITED && c->granted_ns > 0)
		return 0;
	if (!nr_throttled || !throttled_above(c->group))
		take_grant(cpu);
	else if (regs)
		set_slice(p, 0);
	return 0;
}

static inline void limit_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	if (cpu_state(cpu)->limited)
		tick_limited(p, cpu, ran);
}

/* True if the task, which runs, has to stop here. */
static __attribute__((noinline)) bool stops(struct task_struct *p)
{
	struct perch_group_task *t = group_task(p);

	return t && throttled_above(t->slot) && preempted_in_user_mode(p, t->user_regs);
}

static inline bool limit_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on)
{
	sweep_if_due(cpu);
	return runs_on && !(nr_throttled && stops(prev));
}

static inline void limit_charged(perch_u32 cpu, perch_u64 ran)
{
	if (cpu_state(cpu)->limited)
		cpu_state(cpu)->granted_ns -= ran;
}

static __attribute__((noinline)) int end_limited(struct task_struct *p, perch_u32 cpu,
						 perch_u32 runnable, perch_u64 ran)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	struct perch_group_task *t = group_task(p);

	if (t) {
		t->sleeps = !runnable;
		if (runnable)
			t->free = preempted_in_user_mode(p, t->user_regs);
		else
			t->free = !(p->__state & TASK_UNINTERRUPTIBLE);
	}
	if (c->limited == PERCH_LIMITED)
		add_left(c->group, c->granted_ns - (perch_s64)ran);
	c->granted_ns = 0;
	c->limited = 0;
	return 0;
}

static inline void limit_stopping(struct task_struct *p, perch_u32 cpu, bool runnable,
				  perch_u64 ran)
{
	if (cpu_state(cpu)->limited)
		end_limited(p, cpu, runnable, ran);
}

static inline bool limit_keeps(perch_u32 cpu, perch_u32 from, perch_u64 now)
{
	sweep_if_due(from);
	return false;
}

static inline enum perch_pull limit_pull(perch_u32 cpu, perch_u32 from)
{
	sweep_if_due(from);
	return PERCH_PULL_NOBODY;
}

/* Lets go the tasks of the CPU's run queue that a group holds. */
static __attribute__((noinline)) int let_go(perch_u32 slot, perch_u32 cpu)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, group_queue(slot), 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			struct perch_group_task *t = group_task(p);

			if (scx_bpf_task_cpu(p) != cpu ||
			    !scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | cpu, 0))
				continue;
			if (t)
				note_released(t);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* The tasks wake on other CPUs, where enqueue holds them again. */
static inline void limit_offline(perch_u32 cpu)
{
	perch_u32 words = (config()->nr_groups + 63) / 64, w;

	if (!nr_limits)
		return;
	for (w = PERCH_ZERO; w < words && can_loop; w++) {
		perch_u64 m = config()->limits[w];

		while (m && PERCH_MORE) {
			let_go(w * 64 + __builtin_ctzll(m) + 1, cpu);
			m &= m - 1;
		}
	}
}

static inline void limit_turn(perch_u64 now)
{
	if (nr_limits)
		look_at_limits(now);
}

static const struct perch_follower limit_follower = {
	.offline = limit_offline,
	.bars = limit_bars,
	.hold = limit_hold,
	.running = limit_running,
	.tick = limit_tick,
	.dispatch = limit_dispatch,
	.charged = limit_charged,
	.stopping = limit_stopping,
	.keeps = limit_keeps,
	.pull = limit_pull,
	.turn = limit_turn,
};

#endif
