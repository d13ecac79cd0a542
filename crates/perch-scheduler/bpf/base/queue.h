/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue for each CPU, ordered by virtual time, and who takes from it: its
 * CPU first, idle CPUs from near to far, and a CPU with a shorter queue when
 * the timer says so.
 *
 * The words `waiting` tell in whose queue a task may wait, so that a CPU that
 * goes idle reads a word instead of asking the kernel for every queue. Bit c
 * is set before a task enters queue c, under CPU c's run-queue lock, and
 * cleared by CPU c alone, under the same lock, once it has found the queue
 * empty: a set bit may be stale, a clear one is true.
 */
#ifndef PERCH_QUEUE_H
#define PERCH_QUEUE_H

#include "follow/group.h"

/* Bits that are set in all words: while it is 0, an idle CPU need not look. */
static perch_u64 nr_waiting;

static inline bool is_waiting(perch_u32 cpu)
{
	return config()->waiting[cpu / 64] >> (cpu % 64) & 1;
}

static inline void mark_waiting(perch_u32 cpu)
{
	perch_u64 bit = 1ull << (cpu % 64);

	if (config()->waiting[cpu / 64] & bit)
		return;
	cpu_state(cpu)->served_ns = scx_bpf_now();
	__sync_fetch_and_add(&nr_waiting, 1);
	__sync_fetch_and_or(&config()->waiting[cpu / 64], bit);
}

static inline void mark_empty(perch_u32 cpu)
{
	__sync_fetch_and_and(&config()->waiting[cpu / 64], ~(1ull << (cpu % 64)));
	__sync_fetch_and_add(&nr_waiting, -1);
}

/* A slice for each of `n` tasks that share the CPU. */
static inline perch_u64 slice_for(perch_u32 n)
{
	const struct perch_config *c = config();
	perch_u64 slice;

	if (n <= 1)
		return c->slice_ns;
	slice = c->slice_ns / n;

	return slice < c->slice_min_ns ? c->slice_min_ns : slice;
}

/*
 * Puts the task on an idle CPU that was claimed for it; `dsq` is that CPU's own.
 * Should a task of a higher class come first, ours is to wait elsewhere: newer
 * kernels send it back by themselves, the older ones through cpu_release.
 */
static inline void insert_direct(struct task_struct *p, perch_u64 dsq, perch_u64 enq_flags)
{
	if (bpf_core_enum_value_exists(enum scx_enq_flags, SCX_ENQ_IMMED))
		enq_flags |= bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_IMMED);
	insert(p, dsq, slice_for(1), enq_flags);
}

/*
 * For so many turns of the timer a queue is left alone in which nobody may
 * move. Two hogs pinned to one CPU had the timer wake an idle one 250 times a
 * second for nothing.
 */
#define PERCH_STUCK_TURNS 25

/* The wakee's virtual time on this CPU, the earlier if its group has nobody else there. */
static __attribute__((noinline)) perch_u64 stand(struct task_struct *p, perch_u32 cpu,
						 perch_u64 vtime)
{
	struct perch_group_task *t = group_task(p);
	perch_u64 earlier;

	if (!t || !t->slot)
		return vtime;
	earlier = credited(t, cpu);
	if (earlier >= vtime)
		return vtime;
	count(cpu, PERCH_EV_CREDITED);
	return earlier;
}

/* Queues the task behind those that the CPU already has. */
static __always_inline void queue_task(struct task_struct *p, perch_u32 cpu, perch_u64 enq_flags)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	const struct rq *rq = cpu_rq(cpu);
	perch_u64 stored = p->scx.dsq_vtime, vtime = vtime_of(stored, c->clock);

	/*
	 * A task whose slice ended keeps what it owes, however much: at nice 5 a
	 * tick costs more virtual time than lag_ns. Any other that was not asleep
	 * may come from another CPU, with a reading of that one's clock.
	 */
	if (!is_lag(stored) && p != bpf_get_current_task_btf())
		vtime = c->clock + clamp_lag(vtime, c->clock);
	if (perch_config.credits && nr_live && (enq_flags & SCX_ENQ_WAKEUP))
		vtime = stand(p, cpu, vtime);
	if (c->stuck && p->nr_cpus_allowed > 1)
		c->stuck = 0;
	mark_waiting(cpu);
	insert_vtime(p, cpu, slice_for(rq ? rq->nr_running : 1), vtime, enq_flags);
	count(cpu, PERCH_EV_QUEUED);
	if ((enq_flags & SCX_ENQ_WAKEUP) && c->curr_weight &&
	    vtime + config()->preempt_ns < c->curr_vtime) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		count(cpu, PERCH_EV_PREEMPTED);
	}
}

