/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The idle CPUs, as this scheduler notes them itself. sched_ext's own mask is one
 * cache line for 512 CPUs, and each wake-up writes it three times; here the
 * CPUs that share a cluster, or an LLC where there are no clusters, have a line
 * to themselves. Bit c is set by CPU c alone, under its run queue's lock, as it
 * begins to idle; any CPU clears it, to claim CPU c for a wakee.
 */
#ifndef PERCH_IDLE_H
#define PERCH_IDLE_H

#include "base/verify.h"

static inline const struct perch_config *config(void);

/* Where a CPU's bit is, at its place in a word of 64. */
static inline struct perch_idle __arena *idle_part(perch_u32 cpu)
{
	return &config()->idle[cpu >> config()->idle_shift];
}

static inline bool is_idle(perch_u32 cpu)
{
	PERCH_READS(&idle_part(cpu)->cpus);
	return idle_part(cpu)->cpus >> (cpu % 64) & 1;
}

/* Those of the CPUs `among` in a word that are idle. */
PERCH_OUTLINE perch_u64 idle_among(perch_u32 w, perch_u64 among)
{
	perch_u32 shift = config()->idle_shift & 63;
	perch_u64 idle = 0, first = ~0ull >> (64 - (1 << shift));

	while (among && PERCH_MORE) {
		perch_u32 part = __builtin_ctzll(among) >> shift;
		struct perch_idle __arena *at = &config()->idle[(w << (6 - shift)) + part];

		PERCH_READS(&at->cpus);
		idle |= at->cpus & among;
		among &= ~(first << (part << shift));
	}
	return idle;
}

/* Clears a CPU's bit; false: it is not set, or another CPU was faster. An arena has no fetch_and. */
static inline bool take_bit(perch_u64 __arena *word, perch_u32 cpu)
{
	perch_u64 bit = 1ull << (cpu % 64), cpus = *word, seen;

	while (cpus & bit && PERCH_MORE) {
		seen = __sync_val_compare_and_swap(word, cpus, cpus & ~bit);
		if (seen == cpus)
			return true;
		cpus = seen;
	}
	return false;
}

/* Claims an idle CPU for a task; false: it does not idle, or another CPU was faster. */
static inline bool claim_idle(perch_u32 cpu)
{
	if (PERCH_CLAIM_LOST)
		return false;
	PERCH_WRITES(&idle_part(cpu)->cpus);
	return take_bit(&idle_part(cpu)->cpus, cpu);
}

/*
 * The number of CPUs that are marked as running only tasks of SCHED_IDLE: while it is 0, as it nearly
 * always is, no wake-up looks for one. It may be too high for a moment, and never too low.
 */
static perch_u32 nr_sched_idle_cpus;

static inline bool runs_sched_idle(perch_u32 cpu)
{
	return config()->sched_idle[cpu / 64] >> (cpu % 64) & 1;
}

/* Only the CPU itself marks itself. */
static inline void set_sched_idle(perch_u32 cpu)
{
	if (runs_sched_idle(cpu))
		return;
	__sync_fetch_and_add(&nr_sched_idle_cpus, 1);
	__sync_fetch_and_or(&config()->sched_idle[cpu / 64], 1ull << (cpu % 64));
}

/*
 * Claims a CPU that runs only tasks of SCHED_IDLE for another, which preempts them; false: it does not,
 * or another CPU was faster.
 */
static inline bool claim_sched_idle(perch_u32 cpu)
{
	if (!nr_sched_idle_cpus || !take_bit(&config()->sched_idle[cpu / 64], cpu))
		return false;
	__sync_fetch_and_add(&nr_sched_idle_cpus, -1);
	return true;
}

static inline void mark_idle(perch_u32 cpu)
{
	struct perch_idle __arena *part = idle_part(cpu);
	perch_u64 bit = 1ull << (cpu % 64);

	PERCH_READS(&part->cpus);
	if (part->cpus & bit)
		return;
	PERCH_WRITES(&part->cpus);
	__sync_fetch_and_or(&part->cpus, bit);
}

/* A CPU that was claimed is marked already: its line is only read. */
static inline void mark_busy(perch_u32 cpu)
{
	struct perch_idle __arena *part = idle_part(cpu);
	perch_u64 bit = 1ull << (cpu % 64);

	PERCH_READS(&part->cpus);
	if (!(part->cpus & bit))
		return;
	PERCH_WRITES(&part->cpus);
	__sync_fetch_and_and(&part->cpus, ~bit);
}

#endif
