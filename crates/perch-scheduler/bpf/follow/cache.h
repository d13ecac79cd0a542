/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The cache mechanism's calls (policy/include/perch/cache.h): where a process
 * runs, how full the last-level caches are, and which task had better stay in
 * the one that its process prefers.
 */
#ifndef PERCH_CACHE_CALLS_H
#define PERCH_CACHE_CALLS_H

#include "follow/list.h"
#include "follow/process.h"
#include "follow/util.h"

/*
 * The number of turns of the timer in a row at which an idle CPU of another LLC
 * leaves a queue alone because the tasks there had better stay. After that it
 * takes one: no near cache is worth a longer wait.
 */
#define PERCH_REFUSALS 2

/*
 * Mode `perch` redirects wake-ups and needs the load of an LLC at once; `upstream`
 * redirects none and moves running tasks instead (homeward.h).
 */
static inline bool redirects(void)
{
	return perch_config.cache == PERCH_PERCH;
}

static inline bool sends_home(void)
{
	return perch_config.cache == PERCH_UPSTREAM;
}

/* The task runs in this LLC now, and did not before. */
static __attribute__((noinline)) void change_llc(struct perch_memory __arena *m, perch_u32 cpu)
{
	perch_u32 llc = cpu_state(cpu)->llc;
	perch_u64 now = scx_bpf_now();

	if (m->llc != PERCH_NONE && m->llc_before == llc && now - m->llc_since_ns < PERCH_BOUNCE_NS)
		count(cpu, PERCH_EV_BOUNCED);
	m->llc_before = m->llc;
	m->llc = llc;
	m->llc_since_ns = now;
}

static inline void thread_starts(const struct task_struct *p, perch_u32 cpu)
{
	struct perch_memory __arena *m = own_memory(p, cpu);
	struct perch_cpu __arena *c = cpu_state(cpu);

	/* A CPU that came online since the program was loaded has no records. */
	c->process = cpu < config()->topology.nr_cpus ? same_slot(m->process, p) : 0;
	if (m->llc != c->llc)
		change_llc(m, cpu);
}

/* Charges the process of the thread on this CPU for `ran` ns. */
static inline void thread_ran(perch_u32 cpu, perch_u64 ran)
{
	perch_u32 slot = cpu_state(cpu)->process;

	if (slot)
		perch_cache_account(0, process_at(slot), cpu, scx_bpf_now(), ran);
}

static inline void thread_stops(perch_u32 cpu, perch_u64 ran)
{
	thread_ran(cpu, ran);
	cpu_state(cpu)->process = 0;
}

/* Threads of the process that are on a CPU now. */
static inline perch_u32 running_threads(perch_u32 slot)
{
	perch_u32 cpu, nr = PERCH_ZERO;

	for (cpu = PERCH_ZERO; cpu < config()->topology.nr_cpus && can_loop; cpu++)
		if (cpu_state(cpu)->process == slot)
			nr++;
	return nr;
}

/*
 * At a tick: once an epoch, one of the CPUs that run a process settles where
 * the process wants to be. True if this CPU did.
 */
static inline bool thread_ticks(perch_u32 cpu, perch_u64 ran)
{
	perch_u32 slot = cpu_state(cpu)->process;
	struct perch_process __arena *process;
	perch_u64 now = scx_bpf_now();
	struct perch_question *q;

	if (!slot)
		return false;
	process = process_at(slot);
	perch_cache_account(0, process, cpu, now, ran);
	q = question();
	if (!q || !perch_cache_due(0, &q->policy, process, cpu, now))
		return false;
	process->nr_running = running_threads(slot);
	perch_cache_scan(&q->host, &q->policy, process, cpu, now);
	return true;
}

/*
 * Counts what the mechanism did with a wake-up. A wakee that was sent to
 * another LLC counts among its runnable tasks from now on, not from the timer's
 * next turn: otherwise all tasks that wake within a turn would rush into an LLC
 * that has room for one.
 */
static inline void note_step(const struct perch_verdict *v, perch_u32 cpu)
{
	if (v->cache == PERCH_CACHE_NONE || v->cache >= PERCH_NR_CACHE_STEPS)
		return;
	count(cpu, PERCH_EV_CACHE_REDIRECTED + v->cache - PERCH_CACHE_REDIRECTED);
	if (v->cache == PERCH_CACHE_REDIRECTED && redirects()) {
		perch_u32 llc = cpu_state(v->cpu)->llc;

		if (llc != PERCH_NONE)
			__sync_fetch_and_add(&config()->llc_loads[llc].nr, 1);
	}
}

/*
 * At a turn of the timer: notes how full an LLC is. In mode perch the figure
 * holds until the next turn, and tasks that are sent there are added. The other
 * modes get it as often as the kernel balances the domain above: every
 * millisecond for each of its CPUs, and a sixteenth as often while none is
 * idle.
 */
static inline void note_load(perch_u32 number, perch_u32 util, perch_u32 nr, bool some_idle)
{
	struct perch_llc_load __arena *load = &config()->llc_loads[number];
	struct perch_llc __arena *llc = &config()->llcs[number];

	if (redirects()) {
		load->util = util;
		load->nr = nr;
		return;
	}
	if (coarse_now < llc->note_at_ns)
		return;
	llc->note_at_ns = coarse_now + llc->span * (some_idle ? 1000000ull : 16000000ull);
	/* Nothing here measures what interrupts and real-time tasks take. */
	perch_cache_note(0, number, util, load->capacity, nr);
}

/* True if the two CPUs have different last-level caches. */
static inline bool other_llc(perch_u32 cpu, perch_u32 than)
{
	return cpu_state(cpu)->llc != cpu_state(than)->llc;
}

/* The mechanism's answer about moving a task from the one CPU to the other: enum perch_move. */
static __attribute__((noinline)) perch_u32 moving(const struct task_struct *p, perch_u32 from,
						  perch_u32 to)
{
	perch_u32 pid = p->pid;
	struct perch_memory __arena *m = memory_of(pid);
	struct perch_question *q = question();
	struct perch_task t = {};
	perch_u32 slot;

	if (!q || m->pid != pid)
		return PERCH_MOVE_FREE;
	slot = same_slot(m->process, p);
	if (!slot)
		return PERCH_MOVE_FREE;
	t.process = process_at(slot);
	if (util_is_on())
		look_at_need(&t, p, m);
	return perch_cache_move(&q->host, &q->policy, &t, from, to);
}

static inline bool stays(const struct task_struct *p, perch_u32 from, perch_u32 to)
{
	return moving(p, from, to) == PERCH_MOVE_STAY;
}

/*
 * True if the task that a thief from another LLC would get had better stay. It
 * does not stay for long: if a CPU goes on idling, the timer gives it the task.
 */
static __attribute__((noinline)) bool first_stays(perch_u32 cpu, perch_u32 from)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool stay = false;

	if (!bpf_iter_scx_dsq_new(&it, from, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (!may_run(p, cpu))
				continue;
			stay = stays(p, from, cpu);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return stay;
}

#endif
