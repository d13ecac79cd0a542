/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines that a cache of finite size holds. A set displaces the line that came first, so that a hit
 * changes nothing and costs nothing here; a real cache's replacement is closer to the line that was
 * used longest ago, and keeps a little more of what is in use. An address is hashed into its set, as
 * in large LLCs, so that no stride fills one set.
 */
#ifndef PERCH_PLUGIN_CACHES_H
#define PERCH_PLUGIN_CACHES_H

#include <stdbool.h>
#include <stdint.h>

#include "table.h"

#define NO_LINE UINT64_MAX

struct cache {
	/* Lines plus 1, a set after the other; 0 is a free place. */
	uint32_t *tags;
	/* The place of each set that is taken next. */
	uint8_t *next;
	uint32_t sets;
	unsigned int ways;
};

static inline void cache_start(struct cache *c, uint64_t lines, unsigned int ways)
{
	c->ways = ways;
	c->sets = (uint32_t)((lines + ways - 1) / ways);
	c->tags = must(calloc((uint64_t)c->sets * ways, sizeof(*c->tags)));
	c->next = must(calloc(c->sets, sizeof(*c->next)));
}

static inline uint32_t cache_set(const struct cache *c, uint64_t line)
{
	uint32_t hash = (uint32_t)((line * 0x9e3779b97f4a7c15ull) >> 32);

	return (uint32_t)(((uint64_t)hash * c->sets) >> 32);
}

static inline bool cache_has(const struct cache *c, uint64_t line)
{
	const uint32_t *set = c->tags + (uint64_t)cache_set(c, line) * c->ways;

	for (unsigned int way = 0; way < c->ways; way++)
		if (set[way] == (uint32_t)line + 1)
			return true;
	return false;
}

/* Puts in a line that the cache may have already. Returns the line that is displaced, or NO_LINE. */
static inline uint64_t cache_insert(struct cache *c, uint64_t line)
{
	uint32_t index = cache_set(c, line);
	uint32_t *set = c->tags + (uint64_t)index * c->ways;
	uint32_t *place;
	uint32_t old;

	if (cache_has(c, line))
		return NO_LINE;
	place = &set[c->next[index]];
	c->next[index] = (uint8_t)((c->next[index] + 1u) % c->ways);
	old = *place;
	*place = (uint32_t)line + 1;
	return old ? old - 1 : NO_LINE;
}

#endif
