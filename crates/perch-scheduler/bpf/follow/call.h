/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls the followers' hooks: each function of base/hooks.h is the list of
 * followers.def, expanded for one hook. The tables are constant, so the compiler
 * calls the hooks directly and drops those that a follower does not have. The
 * verifier drops those of a follower that is off.
 */
#ifndef PERCH_CALL_H
#define PERCH_CALL_H

#include "band/follow.h"
#include "follow/above.h"
#include "follow/detail.h"
#include "follow/group.h"
#include "follow/home.h"
#include "follow/limit.h"
#include "follow/list.h"
#include "follow/misfit.h"
#include "follow/move.h"
#include "follow/offline.h"
#include "follow/part.h"
#include "follow/prefer.h"
#include "follow/steer.h"
#include "follow/util.h"
#include "follow/waits.h"

/*
 * True if any of the followers is on whose condition in followers.def begins
 * with `follows`. A hook that several of them have asks this first, or a CPU
 * would pay for each of them while all are off.
 */
static __always_inline bool any_follows(void)
{
	return perch_config.follows;
}

static __always_inline void follow_offline(perch_u32 cpu)
{
#define FOLLOWER(name, on)                   \
	if (name##_follower.offline && (on)) \
		name##_follower.offline(cpu);
#include "followers.def"
}

static __always_inline int follow_init(void)
{
	int err = 0;

#define FOLLOWER(name, on)                        \
	if (!err && name##_follower.init && (on)) \
		err = name##_follower.init();
#include "followers.def"
	return err;
}

static __always_inline int follow_init_cpu(perch_u32 cpu)
{
	int err = 0;

#define FOLLOWER(name, on)                            \
	if (!err && name##_follower.init_cpu && (on)) \
		err = name##_follower.init_cpu(cpu);
#include "followers.def"
	return err;
}

static __always_inline void follow_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
#define FOLLOWER(name, on)                     \
	if (name##_follower.init_task && (on)) \
		name##_follower.init_task(p, args);
#include "followers.def"
}

static __always_inline void follow_exit_task(struct task_struct *p)
{
#define FOLLOWER(name, on)                     \
	if (name##_follower.exit_task && (on)) \
		name##_follower.exit_task(p);
#include "followers.def"
}

static __always_inline void follow_enable(struct task_struct *p)
{
#define FOLLOWER(name, on)                  \
	if (name##_follower.enable && (on)) \
		name##_follower.enable(p);
#include "followers.def"
}

static __always_inline void follow_runnable(struct task_struct *p, perch_u32 cpu,
					    perch_u64 enq_flags)
{
#define FOLLOWER(name, on)                    \
	if (name##_follower.runnable && (on)) \
		name##_follower.runnable(p, cpu, enq_flags);
#include "followers.def"
}

static __always_inline void follow_begin_memory(struct perch_memory __arena *m,
						const struct task_struct *p, perch_u32 cpu)
{
#define FOLLOWER(name, on)                        \
	if (name##_follower.begin_memory && (on)) \
		name##_follower.begin_memory(m, p, cpu);
#include "followers.def"
}

static __always_inline bool follow_bars(struct task_struct *p)
{
#define FOLLOWER(name, on)                                           \
	if (name##_follower.bars && (on) && name##_follower.bars(p)) \
		return true;
#include "followers.def"
	return false;
}

static __always_inline bool follow_hold(struct task_struct *p, perch_u64 enq_flags)
{
#define FOLLOWER(name, on)                                                      \
	if (name##_follower.hold && (on) && name##_follower.hold(p, enq_flags)) \
		return true;
#include "followers.def"
	return false;
}

static __always_inline bool follow_sched_idle(struct task_struct *p)
{
#define FOLLOWER(name, on)                                                       \
	if (name##_follower.sched_idle && (on) && name##_follower.sched_idle(p)) \
		return true;
#include "followers.def"
	return false;
}

static __always_inline bool follow_draws(const struct task_struct *p,
					 const struct perch_memory __arena *m)
{
	const bool follows = any_follows();

#define FOLLOWER(name, on)                                                \
	if (name##_follower.draws && (on) && name##_follower.draws(p, m)) \
		return true;
#include "followers.def"
	return false;
}

static __always_inline void follow_wakee(struct perch_task *t, struct task_struct *p,
					 const struct perch_memory __arena *m)
{
	const bool follows = any_follows();

#define FOLLOWER(name, on)                 \
	if (name##_follower.wakee && (on)) \
		name##_follower.wakee(t, p, m);
#include "followers.def"
}

static __always_inline void follow_asked(struct perch_host *h, const struct perch_task *t,
					 const struct perch_verdict *v, perch_u32 cpu)
{
#define FOLLOWER(name, on)                 \
	if (name##_follower.asked && (on)) \
		name##_follower.asked(h, t, v, cpu);
#include "followers.def"
}

static __always_inline void follow_chosen(const struct perch_verdict *v, perch_u32 cpu)
{
#define FOLLOWER(name, on)                  \
	if (name##_follower.chosen && (on)) \
		name##_follower.chosen(v, cpu);
#include "followers.def"
}

static __always_inline bool follow_enqueue(struct task_struct *p, perch_u64 enq_flags)
{
#define FOLLOWER(name, on)                                                            \
	if (name##_follower.enqueue && (on) && name##_follower.enqueue(p, enq_flags)) \
		return true;
#include "followers.def"
	return false;
}

static __always_inline perch_u64 follow_stand(struct task_struct *p, perch_u32 cpu, perch_u64 vtime,
					      perch_u64 enq_flags)
{
#define FOLLOWER(name, on)                 \
	if (name##_follower.stand && (on)) \
		vtime = name##_follower.stand(p, cpu, vtime, enq_flags);
#include "followers.def"
	return vtime;
}

static __always_inline void follow_running(struct task_struct *p, struct perch_cpu __arena *c,
					   perch_u32 cpu)
{
	const bool follows = any_follows();

#define FOLLOWER(name, on)                   \
	if (name##_follower.running && (on)) \
		name##_follower.running(p, c, cpu);
#include "followers.def"
}

static __always_inline void follow_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	const bool follows = any_follows();

#define FOLLOWER(name, on)                \
	if (name##_follower.tick && (on)) \
		name##_follower.tick(p, cpu, ran);
#include "followers.def"
}

static __always_inline bool follow_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on)
{
	const bool follows = any_follows();

#define FOLLOWER(name, on)                    \
	if (name##_follower.dispatch && (on)) \
		runs_on = name##_follower.dispatch(prev, cpu, runs_on);
#include "followers.def"
	return runs_on;
}

static __always_inline void follow_charged(perch_u32 cpu, perch_u64 ran)
{
#define FOLLOWER(name, on)                   \
	if (name##_follower.charged && (on)) \
		name##_follower.charged(cpu, ran);
#include "followers.def"
}

static __always_inline void follow_left(const struct perch_cpu __arena *c, perch_u32 cpu)
{
#define FOLLOWER(name, on)                \
	if (name##_follower.left && (on)) \
		name##_follower.left(c, cpu);
#include "followers.def"
}

static __always_inline void follow_stopping(struct task_struct *p, perch_u32 cpu, bool runnable,
					    perch_u64 ran)
{
	const bool follows = any_follows();

#define FOLLOWER(name, on)                    \
	if (name##_follower.stopping && (on)) \
		name##_follower.stopping(p, cpu, runnable, ran);
#include "followers.def"
}

static __always_inline bool follow_idle(perch_u32 cpu)
{
#define FOLLOWER(name, on)                                             \
	if (name##_follower.idle && (on) && name##_follower.idle(cpu)) \
		return true;
#include "followers.def"
	return false;
}

static __always_inline bool follow_keeps(perch_u32 cpu, perch_u32 from, perch_u64 now)
{
	const bool follows = any_follows();

#define FOLLOWER(name, on)                                                          \
	if (name##_follower.keeps && (on) && name##_follower.keeps(cpu, from, now)) \
		return true;
#include "followers.def"
	return false;
}

static __always_inline enum perch_pull follow_pull(perch_u32 cpu, perch_u32 from)
{
	const bool follows = any_follows();
	enum perch_pull done = PERCH_PULL_NOBODY;

#define FOLLOWER(name, on)                                             \
	if (done == PERCH_PULL_NOBODY && name##_follower.pull && (on)) \
		done = name##_follower.pull(cpu, from);
#include "followers.def"
	return done;
}

static __always_inline bool follow_suits(const struct task_struct *p, perch_u32 cpu, perch_u32 from,
					 perch_u32 who)
{
#define FOLLOWER(name, on)                                                 \
	if (name##_follower.suits && who == PERCH_FOLLOWER_##name && (on)) \
		return name##_follower.suits(p, cpu, from);
#include "followers.def"
	return true;
}

static __always_inline void follow_turn(perch_u64 now)
{
#define FOLLOWER(name, on)                \
	if (name##_follower.turn && (on)) \
		name##_follower.turn(now);
#include "followers.def"
}

static __always_inline perch_u32 follow_turn_cpu(struct perch_cpu __arena *c, perch_u32 nr)
{
	perch_u32 queued = nr;

#define FOLLOWER(name, on)                    \
	if (name##_follower.turn_cpu && (on)) \
		queued = name##_follower.turn_cpu(c, nr, queued);
#include "followers.def"
	return queued;
}

static __always_inline void follow_turn_llc(perch_u32 number, perch_u32 util, perch_u32 nr,
					    bool some_idle)
{
#define FOLLOWER(name, on)                    \
	if (name##_follower.turn_llc && (on)) \
		name##_follower.turn_llc(number, util, nr, some_idle);
#include "followers.def"
}

#endif
