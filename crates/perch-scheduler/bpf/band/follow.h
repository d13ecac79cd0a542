/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The hooks by which the base serves the band where there is one. The band
 * itself is not a follower but a scheduler above the base, with callbacks of its
 * own (ops.h).
 */
#ifndef PERCH_BAND_FOLLOW_H
#define PERCH_BAND_FOLLOW_H

#include "band/queue.h"
#include "base/hotplug.h"

static inline void band_offline(perch_u32 cpu)
{
	hand_back(band_queue(cpu));
	cpu_state(cpu)->band_coming = 0;
	note_band(cpu);
}

static inline int band_init_cpu(perch_u32 cpu)
{
	return scx_bpf_create_dsq(band_queue(cpu), cpu_state(cpu)->node);
}

static inline void band_init_task(struct task_struct *p, struct scx_init_task_args *args)
{
	struct perch_band_task *t = make_band_task(p);

	/* The program before this one may have left its record. */
	if (t)
		__builtin_memset(t, 0, sizeof(*t));
	else
		count_unrecorded();
}

/*
 * A task that waits behind the band gets next to nothing of the CPU, so
 * balancing counts it twice.
 */
static inline perch_u32 band_turn_cpu(struct perch_cpu __arena *c, perch_u32 nr, perch_u32 queued)
{
	return c->band_prio && nr > 1 ? queued + 1 : queued;
}

static const struct perch_follower band_follower = {
	.offline = band_offline,
	.init_cpu = band_init_cpu,
	.init_task = band_init_task,
	.turn_cpu = band_turn_cpu,
};

#endif
