/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counts the CPUs that are overloaded with real-time tasks: none, one, or more.
 * Written from docs/mechanisms/overload.md.
 *
 * A CPU is overloaded while it has a real-time task that waits and might run
 * elsewhere. Each CPU that drops to a lower priority asks whether another CPU
 * is overloaded before it looks for a task to pull; each CPU that becomes
 * overloaded, or stops being so, changes the count. With one counter for the
 * whole machine all CPUs write and read one cache line. Here there may be
 * several counters, one for each node or for each last-level cache, each on a
 * line of its own or not: a CPU writes its own counter, and reads the counters
 * from its own outwards until it has an answer.
 *
 * Mode perch repairs three defects of the posted patch:
 *
 * - A posted counter is four bytes from the allocator, and other data share its
 *   cache line. Padded counters have a line (PERCH_OVERLOAD_LINE) to
 *   themselves.
 * - If a CPU changes its node between raising and lowering, one counter goes
 *   below zero and another stays raised for ever. In mode perch the CPU
 *   remembers the counter that it raised.
 * - Reading one counter after the other is not a snapshot. Overload that moves
 *   from a counter not read yet to one that has been read is missed, though at
 *   each moment some CPU was overloaded. Mode perch counts in the upper half of
 *   a counter how often it was raised. If the first round does not find several
 *   overloaded CPUs, a second one adds up only these. An upper half can only
 *   grow, so equal sums mean that no counter was raised between its two
 *   readings: at the moment between the rounds no more CPUs were overloaded
 *   than the first round saw. If the sums differ the answer is "more": the
 *   caller looks at every CPU's mark, as it does anyway when several CPUs are
 *   overloaded. Loads acquire and updates release, so a reader that sees a
 *   counter lowered also sees every counter that was raised before that.
 *   crates/perch-policy/tests/loom.rs runs this code through all interleavings
 *   of small cases.
 *
 * The caller must mark a CPU in its mask before it counts the CPU, and must
 * unmark the CPU only after it has counted the CPU out.
 */
#ifndef PERCH_OVERLOAD_H
#define PERCH_OVERLOAD_H

#include "wake.h"

/* How the counters lie in memory. */
enum perch_overload_layout {
	PERCH_OVERLOAD_SHARED = 0,	/* one for all, among other data: Linux up to 7.2 */
	PERCH_OVERLOAD_NODE = 1,	/* one per node, eight bytes of the slab: as posted */
	PERCH_OVERLOAD_NODE_PADDED = 2, /* one per node, each on its own line */
	PERCH_OVERLOAD_LLC_PADDED = 3,	/* one per LLC, each on its own line: as reviewers asked */
	PERCH_NR_OVERLOAD_LAYOUTS,
};

/* The answers that a reader can get. */
enum perch_overload_level {
	PERCH_OVERLOAD_NONE = 0,
	PERCH_OVERLOAD_ONE = 1,
	PERCH_OVERLOAD_MORE = 2, /* several, or too much is going on to tell */
};

/*
 * A padded counter's bytes: two lines of 64, which Intel's prefetcher fetches
 * together, or one of 128, as the Kunpeng 920's L3 and POWER have.
 */
#define PERCH_OVERLOAD_LINE 128u

/*
 * The two halves of a counter: the lower counts the overloaded CPUs, the upper
 * how often the counter was raised.
 */
#define PERCH_OVERLOAD_RAISE ((1ull << 32) + 1)
#define PERCH_OVERLOAD_LOWER (~0ull) /* minus one: the count is above zero, nothing is borrowed */

/*
 * Loads acquire; updates acquire and release. A host with atomics of its own
 * defines these before it includes this file; `p` points to a perch_u64.
 */
#ifndef PERCH_ATOMIC_LOAD
#define PERCH_ATOMIC_LOAD(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#endif
#ifndef PERCH_ATOMIC_ADD
#define PERCH_ATOMIC_ADD(p, n) ((void)__atomic_fetch_add(p, n, __ATOMIC_ACQ_REL))
#endif

/* The counters of one set of CPUs that share real-time tasks (a root domain). */
struct perch_overload {
	perch_u64 PERCH_AS *PERCH_AS *counters;
	perch_u32 nr;
	perch_u32 layout; /* enum perch_overload_layout */
	perch_u32 exact;  /* mode perch: reads are checked, the raised counter is remembered */
	perch_u32 pad;
};

/*
 * The number of the counter that is nearest to a CPU of this node and this LLC;
 * both count from 0.
 */
PERCH_INLINE perch_u32 perch_overload_home(perch_u32 layout, perch_u32 node, perch_u32 llc)
{
	switch (layout) {
	case PERCH_OVERLOAD_NODE:
	case PERCH_OVERLOAD_NODE_PADDED:
		return node;
	case PERCH_OVERLOAD_LLC_PADDED:
		return llc;
	default:
		return 0;
	}
}

/*
 * A CPU whose nearest counter is `home` became overloaded. `mark` is that CPU's
 * own word, 0 while it is not counted; its host must make one call at a time,
 * as it does under the CPU's run-queue lock. Returns the counter that was
 * written.
 */
PERCH_INLINE perch_u32 perch_overload_set(const struct perch_overload PERCH_AS *o,
					  perch_u32 PERCH_AS *mark, perch_u32 home)
{
	*mark = home + 1;
	PERCH_ATOMIC_ADD(o->counters[home], PERCH_OVERLOAD_RAISE);
	return home;
}

