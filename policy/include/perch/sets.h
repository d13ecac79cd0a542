/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walking sets of CPUs by words of 64, in the kernel's ring order: from a CPU
 * upwards, around, and up to just before it.
 */
#ifndef PERCH_SETS_H
#define PERCH_SETS_H

#include "host.h"

PERCH_INLINE perch_u8 perch_set_has(const struct perch_host *h, perch_u32 set, perch_u32 cpu)
{
	perch_u32 w = cpu / 64, first = perch_host_set_first(h, set);

	if (w < first || w >= first + perch_host_set_words(h, set))
		return 0;
	return perch_host_set_word(h, set, w) >> (cpu % 64) & 1;
}

PERCH_INLINE perch_u8 perch_allowed(const struct perch_host *h, const struct perch_task *p,
				    perch_u32 cpu)
{
	return perch_host_allowed_word(h, p, cpu / 64) >> (cpu % 64) & 1;
}

/* How much busier, in percent, another group must be to count as imbalanced. */
PERCH_INLINE perch_u32 perch_imbalance_pct(const struct perch_host *h,
					   const struct perch_policy *pol, perch_u32 sd)
{
	perch_u32 flags = perch_host_domain_flags(h, sd);

	if (pol->rules.far_imbalance_pct && !(flags & PERCH_SD_LLC))
		return pol->rules.far_imbalance_pct;
	if (pol->rules.near_imbalance_pct && (flags & PERCH_SD_LLC) && !(flags & PERCH_SD_SMT))
		return pol->rules.near_imbalance_pct;
	return perch_host_domain_imbalance(h, sd);
}

/* True if the task may use any CPU of the set. */
PERCH_OUTLINE perch_u8 perch_set_meets(const struct perch_host *h PERCH_GIVEN,
				       const struct perch_task *p PERCH_GIVEN, perch_u32 set)
{
	perch_u32 first = perch_host_set_first(h, set), k;

	for (k = PERCH_ZERO; k < perch_host_set_words(h, set) && PERCH_MORE; k++)
		if (perch_host_set_word(h, set, first + k) &
		    perch_host_allowed_word(h, p, first + k))
			return 1;
	return 0;
}

/* A ring walk over a set's words. Step k of n+1; see perch_ring_word(). */
struct perch_ring {
	perch_u32 first, words; /* of the set */
	perch_u32 start_word;	/* where the walk starts, inside the set's words */
	perch_u32 start_bit;
};

PERCH_INLINE struct perch_ring perch_ring(const struct perch_host *h, perch_u32 set,
					  perch_u32 from_cpu)
{
	struct perch_ring r;
	perch_u32 w = from_cpu / 64;

	r.first = perch_host_set_first(h, set);
	r.words = perch_host_set_words(h, set);
	r.start_word = w;
	r.start_bit = from_cpu % 64;
	if (w < r.first || w >= r.first + r.words) {
		/* The CPU is outside the set: the ring meets the set's first word next. */
		r.start_word = r.first;
		r.start_bit = 0;
	}
	return r;
}

/*
 * The word visited at step k (0 to words, both included) and, through *keep,
 * the bits of it that belong to this step: the first step takes the upper
 * part of the word in which the walk starts, the last step its lower part.
 */
PERCH_INLINE perch_u32 perch_ring_word(const struct perch_ring *r, perch_u32 k, perch_u64 *keep)
{
	perch_u32 w = r->start_word + k;

	if (w >= r->first + r->words)
		w -= r->words;
	*keep = ~0ull;
	if (k == 0)
		*keep = ~0ull << r->start_bit;
	else if (k == r->words)
		*keep = ~(~0ull << r->start_bit);
	return w;
}

#endif
