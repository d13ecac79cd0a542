/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * overload.h with its atomics handed to the program that links this file: a
 * model checker, crates/perch-policy/tests/loom.rs, and no other.
 */
#include "../include/perch/wake.h"

perch_u64 perch_checked_load(const perch_u64 *counter);
void perch_checked_add(perch_u64 *counter, perch_u64 n);

#define PERCH_ATOMIC_LOAD(p) perch_checked_load(p)
#define PERCH_ATOMIC_ADD(p, n) perch_checked_add(p, n)

#include "../include/perch/overload.h"

void perch_checked_set(const struct perch_overload *o, perch_u32 *mark, perch_u32 home);
void perch_checked_clear(const struct perch_overload *o, perch_u32 *mark, perch_u32 home);
perch_u32 perch_checked_read(const struct perch_overload *o, perch_u32 home);

void perch_checked_set(const struct perch_overload *o, perch_u32 *mark, perch_u32 home)
{
	perch_overload_set(o, mark, home);
}

void perch_checked_clear(const struct perch_overload *o, perch_u32 *mark, perch_u32 home)
{
	perch_overload_clear(o, mark, home);
}

perch_u32 perch_checked_read(const struct perch_overload *o, perch_u32 home)
{
	perch_u32 loads;

	return perch_overload_read(o, home, &loads);
}
