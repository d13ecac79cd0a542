/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lines.h"

#include <string.h>

#define PRIVATE_WAYS 8
#define LLC_WAYS 16

static void nearest(const struct machine *m, uint8_t to[MAX_CPUS][MAX_CPUS], const uint8_t *of)
{
	memset(to, DISTANCES - 1, MAX_CPUS * MAX_CPUS);
	for (unsigned int a = 0; a < m->cpus; a++)
		for (unsigned int b = 0; b < m->cpus; b++)
			if (distance_of(m, a, b) < to[a][of[b]])
				to[a][of[b]] = (uint8_t)distance_of(m, a, b);
}

void lines_start(struct lines *lines, const struct machine *m)
{
	lines->machine = m;
	lines->line = must(calloc(m->lines, sizeof(*lines->line)));
	for (unsigned int i = 0; i < m->privates && m->private_lines; i++)
		cache_start(&lines->private[i], m->private_lines, PRIVATE_WAYS);
	for (unsigned int i = 0; i < m->llcs && m->llc_lines; i++)
		cache_start(&lines->llc[i], m->llc_lines, LLC_WAYS);
	nearest(m, lines->to_llc, m->llc_of);
	nearest(m, lines->to_node, m->node_of);
}

/* The nearest of some CPUs if `near`, else the farthest. */
static unsigned int distance_among(const struct machine *m, uint64_t cpus, unsigned int cpu,
				   bool near)
{
	unsigned int found = near ? DISTANCES : 0;

	for (; cpus; cpus &= cpus - 1) {
		unsigned int d = distance_of(m, (unsigned int)__builtin_ctzll(cpus), cpu);

		if (near ? d < found : d > found)
			found = d;
	}
	return found;
}

/* A line comes into the private cache of `cpu`, and the line that it displaces goes to the LLC. */
static void fill(struct lines *lines, uint64_t number, unsigned int cpu)
{
	const struct machine *m = lines->machine;
	uint64_t displaced;
	struct line *old;
	unsigned int owner;

	if (!m->private_lines)
		return;
	displaced = cache_insert(&lines->private[m->private_of[cpu]], number);
	if (displaced == NO_LINE)
		return;
	old = &lines->line[displaced];
	if (!(old->state >> 8 & m->sharers[cpu]))
		return;
	owner = old->state & 255;
	old->state &= ~(m->sharers[cpu] << 8);
	if (owner && m->sharers[cpu] >> (owner - 1) & 1)
		old->state &= ~255ull;
	if (m->llc_lines)
		cache_insert(&lines->llc[m->llc_of[cpu]], displaced);
}

/* No CPU has the line. */
static struct access from_below(struct lines *lines, uint64_t number, unsigned int cpu)
{
	const struct machine *m = lines->machine;
	unsigned int own = m->llc_of[cpu];
	unsigned int found = DISTANCES;
	unsigned int node = node_of_line(m, number);
	struct access memory = {KIND_COLD, node < MAX_CPUS ? lines->to_node[cpu][node] : 0};

	if (!m->llc_lines)
		return memory;
	if (cache_has(&lines->llc[own], number))
		return (struct access){KIND_LLC, DISTANCE_LLC};
	for (unsigned int i = 0; i < m->llcs; i++)
		if (i != own && lines->to_llc[cpu][i] < found && cache_has(&lines->llc[i], number))
			found = lines->to_llc[cpu][i];
	cache_insert(&lines->llc[own], number);
	if (found < DISTANCES)
		return (struct access){KIND_LLC, (uint8_t)found};
	return memory;
}

struct access lines_move(struct lines *lines, uint64_t number, unsigned int cpu, bool store)
{
	const struct machine *m = lines->machine;
	struct line *line = &lines->line[number];
	uint64_t state = line->state;
	uint64_t bit = cpu_bit(cpu);
	unsigned int owner = state & 255;
	uint64_t others = state >> 8 & ~(1ull << cpu);
	bool held = state & bit;
	struct access access;

	line->state = store ? bit | (cpu + 1) : (state & ~255ull) | bit;
	if (!owner && !others && held)
		return (struct access){KIND_HIT, 0};
	if (!held)
		fill(lines, number, cpu);
	if (owner) {
		access.kind = store ? KIND_STORE_DIRTY : KIND_LOAD_DIRTY;
		access.distance = (uint8_t)distance_of(m, owner - 1, cpu);
	} else if (!others) {
		access = from_below(lines, number, cpu);
	} else {
		access.kind = !store ? KIND_LOAD_CLEAN : held ? KIND_UPGRADE : KIND_STORE_CLEAN;
		access.distance = (uint8_t)distance_among(m, others, cpu, !store);
	}
	return access;
}
