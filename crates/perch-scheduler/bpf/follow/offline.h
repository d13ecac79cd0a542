/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A CPU that goes offline. The kernel asks perch no more there, and puts a task
 * whose slice has ended into the CPU's own queue itself. With SCX_OPS_ENQ_LAST
 * it has chosen the idle task by then, and nothing wakes the CPU: a guest of
 * 6.18 stalled for minutes, with the thread of hotplug in that queue.
 */
#ifndef PERCH_OFFLINE_H
#define PERCH_OFFLINE_H

#include "base/hooks.h"

/* The CPU looks at its queue once more. */
static inline void offline_stopping(struct task_struct *p, perch_u32 cpu, bool runnable,
				    perch_u64 ran)
{
	if (runnable && !p->scx.slice && may_go_offline(cpu_rq(cpu)))
		scx_bpf_kick_cpu(cpu, 0);
}

static const struct perch_follower offline_follower = {
	.stopping = offline_stopping,
};

#endif
