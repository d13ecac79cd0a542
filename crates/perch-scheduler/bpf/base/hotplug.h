/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPUs that go offline and come back while the scheduler is loaded. Wake-ups, thieves and
 * the timer pass over a CPU that is offline: it is not idle, and its queue counts as the
 * longest. Its place in the topology stays, so the sizes of domains and LLCs are those
 * from when the scheduler was loaded.
 *
 * A CPU goes in steps. First it is inactive: the kernel asks this scheduler for nothing
 * there any more, and puts whatever wakes there into the CPU's own queue. Then, when all
 * callbacks that began before have ended, it calls cpu_offline in the thread of hotplug.
 * At last that thread waits until no task of the CPU's run queue is left; only such tasks
 * go as the CPU picks from its own queue. So a task that stayed in one of ours would
 * hold up hotplug. Linux 7.2 was seen to leave none there; on 6.18 there are some, and the
 * loader leaves the two callbacks out up to 7.0, so that the kernel ends the load instead.
 */
#ifndef PERCH_HOTPLUG_H
#define PERCH_HOTPLUG_H

#include "base/queue.h"

/* Moves each task of a queue to the own queue of the CPU on whose run queue it is. */
static __attribute__((noinline)) int hand_back(perch_u64 queue)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;

	if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it)) && can_loop) {
			perch_u32 cpu = scx_bpf_task_cpu(p);

			if (scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL_ON | cpu, 0))
				scx_bpf_kick_cpu(cpu, 0);
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return 0;
}

/* The CPU has gone: its bit is cleared before its queue is emptied, as hand_over() sets it afterwards. */
static inline void empty_queue(perch_u32 cpu)
{
	if (take_bit(&config()->waiting[cpu / 64], cpu))
		__sync_fetch_and_add(&nr_waiting, -1);
	hand_back(cpu);
}

/*
 * At a turn of the timer: the CPU idled in between the steps of hotplug, or another CPU handed
 * over a task while this one went.
 */
static inline void stay_offline(perch_u32 cpu)
{
	mark_busy(cpu);
	if (is_waiting(cpu))
		empty_queue(cpu);
}

/* In the thread of hotplug. */
static inline void goes_offline(perch_u32 cpu)
{
	claim_sched_idle(cpu);
	empty_queue(cpu);
	follow_offline(cpu);
	count(cpu, PERCH_EV_CPU_OFFLINE);
}

/* A CPU that has no domain was offline when the scheduler was loaded, or is isolated. */
static inline void comes_online(perch_u32 cpu)
{
	/* Not constant: the verifier takes it for something that the kernel writes. */
	static char why[] = "CPU %llu is new";
	unsigned long long number[] = {cpu};

	if (has_place(cpu) && !is_apart(cpu)) {
		count(cpu, PERCH_EV_CPU_ONLINE);
		return;
	}
	scx_bpf_exit_bstr(SCX_ECODE_ACT_RESTART | SCX_ECODE_RSN_HOTPLUG, why, number,
			  sizeof(number));
}

#endif
