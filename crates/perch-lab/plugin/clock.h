/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The clocks of a guest whose time is modelled. Every CPU has one, in picoseconds: instructions,
 * pauses, and what lines and interrupts cost. QEMU runs one CPU after the other; here a CPU is sent
 * away when it is a window ahead of the slowest running one, so that all run in parallel in the
 * guest's time.
 */
#ifndef PERCH_PLUGIN_CLOCK_H
#define PERCH_PLUGIN_CLOCK_H

#include "lines.h"
#include "machine.h"
#include "qemu.h"

/* A CPU's time beyond its instructions. */
enum cause {
	CAUSE_SMT,    /* a sibling runs on the core */
	CAUSE_QUEUE,  /* for a line that others have first */
	CAUSE_STORES, /* for the store buffer: it is full, or a locked instruction waits for it */
	CAUSE_EXIT,   /* out of an idle state */
	CAUSES,
};

/* The charges of a clock, picoseconds. */
struct spent {
	uint64_t lines[KINDS][DISTANCES]; /* of a line's time, the part that the CPU waited */
	uint64_t other[CAUSES];
	uint64_t instructions;
	/* Lines that moved to the CPU after it had woken another one and before it halted: while the
	 * interrupt is on its way, nobody waits for them. */
	uint64_t aside[KINDS][DISTANCES];
};

/* Instructions per translated block are added to the scoreboard's entry of the CPU that runs it; the
 * entry reaches CLOCK_LIMIT when the CPU's clock reaches the time at which it is looked at next. */
#define CLOCK_LIMIT (1ull << 48)
/* Added to the entry of a CPU that is halted or sent away, so that its next block looks at it. */
#define CLOCK_AWAY (1ull << 56)

struct clock_entry {
	uint64_t ahead;
};

struct clocks {
	struct qemu_plugin_scoreboard *scores;
	struct clock_entry *entry[MAX_CPUS];
	/* The time of a CPU whose entry is CLOCK_LIMIT. */
	uint64_t end[MAX_CPUS];
	struct spent spent[MAX_CPUS];
};

extern struct clocks clocks;

/* Before any CPU starts; and when one does. */
void clock_start(const struct machine *machine);
void clock_cpu_starts(unsigned int cpu);

/* Time is modelled from now on: at once after this callback's block. */
void clock_begin(unsigned int cpu);
bool clock_runs(void);

/* Has a block charge the clock of its CPU: `insns` instructions, and `ps` beyond them. */
void clock_translate(struct qemu_plugin_tb *tb, size_t insns, uint64_t ps);
void clock_halts_at(struct qemu_plugin_insn *insn);

/* The CPU's time. */
static inline uint64_t clock_local(unsigned int cpu)
{
	return clocks.end[cpu] + (clocks.entry[cpu]->ahead & (CLOCK_AWAY - 1)) - CLOCK_LIMIT;
}

/* The part of the CPU's time in which it executed, and did not wait. */
uint64_t clock_executed(unsigned int cpu);

/* The CPU has woken another one since it runs. */
bool clock_has_woken(unsigned int cpu);

/* The CPU waits: for a line, which the caller notes in `spent`, or for another cause. */
void clock_add(unsigned int cpu, uint64_t ps);
void clock_charge(unsigned int cpu, enum cause cause, uint64_t ps);

/* All that was charged to the CPU. */
struct spent clock_spent(unsigned int cpu);

/* A CPU writes to a line that is here: nobody else can have the value before. */
static inline void clock_written(unsigned int cpu, struct line *line)
{
	uint64_t now = clock_local(cpu);

	if (line->free_at < now)
		line->free_at = now;
}

#endif
