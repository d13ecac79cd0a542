/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A queue for each CPU, ordered by virtual time: how a task comes into it, and
 * how its CPU takes the first. Other CPUs take from it as well (steal.h).
 *
 * The words `waiting` tell in whose queue a task may wait, so that a CPU that
 * goes idle reads a word instead of asking the kernel about every queue. Bit c
 * is set before a task enters queue c, under CPU c's run-queue lock, and
 * cleared by CPU c alone, under the same lock, once it has found nothing to run
 * in the queue: a set bit may be stale, a clear one is true. hand_over() is the
 * exception.
 */
#ifndef PERCH_QUEUE_H
#define PERCH_QUEUE_H

#include "base/clock.h"
#include "base/hooks.h"

/*
 * The number of bits that are set in all words: while it is 0, an idle CPU need not look. It may
 * be too high, as hand_over() sets a bit without the lock, and never too low.
 */
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
 * Puts the task on an idle CPU that was claimed for it; `dsq` is that CPU's
 * own. If a task of a higher class takes that CPU first, ours must wait
 * elsewhere: newer kernels send it back by themselves, older ones through
 * cpu_release.
 */
static inline void insert_direct(struct task_struct *p, perch_u64 dsq, perch_u64 enq_flags)
{
	if (bpf_core_enum_value_exists(enum scx_enq_flags, SCX_ENQ_IMMED))
		enq_flags |= bpf_core_enum_value(enum scx_enq_flags, SCX_ENQ_IMMED);
	insert(p, dsq, slice_for(1), enq_flags);
}

/*
 * The number of turns of the timer for which thieves leave a queue alone after
 * they found no task there that may move. Without it, two hogs pinned to one
 * CPU made the timer wake an idle CPU 250 times a second for nothing.
 */
#define PERCH_STUCK_TURNS 25
/* Likewise where some task may move, but not to a CPU that idles now. */
#define PERCH_BUSY_TURNS 2

/*
 * The virtual time by which a task may be ahead of the one that runs, and yet
 * come first: as much as a turn costs the lighter one more. Of two tasks that
 * get the same turn, the one that ends it at the earlier virtual time goes
 * first, as in the fair class; without this a task of nice 0 that wakes beside a
 * hog of nice 10 waits until the hog's slice is over. Group weights, which are
 * not those of the tasks, give no lead.
 */
static inline perch_u64 lead_over(const struct perch_cpu __arena *c, const struct task_struct *p)
{
	perch_u32 weight = p->scx.weight;

	if (c->flat || c->curr_weight >= weight)
		return 0;
	return virtual_ns(slice_for(2), c->curr_weight) - virtual_ns(slice_for(2), weight);
}

static inline bool is_sched_idle(struct task_struct *p)
{
	return p->policy == SCHED_IDLE || follow_sched_idle(p);
}

/*
 * True if a wakee of this virtual time takes the CPU from the task that runs. As in the fair class,
 * one of SCHED_IDLE loses it to any other, and neither it nor one of SCHED_BATCH takes it.
 */
static inline bool interrupts(const struct perch_cpu __arena *c, struct task_struct *p,
			      perch_u64 vtime)
{
	if (c->sched_idle)
		return !is_sched_idle(p);
	return vtime + config()->preempt_ns < c->curr_vtime + lead_over(c, p) &&
	       p->policy != SCHED_BATCH && !is_sched_idle(p);
}

/* Queues the task behind those that the CPU already has. */
static __always_inline void queue_task(struct task_struct *p, perch_u32 cpu, perch_u64 enq_flags)
{
	struct perch_cpu __arena *c = cpu_state(cpu);
	perch_u64 stored = p->scx.dsq_vtime, vtime = vtime_of(stored, c->clock);

	/*
	 * A task whose slice ended keeps what it owes, however much: at nice 5
	 * a tick costs more virtual time than lag_ns. Any other task that was
	 * not asleep may come from another CPU, with a reading of that CPU's
	 * clock.
	 */
	if (!is_lag(stored) && p != bpf_get_current_task_btf())
		vtime = c->clock + clamp_lag(vtime, c->clock);
	vtime = follow_stand(p, cpu, vtime, enq_flags);
	if (c->stuck && p->nr_cpus_allowed > 1)
		c->stuck = 0;
	mark_waiting(cpu);
	insert_vtime(p, cpu, slice_for(nr_running(cpu)), vtime, enq_flags);
	count(cpu, PERCH_EV_QUEUED);
	if ((enq_flags & SCX_ENQ_WAKEUP) && c->curr_weight && interrupts(c, p, vtime)) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
		count(cpu, PERCH_EV_PREEMPTED);
	}
}

