/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs that a task may use. */
#ifndef PERCH_AFFINITY_H
#define PERCH_AFFINITY_H

#include "base/host.h"

/* Whether the task may run on the CPU. */
static inline bool may_run(const struct task_struct *p, perch_u32 cpu)
{
	return mask_word((perch_u64)p->cpus_ptr, cpu / 64) >> (cpu % 64) & 1;
}

/*
 * Where the task's affinity mask is, as a number: the verifier follows a pointer
 * through every count of a loop that reads by it. Read back from the memory of
 * this CPU, it is no pointer any more.
 */
static inline perch_u64 allowed_at(const struct task_struct *p, perch_u32 cpu)
{
	volatile perch_u64 __arena *at = &cpu_state(cpu)->allowed_at;

	*at = (perch_u64)p->cpus_ptr;
	return *at;
}

/* The first idle CPU of a set that the task may use whose mask is there; PERCH_NONE without one. */
PERCH_OUTLINE perch_u32 idle_in_set(perch_u64 allowed_at, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(0, set), words = perch_host_set_words(0, set), k;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = mask_word(idle_cpus_at, first + k);

		if (m)
			m &= perch_host_set_word(0, set, first + k) &
			     mask_word(allowed_at, first + k);
		if (m)
			return (first + k) * 64 + __builtin_ctzll(m);
	}
	return PERCH_NONE;
}

#endif
