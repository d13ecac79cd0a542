/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which CPU has which 64-byte line of the guest's memory, and how: a protocol of three states
 * (modified, shared, invalid) over private caches and LLCs of finite size. A line that nobody else
 * has is written without asking, as MESI's exclusive state allows.
 */
#ifndef PERCH_PLUGIN_LINES_H
#define PERCH_PLUGIN_LINES_H

#include "caches.h"
#include "machine.h"

enum kind {
	KIND_HIT,
	KIND_LOAD_DIRTY,  /* loaded, modified by another CPU */
	KIND_STORE_DIRTY, /* written, modified by another CPU */
	KIND_UPGRADE,	  /* written, held here clean: copies elsewhere are invalidated */
	KIND_STORE_CLEAN, /* written, not held here, clean elsewhere */
	KIND_LOAD_CLEAN,  /* loaded, not held here, clean elsewhere */
	KIND_COLD,	  /* no cache had it: it comes from memory */
	KIND_LLC,	  /* no CPU had it: it comes from an LLC */
	KINDS,
};

/* A line: its state (machine.h), and the picosecond before which nobody else can have its value. */
struct line {
	uint64_t state;
	uint64_t free_at;
};

struct lines {
	const struct machine *machine;
	struct line *line;
	struct cache private[MAX_CPUS];
	struct cache llc[MAX_CPUS];
	/* The distance from a CPU to the nearest CPU of an LLC, and of a node. */
	uint8_t to_llc[MAX_CPUS][MAX_CPUS];
	uint8_t to_node[MAX_CPUS][MAX_CPUS];
};

struct access {
	uint8_t kind;
	uint8_t distance;
};

static inline uint64_t cpu_bit(unsigned int cpu)
{
	return 1ull << (8 + cpu);
}

/* Returns whether the CPU has the line as it needs it. */
static inline bool line_is_here(const struct line *l, unsigned int cpu, bool store)
{
	return (l->state & 255) == cpu + 1 || (!store && l->state & cpu_bit(cpu));
}

void lines_start(struct lines *lines, const struct machine *machine);

/*
 * `cpu` loads from or stores to a line that is not here as it needs it. Returns what that was, and
 * how far the line or the message that invalidates copies had to go: to the owner of a modified
 * line, to the nearest clean copy of a line that is loaded, to the farthest copy of one that is
 * written, to the LLC or to the memory that had it.
 */
struct access lines_move(struct lines *lines, uint64_t number, unsigned int cpu, bool store);

#endif
