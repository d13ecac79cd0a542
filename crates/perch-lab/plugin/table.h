/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A table from numbers to positions, which only grows. */
#ifndef PERCH_PLUGIN_TABLE_H
#define PERCH_PLUGIN_TABLE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct table {
	/* Keys plus 1, so that 0 is a free place, and the positions that they stand for. */
	uint64_t *keys;
	uint32_t *positions;
	uint64_t room;
	uint32_t used;
};

static inline void *must(void *memory)
{
	if (!memory) {
		fputs("perch: no memory for what the plugin counts\n", stderr);
		exit(1);
	}
	return memory;
}

static inline uint64_t table_place(const struct table *t, uint64_t key)
{
	uint64_t at = (key * 0x9e3779b97f4a7c15ull) >> 20;

	for (at &= t->room - 1; t->keys[at] && t->keys[at] != key + 1;
	     at = (at + 1) & (t->room - 1))
		;
	return at;
}

static inline void table_grow(struct table *t)
{
	struct table old = *t;

	t->room = old.room ? 2 * old.room : 4096;
	t->keys = must(calloc(t->room, sizeof(*t->keys)));
	t->positions = must(calloc(t->room, sizeof(*t->positions)));
	for (uint64_t i = 0; i < old.room; i++) {
		if (!old.keys[i])
			continue;
		uint64_t at = table_place(t, old.keys[i] - 1);

		t->keys[at] = old.keys[i];
		t->positions[at] = old.positions[i];
	}
	free(old.keys);
	free(old.positions);
}

/* The position of a key; a new key gets the next one. */
static inline uint32_t table_find(struct table *t, uint64_t key)
{
	uint64_t at;

	if (2 * (uint64_t)t->used >= t->room)
		table_grow(t);
	at = table_place(t, key);
	if (!t->keys[at]) {
		t->keys[at] = key + 1;
		t->positions[at] = t->used++;
	}
	return t->positions[at];
}

#endif