/* Takes the first task of the CPU's own queue; false: nobody waits there. */
static inline bool serve(perch_u32 cpu)
{
	if (!move_to_local(cpu)) {
		/* Whoever comes by another way than enqueue comes before or after this. */
		mark_empty(cpu);
		if (!move_to_local(cpu))
			return false;
		mark_waiting(cpu);
	}
	cpu_state(cpu)->served_ns = scx_bpf_now();
	return true;
}

/*
 * Weights may leave a task so little that it waits for longer than the kernel
 * bears, which throws a scheduler out after 30 s: cpu.weight goes from 1 to
 * 10000. So who has waited for 8 s (16 at most until it is seen) runs for a
 * slice, and owes nothing any more.
 */
#define PERCH_PATIENCE_NS 8000000000ull

/* The kernel's jiffies at the turn of the timer 8 s before it last looked for such. */
static perch_u64 patient_since;

static __attribute__((noinline)) bool relieve_one(perch_u32 cpu)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool found = false;

	if (!bpf_iter_scx_dsq_new(&it, cpu, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (p->scx.runnable_at >= patient_since)
				continue;
			scx_bpf_dsq_move_set_vtime(&it, c->clock);
			found = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	if (found)
		count(cpu, PERCH_EV_RELIEVED);
	else
		c->impatient = 0;
	return found;
}

/* Virtual time of the first in the queue; ~0 when nobody waits. */
static __attribute__((noinline)) perch_u64 first_vtime(perch_u32 cpu)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	perch_u64 vtime = ~0ull;

	if (!bpf_iter_scx_dsq_new(&it, cpu, 0)) {
		p = bpf_iter_scx_dsq_next(&it);
		if (p)
			vtime = p->scx.dsq_vtime;
	}
	bpf_iter_scx_dsq_destroy(&it);
	return vtime;
}

/*
 * Of the queues of a set, but not the CPU's own, the one that was served
 * longest ago. A CPU that idles has none: its bit is a stale one, left when
 * others emptied its queue, or it is about to run what was just put there.
 */
static inline perch_u32 longest_unserved(perch_u32 set, perch_u32 cpu, perch_u64 before_ns)
{
	perch_u32 first = perch_host_set_first(0, set), words = perch_host_set_words(0, set), k;
	perch_u32 oldest = PERCH_NONE;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);

		m &= config()->waiting[first + k];
		if (m)
			m &= ~mask_word(idle_cpus_at, first + k);
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

/* What a theft from within this domain is counted as. */
static inline enum perch_event theft(perch_u32 domain_flags)
{
	if (domain_flags & (PERCH_SD_SMT | PERCH_SD_CLUSTER))
		return PERCH_EV_STOLEN_CLUSTER;
	if (domain_flags & PERCH_SD_LLC)
		return PERCH_EV_STOLEN_LLC;
	return domain_flags & PERCH_SD_NUMA ? PERCH_EV_STOLEN_REMOTE : PERCH_EV_STOLEN_NODE;
}

/* Whether the task may run on the CPU. */
static inline bool may_run(const struct task_struct *p, perch_u32 cpu)
{
	return mask_word((perch_u64)p->cpus_ptr, cpu / 64) >> (cpu % 64) & 1;
}

/* Whether a task that waits fits the CPU, as far as is known of it. */
static inline bool fits(const struct task_struct *p, perch_u32 cpu)
{
	perch_u32 pid = p->pid;
	struct perch_memory __arena *m = memory_of(pid);
	struct perch_task t = {};

	if (m->pid != pid)
		return true;
	look_at_need(&t, p, m);
	return perch_fit(0, &t, cpu) == PERCH_FIT;
}

/*
 * Whether the task that a thief would get from a larger CPU's queue does not fit
 * the thief, and is about to be served where it is. Two hogs that share a big
 * CPU get more of it than of a LITTLE each; a LITTLE that stole one for being
 * idle a moment would keep it until a big CPU idles.
 */
