/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cache mechanism as a follower: it tells the mechanism where the threads of
 * a process run, and the base which task had better stay in the last-level cache
 * that its process prefers.
 */
#ifndef PERCH_HOME_H
#define PERCH_HOME_H

#include "base/steal.h"
#include "follow/homeward.h"

static inline int home_init(void)
{
	return free_all_slots();
}

static inline void home_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	join_process(p, args->fork);
}

static inline void home_exit_task(struct task_struct *p)
{
	leave_process(p);
}

static inline void home_begin_memory(struct perch_memory __arena *m, const struct task_struct *p,
				     perch_u32 cpu)
{
	m->process = find_slot(p);
	m->llc = m->llc_before = PERCH_NONE;
}

static inline bool home_draws(const struct task_struct *p, const struct perch_memory __arena *m)
{
	perch_u32 slot = same_slot(m->process, p);

	return slot && process_at(slot)->pref_cpu != PERCH_NONE;
}

static inline void home_wakee(struct perch_task *t, struct task_struct *p,
			      const struct perch_memory __arena *m)
{
	t->process = process_at(same_slot(m->process, p));
}

static inline void home_chosen(const struct perch_verdict *v, perch_u32 cpu)
{
	note_step(v, cpu);
}

static inline void home_running(struct task_struct *p, struct perch_cpu __arena *c, perch_u32 cpu)
{
	thread_starts(p, cpu);
}

static inline void home_tick(struct task_struct *p, perch_u32 cpu, perch_u64 ran)
{
	if (thread_ticks(cpu, ran) && sends_home())
		look_homeward(p, cpu);
}

/* A task that the follower `misfit` sends to a larger CPU is not asked. */
static inline bool home_dispatch(struct task_struct *prev, perch_u32 cpu, bool runs_on)
{
	return runs_on && !(sends_home() && goes_home(prev, cpu));
}

static inline void home_charged(perch_u32 cpu, perch_u64 ran)
{
	thread_ran(cpu, ran);
}

static inline void home_stopping(struct task_struct *p, perch_u32 cpu, bool runnable, perch_u64 ran)
{
	thread_stops(cpu, ran);
}

static inline bool home_keeps(perch_u32 cpu, perch_u32 from, perch_u64 now)
{
	if (!other_llc(cpu, from) || !first_stays(cpu, from))
		return false;
	count(cpu, PERCH_EV_CACHE_KEPT);
	return true;
}

static inline bool home_suits(const struct task_struct *p, perch_u32 cpu, perch_u32 from)
{
	return !stays(p, from, cpu);
}

/* The tasks that had better stay in their LLC stay for a turn or two, not longer. */
static inline enum perch_pull home_pull(perch_u32 cpu, perch_u32 from)
{
	bool found;

	if (!other_llc(cpu, from))
		return PERCH_PULL_NOBODY;
	found = pull_one(cpu, from, PERCH_FOLLOWER_home);
	if (!found && cpu_state(from)->refused++ < PERCH_REFUSALS) {
		count(cpu, PERCH_EV_CACHE_KEPT);
		return PERCH_PULL_KEEP;
	}
	cpu_state(from)->refused = 0;
	return found ? PERCH_PULL_MOVED : PERCH_PULL_NOBODY;
}

static inline perch_u32 home_turn_cpu(struct perch_cpu __arena *c, perch_u32 nr, perch_u32 queued)
{
	if (nr < 2)
		c->refused = 0;
	return queued;
}

static inline void home_turn_llc(perch_u32 number, perch_u32 util, perch_u32 nr, bool some_idle)
{
	if (number < config()->topology.nr_llcs)
		note_load(number, util, nr, some_idle);
}

static const struct perch_follower home_follower = {
	.init = home_init,
	.init_task = home_init_task,
	.exit_task = home_exit_task,
	.begin_memory = home_begin_memory,
	.draws = home_draws,
	.wakee = home_wakee,
	.chosen = home_chosen,
	.running = home_running,
	.tick = home_tick,
	.dispatch = home_dispatch,
	.charged = home_charged,
	.stopping = home_stopping,
	.keeps = home_keeps,
	.pull = home_pull,
	.suits = home_suits,
	.turn_cpu = home_turn_cpu,
	.turn_llc = home_turn_llc,
};

#endif