/*
 * Moves a task to the queue of a CPU whose run queue's lock is not held here, so
 * its bit is set behind the task, and the kick makes it look.
 */
static inline bool hand_over(struct bpf_iter_scx_dsq *it, struct task_struct *p, perch_u32 cpu,
			     perch_u64 vtime)
{
	scx_bpf_dsq_move_set_vtime(it, vtime);
	if (!scx_bpf_dsq_move_vtime(it, p, cpu, 0))
		return false;
	mark_waiting(cpu);
	scx_bpf_kick_cpu(cpu, 0);
	return true;
}

/*
 * A pulled task stays on its old CPU's run queue until this CPU takes it from the
 * queue. A CPU that is about to go offline may not take it any more, nor may one
 * that the task's affinity has left meanwhile. Such tasks go back to the queue of
 * the CPU on whose run queue they are.
 */
static __attribute__((noinline)) void send_back(perch_u32 cpu)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, cpu, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			perch_u32 from = scx_bpf_task_cpu(p);
			perch_u64 ahead = cpu_state(from)->clock - cpu_state(cpu)->clock;

			if (from != cpu)
				hand_over(&it, p, from, p->scx.dsq_vtime + ahead);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
}

/* Takes the first task of the CPU's own queue; false: none waits there that may run here. */
static inline bool serve(perch_u32 cpu)
{
	if (!move_to_local(cpu)) {
		/*
		 * A task that reaches the queue without this CPU's lock does so
		 * before or after this line.
		 */
		mark_empty(cpu);
		if (!move_to_local(cpu)) {
			if (scx_bpf_dsq_nr_queued(cpu) > 0)
				send_back(cpu);
			return false;
		}
		mark_waiting(cpu);
	}
	cpu_state(cpu)->served_ns = scx_bpf_now();
	return true;
}

/*
 * The CPU is about to idle, and a task is in its queue: the kernel lets go of the
 * run queue's lock while a task comes over from another CPU, and a wakee may
 * have entered meanwhile. As this CPU runs no idle task yet, the kernel does not
 * make it look again for that wakee; if one enters during this last look as well,
 * the kick does.
 */
static __attribute__((noinline)) bool serve_latecomer(perch_u32 cpu)
{
	if (serve(cpu))
		return true;
	if (is_waiting(cpu))
		scx_bpf_kick_cpu(cpu, 0);
	return false;
}

/*
 * Weights may leave a task so little time that it waits longer than the kernel
 * bears, which throws a scheduler out after 30 s: cpu.weight goes from 1 to
 * 10000. So a task that has waited for 8 s, and 16 at most until a CPU sees it,
 * runs for a slice, and owes nothing any more.
 */
#define PERCH_PATIENCE_NS 8000000000ull

/* The kernel's jiffies 8 s before the timer last looked for such tasks. */
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

/*
 * The virtual time at which the first task in the queue comes before the running one; 0: whatever that
 * one's; ~0: none waits.
 */
static __attribute__((noinline)) perch_u64 first_vtime(perch_u32 cpu)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	perch_u64 vtime = ~0ull;

	if (!bpf_iter_scx_dsq_new(&it, cpu, 0)) {
		p = bpf_iter_scx_dsq_next(&it);
		if (p && cpu_state(cpu)->sched_idle && !is_sched_idle(p))
			vtime = 0;
		else if (p)
			vtime = p->scx.dsq_vtime - lead_over(cpu_state(cpu), p);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return vtime;
}

/*
 * A task of SCHED_IDLE starts to run here. If all that wait are of SCHED_IDLE, any other wakee may
 * take the CPU for idle. The first stands for them all: it is another's turn only for lack of others.
 */
static __attribute__((noinline)) int mark_sched_idle(perch_u32 cpu)
{
	if (!is_waiting(cpu) || first_vtime(cpu))
		set_sched_idle(cpu);
	return 0;
}

#endif
