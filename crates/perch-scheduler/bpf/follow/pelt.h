/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much of a CPU a task uses: a mean of its running time that forgets half
 * of what was in 32 periods of 1024 us (docs/mechanisms/stock.md#pelt), from 0 to 1024,
 * the capacity of the largest CPU. An hour on a CPU of capacity 446 makes 446.
 *
 * Between two updates a task either runs all the time or not at all, so the
 * mean has a closed form: it covers the way from its old value to its limit,
 * but for the share 2^-(time / 32 periods) of that way. PELT counts period by
 * period for the same figure; within one it is linear, as here.
 */
#ifndef PERCH_PELT_H
#define PERCH_PELT_H

#include "../../../../policy/include/perch/wake.h"

/* Time is counted in units of 1024 ns, PELT's too; 1024 of them are a period. */
#define PERCH_PELT_UNIT 10
/* Bits of fraction in a stored utilisation: even an activation of a microsecond counts. */
#define PERCH_PELT_SHIFT 16

/* 2^31, shrunk by 1/32 of a half-life at each step: the part that so many periods leave. */
static const perch_u32 perch_pelt_left[32] = {
	0x80000000, 0x7d41d96e, 0x7a92be8b, 0x77f25cce, 0x75606374, 0x72dc8374, 0x70666f76,
	0x6dfddbcc, 0x6ba27e65, 0x69540ec9, 0x6712460b, 0x64dcdec3, 0x62b39509, 0x60962665,
	0x5e8451d0, 0x5c7dd7a4, 0x5a82799a, 0x5891fac1, 0x56ac1f75, 0x54d0ad5a, 0x52ff6b55,
	0x51382182, 0x4f7a9930, 0x4dc69cdd, 0x4c1bf829, 0x4a7a77d4, 0x48e1e9ba, 0x47521cc6,
	0x45cae0f2, 0x444c0740, 0x42d561b4, 0x4166c34c,
};
/* A unit takes its part of what the period takes, PELT being linear within one. */
#define PERCH_PELT_UNIT_TAKES 44936u

/*
 * The mean after `units` of time in which it moved towards `to`; both values
 * are shifted by PERCH_PELT_SHIFT.
 */
static inline perch_u32 perch_pelt(perch_u32 mean, perch_u32 to, perch_u64 units)
{
	perch_u64 left = (1ull << 31) - (units & 1023) * PERCH_PELT_UNIT_TAKES;
	perch_u64 periods = units >> 10;

	/* Beyond 31 half-lives nothing is left of 2^31. */
	if (periods >= 32 * 31)
		return to;
	left = left * perch_pelt_left[periods & 31] >> 31 >> (periods >> 5);
	return (mean * left + to * ((1ull << 31) - left)) >> 31;
}

/*
 * The utilisation that a wakee will need, as the kernel's util_est: a mean over
 * its activations. The mean rises at once to that of a larger activation and
 * falls by a quarter of the difference after a smaller one, so that neither a
 * long sleep nor one short activation hides the need; differences below 1 % are
 * ignored.
 */
static inline perch_u32 perch_util_est(perch_u32 est, perch_u32 util)
{
	if (util >= est)
		return util;
	if (est - util <= 1024 / 100)
		return est;
	return est - ((est - util) >> 2);
}

#endif
