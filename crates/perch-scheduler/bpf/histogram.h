/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Times by how long they are, in the form that src/histogram.rs reads: up to
 * 255 ns they are told apart to the ns, longer ones to 1 in 128.
 */
#ifndef PERCH_HISTOGRAM_H
#define PERCH_HISTOGRAM_H

#include "base/kernel.h"

#define FINE_BITS 7
#define FINE (1 << FINE_BITS)
#define MAX_SHIFT 32
#define NR_BUCKETS ((MAX_SHIFT + 2) * FINE)

struct time_bucket {
	__u64 count;
	__u64 ns; /* of all of them */
};

/* The bucket of a time; the last one takes all that are longer. */
static inline __u32 bucket_of(__u64 ns)
{
	__u32 shift, at;

	for (shift = 0; shift < MAX_SHIFT; shift++)
		if (!(ns >> shift >> (FINE_BITS + 1)))
			break;
	at = shift * FINE + (ns >> shift);
	return at < NR_BUCKETS ? at : NR_BUCKETS - 1;
}

#endif
