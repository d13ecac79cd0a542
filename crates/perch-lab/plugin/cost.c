/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What lines cost a CPU: their time, less what the core hides. */
#include "cost.h"

#include "clock.h"

/* Misses of a CPU that are under way at the same time, and stores that it has not done yet. */
struct overlap {
	uint64_t first; /* instructions' time when the first miss was issued */
	uint64_t done;	/* when the last of them is done */
	unsigned int misses;
	unsigned int store;
	uint64_t stores_done;
	uint64_t store_done[MAX_STORES];
};

static const struct machine *machine;
static struct overlap overlaps[MAX_CPUS];

void cost_start(const struct machine *m)
{
	machine = m;
}

/* A miss of an instruction: earlier misses that are under way hide it, as far as the core can look
 * ahead and has room for more. Returns what is left of it. */
static uint64_t exposed(unsigned int cpu, uint64_t ps)
{
	const struct costs *costs = &machine->costs;
	struct overlap *o = &overlaps[cpu];
	/* Instructions' time, apart from waiting. */
	uint64_t insns = clock_executed(cpu);
	uint64_t since = insns - o->first;
	uint64_t left = ps;

	if (o->misses && o->misses < costs->misses_at_once &&
	    since < costs->reorder * costs->instruction) {
		/* It began `since` after the first one, whose time the clock has already. */
		left = ps > o->done ? ps - o->done : 0;
		o->done += left;
		o->misses++;
		return left;
	}
	o->first = insns;
	o->done = ps;
	o->misses = 1;
	return left;
}

void cost_locked(unsigned int cpu)
{
	struct overlap *o = &overlaps[cpu];
	uint64_t local = clock_local(cpu);

	if (o->stores_done > local)
		clock_charge(cpu, CAUSE_STORES, o->stores_done - local);
	o->misses = 0;
}

/* A store that the CPU goes on after: it waits in the buffer for its line. Returns the time when it
 * is done. */
static uint64_t buffer(unsigned int cpu, uint64_t ps, uint64_t free_at)
{
	struct overlap *o = &overlaps[cpu];
	uint64_t local = clock_local(cpu), done;

	/* The oldest store of a full buffer makes room. */
	if (o->store_done[o->store] > local) {
		clock_charge(cpu, CAUSE_STORES, o->store_done[o->store] - local);
		local = o->store_done[o->store];
	}
	done = (free_at > local ? free_at : local) + ps;
	/* Stores become visible in their order. */
	if (done < o->stores_done)
		done = o->stores_done;
	o->stores_done = o->store_done[o->store] = done;
	o->store = (o->store + 1) % machine->costs.store_buffer;
	return done;
}

static uint64_t cost_of(struct access a)
{
	const struct costs *c = &machine->costs;
	uint64_t transfer = c->transfer[a.distance];
	uint64_t below;

	switch (a.kind) {
	case KIND_COLD:
		return c->memory[a.distance != 0];
	case KIND_LLC:
		return a.distance == DISTANCE_LLC ? c->llc : transfer;
	case KIND_LOAD_CLEAN:
		/* The LLC or the memory has the line as well. */
		below = a.distance <= DISTANCE_LLC ? c->llc : c->memory[0];
		return transfer < below ? transfer : below;
	default:
		return transfer;
	}
}

void cost_moved(unsigned int cpu, struct line *line, struct access access, bool store, bool locked)
{
	struct spent *spent = &clocks.spent[cpu];
	uint64_t ps = cost_of(access), local;

	if (clock_has_woken(cpu))
		spent->aside[access.kind][access.distance]++;
	if (store && !locked && machine->costs.store_buffer) {
		line->free_at = buffer(cpu, ps, line->free_at) + machine->costs.hold;
		return;
	}
	if (locked)
		cost_locked(cpu);
	local = clock_local(cpu);
	if (line->free_at > local)
		clock_charge(cpu, CAUSE_QUEUE, line->free_at - local);
	if (!locked && !store)
		ps = exposed(cpu, ps);
	clock_add(cpu, ps);
	spent->lines[access.kind][access.distance] += ps;
	if (store || access.kind == KIND_LOAD_DIRTY)
		line->free_at = clock_local(cpu) + machine->costs.hold;
}
