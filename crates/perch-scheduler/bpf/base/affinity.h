/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The CPUs that a task may use. */
#ifndef PERCH_AFFINITY_H
#define PERCH_AFFINITY_H

#include "base/host.h"

/* True if the task may run on the CPU. */
static inline bool may_run(const struct task_struct *p, perch_u32 cpu)
{
	return mask_word((perch_u64)p->cpus_ptr, cpu / 64) >> (cpu % 64) & 1;
}

/*
 * The address of the task's affinity mask as a number. The verifier would
 * follow a pointer through every count of a loop that reads by it; an address
 * that was read back from this CPU's memory is not a pointer to the verifier any
 * more.
 */
static inline perch_u64 allowed_at(const struct task_struct *p, perch_u32 cpu)
{
	volatile perch_u64 __arena *at = &cpu_state(cpu)->allowed_at;

	*at = (perch_u64)p->cpus_ptr;
	return *at;
}

/* The CPU's widest domain, which is the whole machine; PERCH_NONE if it has no domain. */
static __attribute__((noinline)) perch_u32 widest_set(perch_u32 cpu)
{
	perch_u32 level, widest = PERCH_NONE;

	for (level = another_zero(); can_loop; level++) {
		perch_u32 sd = perch_host_domain(0, cpu, level);

		if (sd == PERCH_NONE)
			break;
		widest = perch_host_domain_set(0, sd);
	}
	return widest;
}

/*
 * The first idle CPU of a set that the task with this affinity mask may use; PERCH_NONE without one.
 */
PERCH_OUTLINE perch_u32 idle_in_set(perch_u64 allowed_at, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(0, set), words = perch_host_set_words(0, set), k;

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);

		m = idle_among(first + k, m & mask_word(allowed_at, first + k));
		if (m)
			return (first + k) * 64 + __builtin_ctzll(m);
	}
	return PERCH_NONE;
}

/* The first idle one whose core idles as a whole. */
PERCH_OUTLINE perch_u32 idle_core_in_set(perch_u64 allowed_at, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(0, set), words = perch_host_set_words(0, set), k;
	struct perch_host host = {};

	for (k = PERCH_ZERO; k < words && PERCH_MORE; k++) {
		perch_u64 m = perch_host_set_word(0, set, first + k);

		m = idle_among(first + k, m & mask_word(allowed_at, first + k));
		while (m && PERCH_MORE) {
			perch_u32 cpu = (first + k) * 64 + __builtin_ctzll(m);

			m &= m - 1;
			if (perch_siblings_idle(&host, cpu))
				return cpu;
		}
	}
	return PERCH_NONE;
}

#endif
