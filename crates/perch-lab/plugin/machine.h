/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's shape, and what its hardware costs, as perch tells the plugin
 * (src/coherence/arguments.rs writes these arguments, machine.c reads them).
 */
#ifndef PERCH_PLUGIN_MACHINE_H
#define PERCH_PLUGIN_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* A line's state is one word: the number of the CPU that modified it, plus 1, in the low eight bits,
 * and above them a bit for each CPU that has a copy. */
#define MAX_CPUS 56
#define LINE_SHIFT 6

/* Distances are perch-machine's: Distance::Cpu is 0, Distance::Machine is 6. */
#define DISTANCES 7
/* The distance of two CPUs that share their LLC. */
#define DISTANCE_LLC 3

#define MAX_IDLE_STATES 16
#define MAX_MISSES 64
#define MAX_STORES 512

/* An idle state: picoseconds until it is left, and of idleness from which it is entered. */
struct idle_state {
	uint64_t exit;
	uint64_t residency;
};

/* Times are picoseconds. */
struct costs {
	uint64_t instruction;
	uint64_t atomic; /* a locked instruction whose line is here, beyond any other */
	uint64_t pause;
	uint64_t transfer[DISTANCES];
	uint64_t ipi[DISTANCES];
	uint64_t llc;
	uint64_t memory[2]; /* of the own node, of another */
	uint64_t hold;	    /* a line that was fetched stays so long */
	uint64_t window;    /* a CPU may be ahead of the slowest one by so much */
	unsigned int smt_1024;
	unsigned int misses_at_once;
	unsigned int reorder; /* instructions */
	unsigned int store_buffer;
	unsigned int idle_states;
	struct idle_state idle[MAX_IDLE_STATES];
};

struct machine {
	unsigned int cpus;
	uint64_t lines; /* of physical memory, its hole included */
	/* Distance of two CPUs, row by row. */
	uint8_t distance[MAX_CPUS * MAX_CPUS];
	/* The private cache and the LLC that a CPU uses, by number, and its node. */
	uint8_t private_of[MAX_CPUS];
	uint8_t llc_of[MAX_CPUS];
	uint8_t node_of[MAX_CPUS];
	/* CPUs that share the private cache, and other threads of the CPU's core, as bits. */
	uint64_t sharers[MAX_CPUS];
	uint64_t siblings[MAX_CPUS];
	unsigned int privates;
	unsigned int llcs;
	/* Capacities in lines; 0 for a private cache that never displaces anything. */
	uint64_t private_lines;
	uint64_t llc_lines;
	/* Lines of each node's memory, and where memory above 4 GiB begins: the lines below it. */
	uint64_t node_lines;
	uint64_t below_hole;
	bool timed;
	struct costs costs;
};

/* Reads the arguments; false after it has said what is wrong. */
bool machine_read(struct machine *m, int argc, char **argv);

/* The value of argument `name`; NULL without it. */
const char *argument(int argc, char **argv, const char *name);

static inline unsigned int distance_of(const struct machine *m, unsigned int a, unsigned int b)
{
	return m->distance[a * m->cpus + b];
}

/* The node whose memory has a line. */
static inline unsigned int node_of_line(const struct machine *m, uint64_t line)
{
	const uint64_t four_gib = (4ull << 30) >> LINE_SHIFT;

	if (line >= four_gib)
		line -= four_gib - m->below_hole;
	return m->node_lines ? (unsigned int)(line / m->node_lines) : 0;
}

#endif