static __attribute__((noinline)) bool better_left(perch_u32 cpu, perch_u32 from, perch_u64 now)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool fit = true;

	if (now - cpu_state(from)->served_ns > config()->slice_ns)
		return false;
	if (!bpf_iter_scx_dsq_new(&it, from, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (!may_run(p, cpu))
				continue;
			fit = fits(p, cpu);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return !fit;
}

/*
 * Whether the task that a thief from another LLC would get had better stay. Not
 * for long: the timer gives it to a CPU that idles all the same.
 */
static __attribute__((noinline)) bool kept(perch_u32 cpu, perch_u32 from)
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

/* What the groups have had here are readings of the clock as it was. */
static inline void set_clock(perch_u32 cpu, perch_u64 clock)
{
	struct perch_cpu __arena *c = cpu_state(cpu);

	c->jumped += clock - c->clock;
	c->clock = clock;
}

/*
 * The CPU has nothing to run: it takes the first task of a queue that was not
 * served for long, from the nearest domain that has one, and with it the other
 * CPU's clock, so that the task's virtual time keeps its meaning. Another
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
		if (perch_config.capacities &&
		    cpu_state(cpu)->capacity < cpu_state(other)->capacity &&
		    better_left(cpu, other, now)) {
			count(cpu, PERCH_EV_LEFT_LARGER);
			level++;
			continue;
		}
		if (other_llc(cpu, other) && kept(cpu, other)) {
			count(cpu, PERCH_EV_CACHE_KEPT);
			level++;
			continue;
		}
		if (!move_to_local(other)) {
			cpu_state(other)->stuck = PERCH_STUCK_TURNS;
			continue;
		}
		set_clock(cpu, cpu_state(other)->clock);
		cpu_state(other)->served_ns = now;
		count(cpu, theft(flags));
		return true;
	}
	return false;
}

/*
 * Of CPUs that differ, whether the task is one of those that had better change:
 * to a smaller CPU go those that fit there, to a larger one those that do not
 * fit where they are.
 */
static inline bool gains(const struct task_struct *p, perch_u32 cpu, perch_u32 from)
{
	perch_u32 here = cpu_state(cpu)->capacity, there = cpu_state(from)->capacity;

	if (here == there)
		return true;
	return here < there ? fits(p, cpu) : !fits(p, from);
}

/* Whom a CPU takes from a longer queue, besides that the task may run here. */
enum taste {
	TAKES_ANY,
	TAKES_WHO_GAINS, /* of CPUs that differ */
	TAKES_NO_HOME,	 /* nobody who had better stay in its LLC */
};

/* The first task of the queue that is to its taste comes over, and keeps its lag. */
static __attribute__((noinline)) bool pull_one(perch_u32 cpu, perch_u32 from, enum taste taste)
{
	perch_u64 ahead = cpu_state(cpu)->clock - cpu_state(from)->clock;
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool found = false;

	if (!bpf_iter_scx_dsq_new(&it, from, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			if (!may_run(p, cpu))
				continue;
			if (perch_config.capacities && taste == TAKES_WHO_GAINS &&
			    !gains(p, cpu, from))
				continue;
			if (perch_config.cache && taste == TAKES_NO_HOME && stays(p, from, cpu))
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
 * The timer saw a queue that is too long: one task comes over. If none fits any
 * better here it is the first, for nobody larger had room either. Who had
 * better stay in its LLC stays for a turn or two, not longer.
 */
static __attribute__((noinline)) void pull(perch_u32 cpu, perch_u32 from)
{
	bool found = perch_config.capacities && pull_one(cpu, from, TAKES_WHO_GAINS);

	if (!found && other_llc(cpu, from)) {
		found = pull_one(cpu, from, TAKES_NO_HOME);
		if (!found && cpu_state(from)->refused++ < PERCH_REFUSALS) {
			count(cpu, PERCH_EV_CACHE_KEPT);
			return;
		}
		cpu_state(from)->refused = 0;
	}
	if (!found)
		found = pull_one(cpu, from, TAKES_ANY);
	cpu_state(from)->stuck = found ? 0 : PERCH_STUCK_TURNS;
}

#endif