/*
 * The CPU is no longer overloaded. Mode posted lowers the counter of the node
 * where the CPU is now; mode perch lowers the counter that the CPU raised.
 * Returns the counter that was written.
 */
PERCH_INLINE perch_u32 perch_overload_clear(const struct perch_overload PERCH_AS *o,
					    perch_u32 PERCH_AS *mark, perch_u32 home)
{
	perch_u32 at = o->exact ? *mark - 1 : home;

	*mark = 0;
	PERCH_ATOMIC_ADD(o->counters[at], PERCH_OVERLOAD_LOWER);
	return at;
}

/*
 * Reads how many CPUs are overloaded, for a CPU whose nearest counter is
 * `home`: an enum perch_overload_level. `loads` gets the number of counters
 * that were read: home first, then the counters after it, after the last one
 * the first, and the same order again in a second round. A count below zero
 * (mode posted) is added as it is: the sum may then be zero although CPUs are
 * overloaded, and a sum below zero is not zero, nor the one that the reader may
 * be itself, so the posted form looks at every CPU's mark.
 */
PERCH_INLINE perch_u32 perch_overload_read(const struct perch_overload PERCH_AS *o, perch_u32 home,
					   perch_u32 *loads)
{
	perch_u32 nr = o->nr, at = home, i;
	perch_u32 raised = PERCH_ZERO; /* wraps, as each of them does */
	perch_s32 sum = PERCH_ZERO;

	for (i = PERCH_ZERO; i < nr && PERCH_MORE; i++) {
		perch_u64 word = PERCH_ATOMIC_LOAD(o->counters[at]);

		sum += (perch_s32)(perch_u32)word;
		raised += word >> 32;
		if (sum > 1) {
			*loads = i + 1;
			return PERCH_OVERLOAD_MORE;
		}
		at = at + 1 < nr ? at + 1 : 0;
	}
	*loads = nr;
	/* A single counter needs no second round: one load is a snapshot. */
	if (o->exact && nr > 1) {
		for (i = PERCH_ZERO; i < nr && PERCH_MORE; i++) {
			raised -= PERCH_ATOMIC_LOAD(o->counters[at]) >> 32;
			at = at + 1 < nr ? at + 1 : 0;
		}
		*loads = 2 * nr;
		if (raised)
			return PERCH_OVERLOAD_MORE;
	}
	if (sum < 0 && !o->exact)
		return PERCH_OVERLOAD_MORE;
	return sum > 0 ? PERCH_OVERLOAD_ONE : PERCH_OVERLOAD_NONE;
}

#ifndef __bpf__
/* The allocator of a native host's counters; `node` is the node where the memory should be. */
struct perch_overload_memory {
	void *(*alloc)(void *context, perch_u64 bytes, perch_u64 align, perch_u32 node);
	void (*free)(void *context, void *block, perch_u64 bytes, perch_u64 align);
	void *context;
};

PERCH_INLINE int perch_overload_padded(perch_u32 layout)
{
	return layout == PERCH_OVERLOAD_NODE_PADDED || layout == PERCH_OVERLOAD_LLC_PADDED;
}

/* The size of one counter in bytes, which is its alignment too. */
PERCH_INLINE perch_u64 perch_overload_bytes(perch_u32 layout)
{
	return perch_overload_padded(layout) ? PERCH_OVERLOAD_LINE : sizeof(perch_u64);
}

/* Gives back the first `nr` counters and the table of them. */
PERCH_INLINE void perch_overload_drop(struct perch_overload *o,
				      const struct perch_overload_memory *m, perch_u32 nr)
{
	perch_u64 bytes = perch_overload_bytes(o->layout);

	while (nr--)
		m->free(m->context, o->counters[nr], bytes, bytes);
	m->free(m->context, o->counters, o->nr * sizeof(*o->counters), sizeof(*o->counters));
	o->counters = 0;
	o->nr = 0;
}

/*
 * Allocates `nr` counters, the i-th on nodes[i], all zero. Returns 0, or -1
 * when memory is short; it has then given back everything that it had
 * allocated, each block once.
 */
PERCH_INLINE int perch_overload_init(struct perch_overload *o,
				     const struct perch_overload_memory *m,
				     enum perch_overload_layout layout, perch_u32 exact,
				     const perch_u32 *nodes, perch_u32 nr)
{
	perch_u64 bytes = perch_overload_bytes(layout);
	perch_u32 i;

	o->layout = layout;
	o->exact = exact;
	o->nr = nr;
	o->pad = 0;
	o->counters =
		m->alloc(m->context, nr * sizeof(*o->counters), sizeof(*o->counters), nodes[0]);
	if (!o->counters) {
		o->nr = 0;
		return -1;
	}
	for (i = 0; i < nr; i++) {
		o->counters[i] = m->alloc(m->context, bytes, bytes, nodes[i]);
		if (!o->counters[i]) {
			perch_overload_drop(o, m, i);
			return -1;
		}
		*o->counters[i] = 0;
	}
	return 0;
}

PERCH_INLINE void perch_overload_free(struct perch_overload *o,
				      const struct perch_overload_memory *m)
{
	if (o->counters)
		perch_overload_drop(o, m, o->nr);
}
#endif /* __bpf__ */

#endif
