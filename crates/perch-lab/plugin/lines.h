/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which CPU has which 64-byte line of the guest's memory, and how: a protocol of three states
 * (modified, shared, invalid) over private caches that are large enough for everything. A line that
 * nobody else has is written without asking, as MESI's exclusive state allows.
 */
#ifndef PERCH_PLUGIN_LINES_H
#define PERCH_PLUGIN_LINES_H

#include <stdint.h>
#include <stdlib.h>

/* A line's state is one word: the number of the CPU that modified it, plus 1, in the low eight bits,
 * and above them a bit for each CPU that has a copy. */
#define LINES_MAX_CPUS 56
#define LINE_SHIFT 6

/* Distances are perch-machine's: Distance::Cpu is 0, Distance::Machine is 6. */
#define DISTANCES 7

enum kind {
	KIND_HIT,
	KIND_LOAD_DIRTY,  /* loaded, modified by another CPU */
	KIND_STORE_DIRTY, /* written, modified by another CPU */
	KIND_UPGRADE,	  /* written, held here clean: copies elsewhere are invalidated */
	KIND_STORE_CLEAN, /* written, not held here, clean elsewhere */
	KIND_LOAD_CLEAN,  /* loaded, not held here, clean elsewhere */
	KIND_COLD,	  /* nobody had it: it comes from memory */
	KINDS,
};

struct lines {
	uint64_t *state;
	uint64_t count;
	unsigned int cpus;
	/* Distance of two CPUs, row by row. */
	uint8_t distance[LINES_MAX_CPUS * LINES_MAX_CPUS];
};

struct access {
	uint8_t kind;
	uint8_t distance;
};

static inline unsigned int distance_of(const struct lines *lines, unsigned int a, unsigned int b)
{
	return lines->distance[a * lines->cpus + b];
}

/* The nearest of some CPUs if `near`, else the farthest. */
static inline unsigned int distance_among(const struct lines *lines, uint64_t cpus,
					  unsigned int cpu, bool near)
{
	unsigned int found = near ? DISTANCES : 0;

	for (; cpus; cpus &= cpus - 1) {
		unsigned int d = distance_of(lines, (unsigned int)__builtin_ctzll(cpus), cpu);

		if (near ? d < found : d > found)
			found = d;
	}
	return found;
}

/*
 * `cpu` loads from or stores to a line. Returns what that was, and how far the line or the message
 * that invalidates copies had to go: to the owner of a modified line, to the nearest clean copy of a
 * line that is loaded, and to the farthest copy of one that is written.
 */
static inline struct access lines_touch(struct lines *lines, uint64_t line, unsigned int cpu,
					bool store)
{
	uint64_t state = lines->state[line];
	uint64_t bit = 1ull << (8 + cpu);
	unsigned int owner = state & 255;
	uint64_t others = state >> 8 & ~(1ull << cpu);
	struct access hit = {KIND_HIT, 0};

	if (owner == cpu + 1 || (!store && state & bit))
		return hit;
	lines->state[line] = store ? bit | (cpu + 1) : (state & ~255ull) | bit;
	if (owner)
		return (struct access){store ? KIND_STORE_DIRTY : KIND_LOAD_DIRTY,
				       (uint8_t)distance_of(lines, owner - 1, cpu)};
	if (!others)
		return state & bit ? hit : (struct access){KIND_COLD, 0};
	if (!store)
		return (struct access){KIND_LOAD_CLEAN,
				       (uint8_t)distance_among(lines, others, cpu, true)};
	return (struct access){state & bit ? KIND_UPGRADE : KIND_STORE_CLEAN,
			       (uint8_t)distance_among(lines, others, cpu, false)};
}

#endif
