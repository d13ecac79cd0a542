/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bpf/follow/pelt.h natively, for its tests. */
#include "../../bpf/follow/pelt.h"

perch_u32 perch_pelt_native(perch_u32 mean, perch_u32 to, perch_u64 units);
perch_u32 perch_util_est_native(perch_u32 est, perch_u32 util);

perch_u32 perch_pelt_native(perch_u32 mean, perch_u32 to, perch_u64 units)
{
	return perch_pelt(mean, to, units);
}

perch_u32 perch_util_est_native(perch_u32 est, perch_u32 util)
{
	return perch_util_est(est, util);
}
