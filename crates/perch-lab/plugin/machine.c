/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The arguments of the plugin. perch writes them, so a fault in them is a fault of perch. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *argument(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);

	for (int i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i] + length + 1;
	return NULL;
}

static bool lacks(const char *name)
{
	fprintf(stderr, "perch: the plugin cannot use its argument %s\n", name);
	return false;
}

/* Reads up to `room` numbers with colons between them. Returns how many, or 0 for other text. */
static unsigned int numbers(const char *text, uint64_t *to, unsigned int room)
{
	unsigned int count = 0;
	char *end;

	for (; text && count < room; text = end + 1) {
		to[count++] = strtoull(text, &end, 10);
		if (end == text)
			return 0;
		if (!*end)
			return count;
		if (*end != ':')
			return 0;
	}
	return 0;
}

struct arguments {
	int argc;
	char **argv;
	bool sound;
};

/* Exactly `count` numbers. */
static void list(struct arguments *a, const char *name, uint64_t *to, unsigned int count)
{
	if (a->sound && numbers(argument(a->argc, a->argv, name), to, count) != count)
		a->sound = lacks(name);
}

static uint64_t one(struct arguments *a, const char *name)
{
	uint64_t value = 0;

	list(a, name, &value, 1);
	return value;
}

/* A number of each CPU, below MAX_CPUS. Returns the largest, plus 1. */
static unsigned int by_cpu(struct arguments *a, const char *name, uint8_t *to, unsigned int cpus)
{
	uint64_t all[MAX_CPUS] = {0};
	unsigned int count = 0;

	list(a, name, all, cpus);
	for (unsigned int cpu = 0; cpu < cpus; cpu++) {
		if (all[cpu] >= MAX_CPUS)
			a->sound = lacks(name);
		to[cpu] = (uint8_t)all[cpu];
		if (all[cpu] >= count)
			count = (unsigned int)all[cpu] + 1;
	}
	return count;
}

static void read_distances(struct arguments *a, struct machine *m)
{
	const char *digits = argument(a->argc, a->argv, "distance");
	size_t pairs = (size_t)m->cpus * m->cpus;

	if (!digits || strlen(digits) != pairs || strspn(digits, "0123456") != pairs) {
		a->sound = lacks("distance");
		return;
	}
	for (size_t i = 0; i < pairs; i++)
		m->distance[i] = (uint8_t)(digits[i] - '0');
}

static void read_costs(struct arguments *a, struct costs *c)
{
	uint64_t states[2 * MAX_IDLE_STATES] = {0};
	unsigned int count =
		numbers(argument(a->argc, a->argv, "idle"), states, 2 * MAX_IDLE_STATES);

	c->instruction = one(a, "instruction");
	c->atomic = one(a, "atomic");
	c->pause = one(a, "pause");
	list(a, "transfer", c->transfer, DISTANCES);
	list(a, "ipi", c->ipi, DISTANCES);
	c->llc = one(a, "llc_hit");
	list(a, "memory_cost", c->memory, 2);
	c->hold = one(a, "hold");
	c->window = one(a, "window");
	c->smt_1024 = (unsigned int)one(a, "smt");
	c->misses_at_once = (unsigned int)one(a, "misses");
	c->reorder = (unsigned int)one(a, "reorder");
	c->store_buffer = (unsigned int)one(a, "stores");
	c->idle_states = count / 2;
	for (unsigned int i = 0; i < c->idle_states; i++)
		c->idle[i] = (struct idle_state){states[2 * i], states[2 * i + 1]};
	if (!a->sound)
		return;
	if (!count || count % 2)
		a->sound = lacks("idle");
	else if (!c->instruction || !c->window || !c->smt_1024)
		a->sound = lacks("instruction, window or smt");
	else if (!c->misses_at_once || c->misses_at_once > MAX_MISSES ||
		 c->store_buffer > MAX_STORES)
		a->sound = lacks("misses or stores");
}

bool machine_read(struct machine *m, int argc, char **argv)
{
	struct arguments a = {argc, argv, true};
	uint64_t cpus = one(&a, "cpus");
	uint8_t core_of[MAX_CPUS];

	if (!a.sound || !cpus || cpus > MAX_CPUS)
		return lacks("cpus");
	m->cpus = (unsigned int)cpus;
	m->lines = one(&a, "memory") >> LINE_SHIFT;
	m->node_lines = one(&a, "node_memory") >> LINE_SHIFT;
	m->below_hole = one(&a, "below_hole") >> LINE_SHIFT;
	m->private_lines = one(&a, "private_bytes") >> LINE_SHIFT;
	m->llc_lines = one(&a, "llc_bytes") >> LINE_SHIFT;
	read_distances(&a, m);
	m->privates = by_cpu(&a, "private", m->private_of, m->cpus);
	m->llcs = by_cpu(&a, "llc", m->llc_of, m->cpus);
	by_cpu(&a, "node", m->node_of, m->cpus);
	by_cpu(&a, "core", core_of, m->cpus);
	for (unsigned int x = 0; x < m->cpus; x++)
		for (unsigned int y = 0; y < m->cpus; y++) {
			if (m->private_of[x] == m->private_of[y])
				m->sharers[x] |= 1ull << y;
			if (x != y && core_of[x] == core_of[y])
				m->siblings[x] |= 1ull << y;
		}
	m->timed = argument(argc, argv, "instruction") != NULL;
	if (m->timed)
		read_costs(&a, &m->costs);
	return a.sound;
}
